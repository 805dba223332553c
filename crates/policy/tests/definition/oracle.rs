//! What ought to run, executed from the definitions. Slow, and therefore believable.

use shiftwork_model::{CpuId, CpuSet};

/// A ready job as the definitions see it: its rank (smaller is more urgent, all different) and the
/// CPUs that it may use now.
#[derive(Clone, Debug)]
pub struct Ready {
    pub task: usize,
    pub rank: u64,
    pub cpus: CpuSet,
}

/// The greedy set: most urgent first, keep a job if the kept set still fits on the CPUs (judged by
/// bipartite matching).
pub fn greedy_set(ready: &[Ready]) -> Vec<usize> {
    let mut by_rank: Vec<&Ready> = ready.iter().collect();
    by_rank.sort_by_key(|job| job.rank);
    let mut owner: Vec<Option<usize>> = vec![None; shiftwork_model::CPUS_MAX];
    let mut kept = Vec::new();
    for job in &by_rank {
        let mut visited = CpuSet::EMPTY;
        if augment(job, &by_rank, &mut owner, &mut visited) {
            kept.push(job.task);
        }
    }
    kept.sort_unstable();
    kept
}

fn augment(job: &Ready, all: &[&Ready], owner: &mut [Option<usize>], visited: &mut CpuSet) -> bool {
    for cpu in job.cpus.iter() {
        if visited.contains(cpu) {
            continue;
        }
        visited.insert(cpu);
        let free = match owner[cpu.index()] {
            None => true,
            Some(task) => {
                let other = all.iter().find(|other| other.task == task).unwrap();
                augment(other, all, owner, visited)
            }
        };
        if free {
            owner[cpu.index()] = Some(job.task);
            return true;
        }
    }
    false
}

/// Algorithm 1 of Bonifaci et al. 2016 as written (with the erratum `max(0, |S| - |alpha|)`), for
/// laminar affinities.
pub fn algorithm_1(ready: &[Ready]) -> Vec<usize> {
    let mut admitted: Vec<bool> = vec![true; ready.len()];
    let mut marked = vec![false; ready.len()];
    while let Some(i) = next_unmarked(ready, &marked) {
        let alpha = ready[i].cpus;
        let mut s: Vec<usize> = (0..ready.len())
            .filter(|&k| admitted[k] && ready[k].cpus.is_subset(&alpha))
            .collect();
        s.sort_by_key(|&k| ready[k].rank);
        for &k in s.iter().skip(alpha.len()) {
            admitted[k] = false;
        }
        for k in 0..ready.len() {
            marked[k] |= ready[k].cpus == alpha;
        }
    }
    let mut set: Vec<usize> = (0..ready.len())
        .filter(|&k| admitted[k])
        .map(|k| ready[k].task)
        .collect();
    set.sort_unstable();
    set
}

/// Some i that is not marked while all with a proper subset of its affinity are.
fn next_unmarked(ready: &[Ready], marked: &[bool]) -> Option<usize> {
    let smaller = |k: usize, i: usize| {
        ready[k].cpus != ready[i].cpus && ready[k].cpus.is_subset(&ready[i].cpus)
    };
    (0..ready.len()).find(|&i| !marked[i] && (0..ready.len()).all(|k| !smaller(k, i) || marked[k]))
}

/// Algorithm 2 of Bonifaci et al. 2016 as written: assigns the admitted jobs bottom-up, each to any
/// unused CPU of its affinity. Whether that always succeeds is their Lemma III.1.
pub fn algorithm_2_succeeds(ready: &[Ready], admitted: &[usize]) -> bool {
    let mut jobs: Vec<&Ready> = ready
        .iter()
        .filter(|job| admitted.contains(&job.task))
        .collect();
    jobs.sort_by_key(|job| job.cpus.len());
    let mut unused = CpuSet::first(shiftwork_model::CPUS_MAX);
    jobs.iter().all(|job| match (job.cpus & unused).lowest() {
        Some(cpu) => {
            unused.remove(cpu);
            true
        }
        None => false,
    })
}

/// The fewest scheduled jobs that must change CPU from `before` so that exactly `set` is scheduled:
/// dynamic programming over the subsets of CPUs in use, for up to about 10 CPUs.
pub fn fewest_shifts(before: &[Option<usize>], ready: &[Ready], set: &[usize]) -> usize {
    const IMPOSSIBLE: usize = usize::MAX / 2;
    let cpus = before.len();
    let mut best = vec![IMPOSSIBLE; 1 << cpus];
    best[0] = 0;
    for &task in set {
        let job = ready.iter().find(|job| job.task == task).unwrap();
        let home = before.iter().position(|&runner| runner == Some(task));
        let mut next = vec![IMPOSSIBLE; 1 << cpus];
        for used in 0..1usize << cpus {
            if best[used] == IMPOSSIBLE {
                continue;
            }
            for cpu in (0..cpus).filter(|&cpu| used >> cpu & 1 == 0) {
                if job.cpus.contains(CpuId::from_index(cpu)) {
                    let shift = usize::from(home.is_some_and(|home| home != cpu));
                    let slot = &mut next[used | 1 << cpu];
                    *slot = (*slot).min(best[used] + shift);
                }
            }
        }
        best = next;
    }
    best.into_iter().min().unwrap()
}

/// Def. II.1: the weak invariant. `placed` is the job of each CPU.
pub fn keeps_weak_invariant(ready: &[Ready], placed: &[Option<usize>]) -> bool {
    let rank = |task: usize| ready.iter().find(|job| job.task == task).unwrap().rank;
    ready
        .iter()
        .filter(|job| !placed.contains(&Some(job.task)))
        .all(|waiting| {
            waiting
                .cpus
                .iter()
                .all(|cpu| placed[cpu.index()].is_some_and(|t| rank(t) < waiting.rank))
        })
}

/// The ready jobs that keep the CPUs on which they ran `before`, and all that run: those and as many of the
/// most urgent others as there are CPUs left. For jobs that may use every CPU.
pub fn non_preemptive_set(
    ready: &[Ready],
    before: &[Option<usize>],
    online: impl Fn(usize) -> bool,
) -> (Vec<(usize, usize)>, Vec<usize>) {
    let is_ready = |task: usize| ready.iter().any(|job| job.task == task);
    let cpus: Vec<usize> = (0..before.len()).filter(|&cpu| online(cpu)).collect();
    let kept: Vec<(usize, usize)> = cpus
        .iter()
        .filter_map(|&cpu| Some((cpu, before[cpu].filter(|&task| is_ready(task))?)))
        .collect();
    let mut set: Vec<usize> = kept.iter().map(|&(_, task)| task).collect();
    let mut waiting: Vec<&Ready> = ready
        .iter()
        .filter(|job| !set.contains(&job.task))
        .collect();
    waiting.sort_by_key(|job| job.rank);
    let free = cpus.len() - kept.len();
    set.extend(waiting.iter().take(free).map(|job| job.task));
    set.sort_unstable();
    (kept, set)
}
