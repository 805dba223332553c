//! Bounds on responses on one CPU by fixed priorities, as they are defined.

/// What no response of these systems that is bounded exceeds.
pub const LONGEST: u64 = 100_000;

/// A task of the CPU that is as urgent as the one in question, or more.
pub struct Urgent {
    pub period: u64,
    /// How long a job executes.
    pub executes: u64,
    /// How long one takes of the CPU if it computes while it waits.
    pub computes: u64,
    /// A bound on its response, or `u64::MAX`.
    pub response: u64,
}

/// The least number from this one on that is at least the value there, which does not decrease.
pub fn least(from: u64, value: impl Fn(u64) -> u64) -> Option<u64> {
    least_up_to(LONGEST, from, value)
}

/// `None` if it is beyond this limit.
fn least_up_to(limit: u64, from: u64, value: impl Fn(u64) -> u64) -> Option<u64> {
    let mut at = from;
    loop {
        let next = value(at);
        if next <= at {
            return Some(at);
        }
        if next > limit {
            return None;
        }
        at = next;
    }
}

/// The sum of the longest of these, so many of them.
pub fn longest_of(mut all: Vec<u64>, count: usize) -> u64 {
    all.sort_unstable();
    all.iter().rev().take(count).sum()
}

/// How long jobs of other tasks of a CPU execute sections that they have requested at any of so many moments: at each no more than this,
/// and no more than all that they have, by task those that boost, and those of all of them that do not.
pub fn at_moments(moments: usize, each: u64, boosted: Vec<Vec<u64>>, alone: Vec<u64>) -> u64 {
    let boosted = boosted.into_iter().map(|all| longest_of(all, moments));
    let all = boosted.sum::<u64>() + longest_of(alone, moments);
    all.min(each * moments as u64)
}

/// The response of a task with this period whose jobs take so long of the CPU, where the others are suspended while they wait, and guests
/// take so much of a window.
pub fn suspended(
    (own, period): (u64, u64),
    urgent: &[Urgent],
    guests: impl Fn(u64) -> u64,
) -> Option<u64> {
    if urgent.iter().any(|it| it.response > it.period) {
        return None;
    }
    least_up_to(period, 0, |window| {
        let jobs = |it: &Urgent| (window + it.response - it.executes).div_ceil(it.period);
        let urgent = urgent.iter().map(|it| jobs(it) * it.executes);
        own + guests(window) + urgent.sum::<u64>()
    })
}

/// Where they compute while they wait: job by job, from when all of them release theirs, too.
pub fn computing((own, period): (u64, u64), urgent: &[Urgent]) -> Option<u64> {
    let (mut worst, mut released, mut finish) = (0, 0, 0);
    for job in 1.. {
        finish = least(finish.max(1), |at| {
            let others = urgent.iter().map(|it| at.div_ceil(it.period) * it.computes);
            job * own + others.sum::<u64>()
        })?;
        worst = worst.max(finish - released);
        released += period;
        if finish <= released {
            break;
        }
    }
    Some(worst)
}
