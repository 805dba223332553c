//! A minimal machine for quanta: it releases jobs, ends them, sends ticks, and compares each slot
//! with the definition.

use std::collections::BTreeSet;

use shiftwork_model::{
    Affinity, CpuId, CpuSet, Instant, Job as PolicyJob, Priority, Span, TaskId, TaskSet,
};
use shiftwork_policy::registry::find;
use shiftwork_policy::{Event, Policy, Switches};

use crate::oracle::{Oracle, Subtask, Task};

/// The length of a quantum; divisible by all numbers of CPUs up to six.
pub const QUANTUM: u64 = 60;

/// Tasks on CPUs that have all of them in common.
#[derive(Clone, Debug)]
pub struct System {
    pub cpus: usize,
    pub early: bool,
    pub tasks: Vec<Task>,
}

/// What a run showed.
#[derive(Debug, Default)]
pub struct Seen {
    pub slots: u64,
    /// Subtasks that ended after their windows.
    pub late: u64,
    /// The least and the greatest lag times the period, and the period, of any task after any slot.
    pub lags_fit: bool,
}

impl System {
    fn set(&self) -> TaskSet {
        let all = Affinity::new(CpuSet::first(self.cpus)).unwrap();
        let task = |(index, task): (usize, &Task)| {
            let [cost, period] = [task.e, task.p].map(|slots| Span::from_ns(slots * QUANTUM));
            let name = format!("T{index}");
            let mut task = shiftwork_model::Task::periodic(&name, cost, period, all);
            // Late enough that windows are cut from periods whether or not quanta end late.
            task.deadline = task.period + Span::from_ns(QUANTUM);
            task
        };
        let tasks = self.tasks.iter().enumerate().map(task).collect();
        let mut set = TaskSet::new("", self.cpus, tasks);
        set.scheduler.quantum = Some(Span::from_ns(QUANTUM));
        set.scheduler.early_release = self.early;
        set
    }

    /// Runs the system under this policy until all jobs are done, and compares every slot with the
    /// definition.
    pub fn compare(&self, policy: &str, at: &str) -> Seen {
        let set = self.set();
        let mut run = Run {
            system: self,
            policy: find(policy).unwrap().build(&set).unwrap(),
            out: Switches::new(),
            counts: vec![(0, 0); self.tasks.len()],
            left: vec![0; self.tasks.len()],
            running: vec![None; self.cpus],
            priorities: set.priorities(),
        };
        let phases = run.policy.quanta().unwrap().phases;
        let mut oracle = Oracle::new(self.tasks.clone(), self.cpus, self.early);
        let mut seen = Seen {
            lags_fit: true,
            ..Seen::default()
        };
        let mut allocated = vec![0_i128; self.tasks.len()];
        for slot in 0..2_000 {
            if oracle.is_done() {
                seen.slots = slot;
                break;
            }
            let wanted = oracle.slot(slot);
            let began = run.slot(slot, &phases);
            let tasks: BTreeSet<usize> = wanted.iter().map(|subtask| subtask.task).collect();
            assert_eq!(began, tasks, "{policy}, slot {slot}, {at}: {self:?}");
            let is_late = |subtask: &&Subtask| i128::from(slot) + 1 > subtask.deadline();
            seen.late += wanted.iter().filter(is_late).count() as u64;
            for task in tasks {
                allocated[task] += 1;
            }
            seen.lags_fit &= self.lags_fit(slot + 1, &allocated);
        }
        assert!(seen.slots > 0, "{policy}, {at} never ends: {self:?}");
        seen
    }

    /// Whether every task has had its share of all slots, rounded up or down, if its jobs follow each other
    /// from slot 0 on and need what they declare.
    fn lags_fit(&self, slots: u64, allocated: &[i128]) -> bool {
        self.tasks.iter().zip(allocated).all(|(task, &had)| {
            let (e, p) = (i128::from(task.e), i128::from(task.p));
            let most = e * task.jobs.len() as i128;
            let lag = (e * i128::from(slots)).min(most * p) - had * p;
            -p < lag && lag < p
        })
    }
}

/// A run in progress.
struct Run<'a> {
    system: &'a System,
    policy: Box<dyn Policy>,
    out: Switches,
    /// By task: the number of released jobs, and of completed jobs.
    counts: Vec<(usize, usize)>,
    /// What is left of the present job, in quanta.
    left: Vec<u64>,
    running: Vec<Option<TaskId>>,
    priorities: Vec<Priority>,
}

impl Run<'_> {
    fn apply(&mut self, event: Event<'_>) {
        self.out.clear();
        self.policy.on_event(event, &mut self.out);
        self.follow();
    }

    fn follow(&mut self) {
        for switch in &self.out {
            assert_eq!(self.running[switch.cpu.index()], switch.from);
            self.running[switch.cpu.index()] = switch.to;
        }
    }

    fn wakes(&mut self, index: usize, now: u64) -> Event<'static> {
        let task = &self.system.tasks[index];
        let job = task.jobs[self.counts[index].1];
        self.left[index] = job.runs;
        Event::Wake(self.job(index, job.seen, now))
    }

    fn job(&self, index: usize, seen: u64, now: u64) -> PolicyJob {
        let task = &self.system.tasks[index];
        PolicyJob {
            task: TaskId::from_index(index),
            ready: Instant::from_ns(now),
            deadline: Instant::from_ns((seen + task.p + 1) * QUANTUM),
            priority: self.priorities[index],
        }
    }

    /// Everything from the first boundary of the slot to before that of the next; the tasks whose quanta
    /// began, each of them once.
    fn slot(&mut self, slot: u64, phases: &[Span]) -> BTreeSet<usize> {
        let mut instants: Vec<u64> = phases.iter().map(|phase| phase.as_ns()).collect();
        instants.sort_unstable();
        instants.dedup();
        let mut began = BTreeSet::new();
        for phase in instants {
            let now = slot * QUANTUM + phase;
            let due = |cpu: &usize| phases[*cpu].as_ns() == phase;
            let cpus: Vec<usize> = (0..self.system.cpus).filter(due).collect();
            let ready: Vec<usize> = cpus.iter().filter_map(|&cpu| self.end(cpu)).collect();
            for &cpu in &cpus {
                let cpu = CpuId::from_index(cpu);
                self.apply(Event::Tick { cpu, quantum: slot });
            }
            if phase == 0 {
                self.release(slot, now);
            }
            for index in ready {
                let (released, done) = self.counts[index];
                if released > done {
                    let wake = self.wakes(index, now);
                    self.apply(wake);
                }
            }
            self.out.clear();
            self.policy.end_instant(&mut self.out);
            self.follow();
            for cpu in cpus {
                if let Some(task) = self.running[cpu] {
                    let first = began.insert(task.index());
                    assert!(first, "{task:?} has two quanta in slot {slot}");
                    self.left[task.index()] -= 1;
                }
                let here = self.policy.assigned(CpuId::from_index(cpu));
                assert_eq!(here, self.running[cpu]);
            }
            let mut on: Vec<TaskId> = self.running.iter().copied().flatten().collect();
            on.sort_unstable();
            on.dedup();
            let all = self.running.iter().flatten().count();
            assert_eq!(on.len(), all, "a task runs twice in slot {slot}");
        }
        began
    }

    /// The quantum of the CPU is over; the task whose job is done then.
    fn end(&mut self, cpu: usize) -> Option<usize> {
        let task = self.running[cpu]?;
        if self.left[task.index()] > 0 {
            return None;
        }
        self.counts[task.index()].1 += 1;
        self.apply(Event::Complete(task));
        Some(task.index())
    }

    fn release(&mut self, slot: u64, now: u64) {
        for index in 0..self.system.tasks.len() {
            let (released, done) = self.counts[index];
            let jobs = &self.system.tasks[index].jobs;
            if jobs.get(released).is_none_or(|job| job.seen != slot) {
                continue;
            }
            self.counts[index].0 += 1;
            let runs = self.running.contains(&Some(TaskId::from_index(index)));
            if released > done || runs {
                let job = self.job(index, slot, now);
                self.apply(Event::Released(job));
            } else {
                let wake = self.wakes(index, now);
                self.apply(wake);
            }
        }
    }
}
