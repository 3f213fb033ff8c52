//! The hand-over of a stream that is ahead of its consumer, in every order in which its threads can meet.
//!
//! Nothing is lost, doubled or out of order, nobody holds more than was said, and nobody waits for ever: a model in which
//! somebody does is a deadlock, which the checker reports.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize as Count, Ordering};

use bowstring_models::ring::{Ring, Taken};
use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use loom::thread;

/// An item that counts how many of its kind there are.
struct Item(usize, Arc<AtomicUsize>);

impl Item {
    fn new(number: usize, alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, SeqCst);
        Self(number, alive.clone())
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        self.1.fetch_sub(1, SeqCst);
    }
}

type Hand = Ring<Item, usize>;

fn ring(most: usize) -> Arc<Hand> {
    Arc::new(Ring::new(VecDeque::with_capacity(most), most))
}

/// The producer's thread as the library has it: `n` items, then the end or a failure.
fn produce(ring: &Hand, n: usize, fails: bool, most: usize, alive: &Arc<AtomicUsize>) {
    for number in 0.. {
        if !ring.wait_for_room() {
            return;
        }
        if number == n {
            return ring.finish(fails.then_some(n));
        }
        let item = Item::new(number, alive);
        // The consumer may hold one that it was given.
        assert!(alive.load(SeqCst) <= most + 1);
        if ring.put(item).is_some() {
            return;
        }
    }
}

/// What a consumer was given before it met something else, and whether that was a stop.
fn consume(ring: &Hand, n: usize, fails: bool) -> (usize, bool) {
    let mut taken = 0;
    loop {
        match ring.take() {
            Taken::Item(item) => {
                assert_eq!(item.0, taken);
                taken += 1;
            }
            Taken::End => {
                assert!(!fails);
                break;
            }
            Taken::Failed(at) => {
                assert!(fails && at == n);
                break;
            }
            Taken::Stopped => return (taken, true),
        }
    }
    assert_eq!(taken, n);
    (taken, false)
}

/// Runs a model in every order, with so many switches where nobody has to wait, and says in how many.
fn every_order(name: &str, most_switches: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let orders = std::sync::Arc::new(Count::new(0));
    let counted = orders.clone();
    let mut builder = Builder::new();
    builder.preemption_bound = most_switches;
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let orders = orders.load(Ordering::Relaxed);
    println!("{name}: {orders} orders");
    assert!(orders > 1);
}

/// A producer and a consumer until the end.
fn to_the_end(n: usize, most: usize, fails: bool) {
    let (ring, alive) = (ring(most), Arc::new(AtomicUsize::new(0)));
    let (own, counted) = (ring.clone(), alive.clone());
    let producer = thread::spawn(move || produce(&own, n, fails, most, &counted));
    ring.open();
    assert_eq!(consume(&ring, n, fails), (n, false));
    assert!(matches!(ring.take(), Taken::End));
    ring.stop();
    producer.join().unwrap();
    drop(ring);
    assert_eq!(alive.load(SeqCst), 0);
}

/// Somebody cancels at any moment while a consumer asks; then the stream is released.
fn cancelled(n: usize, most: usize) {
    let (ring, alive) = (ring(most), Arc::new(AtomicUsize::new(0)));
    let (own, counted) = (ring.clone(), alive.clone());
    let producer = thread::spawn(move || produce(&own, n, false, most, &counted));
    let own = ring.clone();
    let canceller = thread::spawn(move || own.stop());
    ring.open();
    let (taken, is_stopped) = consume(&ring, n, false);
    assert!(is_stopped || taken == n);
    canceller.join().unwrap();
    assert!(matches!(ring.take(), Taken::Stopped));
    ring.stop();
    producer.join().unwrap();
    drop(ring);
    assert_eq!(alive.load(SeqCst), 0);
}

/// The consumer releases the stream after so many items: the producer leaves, and nothing stays. What was not opened had
/// nothing to ask.
fn released(n: usize, most: usize, after: usize, opened: bool) {
    let (ring, alive) = (ring(most), Arc::new(AtomicUsize::new(0)));
    let (own, counted) = (ring.clone(), alive.clone());
    let source = Arc::new(AtomicUsize::new(0));
    let from = source.clone();
    let producer = thread::spawn(move || {
        if own.wait_for_room() {
            assert_eq!(from.load(SeqCst), 1);
            produce(&own, n, false, most, &counted);
        }
    });
    if opened {
        source.store(1, SeqCst);
        ring.open();
    }
    for number in 0..after {
        match ring.take() {
            Taken::Item(item) => assert_eq!(item.0, number),
            _ => panic!("an item was lost"),
        }
    }
    ring.stop();
    producer.join().unwrap();
    drop(ring);
    assert_eq!(alive.load(SeqCst), 0);
}

#[test]
fn to_the_end_in_every_order() {
    for (n, most) in [(0, 1), (1, 1), (2, 1), (2, 2), (3, 2)] {
        for fails in [false, true] {
            every_order(&format!("{n} items, {most} ahead, fails {fails}"), Some(3), move || {
                to_the_end(n, most, fails);
            });
        }
    }
}

#[test]
fn cancelled_in_every_order() {
    for (n, most) in [(0, 1), (1, 1), (2, 1), (2, 2)] {
        every_order(&format!("{n} items, {most} ahead, cancelled"), Some(2), move || cancelled(n, most));
    }
}

#[test]
fn released_in_every_order() {
    for (n, most, after) in [(0, 1, 0), (1, 1, 0), (2, 1, 1), (3, 2, 0), (3, 2, 1), (2, 2, 2)] {
        every_order(&format!("{n} items, {most} ahead, released after {after}"), Some(3), move || {
            released(n, most, after, true);
        });
    }
    // What was never opened: nothing was taken over.
    every_order("never opened", None, || released(2, 1, 0, false));
}
