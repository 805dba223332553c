//! Policies that decide at quantum boundaries, against their definition, executed directly.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use shiftwork_model::{Affinity, Invariant, Task, TaskSet};
use shiftwork_model::{CpuId, CpuSet, Instant, Job, Priority, RandomStream, Span, TaskId};
use shiftwork_policy::registry::{self};
use shiftwork_policy::{Event, Policy, Switches};

const NAMES: [&str; 4] = ["CQm", "S-CQm", "CQ1", "S-CQ1"];

/// The definition; its only state is the ready jobs and the task on each CPU.
struct Definition {
    ready: Vec<Job>,
    last: Vec<Option<usize>>,
    runs: Vec<Option<usize>>,
    online: Vec<bool>,
    served: Vec<bool>,
}

impl Definition {
    /// The most urgent ready jobs, as many as there are CPUs; the most urgent first.
    fn selected(&self) -> Vec<usize> {
        let mut jobs = self.ready.clone();
        jobs.sort_by_key(|job| (job.deadline, job.ready, job.task));
        let cpus = (0..self.runs.len()).filter(|&cpu| self.runs_jobs(cpu));
        jobs.truncate(cpus.count());
        jobs.iter().map(|job| job.task.index()).collect()
    }

    fn runs_jobs(&self, cpu: usize) -> bool {
        self.online[cpu] && self.served[cpu]
    }

    fn stop(&mut self, task: usize) {
        for runs in &mut self.runs {
            *runs = runs.filter(|&other| other != task);
        }
    }

    fn decide(&mut self, due: &[usize]) {
        let selected = self.selected();
        let due: Vec<usize> = (0..self.runs.len())
            .filter(|cpu| due.contains(cpu) && self.runs_jobs(*cpu))
            .collect();
        for &cpu in &due {
            self.runs[cpu] = self.runs[cpu].filter(|task| selected.contains(task));
        }
        for task in selected {
            if self.runs.contains(&Some(task)) {
                continue;
            }
            let free = |cpu: &&usize| self.runs[**cpu].is_none();
            let last = due
                .iter()
                .filter(free)
                .find(|&&cpu| self.last[task] == Some(cpu));
            if let Some(&cpu) = last.or(due.iter().find(free)) {
                self.runs[cpu] = Some(task);
                self.last[task] = Some(cpu);
            }
        }
    }
}

fn task_set(cpus: usize, tasks: usize) -> TaskSet {
    let all = Affinity::new(CpuSet::first(cpus)).unwrap();
    let task = |index| {
        Task::periodic(
            &format!("t{index}"),
            Span::from_us(1),
            Span::from_ms(1),
            all,
        )
    };
    TaskSet::new("test", cpus, (0..tasks).map(task).collect())
}

/// A policy, its definition, and the events given to them.
struct Drive {
    policy: Box<dyn Policy>,
    definition: Definition,
    /// Follows the switches.
    machine: Vec<Option<usize>>,
    out: Switches,
    phases: Vec<Span>,
    story: String,
}

impl Drive {
    fn new(name: &str, cpus: usize, tasks: usize) -> Self {
        let entry = registry::find(name).unwrap();
        let policy = entry.build(&task_set(cpus, tasks)).unwrap();
        let dedicated = entry.traits.dedicated_cpu().map(CpuId::index);
        Self {
            phases: policy.quanta().unwrap().phases,
            policy,
            definition: Definition {
                ready: Vec::new(),
                last: vec![None; tasks],
                runs: vec![None; cpus],
                online: vec![true; cpus],
                served: (0..cpus).map(|cpu| Some(cpu) != dedicated).collect(),
            },
            machine: vec![None; cpus],
            out: Switches::with_capacity(cpus),
            story: format!("{name} on {cpus} CPUs:"),
        }
    }

    fn apply(&mut self, event: Event<'_>) {
        self.story += &format!(" {event:?}");
        self.out.clear();
        self.policy.on_event(event, &mut self.out);
        self.follow();
    }

    fn follow(&mut self) {
        for switch in &self.out {
            let on = &mut self.machine[switch.cpu.index()];
            assert_eq!(switch.from.map(TaskId::index), *on, "{}", self.story);
            assert_ne!(switch.from, switch.to, "{}", self.story);
            *on = switch.to.map(TaskId::index);
        }
    }

    fn is_ready(&self, task: usize) -> bool {
        self.definition
            .ready
            .iter()
            .any(|job| job.task.index() == task)
    }

    fn wake(&mut self, task: usize, ready: u64, deadline: u64) {
        let job = Job {
            task: TaskId::from_index(task),
            ready: Instant::from_ns(ready),
            deadline: Instant::from_ns(deadline),
            priority: Priority::LEAST_URGENT,
        };
        self.definition.ready.push(job);
        self.apply(Event::Wake(job));
    }

    fn stop(&mut self, event: Event<'_>, task: usize) {
        self.definition.ready.retain(|job| job.task.index() != task);
        self.definition.stop(task);
        self.apply(event);
    }

    fn rerank(&mut self, task: usize, deadline: u64) {
        let deadline = Instant::from_ns(deadline);
        let jobs = &mut self.definition.ready;
        let job = jobs.iter_mut().find(|job| job.task.index() == task);
        job.unwrap().deadline = deadline;
        self.apply(Event::SetDeadline(TaskId::from_index(task), deadline));
    }

    fn set_online(&mut self, cpu: usize, online: bool) {
        self.definition.online[cpu] = online;
        let id = CpuId::from_index(cpu);
        if online {
            self.apply(Event::CpuOnline(id));
        } else {
            self.definition.runs[cpu] = None;
            self.apply(Event::CpuOffline(id));
        }
    }

    /// The instant is over; quanta have begun on these CPUs.
    fn end(&mut self, due: &[usize]) {
        for &cpu in due {
            let cpu = CpuId::from_index(cpu);
            self.apply(Event::Tick { cpu, quantum: 0 });
        }
        self.out.clear();
        self.policy.end_instant(&mut self.out);
        self.follow();
        self.definition.decide(due);
        let assigned = |cpu| self.policy.assigned(CpuId::from_index(cpu));
        for cpu in 0..self.machine.len() {
            let found = assigned(cpu).map(TaskId::index);
            assert_eq!(
                found, self.definition.runs[cpu],
                "CPU {cpu}, {}",
                self.story
            );
            assert_eq!(found, self.machine[cpu], "the switches of {}", self.story);
        }
    }

    /// A random instant: some of everything.
    fn instant(&mut self, now: u64, random: &mut RandomStream) {
        let (tasks, cpus) = (self.definition.last.len(), self.machine.len());
        for task in 0..tasks {
            let id = TaskId::from_index(task);
            match (self.is_ready(task), random.below(12)) {
                (true, 0) => self.stop(Event::Complete(id), task),
                (true, 1) => self.stop(Event::Block(id), task),
                (true, 2) => self.stop(Event::BudgetSpent(id), task),
                (true, 3) => self.rerank(task, now + random.below(20)),
                _ => {}
            }
        }
        if random.below(9) == 0 {
            let cpu = random.below(cpus as u64) as usize;
            self.set_online(cpu, !self.definition.online[cpu]);
        }
        for task in 0..tasks {
            if !self.is_ready(task) && random.below(5) == 0 {
                self.wake(task, now, now + random.below(20));
            }
        }
        // Between boundaries no CPU is due, at some all are.
        let due: Vec<usize> = match random.below(3) {
            0 => Vec::new(),
            1 => (0..cpus).collect(),
            _ => (0..cpus).filter(|_| random.below(3) == 0).collect(),
        };
        self.end(&due);
    }
}

#[test]
fn random_instants_follow_the_definition() {
    for name in NAMES {
        for seed in 1..=400 {
            let mut random = RandomStream::new(seed, 0, 0);
            let cpus = 2 + random.below(5) as usize;
            let mut drive = Drive::new(name, cpus, 2 + random.below(12) as usize);
            for step in 0..60 {
                drive.story += &format!("\n{step} of seed {seed}:");
                drive.instant(step, &mut random);
            }
        }
    }
}

/// Every sequence of four instants on two CPUs that run jobs, with three tasks whose deadlines may come in
/// either order: at each one task wakes or completes, or nothing happens, and each CPU is due or not.
#[test]
fn every_small_sequence_follows_the_definition() {
    const CHOICES: usize = 7 * 4;
    // How quanta lie to each other makes no difference here.
    for name in ["CQm", "CQ1"] {
        let dedicated = usize::from(name.ends_with('1'));
        for sequence in 0..CHOICES.pow(4) {
            let mut drive = Drive::new(name, 2 + dedicated, 3);
            for step in 0..4 {
                let choice = sequence / CHOICES.pow(step) % CHOICES;
                let (what, due) = (choice / 4, choice % 4);
                let task = what / 2;
                match (what, task < 3 && drive.is_ready(task)) {
                    (6, _) => {}
                    (_, true) => drive.stop(Event::Complete(TaskId::from_index(task)), task),
                    (_, false) => {
                        let deadline = 10 + 3 * (task as u64) + 7 * (what as u64 % 2);
                        drive.wake(task, u64::from(step), deadline);
                    }
                }
                let due: Vec<usize> = (0..2).filter(|cpu| due >> cpu & 1 == 1).collect();
                let due: Vec<usize> = due.iter().map(|cpu| cpu + dedicated).collect();
                drive.end(&due);
            }
        }
    }
}

#[test]
fn staggered_quanta_are_spread_over_the_cpus_that_run_jobs() {
    let phases = |name, cpus| {
        let phases = Drive::new(name, cpus, 1).phases;
        phases.iter().map(|phase| phase.as_ns()).collect::<Vec<_>>()
    };
    assert_eq!(phases("CQm", 3), [0, 0, 0]);
    assert_eq!(phases("S-CQm", 3), [0, 333_333, 666_666]);
    assert_eq!(phases("CQ1", 3), [0, 0, 0]);
    assert_eq!(phases("S-CQ1", 3), [0, 0, 500_000]);
}

#[test]
fn a_cpu_for_interrupts_leaves_one_for_tasks_or_the_set_is_refused() {
    for entry in registry::POLICIES {
        let built = entry.build(&task_set(1, 1));
        if entry.traits.dedicated_cpu().is_some() {
            let refused = built.err().unwrap().to_string();
            let wanted = format!(
                "{}: CPU 0 is dedicated to interrupts and runs no jobs, and the platform has no other; it \
                 needs two CPUs, `CEm` takes any number",
                entry.name
            );
            assert_eq!(refused, wanted);
            let two = entry.build(&task_set(2, 1)).unwrap();
            let packed = two.packing().unwrap();
            assert_eq!(packed, [Affinity::pinned(CpuId::from_index(1))]);
        } else {
            assert!(built.is_ok(), "{}", entry.name);
        }
    }
}

#[test]
fn a_policy_in_quanta_declares_its_quanta() {
    for entry in registry::POLICIES {
        let policy = entry.build(&task_set(2, 1)).unwrap();
        let in_quanta = entry.traits.invariant == Invariant::Quanta;
        assert_eq!(policy.quanta().is_some(), in_quanta, "{}", entry.name);
    }
}
