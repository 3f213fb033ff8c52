//! The status codes.

/// What kind of failure a call met. The numbers are part of the C ABI.
///
/// cbindgen:ignore
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// The call did what it says.
    Ok = 0,
    /// The call itself is wrong: a NULL that may not be, an index out of range, an unknown option.
    InvalidArgument = 1,
    /// The data breaks a rule of the interfaces.
    InvalidData = 2,
    /// The data is legal, but the named consumer would refuse, crash on or misread it.
    NotConforming = 3,
    /// Legal, but not something that this build does.
    Unsupported = 4,
    /// Device work may still be running, and the caller did not say how to wait for it.
    SyncRequired = 5,
    /// The struct was released or moved out before.
    Released = 6,
    /// An allocation failed.
    OutOfMemory = 7,
    /// The device's driver or the device itself is not there.
    DeviceUnavailable = 8,
    /// The device's driver reported an error.
    DeviceError = 9,
    /// A callback of the caller or of a producer failed.
    CallbackError = 10,
    /// The operation was cancelled.
    Cancelled = 11,
    /// A fault of this library.
    Internal = 12,
}

impl Status {
    /// Every status, in the order of the numbers.
    ///
    /// cbindgen:ignore
    pub const ALL: [Status; 13] = [
        Status::Ok,
        Status::InvalidArgument,
        Status::InvalidData,
        Status::NotConforming,
        Status::Unsupported,
        Status::SyncRequired,
        Status::Released,
        Status::OutOfMemory,
        Status::DeviceUnavailable,
        Status::DeviceError,
        Status::CallbackError,
        Status::Cancelled,
        Status::Internal,
    ];

    /// The name without the library's prefix, as a C string.
    pub const fn name(self) -> &'static core::ffi::CStr {
        match self {
            Status::Ok => c"OK",
            Status::InvalidArgument => c"INVALID_ARGUMENT",
            Status::InvalidData => c"INVALID_DATA",
            Status::NotConforming => c"NOT_CONFORMING",
            Status::Unsupported => c"UNSUPPORTED",
            Status::SyncRequired => c"SYNC_REQUIRED",
            Status::Released => c"RELEASED",
            Status::OutOfMemory => c"OUT_OF_MEMORY",
            Status::DeviceUnavailable => c"DEVICE_UNAVAILABLE",
            Status::DeviceError => c"DEVICE_ERROR",
            Status::CallbackError => c"CALLBACK_ERROR",
            Status::Cancelled => c"CANCELLED",
            Status::Internal => c"INTERNAL",
        }
    }

    /// The status with this number.
    pub fn from_code(code: i32) -> Option<Status> {
        usize::try_from(code).ok().and_then(|i| Self::ALL.get(i).copied())
    }
}
