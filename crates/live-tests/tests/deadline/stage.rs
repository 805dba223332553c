//! A task set as threads under the kernel's own `SCHED_DEADLINE`, traced.

use std::collections::BTreeMap;
use std::fs;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::thread::{gettid, sched_yield};
use rustix::time::ClockId;
use shiftwork_model::{Arrival, CpuSet, Instant, Phase, Task, TaskSet, Work};

use super::cpusets::enter_upper;
use super::schedule::Schedule;
use super::work::{bind, burn, enter, now_ns, sleep_until};
use crate::ftrace;

/// The share of each CPU, in millionths, that the kernel admits.
const LIMIT: &str = "/proc/sys/kernel/sched_rt_runtime_us";
/// So soon after its start whatever a machine does is late by up to a millisecond.
const SETTLING: Duration = Duration::from_secs(5);
/// Between what is prepared and what is measured.
const PAUSE: Duration = Duration::from_millis(2);
/// Later than the last period that began while threads were prepared, by this.
const AFTERWARDS_NS: u64 = 20_000_000;

/// Makes the kernel do with `SCHED_DEADLINE` what is asked, and nothing else there. Whether it admits as
/// usual, or without a limit: then affinities are allowed too.
///
/// # Errors
/// If it refuses.
pub fn prepare(is_limited: bool) -> Result<(), String> {
    // The kernel goes on counting threads that are gone for a while, and then refuses another limit.
    thread::sleep(SETTLING);
    write(LIMIT, if is_limited { "950000" } else { "-1" })?;
    bind(&CpuSet::first(1), 0)?;
    // Else a CPU decides at its next tick only that a budget is used up. Kernels that do not know the
    // word do it anyway or never.
    let _ = fs::write("/sys/kernel/debug/sched/features", "HRTICK_DL");
    for server in ["fair_server", "ext_server"] {
        // Ordinary work would have deadlines too where it waits for long.
        for cpu in 0..4 {
            let _ = fs::write(
                format!("/sys/kernel/debug/sched/{server}/cpu{cpu}/runtime"),
                "0",
            );
        }
    }
    Ok(())
}

fn write(path: &str, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{path}: {error}"))
}

/// Runs the task set until `end`, and returns its schedule; CPU 0 of its file is the machine's CPU
/// `first`. Tasks of a second cluster are in the upper [half](super::cpusets::Halves) of the
/// machine.
///
/// # Errors
/// If a thread cannot be what it should be, or the trace cannot be read.
pub fn perform(set: &TaskSet, first: usize, end: Instant) -> Result<Schedule, String> {
    let (ready, prepared) = channel();
    let mut threads = Vec::new();
    let mut tasks = BTreeMap::new();
    for (id, task) in set.iter() {
        let (begin, origin) = channel();
        let (task, ready) = (task.clone(), ready.clone());
        let upper = set.platform.clusters.get(1);
        let is_upper = upper.is_some_and(|upper| (*task.affinity.cpus() - *upper).is_empty());
        let place = (first, is_upper);
        let performer = move || performance(&task, place, end.as_ns(), &ready, &origin);
        threads.push((begin, thread::spawn(performer)));
        // One after the other, so that no thread disturbs another.
        let thread = prepared.recv().map_err(|_| "a thread is gone")??;
        tasks.insert(thread, id.index());
        thread::sleep(PAUSE);
    }
    ftrace::begin(ftrace::ONLY_DEADLINE)?;
    let longest = set.tasks.iter().map(|task| task.period.as_ns()).max();
    let origin_ns = now_ns(ClockId::Monotonic) + longest.unwrap_or(0) + AFTERWARDS_NS;
    for (begin, _) in &threads {
        begin.send(origin_ns).map_err(|_| "a thread is gone")?;
        thread::sleep(PAUSE);
    }
    for (_, thread) in threads {
        thread.join().map_err(|_| "a thread failed")?;
    }
    let switches = ftrace::read(&ftrace::stop()?)?;
    let place = (first, set.platform.cpus);
    let span = (origin_ns, end.as_ns());
    Ok(Schedule::of_trace(&switches, &tasks, place, span))
}

/// The thread of a task: sends its number, receives the common start, and does its jobs.
fn performance(
    task: &Task,
    place: (usize, bool),
    end_ns: u64,
    ready: &Sender<Result<u32, String>>,
    origin: &Receiver<u64>,
) {
    let prepared = become_task(task, place)
        .map(|()| gettid().as_raw_nonzero().get().unsigned_abs())
        .map_err(|error| format!("{}: {error}", task.name));
    let is_prepared = prepared.is_ok();
    let is_sent = ready.send(prepared).is_ok();
    if let Ok(origin_ns) = origin.recv()
        && is_sent
        && is_prepared
    {
        jobs(task, origin_ns, end_ns);
    }
}

fn become_task(task: &Task, (first, is_upper): (usize, bool)) -> Result<(), String> {
    let cpus = task.affinity.cpus();
    if is_upper {
        enter_upper()?;
    }
    let start = task.start_cpu.filter(|&cpu| cpus.contains(cpu));
    if let Some(cpu) = start.or(cpus.lowest()) {
        bind(&CpuSet::single(cpu), first)?;
    }
    // A running thread stays on its CPU, and is admitted only if it may use its whole cluster.
    bind(cpus, first)?;
    enter(task.cost, task.deadline, task.period)
}

fn jobs(task: &Task, origin_ns: u64, end_ns: u64) {
    let since_origin = || now_ns(ClockId::Monotonic).saturating_sub(origin_ns);
    for (index, release_ns) in releases(task, end_ns).into_iter().enumerate() {
        if index == 0 || since_origin() < release_ns {
            sleep_until(origin_ns + release_ns);
        } else {
            sched_yield();
        }
        work(task);
        if since_origin() >= end_ns {
            break;
        }
    }
    // A thread that ends is joined before its last switch is traced.
    sleep_until(origin_ns + end_ns);
}

fn releases(task: &Task, end_ns: u64) -> Vec<u64> {
    let offset_ns = task.offset.as_ns();
    match &task.arrival {
        Arrival::Releases(at) => at.iter().map(|at| offset_ns + at.as_ns()).collect(),
        _ => {
            let every = (offset_ns..end_ns).step_by(task.period.as_ns() as usize);
            every.collect()
        }
    }
}

/// One job.
fn work(task: &Task) {
    match &task.work {
        Work::Constant(run) => burn(*run),
        Work::Phases(phases) => {
            for phase in phases {
                match *phase {
                    Phase::Run(run) => burn(run),
                    Phase::Sleep(span) => thread::sleep(Duration::from_nanos(span.as_ns())),
                    Phase::Lock(_) | Phase::Unlock(_) | Phase::Trigger(_) => {
                        panic!("no stage has mutexes or triggers")
                    }
                }
            }
        }
        _ => burn(task.cost),
    }
}
