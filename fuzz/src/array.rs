//! Raw arrays of any type: what the validator says of the struct, what the import takes, and all that can be done then.

use core::cell::Cell;
use core::ffi::c_void;

use bowstring_core::abi::ArrowArray;

use super::calls::Alive;
use super::checks::{judge, judge_structure};
use super::contents::Meaning;
use super::input::Input;
use super::kinds::{Kind, Node};
use super::memory::Memory;
use super::numbers::{Builder, Wanted};
use super::parts::{Subject, exercise};
use super::types::Type;

/// Rows at which threads share the work.
const SHARED_ROWS: i64 = 1 << 19;

/// What a root struct owns: everything below it, and a count of its releases.
struct Producer<'a> {
    memory: Memory,
    released: &'a Cell<u32>,
}

unsafe extern "C" fn release(array: *mut ArrowArray) {
    // SAFETY: the private data is the producer's, and a struct is released once.
    unsafe {
        let Producer { memory, released } = *Box::from_raw((*array).private_data.cast::<Producer<'_>>());
        released.set(released.get() + 1);
        // Whoever reads a buffer from now on is found out.
        drop(memory);
        (*array).release = None;
    }
}

/// Makes a type and an array of it of the bytes.
pub fn run(bytes: &[u8]) {
    let before = Alive::now();
    let released = Cell::new(0);
    if let Some(made) = make(bytes, &released) {
        work(made);
        assert_eq!(released.get(), 1, "the producer's release runs once");
    }
    assert_eq!(Alive::now(), before, "nothing is left over");
}

struct Made {
    ty: Type,
    array: ArrowArray,
    is_too_large: bool,
    subject: Subject,
}

fn make(bytes: &[u8], released: &Cell<u32>) -> Option<Made> {
    let mut input = Input::new(bytes);
    let how = [input.byte(), input.byte()];
    let size = input.byte();
    let mut room = 16;
    let node = Node::new(&mut input, 1, &mut room);
    let mut own = Memory::default();
    let (outcome, ty) = Type::copy_from(node.schema(&mut own));
    let ty = ty.unwrap_or_else(|| panic!("a type of the grammar: {}: {node:?}", outcome.text()));

    let is_simple = node.children.is_empty() && node.format != "w:70000";
    // The length of the input counts too, so that few of the inputs that come of it are as slow.
    let is_large = size == 255 && how[0] & 7 == 7 && bytes.len() % 8 == 7 && is_simple;
    let length = match size {
        _ if is_large => SHARED_ROWS + i64::from(how[1]),
        0..=239 => i64::from(size % 24),
        _ => i64::from(size) * 5 - 1000,
    };
    let mut memory = Memory::default();
    let cap = if is_large { 20 << 20 } else { 1 << 18 };
    let mut builder = Builder { input, memory: &mut memory, cap, is_too_large: false, most_rows: 0 };
    let mut built = builder.node(&node, Wanted { length, meaning: Meaning::Values { step: 1 } });
    let (is_too_large, most_rows) = (builder.is_too_large, builder.most_rows);
    let is_released = built.array.release.is_none();
    let producer: *mut c_void = Box::into_raw(Box::new(Producer { memory, released })).cast();
    let mut array = built.array;
    array.release = Some(release);
    array.private_data = producer;
    if is_released {
        // A root that was released is only looked at.
        // SAFETY: a bitwise copy of a struct that has no destructor, and of one that is not released before it.
        built.array = unsafe { core::ptr::read(&raw const array) };
        built.array.release = None;
        let gone = judge_structure(&built.array, &ty);
        assert!(!gone.is_ok(), "a released array is not taken");
    }
    let nulls = match node.kind {
        Kind::Null => array.length,
        _ => built.nulls,
    };
    let most = if is_large { 64 } else { 0 };
    let subject = Subject { how, most, nulls, may_copy: most_rows < 1 << 14, is_large };
    Some(Made { ty, array, is_too_large, subject })
}

fn work(made: Made) {
    let Made { ty, mut array, is_too_large, subject } = made;
    let verdict = if is_too_large { None } else { Some(judge(&array, &ty, subject.how[0], subject.most)) };
    let structure = judge_structure(&array, &ty);
    exercise(&mut array, &ty, &structure, verdict.as_ref(), &subject);
    if let Some(release) = array.release {
        // SAFETY: the array is live.
        unsafe { release(&mut array) };
    }
}
