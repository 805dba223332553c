//! The search through the states, by the number of started jobs.

use std::collections::BTreeMap;

use shiftwork_model::{Instant, Span};

use super::state::{Interval, State};
use crate::{Outcome, Steps};

/// One job of which is known when it is released, how long it runs and when it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobRange {
    /// The earliest and the latest release.
    pub release: [Instant; 2],
    /// The least and the greatest cost. The greatest is above zero.
    pub cost: [Span; 2],
    /// When it has to be done.
    pub deadline: Instant,
    /// The smaller the more urgent: under EDF the deadline, under fixed priorities the number of the priority.
    pub rank: u64,
}

/// A job that may end after its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// The place of the task among all.
    pub place: usize,
    /// The place of the job among those of the task.
    pub job: usize,
    /// When it ends at the latest, as far as is known.
    pub end: Instant,
}

/// Whether all these jobs, by task, meet their deadlines under non-preemptive global scheduling by their ranks; how long
/// they take at most, by task, from their earliest releases on.
///
/// A pass is a proof on any number of CPUs. A failure is one on one CPU if no two jobs of equal rank are open as to
/// which goes first: then some releases and costs lead to that end. Elsewhere it only says that nothing is shown; so it
/// does at once where there are no CPUs, or several, and a job may be released before that before it is due.
///
/// # Assumes
/// Independent jobs, no self-suspension. Time is whole nanoseconds; CPUs that become free take jobs after all completions and
/// arrivals of the instant, of equal ranks that which became ready earlier, then that of the first task. The jobs of
/// each task are in order: neither the ends of their releases nor deadlines nor ranks go down.
///
/// # Cost
/// One step per task and CPU for each state, and for each comparison of states. There may be as many states as there are
/// orders of the jobs, but for narrow ranges most of these are not possible.
///
/// # Source
/// See the [module](super).
pub fn explore(
    tasks: &[Vec<JobRange>],
    cpus: usize,
    steps: &mut Steps,
) -> Outcome<Late, Vec<Span>> {
    let search = Search { tasks, cpus };
    if let Some(late) = search.outside() {
        return Outcome::Fail(late);
    }
    match search.run(steps) {
        None => Outcome::StepLimit,
        Some(Ok(longest)) => Outcome::Pass(longest.into_iter().map(Span::from_ns).collect()),
        Some(Err(late)) => Outcome::Fail(late),
    }
}

/// The states in which these numbers of jobs have been started, by task.
type Level = BTreeMap<Vec<u32>, Vec<State>>;

struct Search<'a> {
    tasks: &'a [Vec<JobRange>],
    cpus: usize,
}

/// A job that may be started next.
struct Transition {
    place: usize,
    earliest: u64,
    end: Interval,
}

impl Search<'_> {
    /// A job that the search does not cover.
    fn outside(&self) -> Option<Late> {
        for (place, jobs) in self.tasks.iter().enumerate() {
            for (job, pair) in jobs.windows(2).enumerate() {
                if self.cpus > 1 && pair[0].deadline > pair[1].release[0] {
                    let end = Instant::NEVER;
                    return Some(Late { place, job, end });
                }
            }
        }
        let place = self.tasks.iter().position(|jobs| !jobs.is_empty())?;
        (self.cpus == 0).then_some(Late {
            place,
            job: 0,
            end: Instant::NEVER,
        })
    }

    /// The longest times from the earliest release to the end, by task; `None` when out of steps.
    fn run(&self, steps: &mut Steps) -> Option<Result<Vec<u64>, Late>> {
        let mut longest = vec![0; self.tasks.len()];
        let none = vec![0; self.tasks.len()];
        let mut level = Level::from([(none, vec![State::new(self.cpus)])]);
        let jobs: usize = self.tasks.iter().map(Vec::len).sum();
        for _ in 0..jobs {
            let mut next = Level::new();
            for (started, states) in &level {
                for state in states {
                    steps.take(self.tasks.len() + self.cpus)?;
                    for transition in self.transitions(started, state) {
                        let place = transition.place;
                        let job = started[place] as usize;
                        let range = &self.tasks[place][job];
                        let end = Instant::from_ns(transition.end.high);
                        if end > range.deadline {
                            return Some(Err(Late { place, job, end }));
                        }
                        let took = transition.end.high - range.release[0].as_ns();
                        longest[place] = took.max(longest[place]);
                        let mut started = started.clone();
                        started[place] += 1;
                        let state = state.after(transition.earliest, transition.end);
                        add(next.entry(started).or_default(), state, steps)?;
                    }
                }
            }
            level = next;
        }
        Some(Ok(longest))
    }

    /// All jobs that may be started next.
    fn transitions(&self, started: &[u32], state: &State) -> Vec<Transition> {
        let next: Vec<(usize, &JobRange)> = started
            .iter()
            .zip(self.tasks)
            .enumerate()
            .filter_map(|(place, (&started, one))| Some((place, one.get(started as usize)?)))
            .collect();
        let available = state.first();
        let released = next.iter().map(|(_, job)| job.release[1].as_ns()).min();
        let surely = available.high.max(released.unwrap_or(0));
        let of = |&(place, job): &(usize, &JobRange)| {
            let earliest = job.release[0].as_ns().max(available.low);
            let urgent = next
                .iter()
                .filter(|&&other| goes_first(other, (place, job)));
            // One that is released at the instant goes first, too.
            let before = urgent.map(|(_, other)| other.release[1].as_ns()).min();
            let latest = before.map_or(Some(surely), |at| Some(surely.min(at.checked_sub(1)?)))?;
            let end = Interval {
                low: earliest + job.cost[0].as_ns(),
                high: latest.saturating_add(job.cost[1].as_ns()),
            };
            (earliest <= latest).then_some(Transition {
                place,
                earliest,
                end,
            })
        };
        next.iter().filter_map(of).collect()
    }
}

/// Whether the first job certainly goes before the second if both wait: by rank, then by release, then by task.
fn goes_first(one: (usize, &JobRange), other: (usize, &JobRange)) -> bool {
    let latest = (one.1.rank, one.1.release[1], one.0);
    latest < (other.1.rank, other.1.release[0], other.0)
}

/// Adds a state to those with the same numbers of started jobs.
fn add(states: &mut Vec<State>, mut state: State, steps: &mut Steps) -> Option<()> {
    let mut place = 0;
    while place < states.len() {
        steps.take(1)?;
        if states[place].meets(&state) {
            // The hull may meet others that neither did.
            state = states.swap_remove(place).hull(&state);
            place = 0;
        } else {
            place += 1;
        }
    }
    states.push(state);
    Some(())
}
