//! The work of one large node, shared by threads.

use core::ops::Range;
use std::thread::{Builder, scope};

use crate::kernels::Check;

/// Rows that are not worth a thread.
const LEAST: usize = 1 << 18;

/// The first row that breaks the rule.
pub(super) fn first_bad<C: Check>(check: &C, rows: Range<usize>, threads: u32) -> Option<usize> {
    let n = rows.len();
    if threads < 2 || n < LEAST.saturating_mul(2) {
        return check.first_bad(rows);
    }
    let middle = rows.start.saturating_add(n >> 1);
    let (left, right) = (rows.start..middle, middle..rows.end);
    let (some, others) = (threads >> 1, threads.wrapping_sub(threads >> 1));
    scope(|scope| {
        let work = right.clone();
        let helper = Builder::new().spawn_scoped(scope, move || first_bad(check, work, some));
        let here = first_bad(check, left, others);
        let there = match helper {
            // A thread that did not come to its end has found nothing out, so its rows are looked at here.
            Ok(helper) => helper.join().unwrap_or_else(|payload| {
                core::mem::forget(payload);
                check.first_bad(right)
            }),
            Err(_) => check.first_bad(right),
        };
        here.or(there)
    })
}
