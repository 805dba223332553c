//! `shiftwork doctor` on a machine that can do everything.

use std::process::Command;

use serde_json::Value;

/// It says of the guest what the guest says of itself.
pub fn doctor_examines_the_guest() -> Result<(), String> {
    let output = Command::new("shiftwork")
        .args(["doctor", "--json"])
        .output();
    let output = output.map_err(|error| format!("it cannot be started: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("it ended by {}: {said}", output.status));
    }
    let answer: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let findings = answer["findings"].as_array().ok_or("it has no findings")?;
    let knows = findings.iter().any(|finding| {
        let found = finding["found"].as_str().unwrap_or_default();
        found.contains(release.trim())
    });
    match knows {
        true => Ok(()),
        false => Err(format!("no finding names the kernel {release}: {answer}")),
    }
}
