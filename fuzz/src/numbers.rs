//! The structs of arrays: numbers, lists and pointers, right as long as the input says nothing else.

use core::ffi::c_void;
use core::ptr::null_mut;

use bowstring_core::abi::ArrowArray;

use super::contents::{Meaning, broken, cycled, fixed, number_at, offsets, packed, text, views};
use super::input::Input;
use super::kinds::{Kind, Node};
use super::memory::{Memory, read_past};

/// Makes arrays of a type in memory that is as long as their own numbers say, and not a byte longer.
pub struct Builder<'i, 'm> {
    pub input: Input<'i>,
    pub memory: &'m mut Memory,
    /// The most bytes of one buffer.
    pub cap: i64,
    /// Whether some struct promises more bytes than there are here: no buffer may be read then.
    pub is_too_large: bool,
    /// The most rows of any node. Where there are no buffers, there may be any number.
    pub most_rows: i64,
}

/// What a parent needs of a node.
#[derive(Clone, Copy)]
pub struct Wanted {
    pub length: i64,
    pub meaning: Meaning,
}

/// A node's struct, and what its parent and its buffers go by.
pub struct Built {
    pub array: ArrowArray,
    /// The number of nulls that its bitmap shows, where it shows any.
    pub nulls: i64,
}

unsafe extern "C" fn release_child(_: *mut ArrowArray) {
    panic!("a child is released by its root's producer alone");
}

impl Builder<'_, '_> {
    /// The struct of a node with all that is below it.
    pub fn node(&mut self, node: &Node, wanted: Wanted) -> Built {
        let mut offset = if self.input.rarely(96) { i64::from(self.input.byte() % 12) } else { 0 };
        let mut length = wanted.length;
        if self.input.rarely(32) {
            // A window that leaves out some of what is there, or a child with more values than its parent needs.
            length += i64::from(self.input.byte() % 5);
        }
        let mut meaning = wanted.meaning;
        if let Meaning::Ends { reach, .. } = meaning {
            meaning = Meaning::Ends { reach, n: offset.saturating_add(length) };
        }
        let broken = if self.input.rarely(8) { 1 + self.input.below(7) } else { 0 };
        match broken {
            1 => length = self.input.number(),
            2 => offset = self.input.number(),
            _ => {}
        }
        let rows = rows_of(length, offset);
        self.most_rows = self.most_rows.max(rows.unwrap_or(0));
        let (children, lengths) = self.children(node, rows);
        let dictionary = node.dictionary.as_ref().map(|values| {
            let n = i64::from(self.input.byte() % 9);
            (self.node(values, Wanted { length: n, meaning: Meaning::Values { step: 1 } }), n)
        });
        if let Some((_, n)) = &dictionary {
            meaning = Meaning::Indices(*n);
        }
        if node.format == "tdm" {
            meaning = Meaning::Values { step: 86_400_000 };
        }
        let (nulls, mut null_count, validity) = self.validity(node, length, offset, rows);
        let mut buffers = Vec::new();
        buffers.extend(validity);
        self.buffers(node, length, rows, meaning, &lengths, &mut buffers);
        if let Kind::Null = node.kind {
            null_count = [length, -1, 0][self.input.below(3)];
        }
        if broken == 3 {
            null_count = self.input.number();
        }
        let (buffers, n_buffers) = self.buffer_list(node, buffers, broken == 4);
        let mut array = ArrowArray {
            length,
            null_count,
            offset,
            n_buffers,
            n_children: i64::try_from(children.len()).expect("few"),
            buffers,
            children: null_mut(),
            dictionary: dictionary.map_or(null_mut(), |(values, _)| self.memory.value(values.array)),
            release: Some(release_child),
            private_data: null_mut(),
        };
        self.child_list(&mut array, children, broken);
        Built { array, nulls }
    }

    /// The children, and how long each was meant to be.
    fn children(&mut self, node: &Node, rows: Option<i64>) -> (Vec<ArrowArray>, Vec<i64>) {
        let rows = rows.unwrap_or(0).min(self.cap);
        let mut meaning = Meaning::Values { step: 1 };
        let mut lengths = Vec::new();
        let mut built = Vec::new();
        let mut n_runs = 0;
        for (i, child) in node.children.iter().enumerate() {
            let length = match &node.kind {
                Kind::Struct | Kind::Sparse(_) => rows,
                Kind::FixedList(n) => rows.saturating_mul(i64::try_from(*n).unwrap_or(0)).min(self.cap),
                Kind::RunEnds if i == 0 => {
                    n_runs = i64::from(self.input.byte() % 6).max(rows.min(1));
                    meaning = Meaning::Ends { reach: rows, n: n_runs };
                    n_runs
                }
                Kind::RunEnds => n_runs,
                _ => i64::from(self.input.byte() % 24),
            };
            built.push(self.node(child, Wanted { length, meaning }).array);
            meaning = Meaning::Values { step: 1 };
            lengths.push(length);
        }
        (built, lengths)
    }

    /// The nulls in the window, the null count, and the bitmap if there is one.
    fn validity(
        &mut self,
        node: &Node,
        length: i64,
        offset: i64,
        rows: Option<i64>,
    ) -> (i64, i64, Option<*const c_void>) {
        if !node.has_validity() {
            return (0, 0, None);
        }
        let choice = self.input.byte();
        let Some(n) = self.size(rows.map(|rows| rows.saturating_add(7) / 8)).filter(|_| choice >= 128) else {
            return (0, if choice & 1 == 0 { 0 } else { -1 }, Some(core::ptr::null()));
        };
        let mut bits = cycled(&mut self.input, n);
        if choice & 2 == 0 {
            bits.iter_mut().for_each(|byte| *byte = !*byte);
        }
        let is_null = |row: i64| {
            let row = usize::try_from(row).unwrap_or(0);
            bits.get(row >> 3).is_some_and(|byte| byte >> (row & 7) & 1 == 0)
        };
        let window = if n == 0 { 0..0 } else { offset..offset + length };
        let nulls = i64::try_from(window.filter(|row| is_null(*row)).count()).expect("few");
        let null_count = match choice & 0x1c {
            0x1c => -1,
            0x18 => 0,
            _ => nulls,
        };
        let at = self.buffer(&bits);
        // Without a bitmap there are no nulls.
        (if at.is_null() { 0 } else { nulls }, null_count, Some(at))
    }

    fn buffers(
        &mut self,
        node: &Node,
        length: i64,
        rows: Option<i64>,
        meaning: Meaning,
        lengths: &[i64],
        out: &mut Vec<*const c_void>,
    ) {
        let one_more = if length == 0 { Some(0) } else { rows.map(|rows| rows.saturating_add(1)) };
        let limit = lengths.first().copied().unwrap_or(0);
        match &node.kind {
            Kind::Null | Kind::Struct | Kind::FixedList(_) | Kind::RunEnds => {}
            Kind::Bits => {
                let n = self.size(rows.map(|rows| rows.saturating_add(7) / 8)).unwrap_or(0);
                let bytes = cycled(&mut self.input, n);
                out.push(self.buffer(&bytes));
            }
            Kind::Fixed(width) => {
                let n = self.elements(rows, *width);
                let bytes = fixed(&mut self.input, n, *width, meaning);
                self.put(bytes, *width, out);
            }
            Kind::Text { wide } => {
                let width = if *wide { 8 } else { 4 };
                let n = self.elements(one_more, width);
                let bytes = offsets(&mut self.input, n, width, i64::MAX);
                let bytes = self.put(bytes, width, out);
                let last = if n == 0 { 0 } else { number_at(&bytes, rows.unwrap_or(0), width).unwrap_or(0) };
                let n = self.size(Some(last.max(0))).unwrap_or(0);
                let bytes = text(&mut self.input, n);
                self.put(bytes, 1, out);
            }
            Kind::View => self.string_views(rows, out),
            Kind::List { wide } => {
                let width = if *wide { 8 } else { 4 };
                let n = self.elements(one_more, width);
                let bytes = offsets(&mut self.input, n, width, limit);
                self.put(bytes, width, out);
            }
            Kind::ListView { wide } => {
                let width = if *wide { 8 } else { 4 };
                let n = self.elements(rows, width);
                let starts: Vec<i64> =
                    cycled(&mut self.input, n).iter().map(|byte| i64::from(*byte) % (limit + 1)).collect();
                let sizes: Vec<i64> = cycled(&mut self.input, n)
                    .iter()
                    .zip(&starts)
                    .map(|(byte, start)| i64::from(*byte) % (limit - start + 1))
                    .collect();
                self.put(packed(starts, width), width, out);
                self.put(packed(sizes, width), width, out);
            }
            Kind::Sparse(ids) => {
                let n = self.elements(rows, 1);
                let chosen = cycled(&mut self.input, n);
                let bytes = chosen.iter().map(|byte| ids.get(usize::from(*byte) % ids.len().max(1)));
                let bytes = bytes.map(|id| id.copied().unwrap_or(0)).collect();
                self.put(bytes, 1, out);
            }
            Kind::Dense(ids) => self.dense(ids, lengths, rows, out),
        }
    }

    fn dense(&mut self, ids: &[u8], lengths: &[i64], rows: Option<i64>, out: &mut Vec<*const c_void>) {
        let n = self.elements(rows.filter(|rows| self.size_of(*rows, 4).is_some()), 1);
        let mut next = vec![0; ids.len()];
        let (mut types, mut starts) = (Vec::new(), Vec::new());
        for byte in cycled(&mut self.input, n) {
            let all = (0..ids.len()).cycle().skip(usize::from(byte)).take(ids.len());
            let child = all.into_iter().find(|i| lengths[*i] > 0).unwrap_or(0);
            types.push(ids.get(child).copied().unwrap_or(0));
            starts.push(next.get(child).copied().unwrap_or(0));
            if let Some(next) = next.get_mut(child) {
                *next = (*next + i64::from(byte >> 6)).min((lengths[child] - 1).max(0));
            }
        }
        let n = self.elements(rows, 4);
        starts.resize(n, 0);
        types.resize(n, 0);
        self.put(types, 1, out);
        self.put(packed(starts, 4), 4, out);
    }

    fn string_views(&mut self, rows: Option<i64>, out: &mut Vec<*const c_void>) {
        let n_variadic = self.input.below(4);
        let mut data = Vec::new();
        let mut sizes = Vec::new();
        for _ in 0..n_variadic {
            let size =
                if self.input.rarely(6) { self.input.number() } else { i64::from(self.input.byte() % 64) };
            let n = self.size(Some(size.max(0))).unwrap_or(0);
            data.push(text(&mut self.input, n));
            sizes.push(size);
        }
        let n = self.elements(rows, 16);
        let bytes = views(&mut self.input, n, &data);
        self.put(bytes, 4, out);
        for bytes in data {
            self.put(bytes, 1, out);
        }
        let at = if sizes.is_empty() && self.input.rarely(128) {
            core::ptr::null()
        } else {
            self.buffer(&packed(sizes, 8))
        };
        out.push(at);
    }

    /// Bytes after the input had its say on them, and their address among the buffers.
    fn put(&mut self, mut bytes: Vec<u8>, width: usize, out: &mut Vec<*const c_void>) -> Vec<u8> {
        broken(&mut self.input, &mut bytes, width);
        let at = self.buffer(&bytes);
        out.push(at);
        bytes
    }

    fn buffer(&mut self, bytes: &[u8]) -> *const c_void {
        let skew = if self.input.rarely(12) { 1 + self.input.below(15) } else { 0 };
        let at = self.memory.bytes(bytes, skew);
        if skew == 0 {
            read_past(at, bytes.len());
        }
        match self.input.byte() {
            // Where there are no bytes there need be no address.
            1..=127 if bytes.is_empty() => core::ptr::null(),
            255 => core::ptr::null(),
            _ => at.cast_const().cast(),
        }
    }

    /// The size of a buffer whose struct promises so many bytes; none where the numbers are nonsense.
    fn size(&mut self, bytes: Option<i64>) -> Option<usize> {
        let bytes = bytes?;
        if bytes > self.cap {
            self.is_too_large = true;
            return None;
        }
        usize::try_from(bytes).ok()
    }

    fn size_of(&self, rows: i64, width: i64) -> Option<i64> {
        rows.checked_mul(width).filter(|bytes| *bytes <= self.cap)
    }

    fn elements(&mut self, rows: Option<i64>, width: usize) -> usize {
        let Some(rows) = rows else { return 0 };
        let bytes = rows.checked_mul(i64::try_from(width).expect("it is small")).unwrap_or(i64::MAX);
        if width == 0 {
            return 0;
        }
        self.size(Some(bytes)).map_or(0, |bytes| bytes / width)
    }

    /// The list of buffers and their number, both as the input wants them.
    fn buffer_list(
        &mut self,
        node: &Node,
        mut buffers: Vec<*const c_void>,
        is_broken: bool,
    ) -> (*mut *const c_void, i64) {
        let takes_one_more = matches!(node.kind, Kind::Null | Kind::Dense(_) | Kind::Sparse(_));
        if takes_one_more && self.input.rarely(32) {
            // As older producers have it. An address that leads nowhere must not become the only buffer.
            let leads_nowhere = self.input.rarely(32) && !is_broken;
            let first = if leads_nowhere { core::ptr::dangling() } else { core::ptr::null() };
            buffers.insert(0, first);
        }
        let mut n = i64::try_from(buffers.len()).expect("few");
        if is_broken {
            match self.input.below(4) {
                0 => return (null_mut(), n),
                1 => n = self.input.number(),
                2 => n = (n - 1).max(0),
                _ => n += 1,
            }
            // A view may have that many, so the list would have to be that long.
            if node.kind == Kind::View && n > 64 && n < 1 << 33 {
                n = 64;
            }
            buffers.resize(usize::try_from(n).unwrap_or(0).min(64), core::ptr::null());
            if node.kind == Kind::View && n > 3 {
                // The last is read as the sizes now, of which there have to be enough.
                let sizes = self.memory.bytes(&vec![0; usize::try_from(n - 3).unwrap_or(0).min(64) * 8], 0);
                if let Some(last) = buffers.last_mut() {
                    *last = sizes.cast_const().cast();
                }
            }
        }
        (self.memory.list(buffers), n)
    }

    fn child_list(&mut self, array: &mut ArrowArray, children: Vec<ArrowArray>, broken: usize) {
        let mut list: Vec<*mut ArrowArray> = Vec::new();
        for child in children {
            list.push(self.memory.value(child));
        }
        match broken {
            5 => match (self.input.below(4), list.last_mut()) {
                (0, Some(child)) => *child = null_mut(),
                (1, Some(child)) => *child = child.wrapping_byte_add(1 + self.input.below(7)),
                // SAFETY: the child was put there above.
                (2, Some(child)) => unsafe { (**child).release = None },
                (_, _) => array.n_children = self.input.number(),
            },
            6 => match self.input.below(4) {
                0 => array.dictionary = null_mut(),
                1 => array.dictionary = core::ptr::dangling_mut::<ArrowArray>().wrapping_byte_add(1),
                2 if array.dictionary.is_null() => {
                    // SAFETY: a bitwise copy of a struct that has no destructor.
                    let copy = unsafe { core::ptr::read(array) };
                    array.dictionary = self.memory.value(copy);
                }
                // SAFETY: a dictionary that is there was put there by this builder.
                2 => unsafe { (*array.dictionary).release = None },
                _ => array.release = None,
            },
            _ => {}
        }
        array.children = self.memory.list(list);
        if broken == 7 {
            match self.input.below(3) {
                0 => array.children = null_mut(),
                1 => array.children = array.children.wrapping_byte_add(1),
                _ => array.buffers = array.buffers.wrapping_byte_add(4),
            }
        }
    }
}

/// Offset plus length, where both are numbers of rows.
fn rows_of(length: i64, offset: i64) -> Option<i64> {
    if length < 0 || offset < 0 { None } else { offset.checked_add(length) }
}
