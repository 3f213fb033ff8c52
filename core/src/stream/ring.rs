//! What one thread has ready for another, in order and never more than so many.
//!
//! Nothing here knows what is handed over, and the locks come from outside, so that a model checker runs this file as it is.

use std::collections::VecDeque;
use std::sync::PoisonError;

use super::locks::{Condvar, Guard, Mutex};

/// Items on their way from one producer to one consumer, and how the producer came to its end: with an `E` where it failed.
pub struct Ring<T, E> {
    state: Mutex<State<T, E>>,
    /// The producer waits for room here, and the consumer for an item there.
    has_room: Condvar,
    has_news: Condvar,
}

struct State<T, E> {
    items: VecDeque<T>,
    /// How many items there may be, the one that the producer makes among them.
    most: usize,
    is_open: bool,
    is_stopped: bool,
    end: End<E>,
}

impl<T, E> State<T, E> {
    fn may_make(&self) -> bool {
        self.is_open && self.items.len() < self.most
    }
}

/// What comes behind the last item.
enum End<E> {
    /// Perhaps another item.
    NotYet,
    /// Nothing.
    Over,
    /// What went wrong, once.
    Failed(E),
}

/// What a consumer meets.
pub enum Taken<T, E> {
    /// The next item.
    Item(T),
    /// The end, again and again.
    End,
    /// What went wrong; told once, as the last thing before the end.
    Failed(E),
    /// Somebody has stopped the ring. Items that are left stay in it.
    Stopped,
}

impl<T, E> Ring<T, E> {
    /// A ring with room for as many items as the queue has, which is empty. The producer has to wait until it is opened.
    pub fn new(items: VecDeque<T>, most: usize) -> Self {
        let state = State { items, most, is_open: false, is_stopped: false, end: End::NotYet };
        Self { state: Mutex::new(state), has_room: Condvar::new(), has_news: Condvar::new() }
    }

    /// Lets the producer begin.
    pub fn open(&self) {
        self.lock().is_open = true;
        self.has_room.notify_one();
    }

    /// Waits until the producer may make an item; false when it is to leave.
    pub fn wait_for_room(&self) -> bool {
        let mut state = self.lock();
        while !(state.is_stopped || state.may_make()) {
            state = self.has_room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.is_stopped
    }

    /// Hands an item over, for which there has to be room. It comes back when nobody will take it any more.
    pub fn put(&self, item: T) -> Option<T> {
        let mut state = self.lock();
        if state.is_stopped || state.items.len() >= state.most {
            return Some(item);
        }
        state.items.push_back(item);
        drop(state);
        self.has_news.notify_one();
        None
    }

    /// Says that no item comes any more, and why not when something went wrong.
    pub fn finish(&self, failed: Option<E>) {
        self.lock().end = failed.map_or(End::Over, End::Failed);
        self.has_news.notify_one();
    }

    /// The next item, or whatever there is instead; waits for it.
    pub fn take(&self) -> Taken<T, E> {
        let mut state = self.lock();
        loop {
            if state.is_stopped {
                return Taken::Stopped;
            }
            if let Some(item) = state.items.pop_front() {
                drop(state);
                self.has_room.notify_one();
                return Taken::Item(item);
            }
            match core::mem::replace(&mut state.end, End::Over) {
                End::NotYet => state.end = End::NotYet,
                End::Over => return Taken::End,
                End::Failed(failed) => return Taken::Failed(failed),
            }
            state = self.has_news.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Sends the producer away and lets the consumer wait no more.
    pub fn stop(&self) {
        self.lock().is_stopped = true;
        self.has_room.notify_one();
        self.has_news.notify_one();
    }

    /// Whoever panicked left nothing half done: each change is a single step.
    fn lock(&self) -> Guard<'_, State<T, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
