//! What feasibility says, against a schedule that is built unit by unit where there is one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;

use shiftwork_analysis::Witness;
use shiftwork_analysis::affinity::{Feasible, Groups, feasibility, flow};
use shiftwork_analysis::{Rate, admission};
use shiftwork_model::{Affinity, CpuId, CpuSet, RandomStream, Share, Span, Task, TaskId, TaskSet};
use shiftwork_policy::registry;

fn task(cost: u64, period: u64, deadline: u64, cpus: CpuSet) -> Task {
    let ns = Span::from_ns;
    let mut task = Task::periodic("T", ns(cost), ns(period), Affinity::new(cpus).unwrap());
    task.deadline = ns(deadline);
    task
}

/// Whether the jobs of one hyperperiod of 12, all tasks starting together, can be scheduled in whole
/// units of time. By trying: in each unit, each way to give the CPUs to jobs; what is left of the
/// jobs is the state.
///
/// Whole units lose nothing. Work flows from a job to each unit of its window, at most one there,
/// and on to a CPU, at most one there: with whole numbers at all edges, a flow in fractions implies
/// one in whole numbers.
fn schedulable_in_units(set: &TaskSet) -> bool {
    let jobs: Vec<(usize, u64, u64, u64)> = set
        .tasks
        .iter()
        .enumerate()
        .flat_map(|(index, task)| {
            let [cost, period, deadline] = [task.cost, task.period, task.deadline].map(Span::as_ns);
            (0..12 / period).map(move |k| (index, k * period, k * period + deadline, cost))
        })
        .collect();
    let left: Vec<u64> = jobs.iter().map(|job| job.3).collect();
    let mut seen = BTreeMap::new();
    search(set, &jobs, 0, left, &mut seen)
}

fn search(
    set: &TaskSet,
    jobs: &[(usize, u64, u64, u64)],
    now: u64,
    left: Vec<u64>,
    seen: &mut BTreeMap<(u64, Vec<u64>), bool>,
) -> bool {
    if jobs
        .iter()
        .zip(&left)
        .any(|(job, &left)| left > 0 && job.2 < now + left)
    {
        return false;
    }
    if left.iter().all(|&left| left == 0) {
        return true;
    }
    if let Some(&known) = seen.get(&(now, left.clone())) {
        return known;
    }
    let answer = choose(set, jobs, now, 0, 0, left.clone(), seen);
    seen.insert((now, left), answer);
    answer
}

/// Gives CPU `cpu` and those after it to jobs that do not run in this unit yet (`taken`, by job).
fn choose(
    set: &TaskSet,
    jobs: &[(usize, u64, u64, u64)],
    now: u64,
    cpu: usize,
    taken: u64,
    left: Vec<u64>,
    seen: &mut BTreeMap<(u64, Vec<u64>), bool>,
) -> bool {
    if cpu == set.platform.cpus {
        return search(set, jobs, now + 1, left, seen);
    }
    for (place, job) in jobs.iter().enumerate() {
        let may = set.tasks[job.0]
            .affinity
            .cpus()
            .contains(CpuId::from_index(cpu));
        if may && job.1 <= now && left[place] > 0 && taken >> place & 1 == 0 {
            let mut left = left.clone();
            left[place] -= 1;
            if choose(set, jobs, now, cpu + 1, taken | 1 << place, left, seen) {
                return true;
            }
        }
    }
    choose(set, jobs, now, cpu + 1, taken, left, seen)
}

fn random_set(seed: u64, shortened: bool) -> TaskSet {
    let mut stream = RandomStream::new(seed, 37, 0);
    let cpus = 2;
    let tasks = (0..2 + stream.below(3)).map(|_| {
        let period = [4, 6, 12][stream.below(3) as usize];
        let cost = 1 + stream.below(period * 3 / 4);
        let deadline = match shortened {
            true => cost + stream.below(period - cost + 1),
            false => period,
        };
        task(
            cost,
            period,
            deadline,
            CpuSet::from_bits(1 + stream.below(3)),
        )
    });
    TaskSet::new("random", cpus, tasks.collect())
}

#[test]
fn a_yes_or_no_is_never_contradicted_by_a_schedule() {
    let mut counts = [0; 3];
    for seed in 0..600 {
        let set = random_set(seed, seed % 2 == 0);
        let found = feasibility(&set);
        let built = schedulable_in_units(&set);
        match found.verdict {
            Feasible::Yes => assert!(built, "seed {seed}: {found:?} {set:?}"),
            Feasible::No => assert!(!built, "seed {seed}: {found:?} {set:?}"),
            Feasible::Unknown => {}
        }
        assert_eq!(found.witness.is_some(), found.verdict == Feasible::No);
        counts[found.verdict as usize] += 1;
    }
    assert!(counts.iter().all(|&count| count > 30), "{counts:?}");
}

/// A schedule of one hyperperiod, all tasks starting together, found unit of work by unit of work:
/// a job without a free place moves another one (augmenting paths). By CPU and unit of time, the
/// job there.
///
/// Whole units lose nothing, as above. What comes of it is checked by itself, so nothing rests on how
/// it was found.
struct Builder<'a> {
    set: &'a TaskSet,
    /// Task, release, deadline.
    jobs: Vec<(usize, u64, u64)>,
    slots: Vec<Vec<Option<usize>>>,
}

impl<'a> Builder<'a> {
    fn new(set: &'a TaskSet, cycle: u64) -> Self {
        let jobs = set.tasks.iter().enumerate().flat_map(|(index, task)| {
            let [period, deadline] = [task.period, task.deadline].map(Span::as_ns);
            (0..cycle / period).map(move |k| (index, k * period, k * period + deadline))
        });
        Self {
            set,
            jobs: jobs.collect(),
            slots: vec![vec![None; cycle as usize]; set.platform.cpus],
        }
    }

    /// Whether every job gets all its work.
    fn build(&mut self) -> bool {
        (0..self.jobs.len()).all(|job| {
            let cost = self.set.tasks[self.jobs[job].0].cost.as_ns();
            (0..cost).all(|_| {
                let mut tried = vec![vec![false; self.slots[0].len()]; self.slots.len()];
                let mut moved = vec![vec![false; self.slots[0].len()]; self.jobs.len()];
                self.place(job, &mut tried, &mut moved)
            })
        })
    }

    /// One more unit for the job, at a time at which it does not run yet, or at one at which it does
    /// if that unit moves to another CPU.
    fn place(&mut self, job: usize, tried: &mut [Vec<bool>], moved: &mut [Vec<bool>]) -> bool {
        let (_, release, deadline) = self.jobs[job];
        for time in release as usize..deadline as usize {
            let runs = self.slots.iter().any(|slots| slots[time] == Some(job));
            if !runs
                && !std::mem::replace(&mut moved[job][time], true)
                && self.at(job, time, tried, moved)
            {
                return true;
            }
        }
        false
    }

    /// A CPU for the job at this time; the job there moves to another CPU or to another time.
    fn at(
        &mut self,
        job: usize,
        time: usize,
        tried: &mut [Vec<bool>],
        moved: &mut [Vec<bool>],
    ) -> bool {
        for cpu in 0..self.slots.len() {
            let may = self.set.tasks[self.jobs[job].0].affinity.cpus();
            let may = may.contains(CpuId::from_index(cpu));
            if !may
                || self.slots[cpu][time] == Some(job)
                || std::mem::replace(&mut tried[cpu][time], true)
            {
                continue;
            }
            let there = self.slots[cpu][time];
            let makes_room = match there {
                None => true,
                Some(other) => {
                    self.at(other, time, tried, moved) || {
                        self.slots[cpu][time] = None;
                        let found = self.place(other, tried, moved);
                        if !found {
                            self.slots[cpu][time] = Some(other);
                        }
                        found
                    }
                }
            };
            if makes_room {
                self.slots[cpu][time] = Some(job);
                return true;
            }
        }
        false
    }

    /// Every job runs for its cost, within its window and its affinity, never on two CPUs at once.
    fn check(&self, context: &str) {
        for (job, &(task, release, deadline)) in self.jobs.iter().enumerate() {
            let task = &self.set.tasks[task];
            let mut work = 0;
            for time in 0..self.slots[0].len() {
                let on = (0..self.slots.len()).filter(|&cpu| self.slots[cpu][time] == Some(job));
                let on: Vec<CpuId> = on.map(CpuId::from_index).collect();
                assert!(on.len() <= 1, "{context}");
                assert!(
                    on.iter().all(|&cpu| task.affinity.cpus().contains(cpu)),
                    "{context}"
                );
                let within = (release..deadline).contains(&(time as u64));
                assert!(on.is_empty() || within, "{context}");
                work += on.len() as u64;
            }
            assert_eq!(work, task.cost.as_ns(), "{context}");
        }
    }
}

/// A "yes" by a schedule, a "no" by tasks that need more than their CPUs have. Whether it is yes.
fn certify(set: &TaskSet, cycle: u64, context: &str) -> bool {
    let found = feasibility(set);
    let context = format!("{context}: {found:?} {set:?}");
    match (&found.verdict, &found.witness) {
        (Feasible::Yes, None) => {
            let mut builder = Builder::new(set, cycle);
            assert!(builder.build(), "no schedule, {context}");
            builder.check(&context);
            true
        }
        (Feasible::No, Some(Witness::Crowd { tasks, cpus, .. })) => {
            // In parts of a CPU, `cycle` to one.
            let needed: u64 = tasks
                .iter()
                .map(|id| {
                    let task = &set.tasks[id.index()];
                    assert!(task.affinity.cpus().is_subset(cpus), "{context}");
                    cycle / task.period.as_ns() * task.cost.as_ns()
                })
                .sum();
            assert!(needed > cycle * cpus.len() as u64, "{context}");
            false
        }
        _ => panic!("implicit deadlines are decided: {context}"),
    }
}

#[test]
fn every_tiny_system_with_implicit_deadlines_is_decided_as_it_is() {
    // All costs and affinities of up to three tasks with periods of 2, 3 and 4 on two CPUs; four at a
    // time, by seed, on three and four CPUs with longer periods.
    let kinds: Vec<(u64, u64, u64)> = [2, 3, 4]
        .into_iter()
        .flat_map(|period| (1..=period).map(move |cost| (cost, period)))
        .flat_map(|(cost, period)| (1..4).map(move |bits| (cost, period, bits)))
        .collect();
    let (mut yes, mut no) = (0, 0);
    for first in 0..kinds.len() {
        for second in first..kinds.len() {
            for third in second..kinds.len() {
                let tasks = [first, second, third].map(|kind| {
                    let (cost, period, bits) = kinds[kind];
                    task(cost, period, period, CpuSet::from_bits(bits))
                });
                let set = TaskSet::new("tiny", 2, tasks.to_vec());
                match certify(&set, 12, "exhaustive") {
                    true => yes += 1,
                    false => no += 1,
                }
            }
        }
    }
    assert!(yes > 300 && no > 300, "{yes} {no}");
}

#[test]
fn random_systems_with_implicit_deadlines_are_decided_as_they_are() {
    let rounds = match std::env::var_os("SHIFTWORK_LONG") {
        None => 400,
        Some(_) => 20_000,
    };
    let (mut yes, mut no) = (0, 0);
    for seed in 0..rounds {
        let mut stream = RandomStream::new(seed, 37, 2);
        let cpus = 2 + stream.below(3) as usize;
        let tasks = (0..cpus as u64 + stream.below(4)).map(|_| {
            let period = [2, 3, 4, 5, 6, 10, 12, 15][stream.below(8) as usize];
            let cost = 1 + stream.below(period);
            task(
                cost,
                period,
                period,
                CpuSet::from_bits(1 + stream.below((1 << cpus) - 1)),
            )
        });
        let mut set = TaskSet::new("random", cpus, tasks.collect());
        // As much as fits, by the test itself: the schedules to build are as tight as can be.
        for place in 0..set.tasks.len() {
            while stream.below(3) > 0 {
                set.tasks[place].cost += Span::from_ns(1);
                let alone = set.tasks[place].cost > set.tasks[place].period;
                if alone || feasibility(&set).verdict == Feasible::No {
                    set.tasks[place].cost -= Span::from_ns(1);
                    break;
                }
            }
        }
        match certify(&set, 60, &format!("seed {seed}")) {
            true => yes += 1,
            false => no += 1,
        }
    }
    assert!(yes * 5 > rounds && no * 5 > rounds, "{yes} {no}");
}

#[test]
fn an_answer_says_what_it_rests_on() {
    let any = CpuSet::first(3);
    let pair = |bits| CpuSet::from_bits(bits);
    let of = |tasks: Vec<Task>| {
        let found = feasibility(&TaskSet::new("", 3, tasks));
        (found.verdict, found.by)
    };
    assert_eq!(of(vec![task(1, 2, 2, any)]), (Feasible::Yes, "laminar"));
    let cross = vec![task(1, 2, 2, pair(0b11)), task(1, 2, 2, pair(0b110))];
    assert_eq!(of(cross.clone()), (Feasible::Yes, "flow"));
    let late: Vec<Task> = cross
        .iter()
        .cloned()
        .map(|mut task| {
            task.deadline = Span::from_ns(1);
            task
        })
        .collect();
    assert_eq!(of(late), (Feasible::Yes, "flow-density"));
    let dense = vec![task(1, 4, 1, pair(1)), task(1, 4, 1, pair(1))];
    assert_eq!(of(dense), (Feasible::Unknown, "laminar-density"));
    assert_eq!(of(vec![task(3, 4, 2, any)]), (Feasible::No, "task"));
    let nowhere = TaskSet::new("", 1, vec![task(1, 4, 4, pair(0b10))]);
    assert!(matches!(
        feasibility(&nowhere).witness,
        Some(Witness::Nowhere { .. })
    ));
}

#[test]
fn the_reserve_does_not_count_for_feasibility() {
    let set = TaskSet::new("", 1, vec![task(1, 1, 1, CpuSet::first(1))]);
    assert_eq!(feasibility(&set).verdict, Feasible::Yes);
    let terms = admission::Terms::new(
        &registry::find("strong-edf").unwrap().traits,
        Share::DEFAULT_RESERVE,
    )
    .unwrap();
    let decision = admission::admit(&set, &[], terms);
    assert_eq!(decision.verdict(), admission::Verdict::Refused);
}

#[test]
fn a_thousand_cpus_and_thousands_of_tasks_are_decided() {
    let whole = Share::from_billionths(Share::WHOLE).unwrap();
    let mut groups = Groups::default();
    let mut stream = RandomStream::new(1, 37, 1);
    // Each CPU is filled to the brim by tasks on chains of overlapping pairs: CPU k and k + 1.
    for cpu in 0..1024usize {
        for part in 0..4 {
            let next = CpuId::from_index((cpu + usize::from(part > 1)) % 1024);
            let cpus = CpuSet::single(CpuId::from_index(cpu)) | CpuSet::single(next);
            let period = 1_000_000 + stream.below(64);
            let rate = Rate::new(Span::from_ns(period), Span::from_ns(4 * period)).unwrap();
            groups.add(TaskId::from_index(4 * cpu + part), cpus, rate);
        }
    }
    assert_eq!(flow::shortage(&groups, whole), None);
    let trace = Rate::new(Span::from_ns(1), Span::from_ns(u64::MAX)).unwrap();
    let place = CpuSet::single(CpuId::from_index(500));
    groups.add(TaskId::from_index(9999), place, trace);
    assert_eq!(
        flow::shortage(&groups, whole).map(|crowd| crowd.cpus.len()),
        Some(1024)
    );
}
