//! What a consumer has asked a producer for.

use std::sync::PoisonError;

use super::sync::{Condvar, Mutex, MutexGuard};

/// What a producer is to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Give one array, or say that there are no more.
    Give,
    /// Stop without a word.
    Stop,
    /// Stop, because so many arrays cannot be asked for.
    Refuse(i64),
}

/// Requests of any thread, which one thread of the producer serves.
#[derive(Debug)]
pub struct Demand {
    asked: Mutex<Asked>,
    changed: Condvar,
}

#[derive(Debug)]
struct Asked {
    n: u64,
    is_cancelled: bool,
    refused: Option<i64>,
}

impl Demand {
    /// Nothing yet.
    pub fn new() -> Self {
        let asked = Asked { n: 0, is_cancelled: false, refused: None };
        Self { asked: Mutex::new(asked), changed: Condvar::new() }
    }

    /// Asks for `n` more arrays. More than can be counted are as many as can be. After a cancel it does nothing.
    pub fn request(&self, n: i64) {
        let mut asked = self.lock();
        if asked.is_cancelled {
            return;
        }
        match u64::try_from(n) {
            Ok(more @ 1..) => asked.n = asked.n.saturating_add(more),
            _ => asked.refused = asked.refused.or(Some(n)),
        }
        self.changed.notify_one();
    }

    /// Asks for nothing more, once for good.
    pub fn cancel(&self) {
        self.lock().is_cancelled = true;
        self.changed.notify_one();
    }

    /// Whether the consumer has cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.lock().is_cancelled
    }

    /// Waits until there is something to do, and takes one array's worth of it.
    pub fn wait(&self) -> Order {
        let mut asked = self.lock();
        loop {
            if asked.is_cancelled {
                return Order::Stop;
            }
            if let Some(n) = asked.refused {
                return Order::Refuse(n);
            }
            if let Some(less) = asked.n.checked_sub(1) {
                asked.n = less;
                return Order::Give;
            }
            asked = self.changed.wait(asked).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Demand {
    fn default() -> Self {
        Self::new()
    }
}
