//! The runner on this machine: which tests, in which boots, and what came of them. Prints what the
//! standard test harness would.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use libtest_mimic::Arguments;
use shiftwork_emulator::{Accel, Base, Boot, BootError, CarriedFile, Emulator, KernelChoice};

use crate::package::{self, PACKAGE};
use crate::progress::{Reader, Step};
use crate::{Group, Test, long};

/// The command that was built for these tests.
const BUILT: &str = env!("CARGO_BIN_EXE_shiftwork");
/// Where tests inside find the command.
const COMMAND: &str = "/bin/shiftwork";

/// A boot, and who takes part in it.
struct Machine {
    /// Follows the names of its tests; empty for the usual one.
    label: &'static str,
    accel: Accel,
    /// See [`Boot::turn`].
    turn: Option<Duration>,
    kernel: fn() -> KernelChoice,
    groups: &'static [Group],
    /// Whether it is a Debian system rather than the tests alone.
    is_debian: bool,
    /// How much longer than on a real machine a test may take in this machine's time.
    slowness: u32,
    only_long: bool,
}

/// For how long each CPU is executed where tests of [`Group::Locks`] run: about as long as a decision takes.
pub const TURN: Duration = Duration::from_micros(10);

const MACHINES: &[Machine] = &[
    Machine {
        label: "",
        accel: Accel::Auto,
        turn: None,
        kernel: || KernelChoice::Newest,
        groups: &[Group::Function],
        is_debian: false,
        slowness: 2,
        only_long: false,
    },
    Machine {
        label: "",
        accel: Accel::Icount,
        turn: None,
        kernel: || KernelChoice::Newest,
        groups: &[Group::Latency, Group::Deadline],
        is_debian: false,
        slowness: 30,
        only_long: false,
    },
    Machine {
        label: "",
        accel: Accel::Icount,
        turn: None,
        kernel: || KernelChoice::Newest,
        groups: &[Group::Clusters],
        is_debian: false,
        slowness: 30,
        only_long: false,
    },
    Machine {
        label: "",
        accel: Accel::Icount,
        turn: Some(TURN),
        kernel: || KernelChoice::Newest,
        groups: &[Group::Locks],
        is_debian: false,
        slowness: 60,
        only_long: false,
    },
    Machine {
        label: "",
        accel: Accel::Auto,
        turn: None,
        kernel: || KernelChoice::Newest,
        groups: &[Group::Debian],
        is_debian: true,
        slowness: 2,
        only_long: false,
    },
    without_sched_ext("", || KernelChoice::Release("6.12".to_owned()), false),
    without_sched_ext("_on_6_1", || KernelChoice::Release("6.1".to_owned()), true),
    other_deadline("_on_6_12", &[Group::Deadline], || {
        KernelChoice::Release("6.12".to_owned())
    }),
    other_deadline("_on_6_12", &[Group::Clusters], || {
        KernelChoice::Release("6.12".to_owned())
    }),
    other_deadline("_on_an_older_kernel", &[Group::Deadline], || {
        KernelChoice::Older(1)
    }),
    other_kernel("_on_rt", || KernelChoice::Rt),
    other_kernel("_on_an_older_kernel", || KernelChoice::Older(1)),
    other_kernel("_on_a_still_older_kernel", || KernelChoice::Older(2)),
];

const fn without_sched_ext(
    label: &'static str,
    kernel: fn() -> KernelChoice,
    only_long: bool,
) -> Machine {
    Machine {
        label,
        accel: Accel::Icount,
        turn: None,
        kernel,
        groups: &[Group::Fifo],
        is_debian: false,
        slowness: 30,
        only_long,
    }
}

const fn other_deadline(
    label: &'static str,
    groups: &'static [Group],
    kernel: fn() -> KernelChoice,
) -> Machine {
    Machine {
        label,
        accel: Accel::Icount,
        turn: None,
        kernel,
        groups,
        is_debian: false,
        slowness: 30,
        only_long: true,
    }
}

const fn other_kernel(label: &'static str, kernel: fn() -> KernelChoice) -> Machine {
    Machine {
        label,
        accel: Accel::Auto,
        turn: None,
        kernel,
        groups: &[Group::Function, Group::Kernels],
        is_debian: false,
        slowness: 2,
        only_long: true,
    }
}

/// What the runner inside takes beside its tests.
const BETWEEN_TESTS: Duration = Duration::from_secs(60);

/// So many tests that fail may be unsteady; where more fail, something is broken.
const UNSTEADY_MAX: usize = 5;

/// How often whoever failed is tried again.
const MORE_TRIES: usize = 2;

/// What became of all tests.
///
/// The emulator shares its host with whatever else runs there, which even a clock that counts
/// instructions does not hide completely. So who fails there is tried twice more, each time in a boot of its
/// own: what is wrong fails again. Whoever needs that is named, so that it is looked at.
#[derive(Default)]
struct Tally {
    passed: usize,
    /// Who failed, and with what.
    failed: Vec<(String, Vec<String>)>,
    filtered: usize,
    show_output: bool,
    /// Who fails now has failed.
    is_last_try: bool,
    /// Who failed at this try, and has another.
    pending: Vec<String>,
    /// Who failed at the first try.
    unsteady: Vec<String>,
}

impl Tally {
    fn record(&mut self, name: &str, passed: bool, note: &str, output: &[String]) {
        if !passed && !self.is_last_try {
            println!("UNSTEADY: {name} failed{note}; it is tried again at the end");
            output.iter().for_each(|line| println!("{line}"));
            self.pending.push(name.to_owned());
            return;
        }
        println!(
            "test {name} ... {}{note}",
            if passed { "ok" } else { "FAILED" }
        );
        for line in output {
            if !passed || self.show_output || line.starts_with("SKIPPED:") {
                println!("{line}");
            }
        }
        match passed {
            true => self.passed += 1,
            false => self.failed.push((name.to_owned(), output.to_vec())),
        }
    }

    fn record_all(&mut self, tests: &[(String, &Test)], passed: bool, why: &str) {
        for (name, _) in tests {
            let line = if passed {
                format!("SKIPPED: {name}: {why}")
            } else {
                why.to_owned()
            };
            self.record(name, passed, "", &[line]);
        }
    }
}

/// Runs what the command line asks for, as of any test program.
#[allow(clippy::disallowed_methods, reason = "the duration is shown")]
pub fn run(tests: &'static [Test]) -> ExitCode {
    let arguments = Arguments::from_args();
    let began = Instant::now();
    let mut tally = Tally {
        show_output: arguments.show_output || arguments.nocapture,
        ..Tally::default()
    };
    let mut select = |label: &str, groups: &[Group]| {
        let of_groups = tests.iter().filter(|test| groups.contains(&test.group));
        let named = of_groups.map(|test| (format!("{}{label}", test.name), test));
        let (asked, others): (Vec<_>, Vec<_>) =
            named.partition(|(name, _)| wanted(&arguments, name));
        tally.filtered += others.len();
        asked
    };
    let machines = MACHINES
        .iter()
        .filter(|machine| long() || !machine.only_long);
    let boots: Vec<_> = machines
        .map(|machine| (machine, select(machine.label, machine.groups)))
        .collect();
    let here = select("", &[Group::Host]);
    let all = boots.iter().flat_map(|(_, tests)| tests).chain(&here);
    if arguments.list {
        all.for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", all.count());
    match Emulator::find_or_fetch() {
        Ok(emulator) => {
            for (machine, tests) in &boots {
                on_machine(&emulator, machine, tests, &mut tally);
            }
            again(&emulator, &boots, &mut tally);
            on_this_machine(&here, &mut tally);
        }
        Err(unavailable) => {
            let asked: Vec<_> = boots
                .into_iter()
                .flat_map(|(_, tests)| tests)
                .chain(here)
                .collect();
            tally.record_all(&asked, true, &unavailable.to_string());
        }
    }
    close(&tally, began.elapsed())
}

fn wanted(arguments: &Arguments, name: &str) -> bool {
    let matches = |pattern: &String| match arguments.exact {
        true => name == pattern,
        false => name.contains(pattern.as_str()),
    };
    // None of these tests is marked to be left out, so asking for those alone asks for none.
    !arguments.ignored
        && arguments.filter.as_ref().is_none_or(matches)
        && !arguments.skip.iter().any(matches)
}

fn close(tally: &Tally, took: Duration) -> ExitCode {
    let failed = tally.failed.len();
    if !tally.unsteady.is_empty() {
        println!("\nunsteady, that is, failed at the first try:");
        let named = tally.unsteady.iter();
        named.for_each(|name| println!("    {name}"));
    }
    if failed > 0 {
        println!("\nfailures:");
        for (name, output) in &tally.failed {
            println!("\n---- {name}");
            output.iter().for_each(|line| println!("{line}"));
        }
        println!("\nfailures:");
        let named = tally.failed.iter();
        named.for_each(|(name, _)| println!("    {name}"));
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {verdict}. {} passed; {failed} failed; 0 ignored; 0 measured; {} filtered out; \
         finished in {:.2}s\n",
        tally.passed,
        tally.filtered,
        took.as_secs_f64()
    );
    ExitCode::from(u8::from(failed > 0))
}

/// Boots as often as needed: a test that takes the kernel with it does not take those that follow.
fn on_machine(
    emulator: &Emulator,
    machine: &Machine,
    tests: &[(String, &Test)],
    tally: &mut Tally,
) {
    let mut rest = tests;
    while !rest.is_empty() {
        let done = one_boot(emulator, machine, rest, tally);
        rest = &rest[done..];
    }
}

/// Runs those that failed again, each in a boot of its own; if they are too many, that was it.
fn again(emulator: &Emulator, boots: &[(&Machine, Vec<(String, &Test)>)], tally: &mut Tally) {
    tally.unsteady.clone_from(&tally.pending);
    let is_broken = tally.pending.len() > UNSTEADY_MAX;
    for more in (0..MORE_TRIES).rev() {
        tally.is_last_try = is_broken || more == 0;
        let pending = std::mem::take(&mut tally.pending);
        if is_broken {
            let all = pending.iter();
            all.for_each(|name| tally.record(name, false, "", &[]));
            break;
        }
        for (machine, tests) in boots {
            for test in tests.iter().filter(|(name, _)| pending.contains(name)) {
                on_machine(emulator, machine, std::slice::from_ref(test), tally);
            }
        }
    }
    // What is tested on this machine has no emulator to blame.
    tally.is_last_try = true;
}

/// Runs tests in one boot; returns how many of them, at least one, have a verdict now.
fn one_boot(
    emulator: &Emulator,
    machine: &Machine,
    tests: &[(String, &Test)],
    tally: &mut Tally,
) -> usize {
    let kernel = match emulator.kernel(&(machine.kernel)()) {
        Ok(kernel) => kernel,
        Err(unavailable) => {
            tally.record_all(tests, true, &unavailable.to_string());
            return tests.len();
        }
    };
    let boot = match boot(emulator, machine, tests) {
        Ok(boot) => boot,
        Err(BootError::Unavailable(unavailable)) => {
            tally.record_all(tests, true, &unavailable.to_string());
            return tests.len();
        }
        Err(error) => {
            tally.record_all(tests, false, &error.to_string());
            return tests.len();
        }
    };
    let names: BTreeMap<&str, &str> = tests
        .iter()
        .map(|(shown, test)| (test.name, shown.as_str()))
        .collect();
    let mut running: Option<String> = None;
    let mut said = Vec::new();
    let mut done = 0;
    // The runner inside ends with the first test that fails, and whoever is left has another boot.
    let mut has_failed = false;
    let mut follow = Reader::new(|step| match step {
        Step::Begun(name) => {
            let shown = names.get(name.as_str()).copied().unwrap_or("?");
            running = Some(shown.to_owned());
            said.clear();
        }
        Step::Ended { passed, took_ms } => {
            let name = running.take().unwrap_or_default();
            tally.record(&name, passed, &format!(" ({took_ms} ms)"), &said);
            done += 1;
            has_failed |= !passed;
        }
        Step::Said(line) => said.push(line),
    });
    let outcome = emulator.boot(&boot, &mut follow, &mut io::stderr());
    let why = match outcome {
        Ok(exit) => {
            let (took, by) = (exit.boot_time.as_millis(), exit.accel);
            println!("# {} by {by}: booted in {took} ms", kernel.release);
            "the runner inside ended early".to_owned()
        }
        Err(error) => error.to_string(),
    };
    if let Some(name) = running {
        said.push(why);
        tally.record(&name, false, "", &said);
        done += 1;
    } else if done < tests.len() && !has_failed {
        // Nothing says that it would go better another time.
        tally.record_all(&tests[done..], false, &why);
        done = tests.len();
    }
    done
}

fn boot(
    emulator: &Emulator,
    machine: &Machine,
    tests: &[(String, &Test)],
) -> Result<Boot, BootError> {
    let own = std::env::current_exe().map_err(BootError::Files)?;
    let mut boot = Boot::new(own)?;
    boot.accel = machine.accel;
    boot.turn = machine.turn;
    boot.kernel = (machine.kernel)();
    boot.arguments = tests.iter().map(|(_, test)| test.name.into()).collect();
    boot.files = vec![match machine.is_debian {
        true => CarriedFile {
            host: package::make(BUILT).map_err(BootError::Files)?,
            guest: PACKAGE.to_owned(),
        },
        false => CarriedFile {
            host: BUILT.into(),
            guest: COMMAND.to_owned(),
        },
    }];
    if machine.is_debian {
        boot.base = Base::System(emulator.system()?);
    }
    for variable in ["SHIFTWORK_LONG", "RUST_BACKTRACE"] {
        if let Some(value) = std::env::var_os(variable) {
            boot.environment.insert(variable.to_owned(), value);
        }
    }
    let limits: Duration = tests.iter().map(|(_, test)| test.limit).sum();
    boot.timeout = BETWEEN_TESTS + limits * machine.slowness;
    Ok(boot)
}

/// Tests of the emulator itself, one after the other.
fn on_this_machine(tests: &[(String, &Test)], tally: &mut Tally) {
    for (name, test) in tests {
        // Shows who is at it while it takes its time.
        let _ = io::stdout().flush();
        let verdict = std::panic::catch_unwind(test.run);
        let verdict = verdict.unwrap_or_else(|_| Err("it panicked, see above".to_owned()));
        let said: Vec<String> = verdict.err().into_iter().collect();
        tally.record(name, said.is_empty(), "", &said);
    }
}
