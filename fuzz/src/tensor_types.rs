//! The types that tensors are asked to be arrays of: fitting ones, nearly fitting ones, and any.

use core::ptr::{null, null_mut};

use bowstring_core::abi::ArrowSchema;

use super::dlpack::Given;
use super::input::Input;
use super::kinds::{Kind, Node};
use super::memory::Memory;
use super::types::Type;

/// What an array is asked to be.
pub struct Asked {
    /// None is for the library to choose.
    pub ty: Option<Type>,
    /// Whether it is the type that follows from the tensor alone.
    pub is_plain: bool,
    /// Whether bytes become bits.
    pub packs: bool,
}

const NUMBERS: [(u8, u8, &str); 12] = [
    (0, 8, "c"),
    (0, 16, "s"),
    (0, 32, "i"),
    (0, 64, "l"),
    (1, 8, "C"),
    (1, 16, "S"),
    (1, 32, "I"),
    (1, 64, "L"),
    (2, 16, "e"),
    (2, 32, "f"),
    (2, 64, "g"),
    (6, 8, "c"),
];

/// Chooses a type.
pub fn ask(given: &Given, choice: u8, input: &mut Input<'_>) -> Asked {
    let mut memory = Memory::default();
    let number = NUMBERS.iter().find(|number| (number.0, number.1) == (given.dtype.code, given.dtype.bits));
    let number = number.map_or("i", |number| number.2);
    let lists: Vec<i64> = given.shape.iter().skip(1).copied().collect();
    let (mut is_plain, mut packs) = (false, false);
    let schema = match choice % 8 {
        0 | 1 => return Asked { ty: None, is_plain: true, packs: false },
        2 => {
            is_plain = true;
            nested(&mut memory, &lists, leaf(number))
        }
        3 | 4 => {
            // The extension starts at the rows, or within lists.
            let from = input.below(3).min(lists.len());
            let (above, own) = lists.split_at(from);
            let steps: Vec<i128> = given.steps().into_iter().skip(1 + from).collect();
            let fixed = fixed_shape(&mut memory, own, &steps, number, choice % 8 == 4, input);
            nested(&mut memory, above, fixed)
        }
        5 => {
            packs = given.dtype.code == 6;
            nested(&mut memory, &lists, leaf("b"))
        }
        6 => {
            let (lists, format) = physical(given, lists, input);
            nested(&mut memory, &lists, leaf(&format))
        }
        _ => {
            let node = Node::new(input, 1, &mut 12);
            let (outcome, ty) = Type::copy_from(node.schema(&mut memory));
            outcome.must("a type of the grammar");
            let mut leaf = &node;
            while let (Kind::FixedList(_), [child]) = (&leaf.kind, leaf.children.as_slice()) {
                leaf = child;
            }
            return Asked { ty, is_plain: false, packs: given.dtype.code == 6 && leaf.format == "b" };
        }
    };
    let schema = schema.into_raw(&mut memory);
    let at = memory.value(schema);
    let ty = Type::copy_from(at).1;
    if ty.is_none() {
        // Lists are not as long as dimensions may be.
        (is_plain, packs) = (true, false);
    }
    Asked { ty, is_plain, packs }
}

/// A schema to be.
struct Schema {
    format: String,
    metadata: Vec<u8>,
    child: Option<*mut ArrowSchema>,
}

fn leaf(format: &str) -> Schema {
    Schema { format: format.to_owned(), metadata: Vec::new(), child: None }
}

fn list(memory: &mut Memory, n: i64, child: Schema) -> Schema {
    let child = child.into_raw(memory);
    Schema { format: format!("+w:{n}"), metadata: Vec::new(), child: Some(memory.value(child)) }
}

fn nested(memory: &mut Memory, lists: &[i64], inmost: Schema) -> Schema {
    lists.iter().rev().fold(inmost, |child, n| list(memory, *n, child))
}

/// Formats of the element's width that are no numbers.
fn physical(given: &Given, mut lists: Vec<i64>, input: &mut Input<'_>) -> (Vec<i64>, String) {
    let of = |formats: &[&str], input: &mut Input<'_>| formats[input.below(formats.len())].to_owned();
    let format = match (given.dtype.code, given.dtype.bits, lists.last().copied()) {
        (0, 32, Some(2)) if input.rarely(128) => {
            lists.pop();
            "tiD".to_owned()
        }
        (0, 32, _) => of(&["tdD", "tts", "tiM", "d:9,2,32"], input),
        (0, 64, _) => of(&["tsn:UTC", "tdm", "ttn", "tDs", "d:5,0,64"], input),
        (1, 8, Some(16)) => {
            lists.pop();
            of(&["d:38,2", "tin", "w:16", "vu", "vz"], input)
        }
        (1, 8, Some(n)) => {
            lists.pop();
            format!("w:{n}")
        }
        _ => of(&["tdD", "u", "n", "tsn:"], input),
    };
    (lists, format)
}

/// A fixed-shape tensor of these dimensions, which lie in memory as they do in the tensor, or as they are counted.
fn fixed_shape(
    memory: &mut Memory,
    lengths: &[i64],
    steps: &[i128],
    number: &str,
    has_permutation: bool,
    input: &mut Input<'_>,
) -> Schema {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    if has_permutation {
        order.sort_by_key(|i| core::cmp::Reverse(steps.get(*i).copied()));
        if input.rarely(48) && order.len() > 1 {
            order.swap(0, 1);
        }
    }
    let shape: Vec<i64> = order.iter().map(|i| lengths[*i]).collect();
    let mut json = format!("{{\"shape\":{shape:?}");
    if has_permutation {
        let place = |i: usize| order.iter().position(|from| *from == i).expect("each is there once");
        let permutation: Vec<usize> = (0..order.len()).map(place).collect();
        json.push_str(&format!(",\"permutation\":{permutation:?}"));
    }
    if input.rarely(24) {
        json.push_str(",\"dim_names\":[\"a\",\"\\\"]\"]");
    }
    json.push('}');
    let mut json = json.into_bytes();
    if input.rarely(16) {
        let at = input.below(json.len());
        json[at] = input.byte();
    }
    let product: i128 = shape.iter().fold(1, |n, length| n.saturating_mul(i128::from(*length)));
    let child = leaf(number).into_raw(memory);
    let child = Some(memory.value(child));
    let metadata = metadata(&[
        (b"ARROW:extension:name", b"arrow.fixed_shape_tensor"),
        (b"ARROW:extension:metadata", &json),
    ]);
    Schema { format: format!("+w:{}", product.clamp(0, 1 << 40)), metadata, child }
}

fn metadata(pairs: &[(&[u8], &[u8])]) -> Vec<u8> {
    let count = |n: usize| i32::try_from(n).expect("it is short").to_ne_bytes();
    let mut bytes = count(pairs.len()).to_vec();
    for text in pairs.iter().flat_map(|(key, value)| [*key, *value]) {
        bytes.extend(count(text.len()));
        bytes.extend(text);
    }
    bytes
}

impl Schema {
    /// As a struct in that memory; nobody releases it.
    fn into_raw(self, memory: &mut Memory) -> ArrowSchema {
        unsafe extern "C" fn release(_: *mut ArrowSchema) {
            panic!("a schema that is borrowed is not released");
        }
        let format = memory.bytes(&[self.format.as_bytes(), &[0]].concat(), 0);
        ArrowSchema {
            format: format.cast(),
            name: memory.bytes(b"item\0", 0).cast(),
            metadata: if self.metadata.is_empty() { null() } else { memory.bytes(&self.metadata, 0).cast() },
            flags: 2,
            n_children: i64::from(self.child.is_some()),
            children: self.child.map_or(null_mut(), |child| memory.value(child)),
            dictionary: null_mut(),
            release: Some(release),
            private_data: null_mut(),
        }
    }
}
