//! Sources that are no callbacks: arrays that are there already, and other streams with something done to them.

use super::ffi::other_device;
use super::{Canceller, Source, Stream};
use crate::abi::Device;
use crate::array::Array;
use crate::error::{Report, Result, Rule, Status, capture};
use crate::memory::reserve;
use crate::tree::Tree;
use crate::types::{Format, Type};

impl Stream {
    /// A stream of arrays that are there already, which have all to be of type `ty` and on the same type of device.
    pub fn from_arrays(ty: &Type, arrays: Vec<Array>, report: &mut Report<'_>) -> Result<Self> {
        let mut device = arrays.first().map_or(Device::CPU, |array| array.tree().device());
        for (i, array) in arrays.iter().enumerate() {
            let own = array.tree().device();
            if own.id != device.id {
                device.id = -1;
            }
            let checked = capture(|report| {
                check_type(array, ty, report)?;
                if own.r#type == device.r#type {
                    return Ok(());
                }
                Err(other_device(device.r#type, own.r#type, report))
            });
            if let Err(mut record) = checked {
                record.batch = i64::try_from(i).unwrap_or(-1);
                return Err(report.repeat(&record));
            }
        }
        Stream::new(ty, device, report, || Arrays(arrays.into_iter()))
    }

    /// The stream's structs with some of their children, by number and in this order, and without copying. The stream is
    /// taken only once nothing can fail any more.
    pub fn select(
        stream: &Stream,
        columns: &[usize],
        report: &mut Report<'_>,
        take: impl FnOnce() -> Stream,
    ) -> Result<Self> {
        let from = stream.ty();
        let root = from.root_node();
        if root.format != Format::Struct {
            let message =
                format_args!("expected a stream of structs to select columns of, found one of {from}");
            return Err(report.fail(Status::InvalidArgument, message));
        }
        let mut nodes = reserve(columns.len(), report)?;
        for column in columns {
            let Some(node) = from.child_index(0, *column) else {
                let n = root.n_children;
                let message = format_args!("expected columns below {n}, found {column}");
                return Err(report.fail(Status::InvalidArgument, message));
            };
            nodes.push(node);
        }
        let children = nodes.iter().filter_map(|node| from.at(*node));
        let ty = Type::build(b"+s", from.name(0), root.flags, children, None, from.metadata(0), report)?;
        Stream::new(&ty, stream.device(), report, || Selected { from: take(), ty: ty.clone(), nodes })
    }

    /// The stream with a check of each array, which is given its number. The stream is taken only once nothing can fail any
    /// more.
    pub fn checked<F>(
        stream: &Stream,
        report: &mut Report<'_>,
        take: impl FnOnce() -> Stream,
        check: F,
    ) -> Result<Self>
    where
        F: FnMut(&Array, i64, &mut Report<'_>) -> Result<()> + Send + 'static,
    {
        let ty = stream.ty().clone();
        Stream::new(&ty, stream.device(), report, || Checked { from: take(), n: 0, check })
    }
}

/// Checks that an array has its stream's type.
pub(super) fn check_type(array: &Array, ty: &Type, report: &mut Report<'_>) -> Result<()> {
    match array.ty() {
        Some(own) if own.equals(ty, 0) => Ok(()),
        Some(own) => {
            let message = format_args!("expected arrays of the stream's type {ty}, found one of {own}");
            Err(report.broken(Rule::St5, &"$", message))
        }
        None => Err(report.fail(Status::Internal, format_args!("expected a node of the array, found none"))),
    }
}

/// Arrays that are there already.
struct Arrays(std::vec::IntoIter<Array>);

impl Source for Arrays {
    fn next(&mut self, _: &mut Report<'_>) -> Result<Option<Array>> {
        Ok(self.0.next())
    }
}

/// Some columns of another stream.
struct Selected {
    from: Stream,
    ty: Type,
    /// The nodes of the other stream's type that the columns start at.
    nodes: Vec<usize>,
}

impl Source for Selected {
    fn next(&mut self, report: &mut Report<'_>) -> Result<Option<Array>> {
        let Some(array) = self.from.next(report)? else { return Ok(None) };
        Tree::with_children(&array, &self.ty, &self.nodes, report).map(Some)
    }

    fn canceller(&self) -> Option<Canceller> {
        self.from.canceller()
    }
}

/// Another stream, each of whose arrays is checked.
struct Checked<F> {
    from: Stream,
    n: i64,
    check: F,
}

impl<F> Source for Checked<F>
where
    F: FnMut(&Array, i64, &mut Report<'_>) -> Result<()> + Send,
{
    fn next(&mut self, report: &mut Report<'_>) -> Result<Option<Array>> {
        let Some(array) = self.from.next(report)? else { return Ok(None) };
        (self.check)(&array, self.n, report)?;
        self.n = self.n.wrapping_add(1);
        Ok(Some(array))
    }

    fn canceller(&self) -> Option<Canceller> {
        self.from.canceller()
    }
}
