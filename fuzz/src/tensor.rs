//! DLPack tensors of any kind: what the validator says of the struct, what is made of it, and what is made of that.

use core::cell::Cell;
use core::ptr::null_mut;

use bowstring::array::*;
use bowstring::error::{
    BOWSTRING_DEVICE_UNAVAILABLE, BOWSTRING_INVALID_ARGUMENT, BOWSTRING_INVALID_DATA, BOWSTRING_OK,
    BOWSTRING_UNSUPPORTED,
};
use bowstring::raw::{bowstring_legacy_tensor_release, bowstring_tensor_release};
use bowstring::tensor::*;
use bowstring::validate::{bowstring_legacy_tensor_validate, bowstring_tensor_validate};
use bowstring_core::abi::{DLManagedTensor, DLManagedTensorVersioned};
use bowstring_core::device::Sync;
use bowstring_core::error::ErrorRecord;

use super::calls::{Alive, Outcome, check, options as validate_options};
use super::dlpack::{Given, Made, product, row_major};
use super::input::Input;
use super::shown::{Expected, Shown, buffers_as_tensors, look_as_tensor};
use super::tensor_types::{Asked, ask};

/// Makes a tensor of the bytes.
pub fn run(bytes: &[u8]) {
    let before = Alive::now();
    let released = Cell::new(0);
    let mut input = Input::new(bytes);
    let how = [input.byte(), input.byte(), input.byte(), input.byte()];
    let given = Given::new(&mut input);
    let made = given.make(&released);
    let mut tensor = Subject { versioned: made.versioned, legacy: made.legacy, given: &given, made: &made };
    let is_sound = tensor.judge();
    for turn in 0..how[0] % 4 {
        tensor.turn_over(how[1] >> turn & 1 == 1, is_sound, &released);
    }
    if tensor.versioned.is_null() && how[1] & 0x80 == 0 {
        tensor.turn_over(true, is_sound, &released);
    }
    if !tensor.versioned.is_null() {
        tensor.taken(how, &mut input, is_sound, &released);
    }
    // What is still the caller's.
    // SAFETY: both are NULL or live.
    unsafe {
        bowstring_tensor_release(tensor.versioned);
        bowstring_legacy_tensor_release(tensor.legacy);
    }
    made.end(released.get());
    assert_eq!(Alive::now(), before, "nothing is left over");
}

/// Options with some flags.
pub fn options(flags: u64) -> BowstringTensorOptions {
    BowstringTensorOptions { struct_size: size_of::<BowstringTensorOptions>(), flags, sync: Sync::NONE }
}

/// Makes a tensor by a call that writes one, and checks that it wrote one exactly when it succeeded.
pub fn tensor_by<T>(call: impl FnOnce(*mut *mut T, *mut ErrorRecord) -> i32) -> (Outcome, *mut T) {
    let mut tensor = core::ptr::dangling_mut();
    let outcome = Outcome::of(|error| call(&mut tensor, error));
    assert!(outcome.is_ok() || tensor.is_null(), "a failure writes NULL: {}", outcome.text());
    (outcome, tensor)
}

fn is_cpu(given: &Given) -> bool {
    given.device.device_type == 1
}

/// A tensor that the caller owns, of either kind.
struct Subject<'a> {
    versioned: *mut DLManagedTensorVersioned,
    legacy: *mut DLManagedTensor,
    given: &'a Given,
    made: &'a Made,
}

impl Subject<'_> {
    /// Whether the tensor breaks no rule, as the validator says and as the header does.
    fn judge(&self) -> bool {
        // SAFETY: the structs are live, and every number leads where it says but for faults that the struct tells.
        let outcome = check(validate_options(0, 0, 0), |options, error| unsafe {
            match self.versioned.is_null() {
                true => bowstring_legacy_tensor_validate(self.legacy, options, error),
                false => bowstring_tensor_validate(self.versioned, options, error),
            }
        });
        let known = [BOWSTRING_OK, BOWSTRING_INVALID_DATA, BOWSTRING_UNSUPPORTED];
        assert!(known.contains(&outcome.status), "{}", outcome.text());
        let is_sound = self.given.is_sound(self.made.data);
        assert_eq!(outcome.is_ok(), is_sound, "{} of {:?}", outcome.text(), self.given);
        is_sound
    }

    /// Makes a legacy tensor of a versioned one, or the other way round.
    fn turn_over(&mut self, may_drop: bool, is_sound: bool, released: &Cell<u32>) {
        let options = options(if may_drop { BOWSTRING_TENSOR_DROP_READ_ONLY } else { 0 });
        let (old_versioned, old_legacy) = (self.versioned, self.legacy);
        // Strides for no elements have to be numbers too.
        let has_strides = self.given.strides.is_some()
            || row_major(&self.given.shape).first().is_none_or(|step| {
                let first = i128::from(self.given.shape.first().map_or(1, |length| (*length).max(1)));
                step.saturating_mul(first) <= i128::from(i64::MAX)
            });
        let (outcome, may_succeed) = if self.versioned.is_null() {
            // SAFETY: as above.
            let (outcome, new) = tensor_by(|out, error| unsafe {
                bowstring_tensor_from_legacy(&mut self.legacy, &options, out, error)
            });
            self.versioned = new;
            (outcome, true)
        } else {
            // SAFETY: as above, and the head of a tensor of any version is there.
            let may_succeed = unsafe {
                let is_known = (&raw const (*self.versioned).version).read().major == 1;
                is_known && ((*self.versioned).flags & 1 == 0 || may_drop)
            };
            // SAFETY: as above.
            let (outcome, new) = tensor_by(|out, error| unsafe {
                bowstring_tensor_to_legacy(&mut self.versioned, &options, out, error)
            });
            self.legacy = new;
            (outcome, may_succeed)
        };
        let expected = is_sound && has_strides && may_succeed;
        assert_eq!(outcome.is_ok(), expected, "{} of {:?}", outcome.text(), self.given);
        assert_eq!(released.get(), 0, "the data is in use");
        if !outcome.is_ok() {
            let untouched = (self.versioned, self.legacy) == (old_versioned, old_legacy);
            assert!(untouched, "what was not taken is still there");
            return;
        }
        assert!(self.versioned.is_null() != self.legacy.is_null(), "what was taken is gone");
        // SAFETY: the new struct is live.
        let shown = unsafe {
            match self.versioned.is_null() {
                true => Shown::of(&(*self.legacy).dl_tensor),
                false => {
                    assert_eq!((*self.versioned).version.major, 1);
                    assert!(
                        !old_legacy.is_null() && (*self.versioned).flags == 1,
                        "a legacy tensor is read-only"
                    );
                    Shown::of(&(*self.versioned).dl_tensor)
                }
            }
        };
        shown.must_be(self.given, self.made.data);
    }

    /// Makes an array of the tensor, and all that can be made of that.
    fn taken(&mut self, how: [u8; 4], input: &mut Input<'_>, is_sound: bool, released: &Cell<u32>) {
        let Asked { ty, is_plain, packs } = ask(self.given, how[2], input);
        // What is not there may not be read, and so not be copied.
        let may_copy = how[3] & 1 == 1 && (self.made.may_read || !is_cpu(self.given));
        let options = options(if may_copy { BOWSTRING_TENSOR_ALLOW_COPY } else { 0 });
        let tensor = self.versioned;
        let mut array = core::ptr::dangling_mut();
        // SAFETY: the tensor is live, and so is the type.
        let outcome = Outcome::of(|error| unsafe {
            let ty = ty.as_ref().map_or(core::ptr::null(), |ty| ty.at());
            bowstring_array_from_tensor(&mut self.versioned, ty, &options, &mut array, error)
        });
        assert_eq!(outcome.is_ok(), !array.is_null(), "{}", outcome.text());
        assert!(is_sound || !outcome.is_ok(), "a tensor that breaks a rule is not taken");
        if is_plain && is_sound {
            self.must_go(&outcome, may_copy);
        }
        if !outcome.is_ok() {
            let known = [
                BOWSTRING_INVALID_DATA,
                BOWSTRING_UNSUPPORTED,
                BOWSTRING_INVALID_ARGUMENT,
                // Without a driver, which nobody has here, device memory cannot be copied.
                BOWSTRING_DEVICE_UNAVAILABLE,
            ];
            assert!(known.contains(&outcome.status), "{}", outcome.text());
            assert_eq!((self.versioned, released.get()), (tensor, 0), "what was not taken is the caller's");
            return;
        }
        assert!(self.versioned.is_null(), "what was taken is gone");
        let is_handle = [4, 7, 8, 15].contains(&self.given.device.device_type);
        assert!(
            !is_handle || self.given.byte_offset == 0 || self.given.elements() == 0,
            "a handle has no bytes"
        );
        // Without a deleter nobody is told.
        let is_used = self.made.has_deleter && released.get() == 0;
        assert!(!is_used || self.given.elements() > 0, "no elements need no memory");
        assert!(!is_used || !packs, "a copy needs the memory no longer");
        let elements = if self.made.may_read && self.given.elements() > 0 {
            let elements = self.made.elements(self.given).into_iter();
            let packed = |bytes: &[u8]| vec![u8::from(bytes.iter().any(|byte| *byte != 0))];
            Some(elements.map(|bytes| if packs { packed(bytes) } else { bytes.to_vec() }).collect())
        } else {
            None
        };
        let mut shape = self.given.shape.clone();
        if shape.is_empty() {
            shape.push(1);
        }
        let address = is_used.then(|| self.made.data.wrapping_add(self.given.byte_offset as usize));
        let device = self.given.device;
        let has_no_id = [3, 11, 13].contains(&device.device_type) && device.device_id == -1;
        let has_device = device.device_id >= 0 || is_cpu(self.given) || has_no_id;
        let is_there = elements.is_some() || product(&shape) == 0;
        let expected = Expected { shape, elements, address, has_device, is_there, is_plain };
        let kept = look_as_tensor(array, &expected, how[3] >> 1);
        buffers_as_tensors(array, input, &expected);
        // The array may go before or after the tensors of it.
        // SAFETY: all are live.
        unsafe {
            if how[3] & 0x80 == 0 {
                bowstring_array_release(array);
                array = null_mut();
            }
            if is_used && !kept.is_empty() && self.given.elements() > 0 {
                assert_eq!(released.get(), 0, "a tensor keeps its memory");
            }
            for tensor in kept {
                bowstring_tensor_release(tensor);
            }
            bowstring_array_release(array);
        }
        let expected = u32::from(self.made.has_deleter);
        assert_eq!(released.get(), expected, "with the last use the tensor goes");
    }

    /// Small tensors of numbers become arrays of the type that follows from them, if only by a copy.
    fn must_go(&self, outcome: &Outcome, may_copy: bool) {
        let given = self.given;
        let is_small = given.shape.len() < 9 && given.shape.iter().all(|length| *length < 1000);
        let is_number = given.dtype.lanes == 1
            && match given.dtype.code {
                0 | 1 => [8, 16, 32, 64].contains(&given.dtype.bits),
                2 => [16, 32, 64].contains(&given.dtype.bits),
                code => code == 6,
            };
        if is_small && is_cpu(given) {
            let expected = is_number && (given.is_compact() || may_copy);
            assert_eq!(outcome.is_ok(), expected, "{} of {given:?}", outcome.text());
        }
    }
}
