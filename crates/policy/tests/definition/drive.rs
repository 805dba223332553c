//! A policy beside a plain model that gets the same events, compared after every event.

use shiftwork_model::{
    Affinity, CpuId, CpuSet, Instant, Job, Order, Priority, Span, Task, TaskId, TaskSet,
};
use shiftwork_policy::{Event, Policy, Switches};

use crate::oracle::{self, Ready};

/// What the policy under test promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// The greedy set, with the fewest shifts.
    StrongFewestShifts,
    /// The greedy set.
    Strong,
    /// The same, and Algorithms 1 and 2 of Bonifaci et al. agree; with the fewest shifts.
    LaminarFewestShifts,
    /// The same, whatever the shifts.
    Laminar,
    /// The weak invariant.
    Weak,
    /// A started job keeps its CPU; the free CPUs run the most urgent waiting jobs.
    NonPreemptive,
}

/// One step, in plain numbers so that a failure can be read and replayed.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Wakes the task with this deadline, or blocks it if it is ready.
    Toggle(usize, u64),
    SetPriority(usize, u32),
    SetDeadline(usize, u64),
    SetAffinity(usize, CpuSet),
    /// Takes the CPU away, or gives it back.
    ToggleCpu(usize),
    Leave(usize),
    Enter(usize, CpuSet),
}

#[derive(Clone, Debug)]
struct Known {
    affinity: CpuSet,
    present: bool,
    ready: Option<Job>,
    priority: Priority,
}

/// The policy and the model.
pub struct Driver {
    name: &'static str,
    policy: Box<dyn Policy>,
    order: Order,
    promise: Promise,
    tasks: Vec<Known>,
    online: CpuSet,
    /// What the switches so far say that each CPU runs.
    machine: Vec<Option<TaskId>>,
    now: u64,
    out: Switches,
    pub steps: Vec<Step>,
    /// Shifts so far.
    pub shifts: usize,
}

pub fn task_set(cpus: usize, masks: &[CpuSet]) -> TaskSet {
    let task = |(index, mask): (usize, &CpuSet)| {
        let affinity = Affinity::new(*mask).unwrap();
        let mut task = Task::periodic(
            &format!("t{index}"),
            Span::from_ms(1),
            Span::from_ms(10),
            affinity,
        );
        task.priority = Priority::new(index as u32 + 1);
        task
    };
    TaskSet::new("test", cpus, masks.iter().enumerate().map(task).collect())
}

impl Driver {
    pub fn new(name: &'static str, promise: Promise, cpus: usize, masks: &[CpuSet]) -> Self {
        let set = task_set(cpus, masks);
        let entry = crate::find(name);
        let known = |(task, priority): (&Task, Priority)| Known {
            affinity: *task.affinity.cpus(),
            present: true,
            ready: None,
            priority,
        };
        Self {
            name,
            policy: entry.build(&set).unwrap(),
            order: entry.traits.order,
            promise,
            tasks: set.tasks.iter().zip(set.priorities()).map(known).collect(),
            online: CpuSet::first(cpus),
            machine: vec![None; cpus],
            now: 0,
            out: Switches::new(),
            steps: Vec::new(),
            shifts: 0,
        }
    }

    /// Applies a step to policy and model and compares. Returns whether the policy accepted it.
    pub fn step(&mut self, step: Step) -> bool {
        self.take(step, true)
    }

    /// Applies a step and compares only what switches the policy says with what it says that it runs: for steps that
    /// have been compared in another sequence that began as this one.
    pub fn repeat(&mut self, step: Step) -> bool {
        self.take(step, false)
    }

    fn take(&mut self, step: Step, compares: bool) -> bool {
        self.steps.push(step);
        self.now += 1;
        let before: Vec<Option<usize>> = self
            .machine
            .iter()
            .map(|task| task.map(TaskId::index))
            .collect();
        self.out.clear();
        if !self.apply(step) {
            self.steps.pop();
            return false;
        }
        self.follow_switches();
        // Each step is an instant.
        self.out.clear();
        self.policy.end_instant(&mut self.out);
        self.follow_switches();
        if compares {
            self.compare(&before);
        }
        true
    }

    fn apply(&mut self, step: Step) -> bool {
        let task_id = TaskId::from_index;
        match step {
            Step::Toggle(task, deadline) if self.tasks[task].present => self.toggle(task, deadline),
            Step::Toggle(..) => {}
            Step::SetPriority(task, number) => {
                let priority = Priority::new(number).unwrap();
                self.tasks[task].priority = priority;
                if let Some(job) = &mut self.tasks[task].ready {
                    job.priority = priority;
                }
                self.policy
                    .on_event(Event::SetPriority(task_id(task), priority), &mut self.out);
            }
            Step::SetDeadline(task, deadline) => {
                let deadline = Instant::from_ns(deadline);
                if let Some(job) = &mut self.tasks[task].ready {
                    job.deadline = deadline;
                }
                self.policy
                    .on_event(Event::SetDeadline(task_id(task), deadline), &mut self.out);
            }
            Step::SetAffinity(task, cpus) => {
                let affinity = Affinity::new(cpus).unwrap();
                let event = Event::SetAffinity(task_id(task), &affinity);
                if !self.tasks[task].present || self.policy.accepts(&event).is_err() {
                    return false;
                }
                self.tasks[task].affinity = cpus;
                self.policy.on_event(event, &mut self.out);
            }
            Step::ToggleCpu(index) => {
                let cpu = CpuId::from_index(index);
                if self.online.contains(cpu) {
                    self.online.remove(cpu);
                    self.policy.on_event(Event::CpuOffline(cpu), &mut self.out);
                } else {
                    self.online.insert(cpu);
                    self.policy.on_event(Event::CpuOnline(cpu), &mut self.out);
                }
            }
            Step::Leave(task) => {
                self.tasks[task].present = false;
                self.tasks[task].ready = None;
                self.policy
                    .on_event(Event::Leave(task_id(task)), &mut self.out);
            }
            Step::Enter(task, cpus) => {
                let mut entering = task_set(self.machine.len(), &[cpus]).tasks.remove(0);
                entering.name = format!("t{task}");
                let event = Event::Enter(task_id(task), &entering);
                if self.tasks[task].present || self.policy.accepts(&event).is_err() {
                    return false;
                }
                self.tasks[task].present = true;
                self.tasks[task].affinity = cpus;
                self.policy.on_event(event, &mut self.out);
            }
        }
        true
    }

    fn toggle(&mut self, task: usize, deadline: u64) {
        let id = TaskId::from_index(task);
        if self.tasks[task].ready.take().is_some() {
            let ends = [
                Event::Block(id),
                Event::Complete(id),
                Event::BudgetSpent(id),
            ];
            self.policy
                .on_event(ends[self.now as usize % 3], &mut self.out);
            return;
        }
        let job = Job {
            task: id,
            ready: Instant::from_ns(self.now),
            deadline: Instant::from_ns(deadline),
            priority: self.tasks[task].priority,
        };
        self.tasks[task].ready = Some(job);
        self.policy.on_event(Event::Wake(job), &mut self.out);
    }

    /// A machine follows the switches and nothing else.
    fn follow_switches(&mut self) {
        let mut seen = CpuSet::EMPTY;
        for switch in &self.out {
            assert!(
                !seen.contains(switch.cpu),
                "two switches of one CPU: {}",
                self.describe()
            );
            seen.insert(switch.cpu);
            let runs = &mut self.machine[switch.cpu.index()];
            assert_eq!(*runs, switch.from, "a switch from what does not run: {}", {
                let steps = &self.steps;
                format!("{} {steps:?}", self.name)
            });
            assert_ne!(switch.from, switch.to, "a switch that changes nothing");
            *runs = switch.to;
        }
        for (cpu, runs) in self.machine.iter().enumerate() {
            let assigned = self.policy.assigned(CpuId::from_index(cpu));
            assert_eq!(
                *runs,
                assigned,
                "switches must reproduce CPU {cpu}: {}",
                self.describe()
            );
        }
    }

    fn ready_jobs(&self) -> Vec<Ready> {
        let mut jobs: Vec<(usize, Job)> = self
            .tasks
            .iter()
            .enumerate()
            .filter_map(|(task, known)| Some((task, known.ready?)))
            .collect();
        jobs.sort_by_key(|(task, job)| {
            (
                self.order.rank(job.deadline, job.priority),
                job.ready,
                *task,
            )
        });
        let ready = |(rank, (task, _)): (usize, &(usize, Job))| Ready {
            task: *task,
            rank: rank as u64,
            cpus: self.tasks[*task].affinity & self.online,
        };
        jobs.iter().enumerate().map(ready).collect()
    }

    fn compare(&mut self, before: &[Option<usize>]) {
        let ready = self.ready_jobs();
        let placed: Vec<Option<usize>> = self
            .machine
            .iter()
            .map(|task| task.map(TaskId::index))
            .collect();
        for (cpu, task) in placed.iter().enumerate() {
            let Some(task) = *task else { continue };
            let job = ready.iter().find(|job| job.task == task);
            let allowed = job.is_some_and(|job| job.cpus.contains(CpuId::from_index(cpu)));
            assert!(
                allowed,
                "CPU {cpu} must not run task {task}: {}",
                self.describe()
            );
        }
        let mut set: Vec<usize> = placed.iter().flatten().copied().collect();
        set.sort_unstable();
        assert!(
            set.windows(2).all(|pair| pair[0] != pair[1]),
            "a job on two CPUs"
        );
        match self.promise {
            Promise::Weak => {
                let holds = oracle::keeps_weak_invariant(&ready, &placed);
                assert!(holds, "weak invariant: {}", self.describe());
            }
            Promise::NonPreemptive => {
                let online = |cpu| self.online.contains(CpuId::from_index(cpu));
                let (kept, wanted) = oracle::non_preemptive_set(&ready, before, online);
                for &(cpu, task) in &kept {
                    let runs = placed[cpu];
                    assert_eq!(
                        runs,
                        Some(task),
                        "preempted on CPU {cpu}: {}",
                        self.describe()
                    );
                }
                assert_eq!(set, wanted, "non-preemptive set: {}", self.describe());
            }
            _ => {
                assert_eq!(
                    set,
                    oracle::greedy_set(&ready),
                    "greedy set: {}",
                    self.describe()
                );
            }
        }
        if matches!(
            self.promise,
            Promise::Laminar | Promise::LaminarFewestShifts
        ) {
            let admitted = oracle::algorithm_1(
                &ready
                    .iter()
                    .filter(|r| !r.cpus.is_empty())
                    .cloned()
                    .collect::<Vec<_>>(),
            );
            assert_eq!(set, admitted, "Algorithm 1: {}", self.describe());
            let fits = oracle::algorithm_2_succeeds(&ready, &admitted);
            assert!(fits, "Algorithm 2: {}", self.describe());
        }
        self.compare_shifts(before, &placed, &ready, &set);
    }

    fn compare_shifts(
        &mut self,
        before: &[Option<usize>],
        placed: &[Option<usize>],
        ready: &[Ready],
        set: &[usize],
    ) {
        let home = |task: usize| before.iter().position(|&runner| runner == Some(task));
        let shifts = (0..placed.len())
            .filter(|&cpu| placed[cpu].is_some_and(|task| home(task).is_some_and(|h| h != cpu)))
            .count();
        self.shifts += shifts;
        let judged = matches!(
            self.promise,
            Promise::StrongFewestShifts | Promise::LaminarFewestShifts
        );
        if judged && placed.len() <= 10 && before != placed {
            let fewest = oracle::fewest_shifts(before, ready, set);
            assert_eq!(shifts, fewest, "shifts: {}", self.describe());
        }
    }

    /// Everything that it takes to replay.
    fn describe(&self) -> String {
        let masks: Vec<String> = self
            .tasks
            .iter()
            .map(|task| task.affinity.to_string())
            .collect();
        format!(
            "{} on {} CPUs, affinities now {masks:?}, runs {:?}, after step {}: {:?}",
            self.name,
            self.machine.len(),
            self.machine,
            self.steps.len(),
            self.steps
        )
    }
}
