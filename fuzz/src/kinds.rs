//! Types for arrays, and what their buffers hold by the columnar format's own text: not by the library's table.

use core::ptr::{null, null_mut};

use bowstring_core::abi::ArrowSchema;

use super::input::Input;
use super::memory::Memory;

/// What an array of a type consists of.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Null,
    Bits,
    /// Values of so many bytes.
    Fixed(usize),
    Text {
        wide: bool,
    },
    View,
    List {
        wide: bool,
    },
    ListView {
        wide: bool,
    },
    FixedList(usize),
    Struct,
    Dense(Vec<u8>),
    Sparse(Vec<u8>),
    RunEnds,
}

/// A type's node.
#[derive(Clone, Debug)]
pub struct Node {
    pub format: String,
    pub kind: Kind,
    pub flags: i64,
    pub name: &'static str,
    pub children: Vec<Node>,
    pub dictionary: Option<Box<Node>>,
}

const FIXED: [(&str, usize); 34] = [
    ("i", 4),
    ("c", 1),
    ("C", 1),
    ("s", 2),
    ("S", 2),
    ("I", 4),
    ("l", 8),
    ("L", 8),
    ("e", 2),
    ("f", 4),
    ("g", 8),
    ("tdD", 4),
    ("tdm", 8),
    ("tts", 4),
    ("ttm", 4),
    ("ttu", 8),
    ("ttn", 8),
    ("tss:", 8),
    ("tsn:UTC", 8),
    ("tDs", 8),
    ("tDn", 8),
    ("tiM", 4),
    ("tiD", 8),
    ("tin", 16),
    ("d:9,2,32", 4),
    ("d:5,0,64", 8),
    ("d:38,2", 16),
    ("d:3,-2,128", 16),
    ("d:76,4,256", 32),
    ("d:40,0,256", 32),
    ("w:0", 0),
    ("w:1", 1),
    ("w:3", 3),
    ("w:70000", 70_000),
];
const INDICES: [(&str, usize); 8] =
    [("i", 4), ("c", 1), ("C", 1), ("s", 2), ("S", 2), ("I", 4), ("l", 8), ("L", 8)];
const NAMES: [&str; 4] = ["", "a", "b", "item"];

impl Node {
    /// A type with few levels.
    pub fn new(input: &mut Input<'_>, level: usize, room: &mut usize) -> Node {
        *room = room.saturating_sub(1);
        let nested = if level < 5 && *room > 0 { 26 } else { 14 };
        // Dictionaries of dictionaries end too.
        let choice = input.below(if level > 8 { 12 } else { nested });
        let mut below = |input: &mut Input<'_>| Node::new(input, level + 1, room);
        let (format, kind, children) = match choice {
            0..=6 => {
                let (format, width) = FIXED[input.below(FIXED.len())];
                (format.to_owned(), Kind::Fixed(width), Vec::new())
            }
            7 => ("b".to_owned(), Kind::Bits, Vec::new()),
            8 => ("n".to_owned(), Kind::Null, Vec::new()),
            9 => (["u", "z"][input.below(2)].to_owned(), Kind::Text { wide: false }, Vec::new()),
            10 => (["U", "Z"][input.below(2)].to_owned(), Kind::Text { wide: true }, Vec::new()),
            11 => (["vu", "vz"][input.below(2)].to_owned(), Kind::View, Vec::new()),
            12 | 13 => {
                let (format, width) = INDICES[input.below(INDICES.len())];
                let mut node = Node::leaf(format, Kind::Fixed(width));
                node.dictionary = Some(Box::new(Node::new(input, level.max(3) + 1, room)));
                return node.adorned(input);
            }
            14 | 15 => {
                let n = input.below(5);
                ("+s".to_owned(), Kind::Struct, (0..n).map(|_| below(input)).collect())
            }
            16 | 17 => {
                let wide = choice == 17;
                ((if wide { "+L" } else { "+l" }).to_owned(), Kind::List { wide }, vec![below(input)])
            }
            18 | 19 => {
                let wide = choice == 19;
                ((if wide { "+vL" } else { "+vl" }).to_owned(), Kind::ListView { wide }, vec![below(input)])
            }
            20 => {
                let n = [2, 1, 0, 3, 1000][input.below(5)];
                (format!("+w:{n}"), Kind::FixedList(n), vec![below(input)])
            }
            21 => return Node::map(below(input), below(input)).adorned(input),
            22 | 23 => {
                let mut ids: Vec<u8> =
                    (0..input.below(5)).map(|id| u8::try_from(id).expect("it is small")).collect();
                if input.rarely(100) {
                    ids.iter_mut().for_each(|id| *id = 127 - *id * 3);
                }
                let list = ids.iter().map(u8::to_string).collect::<Vec<_>>().join(",");
                let children = ids.iter().map(|_| below(input)).collect();
                match choice {
                    22 => (format!("+ud:{list}"), Kind::Dense(ids), children),
                    _ => (format!("+us:{list}"), Kind::Sparse(ids), children),
                }
            }
            _ => {
                let ends = [("i", 4), ("s", 2), ("l", 8)][input.below(3)];
                let mut ends = Node::leaf(ends.0, Kind::Fixed(ends.1));
                ends.flags = 0;
                let values = below(input);
                let values =
                    if values.kind == Kind::RunEnds { Node::leaf("i", Kind::Fixed(4)) } else { values };
                ("+r".to_owned(), Kind::RunEnds, vec![ends, values])
            }
        };
        Node { format, kind, flags: 2, name: "", children, dictionary: None }.adorned(input)
    }

    fn leaf(format: &str, kind: Kind) -> Node {
        Node { format: format.to_owned(), kind, flags: 2, name: "", children: Vec::new(), dictionary: None }
    }

    fn map(key: Node, value: Node) -> Node {
        let key = Node { flags: 0, name: "key", ..key };
        let entries =
            Node { flags: 0, name: "entries", children: vec![key, value], ..Node::leaf("+s", Kind::Struct) };
        Node { children: vec![entries], ..Node::leaf("+m", Kind::List { wide: false }) }
    }

    fn adorned(mut self, input: &mut Input<'_>) -> Node {
        let byte = input.byte();
        self.name = NAMES[usize::from(byte) % NAMES.len()];
        if byte & 0xc0 == 0xc0 {
            self.flags = 0;
        }
        self
    }

    /// As a schema in that memory; nobody releases it.
    pub fn schema(&self, memory: &mut Memory) -> *mut ArrowSchema {
        unsafe extern "C" fn release(_: *mut ArrowSchema) {
            panic!("a schema that is borrowed is not released");
        }
        let string = |text: &str, memory: &mut Memory| memory.bytes(&[text.as_bytes(), &[0]].concat(), 0);
        let children: Vec<_> = self.children.iter().map(|child| child.schema(memory)).collect();
        let schema = ArrowSchema {
            format: string(&self.format, memory).cast(),
            name: string(self.name, memory).cast(),
            metadata: null(),
            flags: self.flags,
            n_children: i64::try_from(children.len()).expect("few"),
            children: memory.list(children),
            dictionary: self.dictionary.as_ref().map_or(null_mut(), |values| values.schema(memory)),
            release: Some(release),
            private_data: null_mut(),
        };
        memory.value(schema)
    }

    /// Whether arrays of the type start with a validity bitmap.
    pub fn has_validity(&self) -> bool {
        !matches!(self.kind, Kind::Null | Kind::Dense(_) | Kind::Sparse(_) | Kind::RunEnds)
    }
}
