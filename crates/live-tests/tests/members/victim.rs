//! A program with a reservation that keeps to it: it judges its deadlines by the clock, and so does the daemon.

use std::fs::File;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::time::Duration;

use rustix::thread::set_current_timer_slack;
use shiftwork_client::{State, Status, Task};

use super::{GROUP, VICTIM};
use crate::deadline::work::sleep_until;
use crate::faults::{compute, wait_for};
use crate::hostile::well_behaved;
use crate::service::Daemon;
use crate::standing::periodic::now_ns;

/// What a victim has found, in its file: three numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    pub jobs: u64,
    pub misses: u64,
    pub longest_us: u64,
}

/// A part to play: computes for so long from each release on, and writes down what came of it. Deadlines are periods.
pub fn victim(run_us: u64, period_us: u64, path: &str) {
    let file = File::options().write(true).open(path);
    let file = file.expect("it was made before");
    // Every kernel has it.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let mut found = Found::default();
    // To begin took more than is reserved, which is made good for a second at most.
    let mut release_ns = now_ns() + 1_100_000_000;
    loop {
        sleep_until(release_ns);
        compute(Duration::from_micros(run_us));
        let response_us = (now_ns() - release_ns) / 1_000;
        found.jobs += 1;
        found.misses += u64::from(response_us > period_us);
        found.longest_us = found.longest_us.max(response_us);
        let numbers = [found.jobs, found.misses, found.longest_us];
        let bytes: Vec<u8> = numbers.iter().flat_map(|it| it.to_ne_bytes()).collect();
        // It stays in memory.
        let _ = file.write_all_at(&bytes, 0);
        release_ns += period_us * 1_000;
    }
}

/// A victim, as the judge sees it.
#[derive(Debug)]
pub struct Victim {
    pub id: u32,
    path: PathBuf,
    /// What the daemon counted while it began.
    misses_before: u64,
}

impl Victim {
    /// Starts a program that computes for `run_us` of what is reserved for it.
    pub fn start(
        daemon: &mut Daemon,
        [run_us, cost_us, period_us]: [u64; 3],
        cpus: &str,
    ) -> Result<Self, String> {
        let path = PathBuf::from(format!("/tmp/victim-{period_us}"));
        std::fs::write(&path, [0; 24]).map_err(|error| error.to_string())?;
        std::os::unix::fs::chown(&path, Some(VICTIM), None).map_err(|error| error.to_string())?;
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = daemon.command("exec");
        command.uid(VICTIM).gid(GROUP);
        command.args(["--cost", &format!("{cost_us}us")]);
        command.args(["--period", &format!("{period_us}us"), "--cpus", cpus, "--"]);
        command.arg(own).args(["--act", "victim"]);
        command.args([run_us, period_us].map(|it| it.to_string()));
        let id = daemon.start_program(command.arg(&path))?;
        let mut victim = Self {
            id,
            path,
            misses_before: 0,
        };
        wait_for("the victim to have jobs", || {
            victim.found().ok().filter(|found| found.jobs > 2)
        })
        .map_err(|why| format!("{why}: {}", daemon.log()))?;
        let status = well_behaved(daemon)?;
        victim.misses_before = victim.task(&status)?.misses;
        Ok(victim)
    }

    pub fn found(&self) -> Result<Found, String> {
        let bytes = std::fs::read(&self.path).map_err(|error| error.to_string())?;
        let mut numbers = bytes.chunks_exact(8).map(|it| {
            let it: [u8; 8] = it.try_into().unwrap_or_default();
            u64::from_ne_bytes(it)
        });
        let mut next = || numbers.next().ok_or("its file is too short");
        Ok(Found {
            jobs: next()?,
            misses: next()?,
            longest_us: next()?,
        })
    }

    fn task<'a>(&self, status: &'a Status) -> Result<&'a Task, String> {
        let task = status.tasks.iter().find(|task| task.process == self.id);
        task.ok_or_else(|| format!("{self:?} has no reservation any more"))
    }

    /// It has kept all its deadlines, by its own clock and by the daemon's records.
    pub fn judge(&self, status: &Status) -> Result<(), String> {
        let (found, task) = (self.found()?, self.task(status)?);
        let is_served = task.state == State::Admitted;
        match (found.misses, task.misses - self.misses_before, is_served) {
            (0, 0, true) => Ok(()),
            _ => Err(format!("a victim found {found:?}, the daemon {task:?}")),
        }
    }
}
