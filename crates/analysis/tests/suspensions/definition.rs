//! The recurrence as it is written down: every choice is tried, and every time is, one after the other.

use super::Plain;

/// A recurrence: the proved one, or one that differs from it in one term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// That of the theorem, or the time that passes if suspensions count as computing, if that is less.
    Proved,
    /// The delay of a job that interferes is its suspension: published several times, and wrong.
    DelayOfSuspension,
    /// That delay does not include suspensions.
    DelayWithoutSuspension,
    /// A task that suspends itself interferes as one that does not.
    NoDelay,
    /// The task's own suspension is left out.
    NoOwnSuspension,
    /// Nothing is shifted.
    NoShift,
    /// A task is shifted by its own suspension alone.
    ShiftOfOwn,
    /// A task is shifted by the suspensions of those that are less urgent, its own left out.
    ShiftOfOthers,
    /// A task is shifted by the suspensions of those that are more urgent.
    ShiftOfUrgent,
    /// Equals are shifted, too.
    ShiftOfEquals,
    /// Equals are as late as is known of them before they interfere with each other.
    EqualsInOrder,
    /// Of a suspension no more than the cost counts as blocking, with delays left out.
    ShiftAtMostCost,
}

impl Variant {
    pub const WRONG: [Self; 11] = [
        Self::DelayOfSuspension,
        Self::DelayWithoutSuspension,
        Self::NoDelay,
        Self::NoOwnSuspension,
        Self::NoShift,
        Self::ShiftOfOwn,
        Self::ShiftOfOthers,
        Self::ShiftOfUrgent,
        Self::ShiftOfEquals,
        Self::EqualsInOrder,
        Self::ShiftAtMostCost,
    ];

    /// Whether it differs from the theorem only where priorities are equal.
    pub fn needs_ties(self) -> bool {
        matches!(self, Self::ShiftOfEquals | Self::EqualsInOrder)
    }
}

/// Bounds on the responses of tasks that are in the order of their priorities, the most urgent first. From the first task on
/// for which there is none there are none.
pub fn bounds(tasks: &[Plain], variant: Variant) -> Vec<Option<u64>> {
    let mut bounds = vec![None; tasks.len()];
    for place in 0..tasks.len() {
        let level = tasks[place].priority;
        let others: Vec<(Plain, u64, bool)> = (0..tasks.len())
            .filter(|&other| other != place && tasks[other].priority <= level)
            .map(|other| {
                let task = tasks[other];
                let equals = tasks.iter().filter(|it| it.priority == task.priority);
                let response = match task.priority == level
                    && !(variant == Variant::EqualsInOrder && other < place)
                {
                    true if variant == Variant::EqualsInOrder => task.cost + task.suspension,
                    true => task.limit(),
                    false => bounds[other].unwrap_or(task.limit()),
                };
                (task, response, equals.count() == 1)
            })
            .collect();
        let all_fit = (0..tasks.len())
            .filter(|&other| tasks[other].priority == level)
            .all(|other| tasks[other].cost + tasks[other].suspension <= tasks[other].limit());
        bounds[place] = all_fit
            .then(|| bound(&tasks[place], &others, variant))
            .flatten();
        if bounds[place].is_none() {
            break;
        }
    }
    bounds
}

fn bound(own: &Plain, others: &[(Plain, u64, bool)], variant: Variant) -> Option<u64> {
    let choices = (0_u32..1 << others.len()).filter(|choice| {
        let equals_are_not = |(place, (_, _, is_only)): (usize, &(Plain, u64, bool))| {
            *is_only || choice >> place & 1 == 0
        };
        variant == Variant::ShiftOfEquals || others.iter().enumerate().all(equals_are_not)
    });
    let found = choices.filter_map(|choice| {
        (1..=own.limit()).find(|&time| demand(own, others, choice, time, variant) <= time)
    });
    let as_computing = |time: u64| {
        let sum: u64 = others
            .iter()
            .map(|(other, ..)| time.div_ceil(other.period) * (other.cost + other.suspension))
            .sum();
        own.cost + own.suspension + sum
    };
    let as_computing = (1..=own.limit()).find(|&time| as_computing(time) <= time);
    match variant {
        Variant::NoOwnSuspension | Variant::NoDelay => found.min(),
        _ => found.chain(as_computing).min(),
    }
}

/// What is executed within that time, and how long the task itself is suspended.
fn demand(
    own: &Plain,
    others: &[(Plain, u64, bool)],
    choice: u32,
    time: u64,
    variant: Variant,
) -> u64 {
    let is_chosen = |place: usize| choice >> place & 1 == 1;
    let suspension = |place: usize| match variant {
        Variant::ShiftAtMostCost => others[place].0.suspension.min(others[place].0.cost),
        _ => others[place].0.suspension,
    };
    let sum = |places: std::ops::Range<usize>| -> u64 {
        places
            .filter(|&place| is_chosen(place))
            .map(suspension)
            .sum()
    };
    let interference = |(place, (other, response, _)): (usize, &(Plain, u64, bool))| {
        let shift = match variant {
            Variant::NoShift => 0,
            Variant::ShiftOfOwn => sum(place..place + 1),
            Variant::ShiftOfOthers => sum(place + 1..others.len()),
            Variant::ShiftOfUrgent => sum(0..place + 1),
            _ => sum(place..others.len()),
        };
        let delay = match (is_chosen(place), variant) {
            (true, _) | (_, Variant::NoDelay) => 0,
            (_, Variant::DelayOfSuspension) => other.suspension,
            (_, Variant::DelayWithoutSuspension) => response - other.cost - other.suspension,
            _ => response - other.cost,
        };
        (time + shift + delay).div_ceil(other.period) * other.cost
    };
    let own_suspension = match variant {
        Variant::NoOwnSuspension => 0,
        _ => own.suspension,
    };
    let interference: u64 = others.iter().enumerate().map(interference).sum();
    own.cost + own_suspension + interference
}
