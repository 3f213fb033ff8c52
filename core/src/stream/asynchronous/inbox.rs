//! What a producer on any thread has handed over, and what a consumer on another takes.

use std::collections::VecDeque;
use std::sync::PoisonError;

use super::sync::{Condvar, Mutex, MutexGuard};

/// Why something that a producer hands over is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Nobody wants it any more.
    Unwanted,
    /// It came before the schema.
    BeforeSchema,
    /// The schema was there already.
    SecondSchema,
    /// It came after the end or an error.
    AfterEnd,
    /// Nobody has asked for it.
    NotAsked,
}

/// What a consumer gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "it lives on the stack, for one call")]
pub enum Taken<T, E> {
    /// The next task.
    Task(T),
    /// There are no more.
    End,
    /// There are no more, and why.
    Failed(E),
    /// The consumer has cancelled.
    Cancelled,
}

/// How a stream ended.
#[derive(Debug)]
enum Last<E> {
    /// As it should.
    End,
    /// With an error that the producer told.
    Told(E),
    /// With something that it should not have done.
    Found(E),
}

/// Threads that may be inside a producer's own functions at a time: one that asks, one that cancels, and the producer's own.
const CALLERS: usize = 4;

/// Tasks on their way, never more than asked for, and how far their producer has come.
#[derive(Debug)]
pub struct Inbox<T, E> {
    state: Mutex<State<T, E>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T, E> {
    tasks: VecDeque<T>,
    capacity: usize,
    /// Tasks that were asked for and have not come.
    n_asked: usize,
    has_schema: bool,
    last: Option<Last<E>>,
    is_released: bool,
    is_cancelled: bool,
    /// Who is inside a function of the producer's now.
    callers: [Option<usize>; CALLERS],
}

impl<T, E: Copy> Inbox<T, E> {
    /// An inbox that has room for as many tasks as `tasks` has.
    pub fn new(tasks: VecDeque<T>, capacity: usize) -> Self {
        let state = State {
            tasks,
            capacity,
            n_asked: 0,
            has_schema: false,
            last: None,
            is_released: false,
            is_cancelled: false,
            callers: [None; CALLERS],
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    // The producer's side.

    /// The schema is there. Gives as many tasks as are to be asked for.
    pub fn begin(&self) -> Result<usize, Refused> {
        let mut state = self.lock();
        state.check_open()?;
        if state.has_schema {
            return Err(Refused::SecondSchema);
        }
        state.has_schema = true;
        state.n_asked = state.capacity;
        self.changed.notify_all();
        Ok(state.capacity)
    }

    /// Takes a task over, or gives it back.
    pub fn put(&self, task: T) -> Result<(), (Refused, T)> {
        let mut state = self.lock();
        if let Err(refused) = state.check_begun() {
            return Err((refused, task));
        }
        let Some(left) = state.n_asked.checked_sub(1) else { return Err((Refused::NotAsked, task)) };
        state.n_asked = left;
        state.tasks.push_back(task);
        self.changed.notify_all();
        Ok(())
    }

    /// There are no more.
    pub fn end(&self) -> Result<(), Refused> {
        let mut state = self.lock();
        state.check_begun()?;
        state.last = Some(Last::End);
        self.changed.notify_all();
        Ok(())
    }

    /// The producer says what went wrong. Of several errors the first counts, also behind an end.
    pub fn told(&self, error: E) {
        self.finish(Last::Told(error));
    }

    /// The producer did what it should not have done.
    pub fn found(&self, error: E) {
        self.finish(Last::Found(error));
    }

    /// The producer is done with us; `error` is for one that did not say so before. Returns when nobody is inside one of its
    /// functions but perhaps `caller`, who would wait for itself.
    pub fn release(&self, caller: usize, error: E) {
        let mut state = self.lock();
        if state.last.is_none() {
            state.last = Some(Last::Found(error));
        }
        state.is_released = true;
        self.changed.notify_all();
        while state.callers.iter().flatten().any(|other| *other != caller) {
            state = self.wait(state);
        }
    }

    // The consumer's side.

    /// Waits for the schema. Without one it is known why, unless the consumer has cancelled.
    pub fn schema(&self) -> Result<(), Option<E>> {
        let mut state = self.lock();
        loop {
            if state.has_schema {
                return Ok(());
            }
            if state.is_cancelled {
                return Err(None);
            }
            if let Some(Last::Told(error) | Last::Found(error)) = &state.last {
                return Err(Some(*error));
            }
            state = self.wait(state);
        }
    }

    /// Waits for what comes next. The end and an error that the producer told come when it has let its handler go.
    pub fn take(&self) -> Taken<T, E> {
        let mut state = self.lock();
        loop {
            if state.is_cancelled {
                return Taken::Cancelled;
            }
            if let Some(task) = state.tasks.pop_front() {
                return Taken::Task(task);
            }
            match &state.last {
                Some(Last::Found(error)) => return Taken::Failed(*error),
                Some(Last::Told(error)) if state.is_released => return Taken::Failed(*error),
                Some(Last::End) if state.is_released => return Taken::End,
                _ => state = self.wait(state),
            }
        }
    }

    /// A task was used up, so that there is room for another. Says whether to ask for one.
    pub fn make_room(&self) -> bool {
        let mut state = self.lock();
        let asks = state.last.is_none() && !state.is_cancelled;
        if asks {
            state.n_asked = state.n_asked.saturating_add(1);
        }
        asks
    }

    /// Wants nothing more. Says whether this is the first time.
    pub fn cancel(&self) -> bool {
        let mut state = self.lock();
        let is_first = !state.is_cancelled;
        state.is_cancelled = true;
        self.changed.notify_all();
        is_first
    }

    /// A task that nobody took, after a cancel.
    pub fn leftover(&self) -> Option<T> {
        self.lock().tasks.pop_front()
    }

    /// Lets a thread into the producer's functions, unless the producer is gone or not there yet.
    pub fn enter(&self, caller: usize) -> bool {
        let mut state = self.lock();
        if state.is_released || !state.has_schema {
            return false;
        }
        match state.callers.iter_mut().find(|place| place.is_none()) {
            Some(place) => {
                *place = Some(caller);
                true
            }
            None => false,
        }
    }

    /// The thread is out again.
    pub fn leave(&self, caller: usize) {
        let mut state = self.lock();
        if let Some(place) = state.callers.iter_mut().find(|place| **place == Some(caller)) {
            *place = None;
        }
        self.changed.notify_all();
    }

    fn finish(&self, last: Last<E>) {
        let mut state = self.lock();
        if matches!(state.last, None | Some(Last::End)) {
            state.last = Some(last);
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<T, E>>) -> MutexGuard<'a, State<T, E>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T, E> State<T, E> {
    fn check_open(&self) -> Result<(), Refused> {
        match self.last {
            _ if self.is_cancelled => Err(Refused::Unwanted),
            Some(_) => Err(Refused::AfterEnd),
            None => Ok(()),
        }
    }

    fn check_begun(&self) -> Result<(), Refused> {
        self.check_open()?;
        if self.has_schema { Ok(()) } else { Err(Refused::BeforeSchema) }
    }
}
