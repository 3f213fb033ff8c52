//! The layout table against a second one, which was written from the columnar format's documentation.
#![allow(clippy::disallowed_macros, clippy::disallowed_types, clippy::panic, reason = "tests may fail hard")]

use bowstring_core::types::{DataType, Extent, Format, Layout, Role, Slot};

/// Format, number of buffers without variadic ones, and each buffer as role:extent:bits:element.
const EXPECTED: &[(&str, usize, &str)] = &[
    ("n", 0, ""),
    ("+r", 0, ""),
    ("b", 2, "validity:rows:1:bool1x1 data:rows:1:bool1x1"),
    ("c", 2, "validity:rows:1:bool1x1 data:rows:8:int8x1"),
    ("C", 2, "validity:rows:1:bool1x1 data:rows:8:uint8x1"),
    ("s", 2, "validity:rows:1:bool1x1 data:rows:16:int16x1"),
    ("S", 2, "validity:rows:1:bool1x1 data:rows:16:uint16x1"),
    ("i", 2, "validity:rows:1:bool1x1 data:rows:32:int32x1"),
    ("I", 2, "validity:rows:1:bool1x1 data:rows:32:uint32x1"),
    ("l", 2, "validity:rows:1:bool1x1 data:rows:64:int64x1"),
    ("L", 2, "validity:rows:1:bool1x1 data:rows:64:uint64x1"),
    ("e", 2, "validity:rows:1:bool1x1 data:rows:16:float16x1"),
    ("f", 2, "validity:rows:1:bool1x1 data:rows:32:float32x1"),
    ("g", 2, "validity:rows:1:bool1x1 data:rows:64:float64x1"),
    ("d:5,2,32", 2, "validity:rows:1:bool1x1 data:rows:32:int32x1"),
    ("d:5,2,64", 2, "validity:rows:1:bool1x1 data:rows:64:int64x1"),
    ("d:5,2", 2, "validity:rows:1:bool1x1 data:rows:128:uint8x16"),
    ("d:5,2,256", 2, "validity:rows:1:bool1x1 data:rows:256:uint8x32"),
    ("w:0", 2, "validity:rows:1:bool1x1 data:rows:0:uint8x0"),
    ("w:3", 2, "validity:rows:1:bool1x1 data:rows:24:uint8x3"),
    ("w:65535", 2, "validity:rows:1:bool1x1 data:rows:524280:uint8x65535"),
    ("w:65536", 2, "validity:rows:1:bool1x1 data:rows:524288:uint8x0"),
    ("w:2147483647", 2, "validity:rows:1:bool1x1 data:rows:17179869176:uint8x0"),
    ("tdD", 2, "validity:rows:1:bool1x1 data:rows:32:int32x1"),
    ("tdm", 2, "validity:rows:1:bool1x1 data:rows:64:int64x1"),
    ("tts", 2, "validity:rows:1:bool1x1 data:rows:32:int32x1"),
    ("ttm", 2, "validity:rows:1:bool1x1 data:rows:32:int32x1"),
    ("ttu", 2, "validity:rows:1:bool1x1 data:rows:64:int64x1"),
    ("ttn", 2, "validity:rows:1:bool1x1 data:rows:64:int64x1"),
    ("tss:", 2, "validity:rows:1:bool1x1 data:rows:64:int64x1"),
    ("tsn:UTC", 2, "validity:rows:1:bool1x1 data:rows:64:int64x1"),
    ("tDm", 2, "validity:rows:1:bool1x1 data:rows:64:int64x1"),
    ("tiM", 2, "validity:rows:1:bool1x1 data:rows:32:int32x1"),
    ("tiD", 2, "validity:rows:1:bool1x1 data:rows:64:int32x2"),
    ("tin", 2, "validity:rows:1:bool1x1 data:rows:128:uint8x16"),
    ("z", 3, "validity:rows:1:bool1x1 offsets:rows+1:32:int32x1 data:last:8:uint8x1"),
    ("u", 3, "validity:rows:1:bool1x1 offsets:rows+1:32:int32x1 data:last:8:uint8x1"),
    ("Z", 3, "validity:rows:1:bool1x1 offsets:rows+1:64:int64x1 data:last:8:uint8x1"),
    ("U", 3, "validity:rows:1:bool1x1 offsets:rows+1:64:int64x1 data:last:8:uint8x1"),
    ("vz", 3, "validity:rows:1:bool1x1 views:rows:128:uint8x16 variadic_sizes:count:64:int64x1"),
    ("vu", 3, "validity:rows:1:bool1x1 views:rows:128:uint8x16 variadic_sizes:count:64:int64x1"),
    ("+l", 2, "validity:rows:1:bool1x1 offsets:rows+1:32:int32x1"),
    ("+m", 2, "validity:rows:1:bool1x1 offsets:rows+1:32:int32x1"),
    ("+L", 2, "validity:rows:1:bool1x1 offsets:rows+1:64:int64x1"),
    ("+vl", 3, "validity:rows:1:bool1x1 offsets:rows:32:int32x1 sizes:rows:32:int32x1"),
    ("+vL", 3, "validity:rows:1:bool1x1 offsets:rows:64:int64x1 sizes:rows:64:int64x1"),
    ("+w:4", 1, "validity:rows:1:bool1x1"),
    ("+s", 1, "validity:rows:1:bool1x1"),
    ("+us:0", 1, "type_ids:rows:8:int8x1"),
    ("+ud:0", 2, "type_ids:rows:8:int8x1 offsets:rows:32:int32x1"),
];

fn show(slot: &Slot) -> String {
    let role = match slot.role {
        Role::Validity => "validity",
        Role::Offsets => "offsets",
        Role::Sizes => "sizes",
        Role::TypeIds => "type_ids",
        Role::Views => "views",
        Role::Data => "data",
        Role::Variadic => "variadic",
        Role::VariadicSizes => "variadic_sizes",
    };
    let extent = match slot.extent {
        Extent::Rows => "rows",
        Extent::RowsPlusOne => "rows+1",
        Extent::LastOffset => "last",
        Extent::VariadicSize => "size",
        Extent::VariadicCount => "count",
    };
    let code = match slot.element.code {
        0 => "int",
        1 => "uint",
        2 => "float",
        6 => "bool",
        _ => "?",
    };
    format!("{role}:{extent}:{}:{code}{}x{}", slot.bits, slot.element.bits, slot.element.lanes)
}

fn layout(format: &str) -> Layout {
    Format::parse(format.as_bytes()).map(Layout::of).unwrap_or_else(|_| panic!("{format}"))
}

#[test]
fn every_format_has_the_buffers_that_it_should() {
    for (format, count, slots) in EXPECTED {
        let layout = layout(format);
        let found: Vec<String> = layout.slots().iter().map(show).collect();
        assert_eq!(found.join(" "), *slots, "{format}");
        assert_eq!(layout.min_buffers(), *count, "{format}");
        assert_eq!(layout.has_validity(), slots.starts_with("validity"), "{format}");
        assert_eq!(layout.is_variadic(), format.starts_with('v'), "{format}");
        assert_eq!(layout.variadic().is_some(), format.starts_with('v'), "{format}");
        if !layout.is_variadic() {
            for (i, slot) in layout.slots().iter().enumerate() {
                assert_eq!(layout.slot_of(i, *count), Some(*slot), "{format}");
            }
            assert_eq!(layout.slot_of(*count, *count), None, "{format}");
        }
    }
}

#[test]
fn variadic_buffers_lie_before_the_sizes() {
    let layout = layout("vu");
    let roles = |n: usize| -> Vec<Option<i32>> {
        (0..=n).map(|i| layout.slot_of(i, n).map(|slot| slot.role as i32)).collect()
    };
    assert_eq!(roles(3), [Some(0), Some(4), Some(7), None]);
    assert_eq!(roles(5), [Some(0), Some(4), Some(6), Some(6), Some(7), None]);
    assert_eq!(layout.variadic().map(|slot| show(&slot)).as_deref(), Some("variadic:size:8:uint8x1"));
    assert_eq!(layout.variadic(), layout.slot_of(2, 4));
}

#[test]
fn the_frozen_struct_is_laid_out_as_dlpack_does() {
    assert_eq!(core::mem::size_of::<DataType>(), 4);
    assert_eq!(core::mem::offset_of!(DataType, code), 0);
    assert_eq!(core::mem::offset_of!(DataType, bits), 1);
    assert_eq!(core::mem::offset_of!(DataType, lanes), 2);
}
