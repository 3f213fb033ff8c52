//! What buffers hold: legal as long as the input says nothing else, and then broken where it says so.

use super::input::Input;

/// What integers mean.
#[derive(Clone, Copy, Debug)]
pub enum Meaning {
    /// Any small number; days in milliseconds where `step` says so.
    Values { step: i64 },
    /// Indices below a number.
    Indices(i64),
    /// Run ends that reach a number in so many steps.
    Ends { reach: i64, n: i64 },
}

/// Bytes of the input, over and over.
pub fn cycled(input: &mut Input<'_>, n: usize) -> Vec<u8> {
    let k = input.below(12);
    let seed = input.take(k);
    if seed.is_empty() { vec![0; n] } else { seed.iter().copied().cycle().take(n).collect() }
}

/// Integers of that width in the machine's order; what does not fit is cut off.
pub fn packed(numbers: impl IntoIterator<Item = i64>, width: usize) -> Vec<u8> {
    numbers.into_iter().flat_map(|number| number.to_ne_bytes().into_iter().take(width)).collect()
}

/// The integer at a place.
pub fn number_at(bytes: &[u8], i: i64, width: usize) -> Option<i64> {
    let at = usize::try_from(i).ok()?.checked_mul(width)?;
    let bytes = bytes.get(at..at.checked_add(width)?)?;
    Some(match width {
        4 => i64::from(i32::from_ne_bytes(bytes.try_into().ok()?)),
        _ => i64::from_ne_bytes(bytes.try_into().ok()?),
    })
}

/// Puts some other number somewhere, or some other byte.
pub fn broken(input: &mut Input<'_>, bytes: &mut [u8], width: usize) {
    if bytes.is_empty() || !input.rarely(20) {
        return;
    }
    for _ in 0..=input.below(3) {
        let at = usize::from(u16::from_le_bytes([input.byte(), input.byte()])) % bytes.len();
        if width > 1 && input.rarely(128) {
            let start = at / width * width;
            let number = packed([input.number()], width.min(8));
            bytes.iter_mut().skip(start).zip(number).for_each(|(byte, new)| *byte = new);
        } else {
            bytes[at] ^= input.byte().max(1);
        }
    }
}

/// Values of a fixed width.
pub fn fixed(input: &mut Input<'_>, n: usize, width: usize, meaning: Meaning) -> Vec<u8> {
    let bytes = cycled(input, n);
    if let Meaning::Ends { reach, n } = meaning {
        let n = n.max(1);
        let ends = (1..=i64::try_from(bytes.len()).unwrap_or(0)).map(|i| i.max(reach.saturating_sub(n - i)));
        return packed(ends, width);
    }
    let number = |byte: u8| match meaning {
        Meaning::Indices(limit) => i64::from(byte) % limit.clamp(1, 256),
        Meaning::Values { step } => i64::from(byte % 10) * step,
        Meaning::Ends { .. } => 0,
    };
    let mut all = Vec::with_capacity(bytes.len() * width);
    for byte in bytes {
        let small = number(byte).to_ne_bytes();
        let used = width.min(8);
        all.extend_from_slice(&small[..used]);
        all.resize(all.len() + width - used, 0);
    }
    all
}

/// Offsets that never decrease, `n` of them, up to a limit.
pub fn offsets(input: &mut Input<'_>, n: usize, width: usize, limit: i64) -> Vec<u8> {
    let mut at = 0;
    let steps = cycled(input, n);
    packed(
        steps.into_iter().enumerate().map(|(i, step)| {
            at = if i == 0 { 0 } else { (at + i64::from(step % 4)).min(limit) };
            at
        }),
        width,
    )
}

/// Text of that many bytes.
pub fn text(input: &mut Input<'_>, n: usize) -> Vec<u8> {
    let mut bytes = cycled(input, n);
    if !input.rarely(64) {
        // Mostly ASCII, which is legal however it is cut.
        bytes.iter_mut().for_each(|byte| *byte &= 0x7f);
    }
    bytes
}

/// Views of `n` strings on buffers.
pub fn views(input: &mut Input<'_>, n: usize, buffers: &[Vec<u8>]) -> Vec<u8> {
    let lengths = cycled(input, n);
    let starts = cycled(input, n);
    let mut all = Vec::with_capacity(n * 16);
    for (length, start) in lengths.into_iter().zip(starts) {
        let buffer =
            buffers.get(usize::from(start) % buffers.len().max(1)).filter(|buffer| buffer.len() > 12);
        let mut view = [0_u8; 16];
        match buffer {
            Some(buffer) if length % 24 > 12 => {
                let wanted = usize::from(length % 24).min(buffer.len());
                let at = usize::from(start) % (buffer.len() - wanted + 1);
                let index = usize::from(start) % buffers.len();
                view[..4].copy_from_slice(&packed([i64::try_from(wanted).unwrap_or(0)], 4));
                view[4..8].copy_from_slice(&buffer[at..at + 4]);
                view[8..12].copy_from_slice(&packed([i64::try_from(index).unwrap_or(0)], 4));
                view[12..].copy_from_slice(&packed([i64::try_from(at).unwrap_or(0)], 4));
            }
            _ => {
                let inline = length % 13;
                view[0] = inline;
                view[4..4 + usize::from(inline)].fill(start & 0x7f);
            }
        }
        all.extend_from_slice(&view);
    }
    all
}
