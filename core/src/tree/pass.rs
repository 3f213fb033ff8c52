//! Exports of ours that go on as they are: whether a struct still is what was written out.

use super::ExportedArray;
use super::export::own_node;
use super::import::Walk;
use super::imported::Draft;
use crate::abi::{ArrowDeviceArray, Device};
use crate::device::{check_foreign, has_event_handles};
use crate::error::{Report, Result};
use crate::memory::{Event, Place};
use crate::types::Type;

/// Looks at structs of one type, again and again in the same memory.
#[derive(Debug, Default)]
pub struct PassOn {
    draft: Option<Draft>,
}

impl PassOn {
    /// Whether a live struct is one of ours that nobody changed, and so as strict as anything that is exported. Its
    /// structure is checked by the type, as an import does.
    ///
    /// # Safety
    /// As [`import`](super::import::import) has it.
    pub unsafe fn is_strict(
        &mut self,
        raw: &ArrowDeviceArray,
        ty: &Type,
        report: &mut Report<'_>,
    ) -> Result<bool> {
        // SAFETY: as the caller promises.
        if unsafe { own_node(&raw.array) }.is_none() {
            return Ok(false);
        }
        let device = Device { r#type: raw.device_type, id: raw.device_id };
        if check_foreign(device, raw.sync_event, report)? != device || raw.reserved != [0; 3] {
            return Ok(false);
        }
        // SAFETY: the interface says that the event of such a device is a handle, and that the address leads to it.
        let event = unsafe { Event::at(raw.sync_event, has_event_handles(device.r#type)) };
        let draft = match self.draft.take() {
            Some(draft) => draft,
            None => Draft::allocate(ty.n_nodes(), 0, report)?,
        };
        let mut walk = Walk::new(ty, draft, Place { device, event }, false);
        // SAFETY: as the caller promises.
        let checked = unsafe { walk.node(&raw.array, 0, report) };
        let is_strict = walk.is_as_built();
        self.draft = Some(walk.into_draft());
        checked.map(|()| is_strict)
    }
}

impl ExportedArray {
    /// Takes a live struct of ours over again.
    ///
    /// # Safety
    /// The struct is one that [`ExportedArray::into_raw`] gave, wherever it was moved.
    pub unsafe fn from_raw(raw: ArrowDeviceArray) -> Self {
        Self(raw)
    }
}
