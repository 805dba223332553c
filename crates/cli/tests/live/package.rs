//! The package, in a fresh Debian system: that it installs, that everything in it is where Debian's own programs
//! look for it, that the service does its work, and that nothing is left when it is purged.

mod machine;
mod make;
mod programs;
mod service;
mod story;
mod user;

use std::fs;

pub use make::make;

use machine::{Traces, ask, lines, wait_until_up};
use story::Story;

/// Where the package is in the guest.
pub const PACKAGE: &str = "/usr/lib/shiftwork-test.deb";

/// Something that holds while the package is installed.
struct Step {
    /// What holds, as a phrase.
    name: &'static str,
    check: fn() -> Result<(), String>,
}

impl Step {
    const fn new(name: &'static str, check: fn() -> Result<(), String>) -> Self {
        Self { name, check }
    }
}

/// What is looked at between installing and removing, in this order. A step leaves the system as it was.
const STEPS: &[Step] = &[
    Step::new("dpkg finds every file as it was packed", files_are_intact),
    Step::new("the command runs", command_runs),
    Step::new("every verb has a man page", verbs_have_pages),
    Step::new("shells find completions", shells_complete),
    Step::new("the group of those who may ask is there", group_is_there),
    Step::new(
        "the service is known, sound and not enabled",
        service::is_known,
    ),
];

/// From a fresh system to one as fresh, with programs that outlive the package.
pub fn installs_and_leaves_nothing() -> Result<(), String> {
    wait_until_up()?;
    let before = Traces::of_this_system()?;
    ask(&["dpkg", "--install", PACKAGE])?;
    for step in STEPS {
        println!("{}", step.name);
        (step.check)().map_err(|why| format!("{}: {why}", step.name))?;
    }
    let story = Story::tell()?;
    println!("the package is removed, and programs go on");
    ask(&["dpkg", "--remove", "shiftwork"])?;
    removed_but_configured()?;
    story.ends()?;
    ask(&["dpkg", "--purge", "shiftwork"])?;
    before.are_the_same_as(&Traces::of_this_system()?)
}

/// That removing keeps the configuration, and nothing that could be started.
fn removed_but_configured() -> Result<(), String> {
    if !fs::exists("/etc/shiftwork/agent.toml").unwrap_or(false) {
        return Err("removing it took the configuration".to_owned());
    }
    match lines(&["systemctl", "list-unit-files", "shiftwork*"])?
        .iter()
        .find(|line| line.starts_with("shiftwork."))
    {
        Some(line) => Err(format!("removed, systemd still knows {line}")),
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

/// The verbs are those that the help of the command lists.
fn verbs_have_pages() -> Result<(), String> {
    let help = ask(&["shiftwork", "--help"])?;
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs = commands
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        // Lines that go on are indented further.
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

/// Bash is asked; of the others this system has none.
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

fn group_is_there() -> Result<(), String> {
    let line = ask(&["getent", "group", "shiftwork"])?;
    // The last field are its members.
    match line.trim().ends_with(':') {
        true => Ok(()),
        false => Err(format!("it has members from the start: {line}")),
    }
}
