//! DLPack tensors: arrays and buffers as tensors, tensors as arrays, legacy and versioned.

use bowstring_core::abi::{DLDataType, DLManagedTensor, DLManagedTensorVersioned};
use bowstring_core::device::Sync;
use bowstring_core::error::{ErrorRecord, Findings, Report, Result};
use bowstring_core::tensor::{self, Dims, LegacyTensor, Tensor, TensorOptions, TensorView, Told};
use bowstring_core::tree::Tree;
use bowstring_core::types::DataType;

use crate::array::{BowstringArray, handle_of, reset_out};
use crate::buffer::BowstringBuffer;
use crate::error::BowstringStatus;
use crate::guard::guard;
use crate::pointer::{array_of, buffer_of, check, disjoint, required_mut, slice, type_of};
use crate::schema::BowstringType;
use crate::sized::{self, read_input};

/// For BowstringTensorOptions.flags: values that are no numbers go out as what they consist of, such as timestamps as
/// 64-bit integers.
pub const BOWSTRING_TENSOR_PHYSICAL: u64 = 1;
/// For BowstringTensorOptions.flags: nulls go out as whatever lies in their place.
pub const BOWSTRING_TENSOR_VALUES_ONLY: u64 = 2;
/// For BowstringTensorOptions.flags: bits may become bytes, bytes bits, and strides rows, by a copy on the same device. On devices
/// it goes through CPU memory, and is there when the call returns.
pub const BOWSTRING_TENSOR_ALLOW_COPY: u64 = 4;
/// For BowstringTensorOptions.flags: a legacy tensor, which cannot say so, may be made of read-only memory.
pub const BOWSTRING_TENSOR_DROP_READ_ONLY: u64 = 8;

/// How a tensor is to be made or taken. NULL, or all but struct_size zero: nothing but numbers without nulls, no copy.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BowstringTensorOptions {
    /// Size of this struct in the caller's build.
    pub struct_size: usize,
    /// `BOWSTRING_TENSOR_*`.
    pub flags: u64,
    /// What to do about unfinished device work. An array that becomes a tensor: QUEUE makes the queue that the tensor is for wait
    /// for the array's event, HOST blocks. A tensor that becomes an array: QUEUE names the queue that its producer was given, and
    /// an event is recorded there; otherwise nothing is pending. LIBRARY would let nobody wait, and is INVALID_ARGUMENT.
    pub sync: Sync,
}

// SAFETY: the struct is `repr(C)`, starts with its size, and all zeroes are a value of it.
unsafe impl sized::Sized for BowstringTensorOptions {
    const NAME: &'static str = "BowstringTensorOptions";
}

/// Shows an array's values as a tensor: the same memory, never copied but for bits.
///
/// Integers and floats go out as they are, fixed-size lists as further dimensions, arrow.fixed_shape_tensor with its shape and
/// permutation. With PHYSICAL also dates, times, timestamps, durations, decimals, intervals, fixed-size binary, views and
/// indices into dictionaries go out, as integers, or as bytes in a last dimension where no integer is as wide. Booleans are
/// unpacked, with ALLOW_COPY only. Nulls at any level are refused unless VALUES_ONLY is given. The tensor has version 1.3,
/// strides, READ_ONLY or else IS_COPIED; data is NULL without elements, and byte_offset 0 where the device has addresses.
/// An arrow.fixed_shape_tensor within another is refused, because nobody says whose dimensions come first.
///
/// Ownership: nothing is taken; `*out` keeps the values' buffer and no more, works without the array, and is let go once, by
/// its deleter or bowstring_tensor_release, on any thread.
/// Errors: UNSUPPORTED with the path for nulls, types and sizes that no tensor has; SYNC_REQUIRED for a pending event with mode
/// NONE; INVALID_ARGUMENT for NULL arguments or unknown options; OUT_OF_MEMORY. Any thread may call it. One allocation.
/// Source: DLPack, "DLTensor"; Arrow columnar format, "Fixed shape tensor".
///
/// # Safety
/// `array` is NULL or a live handle; `options` is NULL or as long as its struct_size says; `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_to_tensor(
    array: *const BowstringArray,
    options: *const BowstringTensorOptions,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        reset_tensor(out, report)?;
        let array = array_of(array, report)?;
        let mut room = None;
        let options = options_of(options, &mut room, report)?;
        out.write(tensor::array_to_tensor(&array, options, report)?.into_raw());
        Ok(())
    })
}

/// Shows an array's validity bitmap as a tensor of bytes, whose bit `*bit_offset` is the first row's; with ALLOW_COPY as a
/// boolean a row, with a bit offset of 0. An array without a bitmap, all of whose rows are valid, has none: `*out` is NULL.
///
/// Ownership: nothing is taken; `*out` keeps the bitmap alone, or is a copy, and is let go once, on any thread.
/// Errors: as bowstring_array_to_tensor. `bit_offset` may be NULL with ALLOW_COPY only. Any thread may call it.
/// Source: Arrow columnar format, "Validity bitmaps".
///
/// # Safety
/// As bowstring_array_to_tensor has it; `bit_offset` is NULL or leads to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_validity_to_tensor(
    array: *const BowstringArray,
    options: *const BowstringTensorOptions,
    out: *mut *mut DLManagedTensorVersioned,
    bit_offset: *mut i64,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        reset_tensor(out, report)?;
        if !bit_offset.is_null() {
            check(bit_offset, "a number to write to", report)?;
            bit_offset.write(0);
        }
        let array = array_of(array, report)?;
        let mut room = None;
        let options = options_of(options, &mut room, report)?;
        if !options.allow_copy {
            check(bit_offset, "a number to write the bit offset to", report)?;
        }
        if let Some((tensor, bit)) = tensor::validity_to_tensor(&array, options, report)? {
            out.write(tensor.into_raw());
            if !bit_offset.is_null() {
                bit_offset.write(bit);
            }
        }
        Ok(())
    })
}

/// Shows a buffer as a tensor, row-major from its first byte on. Nothing is guessed: the buffer's size has to be known and large
/// enough. Elements below a byte are packed.
///
/// Ownership: nothing is taken; the shape is copied; `*out` keeps the buffer's memory, and is let go once, on any thread.
/// Errors: INVALID_ARGUMENT for NULL arguments, negative lengths, elements that DLPack does not define, or more bytes than the
/// buffer is known to have; UNSUPPORTED for more than 64 dimensions; else as bowstring_array_to_tensor. Any thread may call it.
/// One allocation.
/// Source: DLPack, "DLTensor".
///
/// # Safety
/// `buffer` is NULL or a live handle; `shape` is NULL or leads to ndim numbers; else as bowstring_array_to_tensor has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_buffer_to_tensor(
    buffer: *const BowstringBuffer,
    dtype: DataType,
    ndim: i32,
    shape: *const i64,
    options: *const BowstringTensorOptions,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        reset_tensor(out, report)?;
        let buffer = buffer_of(buffer.cast_mut(), report)?;
        let Ok(n) = usize::try_from(ndim) else {
            let message = format_args!("expected a number of dimensions of at least 0, found {ndim}");
            return Err(report.fail(bowstring_core::error::Status::InvalidArgument, message));
        };
        let shape = slice(shape, n, "lengths of dimensions", report)?;
        let mut room = None;
        let options = options_of(options, &mut room, report)?;
        let dtype = DLDataType { code: dtype.code, bits: dtype.bits, lanes: dtype.lanes };
        out.write(tensor::buffer_to_tensor(&buffer, dtype, shape, options, report)?.into_raw());
        Ok(())
    })
}

/// Makes an array of a tensor: the same memory where rows lie as Arrow has them, else a copy with ALLOW_COPY.
///
/// Without a type, one dimension becomes numbers and more become fixed-size lists; booleans become arrow.bool8. With a type, its
/// lists' sizes and its values must be the tensor's: physical ones, such as a timestamp for 64-bit integers; bool packs booleans,
/// which is a copy; arrow.fixed_shape_tensor takes a row-major order of the dimensions as its permutation, in which dimensions
/// with equal strides stay in their order. A scalar is one row. Behind the start of a device's handle there is no array.
///
/// Ownership: on success the tensor is taken, `*tensor` is NULL, and its deleter runs once, with the last use of the memory, or
/// at once after a copy; on failure it is still the caller's. The caller releases `*out`.
/// Errors: INVALID_DATA with the rule for a struct that breaks one; UNSUPPORTED for another major version, elements, shapes and
/// strides that the type does not have; INVALID_ARGUMENT for NULL arguments or unknown options; OUT_OF_MEMORY. Any thread may
/// call it.
/// Source: DLPack, "DLManagedTensorVersioned" (docs/rules.md, DL1 to DL18).
///
/// # Safety
/// `tensor` is NULL or leads to NULL or a tensor; `type` is NULL or a live handle; else as bowstring_array_to_tensor has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_from_tensor(
    tensor: *mut *mut DLManagedTensorVersioned,
    r#type: *const BowstringType,
    options: *const BowstringTensorOptions,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        check(out, "a handle to write to", report)?;
        disjoint(tensor, out, report)?;
        reset_out(out, report)?;
        let taken = required_mut(tensor, "a pointer to a tensor", report)?;
        let raw = *taken;
        let view = checked(raw, report)?;
        let mut room = None;
        let options = options_of(options, &mut room, report)?;
        let ty = if r#type.is_null() { None } else { Some(type_of(r#type, report)?) };
        let made = tensor::array_from_tensor(&view, ty.as_deref(), options, tensor::described, report);
        let (array, is_needed) = made?;
        let array = if is_needed {
            Tree::with_owner(&array, || tensor::owner_of_versioned(raw), report)?
        } else {
            tensor::release_versioned(raw);
            array
        };
        *taken = core::ptr::null_mut();
        out.write(handle_of(array));
        Ok(())
    })
}

/// Wraps a tensor of before 1.0 in one with a version: READ_ONLY, because nobody said that it may be written, and with strides.
/// The data is not touched.
///
/// Ownership: on success the tensor is taken, `*tensor` is NULL, and its deleter runs once, with that of `*out`; on failure it is
/// still the caller's.
/// Errors: INVALID_DATA with the rule for a struct that breaks one; INVALID_ARGUMENT for NULL arguments or unknown options;
/// OUT_OF_MEMORY. Any thread may call it. One allocation.
/// Source: DLPack, "DLManagedTensor".
///
/// # Safety
/// `tensor` is NULL or leads to NULL or a tensor; else as bowstring_array_to_tensor has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_tensor_from_legacy(
    tensor: *mut *mut DLManagedTensor,
    options: *const BowstringTensorOptions,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        check(out, "a tensor to write to", report)?;
        disjoint(tensor, out, report)?;
        reset_tensor(out, report)?;
        let taken = required_mut(tensor, "a pointer to a tensor", report)?;
        let raw = *taken;
        check(raw, "a tensor", report)?;
        let mut room = None;
        options_of(options, &mut room, report)?;
        let view = checked_told(tensor::view_legacy(raw), report)?;
        let mut dims = Dims::NONE;
        let spec = tensor::rewrapped(&view, &mut dims, report)?;
        let made = Tensor::make(&spec, report, || tensor::owner_of_legacy(raw))?;
        *taken = core::ptr::null_mut();
        out.write(made.into_raw());
        Ok(())
    })
}

/// Wraps a tensor in one of before 1.0, for consumers that know no other. The data is not touched.
///
/// Ownership: on success the tensor is taken, `*tensor` is NULL, and its deleter runs once, with that of `*out`; on failure it is
/// still the caller's.
/// Errors: UNSUPPORTED for a read-only tensor without DROP_READ_ONLY, because a legacy tensor cannot say that it is, and for
/// another major version; else as bowstring_tensor_from_legacy. Any thread may call it. One allocation.
/// Source: DLPack, "DLManagedTensor".
///
/// # Safety
/// As bowstring_tensor_from_legacy has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_tensor_to_legacy(
    tensor: *mut *mut DLManagedTensorVersioned,
    options: *const BowstringTensorOptions,
    out: *mut *mut DLManagedTensor,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        check(out, "a tensor to write to", report)?;
        disjoint(tensor, out, report)?;
        out.write(core::ptr::null_mut());
        let taken = required_mut(tensor, "a pointer to a tensor", report)?;
        let raw = *taken;
        let view = checked(raw, report)?;
        let mut room = None;
        let options = options_of(options, &mut room, report)?;
        tensor::check_writable(&view, options, report)?;
        let mut dims = Dims::NONE;
        let spec = tensor::rewrapped(&view, &mut dims, report)?;
        let made = LegacyTensor::make(&spec, report, || tensor::owner_of_versioned(raw))?;
        *taken = core::ptr::null_mut();
        out.write(made.into_raw());
        Ok(())
    })
}

unsafe fn reset_tensor(out: *mut *mut DLManagedTensorVersioned, report: &mut Report<'_>) -> Result<()> {
    check(out, "a tensor to write to", report)?;
    // SAFETY: the pointer was checked just now.
    unsafe { out.write(core::ptr::null_mut()) };
    Ok(())
}

/// The numbers of a tensor that breaks no rule.
unsafe fn checked<'a>(
    tensor: *const DLManagedTensorVersioned,
    report: &mut Report<'_>,
) -> Result<TensorView<'a>> {
    check(tensor, "a tensor", report)?;
    // SAFETY: as the caller promises.
    checked_told(unsafe { tensor::view_versioned(tensor) }, report)
}

fn checked_told<'a>(told: Told<'a>, report: &mut Report<'_>) -> Result<TensorView<'a>> {
    tensor::check_tensor(told, Findings::first(report))?;
    match told {
        Told::Tensor(view) => Ok(view),
        Told::Version(major) => {
            let message = format_args!("expected DLPack version 1, found {major}");
            Err(report.fail(bowstring_core::error::Status::Unsupported, message))
        }
    }
}

/// The options that were given, which are kept in `room`, or those for NULL.
#[inline(always)]
unsafe fn options_of<'a>(
    options: *const BowstringTensorOptions,
    room: &'a mut Option<TensorOptions>,
    report: &mut Report<'_>,
) -> Result<&'a TensorOptions> {
    if options.is_null() {
        return Ok(&TensorOptions::DEFAULT);
    }
    // SAFETY: as the caller promises.
    Ok(room.insert(unsafe { given_options(options, report) }?))
}

#[inline(never)]
unsafe fn given_options(
    options: *const BowstringTensorOptions,
    report: &mut Report<'_>,
) -> Result<TensorOptions> {
    // SAFETY: as the caller promises.
    let raw = unsafe { read_input(options, report) }?;
    let (flags, sync) = (raw.flags, raw.sync);
    let known = BOWSTRING_TENSOR_PHYSICAL
        | BOWSTRING_TENSOR_VALUES_ONLY
        | BOWSTRING_TENSOR_ALLOW_COPY
        | BOWSTRING_TENSOR_DROP_READ_ONLY;
    if flags & !known != 0 {
        let message = format_args!("expected flags within {known:#x}, found {flags:#x}");
        return Err(report.fail(bowstring_core::error::Status::InvalidArgument, message));
    }
    sync.mode(report)?;
    Ok(TensorOptions {
        physical: flags & BOWSTRING_TENSOR_PHYSICAL != 0,
        values_only: flags & BOWSTRING_TENSOR_VALUES_ONLY != 0,
        allow_copy: flags & BOWSTRING_TENSOR_ALLOW_COPY != 0,
        drop_read_only: flags & BOWSTRING_TENSOR_DROP_READ_ONLY != 0,
        sync,
    })
}
