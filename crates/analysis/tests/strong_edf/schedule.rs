//! EDF with the strong invariant by its definition, in whole units of time.

use std::collections::VecDeque;

/// A job as an adversary releases it.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub release: u64,
    pub cost: u64,
    pub deadline: u64,
}

/// A task with an unfinished job.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    pub task: usize,
    /// Of its current job.
    pub deadline: u64,
    /// How long the current job has run.
    pub executed: u64,
}

/// What jobs came to.
#[derive(Debug, Default)]
pub struct Finished {
    /// The longest response time of each task.
    pub responses: Vec<u64>,
    /// Whether a job finished after its deadline.
    pub is_late: bool,
}

/// Runs the jobs of each task, which are in order and run one after the other, until all are done.
///
/// `tie` orders tasks with equal deadlines, anew at each decision, the least first. `observe` sees the time and
/// the pending tasks at each instant at which anything changes, before and after it.
pub fn run(
    masks: &[u64],
    jobs: &[Vec<Job>],
    tie: &mut dyn FnMut(usize) -> u64,
    observe: &mut dyn FnMut(u64, &[Pending]),
) -> Finished {
    let mut future: Vec<VecDeque<Job>> = jobs
        .iter()
        .map(|jobs| jobs.iter().copied().collect())
        .collect();
    let mut released: Vec<VecDeque<Job>> = vec![VecDeque::new(); masks.len()];
    let mut executed = vec![0; masks.len()];
    let mut finished = Finished {
        responses: vec![0; masks.len()],
        is_late: false,
    };
    let mut now = 0;
    loop {
        for (future, released) in future.iter_mut().zip(&mut released) {
            while future.front().is_some_and(|job| job.release <= now) {
                released.extend(future.pop_front());
            }
        }
        let pending = pending(&released, &executed);
        observe(now, &pending);
        let running = running(masks, &pending, tie);
        let left = |task: &usize| released[*task][0].cost - executed[*task];
        let completion = running.iter().map(left).min().map(|left| now + left);
        let release = future.iter().filter_map(|jobs| jobs.front());
        let release = release.map(|job| job.release).min();
        let Some(next) = completion.into_iter().chain(release).min() else {
            return finished;
        };
        running
            .iter()
            .for_each(|&task| executed[task] += next - now);
        now = next;
        observe(now, &self::pending(&released, &executed));
        for task in running {
            let job = released[task][0];
            if executed[task] == job.cost {
                released[task].pop_front();
                executed[task] = 0;
                finished.is_late |= now > job.deadline;
                finished.responses[task] = finished.responses[task].max(now - job.release);
            }
        }
    }
}

fn pending(released: &[VecDeque<Job>], executed: &[u64]) -> Vec<Pending> {
    let current = released.iter().zip(executed).enumerate();
    let current = current.filter_map(|(task, (jobs, &executed))| {
        Some(Pending {
            task,
            deadline: jobs.front()?.deadline,
            executed,
        })
    });
    current.collect()
}

/// The earliest deadlines first, each kept if those that are kept still have a CPU each.
fn running(masks: &[u64], pending: &[Pending], tie: &mut dyn FnMut(usize) -> u64) -> Vec<usize> {
    let mut order: Vec<(u64, u64, usize)> = pending
        .iter()
        .map(|one| (one.deadline, tie(one.task), one.task))
        .collect();
    order.sort_unstable();
    let mut on: [Option<usize>; 64] = [None; 64];
    let kept = order.into_iter().map(|(_, _, task)| task);
    kept.filter(|&task| finds_a_cpu(task, masks, &mut on, &mut 0))
        .collect()
}

/// Places the task, and moves others if need be. Nothing has changed if it cannot be placed.
fn finds_a_cpu(task: usize, masks: &[u64], on: &mut [Option<usize>; 64], seen: &mut u64) -> bool {
    for cpu in (0..64).filter(|cpu| masks[task] >> cpu & 1 == 1) {
        if *seen >> cpu & 1 == 1 {
            continue;
        }
        *seen |= 1 << cpu;
        if on[cpu].is_none_or(|other| finds_a_cpu(other, masks, on, seen)) {
            on[cpu] = Some(task);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_job_moves_another_aside() {
        let job = |cost, deadline| {
            vec![Job {
                release: 0,
                cost,
                deadline,
            }]
        };
        // The first may use both CPUs, the second is pinned to CPU 0, the third to CPU 1.
        let masks = [0b11, 0b01, 0b10];
        let jobs = [job(4, 5), job(3, 6), job(2, 7)];
        let mut seen = Vec::new();
        let finished = run(&masks, &jobs, &mut |_| 0, &mut |now, pending| {
            let executed = pending.iter().map(|one| one.executed);
            seen.push((now, pending.len(), executed.sum::<u64>()));
        });
        assert_eq!(finished.responses, [4, 3, 5]);
        assert!(!finished.is_late);
        assert_eq!(
            seen,
            [
                (0, 3, 0),
                (3, 3, 6),
                (3, 2, 3),
                (4, 2, 5),
                (4, 1, 1),
                (5, 1, 2),
                (5, 0, 0)
            ]
        );
    }
}
