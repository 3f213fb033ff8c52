//! Types: schemas parsed once, and everything that can be asked of them.

use core::ffi::{c_char, c_void};
use core::mem::ManuallyDrop;

use bowstring_core::abi::{ArrowSchema, SchemaView};
use bowstring_core::error::{ErrorRecord, Report, Result, Status, TextBuffer};
use bowstring_core::tree::export_schema;
use bowstring_core::types::{DataType, MAX_FORMAT, MAX_STRING, NONE, Type};

use crate::error::BowstringStatus;
use crate::guard::{guard, guard_or};
use crate::pointer::{check, check_count, disjoint, slice, slice_mut, text, type_of};
use crate::raw::{Raw, reset};
use crate::sized::{self, write_output};

/// A parsed schema, or one node of it: immutable, shared, thread safe.
pub struct BowstringType(());

/// The most nodes on the way from a type's root to a leaf, both counted.
pub const BOWSTRING_MAX_DEPTH: usize = 64;
/// The most nodes in a type.
pub const BOWSTRING_MAX_NODES: usize = 16777216;
/// The longest format string, in bytes.
pub const BOWSTRING_MAX_FORMAT: usize = 65535;
/// The longest name, in bytes.
pub const BOWSTRING_MAX_NAME: usize = 1048576;
/// The longest encoded metadata of one node, in bytes.
pub const BOWSTRING_MAX_METADATA: usize = 67108864;

const _: () = {
    use bowstring_core::types;
    assert!(BOWSTRING_MAX_DEPTH == types::MAX_DEPTH);
    assert!(BOWSTRING_MAX_NODES == types::MAX_NODES);
    assert!(BOWSTRING_MAX_FORMAT == types::MAX_FORMAT);
    assert!(BOWSTRING_MAX_NAME == types::MAX_STRING);
    assert!(BOWSTRING_MAX_METADATA == types::MAX_METADATA);
    assert!(BOWSTRING_TYPE_IGNORE_NAMES == types::IGNORE_NAMES);
    assert!(BOWSTRING_TYPE_IGNORE_METADATA == types::IGNORE_METADATA);
    assert!(BOWSTRING_TYPE_IGNORE_NULLABLE == types::IGNORE_NULLABLE);
};

/// For bowstring_type_equals: types are equal though their fields have other names.
pub const BOWSTRING_TYPE_IGNORE_NAMES: u32 = 1;
/// For bowstring_type_equals: types are equal though they carry other metadata.
pub const BOWSTRING_TYPE_IGNORE_METADATA: u32 = 2;
/// For bowstring_type_equals: types are equal though one allows nulls where the other does not.
pub const BOWSTRING_TYPE_IGNORE_NULLABLE: u32 = 4;

/// A bitmap with a 1 for each value that is there.
pub const BOWSTRING_ROLE_VALIDITY: i32 = 0;
/// Where values start in the data or in the child.
pub const BOWSTRING_ROLE_OFFSETS: i32 = 1;
/// How long the values of a list view are.
pub const BOWSTRING_ROLE_SIZES: i32 = 2;
/// Which child of a union a value is in.
pub const BOWSTRING_ROLE_TYPE_IDS: i32 = 3;
/// Views on strings: a length, and the bytes or where they are.
pub const BOWSTRING_ROLE_VIEWS: i32 = 4;
/// The values themselves.
pub const BOWSTRING_ROLE_DATA: i32 = 5;
/// Bytes that views point into; any number of such buffers.
pub const BOWSTRING_ROLE_VARIADIC: i32 = 6;
/// The sizes of the variadic buffers, as 64-bit integers in CPU memory.
pub const BOWSTRING_ROLE_VARIADIC_SIZES: i32 = 7;

/// One node of a type. Strings live as long as the type.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BowstringTypeNodeInfo {
    /// Size of this struct in the caller's build; the only member that is read.
    pub struct_size: usize,
    /// Format string.
    pub format: *const c_char,
    /// Name; never NULL.
    pub name: *const c_char,
    /// Flags of the schema, unknown bits included.
    pub flags: i64,
    /// Encoded metadata, NULL when there is none.
    pub metadata: *const c_void,
    /// Bytes of the metadata.
    pub metadata_bytes: i64,
    /// Number of children.
    pub n_children: usize,
    /// The first child's node, `SIZE_MAX` when there is none; the next one is at that child's `subtree_end`.
    pub first_child: usize,
    /// The node of the dictionary's values, `SIZE_MAX` when the node is not dictionary-encoded.
    pub dictionary: usize,
    /// The node after this one's subtree.
    pub subtree_end: usize,
}

/// One buffer that an array of the type has. The layout is frozen.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BowstringLayoutEntry {
    /// The node that the buffer belongs to.
    pub node: usize,
    /// What it is for, a `BOWSTRING_ROLE_*`.
    pub role: i32,
    /// Type of an element; 1 bit wide in bitmaps.
    pub element: DataType,
}

// SAFETY: `repr(C)`, starts with a `usize`, and consists of integers and pointers.
unsafe impl sized::Sized for BowstringTypeNodeInfo {
    const NAME: &'static str = "BowstringTypeNodeInfo";
}

/// Checks a type out-parameter and sets it to NULL.
unsafe fn reset_out(out: *mut *mut BowstringType, report: &mut Report<'_>) -> Result<()> {
    check(out, "a handle to write to", report)?;
    // SAFETY: the pointer was checked just now.
    unsafe { out.write(core::ptr::null_mut()) };
    Ok(())
}

/// The C handle of a type, which owns one count.
pub(crate) fn handle_of(ty: Type) -> *mut BowstringType {
    let address = ty.address().cast_mut().cast();
    core::mem::forget(ty);
    address
}

/// Parses a schema that is handed over.
///
/// The schema's structure is checked whole, strings and metadata up to the limits in this header. Names may be NULL.
///
/// Ownership: on success the schema was copied and released, and `schema->release` is NULL; on failure it is still the
/// caller's. The caller releases `*out`.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments; RELEASED for a released schema; INVALID_DATA with rule and
/// path for one that breaks a rule; OUT_OF_MEMORY. Any thread may call it.
/// Source: Arrow C Data interface, "ArrowSchema" and "Format strings".
///
/// # Safety
/// `schema` is NULL or a schema as the interface says; `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_type_import(
    schema: *mut ArrowSchema,
    out: *mut *mut BowstringType,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        check(out, "a handle to write to", report)?;
        disjoint(schema, out, report)?;
        // SAFETY: as the caller promises.
        unsafe {
            reset_out(out, report)?;
            let ty = parse_schema(schema, report)?;
            ArrowSchema::call_release(schema);
            out.write(handle_of(ty));
        }
        Ok(())
    })
}

/// Parses a schema that stays the caller's.
///
/// Ownership: the schema is borrowed for the call and copied. The caller releases `*out`.
/// Errors: as bowstring_type_import. Any thread may call it.
///
/// # Safety
/// `schema` is NULL or a schema as the interface says; `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_type_copy_from(
    schema: *const ArrowSchema,
    out: *mut *mut BowstringType,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        // SAFETY: as the caller promises.
        unsafe {
            reset_out(out, report)?;
            out.write(handle_of(parse_schema(schema, report)?));
        }
        Ok(())
    })
}

/// The type that a schema describes; the schema is only looked at.
pub(crate) unsafe fn parse_schema(schema: *const ArrowSchema, report: &mut Report<'_>) -> Result<Type> {
    // SAFETY: as the caller promises.
    let schema = unsafe { crate::pointer::required(schema, "a schema", report) }?;
    // SAFETY: as the caller promises.
    Type::from_schema(unsafe { SchemaView::new(schema) }, report)
}

/// Makes a type from its parts.
///
/// `format` is the node's own format string; children and dictionary are types made before, and keep their names.
///
/// Ownership: everything is borrowed for the call and copied. The caller releases `*out`.
/// Errors: INVALID_ARGUMENT for NULL or overlong arguments or a negative metadata_bytes; INVALID_DATA with rule and path
/// for parts that do not make a type; OUT_OF_MEMORY. Any thread may call it.
///
/// # Safety
/// Strings end with a NUL; `children` leads to `n_children` live handles; `metadata` leads to `metadata_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_type_new(
    format: *const c_char,
    name: *const c_char,
    flags: i64,
    children: *const *const BowstringType,
    n_children: usize,
    dictionary: *const BowstringType,
    metadata: *const c_void,
    metadata_bytes: i64,
    out: *mut *mut BowstringType,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        // SAFETY: as the caller promises, here and below.
        unsafe {
            reset_out(out, report)?;
            let format = text(format, MAX_FORMAT, "a format string", report)?;
            let name = if name.is_null() { &[] } else { text(name, MAX_STRING, "a name", report)? };
            let Ok(size) = usize::try_from(metadata_bytes) else {
                let message = format_args!("expected metadata_bytes of at least 0, found {metadata_bytes}");
                return Err(report.fail(Status::InvalidArgument, message));
            };
            let metadata = slice(metadata.cast::<u8>(), size, "metadata", report)?;
            let children = slice(children, n_children, "children", report)?;
            for child in children {
                type_of(*child, report)?;
            }
            let dictionary = if dictionary.is_null() { None } else { Some(type_of(dictionary, report)?) };
            let children =
                children.iter().filter_map(|child| type_of(*child, &mut Report::silent()).ok().map(Borrowed));
            let metadata = Some(metadata).filter(|bytes| !bytes.is_empty());
            let ty = Type::build(format, name, flags, children, dictionary.as_deref(), metadata, report)?;
            out.write(handle_of(ty));
        }
        Ok(())
    })
}

struct Borrowed(ManuallyDrop<Type>);

impl AsRef<Type> for Borrowed {
    fn as_ref(&self) -> &Type {
        &self.0
    }
}

/// Parses a type's text form, such as "struct<a: int32 not null, s: list<utf8>>".
///
/// Fields are nullable unless `not null`. Metadata is not part of the text.
///
/// Ownership: the text is borrowed for the call. The caller releases `*out`.
/// Errors: INVALID_ARGUMENT for NULL arguments or text that is not a type, with position, expected and found;
/// INVALID_DATA for a type that breaks a rule; OUT_OF_MEMORY. Any thread may call it.
///
/// # Safety
/// `text` ends with a NUL; `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_type_parse(
    text: *const c_char,
    out: *mut *mut BowstringType,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        // SAFETY: as the caller promises.
        unsafe {
            reset_out(out, report)?;
            let bytes = crate::pointer::text(text, MAX_TEXT, "the text of a type", report)?;
            out.write(handle_of(Type::parse(bytes, report)?));
        }
        Ok(())
    })
}

/// The longest text that is parsed.
const MAX_TEXT: usize = 1 << 30;

/// Writes a type's text form, which bowstring_type_parse reads back.
///
/// `needed` receives the bytes that the whole text takes with its NUL. Too small a buffer receives a prefix, cut between
/// characters and ended with a NUL; NULL with capacity 0 only asks for `needed`.
///
/// Ownership: the buffer is the caller's; the type is borrowed.
/// Errors: INVALID_ARGUMENT for a NULL type or a NULL buffer with a capacity. Any thread may call it.
///
/// # Safety
/// `type` is NULL or a live handle; `out` leads to `capacity` bytes; `needed` is NULL or leads to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_type_to_text(
    r#type: *const BowstringType,
    out: *mut c_char,
    capacity: usize,
    needed: *mut usize,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        // SAFETY: as the caller promises.
        unsafe {
            write_text(out, capacity, needed, report, |text, report| {
                let _ = type_of(r#type, report)?.to_text(text);
                Ok(())
            })
        }
    })
}

/// Runs a capacity call: text into the caller's buffer, and the size of the whole.
pub(crate) unsafe fn write_text(
    out: *mut c_char,
    capacity: usize,
    needed: *mut usize,
    report: &mut Report<'_>,
    write: impl FnOnce(&mut TextBuffer<'_>, &mut Report<'_>) -> Result<()>,
) -> Result<()> {
    if !needed.is_null() {
        check(needed, "a size to write to", report)?;
        // SAFETY: the pointer was checked just now.
        unsafe { needed.write(0) };
    }
    // SAFETY: as the caller promises.
    let room = unsafe { slice_mut(out, capacity, "a buffer for text", report) }?;
    let mut text = TextBuffer::over(room);
    write(&mut text, report)?;
    if !needed.is_null() {
        // SAFETY: the pointer was checked above.
        unsafe { needed.write(text.needed()) };
    }
    Ok(())
}

/// Writes a type as a schema, any number of times: one allocation, names never NULL.
///
/// Ownership: the caller releases `out`, which keeps what it needs of the type alive.
/// Errors: INVALID_ARGUMENT for NULL arguments; OUT_OF_MEMORY. Any thread may call it; any thread may release the schema.
///
/// # Safety
/// `type` is NULL or a live handle; `out` is NULL or leads to a struct's memory, which is never read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_type_export(
    r#type: *const BowstringType,
    out: *mut ArrowSchema,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        check(out, "a schema to write to", report)?;
        // SAFETY: as the caller promises.
        unsafe {
            reset(out);
            export_schema(&*type_of(r#type, report)?, report)?.into_raw().put(out);
        }
        Ok(())
    })
}

/// Says what one node of a type is. Nodes are numbered depth first: a node, its children, then its dictionary; 0 is the
/// type itself. Allocates nothing.
///
/// Ownership: the struct is the caller's; what it points to lives as long as the type.
/// Errors: INVALID_ARGUMENT for NULL arguments, a node out of range or a struct_size that is too small. Any thread may
/// call it.
///
/// # Safety
/// `type` is NULL or a live handle; `out` is NULL or as long as its struct_size says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_type_node_info(
    r#type: *const BowstringType,
    node: usize,
    out: *mut BowstringTypeNodeInfo,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        // SAFETY: as the caller promises.
        let ty = unsafe { type_of(r#type, report) }?;
        let Some(found) = ty.node(node) else {
            let message = format_args!("expected a node below {}, found {node}", ty.n_nodes());
            return Err(report.fail(Status::InvalidArgument, message));
        };
        let metadata = ty.metadata(node);
        let info = BowstringTypeNodeInfo {
            struct_size: 0,
            format: ty.format_ptr(node),
            name: ty.name_ptr(node),
            flags: found.flags,
            metadata: ty.metadata_ptr(node).cast(),
            metadata_bytes: metadata.map_or(0, |bytes| i64::try_from(bytes.len()).unwrap_or(i64::MAX)),
            n_children: wide(found.n_children),
            first_child: ty.child_index(node, 0).unwrap_or(usize::MAX),
            dictionary: relative(&ty, found.dictionary),
            subtree_end: relative(&ty, found.subtree_end),
        };
        // SAFETY: as the caller promises.
        unsafe { write_output(out, info, report) }
    })
}

fn relative(ty: &Type, absolute: u32) -> usize {
    if absolute == NONE { usize::MAX } else { wide(absolute).saturating_sub(ty.base()) }
}

fn wide(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// The type of a child.
///
/// Ownership: `*out` is borrowed from `type` and lives as long; retain it to keep it longer.
/// Errors: INVALID_ARGUMENT for NULL arguments or an index out of range. Allocates nothing. Any thread may call it.
///
/// # Safety
/// `type` is NULL or a live handle; `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_type_child(
    r#type: *const BowstringType,
    i: usize,
    out: *mut *const BowstringType,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        // SAFETY: as the caller promises.
        unsafe {
            reset_out(out.cast(), report)?;
            let ty = type_of(r#type, report)?;
            let Some(child) = ty.child(i) else {
                let found = ty.root_node().n_children;
                let message = format_args!("expected a child below {found}, found {i}");
                return Err(report.fail(Status::InvalidArgument, message));
            };
            out.write(child.address().cast());
        }
        Ok(())
    })
}

/// The type of the dictionary's values.
///
/// Ownership: `*out` is borrowed from `type` and lives as long; retain it to keep it longer.
/// Errors: INVALID_ARGUMENT for NULL arguments or a type without a dictionary. Allocates nothing. Any thread may call it.
///
/// # Safety
/// `type` is NULL or a live handle; `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_type_dictionary(
    r#type: *const BowstringType,
    out: *mut *const BowstringType,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        // SAFETY: as the caller promises.
        unsafe {
            reset_out(out.cast(), report)?;
            let ty = type_of(r#type, report)?;
            let Some(dictionary) = ty.dictionary() else {
                let message =
                    format_args!("expected a dictionary-encoded type, found one without a dictionary");
                return Err(report.fail(Status::InvalidArgument, message));
            };
            out.write(dictionary.address().cast());
        }
        Ok(())
    })
}

/// Lists the buffers that bowstring_device_array_from_buffers expects for a type, in its order.
///
/// A view's variadic buffers, of which there may be any number, are listed as one entry before that of their sizes.
/// `needed` receives the number of entries; too little room receives the first of them.
///
/// Ownership: the entries are the caller's; the type is borrowed.
/// Errors: INVALID_ARGUMENT for a NULL type, or NULL entries with a capacity. Allocates nothing. Any thread may call it.
///
/// # Safety
/// `type` is NULL or a live handle; `out` leads to `capacity` entries; `needed` is NULL or leads to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_type_layout(
    r#type: *const BowstringType,
    out: *mut BowstringLayoutEntry,
    capacity: usize,
    needed: *mut usize,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        if !needed.is_null() {
            check(needed, "a number to write to", report)?;
            // SAFETY: the pointer was checked just now.
            unsafe { needed.write(0) };
        }
        check_count(out, capacity, "entries", report)?;
        // SAFETY: as the caller promises.
        let ty = unsafe { type_of(r#type, report) }?;
        let mut n = 0usize;
        for (node, found) in ty.nodes().iter().enumerate() {
            let (slots, variadic) = (found.layout.slots(), found.layout.variadic());
            let split = if variadic.is_some() { slots.len().saturating_sub(1) } else { slots.len() };
            let (before, after) = slots.split_at_checked(split).unwrap_or((slots, &[]));
            for slot in before.iter().copied().chain(variadic).chain(after.iter().copied()) {
                if n < capacity {
                    let entry = BowstringLayoutEntry { node, role: slot.role as i32, element: slot.element };
                    // SAFETY: the caller has room for `capacity` entries.
                    unsafe { out.add(n).write(entry) };
                }
                n = n.saturating_add(1);
            }
        }
        if !needed.is_null() {
            // SAFETY: the pointer was checked above.
            unsafe { needed.write(n) };
        }
        Ok(())
    })
}

/// Whether two types are the same; `flags` are BOWSTRING_TYPE_IGNORE_*. NULL equals nothing, not even NULL.
///
/// Ownership: both are borrowed for the call. Allocates nothing. Any thread may call it.
///
/// # Safety
/// Each pointer is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_type_equals(
    a: *const BowstringType,
    b: *const BowstringType,
    flags: u32,
) -> bool {
    guard_or(false, || {
        let mut quiet = Report::silent();
        // SAFETY: as the caller promises.
        match unsafe { (type_of(a, &mut quiet), type_of(b, &mut quiet)) } {
            (Ok(a), Ok(b)) => a.equals(&b, flags),
            _ => false,
        }
    })
}

/// One handle more on the same type; returns `type`. NULL gives NULL. A child of a parsed type may be retained as well.
///
/// Ownership: the caller releases the result as well. Allocates nothing and cannot fail. Any thread may call it.
///
/// # Safety
/// `type` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_type_retain(r#type: *const BowstringType) -> *mut BowstringType {
    guard_or(core::ptr::null_mut(), || {
        // SAFETY: as the caller promises.
        let handle = unsafe { type_of(r#type, &mut Report::silent()) };
        handle.map_or(core::ptr::null_mut(), |handle| handle_of(Type::clone(&handle)))
    })
}

/// Lets one handle go. NULL is fine.
///
/// Ownership: the handle is gone afterwards. Any thread may call it, also while others use further handles.
///
/// # Safety
/// `type` is NULL or a live handle that the caller owns, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_type_release(r#type: *mut BowstringType) {
    guard_or((), || {
        // SAFETY: as the caller promises.
        if let Ok(handle) = unsafe { type_of(r#type, &mut Report::silent()) } {
            drop(ManuallyDrop::into_inner(handle));
        }
    });
}
