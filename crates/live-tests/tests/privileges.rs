//! Machines that cannot: the command ends with status 3 and says, as a person reads it, what is in the
//! way and what mends it; `doctor` says the same.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output};

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

use crate::running::{SMALL, said};

/// Where the kernel describes its types.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// A user without privileges.
const UNPRIVILEGED: u32 = 65_534;

/// `run` of a small task set on this machine, as this user.
fn run(user: u32, machine: &str) -> Result<Output, String> {
    let file = std::env::temp_dir().join("small.toml");
    fs::write(&file, SMALL).map_err(|error| error.to_string())?;
    let mut command = Command::new("shiftwork");
    command
        .arg("run")
        .arg(&file)
        .args(["--for", "100ms", "--policy", "strong-edf"])
        .args(["--machine", machine]);
    if user != 0 {
        command.uid(user).gid(user);
    }
    let output = command.output();
    output.map_err(|error| format!("it cannot be started: {error}"))
}

/// That it ended with status 3 and these words, in few lines, and that the doctor has them too.
fn refused(output: &Output, user: u32, what: &str, remedy: &str) -> Result<(), String> {
    let said = said(output);
    println!("{said}");
    if output.status.code() != Some(3) {
        return Err(format!("it ended by {}", output.status));
    }
    if !said.contains(what) || !said.contains(remedy) || said.lines().count() > 3 {
        return Err(format!("wanted are `{what}` and `{remedy}` in three lines"));
    }
    let mut doctor = Command::new("shiftwork");
    doctor.arg("doctor");
    if user != 0 {
        doctor.uid(user).gid(user);
    }
    let doctor = doctor.output().map_err(|error| error.to_string())?;
    let printed = String::from_utf8_lossy(&doctor.stdout);
    match printed.contains(remedy) {
        true => Ok(()),
        false => Err(format!("the doctor does not say `{remedy}`:\n{printed}")),
    }
}

/// A user without privileges may not replace the machine's scheduler.
pub fn user_without_privileges_sees_that_root_is_needed() -> Result<(), String> {
    refused(
        &run(UNPRIVILEGED, "auto")?,
        UNPRIVILEGED,
        "this process lacks CAP_SYS_NICE, CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN",
        "run it as root, with `sudo`",
    )
}

/// What a kernel that was built without sched_ext looks like.
pub fn kernel_without_sched_ext_is_named() -> Result<(), String> {
    // An empty /sys/kernel/sched_ext would have no `state` in it, which is all that is asked for.
    let hidden = "/sys/kernel/sched_ext";
    mount("none", hidden, "tmpfs", MountFlags::empty(), None).map_err(|error| error.to_string())?;
    let output = run(0, "kernel");
    let verdict = output.and_then(|output| {
        refused(
            &output,
            0,
            "was built without sched_ext",
            "boot a kernel of 6.15 or newer with CONFIG_SCHED_CLASS_EXT=y",
        )
    });
    unmount(hidden, UnmountFlags::empty()).map_err(|error| error.to_string())?;
    verdict
}

/// Where there is no sched_ext fixed priorities do, and the results say so.
pub fn fifo_stands_in_for_sched_ext() -> Result<(), String> {
    let set = shiftwork_taskset::read(SMALL).map_err(|error| error.to_string())?;
    let on = ["--machine", "auto", "--on-cpus", "1"];
    let json = crate::command::run(&set, "strong-edf", 200, &on)?;
    println!("{json}");
    let is_fifo = json["machine"] == "fifo";
    match is_fifo && json["completed"] == 2 {
        true => Ok(()),
        false => Err("two jobs were to be done under fifo".to_owned()),
    }
}

/// On a kernel that is too old for sched_ext, a user without privileges sees what fixed priorities and sched_ext need.
pub fn user_without_privileges_sees_what_fifo_needs() -> Result<(), String> {
    let output = run(UNPRIVILEGED, "auto")?;
    let said = said(&output);
    for what in [
        "fixed priorities instead (--machine fifo): this process may have real-time priorities to 0",
        shiftwork_live::host::privileges::RTPRIO_REMEDY,
        "`--machine sim` simulates the same",
    ] {
        if !said.contains(what) {
            return Err(format!("wanted is `{what}`:\n{said}"));
        }
    }
    let (what, remedy) = (
        "is older than 6.15, the first with all of sched_ext that is needed",
        "boot a kernel of 6.15 or newer with CONFIG_SCHED_CLASS_EXT=y",
    );
    refused(&output, UNPRIVILEGED, what, remedy)
}

/// Some kernels have functions for schedulers that show a parameter that the kernel adds by itself:
/// no loader can use them. Here the functions that may show it lose their special names.
pub fn malformed_kernel_types_are_reported() -> Result<(), String> {
    let mut types = fs::read(TYPES).map_err(|error| error.to_string())?;
    let mut renamed = 0;
    for name in types.split_mut(|&byte| byte == 0) {
        let is_ours = name.starts_with(b"scx_bpf_") || name.starts_with(b"bpf_iter_scx_");
        if is_ours && name.ends_with(b"_impl") {
            *name.last_mut().unwrap() = b'k';
            renamed += 1;
        }
    }
    println!("{renamed} functions renamed");
    if renamed > 0 {
        let what = "is malformed, as pahole 1.30 makes it";
        with_types(&types, what, "boot another build of the kernel")?;
    }
    // And one that ends in the middle.
    let half = &types[..types.len() / 2];
    with_types(half, TYPES, "boot another build of the kernel")
}

/// As if the kernel described its types by these bytes.
fn with_types(types: &[u8], what: &str, remedy: &str) -> Result<(), String> {
    let doctored = std::env::temp_dir().join("types");
    fs::write(&doctored, types).map_err(|error| error.to_string())?;
    mount_bind(&doctored, TYPES).map_err(|error| error.to_string())?;
    let verdict = run(0, "kernel").and_then(|output| refused(&output, 0, what, remedy));
    unmount(TYPES, UnmountFlags::empty()).map_err(|error| error.to_string())?;
    verdict
}
