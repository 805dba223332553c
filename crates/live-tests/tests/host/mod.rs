//! The runner on this machine: divides the tests into boots, executes as many boots at once as there are
//! CPUs, and prints the results.
//!
//! A boot is a function of its kernel, its programs and the list of its tests: it repeats instruction by
//! instruction. So a test that fails is not tried again; the runner prints the command that replays its boot.

mod arguments;
pub mod machines;
mod results;

use std::collections::VecDeque;
use std::io;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser as _;
use shiftwork_emulator::{Accel, Base, Boot, BootError, CarriedFile, Emulator};

use self::arguments::Arguments;
use self::machines::{MACHINES, Machine};
use self::results::Results;
use crate::catalogue::{Group, Test};
use crate::coverage;
use crate::inside;
use crate::long;
use crate::package::{self, PACKAGE};
use crate::progress::{Reader, Step};
use crate::soak;

/// The command that was built for these tests.
const BUILT: &str = env!("CARGO_BIN_EXE_shiftwork-tested");
/// Where tests inside find the command.
const COMMAND: &str = "/bin/shiftwork";
/// At most so many tests share a boot: few enough to keep all CPUs busy to the end, and many enough that booting
/// costs little.
const TESTS_PER_BOOT: usize = 18;
/// What the runner inside takes beside its tests, in the guest's time.
const BETWEEN_TESTS: Duration = Duration::from_secs(60);

/// A test, under the name that it has on its machine.
type Named = (String, &'static Test);

/// Tests that run one after the other, in one boot of a machine; or one on this machine.
struct Batch {
    machine: Option<&'static Machine>,
    tests: Vec<Named>,
}

/// What all boots have in common.
struct Guests {
    emulator: Emulator,
    /// See [`inside::VARY`].
    vary: Option<u64>,
}

/// Runs what the command line asks for, as of any test program.
#[allow(clippy::disallowed_methods, reason = "the duration is shown")]
pub fn run(tests: &'static [Test]) -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(request) = arguments.soak() {
        return soak::host::run(&request);
    }
    let began = Instant::now();
    let (batches, filtered) = plan(tests, &arguments);
    let all = || batches.iter().flat_map(|batch| &batch.tests);
    if arguments.list {
        all().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let mut results = Results::new(all().count(), filtered, arguments.show_output);
    match Emulator::find_or_fetch() {
        Ok(emulator) => {
            let vary = arguments.vary;
            let guests = Guests { emulator, vary };
            let threads = arguments.test_threads.unwrap_or_else(cpus);
            results = execute(&guests, batches, threads, results);
        }
        Err(unavailable) => {
            let why = unavailable.to_string();
            all().for_each(|(name, _)| results.skip(name, &why));
        }
    }
    ExitCode::from(u8::from(!results.close(began.elapsed())))
}

fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The batches of the tests that were asked for, and how many others there are.
fn plan(tests: &'static [Test], arguments: &Arguments) -> (VecDeque<Batch>, usize) {
    let mut batches = VecDeque::new();
    let mut filtered = 0;
    let mut add = |machine: Option<&'static Machine>, label: &str, groups: &[Group]| {
        let of_groups = tests.iter().filter(|test| groups.contains(&test.group));
        let named = of_groups.map(|test| (format!("{}{label}", test.name()), test));
        let (asked, others): (Vec<Named>, Vec<_>) =
            named.partition(|(name, _)| arguments.select(name));
        filtered += others.len();
        let size = match machine {
            Some(_) if arguments.one_boot => usize::MAX,
            Some(_) => TESTS_PER_BOOT,
            // At the end no CPU is to idle.
            None => 1,
        };
        batches.extend(asked.chunks(size).map(|tests| Batch {
            machine,
            tests: tests.to_vec(),
        }));
    };
    for machine in MACHINES.iter().filter(|it| long() || !it.only_long) {
        add(Some(machine), machine.label, machine.groups);
    }
    add(None, "", &[Group::Host]);
    (batches, filtered)
}

/// Executes the batches, so many at once.
fn execute(guests: &Guests, batches: VecDeque<Batch>, threads: usize, results: Results) -> Results {
    let batches = Mutex::new(batches);
    let results = Mutex::new(results);
    let next = || {
        let mut batches = batches.lock().unwrap_or_else(PoisonError::into_inner);
        batches.pop_front()
    };
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some(batch) = next() {
                    match batch.machine {
                        Some(machine) => on_machine(guests, machine, &batch.tests, &results),
                        None => on_this_machine(&batch.tests, &results),
                    }
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Changes the results, which the threads of all boots share.
fn with<T>(results: &Mutex<Results>, change: impl FnOnce(&mut Results) -> T) -> T {
    change(&mut results.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Boots as often as needed: a test that takes the kernel with it does not take those that follow.
fn on_machine(guests: &Guests, machine: &Machine, tests: &[Named], results: &Mutex<Results>) {
    let mut rest = tests;
    while !rest.is_empty() {
        let done = one_boot(guests, machine, rest, results);
        rest = &rest[done..];
    }
}

/// Runs tests in one boot; returns how many of them, at least one, have a result now.
fn one_boot(
    guests: &Guests,
    machine: &Machine,
    tests: &[Named],
    results: &Mutex<Results>,
) -> usize {
    let emulator = &guests.emulator;
    let prepared = emulator
        .kernel(&(machine.kernel)())
        .map_err(BootError::Unavailable)
        .and_then(|kernel| Ok((kernel, boot(guests, machine, tests)?)));
    let (kernel, boot) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            let why = error.to_string();
            let is_unavailable = matches!(error, BootError::Unavailable(_));
            with(results, |results| {
                for (name, _) in tests {
                    match is_unavailable {
                        true => results.skip(name, &why),
                        false => results.fail(name, &why),
                    }
                }
            });
            return tests.len();
        }
    };
    let mut running = false;
    let mut output = Vec::new();
    let mut done = 0;
    // The runner inside ends with the first test that fails, and the tests after it have another boot.
    let mut has_failed = false;
    let mut follow = Reader::new(|step| match step {
        Step::Begun(_) => {
            running = true;
            output.clear();
        }
        Step::Ended { passed, took_ms } => {
            running = false;
            let mut output = std::mem::take(&mut output);
            if !passed {
                output.push(replay(tests, guests.vary));
            }
            with(results, |results| {
                results.record(&tests[done].0, passed, Some(took_ms), output);
            });
            done += 1;
            has_failed |= !passed;
        }
        Step::Said(line) => output.push(line),
    });
    let outcome = emulator.boot(&boot, &mut follow, &mut io::stderr());
    let why = match outcome {
        Ok(exit) => {
            let (booted, took) = (exit.boot_time.as_secs(), exit.whole_time.as_secs());
            let release = &kernel.release;
            println!("# {release}: {done} tests in {took} s, of which booting took {booted} s");
            "the runner inside ended early".to_owned()
        }
        Err(error) => error.to_string(),
    };
    if running || (done < tests.len() && !has_failed) {
        output.push(why);
        output.push(replay(tests, guests.vary));
        with(results, |results| {
            results.record(&tests[done].0, false, None, output)
        });
        done += 1;
    }
    done
}

/// The command that repeats a boot instruction by instruction.
fn replay(tests: &[Named], vary: Option<u64>) -> String {
    let long = if long() { "SHIFTWORK_LONG=1 " } else { "" };
    let names: Vec<&str> = tests.iter().map(|(name, _)| name.as_str()).collect();
    let vary = vary.map_or_else(String::new, |seed| format!("--vary {seed} "));
    format!(
        "to replay it: {long}cargo test -p shiftwork-live-tests --test live --locked -- --exact --one-boot {vary}{}",
        names.join(" ")
    )
}

fn boot(guests: &Guests, machine: &Machine, tests: &[Named]) -> Result<Boot, BootError> {
    let own = std::env::current_exe().map_err(BootError::Files)?;
    let mut boot = Boot::new(own)?;
    boot.accel = Accel::Icount;
    boot.turn = machine.turn;
    boot.kernel = (machine.kernel)();
    boot.arguments = tests.iter().map(|(_, test)| test.name().into()).collect();
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
    if let Some((program, guest)) = &machine.program {
        boot.files.push(CarriedFile {
            host: guests
                .emulator
                .program(program)
                .map_err(BootError::Unavailable)?,
            guest: (*guest).to_owned(),
        });
    }
    if machine.is_debian {
        boot.base = Base::System(guests.emulator.system()?);
    }
    let environment = &mut boot.environment;
    environment.insert("RUST_BACKTRACE".to_owned(), "1".into());
    if long() {
        environment.insert("SHIFTWORK_LONG".to_owned(), "1".into());
    }
    if let Some(seed) = guests.vary {
        environment.insert(inside::VARY.to_owned(), seed.to_string().into());
    }
    let limits: Duration = tests.iter().map(|(_, test)| test.limit).sum();
    boot.timeout = BETWEEN_TESTS + limits;
    coverage::collect(&mut boot);
    Ok(boot)
}

/// Tests that boot for themselves.
fn on_this_machine(tests: &[Named], results: &Mutex<Results>) {
    for (name, test) in tests {
        let result = std::panic::catch_unwind(test.run);
        let result = result.unwrap_or_else(|_| Err("it panicked, see above".to_owned()));
        let output: Vec<String> = result.err().into_iter().collect();
        with(results, |results| {
            results.record(name, output.is_empty(), None, output)
        });
    }
}
