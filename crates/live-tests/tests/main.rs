//! The live tests: what holds on a real kernel, in the emulator.
//!
//! Every test is a function in a file of this folder and a line in the [catalogue]. On this machine the
//! [runner](host) boots the emulator with itself inside; there it [runs](inside) the tests one by one, each in a
//! process of its own. Where the emulator cannot be had the tests say so and pass.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agreement;
mod apply;
mod backlog;
mod budgets;
mod calibration;
mod catalogue;
mod churn;
mod command;
#[path = "../../cli/tests/common/mod.rs"]
mod common;
mod coverage;
mod deadline;
mod doctor;
mod dubey;
mod emulator;
mod faults;
mod ftrace;
mod guides;
mod host;
mod hostile;
mod init;
mod inside;
mod kernel;
mod kernels;
mod latency;
mod members;
mod mutexes;
mod outputs;
mod overheads;
mod package;
mod policies;
mod privileges;
mod programs;
mod progress;
mod record;
mod rt_app;
mod running;
mod service;
mod soak;
mod standing;
mod storms;
mod tang;
mod triggers;
mod verifier;

use std::process::ExitCode;

use shiftwork_emulator::guest;

use self::catalogue::TESTS;

/// How much is asked for: little, or with `SHIFTWORK_LONG` much.
pub fn long() -> bool {
    std::env::var_os("SHIFTWORK_LONG").is_some()
}

fn main() -> ExitCode {
    guest::serve_if_first();
    if let Some(code) = faults::play_if_asked() {
        return code;
    }
    if std::env::var_os(guest::GUEST_VARIABLE).is_some() {
        let code = soak::execute_if_asked().unwrap_or_else(|| inside::run(TESTS));
        coverage::save();
        return code;
    }
    host::run(TESTS)
}
