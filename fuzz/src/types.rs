//! Types: handles, and what must hold for every type that was made.

use core::ffi::{CStr, c_void};
use core::ptr::{null, null_mut};

use bowstring::raw::bowstring_schema_release;
use bowstring::schema::*;
use bowstring::validate::bowstring_schema_validate;
use bowstring_core::abi::ArrowSchema;

use super::calls::{Outcome, check, options, text};
use super::memory::Memory;

/// A type's handle.
pub struct Type(*mut BowstringType);

impl Drop for Type {
    fn drop(&mut self) {
        // SAFETY: the handle is this one's own.
        unsafe { bowstring_type_release(self.0) };
    }
}

impl Type {
    /// Takes a handle over when the call that made it succeeded; else there must be none.
    pub fn made(outcome: &Outcome, handle: *mut BowstringType) -> Option<Type> {
        assert_eq!(outcome.is_ok(), !handle.is_null(), "{}", outcome.text());
        outcome.is_ok().then_some(Type(handle))
    }

    /// A copy of a raw schema.
    pub fn copy_from(schema: *const ArrowSchema) -> (Outcome, Option<Type>) {
        let mut handle = core::ptr::dangling_mut();
        // SAFETY: the caller has a schema as the interface says.
        let outcome = Outcome::of(|error| unsafe { bowstring_type_copy_from(schema, &mut handle, error) });
        let ty = Type::made(&outcome, handle);
        (outcome, ty)
    }

    /// What a text says.
    pub fn parse(bytes: &[u8]) -> (Outcome, Option<Type>) {
        let mut memory = Memory::default();
        let at = memory.bytes(&[bytes, &[0]].concat(), 0);
        let mut handle = core::ptr::dangling_mut();
        // SAFETY: the text ends with a NUL.
        let outcome = Outcome::of(|error| unsafe { bowstring_type_parse(at.cast(), &mut handle, error) });
        let ty = Type::made(&outcome, handle);
        (outcome, ty)
    }

    /// The handle.
    pub fn at(&self) -> *const BowstringType {
        self.0
    }

    /// The text form.
    pub fn text(&self) -> Vec<u8> {
        // SAFETY: the handle is live, and the buffer is the helper's.
        text(|out, room, needed, error| unsafe { bowstring_type_to_text(self.0, out, room, needed, error) })
    }

    /// As a schema, which the caller releases.
    pub fn export(&self) -> ArrowSchema {
        // SAFETY: all zeroes are a released schema.
        let mut schema: ArrowSchema = unsafe { core::mem::zeroed() };
        // SAFETY: the handle is live.
        Outcome::of(|error| unsafe { bowstring_type_export(self.0, &mut schema, error) })
            .must("exporting a type");
        schema
    }

    /// Whether both are the same but for what the flags say.
    pub fn equals(&self, other: &Type, flags: u32) -> bool {
        // SAFETY: both handles are live.
        unsafe { bowstring_type_equals(self.0, other.0, flags) }
    }
}

/// Checks all that can be asked of a type. `is_text_whole` says whether the text form tells all but the metadata.
pub fn look(ty: &Type, is_text_whole: bool) {
    assert!(ty.equals(ty, 0));
    let n_nodes = nodes(ty);
    layout(ty, n_nodes);
    let text = ty.text();
    let (outcome, again) = Type::parse(&text);
    let shown = String::from_utf8_lossy(&text);
    let again = again.unwrap_or_else(|| panic!("the text form is read back: {shown}: {}", outcome.text()));
    assert_eq!(String::from_utf8_lossy(&again.text()), shown, "a text that was read back prints the same");
    if is_text_whole {
        assert!(ty.equals(&again, BOWSTRING_TYPE_IGNORE_METADATA), "the text form tells all: {shown}");
    }
    let mut schema = ty.export();
    // SAFETY: the schema is live.
    check(options(0, 0, 0), |options, error| unsafe { bowstring_schema_validate(&schema, options, error) })
        .must("checking an exported schema");
    let (outcome, copied) = Type::copy_from(&schema);
    outcome.must("copying an exported schema");
    assert!(copied.is_some_and(|copied| copied.equals(ty, 0)), "an exported schema is the type: {shown}");
    // SAFETY: the schema is live, and a second release does nothing.
    unsafe {
        bowstring_schema_release(&mut schema);
        bowstring_schema_release(&mut schema);
    }
    rebuild(ty, &shown);
}

/// Visits every node by number; says how many there are.
fn nodes(ty: &Type) -> usize {
    let mut n = 1;
    let mut i = 0;
    while i < n {
        let info = node(ty, i).unwrap_or_else(|| panic!("node {i} is there"));
        if i == 0 {
            n = info.subtree_end;
        }
        let mut child = info.first_child;
        for _ in 0..info.n_children {
            assert!(child > i && child < info.subtree_end, "a child is within its parent's subtree");
            child = node(ty, child).map_or(usize::MAX, |info| info.subtree_end);
        }
        assert!(info.dictionary == usize::MAX || info.dictionary < info.subtree_end);
        let bytes = usize::try_from(info.metadata_bytes).expect("a size");
        assert_eq!(bytes == 0, info.metadata.is_null());
        i += 1;
    }
    assert!(node(ty, n).is_none(), "there is no node behind the last");
    n
}

fn node(ty: &Type, i: usize) -> Option<BowstringTypeNodeInfo> {
    // SAFETY: all zeroes are a value of the struct.
    let mut info: BowstringTypeNodeInfo = unsafe { core::mem::zeroed() };
    info.struct_size = size_of::<BowstringTypeNodeInfo>();
    // SAFETY: the handle is live and the struct there, with its size.
    let outcome = Outcome::of(|error| unsafe { bowstring_type_node_info(ty.0, i, &mut info, error) });
    outcome.is_ok().then_some(info)
}

fn layout(ty: &Type, n_nodes: usize) {
    let mut needed = 0;
    // SAFETY: the handle is live, here and below.
    Outcome::of(|error| unsafe { bowstring_type_layout(ty.0, null_mut(), 0, &mut needed, error) })
        .must("asking for the size of a layout");
    let mut entries: Vec<BowstringLayoutEntry> = Vec::with_capacity(needed);
    let room = entries.as_mut_ptr();
    // SAFETY: there is room for as many entries as were asked for.
    Outcome::of(|error| unsafe { bowstring_type_layout(ty.0, room, needed, &mut needed, error) })
        .must("asking for a layout");
    // SAFETY: so many were written.
    unsafe { entries.set_len(needed) };
    assert!(entries.iter().all(|entry| entry.node < n_nodes && (0..8).contains(&entry.role)));
}

/// Makes the root again from its parts.
fn rebuild(ty: &Type, shown: &str) {
    let Some(info) = node(ty, 0) else { return };
    let mut children = Vec::new();
    for i in 0..info.n_children {
        let mut child = null();
        // SAFETY: the handle is live, here and below.
        Outcome::of(|error| unsafe { bowstring_type_child(ty.0, i, &mut child, error) })
            .must("asking for a child");
        children.push(child);
    }
    let mut none = null();
    // SAFETY: as above.
    let behind =
        Outcome::of(|error| unsafe { bowstring_type_child(ty.0, info.n_children, &mut none, error) });
    assert!(!behind.is_ok() && none.is_null(), "there is no child behind the last");
    let mut dictionary = null();
    if info.dictionary != usize::MAX {
        // SAFETY: as above.
        Outcome::of(|error| unsafe { bowstring_type_dictionary(ty.0, &mut dictionary, error) })
            .must("asking for a dictionary");
    }
    let mut handle = core::ptr::dangling_mut();
    // SAFETY: the parts are the type's own, and live as long as it.
    let outcome = Outcome::of(|error| unsafe {
        bowstring_type_new(
            info.format,
            info.name,
            info.flags,
            children.as_ptr(),
            children.len(),
            dictionary,
            info.metadata,
            info.metadata_bytes,
            &mut handle,
            error,
        )
    });
    outcome.must("making a type of its own parts");
    let again = Type::made(&outcome, handle);
    assert!(
        again.is_some_and(|again| again.equals(ty, 0)),
        "made of its own parts a type is the same: {shown}"
    );
}

/// Makes a type of a format, flags and metadata alone; the metadata is as long as it is.
pub fn new_with_metadata(format: &CStr, flags: i64, metadata: &[u8]) -> (Outcome, Option<Type>) {
    let mut memory = Memory::default();
    let at: *const c_void = memory.bytes(metadata, 1).cast_const().cast();
    let bytes = i64::try_from(metadata.len()).expect("a size");
    let mut handle = core::ptr::dangling_mut();
    // SAFETY: the strings end with a NUL, and the metadata is that long.
    let outcome = Outcome::of(|error| unsafe {
        let (name, none) = (c"n".as_ptr(), null());
        bowstring_type_new(format.as_ptr(), name, flags, null(), 0, none, at, bytes, &mut handle, error)
    });
    let ty = Type::made(&outcome, handle);
    (outcome, ty)
}
