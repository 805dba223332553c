//! CPUs that go offline, are taken by a higher class, and come back.

use std::fs;
use std::thread;
use std::time::Duration;

use shiftwork_model::{CpuId, Instant, RecordKind, Span};

use super::actor::{Actor, command};
use super::others::tolerated;
use super::{Ended, KERNEL, Live, all_is_well, file, wait_for};

/// The CPU that is lost: in the file, and on the machine.
const LOST: CpuId = CpuId::from_index(1);
const LOST_ON_MACHINE: u64 = 2;

/// Four tasks that three CPUs have time for, and so do two.
fn four() -> String {
    let task = |name: &str| {
        format!(
            "name = \"{name}\"\ncost = \"8ms\"\nperiod = \"20ms\"\nwork = {{ run = \"7500us\" }}"
        )
    };
    let tasks = ["a", "b", "c", "d"].map(task);
    file(&tasks.each_ref().map(String::as_str))
}

/// When the CPU was not there, by the records. Meanwhile no job ran there; before and after some did.
fn absences(ended: &Ended) -> Result<Vec<(Instant, Instant)>, String> {
    absences_of_at_least(Span::from_ns(u64::MAX), ended)
}

/// The same; no job ran there for so long before it came back, or for all of a shorter absence. A
/// kernel that takes a CPU away says so first, and may pick for it once more while it still works on it.
fn absences_of_at_least(least: Span, ended: &Ended) -> Result<Vec<(Instant, Instant)>, String> {
    let mut absences = Vec::new();
    let mut gone = None;
    // It may be gone for both reasons at once, and is back when neither holds.
    let (mut is_offline, mut is_taken) = (false, false);
    let mut ran_meanwhile = None;
    let (mut before, mut after) = (0, 0);
    for record in ended.records() {
        let was_gone = is_offline || is_taken;
        match record.kind {
            RecordKind::CpuOffline { cpu } if cpu == LOST => is_offline = true,
            RecordKind::CpuTaken { cpu } if cpu == LOST => is_taken = true,
            RecordKind::CpuOnline { cpu } if cpu == LOST => is_offline = false,
            RecordKind::CpuReturned { cpu } if cpu == LOST => is_taken = false,
            _ => {}
        }
        match (was_gone, is_offline || is_taken) {
            (false, true) => gone = Some(record.at),
            (true, false) => {
                let since = gone.take().ok_or("it came back without having gone")?;
                if let Some((job, at)) = ran_meanwhile.take()
                    && record.at.since(at).is_none_or(|before| before < least)
                {
                    return Err(format!(
                        "{job:?} ran at {at} on a CPU that was gone from {since} to {}",
                        record.at
                    ));
                }
                absences.push((since, record.at));
                after = 0;
            }
            _ => {}
        }
        if let RecordKind::Switched {
            cpu: LOST,
            to: Some(job),
            ..
        } = record.kind
        {
            match (gone.is_some(), absences.is_empty()) {
                (true, _) => ran_meanwhile = Some((job, record.at)),
                (false, true) => before += 1,
                (false, false) => after += 1,
            }
        }
    }
    println!("it was gone {absences:?}; {before} jobs ran there before, {after} after");
    match (gone, absences.is_empty(), before, after) {
        (None, false, 1.., 1..) => Ok(absences),
        other => Err(format!(
            "gone, never gone, jobs before, jobs after: {other:?}"
        )),
    }
}

fn total(absences: &[(Instant, Instant)]) -> Span {
    let spans = absences.iter().map(|(from, to)| to.since(*from).unwrap());
    spans.fold(Span::ZERO, |sum, span| sum + span)
}

/// Nothing was late, but for what is tolerated at each of so many changes of the machine.
fn nothing_was_late(changes: u64, ended: &Ended) -> Result<(), String> {
    match ended.number("/deadline_misses")? {
        late if late <= changes * tolerated(ended) => Ok(()),
        late => Err(format!("{late} jobs were late: {}", ended.json)),
    }
}

/// A CPU of the machine that the test takes offline. Comes back at the latest when this is dropped.
pub struct Offline(String);

impl Offline {
    /// It is offline when this returns.
    ///
    /// # Errors
    /// If the kernel does not let it go.
    pub fn take(cpu: u64) -> Result<Self, String> {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/online");
        fs::write(&path, "0").map_err(|error| format!("{path}: {error}"))?;
        Ok(Self(path))
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        // It was possible to take it away; the kernel brings it back.
        let _ = fs::write(&self.0, "1");
    }
}

/// A CPU goes offline and comes back while programs run: they go on.
pub fn cpu_may_be_taken_away_from_outside() -> Result<(), String> {
    let program = |name: &str| {
        let command = command("punctual 2000");
        format!("name = \"{name}\"\ncost = \"4ms\"\nperiod = \"10ms\"\n{command}")
    };
    let tasks = ["a", "b", "c"].map(program);
    const GONE: Span = Span::from_ms(500);
    let live = Live::start(
        &file(&tasks.each_ref().map(String::as_str)),
        &["--for", "3s"],
    )?;
    thread::sleep(Duration::from_millis(800));
    let offline = Offline::take(LOST_ON_MACHINE)?;
    thread::sleep(Duration::from_nanos(GONE.as_ns()));
    drop(offline);
    let ended = live.end()?.well()?;
    absences_of_at_least(GONE, &ended)?;
    all_is_well()
}

/// The file's own actions do the same. The others have time enough for all tasks, so none is late.
pub fn cpu_goes_and_comes_back() -> Result<(), String> {
    offline_on(KERNEL)
}

/// The same on this machine.
pub fn offline_on(machine: &[&str]) -> Result<(), String> {
    let actions = "[[action]]\nat = \"100ms\"\ncpu-offline = 1\n\
                   [[action]]\nat = \"200ms\"\ncpu-online = 1\n";
    let ended = Live::start_on(machine, &(four() + actions), &["--for", "320ms"])?
        .end()?
        .well()?;
    // What wakes up on a CPU that is about to go is run there once more and pushed away by the kernel, which takes
    // milliseconds until the CPU is inactive.
    let gone = total(&absences_of_at_least(Span::from_ms(75), &ended)?);
    if !(Span::from_ms(80)..=Span::from_ms(130)).contains(&gone) {
        return Err(format!("it was gone for {gone} instead of 100 ms"));
    }
    // The CPU goes, and comes back.
    nothing_was_late(2, &ended)?;
    all_is_well()
}

/// A SCHED_FIFO task that is bound to a CPU has it; the jobs move to the others, come back, and none
/// is late.
pub fn fifo_task_takes_a_cpu_for_a_while() -> Result<(), String> {
    kept_by_fifo_on(KERNEL)
}

/// The same on this machine.
pub fn kept_by_fifo_on(machine: &[&str]) -> Result<(), String> {
    kept_by(
        machine,
        &format!("fifo {LOST_ON_MACHINE} 100"),
        Span::from_ms(100),
    )
}

/// The same with a SCHED_DEADLINE task that takes it again and again.
pub fn deadline_task_takes_cpus_for_a_while() -> Result<(), String> {
    kept_by_deadline_on(KERNEL)
}

/// The same on this machine.
pub fn kept_by_deadline_on(machine: &[&str]) -> Result<(), String> {
    // Only where the kernel admits everything may such tasks be bound to a CPU. It stays like this, see
    // `tang.rs`.
    const LIMIT: &str = "/proc/sys/kernel/sched_rt_runtime_us";
    fs::write(LIMIT, "-1").map_err(|error| error.to_string())?;
    kept_by(
        machine,
        &format!("deadline {LOST_ON_MACHINE} 60"),
        Span::from_ms(60),
    )
}

fn kept_by(machine: &[&str], part: &str, span: Span) -> Result<(), String> {
    let live = Live::start_on(machine, &four(), &["--for", "500ms"])?;
    wait_for("the tasks to be at work", || {
        live.is_at_work("a").then_some(())
    })?;
    thread::sleep(Duration::from_millis(50));
    Actor::start(part)?.ends()?;
    let ended = live.end()?.well()?;
    let gone = total(&absences(&ended)?);
    // Interrupts, and the start of a program in another class, are neither.
    if gone < span || gone > span + Span::from_ms(20) {
        return Err(format!("the CPU was gone for {gone} instead of {span}"));
    }
    nothing_was_late(1, &ended)?;
    all_is_well()
}
