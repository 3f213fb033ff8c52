//! The two structs of streams, as far as they are the same.

use core::ffi::{c_char, c_int, c_void};

use super::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowDeviceType, ArrowSchema,
    DEVICE_CPU,
};

/// What a callback that is not there returns: EINVAL on every system.
const NOT_THERE: c_int = 22;

/// A stream's struct, for a CPU or for any device: what of it is the same.
///
/// # Safety
/// The functions read and write the members that they name.
pub unsafe trait RawStream: Sized + 'static {
    /// What `get_next` fills in.
    type Out: RawArray;
    /// Whether the arrays are in CPU memory, without a device around them.
    const IS_HOST: bool;
    /// The type of every array's device.
    fn device_type(&self) -> ArrowDeviceType;
    /// Asks for the type.
    ///
    /// # Safety
    /// The struct is live.
    unsafe fn schema(&mut self, out: &mut ArrowSchema) -> c_int;
    /// Asks for the next array.
    ///
    /// # Safety
    /// The struct is live.
    unsafe fn array(&mut self, out: &mut Self::Out) -> c_int;
    /// Asks for the text of the last failure.
    ///
    /// # Safety
    /// The struct is live, and the last call failed.
    unsafe fn text(&mut self) -> *const c_char;
    /// The release callback.
    fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)>;
    /// The producer's own.
    fn private_data(&mut self) -> &mut *mut c_void;
}

/// The struct of an array as its producer fills it in.
#[derive(Debug)]
pub enum WholeArray<'a> {
    /// An array on a device.
    Device(&'a mut ArrowDeviceArray),
    /// An array in CPU memory.
    Host(&'a mut ArrowArray),
}

/// The struct of an array as a stream gives it.
///
/// # Safety
/// All zeroes are a released value.
pub unsafe trait RawArray: Sized {
    /// The struct without its device.
    fn array(&mut self) -> &mut ArrowArray;
    /// The whole struct, with a device around the array or without.
    fn whole(&mut self) -> WholeArray<'_>;
    /// The part of a device array that the struct has.
    fn of(array: ArrowDeviceArray) -> Self;
}

// SAFETY: zeroes are a released struct.
unsafe impl RawArray for ArrowDeviceArray {
    fn array(&mut self) -> &mut ArrowArray {
        &mut self.array
    }
    fn whole(&mut self) -> WholeArray<'_> {
        WholeArray::Device(self)
    }
    fn of(array: ArrowDeviceArray) -> Self {
        array
    }
}

// SAFETY: as above.
unsafe impl RawArray for ArrowArray {
    fn array(&mut self) -> &mut ArrowArray {
        self
    }
    fn whole(&mut self) -> WholeArray<'_> {
        WholeArray::Host(self)
    }
    fn of(array: ArrowDeviceArray) -> Self {
        array.array
    }
}

macro_rules! raw_stream {
    ($stream:ty, $out:ty, $is_host:literal, |$this:ident| $device:expr) => {
        // SAFETY: the members have these names in both structs.
        unsafe impl RawStream for $stream {
            type Out = $out;
            const IS_HOST: bool = $is_host;
            fn device_type(&self) -> ArrowDeviceType {
                let $this = self;
                $device
            }
            unsafe fn schema(&mut self, out: &mut ArrowSchema) -> c_int {
                // SAFETY: as the caller promises.
                self.get_schema.map_or(NOT_THERE, |get_schema| unsafe { get_schema(self, out) })
            }
            unsafe fn array(&mut self, out: &mut $out) -> c_int {
                // SAFETY: as the caller promises.
                self.get_next.map_or(NOT_THERE, |get_next| unsafe { get_next(self, out) })
            }
            unsafe fn text(&mut self) -> *const c_char {
                // SAFETY: as the caller promises.
                self.get_last_error.map_or(core::ptr::null(), |text| unsafe { text(self) })
            }
            fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)> {
                &mut self.release
            }
            fn private_data(&mut self) -> &mut *mut c_void {
                &mut self.private_data
            }
        }
    };
}

raw_stream!(ArrowDeviceArrayStream, ArrowDeviceArray, false, |this| this.device_type);
raw_stream!(ArrowArrayStream, ArrowArray, true, |_this| DEVICE_CPU);
