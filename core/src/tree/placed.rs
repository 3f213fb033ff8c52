//! The same buffers under another event, or as memory of another device that reaches them.

use super::{Array, Tree};
use crate::device::{SharedEvent, device_name, is_cpu_readable, is_reachable, pending};
use crate::error::{Report, Result, Rule};
use crate::memory::{Buffer, Owner, Place};

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
    ///
    /// What is to be the CPU's is looked for first: a producer that names the wrong device is found out before the CPU reads.
    pub(crate) fn reachable_at(&self, place: Place, report: &mut Report<'_>) -> Result<Array> {
        if is_cpu_readable(place.device) {
            self.check_reach(report)?;
        }
        Tree::derive(self, None, place, || Owner::NONE, report)
    }

    fn check_reach(&self, report: &mut Report<'_>) -> Result<()> {
        let (tree, first) = (self.tree(), self.node());
        let nodes = tree.nodes().iter().enumerate().skip(first).take(self.n_nodes());
        for (i, node) in nodes {
            for k in 0..node.n_buffers {
                let Some(found) = is_reachable(tree.device(), node.address(k), report)? else { continue };
                let message = format_args!(
                    "expected memory that the CPU can read in buffer {k}, found it on device type {} ({}), id {}",
                    found.r#type,
                    device_name(found.r#type),
                    found.id
                );
                return Err(report.broken(Rule::D9, &tree.ty().path(i), message));
            }
        }
        Ok(())
    }
}

/// As [`Array::reachable_at`], of a single buffer.
pub(crate) fn buffer_at(buffer: &Buffer, place: Place, report: &mut Report<'_>) -> Result<Buffer> {
    if is_cpu_readable(place.device)
        && let Some(found) = is_reachable(buffer.place().device, buffer.data(), report)?
    {
        let message = format_args!(
            "expected memory that the CPU can read, found it on device type {} ({}), id {}",
            found.r#type,
            device_name(found.r#type),
            found.id
        );
        return Err(report.broken(Rule::D9, &"", message));
    }
    let whole = buffer.clone();
    Buffer::try_new(buffer.data(), buffer.size(), place, report, || whole.into_reference())
}
