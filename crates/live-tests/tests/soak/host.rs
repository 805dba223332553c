//! The soak on this machine: boots each plan's guest, says how a failure is repeated, and makes it smaller.

use std::collections::VecDeque;
use std::io;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use shiftwork_emulator::{Accel, Boot, BootError, Emulator, KernelChoice};

use super::draw::draw;
use super::plan::{Machine, Part};
use super::{EPISODES, IN_GUEST};
use crate::coverage;
use crate::host::machines;

/// How long a run may take, in the guest's time.
const LIMIT: Duration = Duration::from_secs(600);

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The first seed, and how many there are.
    pub seed: u64,
    pub count: u64,
    pub kernel: KernelChoice,
    pub episodes: Option<usize>,
    /// See [`Part`]; separated by commas.
    pub without: String,
    /// How many boots may be spent on making the plan of a failure smaller.
    pub shrink: usize,
    /// Whether to show how far a run that passed came by when.
    pub show_output: bool,
    /// How many guests run at once.
    pub guests: usize,
}

/// The machine on which the tests of [`Group::Locks`](crate::catalogue::Group::Locks) run.
pub fn shared_machine() -> Machine {
    Machine {
        cpus: machines::CPUS as u16,
        turn_us: machines::TURN.as_micros() as u64,
        second_turn_us: None,
        random_seed: 1,
    }
}

/// Runs all seeds; succeeds if all runs do.
pub fn run(request: &Request) -> ExitCode {
    let emulator = match Emulator::find_or_fetch() {
        Ok(emulator) => emulator,
        Err(unavailable) => {
            println!("SKIPPED: {unavailable}");
            return ExitCode::SUCCESS;
        }
    };
    let seeds = request.seed..request.seed.saturating_add(request.count);
    let queue: Mutex<VecDeque<u64>> = Mutex::new(seeds.collect());
    let failed = Mutex::new(0);
    let next = || {
        queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    };
    thread::scope(|scope| {
        for _ in 0..request.guests.max(1) {
            scope.spawn(|| {
                while let Some(seed) = next() {
                    if !passes(&emulator, request, seed) {
                        *failed.lock().unwrap_or_else(PoisonError::into_inner) += 1;
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("soak: {} of {} seeds failed", failed, request.count);
    ExitCode::from(u8::from(failed > 0))
}

/// Whether the run of this seed keeps all rules.
fn passes(emulator: &Emulator, request: &Request, seed: u64) -> bool {
    let plan = draw(seed, request.episodes.unwrap_or(EPISODES), None);
    let outcome = attempt(emulator, request, seed, &request.without);
    match outcome {
        Ok(output) => {
            println!("seed {seed}, {plan}: {output}");
            true
        }
        Err(why) => {
            let without = match request.shrink {
                0 => request.without.clone(),
                boots => shrink(emulator, request, seed, boots),
            };
            let why = match without == request.without {
                true => why,
                false => attempt(emulator, request, seed, &without)
                    .err()
                    .unwrap_or(why),
            };
            println!(
                "seed {seed}, {plan}: FAILED\n{why}\n{}\n",
                replay(request, seed, &without)
            );
            false
        }
    }
}

/// Boots the guest once; returns what it said, as an error if the run did not keep the rules.
fn attempt(
    emulator: &Emulator,
    request: &Request,
    seed: u64,
    without: &str,
) -> Result<String, String> {
    let episodes = request.episodes.unwrap_or(EPISODES);
    let boot = boot(request, seed, episodes, without).map_err(|error| error.to_string())?;
    let mut said = Vec::new();
    let outcome = emulator.boot(&boot, &mut said, &mut io::stderr());
    let said = String::from_utf8_lossy(&said).trim_end().to_owned();
    match outcome {
        Ok(exit) if exit.code == 0 => {
            let shown = match request.show_output {
                true => &said,
                false => said.lines().last().unwrap_or_default(),
            };
            let (took, booted) = (exit.whole_time.as_secs(), exit.boot_time.as_secs());
            Ok(format!(
                "{shown} ({took} s, of which booting took {booted} s)"
            ))
        }
        Ok(exit) => Err(format!("{said}\nafter {} s", exit.whole_time.as_secs())),
        Err(error) => Err(format!("{said}\n{error}")),
    }
}

fn boot(request: &Request, seed: u64, episodes: usize, without: &str) -> Result<Boot, BootError> {
    let machine = draw(seed, 0, None).machine;
    let mut boot = Boot::new(std::env::current_exe().map_err(BootError::Files)?)?;
    boot.cpus = machine.cpus;
    boot.accel = Accel::Icount;
    boot.turn = Some(Duration::from_micros(machine.turn_us));
    boot.second_turn = machine.second_turn_us.map(Duration::from_micros);
    boot.seed = machine.random_seed;
    boot.kernel = request.kernel.clone();
    boot.arguments = vec![
        IN_GUEST.into(),
        seed.to_string().into(),
        episodes.to_string().into(),
        without.into(),
    ];
    boot.environment
        .insert("RUST_BACKTRACE".to_owned(), "1".into());
    boot.timeout = LIMIT;
    coverage::collect(&mut boot);
    Ok(boot)
}

/// Parts without which the run fails as well: halves of what is left, then quarters, and so on.
fn shrink(emulator: &Emulator, request: &Request, seed: u64, boots: usize) -> String {
    let plan = draw(seed, request.episodes.unwrap_or(EPISODES), None);
    let mut without: Vec<Part> = super::parts(&request.without).unwrap_or_default();
    let mut left_boots = boots;
    let mut size = plan.parts().len();
    while size > 1 {
        size = size.div_ceil(2);
        let mut at = 0;
        loop {
            let left = plan.clone().without(&without).parts();
            let Some(rest) = left.get(at..).filter(|rest| !rest.is_empty()) else {
                break;
            };
            if left_boots == 0 {
                return listed(&without);
            }
            left_boots -= 1;
            let tried: Vec<Part> = without
                .iter()
                .chain(rest.iter().take(size))
                .copied()
                .collect();
            match attempt(emulator, request, seed, &listed(&tried)) {
                Err(_) => without = tried,
                Ok(_) => at += size,
            }
        }
    }
    listed(&without)
}

fn listed(parts: &[Part]) -> String {
    let parts: Vec<String> = parts.iter().map(Part::to_string).collect();
    parts.join(",")
}

/// The command that repeats a run.
fn replay(request: &Request, seed: u64, without: &str) -> String {
    let mut command = format!(
        "to replay it: cargo test -p shiftwork-live-tests --test live --locked -- --soak {seed}"
    );
    if request.kernel != KernelChoice::Newest {
        command.push_str(&format!(" --kernel {}", request.kernel));
    }
    if let Some(episodes) = request.episodes {
        command.push_str(&format!(" --episodes {episodes}"));
    }
    if !without.is_empty() {
        command.push_str(&format!(" --without {without}"));
    }
    command
}
