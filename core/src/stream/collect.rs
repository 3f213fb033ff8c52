//! All arrays of a stream as one.

use super::{State, Stream};
use crate::array::Array;
use crate::device::Sync;
use crate::error::{Report, Result, capture};
use crate::transfer::concat;

impl Stream {
    /// Asks until the end, and gives all arrays as one: a single one as it is, several as a copy in CPU memory, none as an
    /// array without rows. When it fails, the stream has failed.
    pub fn collect(&self, sync: &Sync, report: &mut Report<'_>) -> Result<Array> {
        sync.mode(report)?;
        let mut inner = self.turn(report)?;
        let collected = capture(|report| {
            let mut arrays: Vec<Array> = Vec::new();
            while let Some(array) = inner.next(&self.0.is_cancelled, report)? {
                if arrays.try_reserve(1).is_err() {
                    return Err(report.out_of_memory(size_of::<Array>()));
                }
                arrays.push(array);
            }
            if arrays.len() == 1
                && let Some(only) = arrays.pop()
            {
                return Ok(only);
            }
            concat(self.ty(), &arrays, sync, report)
        });
        collected.map_err(|record| {
            (inner.state, inner.record) = (State::Failed, record);
            report.repeat(&record)
        })
    }
}
