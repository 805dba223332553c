//! The shift chain that would have made room for a waiting job.

use shiftwork_model::{CpuId, Instant, JobId};
use shiftwork_trace::shift_chain::shortest;

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
pub(super) fn find(context: Context<'_>, job: JobId, at: Instant) -> Option<ShiftChain> {
    let line = context.line;
    let running = |cpu: CpuId| line.running(cpu.index(), at);
    let affinity_on = |cpu| running(cpu).map(|job| context.cpus(job.task, at));
    let is_end = |cpu| match running(cpu) {
        Some(other) => context.before(job, other, at) == Some(true),
        None => line.absent(cpu.index(), at).is_none(),
    };
    let own = context.cpus(job.task, at);
    let chain = shortest(line.cpus.len(), &own, affinity_on, is_end)?;
    let shift = |pair: &[CpuId]| {
        let (from, to) = (pair[0], pair[1]);
        running(from).map(|job| Move { job, from, to })
    };
    Some(ShiftChain {
        moves: chain.windows(2).rev().filter_map(shift).collect(),
        displaced: chain.last().and_then(|&cpu| running(cpu)),
    })
}
