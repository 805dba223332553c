//! The emulator itself, seen from this machine.

use std::fs;
use std::path::Path;
use std::time::Duration;

use shiftwork_emulator::{Accel, Boot, BootError, CarriedFile, Collected, Emulator, Exit};

/// The command that was built for these tests.
const BUILT: &str = env!("CARGO_BIN_EXE_shiftwork-tested");
/// Both wait for each other now and then.
const TWO_TASKS: &str = "
[platform]
cpus = 2

[scheduler]
policy = 'strong-edf'

[[task]]
name = 'short'
cost = '1ms'
period = '4ms'
affinity = '0'

[[task]]
name = 'long'
cost = '7ms'
period = '10ms'
affinity = '0-1'
";

/// Runs a line of shell in a guest; returns how it went and what it said.
fn shell(line: &str, change: impl FnOnce(&mut Boot)) -> (Result<Exit, BootError>, String) {
    let mut boot = Boot::new("/bin/sh").unwrap();
    boot.arguments = vec!["-c".into(), line.into()];
    boot.cpus = 1;
    change(&mut boot);
    let mut said = Vec::new();
    let emulator = Emulator::find_or_fetch().unwrap();
    let outcome = emulator.boot(&boot, &mut said, &mut std::io::sink());
    (outcome, String::from_utf8(said).unwrap())
}

fn unexpected<T>(outcome: &Result<Exit, BootError>, said: &str) -> Result<T, String> {
    let outcome = match outcome {
        Ok(exit) => format!("{exit:?}"),
        Err(error) => error.to_string(),
    };
    Err(format!("it ended with {outcome}, and said {said:?}"))
}

/// The exit status, also that of a program which a signal ended.
pub fn failing_program_brings_its_exit_status() -> Result<(), String> {
    for (line, code) in [("echo begun; exit 7", 7), ("echo begun; kill -9 $$", 137)] {
        let (outcome, said) = shell(line, |_| ());
        match outcome {
            Ok(exit) if exit.code == code && said == "begun\n" => {}
            other => return unexpected(&other, &said),
        }
    }
    Ok(())
}

/// Folders with everything in them, also if the program fails.
pub fn files_of_the_guest_come_home() -> Result<(), String> {
    let home = tempfile::tempdir().unwrap();
    let host = home.path().join("results/one");
    let line = "umask 077; cd /tmp; echo kept > file; echo gone > other; exit 1";
    let (outcome, said) = shell(line, |boot| {
        boot.collect.push(Collected {
            guest: Path::new("/tmp").to_owned(),
            host: host.clone(),
        });
    });
    let kept = std::fs::read_to_string(host.join("file")).unwrap_or_default();
    match outcome {
        Ok(exit) if exit.code == 1 && kept == "kept\n" && host.join("other").exists() => Ok(()),
        other => unexpected(&other, &said),
    }
}

/// A panic of the kernel is an error, never an exit status, and shows what the kernel said last.
pub fn kernel_panic_shows_the_console() -> Result<(), String> {
    let (outcome, said) = shell("echo c > /proc/sysrq-trigger", |_| ());
    match outcome {
        Err(BootError::Died { console, .. }) if console.contains("Kernel panic") => Ok(()),
        other => unexpected(&other, &said),
    }
}

/// A program that does not end is ended, and what it said until then is not lost.
pub fn hanging_program_is_ended() -> Result<(), String> {
    let (outcome, said) = shell("echo begun; while :; do :; done", |boot| {
        boot.timeout = Duration::from_secs(2);
    });
    match outcome {
        Err(BootError::TimedOut { .. }) if said == "begun\n" => Ok(()),
        other => unexpected(&other, &said),
    }
}

/// Where instructions are counted, the time of an idle guest passes at once: it sleeps for much
/// longer than the test may take.
pub fn ten_minutes_of_sleep_take_none_where_instructions_are_counted() -> Result<(), String> {
    let (outcome, said) = shell("sleep 600; echo awake", |boot| {
        boot.accel = Accel::Icount;
        boot.timeout = Duration::from_secs(900);
        boot.files.push(CarriedFile {
            host: "/bin/sleep".into(),
            guest: "/bin/sleep".to_owned(),
        });
    });
    match outcome {
        Ok(exit) if exit.code == 0 && said == "awake\n" => Ok(()),
        other => unexpected(&other, &said),
    }
}

/// Two boots of the same kernel, programs and arguments execute the same instructions: they write the same trace, byte for
/// byte.
pub fn boots_where_instructions_are_counted_repeat_exactly() -> Result<(), String> {
    let home = tempfile::tempdir().unwrap();
    let set = home.path().join("set.toml");
    fs::write(&set, TWO_TASKS).unwrap();
    let trace = |name: &str| {
        let mut boot = Boot::new(BUILT).unwrap();
        boot.accel = Accel::Icount;
        boot.files.push(CarriedFile {
            host: set.clone(),
            guest: "/set.toml".to_owned(),
        });
        let words =
            "run /set.toml --machine kernel --for 200ms --no-compare --trace /tmp/trace.pftrace";
        boot.arguments = words.split(' ').map(Into::into).collect();
        let host = home.path().join(name);
        boot.collect.push(Collected {
            guest: "/tmp/trace.pftrace".into(),
            host: host.clone(),
        });
        let (mut said, mut errors) = (Vec::new(), Vec::new());
        let emulator = Emulator::find_or_fetch().unwrap();
        let outcome = emulator.boot(&boot, &mut said, &mut errors);
        said.extend(errors);
        let said = String::from_utf8_lossy(&said).into_owned();
        match outcome {
            Ok(exit) if exit.code == 0 => Ok((fs::read(host).unwrap(), said)),
            other => unexpected(&other, &said),
        }
    };
    let (first, second) = (trace("first")?, trace("second")?);
    match first == second && !first.0.is_empty() {
        true => Ok(()),
        false => Err(format!("{}\n{}", first.1, second.1)),
    }
}
