//! Whose context a call runs in, and which queues it refuses.

use super::*;
use crate::error::Report;

/// All that the backend does on a queue, on one device.
fn all_on(cuda: &dyn Backend, device: Device, queue: Queue) {
    // SAFETY: the queue is the driver's.
    ok(|report| unsafe { cuda.check_queue(device, queue, report) });
    let bytes = pattern(64);
    let data = filled(cuda, device, &bytes, queue);
    let event = record(cuda, device, queue);
    // SAFETY: queue and event are the driver's; nobody uses the event after its end.
    unsafe {
        ok(|report| cuda.queue_waits(device, event, queue, report));
        ok(|report| cuda.host_waits(device, event, report));
        assert!(is_done(cuda, device, event));
        cuda.destroy_event(device, event);
    }
    assert_eq!(read(cuda, device, data, 64, queue), bytes);
    assert_eq!(ok(|report| cuda.locate(device, data.as_ptr(), report)), Some(device));
    free(cuda, device, data, 64, queue);
}

#[test]
fn the_callers_context_is_current_afterwards() {
    let name = concat!(module_path!(), "::the_callers_context_is_current_afterwards");
    for settings in ["", "memory_pools=0"] {
        alone(name, "full", settings, |sim| {
            let cuda = sim.cuda();
            let first = sim.create_context(0);
            let first_queue = sim.create_stream(0);
            let second = sim.create_context(1);
            let second_queue = sim.create_stream(1);
            // Of the two that are on the stack, one is enough.
            sim.pop();
            for current in [first, second, null_mut()] {
                sim.set_current(current);
                assert_eq!(sim.current(), current);
                let pushed = sim.live().pushed_here;
                all_on(cuda, cuda_device(0), first_queue);
                all_on(cuda, cuda_device(1), second_queue);
                all_on(cuda, managed(1), second_queue);
                all_on(cuda, PINNED, first_queue);
                // Pinned memory is used from any device's queues.
                all_on(cuda, PINNED, second_queue);
                for device in [cuda_device(0), cuda_device(1), PINNED, managed(0)] {
                    for queue in [library_queue(cuda, device), null_mut(), legacy(), per_thread()] {
                        all_on(cuda, device, queue);
                    }
                }
                assert_eq!((sim.current(), sim.live().pushed_here), (current, pushed));
            }
            sim.wait_idle();
            sim.no_faults();
            assert_eq!((sim.live().bytes, sim.live().events), (0, 0));
        });
    }
}

fn legacy() -> Queue {
    core::ptr::without_provenance_mut(1)
}

fn per_thread() -> Queue {
    core::ptr::without_provenance_mut(2)
}

#[test]
fn a_default_queue_is_that_of_the_current_context() {
    let name = concat!(module_path!(), "::a_default_queue_is_that_of_the_current_context");
    alone(name, "full", "", |sim| {
        let cuda = sim.cuda();
        let primary_queue = library_queue(cuda, cuda_device(0));
        sim.create_context(0);
        // The context's own default stream, and no other, is held up.
        sim.block(null_mut());
        let own = record(cuda, cuda_device(0), null_mut());
        assert!(!is_done(cuda, cuda_device(0), own));
        let context = sim.current();
        sim.set_current(null_mut());
        let primary = record(cuda, cuda_device(0), null_mut());
        drain(cuda, cuda_device(0), null_mut());
        assert!(is_done(cuda, cuda_device(0), primary) && !is_done(cuda, cuda_device(0), own));
        sim.set_current(context);
        // Of another device: its primary context's.
        let other = record(cuda, cuda_device(1), null_mut());
        drain(cuda, cuda_device(1), null_mut());
        assert!(is_done(cuda, cuda_device(1), other));
        sim.unblock(null_mut());
        drain(cuda, cuda_device(0), null_mut());
        assert!(is_done(cuda, cuda_device(0), own));
        drain(cuda, cuda_device(0), primary_queue);
        sim.no_faults();
    });
}

#[test]
fn the_library_queue_meets_no_default_stream() {
    let name = concat!(module_path!(), "::the_library_queue_meets_no_default_stream");
    alone(name, "full", "", |sim| {
        let cuda = sim.cuda();
        let device = cuda_device(0);
        let queue = library_queue(cuda, device);
        assert_eq!(library_queue(cuda, device), queue);
        let bytes = pattern(64);
        // Held up in the primary context, which the library's queue is in.
        let retain: unsafe extern "C" fn(*mut *mut c_void, i32) -> i32 =
            sim.function(c"cuDevicePrimaryCtxRetain");
        let mut primary = null_mut();
        // SAFETY: the context is this call's own.
        assert_eq!(unsafe { retain(&mut primary, 0) }, 0);
        sim.set_current(primary);
        sim.block(null_mut());
        let data = filled(cuda, device, &bytes, queue);
        assert_eq!(read(cuda, device, data, 64, queue), bytes);
        sim.unblock(null_mut());
        sim.block(queue);
        // Nor does the default stream wait for the library's.
        drain(cuda, device, null_mut());
        sim.unblock(queue);
        free(cuda, device, data, 64, queue);
        sim.no_faults();
    });
}

#[test]
fn a_queue_of_another_device_is_refused() {
    let name = concat!(module_path!(), "::a_queue_of_another_device_is_refused");
    alone(name, "full", "", |sim| {
        let cuda = sim.cuda();
        for (device, other) in [(0, 1), (1, 0)] {
            let queue = library_queue(cuda, cuda_device(other));
            let words = [format!("of CUDA device {device}"), format!("found one of {other}")];
            for named in [cuda_device(device), managed(device)] {
                // SAFETY: the queue is the driver's.
                fails(Status::InvalidArgument, &[&words[0], &words[1]], |report| unsafe {
                    cuda.check_queue(named, queue, report)
                });
            }
            // SAFETY: the queue is the driver's.
            ok(|report| unsafe { cuda.check_queue(PINNED, queue, report) });
        }
        assert_eq!(sim.live().pushed, 0);
    });
}

#[test]
fn a_captured_queue_is_refused_and_stays_captured() {
    let name = concat!(module_path!(), "::a_captured_queue_is_refused_and_stays_captured");
    alone(name, "full", "", |sim| {
        let cuda = sim.cuda();
        let context = sim.create_context(0);
        let (queue, free_queue) = (sim.create_stream(0), sim.create_stream(1));
        let check = |queue, report: &mut Report<'_>| {
            // SAFETY: the queue is the driver's.
            unsafe { cuda.check_queue(cuda_device(0), queue, report) }
        };
        ok(|report| check(queue, report));
        sim.begin_capture(queue);
        sim.clear_log();
        for current in [context, null_mut()] {
            sim.set_current(current);
            fails(Status::Unsupported, &["captured"], |report| check(queue, report));
            ok(|report| check(free_queue, report));
        }
        sim.set_current(context);
        // The default stream would have to wait for the one that is captured.
        for default in [null_mut(), legacy()] {
            let words = ["cuStreamIsCapturing", "906", "another queue is captured"];
            let record = fails(Status::Unsupported, &words, |report| check(default, report));
            assert_eq!(record.native_code, 906);
        }
        let enqueues = |(name, _): &(String, String)| name.contains("Async") || name.contains("Record");
        assert!(!sim.log().iter().any(enqueues));
        assert_eq!((sim.captures_invalidated(), sim.end_capture(queue)), (0, 0));
        ok(|report| check(queue, report));
        sim.no_faults();
    });
}

#[test]
fn a_capture_elsewhere_is_left_alone() {
    let name = concat!(module_path!(), "::a_capture_elsewhere_is_left_alone");
    for settings in ["", "memory_pools=0"] {
        alone(name, "full", settings, |sim| {
            let cuda = sim.cuda();
            sim.create_context(0);
            let queue = sim.create_stream(1);
            sim.begin_capture(queue);
            for device in [cuda_device(0), cuda_device(1), PINNED, managed(0)] {
                all_on(cuda, device, library_queue(cuda, device));
            }
            assert_eq!((sim.captures_invalidated(), sim.end_capture(queue)), (0, 0));
            // The mode is the caller's again: what a capture forbids is forbidden.
            sim.begin_capture(queue);
            let query = sim.function::<unsafe extern "C" fn(Queue) -> i32>(c"cuStreamQuery");
            // SAFETY: the queue is the driver's.
            assert_eq!(unsafe { query(library_queue(cuda, cuda_device(1))) }, 900);
            assert_eq!(sim.captures_invalidated(), 1);
            sim.no_faults();
        });
    }
}

#[test]
fn a_queue_whose_context_is_hard_to_get() {
    let name = concat!(module_path!(), "::a_queue_whose_context_is_hard_to_get");
    alone(name, "full", "", |sim| {
        let cuda = sim.cuda();
        let queue = library_queue(cuda, cuda_device(1));
        // SAFETY: the queue is the driver's.
        let check = |report: &mut Report<'_>| unsafe { cuda.check_queue(cuda_device(1), queue, report) };
        // A driver that answers only where some context is current, and one whose stream is of a green context.
        for code in [201, 801] {
            sim.fail(Some(c"cuStreamGetCtx"), 1, code, 0);
            ok(check);
            assert_eq!((sim.fail_nothing(), sim.live().pushed), (0, 0));
        }
        sim.fail(Some(c"cuStreamGetCtx"), 1, 201, 1);
        assert_eq!(fails(Status::DeviceError, &["cuStreamGetCtx"], check).native_code, 201);
        sim.fail_nothing();
        // It was asked twice, and what was pushed for the second time is popped.
        assert_eq!(sim.live().pushed, 0);
        sim.no_faults();
    });
}

#[test]
fn a_driver_that_does_not_know_an_attribute() {
    let name = concat!(module_path!(), "::a_driver_that_does_not_know_an_attribute");
    alone(name, "full", "", |sim| {
        let cuda = sim.cuda();
        sim.fail(Some(c"cuDeviceGetAttribute"), 1, 1, 1);
        let device = cuda_device(0);
        let queue = library_queue(cuda, device);
        sim.fail_nothing();
        let data = allocate(cuda, device, 64, queue);
        let live = sim.live();
        assert_eq!((live.device_memory, live.pool_memory), (1, 0));
        free(cuda, device, data, 64, queue);
        assert!(!ok(|report| cuda.is_host_accessible(managed(0), report)));
        assert_eq!(sim.live().device_memory, 0);
        sim.no_faults();
    });
}
