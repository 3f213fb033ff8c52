//! The structs of streams, which are looked at without calling them.

use crate::abi::{ArrowArrayStream, ArrowDeviceArrayStream, Device};
use crate::device::check_foreign;
use crate::error::{Findings, Flow, Result, Rule, Status};

/// Checks the struct of a stream of arrays in CPU memory, by rules M2 and ST1.
pub fn host_stream(stream: &ArrowArrayStream, mut findings: Findings<'_, '_>) -> Result<()> {
    let callbacks = [
        ("get_schema", stream.get_schema.is_some()),
        ("get_next", stream.get_next.is_some()),
        ("get_last_error", stream.get_last_error.is_some()),
    ];
    let _ = callbacks_of(stream.release.is_some(), callbacks, &mut findings);
    findings.finish()
}

/// Checks the struct of a stream of arrays on a device, by rules M2, ST1 and D2.
pub fn device_stream(stream: &ArrowDeviceArrayStream, mut findings: Findings<'_, '_>) -> Result<()> {
    let callbacks = [
        ("get_schema", stream.get_schema.is_some()),
        ("get_next", stream.get_next.is_some()),
        ("get_last_error", stream.get_last_error.is_some()),
    ];
    if callbacks_of(stream.release.is_some(), callbacks, &mut findings).is_continue()
        && stream.release.is_some()
    {
        // A stream has no device id: any that its type allows does.
        let device = Device { r#type: stream.device_type, id: 0 };
        let _ = findings.check(|report| check_foreign(device, core::ptr::null_mut(), report));
    }
    findings.finish()
}

fn callbacks_of(is_alive: bool, callbacks: [(&str, bool); 3], findings: &mut Findings<'_, '_>) -> Flow {
    if !is_alive {
        let message = format_args!("expected a live stream, found one that was released or moved out");
        findings.check(|report| Err::<(), _>(report.fail_at(Status::Released, Rule::M2, &"$", message)))?;
        return Flow::Continue(());
    }
    for (name, is_there) in callbacks {
        if !is_there {
            findings.broken(Rule::St1, &"$", -1, format_args!("expected a callback {name}, found NULL"))?;
        }
    }
    Flow::Continue(())
}
