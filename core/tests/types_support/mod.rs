//! Raw schemas that a test owns: flat, so that none of them is too deep to be freed.
#![allow(
    dead_code,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::result_large_err,
    reason = "each test file uses its own part, and tests may fail hard"
)]

use std::ffi::CString;
use std::ptr::null_mut;

use bowstring_core::abi::{ArrowSchema, SchemaView};
use bowstring_core::error::{ErrorRecord, capture};
use bowstring_core::types::Type;

/// Never called: types are copied from the schemas, and the tests free what they made.
unsafe extern "C" fn not_ours_to_call(_: *mut ArrowSchema) {
    std::process::abort();
}

/// Owner of raw schemas and all that they point to.
#[derive(Default)]
pub struct Schemas {
    nodes: Vec<*mut ArrowSchema>,
    strings: Vec<CString>,
    bytes: Vec<Vec<u8>>,
    lists: Vec<Vec<*mut ArrowSchema>>,
}

/// A pointer to a schema that a `Schemas` owns.
pub type Raw = *mut ArrowSchema;

impl Schemas {
    /// A nullable field.
    pub fn field(&mut self, format: &str, name: &str, children: &[Raw]) -> Raw {
        self.add(format.as_bytes(), Some(name.as_bytes()), 2, children)
    }

    /// A field with everything but metadata and dictionary.
    pub fn add(&mut self, format: &[u8], name: Option<&[u8]>, flags: i64, children: &[Raw]) -> Raw {
        let format = CString::new(format).unwrap();
        let name = name.map(|name| CString::new(name).unwrap());
        self.lists.push(children.to_vec());
        let list = self.lists.last_mut().unwrap();
        let schema = ArrowSchema {
            format: format.as_ptr(),
            name: name.as_ref().map_or(null_mut(), |name| name.as_ptr().cast_mut()),
            metadata: null_mut(),
            flags,
            n_children: children.len() as i64,
            children: if children.is_empty() { null_mut() } else { list.as_mut_ptr() },
            dictionary: null_mut(),
            release: Some(not_ours_to_call),
            private_data: null_mut(),
        };
        self.strings.push(format);
        self.strings.extend(name);
        self.nodes.push(Box::into_raw(Box::new(schema)));
        *self.nodes.last().unwrap()
    }

    /// Gives a schema metadata, `shift` bytes after an aligned address.
    pub fn metadata(&mut self, schema: Raw, encoded: &[u8], shift: usize) -> Raw {
        let mut bytes = Vec::with_capacity(encoded.len() + 16);
        let ahead = (8 - bytes.as_ptr() as usize % 8) % 8 + shift;
        bytes.resize(ahead, 0xEE);
        bytes.extend_from_slice(encoded);
        raw(schema).metadata = bytes[ahead..].as_ptr().cast();
        self.bytes.push(bytes);
        schema
    }

    /// A copy of a type as raw schemas.
    pub fn copy(&mut self, of: &Type) -> Raw {
        let children: Vec<Raw> = (0..).map_while(|i| of.child(i)).map(|child| self.copy(&child)).collect();
        let schema = self.add(of.format_text(0), Some(of.name(0)), of.root_node().flags, &children);
        if let Some(encoded) = of.metadata(0) {
            self.metadata(schema, encoded, 3);
        }
        if let Some(values) = of.dictionary() {
            raw(schema).dictionary = self.copy(&values);
        }
        schema
    }
}

impl Drop for Schemas {
    fn drop(&mut self) {
        for node in &self.nodes {
            // SAFETY: each came from `Box::into_raw` and is freed here only.
            drop(unsafe { Box::from_raw(*node) });
        }
    }
}

/// The struct behind a pointer.
pub fn raw<'a>(schema: Raw) -> &'a mut ArrowSchema {
    // SAFETY: the tests use these while their owner lives, one at a time.
    unsafe { &mut *schema }
}

/// The first child of a schema that has one.
pub fn child(schema: Raw) -> Raw {
    // SAFETY: the list has as many pointers as the test gave it.
    unsafe { raw(schema).children.read() }
}

/// Imports a schema.
pub fn import(schema: Raw) -> Result<Type, ErrorRecord> {
    // SAFETY: the tests' schemas are what the interface says, but for the faults that the struct itself shows.
    capture(|report| Type::from_schema(unsafe { SchemaView::new(raw(schema)) }, report))
}

/// Parses text.
pub fn parse(text: &str) -> Result<Type, ErrorRecord> {
    capture(|report| Type::parse(text.as_bytes(), report))
}

/// The type that a text stands for.
#[track_caller]
pub fn ty(text: &str) -> Type {
    parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The text form.
pub fn text(of: &Type) -> String {
    let mut out = String::new();
    of.to_text(&mut out).unwrap();
    out
}

/// Metadata as the C interface encodes it, without the library's encoder.
pub fn encode(pairs: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut out = (pairs.len() as i32).to_ne_bytes().to_vec();
    for (key, value) in pairs {
        for string in [key, value] {
            out.extend((string.len() as i32).to_ne_bytes());
            out.extend_from_slice(string);
        }
    }
    out
}

/// Numbers that look random and are the same each time.
pub struct Numbers(pub u64);

impl Numbers {
    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
