//! The rules about tensors that can be told without reading their data.

use super::view::{Axes, MAX_NDIM, TensorView, Told};
use crate::abi::DLDataType;
use crate::error::{Findings, Flow, Result, Rule, Severity, Status};

/// The flags that DLPack 1.3 defines: READ_ONLY, IS_COPIED and IS_SUBBYTE_TYPE_PADDED.
const FLAGS: u64 = 7;
/// Device types whose data is a handle, not an address: OpenCL, Vulkan, Metal and WebGPU.
const HANDLES: [i32; 4] = [4, 7, 8, 15];
/// Device types without ids: the CPU, pinned CUDA and ROCm memory, managed CUDA memory.
const WITHOUT_ID: [i32; 4] = [1, 3, 11, 13];
/// What the header says of every allocation, and most producers of slices do not keep.
const ALIGNMENT: usize = 256;

/// Checks a tensor by every rule of DLPack that its struct can break.
pub fn check_tensor(told: Told<'_>, mut findings: Findings<'_, '_>) -> Result<()> {
    let tensor = match told {
        Told::Tensor(tensor) => tensor,
        Told::Version(major) => {
            let message = format_args!("expected DLPack version 1, found {major}");
            let _ = findings
                .check(|report| Err::<(), _>(report.fail_at(Status::Unsupported, Rule::Dl1, &"$", message)));
            return findings.finish();
        }
    };
    let _ = Check { tensor: &tensor, findings: &mut findings }.all();
    findings.finish()
}

struct Check<'t, 'f, 'a, 'r> {
    tensor: &'t TensorView<'t>,
    findings: &'f mut Findings<'a, 'r>,
}

impl Check<'_, '_, '_, '_> {
    fn broken(&mut self, rule: Rule, message: core::fmt::Arguments<'_>) -> Flow {
        self.findings.broken(rule, &"$", -1, message)
    }

    fn note(&mut self, rule: Rule, message: core::fmt::Arguments<'_>) -> Flow {
        self.findings.consumer(Severity::Note, rule, &"$", message)
    }

    fn all(&mut self) -> Flow {
        self.head()?;
        self.dtype()?;
        self.dimensions()
    }

    fn head(&mut self) -> Flow {
        let TensorView { flags, device, has_deleter, .. } = *self.tensor;
        if !has_deleter {
            self.broken(Rule::Dl4, format_args!("expected a deleter, found NULL"))?;
        }
        if flags & !FLAGS != 0 {
            self.broken(
                Rule::Dl16,
                format_args!("expected flags 1, 2 and 4 only, found {:#x}", flags & !FLAGS),
            )?;
        }
        // 19 to 21 are defined in the header's main line after version 1.3, with the version unchanged.
        if !matches!(device.device_type, 1..=4 | 7..=21) {
            let message =
                format_args!("expected a device type that DLPack defines, found {}", device.device_type);
            self.broken(Rule::Dl2, message)?;
        }
        if WITHOUT_ID.contains(&device.device_type) && device.device_id != 0 {
            let (id, kind) = (device.device_id, device.device_type);
            self.broken(Rule::Dl15, format_args!("expected device id 0 for device type {kind}, found {id}"))?;
        }
        Flow::Continue(())
    }

    fn dtype(&mut self) -> Flow {
        let DLDataType { code, bits, lanes } = self.tensor.dtype;
        match prescribed_bits(code) {
            None => {
                let message = format_args!("expected a type code that DLPack defines, found {code}");
                self.broken(Rule::Dl2, message)?;
            }
            Some(allowed) if !has_bits(allowed, bits) => {
                let message = format_args!("expected bits that type code {code} prescribes, found {bits}");
                self.broken(Rule::Dl14, message)?;
            }
            Some(_) => {}
        }
        if lanes == 0 {
            self.broken(Rule::Dl14, format_args!("expected at least 1 lane, found 0"))?;
        }
        Flow::Continue(())
    }

    fn dimensions(&mut self) -> Flow {
        let TensorView { ndim, shape, strides, version, .. } = *self.tensor;
        if ndim < 0 {
            return self.broken(
                Rule::Dl18,
                format_args!("expected a number of dimensions of at least 0, found {ndim}"),
            );
        }
        if ndim > MAX_NDIM {
            let message = format_args!("expected at most {MAX_NDIM} dimensions, found {ndim}");
            self.findings.check(|report| {
                Err::<(), _>(report.fail_at(Status::Unsupported, Rule::Dl18, &"$", message))
            })?;
            return Flow::Continue(());
        }
        if ndim == 0 {
            return self.extent(Some(1), Some((0, 0)));
        }
        match shape {
            Axes::Missing => {
                return self
                    .broken(Rule::Dl18, format_args!("expected a shape of {ndim} dimensions, found NULL"));
            }
            Axes::Misaligned(at) => {
                return self.broken(
                    Rule::Dl18,
                    format_args!("expected a shape at a multiple of 8 bytes, found {at:#x}"),
                );
            }
            Axes::Here(_) => {}
        }
        let shape = shape.numbers();
        for (i, length) in shape.iter().enumerate().filter(|(_, length)| **length < 0) {
            self.broken(
                Rule::Dl18,
                format_args!("expected a length of at least 0 for dimension {i}, found {length}"),
            )?;
        }
        if shape.iter().any(|length| *length < 0) {
            return Flow::Continue(());
        }
        let is_empty = shape.contains(&0);
        let n =
            if is_empty { Some(0) } else { shape.iter().try_fold(1_i64, |n, length| n.checked_mul(*length)) };
        if n.is_none() {
            return self.broken(
                Rule::Dl18,
                format_args!("expected a number of elements within 64 bits, found more"),
            );
        }
        match strides {
            Axes::Missing => {
                if version.is_some_and(|(_, minor)| minor >= 2) {
                    self.broken(Rule::Dl10, format_args!("expected strides, found NULL"))?;
                }
                let last = n.and_then(|n| n.checked_sub(1));
                return self.extent(n, last.map(|last| (0, last.max(0))));
            }
            Axes::Misaligned(at) => {
                return self.broken(
                    Rule::Dl18,
                    format_args!("expected strides at a multiple of 8 bytes, found {at:#x}"),
                );
            }
            Axes::Here(_) => {}
        }
        let steps = strides.numbers();
        let odd = shape.iter().zip(steps).enumerate().find(|(_, (length, step))| **length > 1 && **step <= 0);
        if let Some((i, (_, step))) = odd.filter(|_| !is_empty) {
            self.note(Rule::Dl11, format_args!("expected positive strides, found {step} for dimension {i}"))?;
        }
        let reach = if is_empty { Some((0, 0)) } else { reach(shape, steps) };
        if reach.is_none() {
            return self.broken(
                Rule::Dl18,
                format_args!("expected strides that reach within 64 bits, found larger ones"),
            );
        }
        self.extent(n, reach)
    }

    /// Checks the memory of so many elements, which lie between two elements counted from the first.
    fn extent(&mut self, n: Option<i64>, reach: Option<(i64, i64)>) -> Flow {
        let TensorView { data, byte_offset, dtype, device, .. } = *self.tensor;
        let (Some(n), Some((low, high))) = (n, reach) else { return Flow::Continue(()) };
        if n == 0 {
            if data != 0 {
                self.note(
                    Rule::Dl12,
                    format_args!("expected NULL as the data of no elements, found {data:#x}"),
                )?;
            }
            return Flow::Continue(());
        }
        if data == 0 {
            return self.broken(Rule::Dl18, format_args!("expected data of {n} elements, found NULL"));
        }
        let bits = u64::from(dtype.bits).saturating_mul(u64::from(dtype.lanes));
        // Elements below a byte are packed unless the flag says otherwise; a whole byte each is never too little.
        let width = i64::try_from(bits.div_ceil(8)).unwrap_or(i64::MAX);
        let bytes = n.checked_mul(width);
        let span = (low.checked_mul(width), high.checked_add(1).and_then(|end| end.checked_mul(width)));
        let (Some(_), (Some(low), Some(high))) = (bytes, span) else {
            return self
                .broken(Rule::Dl18, format_args!("expected a size in bytes within 64 bits, found more"));
        };
        if HANDLES.contains(&device.device_type) {
            return Flow::Continue(());
        }
        let first = u64::try_from(data).ok().and_then(|data| data.checked_add(byte_offset));
        let Some(first) = first.filter(|first| {
            // The first element, the lowest and the end of the highest are addresses.
            let at = i128::from(*first);
            let (low, high) = (at.saturating_add(i128::from(low)), at.saturating_add(i128::from(high)));
            *first <= i64::MAX.unsigned_abs() && low >= 0 && high <= i128::from(i64::MAX)
        }) else {
            let message = format_args!(
                "expected an address within 63 bits, found {data:#x} + {byte_offset:#x} and elements around it"
            );
            return self.broken(Rule::Dl7, message);
        };
        let align = u64::try_from(width).unwrap_or(1);
        if align.is_power_of_two() && first.checked_rem(align).is_some_and(|rest| rest != 0) {
            self.broken(
                Rule::Dl8,
                format_args!("expected the first element at a multiple of {align} bytes, found {first:#x}"),
            )?;
        } else if first.checked_rem(ALIGNMENT as u64).is_some_and(|rest| rest != 0) {
            self.note(
                Rule::Dl8,
                format_args!("expected data at a multiple of {ALIGNMENT} bytes, found {first:#x}"),
            )?;
        }
        Flow::Continue(())
    }
}

/// The bits that elements of a type code have, none where any number of them will do; `None` for a code that is not defined.
fn prescribed_bits(code: u8) -> Option<Option<u8>> {
    Some(match code {
        // What the header leaves open may be any width; some array libraries have only the common ones.
        0..=3 | 5 => None,
        4 => Some(16),
        6..=14 => Some(8),
        15 | 16 => Some(6),
        17 => Some(4),
        // Complex bfloat, defined after version 1.3.
        18 => Some(32),
        _ => return None,
    })
}

fn has_bits(prescribed: Option<u8>, bits: u8) -> bool {
    prescribed.map_or(bits > 0, |prescribed| bits == prescribed)
}

/// Whether DLPack has such elements.
pub(super) fn is_defined(dtype: DLDataType) -> bool {
    prescribed_bits(dtype.code).is_some_and(|prescribed| has_bits(prescribed, dtype.bits)) && dtype.lanes > 0
}

/// The lowest and the highest element of a tensor that has some, counted from the first.
fn reach(shape: &[i64], strides: &[i64]) -> Option<(i64, i64)> {
    let mut reach = (0_i64, 0_i64);
    for (length, step) in shape.iter().zip(strides) {
        let last = length.checked_sub(1)?.checked_mul(*step);
        // The step of a dimension of one element is never taken.
        let last = if *length == 1 { 0 } else { last? };
        if last < 0 {
            reach.0 = reach.0.checked_add(last)?;
        } else {
            reach.1 = reach.1.checked_add(last)?;
        }
    }
    Some(reach)
}
