//! The definition: schedules of one CPU, one unit of time after the other, and the longest responses in them.

use super::Plain;
use super::ticks::lcm;

/// What is unfinished of a task's jobs, which run one after the other.
#[derive(Clone, Default)]
struct Backlog {
    releases: Vec<u64>,
    first: usize,
    /// Of the first job that is not finished.
    left: u64,
}

impl Backlog {
    fn release(&mut self, now: u64, cost: u64) {
        if self.first == self.releases.len() {
            self.left = cost;
        }
        self.releases.push(now);
    }

    fn oldest(&self) -> Option<u64> {
        self.releases.get(self.first).copied()
    }

    /// One unit of work; the release of the job that it ends, if it ends one.
    fn run(&mut self, cost: u64) -> Option<u64> {
        self.left -= 1;
        if self.left > 0 {
            return None;
        }
        let release = self.oldest();
        self.first += 1;
        self.left = cost;
        release
    }
}

/// The first unfinished job of a task, to be ranked.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) task: usize,
    pub(super) release: u64,
    pub(super) deadline: u64,
}

/// Runs one CPU for a unit of time from `now` on; the smallest rank goes first. Adds to `longest`.
fn tick<Rank: Ord>(
    (tasks, backlogs): (&[Plain], &mut [Backlog]),
    now: u64,
    rank: impl Fn(Head) -> Rank,
    longest: &mut [u64],
) {
    let heads = (0..tasks.len()).filter_map(|task| {
        let release = backlogs[task].oldest()?;
        let deadline = release + tasks[task].deadline;
        Some(Head {
            task,
            release,
            deadline,
        })
    });
    let Some(next) = heads.min_by_key(|&head| rank(head)) else {
        return;
    };
    if let Some(release) = backlogs[next.task].run(tasks[next.task].cost) {
        longest[next.task] = longest[next.task].max(now + 1 - release);
    }
}

/// The longest responses where the tasks are released every period from these offsets on, for so long,
/// and all that is released is finished.
fn responses_from<Rank: Ord>(
    tasks: &[Plain],
    offsets: &[u64],
    until: u64,
    rank: impl Fn(Head) -> Rank + Copy,
) -> Vec<u64> {
    let mut backlogs = vec![Backlog::default(); tasks.len()];
    let mut longest = vec![0; tasks.len()];
    let mut now = 0;
    while now < until || backlogs.iter().any(|backlog| backlog.oldest().is_some()) {
        for ((task, &offset), backlog) in tasks.iter().zip(offsets).zip(&mut backlogs) {
            if now < until && now >= offset && (now - offset) % task.period == 0 {
                backlog.release(now, task.cost);
            }
        }
        tick((tasks, &mut backlogs), now, rank, &mut longest);
        now += 1;
    }
    longest
}

/// The longest responses over all offsets, below the periods, of all tasks.
pub(super) fn worst_over_offsets<Rank: Ord>(
    tasks: &[Plain],
    rank: impl Fn(Head) -> Rank + Copy,
) -> Vec<u64> {
    let hyperperiod = tasks.iter().fold(1, |all, task| lcm(all, task.period));
    let until = 2 * hyperperiod + tasks.iter().map(|task| task.period).max().unwrap();
    let mut offsets = vec![0; tasks.len()];
    let mut worst = vec![0; tasks.len()];
    loop {
        let seen = responses_from(tasks, &offsets, until, rank);
        worst
            .iter_mut()
            .zip(seen)
            .for_each(|(worst, seen)| *worst = seen.max(*worst));
        let Some(place) = (0..tasks.len()).find(|&place| offsets[place] + 1 < tasks[place].period)
        else {
            return worst;
        };
        offsets[place] += 1;
        offsets[..place].fill(0);
    }
}

/// The worst response of each task where it loses all ties between deadlines.
pub(super) fn edf_by_definition(tasks: &[Plain]) -> Vec<u64> {
    let of_task = |own: usize| {
        let rank = move |head: Head| (head.deadline, head.task == own, head.release, head.task);
        worst_over_offsets(tasks, rank)[own]
    };
    (0..tasks.len()).map(of_task).collect()
}

/// Goes through all patterns of releases a period or more apart up to `until`.
struct Patterns<'a, Rank> {
    tasks: &'a [Plain],
    until: u64,
    rank: Rank,
    worst: Vec<u64>,
}

impl<Rank: Fn(Head) -> (u64, bool) + Copy> Patterns<'_, Rank> {
    fn from(&mut self, now: u64, backlogs: &[Backlog]) {
        if now == self.until {
            let mut backlogs = backlogs.to_vec();
            for now in now.. {
                if backlogs.iter().all(|backlog| backlog.oldest().is_none()) {
                    return;
                }
                tick((self.tasks, &mut backlogs), now, self.rank, &mut self.worst);
            }
        }
        let may = |task: usize| {
            let last = backlogs[task].releases.last();
            last.is_none_or(|last| now - last >= self.tasks[task].period)
        };
        let free: Vec<usize> = (0..self.tasks.len()).filter(|&task| may(task)).collect();
        for choice in 0..1u32 << free.len() {
            let mut backlogs = backlogs.to_vec();
            for (bit, &task) in free.iter().enumerate() {
                if choice >> bit & 1 == 1 {
                    backlogs[task].release(now, self.tasks[task].cost);
                }
            }
            tick((self.tasks, &mut backlogs), now, self.rank, &mut self.worst);
            self.from(now + 1, &backlogs);
        }
    }
}

/// The worst response of each task over all sporadic releases up to a time.
pub(super) fn worst_over_patterns(
    tasks: &[Plain],
    until: u64,
    rank: impl Fn(usize, Head) -> (u64, bool) + Copy,
) -> Vec<u64> {
    let of_task = |own: usize| {
        let mut patterns = Patterns {
            tasks,
            until,
            rank: move |head: Head| rank(own, head),
            worst: vec![0; tasks.len()],
        };
        patterns.from(0, &vec![Backlog::default(); tasks.len()]);
        patterns.worst[own]
    };
    (0..tasks.len()).map(of_task).collect()
}
