//! The backend against the simulated driver.
//!
//! `BOWSTRING_CUDA_SIM` names the folder with the simulated driver's variants.

#![cfg(unix)]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_types,
    clippy::arithmetic_side_effects,
    reason = "tests may fail hard"
)]

mod contexts;
mod failures;
mod opening;
mod sim;

use core::ffi::c_void;
use core::ptr::{NonNull, null, null_mut};

use self::sim::*;
use crate::abi::{DEVICE_CUDA, DEVICE_CUDA_HOST, DEVICE_CUDA_MANAGED, Device};
use crate::device::backend::{Backend, Queue, Route};
use crate::error::Status;

fn cuda_device(id: i64) -> Device {
    Device { r#type: DEVICE_CUDA, id }
}

const PINNED: Device = Device { r#type: DEVICE_CUDA_HOST, id: -1 };

fn managed(id: i64) -> Device {
    Device { r#type: DEVICE_CUDA_MANAGED, id }
}

fn library_queue(cuda: &dyn Backend, device: Device) -> Queue {
    ok(|report| cuda.library_queue(device, report))
}

/// Memory on a device that holds these bytes, once its queue is drained.
fn filled(cuda: &dyn Backend, device: Device, bytes: &[u8], queue: Queue) -> NonNull<c_void> {
    let data = allocate(cuda, device, bytes.len(), queue);
    assert_eq!(data.addr().get() % 64, 0);
    copy(cuda, Route::FromHost, device, data.as_ptr(), bytes.as_ptr().cast(), bytes.len(), queue);
    drain(cuda, device, queue);
    data
}

fn read(cuda: &dyn Backend, device: Device, data: NonNull<c_void>, n: usize, queue: Queue) -> Vec<u8> {
    let mut bytes = vec![0; n];
    copy(cuda, Route::ToHost, device, bytes.as_mut_ptr().cast(), data.as_ptr(), n, queue);
    drain(cuda, device, queue);
    bytes
}

fn pattern(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 7 % 251) as u8).collect()
}

/// Each device goes through its own queue and back; what is alive afterwards is the library's stream and context.
fn round_trips(sim: &Sim) {
    let cuda = sim.cuda();
    let bytes = pattern(1000);
    for device in [cuda_device(0), cuda_device(1), PINNED, managed(0), managed(1)] {
        let queue = library_queue(cuda, device);
        let first = filled(cuda, device, &bytes, queue);
        let second = allocate(cuda, device, bytes.len(), queue);
        copy(cuda, Route::Within, device, second.as_ptr(), first.as_ptr(), bytes.len(), queue);
        // Behind the copy in the order of the queue, and so legal at once.
        free(cuda, device, first, bytes.len(), queue);
        assert_eq!(read(cuda, device, second, bytes.len(), queue), bytes, "{device:?}");
        free(cuda, device, second, bytes.len(), queue);
        assert_eq!((sim.live().pushed, sim.current()), (0, null_mut()));
    }
    sim.wait_idle();
    sim.no_faults();
    let left = Counts { streams: 2, primary_retains: 2, ..Counts::default() };
    assert_eq!(sim.live(), left);
}

#[test]
fn memory_goes_there_and_back() {
    alone(concat!(module_path!(), "::memory_goes_there_and_back"), "full", "", |sim| {
        round_trips(sim);
        assert_eq!(sim.calls(c"cuMemAlloc_v2"), 0);
        assert_eq!((sim.calls(c"cuMemAllocAsync"), sim.calls(c"cuMemFreeAsync")), (4, 4));
        let log = sim.log();
        // Pinned for every device and mapped for it; managed for every stream.
        for (function, flags) in [("cuMemHostAlloc", " flags=3"), ("cuMemAllocManaged", " flags=1")] {
            let (_, arguments) = log.iter().find(|(name, _)| name == function).unwrap();
            assert!(arguments.contains(flags), "{function}: {arguments}");
        }
    });
}

#[test]
fn memory_without_pools() {
    alone(concat!(module_path!(), "::memory_without_pools"), "full", "memory_pools=0", |sim| {
        round_trips(sim);
        assert_eq!(sim.calls(c"cuMemAllocAsync"), 0);
        assert_eq!((sim.calls(c"cuMemAlloc_v2"), sim.calls(c"cuMemFreeHost")), (4, 2));
    });
}

#[test]
fn memory_of_a_driver_that_knows_no_pools() {
    let name = concat!(module_path!(), "::memory_of_a_driver_that_knows_no_pools");
    alone(name, "no_async_memory", "", |sim| {
        round_trips(sim);
        assert_eq!(sim.calls(c"cuMemAlloc_v2"), 4);
    });
}

#[test]
fn every_memory_reaches_every_other() {
    let name = concat!(module_path!(), "::every_memory_reaches_every_other");
    alone(name, "full", "peer_access=0", |sim| {
        let cuda = sim.cuda();
        let bytes = pattern(300);
        let devices = [cuda_device(0), cuda_device(1), PINNED, managed(0), managed(1)];
        for from in devices {
            let source_queue = library_queue(cuda, from);
            let source = filled(cuda, from, &bytes, source_queue);
            for to in devices.into_iter().filter(|to| *to != from) {
                assert!(cuda.reaches(to, from));
                let queue = library_queue(cuda, to);
                let target = allocate(cuda, to, bytes.len(), queue);
                copy(cuda, Route::From(from), to, target.as_ptr(), source.as_ptr(), bytes.len(), queue);
                assert_eq!(read(cuda, to, target, bytes.len(), queue), bytes, "{from:?} to {to:?}");
                free(cuda, to, target, bytes.len(), queue);
            }
            free(cuda, from, source, bytes.len(), source_queue);
        }
        assert!(!cuda.reaches(cuda_device(0), Device::CPU) && !cuda.reaches(Device::CPU, cuda_device(0)));
        assert!(sim.calls(c"cuMemcpyPeerAsync") == 2);
        sim.no_faults();
    });
}

#[test]
fn peers_of_contexts_of_their_own() {
    let name = concat!(module_path!(), "::peers_of_contexts_of_their_own");
    alone(name, "full", "peer_access=0,memory_pools=0", |sim| {
        let cuda = sim.cuda();
        let bytes = pattern(100);
        sim.create_context(0);
        let own = sim.create_stream(0);
        sim.set_current(null_mut());
        let source = filled(cuda, cuda_device(0), &bytes, own);
        let queue = library_queue(cuda, cuda_device(1));
        let target = allocate(cuda, cuda_device(1), bytes.len(), queue);
        sim.clear_log();
        copy(cuda, Route::From(cuda_device(0)), cuda_device(1), target.as_ptr(), source.as_ptr(), 100, queue);
        // Each address was asked for its own context, which the simulated driver does not tell from the device's others.
        let asked = |(name, arguments): &&(String, String)| {
            name == "cuPointerGetAttribute" && arguments.starts_with("attribute=1 ")
        };
        assert_eq!((sim.log().iter().filter(asked).count(), sim.calls(c"cuMemcpyPeerAsync")), (2, 1));
        assert_eq!(read(cuda, cuda_device(1), target, 100, queue), bytes);
        free(cuda, cuda_device(0), source, 100, own);
        free(cuda, cuda_device(1), target, 100, queue);
        assert_eq!(sim.live().device_memory, 0);
        sim.no_faults();
    });
}

#[test]
fn free_waits_for_the_queue() {
    for settings in ["", "memory_pools=0"] {
        alone(concat!(module_path!(), "::free_waits_for_the_queue"), "full", settings, |sim| {
            let cuda = sim.cuda();
            for device in [cuda_device(0), PINNED, managed(0)] {
                let queue = library_queue(cuda, device);
                let (a, b) = (filled(cuda, device, &pattern(64), queue), allocate(cuda, device, 64, queue));
                copy(cuda, Route::Within, device, b.as_ptr(), a.as_ptr(), 64, queue);
                free(cuda, device, a, 64, queue);
                free(cuda, device, b, 64, queue);
            }
            sim.wait_idle();
            sim.no_faults();
            assert_eq!(sim.live().bytes, 0);
        });
    }
}

#[test]
fn events() {
    alone(concat!(module_path!(), "::events"), "full", "", |sim| {
        let cuda = sim.cuda();
        assert!(cuda.has_events());
        let (a, b) = (library_queue(cuda, cuda_device(0)), library_queue(cuda, cuda_device(1)));
        sim.block(a);
        let event = record(cuda, cuda_device(0), a);
        assert!(!is_done(cuda, cuda_device(0), event));
        // A queue of another device waits, and so is what is recorded there not done.
        // SAFETY: queue and event are the driver's.
        ok(|report| unsafe { cuda.queue_waits(cuda_device(1), event, b, report) });
        let behind = record(cuda, cuda_device(1), b);
        assert!(!is_done(cuda, cuda_device(1), behind));
        // An event not waited for on its own device is asked from another one's context.
        assert!(!is_done(cuda, cuda_device(1), event));
        sim.unblock(a);
        // SAFETY: the event is the driver's.
        ok(|report| unsafe { cuda.host_waits(cuda_device(1), behind, report) });
        assert!(is_done(cuda, cuda_device(1), behind) && is_done(cuda, cuda_device(0), event));
        assert_eq!(sim.live().events, 2);
        // SAFETY: nobody uses the events afterwards.
        unsafe {
            cuda.destroy_event(cuda_device(0), event);
            cuda.destroy_event(cuda_device(1), behind);
        }
        sim.block(a);
        let pending = record(cuda, PINNED, a);
        // SAFETY: an event may end before it is done.
        unsafe { cuda.destroy_event(PINNED, pending) };
        sim.unblock(a);
        drain(cuda, cuda_device(0), a);
        assert_eq!((sim.live().events, sim.live().pushed), (0, 0));
        sim.no_faults();
    });
}

#[test]
fn an_event_of_somebody_else() {
    alone(concat!(module_path!(), "::an_event_of_somebody_else"), "full", "", |sim| {
        let cuda = sim.cuda();
        sim.create_context(1);
        let own = sim.create_stream(0);
        sim.block(own);
        let event = record(cuda, cuda_device(1), own);
        sim.set_current(null_mut());
        let queue = library_queue(cuda, cuda_device(0));
        // SAFETY: queue and event are the driver's.
        ok(|report| unsafe { cuda.queue_waits(cuda_device(0), event, queue, report) });
        let behind = record(cuda, cuda_device(0), queue);
        assert!(!is_done(cuda, cuda_device(0), event) && !is_done(cuda, cuda_device(0), behind));
        sim.unblock(own);
        // SAFETY: the event is the driver's.
        ok(|report| unsafe { cuda.host_waits(cuda_device(1), event, report) });
        drain(cuda, cuda_device(0), queue);
        assert!(is_done(cuda, cuda_device(0), behind));
        sim.no_faults();
    });
}

#[test]
fn addresses() {
    alone(concat!(module_path!(), "::addresses"), "full", "pointer_needs_context=1", |sim| {
        let cuda = sim.cuda();
        let on = |device| allocate(cuda, device, 64, library_queue(cuda, device)).as_ptr();
        let plain = pattern(64);
        let (first, second) = (on(cuda_device(0)), on(cuda_device(1)));
        let (pinned, moving) = (on(PINNED), on(managed(1)));
        let malloc = plain.as_ptr().cast_mut().cast::<c_void>();
        let right = [
            (cuda_device(0), first),
            (cuda_device(1), second),
            (cuda_device(0), moving),
            (PINNED, pinned),
            (Device { id: 1, ..PINNED }, pinned),
            (managed(0), moving),
            (managed(1), moving),
        ];
        for (device, data) in right {
            assert_eq!(ok(|report| cuda.locate(device, data, report)), Some(device));
        }
        let wrong = [
            (cuda_device(1), first, cuda_device(0)),
            (cuda_device(0), second, cuda_device(1)),
            (PINNED, first, cuda_device(0)),
            (managed(0), first, cuda_device(0)),
            (PINNED, moving, managed(1)),
            (cuda_device(0), pinned, Device { id: 0, ..PINNED }),
            (managed(0), pinned, Device { id: 0, ..PINNED }),
            (cuda_device(0), malloc, Device::CPU),
            (PINNED, malloc, Device::CPU),
            (managed(0), malloc, Device::CPU),
        ];
        for (device, data, found) in wrong {
            let there = ok(|report| cuda.locate(device, data, report));
            assert_eq!(there, Some(found), "{device:?} {data:p}");
        }
        assert_eq!(sim.live().pushed, 0);
        sim.no_faults();
    });
}

#[test]
fn what_the_cpu_may_touch() {
    for concurrent in ["concurrent_managed=1", "concurrent_managed=0"] {
        alone(concat!(module_path!(), "::what_the_cpu_may_touch"), "full", concurrent, |sim| {
            let cuda = sim.cuda();
            let expected = std::env::var("CUDA_SIM").unwrap().ends_with('1');
            let may = |device| ok(|report| cuda.is_host_accessible(device, report));
            assert!(may(PINNED) && !may(cuda_device(0)));
            assert_eq!((may(managed(0)), may(managed(1))), (expected, expected));
        });
    }
}

#[test]
fn no_managed_memory() {
    alone(concat!(module_path!(), "::no_managed_memory"), "full", "managed_memory=0", |sim| {
        let cuda = sim.cuda();
        let queue = library_queue(cuda, managed(0));
        // SAFETY: the queue is the driver's.
        fails(Status::Unsupported, &["managed memory"], |report| unsafe {
            cuda.allocate(managed(0), 64, queue, report)
        });
        assert_eq!(sim.calls(c"cuMemAllocManaged"), 0);
    });
}

#[test]
fn ids() {
    alone(concat!(module_path!(), "::ids"), "full", "", |sim| {
        let cuda = sim.cuda();
        assert_eq!(ok(|report| cuda.count(DEVICE_CUDA, report)), 2);
        let pinned = |id| Device { id, ..PINNED };
        for device in [pinned(-1), pinned(0), managed(0)] {
            assert_eq!(library_queue(cuda, device), library_queue(cuda, cuda_device(0)));
        }
        assert_ne!(library_queue(cuda, cuda_device(0)), library_queue(cuda, cuda_device(1)));
        assert_eq!(library_queue(cuda, pinned(1)), library_queue(cuda, managed(1)));
        let max = i64::MAX;
        for id in [2, 63, 64, max, i64::MIN, -2] {
            let found = format!("found {id}");
            for device in [cuda_device(id), pinned(id), managed(id)] {
                let words = &["one of 2 CUDA devices", &found];
                fails(Status::DeviceUnavailable, words, |report| cuda.library_queue(device, report));
            }
        }
        fails(Status::DeviceUnavailable, &[], |report| cuda.library_queue(cuda_device(-1), report));
        // SAFETY: there is no such device whose queue it could be.
        fails(Status::DeviceUnavailable, &[], |report| unsafe {
            cuda.drain(cuda_device(7), null_mut(), report)
        });
        fails(Status::DeviceUnavailable, &[], |report| {
            cuda.locate(cuda_device(7), null::<u8>().wrapping_add(64).cast(), report)
        });
        assert_eq!(sim.live().primary_retains, 2);
    });
}

#[test]
fn threads_open_a_device_once() {
    alone(concat!(module_path!(), "::threads_open_a_device_once"), "full", "devices=8", |sim| {
        let barrier = std::sync::Barrier::new(64);
        std::thread::scope(|scope| {
            let run = |id| {
                barrier.wait();
                let cuda = ok(super::backend);
                barrier.wait();
                let device = cuda_device(id);
                let queue = library_queue(cuda, device);
                assert_eq!(
                    read(cuda, device, filled(cuda, device, &pattern(99), queue), 99, queue),
                    pattern(99)
                );
            };
            for i in 0..64 {
                scope.spawn(move || run(i % 8));
            }
        });
        let live = sim.live();
        assert_eq!((sim.calls(c"cuInit"), live.streams, live.primary_retains, live.pushed), (1, 8, 8, 0));
        sim.no_faults();
    });
}
