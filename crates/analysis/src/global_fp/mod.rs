//! Whether global fixed priorities meet all deadlines on CPUs that are alike. One file per published
//! test.
//!
//! Every test bounds what more urgent tasks run in a window, from their own response times, and so
//! goes from the most urgent task to the least. What the tests share is here: that order, and the
//! work of a task that is only known to finish in time.

mod bertogna_cirinei;
mod delay;
mod guan;
mod non_preemptive;

pub use bertogna_cirinei::bertogna_cirinei;
pub use guan::guan;
pub(crate) use guan::guan_in_time;
pub use non_preemptive::np_rta;
pub(crate) use non_preemptive::np_rta_in_time;

use shiftwork_model::{Priority, Span};

use crate::{NotShown, Outcome, Ranked, Steps};

/// A task of which every job finishes within `response`. In nanoseconds, at most [`Span::MAX`], so
/// that sums of three need no more than 64 bits.
#[derive(Clone, Copy)]
struct Known {
    cost: u64,
    period: u64,
    response: u64,
}

impl Known {
    /// The initial bound of a task: if no deadline is missed, it finishes by its deadline.
    /// `None` outside the domain of the tests.
    fn until_deadline(ranked: &Ranked) -> Option<Self> {
        let task = &ranked.task;
        let constrained = task.cost <= task.deadline && task.deadline <= task.period;
        let possible = task.is_possible() && constrained && task.period <= Span::MAX;
        possible.then_some(Self {
            cost: task.cost.as_ns(),
            period: task.period.as_ns(),
            response: task.deadline.as_ns(),
        })
    }

    /// The most that it runs in a window of this length: the first job as late as its response
    /// allows, the others as soon as they come.
    const fn work_in(&self, length: u64) -> u64 {
        let reach = length + (self.response - self.cost);
        let (jobs, rest) = (reach / self.period, reach % self.period);
        let last = if rest < self.cost { rest } else { self.cost };
        jobs * self.cost + last
    }
}

/// The tasks that may delay a task.
struct Rivals<'a> {
    /// Those of more urgent priorities, with their response times.
    urgent: &'a [Known],
    /// All of the same priority, the task itself among them, known to be in time.
    level: &'a [Known],
    /// The place of the task in `level`.
    own: usize,
    /// The costs of those of less urgent priorities.
    rest: &'a [u64],
}

impl Rivals<'_> {
    /// The task that they may delay, known to be in time.
    const fn task(&self) -> &Known {
        &self.level[self.own]
    }

    /// The others of the same priority.
    fn equal(&self) -> impl Iterator<Item = &Known> {
        let level = self.level.iter().enumerate();
        level
            .filter(|&(place, _)| place != self.own)
            .map(|(_, task)| task)
    }
}

/// The least response time of a task that may be preempted, or one above its deadline. `work` appends, for a
/// window of a length, what each rival may run in it; no more of it than a second number can delay the task.
fn preemptive_response(
    task: &Known,
    cpus: usize,
    steps: &mut Steps,
    mut work: impl FnMut(u64, u64, &mut Vec<u64>),
) -> Option<u64> {
    delay::least_response(task.cost, task.response, cpus, steps, |length, works| {
        work(length, length - task.cost + 1, works);
    })
}

/// Whether the task at this place is in time if nothing is known of the others but that they are: those of more urgent
/// priorities count with their deadlines for response times. `None` when out of steps.
fn in_time(
    tasks: &[Ranked],
    place: usize,
    steps: &mut Steps,
    respond: impl Fn(&Rivals, &mut Steps) -> Option<u64>,
) -> Option<bool> {
    let known: Option<Vec<Known>> = tasks.iter().map(Known::until_deadline).collect();
    let Some(known) = known else {
        return Some(false);
    };
    let own = tasks[place].priority;
    let with = |wanted: fn(&Priority, &Priority) -> bool| -> Vec<Known> {
        let all = tasks.iter().zip(&known);
        let wanted = all.filter(|(task, _)| wanted(&task.priority, &own));
        wanted.map(|(_, known)| *known).collect()
    };
    let before = tasks[..place].iter();
    let rivals = Rivals {
        urgent: &with(Priority::lt),
        level: &with(Priority::eq),
        own: before.filter(|task| task.priority == own).count(),
        rest: &with(Priority::gt)
            .iter()
            .map(|known| known.cost)
            .collect::<Vec<u64>>(),
    };
    Some(respond(&rivals, steps)? <= known[place].response)
}

/// Goes from the most urgent priority to the least. `respond` is asked for the response time of a task, which is
/// not shown to be in time if it is above the deadline; `None` when out of steps.
fn in_order(
    tasks: &[Ranked],
    cpus: usize,
    steps: &mut Steps,
    respond: impl Fn(&Rivals, &mut Steps) -> Option<u64>,
) -> Outcome<NotShown, Vec<Span>> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&place| tasks[place].priority);
    let mut known = Vec::with_capacity(tasks.len());
    for (place, task) in tasks.iter().enumerate() {
        match Known::until_deadline(task) {
            Some(task) if cpus > 0 => known.push(task),
            _ => return Outcome::Fail(NotShown { place }),
        }
    }
    let mut responses = vec![Span::ZERO; tasks.len()];
    let mut urgent: Vec<Known> = Vec::with_capacity(tasks.len());
    let costs: Vec<u64> = order.iter().map(|&place| known[place].cost).collect();
    for places in order.chunk_by(|&a, &b| tasks[a].priority == tasks[b].priority) {
        let level: Vec<Known> = places.iter().map(|&place| known[place]).collect();
        let mut done = Vec::with_capacity(level.len());
        for (own, (&place, task)) in places.iter().zip(&level).enumerate() {
            let rivals = Rivals {
                urgent: &urgent,
                level: &level,
                own,
                rest: &costs[urgent.len() + level.len()..],
            };
            let Some(response) = respond(&rivals, steps) else {
                return Outcome::StepLimit;
            };
            if response > task.response {
                return Outcome::Fail(NotShown { place });
            }
            responses[place] = Span::from_ns(response);
            done.push(Known { response, ..*task });
        }
        urgent.append(&mut done);
    }
    Outcome::Pass(responses)
}
