//! Whatever one task, or ordinary work, does: the others meet their deadlines.

use std::thread;
use std::time::Duration;

use shiftwork_model::{CpuId, Instant, RecordKind, Span, TaskId};

use super::actor::{Actor, command};
use super::{Ended, KERNEL, Live, all_is_well, file, goes_on};

/// A task for one CPU of the file.
pub fn bound(name: &str, cpu: u32, cost: &str, run: &str) -> String {
    format!(
        "name = \"{name}\"\ncost = \"{cost}\"\nperiod = \"10ms\"\naffinity = \"{cpu}\"\n\
         work = {{ run = \"{run}\" }}"
    )
}

/// No job of these was late. Where an agent decides, one of each may be: the thread that watches
/// and answers shares the agent's CPU in the guest, and a CPU that goes offline stops it for a
/// moment.
pub(super) fn never_late(ended: &Ended, tasks: &[&str]) -> Result<(), String> {
    for task in tasks {
        let (jobs, late) = (ended.of_task(task, "jobs")?, ended.of_task(task, "misses")?);
        if jobs == 0 || late > tolerated(ended) {
            return Err(format!("{late} of {jobs} jobs of {task} were late"));
        }
    }
    Ok(())
}

/// How many jobs of a task may be late.
pub(super) fn tolerated(ended: &Ended) -> u64 {
    u64::from(ended.json["machine"] == "agent")
}

/// For how long jobs of the task ran, by the records.
pub(super) fn executed(ended: &Ended, task: TaskId) -> Span {
    let mut since: [Option<Instant>; 3] = [None; 3];
    let mut sum = Span::ZERO;
    for record in ended.records() {
        if let RecordKind::Switched { cpu, to, .. } = record.kind {
            let since = &mut since[cpu.index()];
            sum = since
                .take()
                .and_then(|since| record.at.since(since))
                .map_or(sum, |ran| sum + ran);
            *since = to.filter(|job| job.task == task).map(|_| record.at);
        }
    }
    sum
}

/// One task that is throttled, and one that goes on, on a CPU each, with a punctual one there.
pub fn overrun_delays_no_other_task() -> Result<(), String> {
    let goes_on = bound("goes-on", 1, "2ms", "4ms") + "\non-overrun = \"continue\"";
    let tasks = [
        &bound("throttled", 0, "2ms", "8ms"),
        &bound("beside-throttled", 0, "5ms", "4900us"),
        &goes_on,
        &bound("beside-going-on", 1, "5ms", "4900us"),
    ];
    let ended = Live::start(&file(&tasks.map(String::as_str)), &["--for", "300ms"])?
        .end()?
        .well()?;
    never_late(&ended, &["beside-throttled", "beside-going-on", "goes-on"])?;
    // 2 ms of every 10 and not more than 50 us over; 4 ms of every 10.
    for (task, least, most) in [(0, 58_000, 61_500), (2, 119_000, 121_000)] {
        let ran = executed(&ended, TaskId::from_index(task));
        println!("{} ran for {ran}", ["throttled", "", "goes-on"][task]);
        if ran < Span::from_us(least) || ran > Span::from_us(most) {
            return Err(format!(
                "{least} to {most} us were to be used, and {ran} were"
            ));
        }
    }
    all_is_well()
}

/// A program without privileges changes its affinity all the time, to CPUs that it may have and to one
/// that it may not: it loses its reservation, and gets it back.
pub fn restless_task_delays_no_other_task() -> Result<(), String> {
    let answers = beside_the_restless(KERNEL)?;
    all_is_well()?;
    answers.are_at_least(3, 2, 2)
}

/// The same on any machine. Returns the answers to its requests.
pub(super) fn beside_the_restless(machine: &[&str]) -> Result<Answers, String> {
    let restless = format!(
        "name = \"restless\"\ncost = \"1ms\"\nperiod = \"10ms\"\naffinity = \"0\"\n{}",
        command("unprivileged restless 1 2")
    );
    let tasks = [
        &bound("calm", 0, "5ms", "4900us"),
        &bound("full", 1, "9400us", "8ms"),
        &restless,
    ];
    let tasks = file(&tasks.map(String::as_str));
    let ended = Live::start_on(machine, &tasks, &["--for", "1s"])?
        .end()?
        .well()?;
    never_late(&ended, &["calm", "full"])?;
    ended.says("task restless asked for CPUs 2 and lost its reservation")?;
    let of = TaskId::from_index(2);
    let count = |is: &dyn Fn(&RecordKind) -> bool| {
        let records = ended.records().iter();
        records.filter(|record| is(&record.kind)).count()
    };
    let asked = count(&|kind| matches!(kind, RecordKind::AffinitySet { task, .. } if *task == of));
    let lost = count(&|kind| *kind == RecordKind::Left { task: of });
    let back = count(&|kind| *kind == RecordKind::Entered { task: of });
    Ok(Answers { asked, lost, back })
}

/// How often a task asked for other CPUs, lost its reservation by that, and had it back.
pub(super) struct Answers {
    asked: usize,
    lost: usize,
    back: usize,
}

impl Answers {
    /// That it happened at least so often.
    pub(super) fn are_at_least(
        &self,
        asked: usize,
        lost: usize,
        back: usize,
    ) -> Result<(), String> {
        println!(
            "it asked {} times, lost its reservation {} times and had it back {} times",
            self.asked, self.lost, self.back
        );
        match self.asked >= asked && self.lost >= lost && self.back >= back {
            true => Ok(()),
            false => Err("that is less than it could".to_owned()),
        }
    }
}

/// Ordinary processes that change their affinity at random.
pub fn restless_ordinary_work_delays_no_task() -> Result<(), String> {
    let count: u64 = if crate::long() { 40 } else { 8 };
    let tasks = [
        &bound("a", 0, "8ms", "7500us"),
        &bound("b", 1, "8ms", "7500us"),
        &bound("c", 2, "8ms", "7500us"),
    ];
    let span = if crate::long() { "3s" } else { "300ms" };
    let wanderers: Result<Vec<_>, _> = (0..count)
        .map(|seed| Actor::start(&format!("wanders {seed} 4")))
        .collect();
    let live = Live::start(&file(&tasks.map(String::as_str)), &["--for", span])?;
    let ended = live.end()?.well()?;
    for wanderer in &wanderers? {
        goes_on(wanderer.id(), 1)?;
    }
    never_late(&ended, &["a", "b", "c"])?;
    all_is_well()
}

/// Ordinary work that is bound to a CPU that a task keeps busy has the reserve after a second.
pub fn pinned_ordinary_work_is_served_after_a_second() -> Result<(), String> {
    let busy = bound("busy", 0, "9ms", "10ms") + "\non-overrun = \"continue\"";
    let tasks = [&busy, &bound("calm", 1, "8ms", "7500us")];
    let live = Live::start(&file(&tasks.map(String::as_str)), &["--for", "1300ms"])?;
    thread::sleep(Duration::from_millis(100));
    let waiting = Actor::start("hog 1")?;
    let ended = live.end()?.well()?;
    drop(waiting);
    never_late(&ended, &["calm"])?;
    let cpu = CpuId::from_index(0);
    let at = |wanted: RecordKind| {
        let mut records = ended.records().iter();
        records.find(|record| record.kind == wanted).map(|it| it.at)
    };
    let (Some(begun), Some(over)) = (
        at(RecordKind::BackgroundStarted { cpu }),
        at(RecordKind::BackgroundEnded { cpu }),
    ) else {
        return Err("no record says that it was served".to_owned());
    };
    println!("it was served from {begun} to {over}");
    let served = over.since(begun).unwrap();
    // 5% of a second.
    if begun < Instant::ZERO + Span::from_ms(900)
        || !(Span::from_ms(49)..=Span::from_ms(51)).contains(&served)
    {
        return Err(format!("it had {served}"));
    }
    let runs = |record: &&shiftwork_model::Record| {
        let is_there =
            matches!(record.kind, RecordKind::Switched { cpu: on, to: Some(_), .. } if on == cpu);
        is_there && record.at > begun && record.at < over
    };
    match ended.records().iter().find(runs) {
        Some(record) => Err(format!("meanwhile a task ran there: {record:?}")),
        None => all_is_well(),
    }
}
