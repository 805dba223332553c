//! Windows that begin before a job's release, for EDF: few of the tasks that execute in them began to before.

use std::cmp::Reverse;

use super::levels::Program;
use super::prices::Prices;
use crate::Steps;
use crate::affinity::interference::Interferer;

/// Blocks of windows that are looked at before a task counts as not shown.
const BLOCKS_MAX: usize = 64;

/// Blocks are not shorter than this part of the deadline, but for a unit.
const RESOLUTION: u64 = 1 << 12;

/// A task as others are delayed by its jobs that are due within a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delaying {
    /// Its cost and period, and how long its jobs take.
    pub(super) task: Interferer,
    /// Its relative deadline, at least the response time.
    pub(super) deadline: u64,
    /// How long a job is suspended at most; with its cost no more than the deadline.
    pub(super) suspended: u64,
}

/// What the tasks of the program execute in one window.
#[derive(Default)]
struct Works {
    /// By task, without what only tasks execute that have begun to before.
    least: Vec<u64>,
    /// Of the tasks that execute more if they have begun to before: how much more, and the place.
    more: Vec<(u64, usize)>,
}

/// A task under examination, and the windows that end at a deadline of its.
pub(super) struct Earlier<'a> {
    program: &'a Program,
    tasks: Vec<Delaying>,
    /// Where the task itself is in the program.
    own: usize,
    /// By task of the program: the smallest level around it, if that it executed before the window is limited. It is not where the task
    /// suspends itself, as its job may be suspended at the begin of the window.
    levels: Vec<Option<usize>>,
    prices: Prices,
}

impl Delaying {
    /// What its jobs that are released and due in so long a window execute.
    fn work_inside(&self, length: u64) -> u64 {
        let jobs = |rest: u64| self.task.period.divide(rest).0 + 1;
        let jobs = length.checked_sub(self.deadline).map_or(0, jobs);
        jobs.saturating_mul(self.task.cost)
    }

    /// What its jobs that are due in it execute in it, if some were released before.
    fn work_due(&self, length: u64) -> u64 {
        let slack = self.deadline - self.task.response;
        self.task.work_due(length, slack)
    }
}

impl<'a> Earlier<'a> {
    /// The task at `place` among all; `None` if nothing is known of it: it is in no level, or affinities are not nested.
    pub(super) fn new(
        program: &'a Program,
        place: usize,
        delaying: impl Fn(usize) -> Delaying,
    ) -> Option<Self> {
        let own = program.places.iter().position(|&other| other == place)?;
        let mut levels = vec![None; program.places.len()];
        let all = (1 << program.sizes.len()) - 1;
        for group in program.groups.iter().filter(|group| group.is_around) {
            let smallest = group.levels.trailing_zeros() as usize;
            if group.levels != all >> smallest << smallest {
                return None;
            }
            levels[group.members.clone()].fill(Some(smallest));
        }
        let mut tasks: Vec<Delaying> = program.places.iter().map(|&at| delaying(at)).collect();
        tasks[own].task.response = tasks[own].deadline;
        for (level, task) in levels.iter_mut().zip(&tasks) {
            *level = level.filter(|_| task.suspended == 0);
        }
        Some(Self {
            program,
            tasks,
            own,
            levels,
            prices: Prices::new(program)?,
        })
    }

    /// Whether every job of the task is shown to meet its deadline if the responses of the others hold and its own
    /// jobs before did; `None` when out of steps.
    ///
    /// The window of a job begins where jobs with its affinity and deadline would have begun to wait, or `at`
    /// before the release if that is later. In the first case few tasks carry work in, and all `at` up to that of the
    /// second are looked at, in blocks: what executes in a window grows with it.
    pub(super) fn is_in_time(&mut self, steps: &mut Steps) -> Option<bool> {
        let Delaying {
            task,
            deadline,
            suspended,
        } = self.tasks[self.own];
        let least = deadline / RESOLUTION + 1;
        let (mut at, mut size) = (0u64, deadline / 8 + 1);
        for _ in 0..BLOCKS_MAX {
            let spare = at + (deadline - task.cost - suspended);
            if self.all_carry_in(at + deadline, spare, steps)? {
                return Some(true);
            }
            while !self.few_carry_in(at + (size - 1) + deadline, spare, steps)? {
                if size <= least {
                    return Some(false);
                }
                size = (size / 2).max(least);
            }
            at = at.saturating_add(size);
            size = size.saturating_mul(2);
            if at.saturating_add(size) > u64::MAX / 4 {
                break;
            }
        }
        Some(false)
    }

    /// Whether the time waited in a window is at most `spare` if any task has begun to execute before it.
    fn all_carry_in(&mut self, length: u64, spare: u64, steps: &mut Steps) -> Option<bool> {
        let works = self.works(length, steps)?;
        let mut all = works.least;
        for (more, place) in works.more {
            all[place] += more;
        }
        let waited = self.prices.bound(self.program, &all, spare, steps)?;
        Some(waited <= u128::from(spare))
    }

    /// The same if no level was full just before the window, so that of the tasks around the own affinity fewer had begun
    /// inside each level than it has CPUs.
    fn few_carry_in(&mut self, length: u64, spare: u64, steps: &mut Steps) -> Option<bool> {
        let mut works = self.works(length, steps)?;
        // Prices for what is most at the price 1/size.
        let size = |place: usize| self.levels[place].map_or(1, |level| self.program.sizes[level]);
        let by_price =
            |&(more, place): &(u64, usize)| Reverse(i128::from(more) * 1_000 / size(place));
        works.more.sort_by_key(by_price);
        let mut likely = works.least.clone();
        self.carry_in(&works.more, |(more, place)| likely[place] += more);
        let waited = self.prices.bound(self.program, &likely, spare, steps)?;
        if waited > u128::from(spare) {
            return Some(false);
        }
        // They hold for the most that any choice of tasks adds to each cut.
        works.more.sort_by_key(|&(more, _)| Reverse(more));
        let waited = self.prices.bound_of(|counts| {
            let least = works.least.iter().zip(counts);
            let mut sum: u128 = least.map(|(work, counts)| u128::from(work & counts)).sum();
            let counted = works.more.iter().filter(|(_, place)| counts[*place] > 0);
            self.carry_in(counted, |(more, _)| sum += u128::from(more));
            i128::try_from(sum).ok()
        });
        Some(waited.is_some_and(|waited| waited <= u128::from(spare)))
    }

    /// Takes the first of `more`, in their order, as far as fewer are inside each level than it has CPUs. As levels are
    /// nested, the sum is the greatest if the order is from the greatest to the least.
    fn carry_in<'w>(
        &self,
        more: impl IntoIterator<Item = &'w (u64, usize)>,
        mut take: impl FnMut((u64, usize)),
    ) {
        let mut left: Vec<i128> = self.program.sizes.iter().map(|size| size - 1).collect();
        for &(more, place) in more {
            let around = &mut left[self.levels[place].unwrap_or(0)..];
            if around.iter().all(|&left| left > 0) {
                around.iter_mut().for_each(|left| *left -= 1);
                take((more, place));
            }
        }
    }

    fn works(&self, length: u64, steps: &mut Steps) -> Option<Works> {
        steps.take(2 * self.tasks.len())?;
        let mut works = Works::default();
        for (place, task) in self.tasks.iter().enumerate() {
            // The job itself does not delay itself.
            let of_job = if place == self.own { task.task.cost } else { 0 };
            let inside = task.work_inside(length) - of_job;
            let due = task.work_due(length) - of_job;
            let is_limited = self.levels[place].is_some();
            works.least.push(if is_limited { inside } else { due });
            if is_limited && inside < due {
                works.more.push((due - inside, place));
            }
        }
        Some(works)
    }
}
