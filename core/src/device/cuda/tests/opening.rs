//! Drivers that are not there, or not whole.

use super::super::backend;
use super::*;

#[test]
fn no_driver() {
    alone(concat!(module_path!(), "::no_driver"), "", "", |_| {
        // SAFETY: a driver may be loaded into any process.
        if unsafe { cudarc::driver::sys::is_culib_present() } {
            println!("skipped: this machine has a CUDA driver");
            return;
        }
        for _ in 0..2 {
            let record = fails(Status::DeviceUnavailable, &["expected the CUDA driver"], backend);
            assert_eq!(record.native_code, 0);
        }
    });
}

#[test]
fn no_device() {
    alone(concat!(module_path!(), "::no_device"), "full", "devices=0", |sim| {
        assert_eq!(sim.calls(c"cuInit"), 0);
        for _ in 0..2 {
            let words = ["cuInit", "100 CUDA_ERROR_NO_DEVICE: "];
            let record = fails(Status::DeviceUnavailable, &words, backend);
            assert_eq!(record.native_code, 100);
        }
        assert_eq!(sim.calls(c"cuInit"), 1);
    });
}

#[test]
fn a_stub() {
    alone(concat!(module_path!(), "::a_stub"), "stub", "", |sim| {
        for _ in 0..2 {
            let record = fails(Status::DeviceUnavailable, &["cuInit", "34", "stub of the toolkit"], backend);
            assert_eq!(record.native_code, 34);
        }
        assert_eq!(sim.calls(c"cuInit"), 1);
    });
}

#[test]
fn too_old() {
    alone(concat!(module_path!(), "::too_old"), "full", "driver_version=10020", |sim| {
        for _ in 0..2 {
            fails(Status::DeviceUnavailable, &["11000 or later", "found 10020"], backend);
        }
        assert_eq!(sim.calls(c"cuInit"), 0);
    });
}

#[test]
fn a_failure_is_kept() {
    alone(concat!(module_path!(), "::a_failure_is_kept"), "full", "", |sim| {
        sim.fail(Some(c"cuInit"), 1, 12345, 0);
        let first = fails(Status::DeviceUnavailable, &["cuInit", "returned 12345"], backend);
        let second = fails(Status::DeviceUnavailable, &[], backend);
        assert_eq!((first.native_code, second.native_code), (12345, 12345));
        assert_eq!(first.message(), second.message());
        assert_eq!(sim.calls(c"cuInit"), 1);
    });
}

#[test]
fn a_version_that_cannot_be_told() {
    alone(concat!(module_path!(), "::a_version_that_cannot_be_told"), "full", "", |sim| {
        sim.fail(Some(c"cuDriverGetVersion"), 1, 999, 0);
        assert_eq!(ok(|report| sim.cuda().count(DEVICE_CUDA, report)), 2);
    });
}

#[test]
fn a_missing_function_fails_only_what_needs_it() {
    let name = concat!(module_path!(), "::a_missing_function_fails_only_what_needs_it");
    alone(name, "no_event_record", "", |sim| {
        round_trips(sim);
        let cuda = sim.cuda();
        let device = cuda_device(0);
        let queue = library_queue(cuda, device);
        // SAFETY: the queue is the driver's.
        fails(Status::Unsupported, &["expected cuEventRecord in the CUDA driver"], |report| unsafe {
            cuda.record(device, queue, report)
        });
        assert_eq!((sim.live().events, sim.live().pushed), (0, 0));
    });
}
