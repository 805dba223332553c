//! When the jobs of triggered tasks arrive at the latest, from bounds on the response times of those that trigger them.
//!
//! `docs/theory/triggers.md` has the lemmas.

use shiftwork_model::{Affinity, Arrival, Join, Phase, Span, Task, TaskId, TaskSet, Trigger, Work};

use crate::arrivals::curve_of;
use crate::exact::whole;
use crate::suspensions::suspends;
use crate::uniprocessor::{Response, WithJitter, fp_responses_with_jitter};
use crate::{Outcome, Ranked, Sporadic, Steps};

/// Streams that one task may have at most.
const STREAMS: usize = 64;

/// Rounds of an iteration until it is given up.
const ROUNDS: usize = 64;

/// Jobs of a task that stem from the jobs of one task that arrives by time, at most one from each, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stream {
    /// The task that arrives by time; of several that are joined the one with the largest offset.
    root: TaskId,
    /// All of these: the k-th job stems from the k-th of each. They have the same period and are periodic, or it is one.
    roots: Vec<TaskId>,
    /// The streams of the tasks that trigger it, of which the latest counts: the task and the place of the stream there.
    /// None for the root itself.
    after: Vec<(TaskId, usize)>,
}

/// The streams of every task of a task set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Streams {
    /// The tasks so that each follows all that trigger it.
    order: Vec<TaskId>,
    of: Vec<Vec<Stream>>,
}

impl Streams {
    /// `None` if nothing is known of when jobs of some task arrive: where triggers of several tasks are joined that do not
    /// come one for one, where tasks change in time, or where a task that may be throttled triggers others or is
    /// triggered.
    pub fn of(set: &TaskSet) -> Option<Self> {
        let order = set.trigger_order().ok()?;
        if !set.actions.is_empty() || set.iter().any(|(id, task)| is_served(set, id, task)) {
            return None;
        }
        let mut of: Vec<Vec<Stream>> = vec![Vec::new(); set.tasks.len()];
        // Whether each job of the root leads to a job of the task.
        let mut is_lossless = vec![true; set.tasks.len()];
        for &id in &order {
            let Some(trigger) = set.tasks[id.index()].trigger() else {
                of[id.index()] = vec![Stream {
                    root: id,
                    roots: vec![id],
                    after: Vec::new(),
                }];
                continue;
            };
            is_lossless[id.index()] =
                trigger.queue.is_none() && trigger.sources.iter().all(|it| is_lossless[it.index()]);
            let streams = match (trigger.join, trigger.sources.len()) {
                (Join::All, 2..) if !is_lossless[id.index()] => return None,
                (Join::All, 2..) => vec![joined(set, id, trigger, &of)?],
                _ => each(set, id, trigger, &of),
            };
            if streams.len() > STREAMS {
                return None;
            }
            of[id.index()] = streams;
        }
        Some(Self { order, of })
    }

    /// Whether every task has one stream.
    pub fn are_single(&self) -> bool {
        self.of.iter().all(|streams| streams.len() == 1)
    }

    /// How much later than a job of the root arrives the job of each task that stems from it, if each has one stream; by
    /// bounds on response times, counted from arrivals. `None` where one is needed that is not known.
    pub fn latest(&self, responses: &[Option<Span>]) -> Option<Vec<Span>> {
        if !self.are_single() {
            return None;
        }
        let mut latest = vec![Span::ZERO; self.of.len()];
        for id in &self.order {
            let after = &self.of[id.index()].first()?.after;
            let of = |&(source, _): &(TaskId, usize)| {
                let response = responses.get(source.index()).copied().flatten()?;
                Some(latest[source.index()] + response)
            };
            let all: Option<Vec<Span>> = after.iter().map(of).collect();
            latest[id.index()] = all?.into_iter().max().unwrap_or_default();
        }
        latest
            .iter()
            .all(|latest| *latest <= Span::MAX)
            .then_some(latest)
    }

    /// The root of a task with one stream.
    pub fn root(&self, id: TaskId) -> Option<TaskId> {
        Some(self.only(id)?.root)
    }

    /// How much later than the jobs of `first`, of which each leads to the task's jobs, arrive those of the root; `None` if
    /// they do not, or the task has several streams.
    pub fn lag(&self, set: &TaskSet, id: TaskId, first: TaskId) -> Option<Span> {
        let stream = self.only(id)?;
        let offset = |id: TaskId| set.tasks[id.index()].offset;
        let stems = stream.roots.contains(&first);
        stems.then(|| match stream.root == first {
            true => Span::ZERO,
            false => offset(stream.root).saturating_sub(offset(first)),
        })
    }

    fn only(&self, id: TaskId) -> Option<&Stream> {
        match self.of.get(id.index())?.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }
}

/// Whether the task is triggered or triggers others, and may be throttled.
fn is_served(set: &TaskSet, id: TaskId, task: &Task) -> bool {
    let takes_part = task.trigger().is_some()
        || task.triggers().next().is_some()
        || set.triggered_at_completion(id).next().is_some();
    task.may_be_throttled() && takes_part
}

/// The streams of a task of which each trigger releases a job.
fn each(set: &TaskSet, id: TaskId, trigger: &Trigger, of: &[Vec<Stream>]) -> Vec<Stream> {
    let mut streams = Vec::new();
    for &source in &trigger.sources {
        for (place, stream) in of[source.index()].iter().enumerate() {
            for _ in 0..set.triggers_per_job(source, id) {
                if streams.len() > STREAMS {
                    return streams;
                }
                streams.push(Stream {
                    root: stream.root,
                    roots: stream.roots.clone(),
                    after: vec![(source, place)],
                });
            }
        }
    }
    streams
}

/// The stream of a task that waits for all of several, each of which triggers once for each job of its root: the same for
/// all, or all periodic with one period, of which the one with the largest offset counts.
fn joined(set: &TaskSet, id: TaskId, trigger: &Trigger, of: &[Vec<Stream>]) -> Option<Stream> {
    let (mut roots, mut all) = (Vec::new(), Vec::new());
    for &source in &trigger.sources {
        let [stream] = of[source.index()].as_slice() else {
            return None;
        };
        if set.triggers_per_job(source, id) != 1 {
            return None;
        }
        roots.push(stream.root);
        all.extend(&stream.roots);
    }
    all.sort_unstable();
    all.dedup();
    let root = |id: &TaskId| &set.tasks[id.index()];
    let last = *roots.iter().max_by_key(|id| root(id).offset)?;
    let is_alike = |id: &TaskId| {
        let (one, other) = (root(id), root(&last));
        let is_periodic = one.arrival == Arrival::Periodic && other.arrival == Arrival::Periodic;
        *id == last || (is_periodic && one.period == other.period)
    };
    if !roots.iter().all(is_alike) {
        return None;
    }
    // The job of a root with a smaller offset arrives earlier than that of the last one, so that it counts for no more.
    let after = trigger.sources.iter().map(|&source| (source, 0));
    Some(Stream {
        root: last,
        roots: all,
        after: after.collect(),
    })
}

/// The task set in which each triggered task arrives by time, sporadically: no two jobs are closer than the period of its
/// root less the time by which one of them may arrive later than the root's job. `None` if that is not above zero, or a
/// task has several streams.
pub(crate) fn by_time(set: &TaskSet, streams: &Streams, latest: &[Span]) -> Option<TaskSet> {
    let mut by_time = set.clone();
    let priorities = set.priorities();
    for (id, task) in set.iter() {
        let stand_in = &mut by_time.tasks[id.index()];
        // Tasks without an explicit priority have one by deadline; it must not change.
        stand_in.priority = Some(priorities[id.index()]);
        if let Work::Phases(phases) = &mut stand_in.work {
            phases.retain(|phase| !matches!(phase, Phase::Trigger(_)));
        }
        if task.trigger().is_none() {
            continue;
        }
        let period = set.tasks[streams.root(id)?.index()].period;
        let latest = *latest.get(id.index())?;
        if latest >= period {
            return None;
        }
        stand_in.period = period - latest;
        stand_in.arrival = Arrival::Sporadic;
    }
    Some(by_time)
}

/// Whether some job triggers others when it starts, or goes on after a suspension or with a mutex, before it executes.
pub(crate) fn triggers_at_start(set: &TaskSet) -> bool {
    set.tasks.iter().any(|task| {
        let mut has_executed = false;
        task.phases().iter().any(|phase| match phase {
            Phase::Run(run) => {
                has_executed |= !run.is_zero();
                false
            }
            Phase::Trigger(_) => !has_executed,
            Phase::Sleep(_) | Phase::Lock(_) => {
                has_executed = false;
                false
            }
            Phase::Unlock(_) => false,
        })
    })
}

/// Rounded up to whole ticks.
fn in_ticks(cost: Span, tick: Span) -> Span {
    let ticks = cost.as_ns().div_ceil(tick.as_ns());
    Span::from_ns(ticks.saturating_mul(tick.as_ns()).min(Span::MAX.as_ns()))
}

/// Bounds on the response times of all tasks under fixed priorities, by task, counted from arrivals, where each is bound
/// to one CPU. `None` if the tasks are not bound so, suspend themselves or lock mutexes, or nothing is found with so many
/// steps.
///
/// # Cost
/// That of a response-time analysis of all streams for each round of an iteration, of which there are few where responses
/// are short beside periods.
///
/// # Source
/// K. Tindell, J. Clark, "Holistic schedulability analysis for distributed hard real-time systems", Microprocessing and
/// Microprogramming 40(2-3), 1994; here with several streams for a task, and responses counted from triggers.
pub(crate) fn holistic(
    set: &TaskSet,
    streams: &Streams,
    bound: &[Affinity],
    steps: u64,
) -> Option<Vec<Span>> {
    if suspends(set) || set.first_locking().is_some() || bound.len() != set.tasks.len() {
        return None;
    }
    let priorities = set.priorities();
    // All streams, by CPU: which task and which of its streams each is.
    let mut cpus: Vec<Vec<(TaskId, usize)>> = vec![Vec::new(); set.platform.cpus];
    for (id, _) in set.iter() {
        let affinity = bound[id.index()].cpus();
        let cpu = affinity.iter().next().filter(|_| affinity.len() == 1)?;
        let all = 0..streams.of[id.index()].len();
        cpus.get_mut(cpu.index())?
            .extend(all.map(|place| (id, place)));
    }
    let mut steps = Steps::at_most(steps);
    // By task and stream: how long after the root's arrival it may arrive.
    let start = |(id, task): (TaskId, &Task)| vec![task.jitter; streams.of[id.index()].len()];
    let mut latest: Vec<Vec<Span>> = set.iter().map(start).collect();
    for _ in 0..ROUNDS {
        let mut worst: Vec<Vec<Response>> = vec![Vec::new(); set.tasks.len()];
        for on_cpu in &cpus {
            let with_jitter = on_cpu.iter().map(|&(id, place)| {
                let task = &set.tasks[id.index()];
                let root = &set.tasks[streams.of[id.index()][place].root.index()];
                WithJitter {
                    curve: curve_of(root),
                    ranked: Ranked {
                        task: Sporadic {
                            // Costs that are scaled take whole ticks all the same.
                            cost: in_ticks(task.cost, set.platform.tick_unit),
                            period: root.period,
                            deadline: task.deadline,
                        },
                        priority: priorities[id.index()],
                    },
                    jitter: latest[id.index()][place],
                }
            });
            let with_jitter: Vec<WithJitter> = with_jitter.collect();
            let Outcome::Pass(found) = fp_responses_with_jitter(&with_jitter, whole(), &mut steps)
            else {
                return None;
            };
            for (&(id, _), response) in on_cpu.iter().zip(found) {
                worst[id.index()].push(response);
            }
        }
        let mut next = latest.clone();
        for id in &streams.order {
            for (place, stream) in streams.of[id.index()].iter().enumerate() {
                let of =
                    |&(source, place): &(TaskId, usize)| worst[source.index()][place].from_arrival;
                if let Some(last) = stream.after.iter().map(of).max() {
                    next[id.index()][place] = last;
                }
            }
        }
        if next == latest {
            let of = |(task, all): (&Task, &Vec<Response>)| {
                let own = |response: &Response| match task.trigger() {
                    Some(_) => response.from_ready,
                    None => response.from_arrival,
                };
                all.iter().map(own).max().unwrap_or_default()
            };
            return Some(set.tasks.iter().zip(&worst).map(of).collect());
        }
        latest = next;
    }
    None
}
