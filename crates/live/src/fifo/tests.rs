use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Scope;

use rustix::thread::Pid;
use shiftwork_model::{CpuId, OnOverrun, Priority, Span, TaskId};

use super::*;
use crate::agent::{Enactor as _, EnactorOwner as _, Slot};
use crate::event::{Event, Kind};
use crate::machine::{Excess, Parameters};
use crate::sys::clock::{cpu_ns_of, monotonic_ns, pause, sleep_until};
use crate::sys::thread::{Class, affinity, own_id, set_affinity, set_class};
use crate::work::{Effects, JobBarrier};

const MS: u64 = 1_000_000;

/// Only one test at a time has threads of the highest priorities.
static CPU: Mutex<()> = Mutex::new(());

/// Nothing here takes nearly as long.
const LONG_NS: u64 = 2_000 * MS;

/// The CPU that these tests compute on; CPU 0 is left to other threads. `None`, with a message, if there is no
/// such CPU or this user may not have real-time threads.
fn test_cpu() -> Option<CpuId> {
    let cpu = CpuId::from_index(1);
    let all = affinity(None).unwrap();
    if !all.contains(cpu) || all.len() < 2 {
        println!("SKIPPED: real-time threads on this machine: it has only one CPU for us");
        return None;
    }
    // On a thread of its own: its priority ends with it.
    let allowed = std::thread::spawn(|| set_class(None, Class::Fifo(1)));
    if let Err(error) = allowed.join().unwrap() {
        println!("SKIPPED: real-time threads on this machine: SCHED_FIFO is not allowed: {error}");
        return None;
    }
    Some(cpu)
}

/// Scheduling policy (0: SCHED_OTHER) and affinity of a thread, as the kernel reports them.
fn settings(thread: Pid) -> (u32, CpuSet) {
    let path = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
    let stat = fs::read_to_string(path).unwrap();
    // The name, which may hold anything, ends with the last bracket; the policy is field 41, and the
    // first after the name is field 3.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let policy = fields.split_whitespace().nth(41 - 3).unwrap();
    (policy.parse().unwrap(), affinity(Some(thread)).unwrap())
}

/// The machine, and the calls that an agent would make.
struct Rig {
    owner: FifoOwner,
    fifo: FifoEnactor,
    cpu: CpuId,
    /// The CPUs of its threads once they are ordinary again.
    all: CpuSet,
    reports: Vec<Event>,
    stops: [u32; 2],
}

impl Rig {
    fn new(cpu: CpuId, all: CpuSet) -> Self {
        let names = vec![String::from("a"), String::from("b")];
        let (owner, fifo) = set_up(&CpuSet::single(cpu), names).unwrap();
        Self {
            owner,
            fifo,
            cpu,
            all,
            reports: Vec::new(),
            stops: [0; 2],
        }
    }

    /// Spawns the thread of a task and admits it; the number of the thread.
    fn add<'s>(
        &mut self,
        scope: &'s Scope<'s, '_>,
        task: usize,
        life: impl FnOnce(&dyn JobBarrier, TaskId) + Send + 's,
    ) -> Pid {
        let (sender, receiver) = std::sync::mpsc::channel();
        let (barrier, id) = (self.owner.job_barrier(), TaskId::from_index(task));
        scope.spawn(move || {
            sender.send(own_id()).unwrap();
            barrier.first_job(id, 0);
            life(&*barrier, id);
        });
        let thread = receiver.recv().unwrap();
        let of = Parameters {
            thread,
            cpus: self.all,
            cost: Span::from_ms(1),
            period: Span::from_ms(10),
            deadline: Span::from_ms(10),
            on_overrun: OnOverrun::Continue,
            excess: Excess::in_run(OnOverrun::Continue, false),
            priority: Priority::new(1).unwrap(),
            follows: true,
            start: Some(self.cpu),
        };
        assert_eq!(self.fifo.admit(id, &of).unwrap(), Some(true));
        thread
    }

    fn assign(&mut self, task: Option<usize>) {
        self.fifo.heartbeat().unwrap();
        let slot = Slot {
            cpu: self.cpu,
            task: task.map(TaskId::from_index),
            stops: task.map_or(0, |task| self.stops[task]),
        };
        self.fifo.assign(&[slot]).unwrap();
    }

    /// Returns once this is reported of the task.
    fn expect(&mut self, task: usize, kind: Kind) -> Event {
        let late_ns = monotonic_ns() + LONG_NS;
        loop {
            self.fifo.heartbeat().unwrap();
            self.fifo.take_reports(&mut self.reports).unwrap();
            let is_it = |event: &Event| event.kind == kind && event.task as usize == task + 1;
            if let Some(at) = self.reports.iter().position(is_it) {
                self.stops[task] += u32::from(kind == Kind::NextJob);
                return self.reports.drain(..=at).next_back().unwrap();
            }
            assert!(
                monotonic_ns() < late_ns,
                "{kind:?} of {task}: {:?}",
                self.reports
            );
            self.fifo.wait_until(monotonic_ns() + MS);
        }
    }

    /// Lets this span pass, with heartbeats.
    fn pass(&mut self, span_ns: u64) {
        let end_ns = monotonic_ns() + span_ns;
        while monotonic_ns() < end_ns {
            self.fifo.heartbeat().unwrap();
            sleep_until(end_ns.min(monotonic_ns() + 5 * MS)).unwrap();
        }
    }
}

/// Computes until `stop` is set, or for a bounded time if the test has failed.
fn compute(stop: &AtomicBool) {
    let late_ns = monotonic_ns() + LONG_NS;
    while !stop.load(Ordering::Relaxed) && monotonic_ns() < late_ns {
        pause();
    }
}

/// Removes the CPU from the affinity of the calling thread, as for an agent. The previous affinity.
fn step_aside(cpu: CpuId) -> CpuSet {
    let before = affinity(None).unwrap();
    let mut elsewhere = before;
    elsewhere.remove(cpu);
    set_affinity(None, &elsewhere).unwrap();
    before
}

#[test]
fn threads_are_held_resumed_and_restored() {
    let Some(cpu) = test_cpu() else { return };
    let _alone = CPU.lock().unwrap_or_else(PoisonError::into_inner);
    let all = step_aside(cpu);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Inside the scope: dropped before the scope joins the threads.
        let mut rig = Rig::new(cpu, all);
        let first = rig.add(scope, 0, |barrier, id| {
            compute(&stop);
            barrier.next_job(id, u64::MAX, Effects::default());
        });
        let second = rig.add(scope, 1, |barrier, id| {
            barrier.next_job(id, u64::MAX, Effects::default())
        });
        assert_eq!(settings(first), (1, CpuSet::single(cpu)));
        rig.assign(Some(0));
        let running = rig.expect(0, Kind::Running);
        assert_eq!(running.cpu, Some(1));
        rig.assign(Some(1));
        let stopped = rig.expect(0, Kind::Stopped);
        assert!(stopped.value <= stopped.at - running.at);
        rig.expect(1, Kind::NextJob);
        // No job is assigned to the CPU now, and the first one is still held.
        let before_ns = cpu_ns_of(first).unwrap();
        rig.pass(30 * MS);
        let held_ns = cpu_ns_of(first).unwrap() - before_ns;
        assert!(held_ns < 2 * MS, "a held job ran for {held_ns} ns");
        rig.assign(Some(0));
        rig.expect(0, Kind::Running);
        rig.pass(30 * MS);
        let resumed_ns = cpu_ns_of(first).unwrap() - before_ns;
        assert!(resumed_ns > 5 * MS, "a resumed job ran for {resumed_ns} ns");
        stop.store(true, Ordering::Relaxed);
        rig.expect(0, Kind::NextJob);
        rig.fifo.dismiss(TaskId::from_index(1)).unwrap();
        assert_eq!(settings(second).0, 0);
        let Rig { fifo, owner, .. } = rig;
        drop(fifo);
        for thread in [first, second] {
            assert_eq!(settings(thread), (0, all));
        }
        drop(owner);
    });
    set_affinity(None, &all).unwrap();
}

#[test]
fn threads_become_ordinary_after_agent_failure() {
    let Some(cpu) = test_cpu() else { return };
    let _alone = CPU.lock().unwrap_or_else(PoisonError::into_inner);
    let all = step_aside(cpu);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Inside the scope: dropped before the scope joins the threads.
        let mut rig = Rig::new(cpu, all);
        let thread = rig.add(scope, 0, |_, _| compute(&stop));
        rig.assign(Some(0));
        rig.expect(0, Kind::Running);
        rig.assign(None);
        assert_eq!(rig.owner.failed(), None);
        let late_ns = monotonic_ns() + LONG_NS;
        while settings(thread).0 != 0 && monotonic_ns() < late_ns {
            sleep_until(monotonic_ns() + 10 * MS).unwrap();
        }
        assert_eq!(settings(thread).0, 0);
        let why = rig.owner.failed().unwrap();
        assert!(why.starts_with("the agent sent no heartbeat for "), "{why}");
        assert!(rig.fifo.assign(&[]).is_err());
        stop.store(true, Ordering::Relaxed);
        drop(rig);
    });
    set_affinity(None, &all).unwrap();
}

#[test]
fn end_of_run_releases_held_and_waiting_threads() {
    let Some(cpu) = test_cpu() else { return };
    let _alone = CPU.lock().unwrap_or_else(PoisonError::into_inner);
    let all = step_aside(cpu);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Inside the scope: dropped before the scope joins the threads.
        let mut rig = Rig::new(cpu, all);
        let held = rig.add(scope, 0, |_, _| compute(&stop));
        rig.add(scope, 1, |barrier, id| {
            barrier.next_job(id, u64::MAX, Effects::default());
            assert_eq!(settings(own_id()).0, 0);
        });
        rig.assign(Some(0));
        rig.expect(0, Kind::Running);
        rig.assign(None);
        let before_ns = cpu_ns_of(held).unwrap();
        rig.owner.open_job_barrier();
        rig.pass(20 * MS);
        assert!(cpu_ns_of(held).unwrap() > before_ns + MS);
        stop.store(true, Ordering::Relaxed);
        rig.owner.unload();
    });
    set_affinity(None, &all).unwrap();
}

#[test]
fn notes_state_time_kept_from_real_time_threads() {
    let limited = |runtime: &str| {
        System::of([
            ("/proc/sys/kernel/sched_rt_runtime_us", runtime),
            ("/proc/sys/kernel/sched_rt_period_us", "1000000\n"),
        ])
    };
    assert_eq!(
        notes_on(&limited("950000\n")),
        [
            "the kernel keeps 50ms of every 1s on each CPU from SCHED_FIFO, and stops real-time jobs for \
             that; `sysctl kernel.sched_rt_runtime_us=-1` ends this"
        ]
    );
    assert!(notes_on(&limited("-1\n")).is_empty());
    // Such kernels have deadline servers, even if debugfs is not readable.
    let new = System::of([("/proc/sys/kernel/osrelease", "6.18.0\n")]);
    assert!(notes_on(&new)[0].contains("gives them some"));
    let folder = "/sys/kernel/debug/sched/fair_server/cpu1";
    let served = |runtime: &str| {
        System::of([
            (format!("{folder}/runtime").as_str(), runtime),
            (format!("{folder}/period").as_str(), "1000000000\n"),
            ("/proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
            ("/proc/sys/kernel/sched_rt_period_us", "1000000\n"),
        ])
    };
    assert_eq!(
        notes_on(&served("50000000\n")),
        [
            "where SCHED_FIFO leaves ordinary threads no time, the kernel gives them 50ms of every 1s (its \
             deadline server), which real-time jobs there lose"
        ]
    );
    assert!(notes_on(&served("0\n")).is_empty());
    // Reading the notes of this machine must not fail.
    drop(notes());
}
