//! The definition of strong scheduling, executed: the most urgent jobs that fit, each on a CPU of its own that it may use.

use shiftwork_model::CpuSet;

/// A ready job: the smaller rank is the more urgent one.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    pub task: usize,
    pub rank: u64,
    pub affinity: CpuSet,
}

/// The tasks whose jobs have to run on these CPUs, whatever ties are resolved to.
pub fn must_run(ready: &[Candidate], available: &CpuSet) -> Vec<usize> {
    let is_kept = |of: &&Candidate| {
        let mut order: Vec<&Candidate> = ready.iter().collect();
        // Of equal ranks all others come first.
        order.sort_by_key(|it| (it.rank, it.task == of.task));
        let before = order.iter().take_while(|it| it.task != of.task);
        let mut kept = before.fold(Vec::new(), |mut kept: Vec<&Candidate>, it| {
            kept.push(it);
            if !fits(&kept, available) {
                kept.pop();
            }
            kept
        });
        kept.push(of);
        fits(&kept, available)
    };
    ready.iter().filter(is_kept).map(|it| it.task).collect()
}

/// Whether each has a CPU of its own.
fn fits(jobs: &[&Candidate], available: &CpuSet) -> bool {
    let Some((first, rest)) = jobs.split_first() else {
        return true;
    };
    (first.affinity & *available).iter().any(|cpu| {
        let mut left = *available;
        left.remove(cpu);
        fits(rest, &left)
    })
}

/// Small sets whose answer is known, as [`must_run`] is what others are judged by.
pub fn definition_selects_known_sets() -> Result<(), String> {
    let all = CpuSet::from_bits(0b110);
    let job = |task: usize, rank, cpus| Candidate {
        task,
        rank,
        affinity: CpuSet::from_bits(cpus),
    };
    let cases: [(&[Candidate], &[usize]); 6] = [
        (&[], &[]),
        // The second is shifted to CPU 2.
        (&[job(0, 2, 0b110), job(1, 1, 0b010)], &[0, 1]),
        // CPU 2 stays empty: both want CPU 1 alone.
        (&[job(0, 2, 0b010), job(1, 1, 0b010)], &[1]),
        // The least urgent of three.
        (
            &[job(0, 1, 0b110), job(1, 3, 0b110), job(2, 2, 0b100)],
            &[0, 2],
        ),
        // Either of two equal ones.
        (&[job(0, 5, 0b010), job(1, 5, 0b010)], &[]),
        // CPU 3 is not there.
        (&[job(0, 1, 0b1000), job(1, 2, 0b100)], &[1]),
    ];
    for (ready, wanted) in cases {
        let found = must_run(ready, &all);
        if found != wanted {
            return Err(format!("{ready:?}: {found:?} instead of {wanted:?}"));
        }
    }
    Ok(())
}
