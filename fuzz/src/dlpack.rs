//! DLPack tensors of any kind, well-formed and not, over memory that is as long as their own numbers say; whether they are
//! well-formed by the header's own words; and their elements, found by arithmetic that is not the library's.

use core::cell::Cell;
use core::ffi::c_void;
use core::ptr::null_mut;

use bowstring_core::abi::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor,
};

use super::input::Input;
use super::memory::Memory;

/// The most bytes and elements of a tensor whose data is there.
const MOST: i128 = 1 << 14;
/// Where data is said to be that is not there.
const NOWHERE: i128 = 1 << 40;

/// What is wrong with a tensor's pointers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Flaw {
    None,
    NoDeleter,
    NoShape,
    SkewedShape,
    NoData,
    SkewedData,
    SkewedStrides,
}

/// A tensor as it is meant.
#[derive(Clone, Debug)]
pub struct Given {
    /// `None` for a tensor of before 1.0.
    pub version: Option<(u32, u32)>,
    pub flags: u64,
    pub device: DLDevice,
    pub dtype: DLDataType,
    pub ndim: i32,
    /// As many numbers as the tensor has dimensions, if that is a number of them.
    pub shape: Vec<i64>,
    /// None for NULL.
    pub strides: Option<Vec<i64>>,
    pub byte_offset: u64,
    pub flaw: Flaw,
    /// What lies in memory, again and again.
    pattern: Vec<u8>,
}

/// What a tensor's owner has, and a count of how often it was let go.
struct Producer<'a> {
    memory: Memory,
    released: &'a Cell<u32>,
}

/// A tensor's struct, and what a check of the values needs.
pub struct Made {
    pub versioned: *mut DLManagedTensorVersioned,
    pub legacy: *mut DLManagedTensor,
    pub data: usize,
    producer: *mut c_void,
    pub has_deleter: bool,
    /// The tensor's bytes, and where in them the first element is.
    content: Vec<u8>,
    origin: i128,
    /// Whether the data is all there and the CPU's.
    pub may_read: bool,
}

const COMMON: [(u8, u8); 16] = [
    (0, 32),
    (0, 8),
    (0, 16),
    (0, 64),
    (1, 8),
    (1, 16),
    (1, 32),
    (1, 64),
    (2, 16),
    (2, 32),
    (2, 64),
    (6, 8),
    (4, 16),
    (5, 64),
    (0, 4),
    (10, 8),
];

impl Given {
    /// What the bytes choose; zeroes are a tensor of four 32-bit integers that nothing is wrong with.
    pub fn new(input: &mut Input<'_>) -> Given {
        let (code, bits) = COMMON[input.below(COMMON.len())];
        let mut dtype = DLDataType { code, bits, lanes: 1 };
        if input.rarely(24) {
            dtype = DLDataType {
                code: input.byte() % 24,
                bits: input.byte(),
                lanes: u16::from(input.byte() % 5),
            };
        }
        let ndim: i32 = match input.byte() {
            small @ 0..=239 => [1, 2, 3, 0, 2, 4, 5, 3][usize::from(small) % 8],
            edge => [-1, i32::MIN, i32::MAX, 63, 64, 65, 66, 1000][usize::from(edge) % 8],
        };
        let n = if (0..=64).contains(&ndim) { ndim.unsigned_abs() as usize } else { 0 };
        let mut shape: Vec<i64> = (0..n)
            .map(|i| match input.byte() {
                _ if n > 8 && i > 4 => 1,
                0 => 4,
                byte @ 1..=247 => i64::from(byte % 5),
                _ => input.number(),
            })
            .collect();
        if input.rarely(8) {
            shape.iter_mut().for_each(|length| *length = (*length).max(1));
        }
        let strides = strides(input, &shape);
        let byte_offset = match input.byte() {
            0..=159 => 0,
            byte @ 160..=239 => u64::from(byte % 7).wrapping_mul(width(dtype).unsigned_abs() as u64),
            _ => input.number().cast_unsigned(),
        };
        let version = match input.byte() {
            0..=99 => Some((1, 3)),
            100..=169 => None,
            byte @ 170..=239 => Some((1, u32::from(byte % 4))),
            byte => Some((u32::from(byte % 4), input.number() as u32)),
        };
        let flags = match input.byte() {
            0..=239 if version.is_none() => 0,
            byte @ 0..=239 => u64::from(byte & 7),
            _ if version.is_none() => 0,
            _ => input.word(),
        };
        let device_type = match input.byte() {
            0..=199 => 1,
            byte => i32::from(byte) - 206,
        };
        let device_id = if input.rarely(24) { i32::from(input.byte()) - 2 } else { 0 };
        let flaw = match input.byte() {
            0..=235 => Flaw::None,
            byte => [
                Flaw::NoDeleter,
                Flaw::NoShape,
                Flaw::SkewedShape,
                Flaw::NoData,
                Flaw::SkewedData,
                Flaw::SkewedStrides,
            ][usize::from(byte) % 6],
        };
        let device = DLDevice { device_type, device_id };
        let mut pattern = input.take(32).to_vec();
        pattern.extend([1, 0, 0x80, 0x7f, 3]);
        Given { version, flags, device, dtype, ndim, shape, strides, byte_offset, flaw, pattern }
    }

    /// Bytes of an element.
    pub fn width(&self) -> i128 {
        width(self.dtype)
    }

    /// Number of elements.
    pub fn elements(&self) -> i128 {
        product(&self.shape)
    }

    /// The strides, row-major where there are none.
    pub fn steps(&self) -> Vec<i128> {
        match &self.strides {
            Some(strides) => strides.iter().map(|step| i128::from(*step)).collect(),
            None => row_major(&self.shape),
        }
    }

    /// Whether the elements lie as those of an array without gaps: in the order of the dimensions.
    pub fn is_compact(&self) -> bool {
        let steps = self.steps();
        let places = self.shape.iter().zip(steps.iter().zip(row_major(&self.shape)));
        self.elements() == 0 || places.into_iter().all(|(n, (a, b))| *n == 1 || *a == b)
    }

    /// The first byte of the lowest element and the end of the highest, from the first element on.
    fn reach(&self) -> (i128, i128) {
        let mut reach = (0, 0);
        for (length, step) in self.shape.iter().zip(self.steps()) {
            let last = (i128::from(*length) - 1).max(0).saturating_mul(step);
            if last < 0 {
                reach.0 = last.saturating_add(reach.0);
            } else {
                reach.1 = last.saturating_add(reach.1);
            }
        }
        let width = self.width();
        (reach.0.saturating_mul(width), reach.1.saturating_add(1).saturating_mul(width))
    }

    /// Whether the tensor breaks no rule that is an error; `data` is where its struct says that the data is.
    pub fn is_sound(&self, data: usize) -> bool {
        let device_type = self.device.device_type;
        let is_device = (1..=21).contains(&device_type) && ![5, 6].contains(&device_type);
        let is_headed = self.version.is_none_or(|version| version.0 == 1);
        let has_dims = (0..=64).contains(&self.ndim)
            && (self.ndim == 0 || ![Flaw::NoShape, Flaw::SkewedShape].contains(&self.flaw))
            && self.shape.iter().all(|length| *length >= 0);
        is_type(self.dtype) && is_device && is_headed && has_dims && self.lies_well(data)
    }

    fn lies_well(&self, data: usize) -> bool {
        let is_there = |n: i128| (i128::from(i64::MIN)..=i128::from(i64::MAX)).contains(&n);
        let n = self.elements();
        let has_strides = self.ndim == 0 || self.strides.is_none() || self.flaw != Flaw::SkewedStrides;
        if !has_strides || !is_there(n) {
            return false;
        }
        if n == 0 {
            return true;
        }
        let width = self.width();
        let (low, high) = self.reach();
        // The steps themselves have to be numbers of 64 bits as well as the bytes.
        if !is_there(n.saturating_mul(width)) || !is_there(low) || !is_there(high) || data == 0 {
            return false;
        }
        if [4, 7, 8, 15].contains(&self.device.device_type) {
            return true;
        }
        let first = data as i128 + i128::from(self.byte_offset);
        let most = i128::from(i64::MAX);
        first <= most && first + low >= 0 && first + high <= most
    }

    /// The struct in memory of its own, which its deleter lets go.
    pub fn make(&self, released: &Cell<u32>) -> Made {
        let mut memory = Memory::default();
        let (low, high) = self.reach();
        let n = self.elements();
        let is_small = (0..=MOST).contains(&n) && low >= -MOST && high <= MOST;
        let is_cpu = self.device.device_type == 1;
        let (mut content, mut origin, mut first) = (Vec::new(), 0, NOWHERE);
        if n == 0 {
            first = if self.byte_offset == 0 { 0 } else { NOWHERE };
        } else if is_small && is_cpu {
            let n = usize::try_from(high - low).expect("it is small");
            content = self.pattern.iter().copied().cycle().take(n).collect();
            let skew = usize::from(self.flaw == Flaw::SkewedData);
            first = memory.bytes(&content, skew).expose_provenance() as i128 - low;
            origin = -low;
        } else {
            first += i128::from(self.flaw == Flaw::SkewedData);
        }
        let mut data = (first as u64).wrapping_sub(self.byte_offset) as usize;
        if self.flaw == Flaw::NoData {
            data = 0;
        }
        // Nothing is behind an odd address, and then nothing may be read there.
        let list = |numbers: &[i64], is_skewed: bool, memory: &mut Memory| match is_skewed {
            true => core::ptr::without_provenance_mut(0x1001),
            false => memory.list(numbers.to_vec()),
        };
        let shape = match self.flaw {
            Flaw::NoShape => null_mut(),
            flaw => list(&self.shape, flaw == Flaw::SkewedShape, &mut memory),
        };
        let strides = match &self.strides {
            None => null_mut(),
            Some(strides) => list(strides, self.flaw == Flaw::SkewedStrides, &mut memory),
        };
        let dl_tensor = DLTensor {
            data: core::ptr::with_exposed_provenance_mut(data),
            device: self.device,
            ndim: self.ndim,
            dtype: self.dtype,
            shape,
            strides,
            byte_offset: self.byte_offset,
        };
        let has_deleter = self.flaw != Flaw::NoDeleter;
        let producer = Box::into_raw(Box::new(Producer { memory: Memory::default(), released }));
        let manager_ctx = producer.cast();
        let (mut versioned, mut legacy) = (null_mut(), null_mut());
        if let Some((major, minor)) = self.version {
            let version = DLPackVersion { major, minor };
            let deleter: Option<unsafe extern "C" fn(_)> =
                if has_deleter { Some(versioned_gone) } else { None };
            let flags = self.flags;
            versioned = if major == 1 {
                memory.value(DLManagedTensorVersioned { version, manager_ctx, deleter, flags, dl_tensor })
            } else {
                // Of another major version nobody knows what comes behind the flags.
                memory.value(Head { version, manager_ctx, deleter, flags }).cast()
            };
        } else {
            let deleter: Option<unsafe extern "C" fn(_)> = if has_deleter { Some(legacy_gone) } else { None };
            legacy = memory.value(DLManagedTensor { dl_tensor, manager_ctx, deleter });
        }
        // SAFETY: the producer was made just now.
        unsafe { (*producer).memory = memory };
        let may_read = is_cpu && is_small && self.flaw != Flaw::NoData;
        let producer = producer.cast();
        Made { versioned, legacy, data, producer, has_deleter, content, origin, may_read }
    }
}

/// The part of a tensor that every major version has.
#[repr(C)]
struct Head {
    version: DLPackVersion,
    manager_ctx: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    flags: u64,
}

impl Made {
    /// The bytes of every element in the order of the dimensions.
    pub fn elements(&self, given: &Given) -> Vec<&[u8]> {
        let width = given.width();
        let steps = given.steps();
        let mut found = Vec::new();
        for_each_place(&given.shape, |at| {
            let step: i128 = at.iter().zip(&steps).map(|(i, step)| i128::from(*i) * step).sum();
            let start = usize::try_from(self.origin + step * width).expect("within memory");
            found.push(&self.content[start..start + width as usize]);
        });
        found
    }

    /// Lets go what no deleter does.
    pub fn end(&self, released: u32) {
        assert_eq!(released, u32::from(self.has_deleter), "the deleter runs once, if there is one");
        if !self.has_deleter {
            // SAFETY: nobody else has it.
            drop(unsafe { Box::from_raw(self.producer.cast::<Producer<'_>>()) });
        }
    }
}

unsafe extern "C" fn versioned_gone(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: the context is the producer's; a tensor is let go once.
    unsafe { gone((&raw const (*tensor).manager_ctx).read()) };
}

unsafe extern "C" fn legacy_gone(tensor: *mut DLManagedTensor) {
    // SAFETY: as above.
    unsafe { gone((*tensor).manager_ctx) };
}

unsafe fn gone(producer: *mut c_void) {
    // SAFETY: as above.
    let Producer { memory, released } = *unsafe { Box::from_raw(producer.cast::<Producer<'_>>()) };
    released.set(released.get() + 1);
    // Whoever reads the struct or the data from now on is found out.
    drop(memory);
}

fn width(dtype: DLDataType) -> i128 {
    i128::from((u32::from(dtype.bits) * u32::from(dtype.lanes)).div_ceil(8))
}

/// Whether the header has such elements.
pub fn is_type(dtype: DLDataType) -> bool {
    let DLDataType { code, bits, lanes } = dtype;
    let has_bits = match code {
        0..=3 | 5 => bits > 0,
        4 => bits == 16,
        6..=14 => bits == 8,
        15 | 16 => bits == 6,
        17 => bits == 4,
        18 => bits == 32,
        _ => false,
    };
    has_bits && lanes > 0
}

/// Number of elements of a shape.
pub fn product(shape: &[i64]) -> i128 {
    if shape.contains(&0) {
        return 0;
    }
    shape.iter().fold(1, |n: i128, length| n.saturating_mul(i128::from(*length)))
}

/// The steps of rows without gaps; a dimension of no elements counts as one.
pub fn row_major(shape: &[i64]) -> Vec<i128> {
    let mut steps = vec![1_i128; shape.len()];
    for i in (1..shape.len()).rev() {
        steps[i - 1] = steps[i].saturating_mul(i128::from(shape[i].max(1)));
    }
    steps
}

/// Every index of a shape, the last dimension first.
pub fn for_each_place(shape: &[i64], mut visit: impl FnMut(&[i64])) {
    if shape.contains(&0) {
        return;
    }
    let mut at = vec![0_i64; shape.len()];
    loop {
        visit(&at);
        let Some(i) = (0..shape.len()).rev().find(|i| at[*i] + 1 < shape[*i]) else { return };
        at[i] += 1;
        at[i + 1..].fill(0);
    }
}

fn strides(input: &mut Input<'_>, shape: &[i64]) -> Option<Vec<i64>> {
    let narrow = |steps: Vec<i128>| steps.iter().map(|step| *step as i64).collect::<Vec<i64>>();
    let mut steps = narrow(row_major(shape));
    let n = shape.len();
    match input.byte() {
        80..=109 => return None,
        byte @ 110..=169 if n > 1 => {
            // The dimensions lie in another order.
            let mut order: Vec<usize> = (0..n).collect();
            order.rotate_left(usize::from(byte) % n);
            if byte & 1 == 1 {
                order.swap(0, n - 1);
            }
            if byte & 2 == 2 {
                // Rows stay rows.
                order.retain(|i| *i != 0);
                order.insert(0, 0);
            }
            let lengths: Vec<i64> = order.iter().map(|i| shape[*i]).collect();
            for (i, step) in order.iter().zip(narrow(row_major(&lengths))) {
                steps[*i] = step;
            }
        }
        byte @ 170..=199 => {
            let factor = i64::from(byte % 3) + 1;
            steps.iter_mut().for_each(|step| *step = step.wrapping_mul(factor));
        }
        200..=239 => steps.iter_mut().for_each(|step| *step = i64::from(input.byte() % 9) - 4),
        240.. => steps.iter_mut().for_each(|step| *step = input.number()),
        _ => {}
    }
    Some(steps)
}
