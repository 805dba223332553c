//! Faults of an agent, and what becomes of the tasks that it schedules.
//!
//! All of it by a clock that counts instructions: an agent on a CPU that stands still for a while,
//! as in an emulator that shares a busy machine, counts as dead.

use std::fs;
use std::panic;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use rustix::thread::{CpuSet, Pid, sched_setaffinity};
use shiftwork_cli::catalogue;
use shiftwork_live::{Attention, Backend, Ended as RunEnded};
use shiftwork_model::{CpuId, Order, RecordKind, Span, TaskId};
use shiftwork_policy::{Event, Policy, PolicyError, Switches};

use super::actor::{Actor, command, processes_with_role};
use super::others::{bound, executed, never_late};
use super::{
    AGENT, Live, SHARED, all_is_well, cpus, file, goes_on, others, processor_time, state, wait_for,
};
use crate::running::run_as_it_comes;

/// This machine; if much is asked for both that an agent decides for.
fn machines(one: &'static [&'static str]) -> Vec<&'static [&'static str]> {
    match crate::long() {
        true => vec![AGENT, SHARED],
        false => vec![one],
    }
}

/// Two tasks that want all of one CPU, so that one of them always waits for the agent's decision,
/// and a program.
fn crowded() -> String {
    file(&[
        &bound("first", 0, "9ms", "9ms"),
        &bound("second", 0, "9ms", "9ms"),
        &format!(
            "name = \"program\"\ncost = \"3ms\"\nperiod = \"10ms\"\n{}",
            command("punctual 1000")
        ),
    ])
}

/// Ordinary work that is bound to each of the platform's CPUs, and one that may go anywhere.
fn ordinary_work() -> Result<Vec<Actor>, String> {
    ["hog 1", "hog 2", "hog 3", "hog"]
        .into_iter()
        .map(Actor::start)
        .collect()
}

/// Starts the crowded set and waits until all of its tasks run. Also returns the process of the
/// program.
fn crowd(machine: &[&str]) -> Result<(Live, u32), String> {
    let live = Live::start_on(machine, &crowded(), &["--for", "100s", "--best-effort"])?;
    let program = wait_for("all to be at work", || {
        let program = *processes_with_role("punctual").first()?;
        let is_on = processor_time(program)? > Duration::from_millis(2);
        let all = ["first", "second"]
            .into_iter()
            .all(|task| live.is_at_work(task));
        (is_on && all).then_some(program)
    })?;
    Ok((live, program))
}

/// How long it takes from now until the kernel's own scheduler has all threads again.
#[allow(clippy::disallowed_methods, reason = "how long that takes is tested")]
fn until_disabled() -> Result<Duration, String> {
    let since = Instant::now();
    wait_for("the scheduler to be gone", || {
        (state() == "disabled").then(|| since.elapsed())
    })
}

fn at_most(ms: u64, took: Duration) -> Result<(), String> {
    println!("the scheduler was disabled after {took:?}");
    match took <= Duration::from_millis(ms) {
        true => Ok(()),
        false => Err(format!("allowed are {ms} ms")),
    }
}

/// Stops the command, and waits until it is stopped: an agent that polls may delay the thread that
/// takes the signal for half a second.
fn stop(live: &Live) -> Result<(), String> {
    live.signal(Signal::STOP)?;
    wait_for("the agent to be stopped", || {
        let stat = fs::read_to_string(live.thread("agent")?.join("stat")).ok()?;
        stat.contains(") T ").then_some(())
    })
}

/// Killed with the command: no task that waits for its decision is lost, threads and programs end
/// with it, and ordinary work has the machine.
pub fn killed_agent_leaves_all_threads_to_the_kernel() -> Result<(), String> {
    for machine in machines(AGENT) {
        let others = ordinary_work()?;
        let (live, _) = crowd(machine)?;
        live.signal(Signal::KILL)?;
        at_most(100, until_disabled()?)?;
        let ended = live.end()?;
        if ended.code != -Signal::KILL.as_raw() {
            return Err(format!("it ended by {}: {}", ended.code, ended.said));
        }
        for other in &others {
            goes_on(other.id(), 4)?;
        }
        drop(others);
        all_is_well()?;
    }
    Ok(())
}

/// Stopped with the command: programs, which are not, go on under the kernel's own, and so does ordinary
/// work. Once it may go on, the command says what happened, and shows what it has measured.
pub fn stopped_agent_loses_all_threads_to_the_kernel() -> Result<(), String> {
    for machine in machines(SHARED) {
        let others = ordinary_work()?;
        let (live, program) = crowd(machine)?;
        stop(&live)?;
        at_most(300, until_disabled()?)?;
        goes_on(program, 4)?;
        for other in &others {
            goes_on(other.id(), 4)?;
        }
        live.signal(Signal::CONT)?;
        let ended = live.end()?;
        if ended.code != 3 {
            return Err(format!("it ended by {}: {}", ended.code, ended.said));
        }
        println!("{}", ended.said.trim());
        ended.says("the agent sent no heartbeat for ")?;
        let (done, reached) = (
            ended.of_task("program", "completed")?,
            ended.number("/horizon_ns")?,
        );
        if done == 0 || reached >= 100_000_000_000 || ended.records().is_empty() {
            return Err(format!("{done} jobs were done in {reached} ns"));
        }
        drop(others);
        all_is_well()?;
    }
    Ok(())
}

/// Decides as another policy does, for so many events; then it fails.
pub(super) struct Fails {
    pub(super) inner: Box<dyn Policy>,
    pub(super) left: u32,
}

impl Policy for Fails {
    fn on_event(&mut self, event: Event<'_>, out: &mut Switches) {
        assert!(self.left > 0, "a policy that fails on request");
        self.left -= 1;
        self.inner.on_event(event, out);
    }

    fn end_instant(&mut self, out: &mut Switches) {
        self.inner.end_instant(out);
    }

    fn assigned(&self, cpu: CpuId) -> Option<TaskId> {
        self.inner.assigned(cpu)
    }

    fn accepts(&self, event: &Event<'_>) -> Result<(), PolicyError> {
        self.inner.accepts(event)
    }
}

/// If the agent fails, the run ends, says why, and no thread hangs.
pub fn failing_agent_ends_the_run() -> Result<(), String> {
    // One line is enough of it: to find out all that could be said takes longer than the agent may be silent.
    panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let policies = &mut catalogue::policies();
    let strong = policies.find(|entry| entry.name == "strong-edf");
    let strong = strong.ok_or("there is no such policy")?;
    let all = [Attention::Dedicated, Attention::Shared];
    for attention in &all[..machines(AGENT).len()] {
        let ran = run_as_it_comes(&crowded(), Order::Edf, Span::from_s(100), |set| {
            let inner = strong.build(set).map_err(|error| error.to_string())?;
            let failing = Box::new(Fails { inner, left: 60 });
            Ok(Backend::Agent(failing, *attention))
        })?;
        let RunEnded::Unloaded { reason } = &ran.report.ended else {
            return Err(format!("it ended by {:?}", ran.report.ended));
        };
        println!("{reason}; {:?}", ran.report.notes);
        let done: u64 = ran.summary.tasks.iter().map(|task| task.completed).sum();
        if !reason.contains("the agent failed") || done == 0 {
            return Err(format!("{done} jobs were done"));
        }
        if ran
            .report
            .notes
            .iter()
            .any(|note| note.contains("could not be stopped"))
        {
            return Err("a thread or program did not end".to_owned());
        }
        all_is_well()?;
    }
    Ok(())
}

/// On each CPU a quick thread, and on the first of them two programs.
fn quick() -> String {
    let thread = |cpu: u32| {
        format!(
            "name = \"t{cpu}\"\ncost = \"400us\"\nperiod = \"1ms\"\naffinity = \"{cpu}\"\n\
             work = {{ run = \"200us\" }}"
        )
    };
    let program = |name: &str| {
        let command = command("punctual 200");
        format!(
            "name = \"{name}\"\ncost = \"500us\"\nperiod = \"2ms\"\naffinity = \"0\"\n{command}"
        )
    };
    let [first, second, third] = [0, 1, 2].map(thread);
    file(&[&first, &second, &third, &program("a"), &program("b")])
}

/// How long each of the quick ones has computed, with its name and the share of a CPU that it is to have.
fn computed(live: &Live, programs: &[u32]) -> Vec<(String, f64, Duration)> {
    let threads = ["t0", "t1", "t2"].map(|task| (task.to_owned(), 0.2, live.computed(task)));
    let programs = programs.iter().map(|&program| {
        let time = processor_time(program).unwrap_or_default();
        (format!("program {program}"), 0.1, time)
    });
    threads.into_iter().chain(programs).collect()
}

/// Whether each of them has what it needs.
#[allow(clippy::disallowed_methods, reason = "a share is one of time")]
fn all_go_on(live: &Live, programs: &[u32]) -> Result<(), String> {
    let (before, began) = (computed(live, programs), Instant::now());
    std::thread::sleep(Duration::from_millis(60));
    let took = began.elapsed().as_secs_f64();
    for ((name, share, before), (_, _, after)) in before.into_iter().zip(computed(live, programs)) {
        let had = (after.saturating_sub(before)).as_secs_f64() / took;
        println!("{name} had {had:.3} of a CPU");
        // A forgotten task executes nothing; the exact share depends on the instant of this check.
        if had < share * 0.3 {
            return Err(format!(
                "{name} was to have {share} of a CPU, and had {had:.3}"
            ));
        }
    }
    Ok(())
}

/// Binds a process to these CPUs.
fn bind(process: u32, cpus: &[usize]) -> Result<(), String> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu));
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    sched_setaffinity(process, &set).map_err(|error| format!("{cpus:?}: {error}"))
}

/// An agent that misses reports, because it does not come to read them, finds out the state: that a
/// CPU is back, and that a program may not use another CPU any more, among others. All tasks go on.
pub fn agent_that_misses_reports_finds_out() -> Result<(), String> {
    for machine in machines(SHARED) {
        let live = Live::start_on(machine, &quick(), &["--for", "100s", "--trace-buffer", "4"])?;
        let programs = wait_for("the programs", || {
            let mut found = processes_with_role("punctual");
            found.retain(|&one| processor_time(one) > Some(Duration::from_millis(1)));
            found.sort_unstable();
            (found.len() == 2).then_some(found)
        })?;
        all_go_on(&live, &programs)?;
        let mut taker = Actor::start("fifo 2 50")?;
        wait_for("the CPU to be taken", || {
            (processor_time(taker.id())? > Duration::from_millis(15)).then_some(())
        })?;
        stop(&live)?;
        bind(programs[1], &[1, 2])?;
        // The ring has room for some 128 reports.
        for _ in 0..150 {
            bind(programs[0], &[1, 2])?;
            bind(programs[0], &[1])?;
        }
        bind(programs[1], &[1])?;
        taker.ends()?;
        live.signal(Signal::CONT)?;
        // What was missed meanwhile is made up for.
        std::thread::sleep(Duration::from_millis(60));
        all_go_on(&live, &programs)?;
        live.signal(Signal::INT)?;
        let ended = live.end()?.well()?;
        let lost = ended.number("/lost_records")?;
        if lost < 170 {
            return Err(format!("{lost} events were lost"));
        }
        ended.says(&format!("note: {lost} events of the trace found no room"))?;
        all_is_well()?;
    }
    Ok(())
}

/// A program that changes its affinity all the time does not disturb other tasks; nor do ordinary
/// processes beside it that do the same. Under a policy of each kind, by an agent that shares its CPU with
/// the thread that answers requests.
pub fn changes_of_affinity_delay_no_task_under_an_agent() -> Result<(), String> {
    for (policy, wanderers) in [("strong-edf", 0), ("weak-edf", 4)] {
        let wanderers: Result<Vec<_>, _> = (0..wanderers)
            .map(|seed| Actor::start(&format!("wanders {seed} 4")))
            .collect();
        let machine = [SHARED, &["--policy", policy]].concat();
        let answers = others::beside_the_restless(&machine);
        answers
            .and_then(|answers| answers.are_at_least(3, 2, 2))
            .map_err(|why| format!("{policy}: {why}"))?;
        for wanderer in &wanderers? {
            goes_on(wanderer.id(), 1)?;
        }
        all_is_well()?;
    }
    Ok(())
}

/// Programs of every kind beside each other: each has what it is to have, and not more.
pub fn programs_get_what_they_ask_for_under_an_agent() -> Result<(), String> {
    let program = |name: &str, cost: &str, cpu: u32, part: &str| {
        let command = command(part);
        format!(
            "name = \"{name}\"\ncost = \"{cost}\"\nperiod = \"10ms\"\naffinity = \"{cpu}\"\n{command}"
        )
    };
    let tasks = [
        program("hog", "2ms", 0, "hog"),
        bound("beside-hog", 0, "6ms", "5900us"),
        program("yields", "3ms", 1, "punctual 1500"),
        program("naps", "3ms", 1, "naps 1500 8000"),
        program("quits", "2ms", 2, "quits 15000"),
        bound("beside-naps", 1, "2ms", "1900us"),
        program("warned", "3ms", 2, "hog") + "\non-overrun = \"signal\"",
        bound("beside-warned", 2, "3ms", "2900us"),
    ];
    let tasks = file(&tasks.each_ref().map(String::as_str));
    let ended = Live::start_on(SHARED, &tasks, &["--for", "300ms"])?
        .end()?
        .well()?;
    let number = TaskId::from_index;
    never_late(&ended, &["beside-hog", "beside-naps"])?;
    // 2 ms of every 10, and not more than 50 us over.
    let ran = executed(&ended, number(0));
    println!("the hog ran for {ran}");
    if ran < Span::from_us(58_000) || ran > Span::from_us(61_500) {
        return Err(String::from("60 ms were to be used"));
    }
    for (task, least) in [("yields", 18), ("naps", 18)] {
        let done = ended.of_task(task, "completed")?;
        if done < least {
            return Err(format!("{task} did {done} jobs"));
        }
    }
    ended.says("note: the program of task quits ended: exit status: 7")?;
    ended.says("note: the program of task warned ended: signal: 24 (SIGXCPU)")?;
    for task in [4, 6].map(number) {
        if !ended.has(|kind| *kind == RecordKind::Left { task }) {
            return Err(format!("no record says that {task:?} left"));
        }
    }
    all_is_well()
}

/// A CPU goes offline, and comes back.
pub fn cpu_goes_and_comes_back_under_an_agent() -> Result<(), String> {
    cpus::offline_on(SHARED)
}

/// Threads of a higher class take a CPU for a while.
pub fn higher_classes_take_a_cpu_for_a_while_under_an_agent() -> Result<(), String> {
    cpus::kept_by_fifo_on(SHARED)?;
    match crate::long() {
        true => cpus::kept_by_deadline_on(AGENT),
        false => Ok(()),
    }
}
