//! All that can be done with an array that was taken.

use core::ffi::c_void;
use core::ptr::{null, null_mut};

use bowstring::array::*;
use bowstring::buffer::{bowstring_buffer_read, bowstring_buffer_release};
use bowstring::error::{BOWSTRING_INVALID_ARGUMENT, BOWSTRING_INVALID_DATA, BOWSTRING_NOT_CONFORMING};
use bowstring::produce::bowstring_device_array_from_buffers;
use bowstring::raw::{
    bowstring_device_array_release, bowstring_host_array_release, bowstring_schema_release,
};
use bowstring::validate::{BOWSTRING_CONFORM_ALLOW_COPY, bowstring_array_conform};
use bowstring_core::abi::{ArrowArray, ArrowDeviceArray};
use bowstring_core::array::{BufferInfo, NodeInfo};
use bowstring_core::memory::OwnedBuffer;
use bowstring_core::tree::{Facts, Placement};

use super::calls::{Outcome, text};
use super::checks::{Verdict, is_valid, is_valid_raw, judge, judge_imported};
use super::shown::array_as_tensors;
use super::types::Type;

/// What is known of an array from how it was made.
pub struct Subject {
    /// What the input chose.
    pub how: [u8; 2],
    /// The nulls that its bitmap shows.
    pub nulls: i64,
    /// Whether it is little enough to be copied.
    pub may_copy: bool,
    /// How many findings a listener hears of; 0 is all.
    pub most: u32,
    /// Whether it is so large that not all is done with it.
    pub is_large: bool,
}

/// An array's handle.
struct Array(*mut BowstringArray);

impl Drop for Array {
    fn drop(&mut self) {
        // SAFETY: the handle is this one's own.
        unsafe { bowstring_array_release(self.0) };
    }
}

impl Array {
    /// Makes one by a call that writes a handle, and checks that it wrote one exactly when it succeeded.
    fn by(
        call: impl FnOnce(*mut *mut BowstringArray, *mut bowstring_core::error::ErrorRecord) -> i32,
    ) -> (Outcome, Option<Array>) {
        let mut handle = core::ptr::dangling_mut();
        let outcome = Outcome::of(|error| call(&mut handle, error));
        assert_eq!(outcome.is_ok(), !handle.is_null(), "{}", outcome.text());
        let array = outcome.is_ok().then_some(Array(handle));
        (outcome, array)
    }

    fn slice(&self, offset: i64, length: i64) -> (Outcome, Option<Array>) {
        // SAFETY: the handle is live; so it is wherever one is used in this file.
        Array::by(|out, error| unsafe { bowstring_array_slice(self.0, offset, length, out, error) })
    }

    fn resolved(&self) -> (Outcome, Option<Array>) {
        // SAFETY: as above.
        Array::by(|out, error| unsafe { bowstring_array_resolve_sizes(self.0, null(), out, error) })
    }

    fn node(&self, i: usize) -> NodeInfo {
        // SAFETY: all zeroes are a value of the struct.
        let mut info: NodeInfo = unsafe { core::mem::zeroed() };
        info.struct_size = size_of::<NodeInfo>();
        // SAFETY: as above.
        Outcome::of(|error| unsafe { bowstring_array_node_info(self.0, i, &mut info, error) })
            .must("asking about a node");
        info
    }

    fn count(&self) -> (usize, usize) {
        let (mut nodes, mut buffers) = (0, 0);
        // SAFETY: as above.
        Outcome::of(|error| unsafe { bowstring_array_count(self.0, &mut nodes, &mut buffers, error) })
            .must("counting");
        (nodes, buffers)
    }
}

/// Imports the array, which must go exactly when its structure is sound, and does everything with it.
pub fn exercise(
    raw: &mut ArrowArray,
    ty: &Type,
    structure: &Outcome,
    verdict: Option<&Verdict>,
    subject: &Subject,
) {
    let is_typed = subject.how[0] & 0x80 != 0;
    let mut schema = ty.export();
    // SAFETY: structs and type are live, and the buffers as long as the numbers say.
    let (outcome, array) = Array::by(|out, error| unsafe {
        if is_typed {
            bowstring_array_import_host_typed(raw, ty.at(), out, error)
        } else {
            bowstring_array_import_host(raw, &mut schema, out, error)
        }
    });
    assert_eq!(
        outcome.is_ok(),
        structure.is_ok(),
        "import: {}, structure: {}",
        outcome.text(),
        structure.text()
    );
    assert_eq!(outcome.is_ok(), raw.release.is_none(), "an import takes all or nothing");
    assert_eq!(outcome.is_ok() && !is_typed, schema.release.is_none());
    // SAFETY: the schema is live, or was taken.
    unsafe { bowstring_schema_release(&mut schema) };
    let Some(array) = array else { return };
    look(&array);
    let Some(verdict) = verdict else { return };
    let is_sound = verdict.full.is_ok();
    known_nulls(&array, is_sound, subject);
    let imported = judge_imported(array.0, subject.most);
    assert!(
        !is_sound || imported.full.is_ok(),
        "valid as a struct, but not imported: {}",
        imported.full.text()
    );
    assert!(!verdict.bounds.is_ok() || imported.bounds.is_ok(), "{}", imported.bounds.text());
    if subject.is_large {
        return;
    }
    let is_sound = imported.full.is_ok();
    windows(&array, is_sound, subject);
    array_as_tensors(array.0, is_sound && subject.may_copy);
    again(&array, is_sound, true, subject);
    let (outcome, resolved) = array.resolved();
    assert!(!is_sound || outcome.is_ok(), "sizes of a valid array: {}", outcome.text());
    if let Some(resolved) = resolved {
        look(&resolved);
        let outcome = is_valid(resolved.0);
        assert_eq!(outcome.is_ok(), is_sound, "with its sizes an array is what it was: {}", outcome.text());
        apart(&resolved, is_sound);
        if is_sound && subject.may_copy {
            read(&resolved);
        }
    }
    if subject.may_copy {
        conform(&array, is_sound, subject);
    }
}

/// Everything that reads no buffer.
fn look(array: &Array) {
    // SAFETY: the buffer is the helper's.
    text(|out, room, needed, error| unsafe { bowstring_array_to_text(array.0, out, room, needed, error) });
    let (nodes, buffers) = array.count();
    for i in 0..nodes {
        let info = array.node(i);
        assert!(info.length >= 0 && info.offset >= 0 && info.subtree_end <= nodes);
        assert!(info.first_buffer + info.n_buffers <= buffers && info.null_count <= info.length);
    }
    for i in 0..buffers {
        // SAFETY: all zeroes are a value of the struct.
        let mut info: BufferInfo = unsafe { core::mem::zeroed() };
        info.struct_size = size_of::<BufferInfo>();
        // SAFETY: the handle is live.
        Outcome::of(|error| unsafe { bowstring_array_buffer_info(array.0, i, &mut info, error) })
            .must("asking about a buffer");
        assert!(info.node < nodes && info.size_bytes >= -1);
    }
}

fn known_nulls(array: &Array, is_sound: bool, subject: &Subject) {
    let mut nulls = 0;
    // SAFETY: as above.
    Outcome::of(|error| unsafe { bowstring_array_null_count(array.0, null(), &mut nulls, error) })
        .must("counting nulls");
    if is_sound {
        assert_eq!(nulls, subject.nulls, "the null count is what the bitmap shows");
    }
}

/// Parts of the array: windows, children, dictionaries, buffers.
fn windows(array: &Array, is_sound: bool, subject: &Subject) {
    let length = array.node(0).length;
    let bad = [(-1, 1), (0, -1), (0, length.saturating_add(1)), (length, 1), (i64::MAX, i64::MAX)];
    for (offset, n) in bad {
        if length < i64::MAX {
            assert!(!array.slice(offset, n).0.is_ok(), "a window is never clamped");
        }
    }
    let start = i64::from(subject.how[1]) % (length.min(255) + 1);
    let n = i64::from(subject.how[0]).min(length - start);
    let (outcome, part) = array.slice(start, n);
    outcome.must("a window");
    let info = array.node(0);
    let children = info.n_children;
    for part in part.iter().chain([array]) {
        look(part);
        known_valid(part, is_sound, "a window");
        for i in 0..children {
            // SAFETY: as above.
            let (outcome, child) =
                Array::by(|out, error| unsafe { bowstring_array_child(part.0, i, out, error) });
            outcome.must("a child");
            if let Some(child) = child {
                look(&child);
                known_valid(&child, is_sound, "a child");
            }
        }
        if info.dictionary != usize::MAX {
            // SAFETY: as above.
            let (outcome, values) =
                Array::by(|out, error| unsafe { bowstring_array_dictionary(part.0, out, error) });
            outcome.must("a dictionary");
            if let Some(values) = values {
                known_valid(&values, is_sound, "a dictionary");
            }
        }
    }
    if let Some(part) = part {
        again(&part, is_sound, false, subject);
    }
}

fn known_valid(array: &Array, is_sound: bool, what: &str) {
    let outcome = is_valid(array.0);
    assert!(!is_sound || outcome.is_ok(), "{what} of a valid array: {}", outcome.text());
}

/// Exports the array and takes the export back.
fn again(array: &Array, is_sound: bool, is_deep: bool, subject: &Subject) {
    // SAFETY: all zeroes are released structs.
    let (mut raw, mut schema): (ArrowArray, _) = unsafe { (core::mem::zeroed(), core::mem::zeroed()) };
    // SAFETY: as above.
    Outcome::of(|error| unsafe {
        bowstring_array_export_host(array.0, null(), &mut raw, &mut schema, error)
    })
    .must("an export");
    let (outcome, ty) = Type::copy_from(&schema);
    outcome.must("an exported type");
    if let Some(ty) = ty {
        // A part of an invalid array may end with an offset beyond the data, and its export then says so much of it is there.
        let is_vouched_for = is_sound || is_deep;
        if is_deep {
            let full = judge(&raw, &ty, subject.how[1], subject.most).full;
            assert!(!is_sound || full.is_ok(), "an export of a valid array: {}", full.text());
        } else if is_vouched_for {
            is_valid_raw(&raw, &ty).must("an export of a valid array");
        }
        // SAFETY: the structs are live.
        let (outcome, back) = Array::by(|out, error| unsafe {
            bowstring_array_import_host_typed(&mut raw, ty.at(), out, error)
        });
        // Nulls are counted on the way out, and then a rule may be broken that was not before.
        assert!(!is_sound || outcome.is_ok(), "taking an export back: {}", outcome.text());
        if let Some(back) = back.filter(|_| is_vouched_for) {
            known_valid(&back, is_sound, "taking back an export");
        }
    }
    // SAFETY: live or taken.
    unsafe {
        bowstring_host_array_release(&mut raw);
        bowstring_schema_release(&mut schema);
    }
}

/// Takes the array apart and puts it together.
fn apart(array: &Array, is_sound: bool) {
    let (n_nodes, n_buffers) = array.count();
    let mut nodes = vec![Facts::EMPTY; n_nodes];
    let mut buffers: Vec<OwnedBuffer> = (0..n_buffers).map(|_| OwnedBuffer::absent()).collect();
    let mut placement = Placement::default();
    // SAFETY: the lists are as long as they have to be.
    Outcome::of(|error| unsafe {
        let (nodes, buffers) = (nodes.as_mut_ptr(), buffers.as_mut_ptr());
        bowstring_array_to_buffers(array.0, nodes, n_nodes, buffers, n_buffers, &mut placement, error)
    })
    .must("taking an array apart");
    // SAFETY: as above.
    let mut raw: ArrowDeviceArray = unsafe { core::mem::zeroed() };
    // SAFETY: as above.
    let outcome = Outcome::of(|error| unsafe {
        let ty = bowstring_array_type(array.0);
        let (nodes, buffers) = (nodes.as_ptr(), buffers.as_mut_ptr());
        bowstring_device_array_from_buffers(
            ty,
            nodes,
            n_nodes,
            buffers,
            n_buffers,
            &mut placement,
            &mut raw,
            error,
        )
    });
    assert!(!is_sound || outcome.is_ok(), "putting a valid array together: {}", outcome.text());
    if outcome.is_ok() {
        // SAFETY: the struct and the type are live.
        let (outcome, back) = Array::by(|out, error| unsafe {
            bowstring_array_import_typed(&mut raw, bowstring_array_type(array.0), out, error)
        });
        assert!(!is_sound || outcome.is_ok(), "importing what was put together: {}", outcome.text());
        if let Some(back) = back {
            known_valid(&back, is_sound, "putting together");
        }
    }
    // SAFETY: live or taken.
    unsafe { bowstring_device_array_release(&mut raw) };
    buffers.iter_mut().for_each(|buffer| drop(buffer.take_owner()));
}

/// Reads every byte of every buffer whose size is known.
fn read(array: &Array) {
    for i in 0..array.count().1 {
        // SAFETY: all zeroes are a value of the struct.
        let mut info: BufferInfo = unsafe { core::mem::zeroed() };
        info.struct_size = size_of::<BufferInfo>();
        let mut buffer = null_mut();
        // SAFETY: as above; the destination is as long as the buffer.
        unsafe {
            Outcome::of(|error| bowstring_array_buffer_info(array.0, i, &mut info, error))
                .must("a buffer's size");
            Outcome::of(|error| bowstring_array_buffer(array.0, i, &mut buffer, error)).must("a buffer");
            let n = info.size_bytes.max(0);
            let mut bytes = vec![0_u8; usize::try_from(n).expect("a size")];
            let to: *mut c_void = bytes.as_mut_ptr().cast();
            Outcome::of(|error| bowstring_buffer_read(buffer, 0, to, n, null(), error))
                .must("reading a buffer");
            bowstring_buffer_release(buffer);
        }
    }
}

/// Repairs the array for every consumer in every way: what comes of a valid one is valid.
fn conform(array: &Array, is_sound: bool, subject: &Subject) {
    let some = u32::from(subject.how[1]);
    let all = subject.how[0] & 3 == 3;
    // What is sound is repaired in every way, or in an eighth of them, since that takes a while; what is broken may go wrong
    // in one way at a time.
    let chosen = (0..64).filter(|way| is_sound && (all || way % 8 == some % 8));
    for way in chosen.chain([some & 63, 1 | some & 60, 5 | some & 48, 9 | some & 48]) {
        let (flags, profile) = (way & 15, (way >> 4).cast_signed());
        // SAFETY: as above.
        let (outcome, repaired) = Array::by(|out, error| unsafe {
            bowstring_array_conform(array.0, profile, null(), flags, out, error)
        });
        if flags & 12 == 12 {
            assert_eq!(outcome.status, BOWSTRING_INVALID_ARGUMENT, "offsets and views: {}", outcome.text());
        }
        let Some(repaired) = repaired else {
            let known = [BOWSTRING_INVALID_ARGUMENT, BOWSTRING_INVALID_DATA, BOWSTRING_NOT_CONFORMING];
            assert!(known.contains(&outcome.status), "{}", outcome.text());
            assert!(!is_sound || outcome.status != BOWSTRING_INVALID_DATA, "valid: {}", outcome.text());
            continue;
        };
        known_valid(&repaired, is_sound, "a repair");
        if flags == BOWSTRING_CONFORM_ALLOW_COPY {
            look(&repaired);
        }
        if is_sound {
            again(&repaired, true, false, subject);
        }
    }
}
