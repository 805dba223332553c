//! Jobs on CPUs that are alike, one unit of time after the other: the definition that bounds and
//! verdicts are held against.

#![allow(dead_code, reason = "not every test uses all of it")]

use shiftwork_analysis::Sporadic;
use shiftwork_model::{RandomStream, Span};

/// A task with times in nanoseconds.
pub fn sporadic(cost: u64, period: u64, deadline: u64) -> Sporadic {
    Sporadic {
        cost: Span::from_ns(cost),
        period: Span::from_ns(period),
        deadline: Span::from_ns(deadline),
    }
}

/// A job that is not finished.
pub struct Job {
    pub task: usize,
    pub release: u64,
    pub deadline: u64,
    left: u64,
    begun: bool,
}

/// How jobs run.
pub struct Rules<Rank> {
    pub cpus: usize,
    /// The smaller the more urgent.
    pub rank: Rank,
    /// Whether a job that has begun may be interrupted.
    pub preemptive: bool,
}

/// When each task releases jobs, ascending.
pub type Releases = Vec<Vec<u64>>;

/// The longest response time of each task. A task's jobs run one after the other; ties go to the
/// job released first, then to the lower index.
pub fn responses<Rank: Fn(&Job) -> u64>(
    tasks: &[Sporadic],
    releases: &Releases,
    rules: &Rules<Rank>,
) -> Vec<u64> {
    let mut longest = vec![0; tasks.len()];
    let mut pending: Vec<Job> = Vec::new();
    let mut next = vec![0; tasks.len()];
    for now in 0.. {
        for (task, times) in releases.iter().enumerate() {
            while next[task] < times.len() && times[next[task]] == now {
                next[task] += 1;
                pending.push(Job {
                    task,
                    release: now,
                    deadline: now + tasks[task].deadline.as_ns(),
                    left: tasks[task].cost.as_ns(),
                    begun: false,
                });
            }
        }
        let all_released = (0..tasks.len()).all(|task| next[task] == releases[task].len());
        if pending.is_empty() && all_released {
            break;
        }
        let stays = |job: &Job| !rules.preemptive && job.begun;
        pending.sort_by_key(|job| (!stays(job), (rules.rank)(job), job.release, job.task));
        let mut seen = vec![false; tasks.len()];
        let mut free = rules.cpus;
        // A job waits for the earlier ones of its task, which come first: an earlier release never
        // has the later rank.
        for job in &mut pending {
            if free > 0 && !std::mem::replace(&mut seen[job.task], true) {
                free -= 1;
                job.begun = true;
                job.left -= 1;
                if job.left == 0 {
                    longest[job.task] = longest[job.task].max(now + 1 - job.release);
                }
            }
        }
        pending.retain(|job| job.left > 0);
    }
    longest
}

/// All tasks at once and then as soon as they may, or from any offset, or with gaps.
pub fn releases(tasks: &[Sporadic], until: u64, stream: &mut RandomStream) -> Releases {
    let kind = stream.below(3);
    let mut of_task = |task: &Sporadic| {
        let period = task.period.as_ns();
        let mut at = match kind {
            0 => 0,
            _ => stream.below(2 * period),
        };
        let mut times = Vec::new();
        while at < until {
            times.push(at);
            at += period
                + match kind {
                    2 => stream.below(period) * stream.below(2),
                    _ => 0,
                };
        }
        times
    };
    tasks.iter().map(&mut of_task).collect()
}

pub fn lcm(a: u64, b: u64) -> u64 {
    let (mut high, mut low) = (a, b);
    while low > 0 {
        (high, low) = (low, high % low);
    }
    a / high * b
}

/// How many times as many random cases as usual.
pub fn factor() -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 20,
        None => 1,
    }
}
