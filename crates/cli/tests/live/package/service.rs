//! The service of the package, as systemd sees it.

use std::fs;

use super::machine::{ask, lines};

const UNIT: &str = "shiftwork.service";
/// The exposure that `systemd-analyze security` may find, in tenths; it was 22 when this was written.
const EXPOSURE_MAX: u32 = 25;

/// That systemd reads it without complaint, and would start it only when told to.
pub fn is_known() -> Result<(), String> {
    let state = ask(&[
        "systemctl",
        "show",
        "--property=LoadState,UnitFileState,ActiveState",
        UNIT,
    ])?;
    for expected in [
        "LoadState=loaded",
        "UnitFileState=disabled",
        "ActiveState=inactive",
    ] {
        if !state.lines().any(|line| line == expected) {
            return Err(format!("{expected} is expected, and found is\n{state}"));
        }
    }
    // Pages are left out: this system has no program to show them.
    let said = ask(&[
        "sh",
        "-c",
        &format!("systemd-analyze verify --man=no {UNIT} 2>&1"),
    ])?;
    if !said.is_empty() {
        return Err(said);
    }
    is_restricted()
}

fn is_restricted() -> Result<(), String> {
    let said = lines(&["systemd-analyze", "security", "--no-pager", UNIT])?;
    let last = said.last().ok_or("systemd-analyze says nothing")?;
    let digits: String = last.chars().filter(char::is_ascii_digit).collect();
    println!("{last}");
    match digits.parse::<u32>() {
        Ok(exposure) if exposure <= EXPOSURE_MAX => Ok(()),
        _ => Err(last.clone()),
    }
}

/// Starts the service with a run in place of the agent, where the scheduler decides and where an agent does:
/// under the restrictions of the unit both load what they need, and rank a program's threads.
pub fn may_load_a_scheduler() -> Result<(), String> {
    const CHANGES: &str = "/run/systemd/system/shiftwork.service.d";
    const FILE: &str = "/run/shiftwork-test.toml";
    const TASKS: &str = r#"
        [platform]
        cpus = 2
        [scheduler]
        policy = "strong-edf"
        [[task]]
        name = "thread"
        cost = "20ms"
        period = "200ms"
        [[task]]
        name = "program"
        cost = "20ms"
        period = "200ms"
        command = ["/bin/sh", "-c", "while :; do :; done"]
    "#;
    let written = fs::create_dir_all(CHANGES).and_then(|()| fs::write(FILE, TASKS));
    written.map_err(|error| error.to_string())?;
    for machine in ["kernel", "agent"] {
        let run = format!("/usr/bin/shiftwork run {FILE} --machine {machine} --for 400ms");
        let change = format!(
            "[Service]\nType=oneshot\nRestart=no\nWatchdogSec=0\nExecStart=\nExecStart={run}\n"
        );
        fs::write(format!("{CHANGES}/run.conf"), change).map_err(|error| error.to_string())?;
        ask(&["systemctl", "daemon-reload"])?;
        ask(&["systemctl", "start", UNIT]).map_err(|why| {
            let journal = ["journalctl", "--unit", UNIT, "--no-pager", "--output=cat"];
            format!("{machine}: {why}{}", ask(&journal).unwrap_or_default())
        })?;
    }
    let removed = fs::remove_dir_all(CHANGES).and_then(|()| fs::remove_file(FILE));
    removed.map_err(|error| error.to_string())?;
    ask(&["systemctl", "daemon-reload"]).map(drop)
}
