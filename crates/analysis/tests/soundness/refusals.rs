//! What is called unschedulable or infeasible is: every such answer comes with a witness, the witness
//! is right, and where it is small enough to wait for, the miss is seen.

use num_bigint::BigInt;
use num_rational::Ratio;
use shiftwork_analysis::Witness;
use shiftwork_analysis::affinity::Feasible;
use shiftwork_analysis::verdicts::Answer;
use shiftwork_model::{Affinity, CpuId, RandomStream, Span, TaskSet};

use super::judge::{Pattern, responses};
use super::system::{self, DEADLINES, SHAPES, System};
use super::verdicts;
use super::workers::Counts;

/// How many refusals of each kind were looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub alone: usize,
    pub crowds: usize,
    pub late: usize,
    /// Misses that were simulated.
    pub misses: usize,
}

impl Counts for Seen {
    fn add(&mut self, other: Self) {
        self.alone += other.alone;
        self.crowds += other.crowds;
        self.late += other.late;
        self.misses += other.misses;
    }
}

/// Checks every "no" about the system of this seed.
pub fn check(seed: u64, seen: &mut Seen) {
    let mut stream = RandomStream::new(seed, 41, 3);
    let shape = SHAPES[stream.below(SHAPES.len() as u64) as usize];
    let deadlines = DEADLINES[stream.below(3) as usize];
    let system = system::random(shape, deadlines, &mut stream);
    let set = system.task_set();
    let policies = verdicts::policies();
    let found = verdicts::of(&set, &policies);
    let own: Vec<Affinity> = set.tasks.iter().map(|task| task.affinity).collect();
    if found.feasibility.verdict == Feasible::No {
        let witness = found.feasibility.witness.as_ref();
        let witness = witness.unwrap_or_else(|| panic!("seed {seed}: no witness of {system:?}"));
        check_witness(witness, &set, &own, seed, seen);
    }
    for (policy, analysis) in policies.into_iter().zip(&found.policies) {
        if analysis.hard.answer != Answer::Unschedulable {
            continue;
        }
        let bound = verdicts::candidate(&set, policy)
            .bound
            .unwrap_or(own.clone());
        let witness = analysis.hard.witness.as_ref();
        let witness = witness.unwrap_or_else(|| panic!("seed {seed}: no witness of {system:?}"));
        check_witness(witness, &set, &bound, seed, seen);
        if let Some(horizon) = patience(&system) {
            let offsets = offsets(witness, &system, policy);
            let pattern = Pattern::periodic(&system, &offsets, horizon);
            if let Some(responses) = responses(&pattern.applied(&system), policy, horizon) {
                seen.misses += 1;
                let late = responses.iter().zip(&system.members);
                let mut late =
                    late.filter(|(response, one)| **response > one.task.deadline.as_ns());
                assert!(
                    late.next().is_some(),
                    "seed {seed}, {policy}: no task late in {horizon} ns, but {witness:?}: {system:?}"
                );
            }
        }
    }
}

/// With which releases the miss is to be seen: all at once, but for a job without which there may be none, as it
/// has begun just before and is not preempted.
fn offsets(witness: &Witness, system: &System, policy: &str) -> Vec<u64> {
    let members = || system.members.iter().enumerate();
    let blocker = match witness {
        Witness::Blocked { task, .. } => Some(task.index()),
        Witness::Late { task, .. } if policy == "np-g-fp" => {
            let own = system.members[task.index()].priority;
            let rest = members().filter(|(_, one)| one.priority > own);
            let longest = rest.max_by_key(|(_, one)| one.task.cost);
            longest.map(|(place, _)| place)
        }
        _ => None,
    };
    members()
        .map(|(place, _)| u64::from(blocker.is_some_and(|blocker| blocker != place)))
        .collect()
}

/// Time by which a set above the capacity has missed a deadline if tasks start together: each
/// hyperperiod adds at least a nanosecond to the backlog. `None` if that is too long.
fn patience(system: &System) -> Option<u64> {
    let cycle = system.hyperperiod(200)?;
    let deadlines = system.members.iter().map(|one| one.task.deadline.as_ns());
    let longest = deadlines.max().unwrap_or(0);
    let horizon = cycle * (system.cpus as u64 * longest + 2) + longest;
    (horizon <= 6_000).then_some(horizon)
}

fn check_witness(witness: &Witness, set: &TaskSet, bound: &[Affinity], seed: u64, seen: &mut Seen) {
    let context = || format!("seed {seed}: {witness:?} of {set:?}");
    match witness {
        Witness::Alone { task, .. } => {
            let task = &set.tasks[task.index()];
            assert!(task.cost > task.deadline.min(task.period), "{}", context());
            seen.alone += 1;
        }
        Witness::Crowd {
            tasks,
            cpus,
            needed,
            ..
        } => {
            let mut sum = Ratio::from_integer(BigInt::ZERO);
            for id in tasks {
                let task = &set.tasks[id.index()];
                assert!(bound[id.index()].cpus().is_subset(cpus), "{}", context());
                let [cost, period] = [task.cost, task.period].map(Span::as_ns);
                sum += Ratio::new(BigInt::from(cost), BigInt::from(period));
            }
            assert!(
                sum > Ratio::from_integer(cpus.len().into()),
                "{}",
                context()
            );
            assert_eq!(sum, needed.to_fraction(), "{}", context());
            seen.crowds += 1;
        }
        Witness::Interval {
            cpu,
            length,
            demand,
        } => {
            assert!(demand > length, "{}", context());
            let work = due_within(set, bound, *cpu, *length);
            assert_eq!(work, *demand, "{}", context());
            seen.late += 1;
        }
        Witness::Blocked {
            task,
            cpu,
            length,
            demand,
        } => {
            let blocker = &set.tasks[task.index()];
            assert!(blocker.deadline > *length, "{}", context());
            let left = blocker.cost - Span::from_ns(1);
            assert!(*demand + left > *length, "{}", context());
            let work = due_within(set, bound, *cpu, *length);
            assert_eq!(work, *demand, "{}", context());
            seen.late += 1;
        }
        Witness::Late {
            task,
            response,
            deadline,
            ..
        } => {
            assert_eq!(set.tasks[task.index()].deadline, *deadline, "{}", context());
            assert!(response > deadline, "{}", context());
            seen.late += 1;
        }
        other => panic!("no reason to refuse such a set: {other:?}: {}", context()),
    }
}

/// All that is released and due within an interval, of tasks that have only this CPU.
fn due_within(set: &TaskSet, bound: &[Affinity], cpu: CpuId, length: Span) -> Span {
    let there = set.tasks.iter().zip(bound);
    let there = there.filter(|(_, bound)| bound.cpus().iter().eq([cpu]));
    let work = there.map(|(task, _)| {
        let spare = length.as_ns().checked_sub(task.deadline.as_ns());
        let jobs = spare.map_or(0, |spare| spare / task.period.as_ns() + 1);
        jobs * task.cost.as_ns()
    });
    Span::from_ns(work.sum())
}
