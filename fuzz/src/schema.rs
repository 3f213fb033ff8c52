//! Raw schemas, broken in every way that their own numbers let a reader see.

use core::ffi::c_char;
use core::ptr::{null, null_mut};
use std::sync::OnceLock;

use bowstring::schema::{BOWSTRING_MAX_FORMAT, BOWSTRING_MAX_METADATA, BOWSTRING_MAX_NAME};
use bowstring::validate::{BowstringValidateOptions, bowstring_schema_validate};
use bowstring_core::abi::{ArrowSchema, Device};

use super::calls::{Alive, check, options};
use super::input::Input;
use super::memory::Memory;
use super::types::{Type, look};

/// Makes a tree of schemas of the bytes: the validator and the copy must agree on it, and what was copied must be sound.
pub fn run(bytes: &[u8]) {
    let before = Alive::now();
    {
        let mut memory = Memory::default();
        let mut maker =
            Maker { input: Input::new(bytes), n_nodes: 0, root: null_mut(), is_tied: false, is_plain: true };
        let consumer = maker.input.byte();
        let root = if maker.input.rarely(4) {
            maker.chain(&mut memory)
        } else {
            maker.tree(1, Place::Any, &mut memory)
        };
        judge(root, maker.is_plain, consumer);
    }
    assert_eq!(Alive::now(), before, "nothing is left over");
}

fn judge(schema: *const ArrowSchema, is_plain: bool, consumer: u8) {
    // SAFETY: the schema is as the interface says, faults apart that it tells of itself.
    let run = |options: *const BowstringValidateOptions, error| unsafe {
        bowstring_schema_validate(schema, options, error)
    };
    let verdict = check(options(0, 0, 0), run);
    let (copied, ty) = Type::copy_from(schema);
    assert_eq!(verdict.is_ok(), copied.is_ok(), "checked: {}, copied: {}", verdict.text(), copied.text());
    let (profile, as_table) = (1 + i32::from(consumer % 3), i32::from(consumer & 0x40));
    let assume_device = Device { r#type: [0, 1, 2, 13][usize::from(consumer >> 4 & 3)], id: 0 };
    let told = check(BowstringValidateOptions { as_table, assume_device, ..options(0, profile, 0) }, run);
    assert!(verdict.is_ok() || !told.is_ok(), "no consumer takes what is no type");
    if let Some(ty) = ty {
        look(&ty, is_plain);
    }
}

struct Maker<'a> {
    input: Input<'a>,
    n_nodes: usize,
    root: *mut ArrowSchema,
    /// Whether some child is the root again; one such knot is unrolled as deep as the limit, two for ever.
    is_tied: bool,
    /// Whether every flag that is set means something where it is.
    is_plain: bool,
}

/// What a parent prescribes of a child.
#[derive(Clone, Copy)]
enum Place {
    Any,
    Entries,
    Key,
    RunEnds,
    Index,
}

unsafe extern "C" fn release(_: *mut ArrowSchema) {
    panic!("a schema that is borrowed is not released");
}

const LEAVES: [&str; 45] = [
    "i",
    "n",
    "b",
    "c",
    "C",
    "s",
    "S",
    "I",
    "l",
    "L",
    "e",
    "f",
    "g",
    "z",
    "Z",
    "u",
    "U",
    "vz",
    "vu",
    "tdD",
    "tdm",
    "tts",
    "ttm",
    "ttu",
    "ttn",
    "tDs",
    "tDm",
    "tDu",
    "tDn",
    "tiM",
    "tiD",
    "tin",
    "tss:",
    "tsm:UTC",
    "tsu:Europe/Paris",
    "tsn:+01:00",
    "d:9,2",
    "d:38,-4",
    "d:9,0,32",
    "d:18,3,64",
    "d:76,10,256",
    "w:16",
    "w:0",
    "+s",
    "",
];
const NESTED: [&str; 12] =
    ["+s", "+l", "+L", "+vl", "+vL", "+w:3", "+m", "+ud:0,1", "+us:5,3,7", "+r", "+ud:", "+w:0"];
const FAMILIES: [&str; 12] = ["d:", "w:", "+w:", "+ud:", "+us:", "tss:", "tsn:", "tt", "td", "ti", "+v", "v"];

impl Maker<'_> {
    /// Many levels, one below the other, around the limit.
    fn chain(&mut self, memory: &mut Memory) -> *mut ArrowSchema {
        let levels = 60 + self.input.below(10);
        let mut below: *mut ArrowSchema = null_mut();
        for _ in 0..levels {
            let mut schema = self.plain(b"+l", memory);
            if below.is_null() {
                schema = self.plain(b"i", memory);
            } else if self.input.rarely(8) {
                schema.format = string(b"i", memory);
                schema.dictionary = below;
            } else {
                schema.n_children = 1;
                schema.children = memory.list(vec![below]);
            }
            below = memory.value(schema);
        }
        below
    }

    fn plain(&self, format: &[u8], memory: &mut Memory) -> ArrowSchema {
        ArrowSchema {
            format: string(format, memory),
            name: null(),
            metadata: null(),
            flags: 2,
            n_children: 0,
            children: null_mut(),
            dictionary: null_mut(),
            release: Some(release),
            private_data: null_mut(),
        }
    }

    fn tree(&mut self, level: usize, place: Place, memory: &mut Memory) -> *mut ArrowSchema {
        self.n_nodes += 1;
        // The place comes first, so that what is below can lead back to it.
        let mut schema = self.plain(b"i", memory);
        // SAFETY: a bitwise copy of a struct that has no destructor.
        let at = memory.value(unsafe { core::ptr::read(&raw const schema) });
        if level == 1 {
            self.root = at;
        }
        let has_dictionary = !matches!(place, Place::Entries | Place::RunEnds) && self.input.rarely(32);
        let format = self.format(level, if has_dictionary { Place::Index } else { place });
        schema.format = format.as_deref().map_or(null(), |format| string(format, memory));
        schema.name = self.name(memory);
        let format = format.unwrap_or_default();
        let wanted = match place {
            Place::Entries => 2,
            _ => prescribed(&format),
        };
        let n = match self.input.byte() {
            // A struct takes any number.
            few @ 0..=239 if wanted == usize::MAX => usize::from(few) % 6,
            0..=239 => wanted.min(8),
            any => usize::from(any) % 5,
        };
        self.children(&mut schema, n, place, &format, level, memory);
        if has_dictionary {
            schema.dictionary = self.below(level, Place::Any, memory);
        }
        schema.flags = self.flags(&format, place, has_dictionary);
        if self.input.rarely(48) {
            schema.metadata = self.metadata(memory);
        }
        if self.input.rarely(3) {
            schema.release = None;
        }
        // SAFETY: the place was made above.
        unsafe { at.write(schema) };
        at
    }

    fn format(&mut self, level: usize, place: Place) -> Option<Vec<u8>> {
        let kind = self.input.byte();
        let is_small = level < 6 && self.n_nodes < 40;
        let known = match (kind, place) {
            (0..=200, Place::Entries) => "+s",
            (0..=200, Place::RunEnds) => ["i", "s", "l"][self.input.below(3)],
            (0..=200, Place::Index) => ["i", "c", "C", "s", "S", "I", "l", "L"][self.input.below(8)],
            (0..=200, _) if is_small && kind & 1 == 1 => NESTED[self.input.below(NESTED.len())],
            (0..=200, _) => LEAVES[self.input.below(LEAVES.len())],
            (201..=225, _) => {
                let mut format = FAMILIES[self.input.below(FAMILIES.len())].as_bytes().to_vec();
                let n = self.input.below(24);
                format.extend(self.input.take(n));
                return Some(format);
            }
            (226..=240, _) => {
                let from = if kind & 1 == 0 { &LEAVES[..] } else { &NESTED[..] };
                let mut format = from[self.input.below(from.len())].as_bytes().to_vec();
                let at = self.input.below(format.len());
                if let Some(byte) = format.get_mut(at) {
                    *byte = self.input.byte();
                }
                return Some(format);
            }
            (241..=253, _) if kind < 253 || self.n_nodes > 2 => {
                let n = self.input.below(40);
                return Some(self.input.take(n).to_vec());
            }
            (253, _) => {
                let n = BOWSTRING_MAX_FORMAT + self.input.below(3) - 1;
                return Some([&b"tsu:"[..], &vec![b'Z'; n - 4]].concat());
            }
            _ => return None,
        };
        Some(known.as_bytes().to_vec())
    }

    fn name(&mut self, memory: &mut Memory) -> *const c_char {
        const NAMES: [&str; 12] = [
            "", "a", "item", "entries", "key", "value", "run_ends", "values", "not null", "9", "a b", "null",
        ];
        match self.input.byte() {
            0..=79 => null(),
            byte @ 80..=199 => string(NAMES[usize::from(byte) % NAMES.len()].as_bytes(), memory),
            // Reading a name that is as long as it may be, or longer, takes a while; in a circle it takes minutes.
            byte @ 254.. if self.n_nodes == 2 && !self.is_tied => {
                self.is_tied = true;
                static LONG: OnceLock<Vec<u8>> = OnceLock::new();
                let long = LONG.get_or_init(|| {
                    let mut text = vec![b'x'; BOWSTRING_MAX_NAME + 1];
                    text.push(0);
                    text
                });
                long[usize::from(byte & 1)..].as_ptr().cast()
            }
            _ => {
                let n = self.input.below(20);
                string(self.input.take(n), memory)
            }
        }
    }

    fn flags(&mut self, format: &[u8], place: Place, has_dictionary: bool) -> i64 {
        let usual = if matches!(place, Place::Any) { 2 } else { 0 };
        let flags = match self.input.byte() {
            0..=159 => usual,
            byte @ 160..=239 => i64::from(byte) & 7,
            _ => self.input.number(),
        };
        let is_map = format == b"+m" && !has_dictionary;
        let is_meant = flags & !7 == 0 && (flags & 1 == 0 || has_dictionary) && (flags & 4 == 0 || is_map);
        self.is_plain &= is_meant;
        flags
    }

    fn children(
        &mut self,
        schema: &mut ArrowSchema,
        n: usize,
        place: Place,
        format: &[u8],
        level: usize,
        memory: &mut Memory,
    ) {
        let mut list = Vec::new();
        for i in 0..n {
            let child = match (format, place, i) {
                (b"+m", _, 0) => Place::Entries,
                (b"+r", _, 0) => Place::RunEnds,
                (_, Place::Entries, 0) => Place::Key,
                _ => Place::Any,
            };
            list.push(self.below(level, child, memory));
        }
        schema.n_children = i64::try_from(n).expect("a small number");
        if n > 0 {
            schema.children = memory.list(list);
        }
        if !self.input.rarely(12) {
            return;
        }
        match self.input.below(6) {
            0 => schema.children = null_mut(),
            1 => schema.n_children = -self.input.number().saturating_abs(),
            2 => schema.n_children = schema.n_children.saturating_sub(1),
            // More than there may be: no list is looked at.
            3 => schema.n_children = (1 << 24) + 1 + i64::from(self.input.byte()),
            // A number without a list.
            4 => (schema.children, schema.n_children) = (null_mut(), self.input.number()),
            _ => schema.children = schema.children.wrapping_byte_add(1 + self.input.below(7)),
        }
    }

    /// A pointer to a schema, or what is found in place of one.
    fn below(&mut self, level: usize, place: Place, memory: &mut Memory) -> *mut ArrowSchema {
        match self.input.byte() {
            255 => null_mut(),
            // Nothing is read where no struct can be.
            254 => core::ptr::dangling_mut::<ArrowSchema>().wrapping_byte_add(3),
            253 if !self.is_tied => {
                self.is_tied = true;
                self.root
            }
            _ if self.n_nodes > 60 || level > 66 => {
                let leaf = self.plain(b"i", memory);
                memory.value(leaf)
            }
            _ => self.tree(level + 1, place, memory),
        }
    }

    /// Metadata in memory that ends where its own numbers say, or where a reader has to give up.
    fn metadata(&mut self, memory: &mut Memory) -> *const c_char {
        const WORDS: [&str; 10] = [
            "ARROW:extension:name",
            "ARROW:extension:metadata",
            "arrow.bool8",
            "arrow.uuid",
            "arrow.json",
            "arrow.fixed_shape_tensor",
            "arrow.variable_shape_tensor",
            "arrow.parquet.variant",
            "arrow.timestamp_with_offset",
            "k",
        ];
        let mut bytes = Vec::new();
        let skew = self.input.below(4);
        let limit = i32::try_from(BOWSTRING_MAX_METADATA).expect("it fits");
        let pairs = match self.input.byte() {
            few @ 0..=239 => i32::from(few) % 4,
            240..=247 => -1 - i32::from(self.input.byte()),
            248..=251 => i32::MAX - i32::from(self.input.byte()),
            // The most pairs for which no string is read are one more than this many.
            _ => limit / 8 + 1,
        };
        bytes.extend(pairs.to_ne_bytes());
        let strings = if pairs < 4 { 2 * pairs.max(0) } else { 0 };
        for _ in 0..strings {
            let word = match self.input.byte() {
                byte @ 0..=119 => WORDS[usize::from(byte) % WORDS.len()].as_bytes(),
                120..=239 => {
                    let n = self.input.below(30);
                    self.input.take(n)
                }
                byte => {
                    // The string is not looked at, and nothing behind it.
                    let length = if byte & 1 == 0 { -1 - i32::from(byte) } else { limit + i32::from(byte) };
                    bytes.extend(length.to_ne_bytes());
                    break;
                }
            };
            bytes.extend(i32::try_from(word.len()).expect("a small number").to_ne_bytes());
            bytes.extend(word);
        }
        memory.bytes(&bytes, skew).cast()
    }
}

/// The number of children that a format wants, by the specification's text; `usize::MAX` for any.
fn prescribed(format: &[u8]) -> usize {
    match format {
        b"+s" => usize::MAX,
        b"+r" => 2,
        [b'+', b'u', _, b':'] => 0,
        [b'+', b'u', _, b':', ids @ ..] => ids.iter().filter(|byte| **byte == b',').count() + 1,
        [b'+', ..] => 1,
        _ => 0,
    }
}

fn string(text: &[u8], memory: &mut Memory) -> *const c_char {
    memory.bytes(&[text, &[0]].concat(), 0).cast()
}
