//! The one table of rules: a stable number, a name, a severity, a sentence and a source for each rule that is checked.
//!
//! The names are those of the numbered list that the documentation gives: S for schemas, F for format strings, A for
//! arrays, B for what buffers hold, M for memory, D for devices, ST for streams, DS for
//! streams on devices, AS for asynchronous streams, DL for DLPack tensors, C for what cuDF
//! makes of legal data. A number is never used again for another rule.

use core::ffi::CStr;

use super::Severity;

macro_rules! rules {
    ($($rule:ident = $number:literal, $name:literal, $severity:ident, $text:literal, $source:literal;)*) => {
        /// A rule of the interfaces.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(i32)]
        pub enum Rule {
            /// No rule: the fault is in the call.
            None = 0,
            $(#[doc = $text] $rule = $number,)*
        }

        /// Every rule, in the order of the table.
        pub const ALL: &[Rule] = &[$(Rule::$rule,)*];

        fn entry(number: i32) -> Option<Entry> {
            match number {
                $($number => Some(Entry {
                    name: c_str(concat!($name, "\0")),
                    severity: Severity::$severity,
                    text: c_str(concat!($text, "\0")),
                    source: c_str(concat!($source, "\0")),
                }),)*
                _ => None,
            }
        }
    };
}

struct Entry {
    name: &'static CStr,
    severity: Severity,
    text: &'static CStr,
    source: &'static CStr,
}

rules! {
    S1 = 101, "S1", Error, "A schema's format is a NUL-terminated UTF-8 string that describes one node.", "Arrow C Data interface, ArrowSchema.format";
    S2 = 102, "S2", Warning, "A schema's name is NULL or a NUL-terminated UTF-8 string.", "Arrow C Data interface, ArrowSchema.name";
    S3 = 103, "S3", Error, "Schema metadata is NULL or a list of pairs with native-endian lengths that are not negative.", "Arrow C Data interface, ArrowSchema.metadata";
    S4 = 104, "S4", Warning, "A schema's flags are those that the interface defines, set where they mean something; a field without NULLABLE has no nulls.", "Arrow C Data interface, ArrowSchema.flags";
    S5 = 105, "S5", Error, "A schema has as many live children as n_children says, and a list of them unless that is 0.", "Arrow C Data interface, ArrowSchema.children";
    S6 = 106, "S6", Error, "A dictionary-encoded schema has the format of its integer indices and the values' schema as its dictionary.", "Arrow C Data interface, ArrowSchema.dictionary";
    S7 = 107, "S7", Warning, "A canonical extension type has the storage type that its specification prescribes.", "Arrow columnar format, Canonical extension types";
    F1 = 201, "F1", Error, "The whole format string is one that the Arrow C Data interface defines.", "Arrow C Data interface, Data type description";
    F2 = 202, "F2", Error, "A decimal's width is 32, 64, 128 or 256 bits and its precision fits the width.", "Arrow C Data interface, Data type description";
    F3 = 203, "F3", Error, "A fixed width or list size is a number from 0 to 2147483647.", "Arrow C Data interface, Data type description";
    F4 = 204, "F4", Error, "A temporal format names a unit, and a timestamp's time zone follows a colon.", "Arrow C Data interface, Data type description";
    F5 = 205, "F5", Error, "A nested format has the children that its layout prescribes; a map's entries and keys have no nulls.", "Arrow C Data interface, Data type description; Arrow columnar format, Map layout";
    A1 = 301, "A1", Error, "Length and offset are not negative, and their sum and every size that follows from it fit in 64 bits.", "Arrow C Data interface, ArrowArray.length";
    A2 = 302, "A2", Error, "The null count is -1 or the exact number of nulls, from 0 to the length; it is 0 for unions and run-end encoded arrays.", "Arrow C Data interface, ArrowArray.null_count";
    A3 = 303, "A3", Error, "An array has the number of buffers that its type's layout prescribes.", "Arrow C Data interface, ArrowArray.n_buffers";
    A4 = 304, "A4", Error, "The list of buffers is not NULL where there are buffers, and each holds length + offset values.", "Arrow C Data interface, ArrowArray.buffers";
    A5 = 305, "A5", Error, "A buffer is NULL only when it has no bytes, or when it is a validity bitmap and there are no nulls.", "Arrow C Data interface, ArrowArray.buffers";
    A6 = 306, "A6", Warning, "Buffers are aligned to their elements and padded to a multiple of 8 bytes.", "Arrow columnar format, Buffer alignment and padding";
    A7 = 307, "A7", Error, "An array has the children and the dictionary that its schema has, and none of them is released.", "Arrow C Data interface, ArrowArray.children";
    A8 = 308, "A8", Error, "Unions, run-end encoded arrays and null arrays have no validity bitmap; every value of a null array is null.", "Arrow columnar format, Null, Union and Run-end encoded layouts";
    B1 = 401, "B1", Error, "Offsets are not negative, never decrease and end within the values.", "Arrow columnar format, Variable-size binary and list layouts";
    B2 = 402, "B2", Error, "A view's length is not negative and its bytes lie within the buffer that it names and repeat its prefix; inline values are padded with zeroes.", "Arrow columnar format, Variable-size binary view layout";
    B3 = 403, "B3", Error, "Every list view, null or not, lies within the values.", "Arrow columnar format, ListView layout";
    B4 = 404, "B4", Error, "The children of structs, sparse unions and fixed-size lists are as long as the parent needs.", "Arrow columnar format, Struct, Union and Fixed-size list layouts";
    B5 = 405, "B5", Error, "A union's type ids are declared ones, and dense offsets lie within their child and never decrease for it.", "Arrow columnar format, Union layout";
    B6 = 406, "B6", Error, "Dictionary indices that are not null lie within the dictionary.", "Arrow columnar format, Dictionary-encoded layout";
    B7 = 407, "B7", Error, "Run ends have no nulls and ascend strictly from above 0 to at least length + offset, with a value for each.", "Arrow columnar format, Run-end encoded layout";
    B8 = 408, "B8", Error, "Text is UTF-8, times lie within a day, dates in milliseconds are whole days, decimals fit their precision.", "Arrow columnar format, Data types; format/Schema.fbs";
    M2 = 502, "M2", Error, "A struct whose release is NULL was released or moved out and is not read.", "Arrow C Data interface, Released structure";
    D2 = 602, "D2", Error, "The device type is one that the Arrow C Device interface defines.", "Arrow C Device interface, ArrowDeviceType";
    D3 = 603, "D3", Error, "The device id of the CPU is -1, or 0 as some producers write it.", "Arrow C Device interface, ArrowDeviceArray.device_id";
    D4 = 604, "D4", Error, "A sync event points to the event, and the CPU and devices without events have none.", "Arrow C Device interface, ArrowDeviceArray.sync_event";
    D7 = 607, "D7", Warning, "The reserved members of a device array are 0.", "Arrow C Device interface, ArrowDeviceArray.reserved";
    D9 = 609, "D9", Error, "Every buffer is on the device that the array names; the sizes of variadic buffers may be in CPU memory.", "Arrow C Device interface, ArrowDeviceArray.device_type";
    St1 = 701, "ST1", Error, "A stream that is not released has get_schema, get_next and get_last_error.", "Arrow C Stream interface, ArrowArrayStream; Arrow C Device interface, ArrowDeviceArrayStream";
    St2 = 702, "ST2", Error, "A callback that returns 0 has done what it was asked for: get_schema gives a live schema.", "Arrow C Stream interface, ArrowArrayStream.get_schema";
    St5 = 705, "ST5", Error, "Every array of a stream has the stream's type.", "Arrow C Stream interface, ArrowArrayStream.get_next";
    St6 = 706, "ST6", Error, "Calls on a stream come one after the other.", "Arrow C Stream interface, Thread safety";
    Ds1 = 711, "DS1", Error, "Every array of a stream is on the stream's type of device; the ids may differ.", "Arrow C Device interface, ArrowDeviceArrayStream.device_type";
    As2 = 722, "AS2", Error, "A handler has its four callbacks, and its producer, with request and cancel, before any of them is called but release.", "Arrow C Device interface, ArrowAsyncDeviceStreamHandler.producer";
    As3 = 723, "AS3", Error, "A handler receives a live schema once, before any task.", "Arrow C Device interface, ArrowAsyncDeviceStreamHandler.on_schema";
    As4 = 724, "AS4", Error, "A handler receives as many tasks as were requested, and NULL behind the last.", "Arrow C Device interface, ArrowAsyncDeviceStreamHandler.on_next_task";
    As5 = 725, "AS5", Error, "A task gives a live array, once.", "Arrow C Device interface, ArrowAsyncTask.extract_data";
    As6 = 726, "AS6", Error, "A request asks for at least one array.", "Arrow C Device interface, ArrowAsyncProducer.request";
    As8 = 728, "AS8", Error, "A handler hears of the end or of an error before its release, unless its consumer has cancelled.", "Arrow C Device interface, ArrowAsyncDeviceStreamHandler.release";
    Dl1 = 801, "DL1", Error, "A tensor's major version is 1; of any other only version and deleter are read.", "DLPack, DLPackVersion";
    Dl2 = 802, "DL2", Error, "The type code and the device type are ones that DLPack defines.", "DLPack, DLDataTypeCode and DLDeviceType";
    Dl4 = 804, "DL4", Warning, "A tensor has a deleter.", "DLPack, DLManagedTensorVersioned.deleter";
    Dl7 = 807, "DL7", Error, "The address of the first element, data + byte_offset, does not overflow.", "DLPack, DLTensor.byte_offset";
    Dl8 = 808, "DL8", Warning, "The first element is aligned to its size.", "DLPack, DLTensor.data";
    Dl10 = 810, "DL10", Warning, "Strides are given unless the tensor is older than version 1.2 or has no dimensions.", "DLPack, DLTensor.strides";
    Dl11 = 811, "DL11", Note, "Strides are positive.", "DLPack, DLTensor.strides";
    Dl12 = 812, "DL12", Note, "The data of a tensor without elements is NULL.", "DLPack, DLTensor.data";
    Dl14 = 814, "DL14", Error, "An element has at least one lane, and the bits that its type code prescribes.", "DLPack, DLDataType";
    Dl15 = 815, "DL15", Warning, "The device id of the CPU, of pinned and of managed memory is 0.", "DLPack, DLDevice.device_id";
    Dl16 = 816, "DL16", Warning, "A tensor's flags are those that DLPack defines.", "DLPack, DLManagedTensorVersioned.flags";
    Dl18 = 818, "DL18", Error, "Dimensions are not negative, have a shape, and every size and stride that follows fits in 64 bits; data is NULL only without elements.", "DLPack, DLTensor";
    C1 = 901, "C1", Error, "A view is made of CUDA's memory, a copy of the CPU's.", "libcudf 26.10, docs/validation.md";
    C2 = 902, "C2", Error, "The type is one that libcudf has.", "libcudf 26.10, docs/validation.md";
    C3 = 903, "C3", Error, "Indices into a dictionary are signed.", "libcudf 26.10, docs/validation.md";
    C4 = 904, "C4", Error, "Lengths, offsets and their sums fit in 31 bits.", "libcudf 26.10, docs/validation.md";
    C5 = 905, "C5", Error, "The null count is known where there is a validity bitmap.", "libcudf 26.10, docs/validation.md";
    C6 = 906, "C6", Error, "A table has no offset and no nulls of its own, and its columns are as long as it is.", "libcudf 26.10, docs/validation.md";
    C7 = 907, "C7", Error, "Buffers in device memory are aligned to what a kernel loads: their elements, or words of 4 bytes of bits.", "libcudf 26.10, docs/validation.md";
    C8 = 908, "C8", Error, "The values of a dictionary have no nulls.", "libcudf 26.10, docs/validation.md";
    C9 = 909, "C9", Error, "Offsets are there even where there are no values, and no values start at a whole byte.", "libcudf 26.10, docs/validation.md";
    C10 = 910, "C10", Warning, "Values lie as libcudf has them, so that it need not copy.", "libcudf 26.10, docs/validation.md";
    C11 = 911, "C11", Note, "No value has to be read from device memory to know a size.", "libcudf 26.10, docs/validation.md";
}

/// The rule's name, such as "A3", or "" for a number that is no rule.
pub fn rule_name(number: i32) -> &'static CStr {
    entry(number).map_or(c"", |entry| entry.name)
}

/// The rule in one sentence, or "" for a number that is no rule.
pub fn rule_text(number: i32) -> &'static CStr {
    entry(number).map_or(c"", |entry| entry.text)
}

/// Where the rule is written down, or "" for a number that is no rule.
pub fn rule_source(number: i32) -> &'static CStr {
    entry(number).map_or(c"", |entry| entry.source)
}

/// How grave it is to break the rule, where a check does not say otherwise.
pub fn rule_severity(number: i32) -> Option<Severity> {
    entry(number).map(|entry| entry.severity)
}

fn c_str(text: &'static str) -> &'static CStr {
    CStr::from_bytes_until_nul(text.as_bytes()).unwrap_or_default()
}
