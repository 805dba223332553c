//! `daemon --check-config`: what a configuration means, without a daemon.

use std::fs;

use super::{folder, shiftwork, stderr, stdout};

/// The exit status, and what was printed.
fn check(name: &str, text: &str) -> (Option<i32>, String) {
    let file = folder(name).join("daemon.toml");
    fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let output = shiftwork(&["daemon", "--check-config", "--config", path]);
    (output.status.code(), stdout(&output) + &stderr(&output))
}

#[test]
fn valid_configuration_is_described() {
    let text = "cpus = \"0\"\nguarantee = \"hard\"\nreserve = 0.1\n";
    let (status, said) = check("valid-daemon", text);
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(
        said,
        "valid: CPUs 0 by strong-edf, guarantee hard, reserve 0.1\n\
         reservations for root; of each user at most 64 tasks with a total utilization of 1\n"
    );
}

#[test]
fn configuration_that_the_daemon_would_refuse_has_its_exit_status() {
    for (name, text, status, expected) in [
        ("unknown-key", "cpu = \"0\"\n", 2, "cpus"),
        ("no-group", "group = \"no-such-group\"\n", 2, "groupadd"),
        ("no-cpu", "cpus = \"0,1000\"\n", 3, "choose CPUs among"),
    ] {
        let (ended, said) = check(name, text);
        assert_eq!(
            (ended, said.contains(expected)),
            (Some(status), true),
            "{name}: {said}"
        );
    }
}
