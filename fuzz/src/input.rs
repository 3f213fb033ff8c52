//! The bytes of one input, read as choices.

/// Where a reader is in an input. Behind the end there are zeroes, and zero is always the plainest choice.
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// A reader at the start.
    pub fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// Whether all was read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        match self.rest.split_first() {
            Some((first, rest)) => {
                self.rest = rest;
                *first
            }
            None => 0,
        }
    }

    /// A number below `n`, which is at most 256.
    pub fn below(&mut self, n: usize) -> usize {
        if n < 2 { 0 } else { usize::from(self.byte()) % n }
    }

    /// True for the highest `n` of 256 bytes.
    pub fn rarely(&mut self, n: usize) -> bool {
        usize::from(self.byte()) >= 256 - n
    }

    /// The next bytes, fewer at the end.
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (head, rest) = self.rest.split_at(n.min(self.rest.len()));
        self.rest = rest;
        head
    }

    /// All that is left.
    pub fn all(&mut self) -> &'a [u8] {
        self.take(self.rest.len())
    }

    /// Eight bytes as a number.
    pub fn word(&mut self) -> u64 {
        let mut word = [0; 8];
        let bytes = self.take(8);
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    }

    /// A number that is often small, and often one at which code goes wrong.
    pub fn number(&mut self) -> i64 {
        const EDGES: [i64; 16] = [
            -1,
            -2,
            i64::MIN,
            i64::MIN + 1,
            i64::MAX,
            i64::MAX - 1,
            1 << 31,
            (1 << 31) - 1,
            -(1 << 31),
            1 << 32,
            1 << 60,
            1 << 61,
            1 << 62,
            (1 << 24) + 1,
            1 << 24,
            65_536,
        ];
        match self.byte() {
            small @ 0..=199 => i64::from(small),
            edge @ 200..=247 => EDGES[usize::from(edge) % EDGES.len()],
            _ => self.word().cast_signed(),
        }
    }
}
