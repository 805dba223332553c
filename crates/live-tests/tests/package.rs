//! The package in a fresh Debian system: it installs, its files are where Debian's programs expect them, the service works,
//! and purging leaves nothing.

mod lifecycle;
mod machine;
mod make;
mod programs;
mod service;
mod user;

use std::fs;

pub use make::make;

use lifecycle::Lifecycle;
use machine::{Traces, ask, lines, wait_until_up};

/// Path of the package in the guest.
pub const PACKAGE: &str = "/usr/lib/shiftwork-test.deb";

/// A check of the installed package.
struct Step {
    /// What it checks.
    name: &'static str,
    check: fn() -> Result<(), String>,
}

impl Step {
    const fn new(name: &'static str, check: fn() -> Result<(), String>) -> Self {
        Self { name, check }
    }
}

/// The checks between installing and removing, in this order. A step does not change the system.
const STEPS: &[Step] = &[
    Step::new("dpkg finds every file as it was packed", files_are_intact),
    Step::new("the command runs", command_runs),
    Step::new("every verb has a man page", verbs_have_pages),
    Step::new("shells find completions", shells_complete),
    Step::new("the group of permitted users exists", group_exists),
    Step::new(
        "systemd knows the service, which is valid and not enabled",
        service::is_known,
    ),
];

/// Installs and purges the package; running programs outlive it, and the system is as before.
pub fn package_installs_and_leaves_nothing_in_a_fresh_debian() -> Result<(), String> {
    wait_until_up()?;
    let before = Traces::of_this_system()?;
    ask(&["dpkg", "--install", PACKAGE])?;
    for step in STEPS {
        println!("{}", step.name);
        (step.check)().map_err(|why| format!("{}: {why}", step.name))?;
    }
    let lifecycle = Lifecycle::run()?;
    println!("the package is removed, and programs continue");
    ask(&["dpkg", "--remove", "shiftwork"])?;
    removed_but_configured()?;
    lifecycle.end()?;
    ask(&["dpkg", "--purge", "shiftwork"])?;
    before.are_the_same_as(&Traces::of_this_system()?)
}

/// Checks that removing keeps the configuration and no unit.
fn removed_but_configured() -> Result<(), String> {
    if !fs::exists("/etc/shiftwork/daemon.toml").unwrap_or(false) {
        return Err("removing it deleted the configuration".to_owned());
    }
    match lines(&["systemctl", "list-unit-files", "shiftwork*"])?
        .iter()
        .find(|line| line.starts_with("shiftwork."))
    {
        Some(line) => Err(format!("after removal systemd still knows {line}")),
        None => Ok(()),
    }
}

fn files_are_intact() -> Result<(), String> {
    match ask(&["dpkg", "--verify", "shiftwork"])?.as_str() {
        "" => Ok(()),
        changed => Err(changed.to_owned()),
    }
}

fn command_runs() -> Result<(), String> {
    let expected = concat!("shiftwork ", env!("CARGO_PKG_VERSION"));
    let said = ask(&["shiftwork", "--version"])?;
    match said.trim() == expected {
        true => Ok(()),
        false => Err(format!("it says {said:?} instead of {expected:?}")),
    }
}

/// The verbs are those in the help of the command.
fn verbs_have_pages() -> Result<(), String> {
    let help = ask(&["shiftwork", "--help"])?;
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs = commands
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        // Continuation lines have more indentation.
        .filter(|verb| !verb.is_empty() && *verb != "help");
    let mut count = 0;
    for verb in verbs {
        count += 1;
        let page = format!("/usr/share/man/man1/shiftwork-{verb}.1.gz");
        let text = ask(&["zcat", &page])?;
        if !text.contains(&format!("shiftwork\\-{verb}")) {
            return Err(format!("{page} does not name its verb"));
        }
    }
    match count {
        0 => Err(format!("the help lists no verbs:\n{help}")),
        _ => ask(&["zcat", "/usr/share/man/man1/shiftwork.1.gz"]).map(drop),
    }
}

/// Runs bash's completion; the other shells are not installed in this system.
fn shells_complete() -> Result<(), String> {
    let script = "source /usr/share/bash-completion/completions/shiftwork; \
                  COMP_WORDS=(shiftwork sim); COMP_CWORD=1; _shiftwork shiftwork sim shiftwork; \
                  echo \"${COMPREPLY[@]}\"";
    let completed = ask(&["bash", "-c", script])?;
    if completed.trim() != "simulate" {
        return Err(format!("`shiftwork sim` is completed to {completed:?}"));
    }
    for path in [
        "/usr/share/zsh/vendor-completions/_shiftwork",
        "/usr/share/fish/vendor_completions.d/shiftwork.fish",
    ] {
        let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        if !text.contains("simulate") {
            return Err(format!("{path} names no verbs"));
        }
    }
    Ok(())
}

fn group_exists() -> Result<(), String> {
    let line = ask(&["getent", "group", "shiftwork"])?;
    // The last field lists its members.
    match line.trim().ends_with(':') {
        true => Ok(()),
        false => Err(format!("it has members from the start: {line}")),
    }
}
