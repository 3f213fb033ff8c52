//! Work in several lanes at once, each piece behind those that it needs.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// A piece of work, by its place in the list, and the places of what has to be done before.
#[derive(Clone, Debug, Default)]
pub struct Piece {
    /// What has to be done before.
    pub after: Vec<usize>,
}

/// How far the pieces have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Done,
}

/// Runs every piece once. A free lane takes the first in the list that waits for nothing; `done` is told of one at a time.
///
/// A piece that panics counts as done, and what it panicked with is its result.
pub fn run<T: Send>(
    pieces: &[Piece],
    lanes: usize,
    work: impl Fn(usize) -> T + Sync,
    done: impl FnMut(usize, thread::Result<T>) + Send,
) {
    let states = Mutex::new(vec![State::Waiting; pieces.len()]);
    let (changed, done) = (Condvar::new(), Mutex::new(done));
    thread::scope(|scope| {
        for _ in 0..lanes.max(1) {
            scope.spawn(|| {
                while let Some(piece) = take(pieces, lock(&states), &changed) {
                    let result: Result<T, Box<dyn Any + Send>> =
                        catch_unwind(AssertUnwindSafe(|| work(piece)));
                    (lock(&done))(piece, result);
                    set(&mut lock(&states), piece, State::Done);
                    changed.notify_all();
                }
            });
        }
    });
}

/// The next piece, once there is one that waits for nothing; `None` when all are under way.
fn take(pieces: &[Piece], mut states: MutexGuard<'_, Vec<State>>, changed: &Condvar) -> Option<usize> {
    loop {
        let waits = |piece: &usize| states.get(*piece).is_some_and(|state| *state != State::Done);
        let mut waiting =
            (0..pieces.len()).filter(|place| states.get(*place) == Some(&State::Waiting)).peekable();
        waiting.peek()?;
        let is_ready = |place: &usize| pieces.get(*place).is_some_and(|piece| !piece.after.iter().any(waits));
        if let Some(ready) = waiting.find(is_ready) {
            set(&mut states, ready, State::Running);
            return Some(ready);
        }
        states = changed.wait(states).unwrap_or_else(PoisonError::into_inner);
    }
}

fn set(states: &mut [State], piece: usize, state: State) {
    if let Some(place) = states.get_mut(piece) {
        *place = state;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(after: &[&[usize]]) -> Vec<Piece> {
        after.iter().map(|after| Piece { after: after.to_vec() }).collect()
    }

    #[test]
    fn each_piece_comes_once_and_behind_what_it_needs() {
        let list = pieces(&[&[2], &[], &[3], &[], &[0, 1]]);
        for lanes in 0..4 {
            let mut order = Vec::new();
            run(&list, lanes, |piece| piece, |piece, result| order.push((piece, result.unwrap())));
            assert_eq!(order.len(), list.len());
            let place =
                |piece| order.iter().position(|(done, result)| (*done, *result) == (piece, piece)).unwrap();
            for (piece, needs) in list.iter().enumerate() {
                assert!(needs.after.iter().all(|earlier| place(*earlier) < place(piece)), "{order:?}");
            }
        }
        let mut order = Vec::new();
        run(&list, 1, |piece| piece, |piece, _| order.push(piece));
        assert_eq!(order, [1, 3, 2, 0, 4]);
    }

    #[test]
    fn two_lanes_are_used_at_once() {
        let both = std::sync::Barrier::new(2);
        let mut n = 0;
        run(
            &pieces(&[&[], &[]]),
            2,
            |_| both.wait().is_leader(),
            |_, leads| n += usize::from(leads.unwrap()),
        );
        assert_eq!(n, 1);
    }

    #[test]
    fn a_panic_is_a_result() {
        let mut failed = Vec::new();
        let list = pieces(&[&[], &[0]]);
        run(&list, 2, |piece| assert!(piece > 0), |piece, result| failed.push((piece, result.is_err())));
        assert_eq!(failed, [(0, true), (1, false)]);
    }
}
