//! Memory of exactly the promised size: reading one byte more is found at once, by AddressSanitizer where the fuzzer
//! runs, and by a page that nobody may read where its inputs are replayed.

/// All memory of one input. It goes when this is dropped.
#[derive(Default)]
pub struct Memory {
    blocks: Vec<area::Block>,
}

impl Memory {
    /// The bytes at an address of their own, with nothing readable behind them. With `skew` the address is not aligned, and
    /// without AddressSanitizer the end is then not exact.
    pub fn bytes(&mut self, content: &[u8], skew: usize) -> *mut u8 {
        let block = area::Block::new(content.len(), skew);
        // SAFETY: the block is that long, and new.
        unsafe { block.at().copy_from_nonoverlapping(content.as_ptr(), content.len()) };
        let at = block.at();
        self.blocks.push(block);
        at
    }

    /// A value with nothing readable behind it. It is never dropped.
    pub fn value<T>(&mut self, value: T) -> *mut T {
        self.list(vec![value])
    }

    /// Values one behind the other with nothing readable behind them. They are never dropped.
    pub fn list<T>(&mut self, values: Vec<T>) -> *mut T {
        let block = area::Block::new(size_of_val(values.as_slice()), 0);
        let at: *mut T = block.at().cast();
        assert!(at.is_aligned(), "the size is a multiple of the alignment, and so is the end");
        for (i, value) in values.into_iter().enumerate() {
            // SAFETY: the block has room for all of them.
            unsafe { at.add(i).write(value) };
        }
        self.blocks.push(block);
        at
    }
}

/// Reads one byte behind the end: what the fuzzer and the replay have to find. Only on request.
pub fn read_past(at: *const u8, n: usize) {
    if std::env::var_os("BOWSTRING_FUZZ_PLANT").is_some() {
        // SAFETY: none; this is the planted fault.
        let byte = unsafe { at.add(n).read_volatile() };
        std::hint::black_box(byte);
    }
}

#[cfg(not(all(test, target_os = "linux")))]
mod area {
    use std::alloc::{Layout, alloc, dealloc};

    /// One allocation, whose end is that of what is in it.
    pub struct Block {
        start: *mut u8,
        layout: Layout,
        skip: usize,
    }

    impl Block {
        pub fn new(n: usize, skew: usize) -> Self {
            // Nothing readable: an aligned place behind all of an allocation.
            let skip = if n == 0 { 16 } else { skew & 15 };
            let layout = Layout::from_size_align(n + skip, 16).expect("sizes are small");
            // SAFETY: the size is not 0.
            let start = unsafe { alloc(layout) };
            assert!(!start.is_null(), "there is memory");
            Self { start, layout, skip }
        }

        pub fn at(&self) -> *mut u8 {
            // SAFETY: at most the allocation's end.
            unsafe { self.start.add(self.skip) }
        }
    }

    impl Drop for Block {
        fn drop(&mut self) {
            // SAFETY: the allocation was made so.
            unsafe { dealloc(self.start, self.layout) };
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod area {
    use core::ffi::{c_int, c_long, c_void};
    use std::cell::RefCell;

    const PAGE: usize = 65_536;

    unsafe extern "C" {
        fn mmap(
            at: *mut c_void,
            n: usize,
            prot: c_int,
            flags: c_int,
            fd: c_int,
            offset: c_long,
        ) -> *mut c_void;
        fn mprotect(at: *mut c_void, n: usize, prot: c_int) -> c_int;
    }

    thread_local! {
        // Mapped once and used again and again: what is mapped and let go by the thousand costs more than the checks.
        static FREE: RefCell<Vec<(usize, usize)>> = const { RefCell::new(Vec::new()) };
    }

    /// Memory that ends where a page begins that nobody may read.
    pub struct Block {
        start: usize,
        room: usize,
        at: usize,
    }

    impl Block {
        pub fn new(n: usize, skew: usize) -> Self {
            let room = (n + 16).next_multiple_of(PAGE);
            let found = FREE.with_borrow_mut(|free| {
                free.iter().position(|block| block.1 == room).map(|i| free.swap_remove(i))
            });
            let (start, room) = found.unwrap_or_else(|| (map(room), room));
            let end = start + room;
            let at = if skew & 15 == 0 || n == 0 { end - n } else { ((end - n) & !15) - 16 + (skew & 15) };
            Self { start, room, at: at.max(start) }
        }

        pub fn at(&self) -> *mut u8 {
            core::ptr::with_exposed_provenance_mut(self.at)
        }
    }

    impl Drop for Block {
        fn drop(&mut self) {
            FREE.with_borrow_mut(|free| free.push((self.start, self.room)));
        }
    }

    fn map(room: usize) -> usize {
        const READ_WRITE: c_int = 3;
        const PRIVATE_ANONYMOUS: c_int = 0x22;
        // SAFETY: new memory, of which the last page is made unreadable.
        unsafe {
            let start = mmap(core::ptr::null_mut(), room + PAGE, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0);
            assert!(start.addr() != usize::MAX, "there is memory");
            assert_eq!(mprotect(start.byte_add(room), PAGE, 0), 0, "a page can be closed");
            start.expose_provenance()
        }
    }
}
