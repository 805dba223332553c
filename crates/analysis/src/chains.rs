//! Upper bounds on the reaction time, data age and end-to-end latency of cause-effect chains.
//!
//! They hold under any policy for which the response times of the tasks are bounded, also where a bound is beyond a
//! period. `docs/theory/chains.md` has the proof.

use shiftwork_model::{Affinity, Chain, PolicyTraits, Span, Task, TaskId, TaskSet};

use crate::policy::{is_edf, is_fp};
use crate::stand_ins::has_jitter;
use crate::suspensions::suspension;
use crate::triggers::Streams;

/// What is known of a task set under a policy.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The tasks.
    pub set: &'a TaskSet,
    /// Bounds on the response times of all jobs, counted from their arrivals, by task; `None` where nothing is known.
    pub responses: &'a [Option<Span>],
    /// Where the policy binds each task, and its properties, if scheduling is free: then it is used in which
    /// order jobs of two tasks on one CPU start. `None`: nothing is known of that.
    pub rules: Option<(&'a PolicyTraits, &'a [Affinity])>,
}

/// An upper bound on the reaction time and the data age of the chain, which are bounded alike; `None` if a response time
/// is not bounded, a task of the chain ends its releases, or the task set has timed changes.
///
/// # Assumes
/// The jobs of each task arrive as the task set says: the first at its offset, and then every period, if sporadic
/// less than two periods apart, or by an arrival curve as early as it allows or later by up to its shortest distance.
///
/// # Source
/// A. Davare et al., "Period optimization for hard real-time distributed automotive systems", DAC 2007: the sum of periods and
/// response times. That the response time of a task counts for nothing where it goes before its successor on one CPU: as in Dürr et
/// al. 2019. The proof is in `docs/theory/chains.md`.
pub fn chain_bound(chain: &Chain, known: Known<'_>) -> Option<Span> {
    let Known { set, responses, .. } = known;
    if !set.actions.is_empty() {
        return None;
    }
    let task = |id: TaskId| set.tasks.get(id.index());
    let response = |id: TaskId| *responses.get(id.index())?;
    let (&first, after) = chain.tasks.split_first()?;
    let start = task(first)?.offset;
    // The latest release of the job that passes the data on, counted from the event.
    let mut release = longest_gap(task(first)?)?;
    let mut before = first;
    // Whether each task so far is triggered by the output of the one before.
    let mut all_follow = true;
    for &id in after {
        all_follow &= is_released_by_output(set, before, id);
        let next = match task(id)?.trigger() {
            // Its next job is released with the output.
            Some(_) if follows(set, before, id) => add(release, response(before)?)?,
            Some(_) if all_follow => {
                let arrival = latest_arrival(set, responses, first, id)?;
                add(longest_gap(task(first)?)?, arrival)?
            }
            _ => {
                let ahead = lead(before, id, known).unwrap_or(response(before)?);
                add(add(release, ahead)?, longest_gap(task(id)?)?)?
            }
        };
        // Where no job of the task has read yet, its first one does.
        release = next.max(task(id)?.offset.saturating_sub(start));
        before = id;
    }
    add(release, response(before)?)
}

/// Whether each job of `before` releases one of `after` when it completes, and nothing else does.
fn follows(set: &TaskSet, before: TaskId, after: TaskId) -> bool {
    let trigger = set.tasks.get(after.index()).and_then(Task::trigger);
    let is_alone = trigger.is_some_and(|trigger| trigger.sources == [before]);
    is_alone && is_released_by_output(set, before, after)
}

/// Whether each job of `before` triggers `after` when it completes, and no trigger is lost.
fn is_released_by_output(set: &TaskSet, before: TaskId, after: TaskId) -> bool {
    let trigger = set.tasks.get(after.index()).and_then(Task::trigger);
    trigger.is_some_and(|trigger| trigger.queue.is_none())
        && set.triggered_at_completion(before).any(|id| id == after)
}

/// An upper bound on the end-to-end latency of a chain in which each task triggers the next; `None` if a response time that
/// it needs is not bounded, or nothing is known of when its jobs arrive.
///
/// The job of the last task arrives so much later than a job of the task that arrives by time and that it stems from. If
/// that is the first of the chain, the latency is counted from there. Otherwise it is no longer than the responses of the
/// chain's tasks, of which each has no other source.
pub fn latency_bound(chain: &Chain, set: &TaskSet, responses: &[Option<Span>]) -> Option<Span> {
    let response = |id: TaskId| *responses.get(id.index())?;
    let (&first, &last) = (chain.tasks.first()?, chain.tasks.last()?);
    if !chain.is_triggered(set) {
        return None;
    }
    let is_alone = |id: &TaskId| {
        let trigger = set.tasks[id.index()].trigger();
        trigger.is_some_and(|trigger| trigger.sources.len() == 1)
    };
    if chain.tasks[1..].iter().all(is_alone) {
        let mut sum = Span::ZERO;
        for &id in &chain.tasks {
            sum = add(sum, response(id)?)?;
        }
        return Some(sum);
    }
    let arrival = latest_arrival(set, responses, first, last)?;
    add(arrival, response(last)?)
}

/// How long after the arrival of a job of `first` the jobs of `last` that stem from it arrive; `None` if nothing is known, or
/// `first` does not arrive by time.
fn latest_arrival(
    set: &TaskSet,
    responses: &[Option<Span>],
    first: TaskId,
    last: TaskId,
) -> Option<Span> {
    let streams = Streams::of(set)?;
    let lag = streams.lag(set, last, first)?;
    let latest = streams.latest(responses)?;
    add(lag, *latest.get(last.index())?)
}

/// The longest time between two arrivals; `None` if there may be a last one, or it is too long.
fn longest_gap(task: &Task) -> Option<Span> {
    task.longest_gap().filter(|gap| *gap <= Span::MAX)
}

/// How long after the release of a job of `first` a job of `second` can be released that starts before the completion of the
/// former; `None` if only the response time bounds it.
fn lead(first: TaskId, second: TaskId, known: Known<'_>) -> Option<Span> {
    let (traits, bound) = known.rules?;
    let cpu = bound.get(first.index())?.cpus();
    let is_one_cpu = cpu.len() == 1 && bound.get(second.index())?.cpus() == cpu;
    let set = known.set;
    let (one, other) = (
        set.tasks.get(first.index())?,
        set.tasks.get(second.index())?,
    );
    // A job of the first is ready from its arrival to its completion, and one that starts meanwhile goes before it.
    let is_always_ready =
        suspension(one).is_zero() && !has_jitter(set) && set.first_locking().is_none();
    if !traits.is_greedy() || !is_one_cpu || !is_always_ready {
        return None;
    }
    if is_fp(traits) {
        let priorities = set.priorities();
        let goes_first = priorities[first.index()] < priorities[second.index()];
        return goes_first.then_some(Span::ZERO);
    }
    if is_edf(traits) {
        let lead = one.deadline.saturating_sub(other.deadline);
        let response = known.responses.get(first.index()).copied().flatten();
        return Some(response.map_or(lead, |response| lead.min(response)));
    }
    None
}

fn add(one: Span, other: Span) -> Option<Span> {
    let sum = one.as_ns().checked_add(other.as_ns()).map(Span::from_ns)?;
    (sum <= Span::MAX).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::{
        Arrival, ArrivalCurve, CpuId, Join, Order, Pace, Phase, Priority, Trigger, Work,
    };

    const MS: fn(u64) -> Span = Span::from_ms;

    /// Two tasks of one chain on one CPU, released every 10 ms and every 20 ms.
    fn pair() -> TaskSet {
        let cpu = Affinity::pinned(CpuId::from_index(0));
        let task = |name, period| Task::periodic(name, MS(1), MS(period), cpu);
        let mut set = TaskSet::new("", 1, vec![task("a", 10), task("b", 20)]);
        set.chains.push(Chain {
            name: "ab".into(),
            tasks: set.iter().map(|(id, _)| id).collect(),
            reaction: None,
            age: None,
            latency: None,
        });
        set
    }

    fn bound(set: &TaskSet, order: Option<Order>) -> Option<Span> {
        let responses = [Some(MS(3)), Some(MS(25))];
        let traits = order.map(|order| PolicyTraits {
            order,
            placement: shiftwork_model::Placement::Partitioned,
            preemption: shiftwork_model::Preemption::AtEvents,
            invariant: shiftwork_model::Invariant::Packed,
            affinities: shiftwork_model::Affinities::Any,
            budgets: shiftwork_model::Budgets::OfJobs,
            machines: shiftwork_model::Machines::KernelOrAgent,
            structure: None,
            role: shiftwork_model::Role::Reference,
        });
        let own: Vec<Affinity> = set.tasks.iter().map(|task| task.affinity).collect();
        let known = Known {
            set,
            responses: &responses,
            rules: traits.as_ref().map(|traits| (traits, own.as_slice())),
        };
        chain_bound(&set.chains[0], known)
    }

    #[test]
    fn bound_without_rules_is_the_sum_of_periods_and_responses() {
        assert_eq!(bound(&pair(), None), Some(MS(10 + 3 + 20 + 25)));
    }

    #[test]
    fn bound_counts_the_longest_gap_of_arrivals() {
        let mut set = pair();
        set.tasks[1].arrival = Arrival::Sporadic;
        assert_eq!(bound(&set, None), Some(MS(10 + 3 + 40 + 25)));
        let curve = ArrivalCurve::new(vec![MS(20), MS(70)]).unwrap();
        // 50 ms from the second arrival to the third.
        for (pace, gap) in [(Pace::Earliest, 50), (Pace::Random, 70)] {
            set.tasks[1].arrival = Arrival::Curve(curve.clone(), pace);
            assert_eq!(bound(&set, None), Some(MS(10 + 3 + gap + 25)));
        }
        set.tasks[1].arrival = Arrival::Releases(Vec::new());
        assert_eq!(bound(&set, None), None);
    }

    #[test]
    fn bound_counts_an_offset_that_is_longer_than_all_before() {
        let mut set = pair();
        set.tasks[0].offset = MS(5);
        set.tasks[1].offset = MS(100);
        assert_eq!(bound(&set, None), Some(MS(95 + 25)));
    }

    #[test]
    fn task_that_goes_before_its_successor_passes_data_on_at_its_release() {
        let fp = Some(Order::FixedPriority);
        assert_eq!(bound(&pair(), fp), Some(MS(10 + 20 + 25)));
        let mut set = pair();
        set.tasks[0].priority = Priority::new(2);
        set.tasks[1].priority = Priority::new(1);
        assert_eq!(bound(&set, fp), Some(MS(10 + 3 + 20 + 25)));
        assert_eq!(bound(&pair(), Some(Order::Edf)), Some(MS(10 + 20 + 25)));
        let mut set = pair();
        set.tasks[0].deadline = MS(22);
        assert_eq!(bound(&set, Some(Order::Edf)), Some(MS(10 + 2 + 20 + 25)));
        set.tasks[0].priority = None;
        assert_eq!(bound(&set, fp), Some(MS(10 + 3 + 20 + 25)));
    }

    /// `c` waits for `a` and `b`, which arrive every 10 ms.
    fn joined() -> TaskSet {
        let mut set = pair();
        let mut c = set.tasks[1].clone();
        set.tasks[1].period = MS(10);
        c.name = "c".into();
        c.arrival = Arrival::Triggered(Trigger {
            sources: set.chains[0].tasks.clone(),
            join: Join::All,
            queue: None,
        });
        c.period = MS(10);
        set.tasks.push(c);
        set.chains[0].tasks = [0, 2].map(TaskId::from_index).to_vec();
        set
    }

    #[test]
    fn latency_through_a_join_counts_the_offset_of_the_latest_root() {
        let latency = |set: &TaskSet, responses: [u64; 3]| {
            latency_bound(&set.chains[0], set, &responses.map(|ms| Some(MS(ms))))
        };
        let mut set = joined();
        assert_eq!(latency(&set, [3, 6, 2]), Some(MS(6 + 2)));
        set.tasks[1].offset = MS(4);
        assert_eq!(latency(&set, [3, 6, 2]), Some(MS(4 + 6 + 2)));
        // Then `b` is the root, and `a` arrives before it.
        assert_eq!(latency(&set, [9, 6, 2]), Some(MS(4 + 9 + 2)));
        set.tasks[1].period = MS(20);
        assert_eq!(
            latency(&set, [3, 6, 2]),
            None,
            "they do not come one for one"
        );
    }

    #[test]
    fn reaction_through_a_trigger_is_bounded_unless_it_may_be_lost() {
        let responses = [Some(MS(3)), Some(MS(25))];
        let mut set = pair();
        let mut trigger = Trigger {
            sources: vec![TaskId::from_index(0)],
            join: Join::Any,
            queue: None,
        };
        let bound = |trigger: &Trigger, set: &mut TaskSet| {
            set.tasks[1].arrival = Arrival::Triggered(trigger.clone());
            let known = Known {
                set,
                responses: &responses,
                rules: None,
            };
            chain_bound(&set.chains[0], known)
        };
        assert_eq!(bound(&trigger, &mut set), Some(MS(10 + 3 + 25)));
        trigger.queue = Some(1);
        assert_eq!(bound(&trigger, &mut set), None);
        trigger.queue = None;
        // Triggered before `a` writes.
        let [run, trigger_b] = [Phase::Run(MS(1)), Phase::Trigger(TaskId::from_index(1))];
        set.tasks[0].work = Work::Phases(vec![trigger_b, run]);
        assert_eq!(bound(&trigger, &mut set), None);
    }
}
