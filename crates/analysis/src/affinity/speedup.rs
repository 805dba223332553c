//! By how much faster CPUs EDF with the strong invariant makes up for being EDF, if affinities are nested.

use num_bigint::BigInt;
use num_rational::Ratio;
use shiftwork_model::CpuSet;

use super::family::Family;

/// The least speed s such that EDF with the strong invariant meets all deadlines on CPUs of speed s of
/// every collection of jobs that some scheduler can schedule in time on CPUs of speed 1, for jobs with
/// these affinities. `None` if there are none, if one is empty, or if two overlap without nesting.
///
/// It is the greatest of the components' s(root), with s(g) the greatest of 2 - 1/|g| and of
/// s(h) + 1 - |h|/|g| for the children h of g: 2 - 1/m for m CPUs that all jobs share or that have
/// pinned jobs besides, 3 - k/m - 1/k for clusters of k, 1 + 1/2 + .. + 1/m for CPUs 0, 0-1, .., 0-(m-1).
///
/// # Cost
/// O(k log k + s) for k distinct affinities of s CPUs in all, and a sum of fractions for each.
///
/// # Source
/// Theorem 2 of `docs/theory/strong-edf.md`, not refereed. For one affinity C. Phillips, C. Stein, E.
/// Torng, J. Wein, "Optimal Time-Critical Scheduling via Resource Augmentation", STOC 1997. For two
/// levels it replaces the upper bounds of V. Bonifaci, B. Brandenburg, G. D'Angelo, A.
/// Marchetti-Spaccamela, "Multiprocessor Real-Time Scheduling with Hierarchical Processor
/// Affinities", ECRTS 2016, Theorem IV.8.
pub fn speedup_factor(affinities: &[CpuSet]) -> Option<Ratio<BigInt>> {
    let family = Family::of(affinities.iter()).ok()?;
    let fraction = |of: usize, cpus: usize| Ratio::new(BigInt::from(of), BigInt::from(cpus));
    let nodes = family.nodes();
    // By node s(g), from the leaves up.
    let mut speeds: Vec<Ratio<BigInt>> = nodes
        .iter()
        .map(|node| fraction(2 * node.cpus - 1, node.cpus))
        .collect();
    for (place, node) in nodes.iter().enumerate().rev() {
        if let Some(parent) = node.parent {
            let cpus = nodes[parent].cpus;
            let speed = &speeds[place] + fraction(cpus - node.cpus, cpus);
            if speed > speeds[parent] {
                speeds[parent] = speed;
            }
        }
    }
    speeds.into_iter().max()
}
