//! The systemd unit of the package.

use super::machine::{ask, lines};

const UNIT: &str = "shiftwork.service";
/// The exposure that `systemd-analyze security` may find, in tenths; it was 18 when this was written.
const EXPOSURE_MAX: u32 = 20;

/// Checks that systemd accepts the unit, and that it is neither enabled nor active.
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
    // Without man pages: this system has no program to show them.
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
