//! Where a tree's buffers are, and who keeps the whole of it alive.

use core::ffi::c_void;

use crate::abi::Device;
use crate::device::{SharedEvent, Sync, SyncMode, Work, has_event_handles, normalise, takes_events};
use crate::error::{Report, Result, Status};
use crate::memory::{Event, EventCell, Owner};

/// Device, event and owner of a whole tree, as the C interface passes them.
///
/// Whoever holds the struct owns the event and the owner in it. A call that takes them leaves NULL behind.
#[repr(C)]
#[derive(Debug)]
pub struct Placement {
    /// Size of this struct in the caller's build.
    pub struct_size: usize,
    /// The device of every buffer; all zero is the CPU.
    pub device: Device,
    /// The event to wait on before the buffers are read, NULL when there is none: the handle by value where the device's
    /// events are handles (CUDA, ROCm, OpenCL, Vulkan), elsewhere the address of the event.
    event: *mut c_void,
    /// Goes first to `destroy_event`.
    event_ctx: *mut c_void,
    /// Destroys the event, once, from any thread, after the last owner is gone; NULL when somebody else does.
    destroy_event: Option<unsafe extern "C" fn(event_ctx: *mut c_void, event: *mut c_void)>,
    /// Instead of `event`: the queue to record one on. All zero records none.
    pub record_on: Sync,
    /// Keeps the whole tree alive.
    owner: *mut c_void,
    /// Lets the owner go, once, from any thread, after the owners of the buffers that are let go with it; NULL when nobody
    /// needs to be told.
    release_owner: Option<unsafe extern "C" fn(owner: *mut c_void)>,
}

/// A placement that was looked at and can be taken.
#[derive(Debug, Clone, Copy)]
pub struct PlacementParts {
    /// The device, with the CPU's id written as -1.
    pub device: Device,
    /// Whether there is an event.
    pub has_event: bool,
}

impl PlacementParts {
    /// CPU memory that is ready.
    ///
    /// cbindgen:ignore
    pub const HOST: PlacementParts = PlacementParts { device: Device::CPU, has_event: false };
}

impl Default for Placement {
    fn default() -> Self {
        Self::on(Device::CPU)
    }
}

impl Placement {
    /// A device, without event or owner.
    pub fn on(device: Device) -> Self {
        Self {
            struct_size: size_of::<Self>(),
            device,
            event: core::ptr::null_mut(),
            event_ctx: core::ptr::null_mut(),
            destroy_event: None,
            record_on: Sync::NONE,
            owner: core::ptr::null_mut(),
            release_owner: None,
        }
    }

    /// Adds an event by value, which `destroy` ends once the last owner is gone.
    ///
    /// # Safety
    /// `event` is a handle of the device's driver that lives until `destroy` was called once, or for as long as the
    /// tree when that is `None`; any thread may call `destroy`.
    pub unsafe fn with_event(
        mut self,
        event: *mut c_void,
        event_ctx: *mut c_void,
        destroy: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    ) -> Self {
        (self.event, self.event_ctx, self.destroy_event) = (event, event_ctx, destroy);
        self
    }

    /// Adds an event of the library's own.
    pub(crate) fn with_shared_event(self, event: Option<SharedEvent>) -> Self {
        let Some(event) = event else { return self };
        let (handle, context, destroy) = event.into_parts();
        // SAFETY: the event is destroyed with its last reference, one of which the placement has.
        unsafe { self.with_event(handle, context, Some(destroy)) }
    }

    /// Adds an owner of the whole tree.
    pub fn with_owner(mut self, owner: Owner) -> Self {
        (self.owner, self.release_owner) = owner.into_parts();
        self
    }

    /// The event that will be shown, as what tells it from others.
    pub fn event(&self) -> Event {
        Event { address: core::ptr::null_mut(), identity: self.event }
    }

    /// Checks what the placement says, and takes nothing.
    pub fn check(&self, report: &mut Report<'_>) -> Result<PlacementParts> {
        let device = normalise(self.device, report)?;
        let has_event = !self.event.is_null();
        if !has_event && self.destroy_event.is_some() {
            return Err(report.fail(
                Status::InvalidArgument,
                format_args!("expected an event for destroy_event, found NULL"),
            ));
        }
        if has_event && !takes_events(device.r#type) {
            return Err(report.fail(
                Status::InvalidArgument,
                format_args!("expected no event on device type {}, found {:p}", device.r#type, self.event),
            ));
        }
        match self.record_on.mode(report)? {
            SyncMode::None => Ok(PlacementParts { device, has_event }),
            SyncMode::Host => Err(report.fail(
                Status::InvalidArgument,
                format_args!("expected NONE, QUEUE or LIBRARY to record an event on, found HOST"),
            )),
            SyncMode::Queue | SyncMode::Library if has_event => Err(report.fail(
                Status::InvalidArgument,
                format_args!("expected an event or a queue to record one on, found both"),
            )),
            SyncMode::Queue | SyncMode::Library => Ok(PlacementParts { device, has_event: true }),
        }
    }

    /// Records the event that is asked for, the last thing that may fail.
    pub fn record(&self, report: &mut Report<'_>) -> Result<Option<SharedEvent>> {
        if self.record_on.mode(report)? == SyncMode::None {
            return Ok(None);
        }
        let device = normalise(self.device, report)?;
        Work::recording(device, &self.record_on, report)?.recorded(report).map(Some)
    }

    /// Whether a tree owner is given.
    pub fn has_owner(&self) -> bool {
        self.release_owner.is_some()
    }

    /// Takes the owner and the event out, so that the struct owns nothing any more. A recorded event stands in the place of
    /// the one that it does not have.
    pub fn take(&mut self, recorded: Option<SharedEvent>) -> (Owner, EventCell) {
        let recorded = recorded.map(SharedEvent::into_parts);
        if let Some((handle, context, destroy)) = recorded {
            (self.event, self.event_ctx, self.destroy_event) = (handle, context, Some(destroy));
        }
        let (none, shown) = (core::ptr::null_mut(), self.event());
        let event = core::mem::replace(&mut self.event, none);
        let context = core::mem::replace(&mut self.event_ctx, none);
        let (destroy, is_handle) = (self.destroy_event.take(), has_event_handles(self.device.r#type));
        let owner = core::mem::replace(&mut self.owner, none);
        // SAFETY: whoever made the placement promised that its owner and its event may go once, on any thread.
        unsafe {
            (
                Owner::new(owner, self.release_owner.take()).peeled(shown),
                EventCell::new(event, context, destroy, is_handle),
            )
        }
    }
}
