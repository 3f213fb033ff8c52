//! Each call of the driver that each function makes, failing.

use super::*;
use crate::error::{ErrorRecord, Report, Result, capture};

const MODE: &str = "cuThreadExchangeStreamCaptureMode";

/// Whether a call of a run ends the event that the run recorded, of which nobody is told.
fn is_end(calls: &[String], i: usize) -> bool {
    calls[..i].iter().any(|name| name == "cuEventRecord")
}

/// Whether a call of a run may fail without the function failing, each for a reason that stands where it is made.
fn is_tolerated(calls: &[String], i: usize) -> bool {
    match calls[i].as_str() {
        _ if is_end(calls, i) => true,
        // What puts back what was there before.
        "cuCtxPopCurrent_v2" => true,
        MODE => calls[..i].iter().filter(|name| *name == MODE).count() % 2 == 1,
        "cuPointerGetAttribute" => true,
        _ => false,
    }
}

type Run<'a> = (&'a str, &'a dyn Fn(&mut Report<'_>) -> Result<()>);

/// Things that exist before, and the functions of the backend upon them. None of them changes what is alive.
fn with_runs(sim: &Sim, cuda: &dyn Backend, device: Device, each: &mut dyn FnMut(Run<'_>)) {
    let queue = library_queue(cuda, device);
    let mut host = pattern(64);
    let host: *mut c_void = host.as_mut_ptr().cast();
    let (a, b) = (filled(cuda, device, &pattern(64), queue), filled(cuda, device, &pattern(64), queue));
    let other = cuda_device(1);
    let far = filled(cuda, other, &pattern(64), library_queue(cuda, other));
    let event = record(cuda, device, queue);
    drain(cuda, device, queue);
    let (to, from) = (b.as_ptr(), a.as_ptr());
    let copied = |route, to, from| {
        move |report: &mut Report<'_>| {
            // SAFETY: the memory lives until all is drained.
            unsafe { cuda.copy(route, device, to, from, 64, queue, report) }
        }
    };
    // SAFETY: queue, event and memory are the driver's and live, here and below.
    let check = |report: &mut Report<'_>| unsafe { cuda.check_queue(device, queue, report) };
    // SAFETY: see above.
    let default = |report: &mut Report<'_>| unsafe { cuda.check_queue(device, null_mut(), report) };
    let round = |report: &mut Report<'_>| {
        // SAFETY: see above.
        let data = unsafe { cuda.allocate(device, 64, queue, report) }?;
        // SAFETY: see above.
        let freed = unsafe { cuda.free(device, data, 64, queue, report) };
        // What could not be freed is left alone; the test lets it go.
        if freed.is_err() {
            free(cuda, device, data, 64, queue);
        }
        freed
    };
    let recorded = |report: &mut Report<'_>| {
        // SAFETY: see above.
        let event = unsafe { cuda.record(device, queue, report) }?;
        // SAFETY: see above.
        unsafe { cuda.destroy_event(device, event) };
        Ok(())
    };
    // SAFETY: see above.
    let queue_waits = |report: &mut Report<'_>| unsafe { cuda.queue_waits(device, event, queue, report) };
    // SAFETY: see above.
    let host_waits = |report: &mut Report<'_>| unsafe { cuda.host_waits(device, event, report) };
    // SAFETY: see above.
    let done = |report: &mut Report<'_>| unsafe { cuda.is_done(device, event, report) }.map(drop);
    // SAFETY: see above.
    let drained = |report: &mut Report<'_>| unsafe { cuda.drain(device, queue, report) };
    let address = |report: &mut Report<'_>| cuda.locate(device, from, report).map(drop);
    let counted = |report: &mut Report<'_>| cuda.count(device.r#type, report).map(drop);
    let runs: [Run<'_>; 14] = [
        ("count", &counted),
        ("check_queue", &check),
        ("check_queue, default", &default),
        ("allocate and free", &round),
        ("copy from host", &copied(Route::FromHost, to, host)),
        ("copy to host", &copied(Route::ToHost, host, from)),
        ("copy within", &copied(Route::Within, to, from)),
        ("copy from another", &copied(Route::From(other), to, far.as_ptr())),
        ("record", &recorded),
        ("queue_waits", &queue_waits),
        ("host_waits", &host_waits),
        ("is_done", &done),
        ("drain", &drained),
        ("locate", &address),
    ];
    for run in runs {
        each(run);
    }
    sim.wait_idle();
    // SAFETY: nobody uses the event afterwards.
    unsafe { cuda.destroy_event(device, event) };
    free(cuda, device, a, 64, queue);
    free(cuda, device, b, 64, queue);
    free(cuda, other, far, 64, library_queue(cuda, other));
}

/// The functions that a run calls, in their order.
fn calls_of(sim: &Sim, run: Run<'_>) -> Vec<String> {
    sim.clear_log();
    ok(run.1);
    sim.log().into_iter().map(|(name, _)| name).collect()
}

fn expect_failed(outcome: core::result::Result<(), ErrorRecord>, called: &str, what: &str, code: i64) {
    let Err(record) = outcome else { panic!("{what}: expected the failure of {called}") };
    let status = match code {
        2 => Status::OutOfMemory,
        4 => Status::DeviceUnavailable,
        _ => Status::DeviceError,
    };
    let found = (record.status, record.native_code);
    assert_eq!(found, (status as i32, code), "{what}, {called}: {record}");
    let words = format!("{called} of the CUDA driver returned {code}");
    assert!(record.message().starts_with(&words), "{what}, {called}: {record}");
}

#[test]
fn each_call_fails() {
    for settings in ["delay_us=0", "delay_us=0,memory_pools=0"] {
        alone(concat!(module_path!(), "::each_call_fails"), "full", settings, |sim| {
            let cuda = sim.cuda();
            // A caller's context, which is to be current after everything.
            let context = sim.create_context(0);
            let pinned_first = Device { id: 0, ..PINNED };
            for device in [cuda_device(0), pinned_first, managed(0)] {
                with_runs(sim, cuda, device, &mut |run| {
                    let calls = calls_of(sim, run);
                    sim.wait_idle();
                    let before = sim.live();
                    for (i, called) in calls.iter().enumerate() {
                        for code in [12345, 2, 4, 700] {
                            sim.fail(None, i as i64 + 1, code, 0);
                            let outcome = capture(run.1);
                            assert_eq!(sim.fail_nothing(), 0, "{}: {called} was not called again", run.0);
                            if is_tolerated(&calls, i) {
                                assert!(outcome.is_ok(), "{}: {called}: {}", run.0, outcome.unwrap_err());
                            } else {
                                expect_failed(outcome, called, run.0, i64::from(code));
                            }
                            tidy(sim, called, is_end(&calls, i), before);
                            assert_eq!(sim.current(), context, "{}: {called}", run.0);
                            sim.wait_idle();
                            assert_eq!(sim.live(), before, "{}: {called} failing with {code}", run.0);
                        }
                    }
                    assert!(run.0 == "count" || calls.len() >= 3, "{}: {calls:?}", run.0);
                });
            }
            sim.no_faults();
        });
    }
}

/// Lets go what a driver cannot let go that fails at just that.
fn tidy(sim: &Sim, failed: &str, is_end: bool, before: Counts) {
    if failed == MODE {
        let exchange: unsafe extern "C" fn(*mut i32) -> i32 =
            sim.function(c"cuThreadExchangeStreamCaptureMode");
        // SAFETY: the mode is this call's own.
        assert_eq!(unsafe { exchange(&mut 0) }, 0);
    }
    if failed == "cuCtxPopCurrent_v2" && sim.live().pushed_here > before.pushed_here {
        sim.pop();
    }
    if is_end && sim.live().events > before.events {
        let log = sim.log();
        let (_, arguments) = log.iter().rev().find(|(name, _)| name == "cuEventRecord").unwrap();
        let text = arguments.rsplit_once("event=0x").unwrap().1;
        let digits: String = text.chars().take_while(char::is_ascii_hexdigit).collect();
        let event = core::ptr::with_exposed_provenance_mut(usize::from_str_radix(&digits, 16).unwrap());
        let destroy: unsafe extern "C" fn(*mut c_void) -> i32 = sim.function(c"cuEventDestroy_v2");
        // SAFETY: the event is the driver's, and nobody has it.
        assert_eq!(unsafe { destroy(event) }, 0);
    }
}

#[test]
fn opening_a_device_fails_at_each_call() {
    let name = concat!(module_path!(), "::opening_a_device_fails_at_each_call");
    alone(name, "full", "", |sim| {
        let cuda = sim.cuda();
        let device = cuda_device(1);
        let mut failed = Vec::new();
        for nth in 1.. {
            sim.clear_log();
            sim.fail(None, nth, 12345, 0);
            let outcome = capture(|report| cuda.library_queue(device, report));
            let came_true = sim.fail_nothing() == 0;
            let live = sim.live();
            let Err(record) = outcome else {
                // What failed at last, if anything, was putting the caller's mode back.
                let log = sim.log();
                let (name, _) = log.get(nth as usize - 1).unwrap();
                assert!(!came_true || name == MODE, "{name}");
                break;
            };
            assert_eq!((record.status, record.native_code), (Status::DeviceError as i32, 12345));
            failed.push(record.message().split(' ').next().unwrap().to_owned());
            // A failure is not kept, and what was made is: the next try goes on from there.
            assert_eq!((live.pushed, live.streams), (0, 0), "{record}");
            assert!(failed.len() < 50);
        }
        for expected in ["cuDeviceGet", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain"] {
            assert!(failed.iter().any(|name| name == expected), "{failed:?}");
        }
        assert_eq!(sim.live().primary_retains, 1);
    });
}

#[test]
fn making_the_stream_fails() {
    alone(concat!(module_path!(), "::making_the_stream_fails"), "full", "", |sim| {
        let cuda = sim.cuda();
        for code in [12345, 2] {
            sim.fail(Some(c"cuStreamCreate"), 1, code, 0);
            let outcome = capture(|report| cuda.library_queue(cuda_device(0), report)).map(drop);
            expect_failed(outcome, "cuStreamCreate", "library_queue", i64::from(code));
        }
        library_queue(cuda, cuda_device(0));
        assert_eq!((sim.live().streams, sim.live().primary_retains, sim.live().pushed), (1, 1, 0));
    });
}

#[test]
fn a_driver_at_its_end() {
    alone(concat!(module_path!(), "::a_driver_at_its_end"), "full", "", |sim| {
        let cuda = sim.cuda();
        let device = cuda_device(0);
        let queue = library_queue(cuda, device);
        let event = record(cuda, device, queue);
        let data = filled(cuda, device, &pattern(64), queue);
        sim.wait_idle();
        sim.fail(None, 1, 4, 1);
        let gone = |f: &dyn Fn(&mut Report<'_>) -> Result<()>| {
            assert_eq!(fails(Status::DeviceUnavailable, &["returned 4"], f).native_code, 4);
        };
        // SAFETY: queue, event and memory are the driver's, in every block below.
        gone(&|report| unsafe { cuda.check_queue(device, queue, report) });
        // SAFETY: see above.
        gone(&|report| unsafe { cuda.check_queue(device, null_mut(), report) });
        // SAFETY: see above.
        gone(&|report| unsafe { cuda.allocate(device, 64, queue, report) }.map(drop));
        // SAFETY: see above.
        gone(&|report| unsafe { cuda.free(device, data, 64, queue, report) });
        // SAFETY: see above.
        gone(&|report| unsafe { cuda.record(device, queue, report) }.map(drop));
        // SAFETY: see above.
        gone(&|report| unsafe { cuda.queue_waits(device, event, queue, report) });
        // SAFETY: see above.
        gone(&|report| unsafe { cuda.host_waits(device, event, report) });
        // SAFETY: see above.
        gone(&|report| unsafe { cuda.is_done(device, event, report) }.map(drop));
        // SAFETY: see above.
        gone(&|report| unsafe { cuda.drain(device, queue, report) });
        gone(&|report| cuda.locate(device, data.as_ptr(), report).map(drop));
        gone(&|report| cuda.count(DEVICE_CUDA, report).map(drop));
        gone(&|report| cuda.library_queue(cuda_device(1), report).map(drop));
        // SAFETY: see above.
        unsafe { cuda.destroy_event(device, event) };
        // What is known needs no driver.
        assert_eq!(library_queue(cuda, device), queue);
        sim.fail_nothing();
        assert_eq!((sim.live().events, sim.live().pushed), (1, 0));
    });
}

#[test]
fn a_broken_context() {
    alone(concat!(module_path!(), "::a_broken_context"), "full", "", |sim| {
        let cuda = sim.cuda();
        let device = cuda_device(0);
        let queue = library_queue(cuda, device);
        let event = record(cuda, device, queue);
        sim.enqueue_error(queue, 700);
        // SAFETY: the queue is the driver's.
        let broken = |report: &mut Report<'_>| unsafe { cuda.drain(device, queue, report) };
        for _ in 0..2 {
            let record = fails(Status::DeviceError, &["700 CUDA_ERROR_ILLEGAL_ADDRESS"], broken);
            assert_eq!(record.native_code, 700);
        }
        // SAFETY: the event is the driver's, and its end may fail unheard.
        unsafe { cuda.destroy_event(device, event) };
        let other = cuda_device(1);
        let queue = library_queue(cuda, other);
        assert_eq!(read(cuda, other, filled(cuda, other, &pattern(64), queue), 64, queue), pattern(64));
        assert_eq!(sim.live().pushed, 0);
    });
}

#[test]
fn memory_runs_out() {
    alone(concat!(module_path!(), "::memory_runs_out"), "full", "memory_bytes=4096", |sim| {
        let cuda = sim.cuda();
        for device in [cuda_device(0), managed(0)] {
            let queue = library_queue(cuda, device);
            // SAFETY: the queue is the driver's.
            let record = fails(Status::OutOfMemory, &["2 CUDA_ERROR_OUT_OF_MEMORY: "], |report| unsafe {
                cuda.allocate(device, 8192, queue, report)
            });
            assert_eq!(record.native_code, 2);
            let data = allocate(cuda, device, 4096, queue);
            free(cuda, device, data, 4096, queue);
            drain(cuda, device, queue);
        }
        sim.no_faults();
    });
}
