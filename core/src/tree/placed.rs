//! The same buffers under another event, or as memory of another device that reaches them.

use super::{Array, Tree};
use crate::device::{SharedEvent, pending};
use crate::error::{Report, Result};
use crate::memory::{Owner, Place};

impl Array {
    /// The window's values under a new event, recorded behind the old one. They are kept until it is done, in `slot`.
    pub(crate) fn under(
        &self,
        event: SharedEvent,
        slot: pending::Slot,
        report: &mut Report<'_>,
    ) -> Result<Array> {
        let place = Place { event: event.event(), ..self.tree().place() };
        let below = self.tree().needed_below(true, place.event);
        Tree::derive(self, None, place, || slot.into_owner(event, below.as_owner()), report)
    }

    /// The window's values as memory of another device that reaches them, under the same event or, once that is done, none.
    pub(crate) fn reachable_at(&self, place: Place, report: &mut Report<'_>) -> Result<Array> {
        Tree::derive(self, None, place, || Owner::NONE, report)
    }
}
