//! The hand-over of asynchronous streams in every interleaving that its threads can have: the library's own files, with
//! [loom](https://docs.rs/loom)'s locks in the place of std's. `cargo xtask models` runs it.
mod sync {
    pub use loom::sync::{Condvar, Mutex, MutexGuard};
}
#[path = "../../core/src/stream/asynchronous/demand.rs"]
#[allow(dead_code, reason = "the library uses all of it")]
mod demand;
#[path = "../../core/src/stream/asynchronous/inbox.rs"]
#[allow(dead_code, reason = "the library uses all of it")]
mod inbox;

use std::collections::VecDeque;

use demand::{Demand, Order};
use inbox::{Inbox, Refused, Taken};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use loom::thread;

const PRODUCER: usize = 1;
const CONSUMER: usize = 2;
const OTHER: usize = 3;

/// What producer and consumer share, and what came of each task.
struct World {
    demand: Demand,
    inbox: Inbox<usize, usize>,
    /// How often each task was used or thrown away.
    settled: Vec<AtomicUsize>,
    /// The producer's own memory is gone.
    is_gone: AtomicBool,
}

impl World {
    fn new(capacity: usize, n: usize) -> Arc<Self> {
        Arc::new(Self {
            demand: Demand::new(),
            inbox: Inbox::new(VecDeque::with_capacity(capacity), capacity),
            settled: (0..n).map(|_| AtomicUsize::new(0)).collect(),
            is_gone: AtomicBool::new(false),
        })
    }

    fn settle(&self, task: usize) {
        self.settled.get(task).unwrap().fetch_add(1, SeqCst);
    }

    /// A call of the consumer's side into the producer.
    fn call(&self, caller: usize, function: impl FnOnce(&Demand)) {
        if self.inbox.enter(caller) {
            assert!(!self.is_gone.load(SeqCst), "the producer is gone");
            function(&self.demand);
            assert!(!self.is_gone.load(SeqCst), "the producer went meanwhile");
            self.inbox.leave(caller);
        }
    }

    /// As the thread of the library's producer works; it fails behind `n` tasks when `fails`. Says how many it gave.
    fn produce(&self, n: usize, fails: bool) -> usize {
        let mut given = 0;
        match self.inbox.begin() {
            Ok(capacity) => self.call(PRODUCER, |demand| demand.request(capacity as i64)),
            Err(Refused::Unwanted) => return self.let_go(given),
            Err(refused) => panic!("{refused:?}"),
        }
        loop {
            match self.demand.wait() {
                Order::Stop => break,
                Order::Refuse(n) => panic!("{n}"),
                Order::Give if given == n && fails => {
                    self.inbox.told(7);
                    break;
                }
                Order::Give if given == n => {
                    let _ = self.inbox.end();
                    break;
                }
                Order::Give => match self.inbox.put(given) {
                    Ok(()) => given += 1,
                    Err((Refused::Unwanted, task)) => {
                        self.settle(task);
                        given += 1;
                    }
                    Err((refused, _)) => panic!("{refused:?}"),
                },
            }
        }
        self.let_go(given)
    }

    fn let_go(&self, given: usize) -> usize {
        self.inbox.release(PRODUCER, 9);
        self.is_gone.store(true, SeqCst);
        given
    }

    /// As a stream asks; says how it ended and how many tasks came.
    fn consume(&self, most: usize) -> (Taken<usize, usize>, usize) {
        let mut n = 0;
        while n < most {
            match self.inbox.take() {
                Taken::Task(task) => {
                    assert_eq!(task, n, "out of order");
                    self.settle(task);
                    n += 1;
                    if self.inbox.make_room() {
                        self.call(CONSUMER, |demand| demand.request(1));
                    }
                }
                last => return (last, n),
            }
        }
        (Taken::Cancelled, n)
    }

    fn cancel(&self, caller: usize) {
        if self.inbox.cancel() {
            self.call(caller, Demand::cancel);
        }
    }

    /// As a stream is let go.
    fn close(&self) {
        self.cancel(CONSUMER);
        while let Some(task) = self.inbox.leftover() {
            self.settle(task);
        }
    }

    fn all_settled(&self, given: usize) {
        for (i, times) in self.settled.iter().enumerate() {
            assert_eq!(times.load(SeqCst), usize::from(i < given), "task {i} of {given}");
        }
    }
}

/// All interleavings with at most so many switches that no wait asks for.
fn model(switches: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(switches);
    builder.check(run);
}

#[test]
fn all_tasks_come_in_order_and_then_the_end() {
    for (capacity, n) in [(1, 2), (2, 2), (3, 1), (1, 0)] {
        model(3, move || {
            let world = World::new(capacity, n);
            let other = world.clone();
            let producer = thread::spawn(move || other.produce(n, false));
            assert_eq!(world.consume(usize::MAX), (Taken::End, n));
            world.close();
            world.all_settled(producer.join().unwrap());
        });
    }
}

#[test]
fn an_error_comes_behind_the_tasks() {
    for (capacity, n) in [(1, 1), (2, 1), (1, 0)] {
        model(3, move || {
            let world = World::new(capacity, n);
            let other = world.clone();
            let producer = thread::spawn(move || other.produce(n, true));
            assert_eq!(world.consume(usize::MAX), (Taken::Failed(7), n));
            world.close();
            world.all_settled(producer.join().unwrap());
        });
    }
}

#[test]
fn a_stream_that_is_let_go_at_any_moment_loses_nothing() {
    for (capacity, n, taken) in [(1, 2, 0), (2, 2, 0), (1, 2, 1), (2, 2, 1), (1, 1, 1)] {
        model(3, move || {
            let world = World::new(capacity, n);
            let other = world.clone();
            let producer = thread::spawn(move || other.produce(n, false));
            world.consume(taken);
            world.close();
            world.all_settled(producer.join().unwrap());
        });
    }
}

#[test]
fn a_cancel_of_another_thread_wakes_all() {
    model(2, || {
        let world = World::new(1, 2);
        let (first, second) = (world.clone(), world.clone());
        let producer = thread::spawn(move || first.produce(2, false));
        let canceller = thread::spawn(move || second.cancel(OTHER));
        let (last, _) = world.consume(usize::MAX);
        assert!(matches!(last, Taken::End | Taken::Cancelled));
        canceller.join().unwrap();
        world.close();
        world.all_settled(producer.join().unwrap());
    });
}

#[test]
fn whoever_waits_for_the_schema_is_woken() {
    model(3, || {
        let world = World::new(1, 0);
        let (first, second) = (world.clone(), world.clone());
        let producer = thread::spawn(move || first.produce(0, true));
        let canceller = thread::spawn(move || second.cancel(OTHER));
        assert!(matches!(world.inbox.schema(), Ok(()) | Err(None)));
        canceller.join().unwrap();
        world.close();
        world.all_settled(producer.join().unwrap());
    });
}

#[test]
fn never_more_than_was_asked_for() {
    model(3, || {
        let demand = Arc::new(Demand::new());
        let asked = demand.clone();
        let consumer = thread::spawn(move || {
            asked.request(1);
            asked.request(1);
            asked.cancel();
            asked.request(1);
            asked.request(0);
        });
        let mut given = 0;
        loop {
            match demand.wait() {
                Order::Give => given += 1,
                Order::Stop => break,
                Order::Refuse(n) => panic!("{n}"),
            }
        }
        assert!(given <= 2);
        consumer.join().unwrap();
    });
}
