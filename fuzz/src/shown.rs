//! Tensors that the library made: of arrays, of buffers and of other tensors.

use core::ffi::c_void;
use core::ptr::{null, null_mut};

use bowstring::array::*;
use bowstring::buffer::bowstring_buffer_release;
use bowstring::raw::bowstring_tensor_release;
use bowstring::tensor::*;
use bowstring::validate::bowstring_tensor_validate;
use bowstring_core::abi::{DLDataType, DLManagedTensorVersioned, DLTensor};
use bowstring_core::array::BufferInfo;
use bowstring_core::types::DataType;

use super::calls::Outcome;
use super::dlpack::{Given, for_each_place, is_type, product, row_major};
use super::input::Input;
use super::tensor::{options, tensor_by};

/// The most elements that are read one by one.
const MOST: i128 = 1 << 14;

/// The numbers of a tensor of ours.
#[derive(Debug)]
pub struct Shown {
    data: usize,
    device_type: i32,
    ndim: i32,
    dtype: DLDataType,
    shape: Vec<i64>,
    strides: Vec<i64>,
    byte_offset: u64,
}

/// What is known of an array from the tensor that it was made of.
pub struct Expected {
    pub shape: Vec<i64>,
    /// The bytes of the elements, if they are there to be read.
    pub elements: Option<Vec<Vec<u8>>>,
    /// Where the first element is, unless it was copied.
    pub address: Option<usize>,
    /// Whether DLPack has a number for the device.
    pub has_device: bool,
    /// Whether bits may be read.
    pub is_there: bool,
    /// Whether rows lie in the order of the dimensions.
    pub is_plain: bool,
}

impl Shown {
    /// Reads them. There are strides.
    pub fn of(tensor: &DLTensor) -> Shown {
        let n = usize::try_from(tensor.ndim).expect("a number of dimensions");
        let list = |at: *const i64| -> Vec<i64> {
            assert!(n == 0 || !at.is_null(), "shape and strides are always given");
            // SAFETY: a tensor of ours has as many numbers as dimensions.
            (0..n).map(|i| unsafe { at.add(i).read() }).collect()
        };
        Shown {
            data: tensor.data.addr(),
            device_type: tensor.device.device_type,
            ndim: tensor.ndim,
            dtype: tensor.dtype,
            shape: list(tensor.shape),
            strides: list(tensor.strides),
            byte_offset: tensor.byte_offset,
        }
    }

    /// Fails unless this is that tensor, whose struct has its data there.
    pub fn must_be(&self, given: &Given, data: usize) {
        assert_eq!((self.data, self.byte_offset, self.ndim), (data, given.byte_offset, given.ndim));
        assert_eq!((self.dtype, self.device_type), (given.dtype, given.device.device_type));
        assert_eq!(self.shape, given.shape);
        let strides: Vec<i128> = self.strides.iter().map(|step| i128::from(*step)).collect();
        assert_eq!(strides, given.steps());
    }

    /// The bytes of every element in the order of the dimensions.
    fn elements(&self) -> Vec<Vec<u8>> {
        let width = (usize::from(self.dtype.bits) * usize::from(self.dtype.lanes)).div_ceil(8);
        let mut found = Vec::new();
        for_each_place(&self.shape, |at| {
            let step: i64 = at.iter().zip(&self.strides).map(|(i, step)| i * step).sum();
            let start = self.data as i64 + self.byte_offset as i64 + step * width as i64;
            let start: *const u8 = core::ptr::with_exposed_provenance(start as usize);
            // SAFETY: the tensor shows so many bytes. If it does not, that is found out.
            found.push(unsafe { core::slice::from_raw_parts(start, width) }.to_vec());
        });
        found
    }
}

/// What holds for every tensor that the library made.
unsafe fn must_be_sound(tensor: *const DLManagedTensorVersioned) -> Shown {
    // SAFETY: the caller has a live tensor.
    unsafe {
        Outcome::of(|error| bowstring_tensor_validate(tensor, null(), error)).must("a tensor of ours");
        let tensor = &*tensor;
        assert_eq!((tensor.version.major, tensor.version.minor), (1, 3));
        assert!(tensor.flags == 1 || tensor.flags == 2, "either a copy or read-only");
        let shown = Shown::of(&tensor.dl_tensor);
        assert!(!shown.shape.contains(&0) || shown.data == 0, "nothing is nowhere");
        shown
    }
}

/// Shows an array that was made of a tensor as a tensor again, and parts of it; the tensors are the caller's.
pub fn look_as_tensor(
    array: *const BowstringArray,
    expected: &Expected,
    more: u8,
) -> Vec<*mut DLManagedTensorVersioned> {
    let all = BOWSTRING_TENSOR_PHYSICAL | BOWSTRING_TENSOR_VALUES_ONLY | BOWSTRING_TENSOR_ALLOW_COPY;
    let possible = if expected.is_there { all } else { all & !BOWSTRING_TENSOR_ALLOW_COPY };
    let whole = show(array, possible, expected, 0);
    assert!(whole.is_some() || !expected.has_device, "an array of a tensor is one");
    let fewer = show(array, u64::from(more) & possible, expected, 0);
    let mut tensors: Vec<_> = whole.into_iter().chain(fewer).collect();
    if expected.is_plain
        && let Some(elements) = &expected.elements
    {
        assert!(values(array).starts_with(&elements.concat()), "rows lie one after the other");
    }
    let rows = expected.shape[0];
    let start = i64::from(more) % (rows.min(255) + 1);
    let length = (rows - start).min(i64::from(more >> 3));
    let mut part = null_mut();
    // SAFETY: the handle is live.
    unsafe {
        Outcome::of(|error| bowstring_array_slice(array, start, length, &mut part, error)).must("a window");
        let per_row = usize::try_from(product(&expected.shape[1..]).min(MOST)).expect("it is small");
        let range = start as usize * per_row..(start + length) as usize * per_row;
        let expected = Expected {
            shape: [&[length][..], &expected.shape[1..]].concat(),
            elements: expected.elements.as_ref().map(|elements| elements[range.clone()].to_vec()),
            address: None,
            ..*expected
        };
        tensors.extend(show(part, possible, &expected, range.start));
        bowstring_array_release(part);
        let mut bit = -1;
        let (outcome, bits) =
            tensor_by(|out, error| bowstring_array_validity_to_tensor(array, null(), out, &mut bit, error));
        outcome.must("the validity of all");
        assert!(bits.is_null() && bit == 0, "there are no nulls");
    }
    tensors
}

fn show(
    array: *const BowstringArray,
    flags: u64,
    expected: &Expected,
    first: usize,
) -> Option<*mut DLManagedTensorVersioned> {
    let options = options(flags);
    // SAFETY: the handle is live.
    let (outcome, tensor) =
        tensor_by(|out, error| unsafe { bowstring_array_to_tensor(array, &options, out, error) });
    if !outcome.is_ok() {
        return None;
    }
    // SAFETY: the tensor is live.
    let shown = unsafe { must_be_sound(tensor) };
    assert_eq!(shown.shape, expected.shape);
    if let Some(elements) = &expected.elements {
        assert_eq!(&shown.elements(), elements, "every element is where it was, from element {first} on");
    }
    if let Some(address) = expected.address.filter(|_| !shown.shape.contains(&0)) {
        assert_eq!(shown.data.wrapping_add(shown.byte_offset as usize), address, "the same memory");
    }
    Some(tensor)
}

/// The last buffer of an array.
fn last_buffer(array: *const BowstringArray) -> (usize, BufferInfo) {
    let (mut nodes, mut buffers) = (0, 0);
    // SAFETY: all zeroes are a value of the struct.
    let mut info: BufferInfo = unsafe { core::mem::zeroed() };
    info.struct_size = size_of::<BufferInfo>();
    // SAFETY: the handle is live.
    unsafe {
        Outcome::of(|error| bowstring_array_count(array, &mut nodes, &mut buffers, error)).must("counting");
        Outcome::of(|error| bowstring_array_buffer_info(array, buffers - 1, &mut info, error))
            .must("asking about a buffer");
    }
    (buffers - 1, info)
}

fn values(array: *const BowstringArray) -> Vec<u8> {
    let (_, info) = last_buffer(array);
    let n = usize::try_from(info.size_bytes).expect("a known size");
    if n == 0 {
        return Vec::new();
    }
    // SAFETY: the buffer has so many bytes, and the CPU may read them.
    unsafe { core::slice::from_raw_parts(info.data.cast::<u8>(), n) }.to_vec()
}

/// Shows the last buffer of an array as a tensor of any elements.
pub fn buffers_as_tensors(array: *const BowstringArray, input: &mut Input<'_>, expected: &Expected) {
    let (i, info) = last_buffer(array);
    let mut dtype = DataType { code: [0, 1, 2, 6][input.below(4)], bits: 8, lanes: 1 };
    if input.rarely(128) {
        dtype =
            DataType { code: input.byte() % 20, bits: input.byte() % 70, lanes: u16::from(input.byte() % 4) };
    }
    let ndim = match input.byte() {
        250.. => [-1, i32::MIN, 64, 65, 66, 10][input.below(6)],
        byte => i32::from(byte % 4),
    };
    let lengths = usize::try_from(ndim.clamp(0, 66)).expect("it is small");
    let shape: Vec<i64> = (0..lengths)
        .map(|i| match input.byte() {
            _ if i > 5 => 1,
            byte @ 0..=239 => i64::from(byte % 9),
            _ => input.number(),
        })
        .collect();
    let mut buffer = null_mut();
    // SAFETY: the handles are live, and the shape is there.
    unsafe {
        Outcome::of(|error| bowstring_array_buffer(array, i, &mut buffer, error)).must("a buffer");
        let (outcome, tensor) = tensor_by(|out, error| {
            bowstring_buffer_to_tensor(buffer, dtype, ndim, shape.as_ptr(), null(), out, error)
        });
        let bits = i128::from(dtype.bits) * i128::from(dtype.lanes);
        let needed = product(&shape).saturating_mul(bits);
        let most = i128::from(i64::MAX);
        let whole =
            row_major(&shape).first().map_or(1, |step| step.saturating_mul(i128::from(shape[0].max(1))));
        let DataType { code, bits: each, lanes } = dtype;
        let fits = expected.has_device
            && is_type(DLDataType { code, bits: each, lanes })
            && (0..=64).contains(&ndim)
            && shape.iter().all(|length| *length >= 0)
            && whole <= most
            && needed <= most
            && needed.div_euclid(8) + i128::from(needed % 8 != 0) <= i128::from(info.size_bytes);
        assert_eq!(
            outcome.is_ok(),
            fits,
            "{dtype:?} {shape:?} of {} bytes: {}",
            info.size_bytes,
            outcome.text()
        );
        bowstring_buffer_release(buffer);
        if outcome.is_ok() {
            let shown = must_be_sound(tensor);
            assert_eq!((&shown.shape, shown.ndim), (&shape, ndim));
            if !shape.contains(&0) {
                assert_eq!(shown.data as *const c_void, info.data.cast());
            }
            // Elements below a byte are packed, and so have no addresses of their own.
            if expected.is_there && bits % 8 == 0 && product(&shape) <= MOST {
                std::hint::black_box(shown.elements());
            }
        }
        bowstring_tensor_release(tensor);
    }
}

/// Shows any array as a tensor in every way. What is sound is read, too.
pub fn array_as_tensors(array: *const BowstringArray, is_sound: bool) {
    let mut nulls = -1;
    // SAFETY: the handle is live.
    unsafe {
        Outcome::of(|error| bowstring_array_null_count(array, null(), &mut nulls, error))
            .must("counting nulls");
        for flags in 0..8 {
            let options = options(flags);
            let (outcome, tensor) =
                tensor_by(|out, error| bowstring_array_to_tensor(array, &options, out, error));
            let is_open = flags & BOWSTRING_TENSOR_VALUES_ONLY != 0;
            assert!(nulls == 0 || is_open || !outcome.is_ok(), "nulls are not dropped");
            read(tensor, is_sound);
            let mut bit = -1;
            let (_, validity) = tensor_by(|out, error| {
                bowstring_array_validity_to_tensor(array, &options, out, &mut bit, error)
            });
            assert!((0..8).contains(&bit));
            let values = read(validity, is_sound);
            if flags & BOWSTRING_TENSOR_ALLOW_COPY != 0 && is_sound && !validity.is_null() {
                let found = values.iter().filter(|value| **value == [0]).count();
                assert_eq!(found as i64, nulls, "a boolean a row");
            }
            bowstring_tensor_release(tensor);
            bowstring_tensor_release(validity);
        }
    }
}

unsafe fn read(tensor: *const DLManagedTensorVersioned, is_sound: bool) -> Vec<Vec<u8>> {
    if tensor.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller has a live tensor.
    let shown = unsafe { must_be_sound(tensor) };
    if is_sound && product(&shown.shape) <= MOST { shown.elements() } else { Vec::new() }
}
