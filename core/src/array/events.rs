//! Events of arrays: waiting for them, and recording new ones in their place.

use core::ffi::c_void;

use crate::device::{Sync, SyncMode, Wait, Work, hold_until, pending};
use crate::error::{Report, Result, Status};
use crate::memory::{Event, Place};
use crate::tree::Array;

impl Array {
    /// Waits for the array's event as `sync` says: afterwards that queue's work, or with HOST anybody, may use the values.
    pub fn wait(&self, sync: &Sync, report: &mut Report<'_>) -> Result<()> {
        let place = self.tree().place();
        if sync.mode(report)? == SyncMode::Library {
            let message =
                format_args!("expected NONE, QUEUE or HOST, found LIBRARY, which would let nobody wait");
            return Err(report.fail(Status::InvalidArgument, message));
        }
        if place.event == Event::NONE {
            return Ok(());
        }
        Work::waiting(place, sync, Wait::ArrayAfterEvent, report)
    }

    /// The same array under a new event, which is done when the queue has come this far; the queue waits for the old one first.
    pub fn record(&self, sync: &Sync, report: &mut Report<'_>) -> Result<Array> {
        self.join_events(&[], sync, report)
    }

    /// The same array under a new event, which is done when its old one, the events named and the queue's work up to here are.
    pub fn join_events(&self, events: &[*mut c_void], sync: &Sync, report: &mut Report<'_>) -> Result<Array> {
        let place = self.tree().place();
        let work = Work::recording(place.device, sync, report)?;
        work.after(Wait::RecordAfterEvent, place, report)?;
        for (i, event) in events.iter().enumerate() {
            if event.is_null() {
                let message = format_args!("expected an event, found NULL at {i}");
                return Err(report.fail(Status::InvalidArgument, message));
            }
            let event = Event { address: *event, identity: *event };
            work.after(Wait::JoinAfterEvents, Place { event, ..place }, report)?;
        }
        let slot = pending::Slot::prepare(report)?;
        let event = work.recorded(report)?;
        self.under(event, slot, report)
    }

    /// Keeps the array until the queue has come this far, without blocking.
    pub fn release_after(&self, sync: &Sync, report: &mut Report<'_>) -> Result<()> {
        hold_until(self.tree().device(), sync, || self.tree().as_owner(), report)
    }
}
