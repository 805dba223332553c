//! Whether shifts of running jobs could have made room for a waiting one: the strong invariant
//! (Bonifaci et al. 2016, Def. II.2) at one moment of a recorded run.

use std::collections::VecDeque;

use shiftwork_model::{CpuId, Instant, JobId};

use super::{Context, Move};

/// A shortest chain of shifts that would have given the job a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShiftChain {
    /// The last job of the chain first, the order in which the shifts are carried out.
    pub moves: Vec<Move>,
    /// The job that would have lost its CPU at the end of the chain; `None` if that CPU was idle.
    pub displaced: Option<JobId>,
}

/// A shortest chain of at least one shift that gives `job` a CPU just after `at`, and ends on a CPU
/// that is idle or, if ranks are known, runs a less urgent job.
///
/// Breadth first over the CPUs: O(m²) for m CPUs.
pub(super) fn find(context: Context<'_>, job: JobId, at: Instant) -> Option<ShiftChain> {
    let line = context.line;
    let cpus = line.cpus.len();
    let mut came_from: Vec<Option<usize>> = vec![None; cpus];
    let mut seen = vec![false; cpus];
    let mut frontier = VecDeque::new();
    let in_range = |cpu: &CpuId| cpu.index() < cpus;
    for cpu in context.cpus(job.task, at).iter().filter(in_range) {
        seen[cpu.index()] = true;
        frontier.push_back(cpu.index());
    }
    while let Some(cpu) = frontier.pop_front() {
        let Some(occupant) = line.running(cpu, at) else {
            continue;
        };
        for next in context.cpus(occupant.task, at).iter().filter(in_range) {
            let next = next.index();
            if core::mem::replace(&mut seen[next], true) {
                continue;
            }
            came_from[next] = Some(cpu);
            let other = line.running(next, at);
            let idle = other.is_none() && line.absent(next, at).is_none();
            let lesser = |other| context.before(job, other, at) == Some(true);
            if idle || other.is_some_and(lesser) {
                let moves = moves(context, &came_from, next, at);
                return Some(ShiftChain {
                    moves,
                    displaced: other,
                });
            }
            frontier.push_back(next);
        }
    }
    None
}

/// The chain that ends on CPU `last`.
fn moves(context: Context<'_>, came_from: &[Option<usize>], last: usize, at: Instant) -> Vec<Move> {
    let mut moves = Vec::new();
    let mut to = last;
    while let Some(from) = came_from[to] {
        let job = context
            .line
            .running(from, at)
            .expect("a chain goes through busy CPUs");
        moves.push(Move {
            job,
            from: CpuId::from_index(from),
            to: CpuId::from_index(to),
        });
        to = from;
    }
    moves
}
