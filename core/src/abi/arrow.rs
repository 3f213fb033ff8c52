//! The Arrow C Data, Stream, Device and asynchronous structs.

use core::ffi::{c_char, c_int, c_void};
use core::mem::{offset_of, size_of};

/// `ARROW_FLAG_DICTIONARY_ORDERED`: the order of a dictionary's values means something.
pub const FLAG_DICTIONARY_ORDERED: i64 = 1;
/// `ARROW_FLAG_NULLABLE`: the field may hold nulls.
pub const FLAG_NULLABLE: i64 = 2;
/// `ARROW_FLAG_MAP_KEYS_SORTED`: the keys of each map value are sorted.
pub const FLAG_MAP_KEYS_SORTED: i64 = 4;

/// `ArrowDeviceType`: an integer, because new devices may appear at any time.
pub type ArrowDeviceType = i32;

/// A type, as the Arrow C Data interface passes it.
///
/// cbindgen:no-export
#[repr(C)]
#[derive(Debug)]
pub struct ArrowSchema {
    /// Format string of this node.
    pub format: *const c_char,
    /// Field name; NULL counts as "".
    pub name: *const c_char,
    /// Encoded key-value pairs; NULL when there are none.
    pub metadata: *const c_char,
    /// `FLAG_*` bits.
    pub flags: i64,
    /// Number of children.
    pub n_children: i64,
    /// One pointer a child.
    pub children: *mut *mut ArrowSchema,
    /// Type of the dictionary's values, when this node holds indices.
    pub dictionary: *mut ArrowSchema,
    /// Frees what the struct points to; NULL when released.
    pub release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    /// The producer's own.
    pub private_data: *mut c_void,
}

/// An array, as the Arrow C Data interface passes it.
///
/// cbindgen:no-export
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArray {
    /// Number of logical values.
    pub length: i64,
    /// Number of nulls, -1 when not computed.
    pub null_count: i64,
    /// Physical index of the first logical value.
    pub offset: i64,
    /// Number of buffers.
    pub n_buffers: i64,
    /// Number of children.
    pub n_children: i64,
    /// One pointer a buffer.
    pub buffers: *mut *const c_void,
    /// One pointer a child.
    pub children: *mut *mut ArrowArray,
    /// The dictionary's values, when this node holds indices.
    pub dictionary: *mut ArrowArray,
    /// Frees what the struct points to; NULL when released.
    pub release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    /// The producer's own.
    pub private_data: *mut c_void,
}

/// An array and the device that its buffers live on.
///
/// cbindgen:no-export
#[repr(C)]
#[derive(Debug)]
pub struct ArrowDeviceArray {
    /// The array; its release is the whole struct's.
    pub array: ArrowArray,
    /// Number of the device among its type, -1 where devices have none.
    pub device_id: i64,
    /// Type of the device.
    pub device_type: ArrowDeviceType,
    /// Address of the event to wait on before the buffers are read, or NULL.
    pub sync_event: *mut c_void,
    /// Zero.
    pub reserved: [i64; 3],
}

/// A stream of arrays in CPU memory.
///
/// cbindgen:no-export
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArrayStream {
    /// Fills in the type of every array of the stream.
    pub get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    /// Fills in the next array, or a released one at the end.
    pub get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    /// Text of the last failure.
    pub get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    /// Frees the stream; NULL when released.
    pub release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    /// The producer's own.
    pub private_data: *mut c_void,
}

/// A stream of arrays on one type of device.
///
/// cbindgen:no-export
#[repr(C)]
#[derive(Debug)]
pub struct ArrowDeviceArrayStream {
    /// Type of the device that every array is on.
    pub device_type: ArrowDeviceType,
    /// Fills in the type of every array of the stream.
    pub get_schema: Option<unsafe extern "C" fn(*mut ArrowDeviceArrayStream, *mut ArrowSchema) -> c_int>,
    /// Fills in the next array, or a released one at the end.
    pub get_next: Option<unsafe extern "C" fn(*mut ArrowDeviceArrayStream, *mut ArrowDeviceArray) -> c_int>,
    /// Text of the last failure.
    pub get_last_error: Option<unsafe extern "C" fn(*mut ArrowDeviceArrayStream) -> *const c_char>,
    /// Frees the stream; NULL when released.
    pub release: Option<unsafe extern "C" fn(*mut ArrowDeviceArrayStream)>,
    /// The producer's own.
    pub private_data: *mut c_void,
}

/// One array of an asynchronous stream, still to be fetched.
///
/// cbindgen:no-export
#[repr(C)]
#[derive(Debug)]
pub struct ArrowAsyncTask {
    /// Fills in the array; called exactly once.
    pub extract_data: Option<unsafe extern "C" fn(*mut ArrowAsyncTask, *mut ArrowDeviceArray) -> c_int>,
    /// The producer's own.
    pub private_data: *mut c_void,
}

/// The producer of an asynchronous stream, as its handler sees it. The layout is that of `abi.h`: no `release`.
///
/// cbindgen:no-export
#[repr(C)]
#[derive(Debug)]
pub struct ArrowAsyncProducer {
    /// Type of the device that every array is on.
    pub device_type: ArrowDeviceType,
    /// Asks for `n` more arrays.
    pub request: Option<unsafe extern "C" fn(*mut ArrowAsyncProducer, i64)>,
    /// Asks the producer to stop.
    pub cancel: Option<unsafe extern "C" fn(*mut ArrowAsyncProducer)>,
    /// Further metadata, or NULL.
    pub additional_metadata: *const c_char,
    /// The producer's own.
    pub private_data: *mut c_void,
}

/// The consumer of an asynchronous stream.
///
/// cbindgen:no-export
#[repr(C)]
#[derive(Debug)]
pub struct ArrowAsyncDeviceStreamHandler {
    /// Receives the type of every array, once and first.
    pub on_schema:
        Option<unsafe extern "C" fn(*mut ArrowAsyncDeviceStreamHandler, *mut ArrowSchema) -> c_int>,
    /// Receives the next task, or NULL at the end.
    pub on_next_task: Option<
        unsafe extern "C" fn(*mut ArrowAsyncDeviceStreamHandler, *mut ArrowAsyncTask, *const c_char) -> c_int,
    >,
    /// Receives an error that ends the stream.
    pub on_error:
        Option<unsafe extern "C" fn(*mut ArrowAsyncDeviceStreamHandler, c_int, *const c_char, *const c_char)>,
    /// Frees the handler; called last.
    pub release: Option<unsafe extern "C" fn(*mut ArrowAsyncDeviceStreamHandler)>,
    /// The producer, set before any callback but `release`.
    pub producer: *mut ArrowAsyncProducer,
    /// The consumer's own.
    pub private_data: *mut c_void,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<ArrowSchema>() == 72);
    assert!(offset_of!(ArrowSchema, flags) == 24);
    assert!(offset_of!(ArrowSchema, release) == 56);
    assert!(size_of::<ArrowArray>() == 80);
    assert!(offset_of!(ArrowArray, buffers) == 40);
    assert!(offset_of!(ArrowArray, release) == 64);
    assert!(size_of::<ArrowDeviceArray>() == 128);
    assert!(offset_of!(ArrowDeviceArray, device_id) == 80);
    assert!(offset_of!(ArrowDeviceArray, device_type) == 88);
    assert!(offset_of!(ArrowDeviceArray, sync_event) == 96);
    assert!(offset_of!(ArrowDeviceArray, reserved) == 104);
    assert!(size_of::<ArrowArrayStream>() == 40);
    assert!(size_of::<ArrowDeviceArrayStream>() == 48);
    assert!(offset_of!(ArrowDeviceArrayStream, get_schema) == 8);
    assert!(offset_of!(ArrowDeviceArrayStream, private_data) == 40);
    assert!(size_of::<ArrowAsyncTask>() == 16);
    assert!(size_of::<ArrowAsyncProducer>() == 40);
    assert!(offset_of!(ArrowAsyncProducer, request) == 8);
    assert!(size_of::<ArrowAsyncDeviceStreamHandler>() == 48);
    assert!(offset_of!(ArrowAsyncDeviceStreamHandler, producer) == 32);
};
