//! Error numbers of stream callbacks, and the statuses that they stand for. The one table, for both directions.

use core::ffi::c_int;
use core::fmt;

use crate::error::Status;

/// The error numbers that mean more than that a callback failed, with the status that each is told as.
///
/// Producers use EINVAL for nearly everything, so that it says no more than that they failed.
const TOLD: &[(c_int, &str, Status)] = &[
    (libc::ENOMEM, "ENOMEM", Status::OutOfMemory),
    (libc::ENOSYS, "ENOSYS", Status::Unsupported),
    (libc::ENOTSUP, "ENOTSUP", Status::Unsupported),
    (libc::ECANCELED, "ECANCELED", Status::Cancelled),
    (libc::EINVAL, "EINVAL", Status::CallbackError),
    (libc::EIO, "EIO", Status::CallbackError),
    (libc::EDOM, "EDOM", Status::CallbackError),
    (libc::ERANGE, "ERANGE", Status::CallbackError),
    (libc::EACCES, "EACCES", Status::CallbackError),
    (libc::ENOENT, "ENOENT", Status::CallbackError),
    (libc::EAGAIN, "EAGAIN", Status::CallbackError),
    (libc::ETIMEDOUT, "ETIMEDOUT", Status::CallbackError),
    (libc::ENODEV, "ENODEV", Status::CallbackError),
];

/// The largest number that is handed on as it came: systems count their errors in a few hundreds.
const LARGEST: i64 = 4095;

/// The status that a callback's error number stands for.
pub fn status_of(code: c_int) -> Status {
    let known = TOLD.iter().find(|(number, ..)| *number == code);
    known.map_or(Status::CallbackError, |(.., status)| *status)
}

/// The error number that a callback of ours returns for a status; `native` is the number that the failure came with.
pub fn errno_of(status: Status, native: i64) -> c_int {
    match status {
        Status::Ok => 0,
        Status::OutOfMemory => libc::ENOMEM,
        Status::Unsupported => libc::ENOSYS,
        Status::Cancelled => libc::ECANCELED,
        Status::CallbackError if (1..=LARGEST).contains(&native) => {
            c_int::try_from(native).unwrap_or(libc::EIO)
        }
        Status::CallbackError | Status::DeviceUnavailable | Status::DeviceError | Status::Internal => {
            libc::EIO
        }
        Status::InvalidArgument
        | Status::InvalidData
        | Status::NotConforming
        | Status::SyncRequired
        | Status::Released => libc::EINVAL,
    }
}

/// An error number with its name, where it has one here.
pub struct Errno(pub c_int);

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match TOLD.iter().find(|(number, ..)| *number == self.0) {
            Some((number, name, _)) => write!(f, "{number} ({name})"),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_out_comes_back_where_the_numbers_can_tell() {
        for status in [Status::OutOfMemory, Status::Unsupported, Status::Cancelled] {
            assert_eq!(status_of(errno_of(status, 0)), status);
        }
        for number in [1, libc::EACCES, 4095] {
            assert_eq!(status_of(number), Status::CallbackError);
            assert_eq!(errno_of(Status::CallbackError, i64::from(number)), number);
        }
        for strange in [0, -1, 4096, i64::MAX, i64::MIN] {
            assert_eq!(errno_of(Status::CallbackError, strange), libc::EIO);
        }
    }

    #[test]
    fn only_success_is_zero() {
        for status in Status::ALL {
            assert_eq!(errno_of(status, 0) == 0, status == Status::Ok);
        }
    }
}
