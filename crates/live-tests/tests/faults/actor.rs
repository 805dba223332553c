//! Programs of tasks, and other processes, that behave badly: this test program, started once more
//! with the name of a part to play. None of them ends by itself unless its part says so.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, Stdio, exit};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use rustix::thread::{CpuSet, sched_setaffinity, sched_yield};
use rustix::time::{ClockId, clock_gettime};
use thread_priority::{
    DeadlineFlags, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy,
};

/// The word before the part.
const ACT: &str = "--act";

/// A user without privileges.
const UNPRIVILEGED: u32 = 65534;

/// Plays a part if this process was started to.
pub fn play_if_asked() -> Option<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [act, part, words @ ..] = &arguments[..] else {
        return None;
    };
    if act != ACT {
        return None;
    }
    let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    match (part.as_str(), &numbers[..]) {
        ("hog", cpus) => hog(cpus),
        ("punctual", &[run_us]) => punctual(run_us),
        ("declares", []) => crate::programs::declares(),
        ("pipeline", []) => crate::init::pipeline(),
        ("launcher", &[ms]) => crate::init::launcher(ms),
        ("three-threads", []) => crate::apply::three_threads(),
        ("naps", &[run_us, sleep_us]) => naps(run_us, sleep_us),
        ("beats", &[run_us, period_us]) => beats(run_us, period_us),
        ("quits", &[run_us]) => quits(run_us),
        ("dies", &[run_us]) => dies(run_us),
        ("parent", &[run_us]) => parent(run_us),
        ("unprivileged", _) => drop_privileges(words),
        ("restless", cpus @ [_, ..]) => restless(cpus),
        ("wanders", &[seed, cpus]) => wanders(seed, cpus),
        ("floods", &[seed, messages]) => crate::hostile::floods(seed, messages),
        ("crowds", &[clients]) => crate::hostile::crowds(clients),
        ("member", []) => crate::members::orders::member(),
        ("member-in-namespace", []) => crate::members::orders::member_in_namespace(),
        ("executes-set-user-id", _) => {
            crate::members::orders::executes_set_user_id(&words.join(" "))
        }
        ("victim", &[run_us, period_us]) => {
            crate::members::victim::victim(run_us, period_us, &words[2]);
        }
        ("holds", threads) => crate::standing::holder::hold(threads),
        ("fifo", &[cpu, ms]) => ranks_higher(cpu, ms, Rank::Fifo),
        ("deadline", &[cpu, ms]) => ranks_higher(cpu, ms, Rank::Deadline),
        _ => {
            eprintln!("there is no part {arguments:?}");
            return Some(ExitCode::from(2));
        }
    };
    Some(ExitCode::SUCCESS)
}

/// The `command` of a task that plays the part, as a task-set file takes it.
pub fn command(part: &str) -> String {
    let own = std::env::current_exe().unwrap();
    let words: Vec<String> = [own.to_string_lossy().as_ref(), ACT]
        .into_iter()
        .chain(part.split(' '))
        .map(|word| format!("{word:?}"))
        .collect();
    format!("command = [{}]", words.join(", "))
}

/// A process that plays the part, for as long as this exists.
pub struct Actor(Child);

impl Actor {
    /// It begins at once.
    ///
    /// # Errors
    /// If no process can be made.
    pub fn start(part: &str) -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let child = Command::new(own)
            .arg(ACT)
            .args(part.split(' '))
            .stdin(Stdio::null())
            .spawn();
        child.map(Self).map_err(|error| format!("{part}: {error}"))
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits until its part is over.
    ///
    /// # Errors
    /// If it failed.
    pub fn ends(&mut self) -> Result<(), String> {
        match self.0.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("it ended by {status}")),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // A process that has ended already need not be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The processes that play this part now, of any parent; with `""` all that play any part.
pub fn processes_with_role(part: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(number) = entry.file_name().to_string_lossy().parse() else {
            continue;
        };
        // A process that is gone, or a zombie, has no command line any more.
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        let mut words = words.split(' ').skip_while(|word| *word != ACT).skip(1);
        if words
            .next()
            .is_some_and(|word| part.is_empty() || word == part)
        {
            found.push(number);
        }
    }
    found
}

/// A little work, some dozens of instructions.
fn work() {
    let mut sum = 0_u32;
    for step in 0..4 {
        sum = std::hint::black_box(sum.wrapping_add(step));
    }
    // In the emulator no other CPU computes before this one pauses, and every pause takes its time
    // there.
    std::hint::spin_loop();
}

/// Computes for so long by the clock of its own processor time.
pub fn compute(span: Duration) {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let end = now() + span;
    while now() < end {
        for _ in 0..10 {
            work();
        }
    }
}

/// Computes all the time, on these CPUs or on any.
fn hog(cpus: &[u64]) {
    // None is no affinity: it stays.
    let _ = bind(cpus);
    loop {
        work();
    }
}

/// Does its work in every job, and says when a job is over.
fn punctual(run_us: u64) {
    loop {
        compute(Duration::from_micros(run_us));
        sched_yield();
    }
}

/// Does its work in every job, and ends it by going to sleep.
fn naps(run_us: u64, sleep_us: u64) {
    loop {
        compute(Duration::from_micros(run_us));
        std::thread::sleep(Duration::from_micros(sleep_us));
    }
}

/// Does its work in every job, and sleeps until the next multiple of the period by the clock that all have.
fn beats(run_us: u64, period_us: u64) {
    let period = u128::from(period_us) * 1_000;
    loop {
        compute(Duration::from_micros(run_us));
        let now = Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default();
        let left = period - now.as_nanos() % period;
        std::thread::sleep(Duration::from_nanos(u64::try_from(left).unwrap_or(0)));
    }
}

/// Ends in the middle of a job.
fn quits(run_us: u64) {
    compute(Duration::from_micros(run_us));
    exit(7);
}

/// Is killed in the middle of a job.
fn dies(run_us: u64) {
    compute(Duration::from_micros(run_us));
    // It is there, and it may do that to itself.
    let _ = kill_process(getpid(), Signal::KILL);
}

/// Is punctual; one of its children computes all the time, others come and go.
fn parent(run_us: u64) {
    let own = std::env::current_exe().unwrap();
    let child = |part: &[&str]| Command::new(&own).arg(ACT).args(part).spawn();
    let Ok(_hog) = child(&["hog"]) else { exit(3) };
    loop {
        let Ok(mut passing) = child(&["quits", "100"]) else {
            exit(4)
        };
        compute(Duration::from_micros(run_us));
        sched_yield();
        let _ = passing.wait();
    }
}

/// Loses its privileges, and plays another part as the same process.
fn drop_privileges(words: &[String]) {
    let own = std::env::current_exe().unwrap();
    let error: io::Error = Command::new(own)
        .arg(ACT)
        .args(words)
        .uid(UNPRIVILEGED)
        .exec();
    eprintln!("user {UNPRIVILEGED} cannot play {words:?}: {error}");
    exit(5);
}

fn bind(cpus: &[u64]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(usize::try_from(cpu).unwrap_or(usize::MAX));
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// Asks for one CPU, then for all of them, again and again. It never ends a job.
fn restless(cpus: &[u64]) {
    loop {
        for &cpu in cpus {
            // It asks; what comes of that is what is tested.
            let _ = bind(&[cpu]);
            compute(Duration::from_micros(300));
        }
        let _ = bind(cpus);
        compute(Duration::from_micros(300));
    }
}

/// Computes, sleeps, and changes its affinity at random among the CPUs from 0 to below `cpus`.
fn wanders(seed: u64, cpus: u64) {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    loop {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let wanted: Vec<u64> = (0..cpus)
            .filter(|cpu| state >> (8 + cpu) & 1 == 1)
            .collect();
        // None of them is no affinity: it stays.
        let _ = bind(&wanted);
        let span = Duration::from_micros(state % 2_000);
        match state & 4 {
            0 => compute(span),
            _ => std::thread::sleep(span),
        }
    }
}

/// A class above those of ordinary work.
enum Rank {
    Fifo,
    /// Three quarters of its CPU.
    Deadline,
}

/// Computes for so long in a higher class and bound to this CPU, then ends.
fn ranks_higher(cpu: u64, ms: u64, rank: Rank) {
    /// The calling thread.
    const SELF: u64 = 0;
    let (native, priority, policy) = match rank {
        Rank::Fifo => (
            thread_priority::thread_native_id(),
            ThreadPriority::Crossplatform(50_u8.try_into().unwrap()),
            RealtimeThreadSchedulePolicy::Fifo,
        ),
        Rank::Deadline => (
            SELF,
            ThreadPriority::Deadline {
                runtime: Duration::from_millis(15),
                deadline: Duration::from_millis(20),
                period: Duration::from_millis(20),
                flags: DeadlineFlags::empty(),
            },
            RealtimeThreadSchedulePolicy::Deadline,
        ),
    };
    let bound = bind(&[cpu]);
    let policy = ThreadSchedulePolicy::Realtime(policy);
    let ranked = set_thread_priority_and_policy(native, priority, policy);
    if bound.is_err() || ranked.is_err() {
        eprintln!("it could not rank higher: {bound:?}, {ranked:?}");
        exit(6);
    }
    compute(Duration::from_millis(ms));
}
