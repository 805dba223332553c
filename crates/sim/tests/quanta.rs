//! The nine implementations of G-EDF without overheads: event-driven ones equal G-EDF, quantum-driven ones follow
//! their definition, executed directly, one time unit after the other.
#![allow(clippy::unwrap_used, reason = "to test")]

mod common;

use common::{NS, finishes, run, set};
use shiftwork_model::{Alignment, CpuId, Preemption, RandomStream, Record, RecordKind, TaskSet};
use shiftwork_policy::registry;

/// The first incomplete job of a task.
#[derive(Clone, Copy, Debug)]
struct Ready {
    task: usize,
    deadline: u64,
    since: u64,
    left: u64,
}

struct Reference<'a> {
    set: &'a TaskSet,
    staggered: bool,
    /// The first CPU that runs jobs.
    first: usize,
    ready: Vec<Ready>,
    /// Numbers of released and of completed jobs of each task.
    counts: Vec<(u64, u64)>,
    runs: Vec<Option<usize>>,
    last: Vec<Option<usize>>,
    finishes: Vec<Vec<u64>>,
}

impl<'a> Reference<'a> {
    fn new(set: &'a TaskSet, policy: &str) -> Self {
        let tasks = set.tasks.len();
        let traits = registry::find(policy).unwrap().traits;
        Self {
            set,
            staggered: traits.preemption == Preemption::AtQuanta(Alignment::Staggered),
            first: usize::from(traits.dedicated_cpu().is_some()),
            ready: Vec::new(),
            counts: vec![(0, 0); tasks],
            runs: vec![None; set.platform.cpus],
            last: vec![None; tasks],
            finishes: vec![Vec::new(); tasks],
        }
    }

    fn run(mut self, horizon: u64) -> Vec<Vec<u64>> {
        for now in 0..=horizon {
            self.finish(now);
            if now < horizon {
                self.release(now);
                self.decide(now);
                self.run_unit();
            }
        }
        self.finishes
    }

    fn finish(&mut self, now: u64) {
        let (done, left) = self.ready.iter().partition(|job| job.left == 0);
        self.ready = left;
        let done: Vec<Ready> = done;
        for job in done {
            self.finishes[job.task].push(now);
            self.counts[job.task].1 += 1;
            self.runs
                .iter_mut()
                .for_each(|on| *on = on.filter(|&task| task != job.task));
            if self.counts[job.task].0 > self.counts[job.task].1 {
                self.begin(job.task, now);
            }
        }
    }

    /// The task's next job becomes ready.
    fn begin(&mut self, task: usize, now: u64) {
        let of = &self.set.tasks[task];
        let release = of.offset.as_ns() + self.counts[task].1 * of.period.as_ns();
        self.ready.push(Ready {
            task,
            deadline: release + of.deadline.as_ns(),
            since: now,
            left: of.cost.as_ns(),
        });
    }

    fn release(&mut self, now: u64) {
        for task in 0..self.counts.len() {
            let of = &self.set.tasks[task];
            let since = now.checked_sub(of.offset.as_ns());
            if since.is_some_and(|since| since % of.period.as_ns() == 0) {
                self.counts[task].0 += 1;
                if self.counts[task].0 == self.counts[task].1 + 1 {
                    self.begin(task, now);
                }
            }
        }
    }

    fn is_due(&self, cpu: usize, now: u64) -> bool {
        let quantum = self.set.scheduler.quantum.unwrap().as_ns();
        let count = (self.runs.len() - self.first) as u64;
        let rank = (cpu - self.first) as u64;
        let phase = if self.staggered {
            rank * quantum / count
        } else {
            0
        };
        now % quantum == phase
    }

    fn decide(&mut self, now: u64) {
        self.ready
            .sort_by_key(|job| (job.deadline, job.since, job.task));
        let count = self.runs.len() - self.first;
        let selected: Vec<usize> = self.ready.iter().take(count).map(|job| job.task).collect();
        let cpus = self.first..self.runs.len();
        let due: Vec<usize> = cpus.filter(|&cpu| self.is_due(cpu, now)).collect();
        for &cpu in &due {
            self.runs[cpu] = self.runs[cpu].filter(|task| selected.contains(task));
        }
        for task in selected {
            if self.runs.contains(&Some(task)) {
                continue;
            }
            let free: Vec<usize> = due
                .iter()
                .copied()
                .filter(|&cpu| self.runs[cpu].is_none())
                .collect();
            let last = self.last[task].filter(|cpu| free.contains(cpu));
            if let Some(cpu) = last.or(free.first().copied()) {
                self.runs[cpu] = Some(task);
                self.last[task] = Some(cpu);
            }
        }
    }

    fn run_unit(&mut self) {
        for task in self.runs.iter().flatten() {
            let job = self.ready.iter_mut().find(|job| job.task == *task);
            job.unwrap().left -= 1;
        }
    }
}

const IN_QUANTA: [&str; 4] = ["CQm", "S-CQm", "CQ1", "S-CQ1"];

fn compare(set: &TaskSet, policy: &str, horizon: u64, case: &str) {
    let records = run(set, policy, horizon);
    let expected = Reference::new(set, policy).run(horizon);
    for (task, expected) in expected.iter().enumerate() {
        let found = finishes(&records, task);
        assert_eq!(&found, expected, "{policy}, T{task}, {case}");
    }
}

#[test]
fn all_small_sets_follow_the_definition() {
    let shapes: Vec<(u64, u64)> = (3..=5)
        .flat_map(|period| (1..=3).map(move |cost| (cost, period)))
        .collect();
    for policy in IN_QUANTA {
        let cpus = 2 + usize::from(policy.ends_with('1'));
        for (index, &a) in shapes.iter().enumerate() {
            for &b in &shapes[index..] {
                for (quantum, &c) in
                    (1..=3).flat_map(|quantum| shapes.iter().map(move |c| (quantum, c)))
                {
                    let mut set = set(cpus, &[a, b, c]);
                    set.scheduler.quantum = Some(NS(quantum));
                    compare(
                        &set,
                        policy,
                        26,
                        &format!("{a:?} {b:?} {c:?}, quantum {quantum}"),
                    );
                }
            }
        }
    }
}

#[test]
fn random_sets_follow_the_definition() {
    let seeds = if std::env::var_os("SHIFTWORK_LONG").is_some() {
        20_000
    } else {
        400
    };
    for policy in IN_QUANTA {
        for seed in 1..=seeds {
            let mut random = RandomStream::new(seed, 3, 0);
            let cpus = 2 + random.below(5) as usize;
            let tasks: Vec<(u64, u64)> = (0..1 + random.below(9))
                .map(|_| {
                    let period = 5 + random.below(30);
                    (1 + random.below(period), period)
                })
                .collect();
            let mut set = set(cpus, &tasks);
            for task in &mut set.tasks {
                task.offset = NS(random.below(20));
                task.deadline = NS(1 + random.below(40));
            }
            set.scheduler.quantum = Some(NS(1 + random.below(12)));
            compare(&set, policy, 300, &format!("seed {seed}"));
        }
    }
}

/// A set that may overload its CPUs, and the same tasks on one more CPU.
fn random_set(seed: u64) -> (TaskSet, TaskSet) {
    let mut random = RandomStream::new(seed, 4, 0);
    let cpus = 1 + random.below(4) as usize;
    let tasks: Vec<(u64, u64)> = (0..1 + random.below(9))
        .map(|_| (1 + random.below(12), 5 + random.below(30)))
        .collect();
    (set(cpus, &tasks), set(cpus + 1, &tasks))
}

/// The records with the numbers of all CPUs increased by one.
fn shifted(records: Vec<Record>) -> Vec<Record> {
    let shift = |mut record: Record| {
        if let RecordKind::Switched { cpu, .. } = &mut record.kind {
            *cpu = CpuId::from_index(cpu.index() + 1);
        }
        record
    };
    records.into_iter().map(shift).collect()
}

#[test]
fn event_driven_implementations_equal_g_edf_on_their_cpus() {
    for seed in 1..=300 {
        let (few, more) = random_set(seed);
        let wanted = run(&few, "g-edf", 400);
        for policy in ["CEm", "HEm", "FEm"] {
            assert_eq!(run(&few, policy, 400), wanted, "{policy}, seed {seed}");
        }
        let wanted = shifted(wanted);
        for policy in ["CE1", "FE1"] {
            assert_eq!(run(&more, policy, 400), wanted, "{policy}, seed {seed}");
        }
    }
}
