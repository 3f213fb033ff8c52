//! The layout table: which buffers a type has, what they hold, and how much of it.

use super::format::Format;

/// A type of element, laid out as DLPack's `DLDataType`. The layout is frozen.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataType {
    /// Kind of number: 0 signed, 1 unsigned, 2 floating point, 6 boolean.
    pub code: u8,
    /// Bits of one lane.
    pub bits: u8,
    /// Number of lanes; 0 when an element is empty or wider than 65535 bytes.
    pub lanes: u16,
}

impl DataType {
    /// DLPack's code of signed integers.
    ///
    /// cbindgen:ignore
    pub const INT: u8 = 0;
    /// DLPack's code of unsigned integers, and of bytes that are no numbers.
    ///
    /// cbindgen:ignore
    pub const UINT: u8 = 1;
    /// DLPack's code of floating-point numbers.
    ///
    /// cbindgen:ignore
    pub const FLOAT: u8 = 2;
    /// DLPack's code of booleans.
    ///
    /// cbindgen:ignore
    pub const BOOL: u8 = 6;

    /// One number of that kind and width.
    pub const fn scalar(code: u8, bits: u8) -> Self {
        Self { code, bits, lanes: 1 }
    }

    /// So many bytes that are no number.
    pub const fn bytes(width: u16) -> Self {
        Self { code: Self::UINT, bits: 8, lanes: width }
    }
}

/// What a buffer is for. The numbers are part of the C ABI.
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A bitmap with a 1 for each value that is there.
    Validity = 0,
    /// Where values start in the data or in the child.
    Offsets = 1,
    /// How long the values of a list view are.
    Sizes = 2,
    /// Which child of a union a value is in.
    TypeIds = 3,
    /// Views on strings: a length, and the bytes or where they are.
    Views = 4,
    /// The values themselves.
    Data = 5,
    /// Bytes that views point into.
    Variadic = 6,
    /// The sizes of the variadic buffers.
    VariadicSizes = 7,
}

/// How many elements a buffer needs to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The array's offset plus its length.
    Rows,
    /// One more than the array's offset plus its length.
    RowsPlusOne,
    /// What the offsets buffer says at the array's offset plus its length.
    LastOffset,
    /// What the buffer of variadic sizes says.
    VariadicSize,
    /// The number of variadic buffers.
    VariadicCount,
}

/// One buffer of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// What it is for.
    pub role: Role,
    /// How many elements it needs to hold.
    pub extent: Extent,
    /// Bits of one element.
    pub bits: u64,
    /// Type of one element.
    pub element: DataType,
}

/// The buffers of a type.
#[derive(Debug, Clone, Copy)]
pub struct Layout(Table);

/// Only the width of fixed-size binary values is not known beforehand.
#[derive(Debug, Clone, Copy)]
enum Table {
    Known(&'static Entry),
    Width([Slot; 2]),
}

/// A layout that does not depend on a width.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known(&'static Entry);

impl Known {
    /// The layout of a format, if it is one of those.
    pub(super) fn of(format: Format) -> Option<Known> {
        if matches!(format, Format::FixedSizeBinary(_)) { None } else { Some(Known(known(format))) }
    }

    /// The format whose string is that one letter, and its layout.
    #[inline]
    pub(super) fn of_letter(letter: u8) -> Option<(Format, Known)> {
        *LETTERS.get(usize::from(letter.wrapping_sub(FIRST_LETTER)))?
    }
}

/// A line of the table, with what is asked of every node worked out.
#[derive(Debug)]
struct Entry {
    slots: &'static [Slot],
    is_variadic: bool,
    has_validity: bool,
    plain_bits: u32,
}

impl Entry {
    const fn of(slots: &'static [Slot]) -> Entry {
        let has_validity = matches!(slots, [first, ..] if matches!(first.role, Role::Validity));
        let is_variadic = matches!(slots, [.., last] if matches!(last.role, Role::VariadicSizes));
        Entry { slots, is_variadic, has_validity, plain_bits: plain_bits(slots) }
    }
}

/// The bits of a value where a bitmap and the values, one a row, are all the buffers; else 0.
const fn plain_bits(slots: &[Slot]) -> u32 {
    match slots {
        [first, second]
            if matches!(first.role, Role::Validity)
                && matches!(second.extent, Extent::Rows)
                && second.bits >> 32 == 0 =>
        {
            second.bits as u32
        }
        _ => 0,
    }
}

const fn slot(role: Role, extent: Extent, element: DataType) -> Slot {
    let bits = (element.bits as u64).saturating_mul(element.lanes as u64);
    Slot { role, extent, bits, element }
}

const fn rows(role: Role, code: u8, bits: u8) -> Slot {
    slot(role, Extent::Rows, DataType::scalar(code, bits))
}

const fn data(code: u8, bits: u8) -> Slot {
    rows(Role::Data, code, bits)
}

const fn offsets(bits: u8) -> Slot {
    slot(Role::Offsets, Extent::RowsPlusOne, DataType::scalar(DataType::INT, bits))
}

const VALIDITY: Slot = rows(Role::Validity, DataType::BOOL, 1);
const TEXT: Slot = slot(Role::Data, Extent::LastOffset, DataType::bytes(1));
const TYPE_IDS: Slot = rows(Role::TypeIds, DataType::INT, 8);
const VARIADIC: Slot = slot(Role::Variadic, Extent::VariadicSize, DataType::bytes(1));

static NONE: Entry = Entry::of(&[]);
static VALIDITY_ONLY: Entry = Entry::of(&[VALIDITY]);
static BOOLS: Entry = Entry::of(&[VALIDITY, data(DataType::BOOL, 1)]);
static INT8: Entry = Entry::of(&[VALIDITY, data(DataType::INT, 8)]);
static INT16: Entry = Entry::of(&[VALIDITY, data(DataType::INT, 16)]);
static INT32: Entry = Entry::of(&[VALIDITY, data(DataType::INT, 32)]);
static INT64: Entry = Entry::of(&[VALIDITY, data(DataType::INT, 64)]);
static UINT8: Entry = Entry::of(&[VALIDITY, data(DataType::UINT, 8)]);
static UINT16: Entry = Entry::of(&[VALIDITY, data(DataType::UINT, 16)]);
static UINT32: Entry = Entry::of(&[VALIDITY, data(DataType::UINT, 32)]);
static UINT64: Entry = Entry::of(&[VALIDITY, data(DataType::UINT, 64)]);
static FLOAT16: Entry = Entry::of(&[VALIDITY, data(DataType::FLOAT, 16)]);
static FLOAT32: Entry = Entry::of(&[VALIDITY, data(DataType::FLOAT, 32)]);
static FLOAT64: Entry = Entry::of(&[VALIDITY, data(DataType::FLOAT, 64)]);
static BYTES16: Entry = Entry::of(&[VALIDITY, slot(Role::Data, Extent::Rows, DataType::bytes(16))]);
static BYTES32: Entry = Entry::of(&[VALIDITY, slot(Role::Data, Extent::Rows, DataType::bytes(32))]);
static DAY_TIME: Entry = Entry::of(&[
    VALIDITY,
    slot(Role::Data, Extent::Rows, DataType { code: DataType::INT, bits: 32, lanes: 2 }),
]);
static TEXT32: Entry = Entry::of(&[VALIDITY, offsets(32), TEXT]);
static TEXT64: Entry = Entry::of(&[VALIDITY, offsets(64), TEXT]);
static VIEWS: Entry = Entry::of(&[
    VALIDITY,
    slot(Role::Views, Extent::Rows, DataType::bytes(16)),
    slot(Role::VariadicSizes, Extent::VariadicCount, DataType::scalar(DataType::INT, 64)),
]);
static LIST32: Entry = Entry::of(&[VALIDITY, offsets(32)]);
static LIST64: Entry = Entry::of(&[VALIDITY, offsets(64)]);
static LIST_VIEW32: Entry =
    Entry::of(&[VALIDITY, rows(Role::Offsets, DataType::INT, 32), rows(Role::Sizes, DataType::INT, 32)]);
static LIST_VIEW64: Entry =
    Entry::of(&[VALIDITY, rows(Role::Offsets, DataType::INT, 64), rows(Role::Sizes, DataType::INT, 64)]);
static SPARSE: Entry = Entry::of(&[TYPE_IDS]);
static DENSE: Entry = Entry::of(&[TYPE_IDS, rows(Role::Offsets, DataType::INT, 32)]);

impl Format {
    /// The natural alignment in bytes of a buffer of arrays of this format: that of the numbers that it holds.
    pub fn alignment(&self, slot: &Slot) -> usize {
        if !matches!(slot.role, Role::Data | Role::Views) {
            // Bitmaps and type ids are bytes, all else are integers.
            return usize::from(slot.element.bits).wrapping_shr(3).max(1);
        }
        match self {
            Format::Decimal { bits: 128 | 256, .. } => 16,
            // Two integers of 32 bits and one of 64; a view is four of 32 bits, read as two of 64.
            Format::IntervalMonthDayNano | Format::BinaryView | Format::Utf8View => 8,
            _ => usize::from(slot.element.bits).wrapping_shr(3).max(1),
        }
    }
}

impl Layout {
    pub(super) const EMPTY: Layout = Layout(Table::Known(&NONE));

    /// The layout of a format.
    #[inline]
    pub fn of(format: Format) -> Layout {
        match format {
            Format::FixedSizeBinary(width) => Self::wide(width),
            other => Layout(Table::Known(known(other))),
        }
    }

    #[inline]
    pub(super) fn of_known(known: Known) -> Layout {
        Layout(Table::Known(known.0))
    }

    #[inline(never)]
    fn wide(width: i32) -> Layout {
        let width = width.max(0).unsigned_abs();
        let element = DataType::bytes(u16::try_from(width).unwrap_or(0));
        let bits = u64::from(width).saturating_mul(8);
        Layout(Table::Width([VALIDITY, Slot { bits, ..slot(Role::Data, Extent::Rows, element) }]))
    }

    /// The buffers that every array of the type has, in their order.
    ///
    /// A view's variadic buffers lie between the second of these and the last, see [`Layout::variadic`].
    #[inline]
    pub fn slots(&self) -> &[Slot] {
        match &self.0 {
            Table::Known(entry) => entry.slots,
            Table::Width(slots) => slots,
        }
    }

    /// Each of the buffers that come before a view's last one, in any number.
    #[inline]
    pub fn variadic(&self) -> Option<Slot> {
        self.is_variadic().then_some(VARIADIC)
    }

    /// Whether arrays of the type have variadic buffers.
    #[inline]
    pub fn is_variadic(&self) -> bool {
        matches!(self.0, Table::Known(Entry { is_variadic: true, .. }))
    }

    /// Whether the first buffer is a validity bitmap.
    #[inline]
    pub fn has_validity(&self) -> bool {
        match self.0 {
            Table::Known(entry) => entry.has_validity,
            Table::Width(_) => true,
        }
    }

    /// The bits of a value where a bitmap and the values, one a row, are all the buffers; else 0.
    #[inline]
    pub(super) fn plain_bits(&self) -> u32 {
        match &self.0 {
            Table::Known(entry) => entry.plain_bits,
            Table::Width(slots) => plain_bits(slots),
        }
    }

    /// The number of buffers without variadic ones.
    #[inline]
    pub fn min_buffers(&self) -> usize {
        self.slots().len()
    }

    /// What buffer `buffer_index` of `n_buffers` is; `None` when there is no such buffer.
    #[inline]
    pub fn slot_of(&self, buffer_index: usize, n_buffers: usize) -> Option<Slot> {
        if buffer_index >= n_buffers {
            return None;
        }
        let slots = self.slots();
        if !self.is_variadic() || buffer_index < 2 {
            return slots.get(buffer_index).copied();
        }
        if buffer_index == n_buffers.wrapping_sub(1) { slots.last().copied() } else { Some(VARIADIC) }
    }
}

impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        self.is_variadic() == other.is_variadic() && self.slots() == other.slots()
    }
}

/// The layouts that do not depend on a width in the format.
const fn known(format: Format) -> &'static Entry {
    match format {
        Format::Null | Format::RunEndEncoded => &NONE,
        Format::Bool => &BOOLS,
        Format::Int8 => &INT8,
        Format::UInt8 => &UINT8,
        Format::Int16 => &INT16,
        Format::UInt16 => &UINT16,
        Format::Int32 | Format::Date32 | Format::Time32(_) | Format::IntervalMonths => &INT32,
        Format::UInt32 => &UINT32,
        Format::Int64 | Format::Date64 | Format::Time64(_) | Format::Timestamp(_) | Format::Duration(_) => {
            &INT64
        }
        Format::UInt64 => &UINT64,
        Format::Float16 => &FLOAT16,
        Format::Float32 => &FLOAT32,
        Format::Float64 => &FLOAT64,
        Format::Decimal { bits: 32, .. } => &INT32,
        Format::Decimal { bits: 64, .. } => &INT64,
        Format::Decimal { bits: 256, .. } => &BYTES32,
        Format::Decimal { .. } | Format::IntervalMonthDayNano => &BYTES16,
        Format::IntervalDayTime => &DAY_TIME,
        Format::Binary | Format::Utf8 => &TEXT32,
        Format::LargeBinary | Format::LargeUtf8 => &TEXT64,
        Format::List | Format::Map => &LIST32,
        Format::LargeList => &LIST64,
        Format::ListView => &LIST_VIEW32,
        Format::LargeListView => &LIST_VIEW64,
        Format::FixedSizeList(_) | Format::Struct => &VALIDITY_ONLY,
        Format::SparseUnion => &SPARSE,
        Format::DenseUnion => &DENSE,
        Format::BinaryView | Format::Utf8View => &VIEWS,
        // `Layout::of` takes these itself.
        Format::FixedSizeBinary(_) => &NONE,
    }
}

const FIRST_LETTER: u8 = b'A';

/// The formats of one letter. They are looked up at once, because most nodes have one.
static LETTERS: [Option<(Format, Known)>; 58] = {
    let mut table = [None; 58];
    let mut letter = FIRST_LETTER;
    let mut rest: &mut [Option<(Format, Known)>] = &mut table;
    while let [place, after @ ..] = rest {
        if let Some(format) = Format::of_letter(letter) {
            *place = Some((format, Known(known(format))));
        }
        letter = letter.wrapping_add(1);
        rest = after;
    }
    table
};
