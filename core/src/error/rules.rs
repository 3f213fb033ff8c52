//! The one table of rules: a stable number, a name and a sentence for each rule of the interfaces that is checked.
//!
//! The names are those of the numbered list that the documentation gives: S for schemas, F for format strings, A for
//! arrays, B for what buffers hold, M for memory, D for devices. A number is never used again for another rule.

use core::ffi::CStr;

macro_rules! rules {
    ($($rule:ident = $number:literal, $name:literal, $text:literal;)*) => {
        /// A rule of the Arrow interfaces.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(i32)]
        pub enum Rule {
            /// No rule: the fault is in the call.
            None = 0,
            $(#[doc = $text] $rule = $number,)*
        }

        /// Every rule, in the order of the table.
        pub const ALL: &[Rule] = &[$(Rule::$rule,)*];

        fn entry(number: i32) -> Option<(&'static CStr, &'static CStr)> {
            match number {
                $($number => Some((c_str(concat!($name, "\0")), c_str(concat!($text, "\0")))),)*
                _ => None,
            }
        }
    };
}

rules! {
    S1 = 101, "S1", "A schema's format is a NUL-terminated UTF-8 string that describes one node.";
    S2 = 102, "S2", "A schema's name is NULL or a NUL-terminated string.";
    S3 = 103, "S3", "Schema metadata is NULL or a list of pairs with native-endian lengths that are not negative.";
    S5 = 105, "S5", "A schema has as many live children as n_children says, and a list of them unless that is 0.";
    S6 = 106, "S6", "A dictionary-encoded schema has the format of its integer indices and the values' schema as its dictionary.";
    F1 = 201, "F1", "The whole format string is one that the Arrow C Data interface defines.";
    F2 = 202, "F2", "A decimal's width is 32, 64, 128 or 256 bits and its precision fits the width.";
    F3 = 203, "F3", "A fixed width or list size is a number from 0 to 2147483647.";
    F4 = 204, "F4", "A temporal format names a unit, and a timestamp's time zone follows a colon.";
    F5 = 205, "F5", "A nested format has the children that its layout prescribes.";
    A1 = 301, "A1", "Length and offset are not negative, and their sum and every size that follows from it fit in 64 bits.";
    A2 = 302, "A2", "The null count is -1 or from 0 to the length; it is 0 for unions and run-end encoded arrays.";
    A3 = 303, "A3", "An array has the number of buffers that its type's layout prescribes.";
    A4 = 304, "A4", "The list of buffers is not NULL where there are buffers, and each holds length + offset values.";
    A5 = 305, "A5", "A buffer is NULL only when it has no bytes, or when it is a validity bitmap and there are no nulls.";
    A7 = 307, "A7", "An array has the children and the dictionary that its schema has, and none of them is released.";
    A8 = 308, "A8", "Unions, run-end encoded arrays and null arrays have no validity bitmap.";
    B1 = 401, "B1", "Offsets are not negative, never decrease and end within the values.";
    B2 = 402, "B2", "A view's length is not negative and its bytes lie within the buffer that it names.";
    B4 = 404, "B4", "The children of structs, sparse unions and fixed-size lists are as long as the parent needs.";
    B7 = 407, "B7", "Run ends have no nulls and ascend to at least length + offset.";
    M2 = 502, "M2", "A struct whose release is NULL was released or moved out and is not read.";
    D2 = 602, "D2", "The device type is one that the Arrow C Device interface defines.";
    D3 = 603, "D3", "The device id of the CPU is -1, or 0 as some producers write it.";
    D4 = 604, "D4", "A sync event points to the event, and the CPU and devices without events have none.";
}

/// The rule's name, such as "A3", or NULL's stand-in "" for a number that is no rule.
pub fn rule_name(number: i32) -> &'static CStr {
    entry(number).map_or(c"", |(name, _)| name)
}

/// The rule in one sentence, or "" for a number that is no rule.
pub fn rule_text(number: i32) -> &'static CStr {
    entry(number).map_or(c"", |(_, text)| text)
}

fn c_str(text: &'static str) -> &'static CStr {
    CStr::from_bytes_until_nul(text.as_bytes()).unwrap_or_default()
}
