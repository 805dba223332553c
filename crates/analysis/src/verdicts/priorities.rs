//! Fixed priorities with which a policy is shown to meet all deadlines.
//!
//! Part by part, in this order: the priorities that are given; those that Audsley's algorithm finds for each test that
//! looks at one task alone; and orders by deadline (DM, D-C, DkC), as tests that use the response times of more urgent
//! tasks may show more, and are no questions for that algorithm.

use shiftwork_model::{Affinity, PolicyTraits, Priority, TaskId, TaskSet};

use super::audsley::audsley;
use super::case::{Case, Shape};
use super::divide::Divided;
use super::scale::is_shown;
use super::{Candidate, Criterion};
use crate::affinity::{reduction_in_time, waiting_levels_in_time};
use crate::global_fp::{guan_in_time, np_rta_in_time};
use crate::policy::{is_by_affinity, is_by_priority, is_fp, is_np_fp, shifts};
use crate::uniprocessor::{fp_in_time, np_fp_in_time};
use crate::{Sporadic, Steps};

/// Whether the task at a place of a case is in time with these priorities, whatever the order of the others that are more
/// urgent, and of those that are less; `None` when out of steps.
pub(super) type InTime = fn(&Case, usize, &mut Steps) -> Option<bool>;

/// The tasks in an order of priorities, the most urgent first, with which the policy is shown to meet all deadlines.
/// `candidate` says where the policy binds the tasks of the set that it is given. `None` if none was found, the policy
/// does not go by priorities, or tasks trigger others: then parts cannot be judged alone.
///
/// On one CPU an order is found whenever there is one, if the steps last and jobs lock no mutexes. Elsewhere the tests at hand are sufficient
/// only: what they show with some order is found if they show it with deadlines in place of response times, and
/// may be found if not.
///
/// # Cost
/// For each part with n tasks O(n^2) times that of a test for one task, and a few times that of all tests. Each test may
/// take `steps`, shared evenly among the parts.
pub fn priority_order(
    set: &TaskSet,
    candidate: &mut dyn FnMut(&TaskSet) -> Candidate,
    steps: u64,
) -> Option<Vec<TaskId>> {
    let given = candidate(set);
    let (traits, bound) = (given.traits, given.bound.ok()?);
    if !is_by_priority(&traits) || set.first_triggered().is_some() {
        return None;
    }
    let mut order: Vec<TaskId> = Vec::new();
    for ground in Divided::new(set, &traits).grounds(&bound, steps) {
        let part = Part {
            set,
            traits,
            bound: &bound,
            case: &ground.case,
            steps: ground.steps,
        };
        order.extend(part.order()?);
    }
    // A task that is bound to no CPU is in no part.
    let all = order.len() == set.tasks.len();
    let ordered = with_priorities(set, &order);
    let is_shown = all && is_shown(&ordered, &candidate(&ordered), Criterion::Hard, steps);
    is_shown.then_some(order)
}

/// The set with priorities in this order of its tasks, the most urgent first.
pub fn with_priorities(set: &TaskSet, order: &[TaskId]) -> TaskSet {
    let mut set = set.clone();
    for (rank, task) in (1..).zip(order) {
        set.tasks[task.index()].priority = Priority::new(rank);
    }
    set
}

/// The tests that look at one task alone, for cases and policies like this.
pub(super) fn tests(traits: &PolicyTraits, case: &Case) -> Vec<InTime> {
    let mut tests: Vec<InTime> = Vec::new();
    match (case.shape, is_np_fp(traits)) {
        (Shape::One(_), false) if is_fp(traits) => {
            tests.push(|case, place, steps| fp_in_time(&case.ranked(), place, steps));
        }
        (Shape::One(_), true) => {
            tests.push(|case, place, steps| np_fp_in_time(&case.ranked(), place, steps));
        }
        (Shape::Uniform, false) if is_fp(traits) => tests
            .push(|case, place, steps| guan_in_time(&case.ranked(), place, case.cpus.len(), steps)),
        (Shape::Uniform, true) => tests.push(|case, place, steps| {
            np_rta_in_time(&case.ranked(), place, case.cpus.len(), steps)
        }),
        _ => {}
    }
    let is_alone = matches!(case.shape, Shape::One(_));
    if is_fp(traits) && !is_alone {
        if is_by_affinity(traits) {
            tests.push(|case, place, steps| reduction_in_time(&case.bound(), place, steps));
        }
        if shifts(traits) {
            tests.push(|case, place, steps| waiting_levels_in_time(&case.bound(), place, steps));
        }
    }
    tests
}

/// Tasks that compete with each other and with no others.
struct Part<'a> {
    set: &'a TaskSet,
    traits: PolicyTraits,
    bound: &'a [Affinity],
    case: &'a Case,
    steps: u64,
}

impl Part<'_> {
    /// The tasks of the part, the most urgent first.
    fn order(&self) -> Option<Vec<TaskId>> {
        let by_rank = |ranks: Vec<u128>| {
            let mut places: Vec<usize> = (0..ranks.len()).collect();
            places.sort_by_key(|&place| ranks[place]);
            places
        };
        let rank = |of: &dyn Fn(&Sporadic) -> u128| self.case.tasks.iter().map(of).collect();
        let given = self.case.priorities.iter();
        let given = by_rank(given.map(|priority| priority.number().into()).collect());
        let monotonic = by_rank(rank(&|task| task.deadline_ns()));
        let by_test = || {
            let tests = tests(&self.traits, self.case).into_iter();
            tests.filter_map(|test| self.audsley(&monotonic, test))
        };
        // After the deadlines by themselves, less the cost, and less a multiple of it.
        let by_deadline = || {
            let k = dkc_millionths(self.case.cpus.len());
            let weights = [0, MILLION, k].into_iter();
            weights.map(|weight| {
                // Above zero, as costs are at most a few times the longest span.
                let base = u128::from(u64::MAX) * MILLION * 4;
                by_rank(rank(&|task| {
                    base + task.deadline_ns() * MILLION - task.cost_ns() * weight
                }))
            })
        };
        let orders = std::iter::once(given).chain(by_test()).chain(by_deadline());
        let tasks = |order: Vec<usize>| -> Vec<TaskId> {
            order
                .into_iter()
                .map(|place| self.case.ids[place])
                .collect()
        };
        orders.map(tasks).find(|order| self.is_shown(order))
    }

    /// The order in which this test shows each task, the longest deadlines first among the least urgent.
    fn audsley(&self, monotonic: &[usize], test: InTime) -> Option<Vec<usize>> {
        let in_ticks = self.case.in_ticks().map(|(case, _)| case);
        let mut case = match in_ticks {
            Some(case) => case,
            None => self.case.with(self.case.tasks.clone()),
        };
        let mut steps = Steps::at_most(self.steps);
        let longest_first: Vec<usize> = monotonic.iter().rev().copied().collect();
        let [urgent, own, rest] = [1, 2, 3].map(Priority::new);
        let (urgent, own, rest) = (urgent?, own?, rest?);
        audsley(&longest_first, |place, more, less| {
            more.iter()
                .for_each(|&other| case.priorities[other] = urgent);
            less.iter().for_each(|&other| case.priorities[other] = rest);
            case.priorities[place] = own;
            test(&case, place, &mut steps)
        })
    }

    /// Whether the part is shown with priorities in this order.
    fn is_shown(&self, order: &[TaskId]) -> bool {
        let mut set = with_priorities(self.set, order);
        let mut places: Vec<usize> = order.iter().map(|task| task.index()).collect();
        places.sort_unstable();
        set.tasks = places
            .iter()
            .map(|&place| set.tasks[place].clone())
            .collect();
        let candidate = Candidate {
            policy: String::new(),
            traits: self.traits,
            bound: Ok(places.iter().map(|&place| self.bound[place]).collect()),
        };
        is_shown(&set, &candidate, Criterion::Hard, self.steps)
    }
}

const MILLION: u128 = 1_000_000;

/// The factor on costs in D - kC on so many CPUs, in millionths, rounded down: (m - 1 + sqrt(5 m^2 - 6 m + 1)) / (2 m).
///
/// # Source
/// B. Andersson, J. Jonsson, "Fixed-priority preemptive multiprocessor scheduling: to partition or not to partition",
/// RTCSA 2000, with deadlines for periods as in R. Davis, A. Burns 2011.
fn dkc_millionths(cpus: usize) -> u128 {
    let cpus = cpus.max(1) as u128;
    let root = ((5 * cpus * cpus + 1 - 6 * cpus) * MILLION * MILLION).isqrt();
    ((cpus - 1) * MILLION + root) / (2 * cpus)
}
