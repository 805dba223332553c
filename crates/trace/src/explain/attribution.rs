//! Attribution: whether the deadline would have been met without each culprit, and the rule that selects the
//! cause.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use shiftwork_model::{CpuSet, Instant, JobId, Span};

use super::late_job::{LateJob, Times, add};
use super::piece::Piece;
use super::timeline::Slice;
use super::{Cause, Culprit, End, Explanation, Level, Part, Share};

/// What there is to explain a late job.
#[derive(Debug)]
pub(super) struct WalkResult<'a> {
    pub job: &'a LateJob,
    /// The row of jobs that ends with the job, each pending at the release of the next: number, release and
    /// remaining execution.
    pub row: Vec<(u64, Instant, Span)>,
    /// Without gaps from the release of the first of them on.
    pub pieces: &'a [Piece],
    pub timeline: Vec<Slice>,
}

/// The explanation of a late job, from the result of the walk.
pub(super) fn explained(found: WalkResult<'_>) -> Explanation {
    let shares = shares(&found);
    let job = found.job;
    Explanation {
        job: job.job,
        release: job.release,
        deadline: job.deadline,
        until: job.until,
        end: job.end,
        since: found
            .row
            .first()
            .map_or(job.release, |&(_, since, _)| since),
        remaining: job.remaining,
        parts: job.parts.clone(),
        own: own(&found),
        origin: None,
        cause: cause(&found, &shares),
        shares,
        mutexes: job.mutexes.clone(),
        timeline: found.timeline,
    }
}

/// The intervals in which the job itself was the oldest of its task.
fn own(found: &WalkResult<'_>) -> Vec<(Instant, Instant, Part)> {
    let own = found
        .pieces
        .iter()
        .filter(|piece| piece.number == found.job.job.number);
    own.map(|piece| (piece.from, piece.to, piece.part))
        .collect()
}

fn shares(found: &WalkResult<'_>) -> Vec<Share> {
    let mut sums = Times::new();
    for piece in found.pieces {
        for &(culprit, cpus) in &piece.without {
            add(&mut sums, culprit, found.counted(piece), cpus);
        }
    }
    sums.retain(|_, (time, _)| !time.is_zero());
    let LateJob {
        end,
        until,
        deadline,
        ..
    } = *found.job;
    let left_early = end == End::Dropped && until <= deadline;
    if left_early {
        let time = deadline.late_since(until);
        sums.insert(Culprit::TaskLeft, (time, CpuSet::EMPTY));
    }
    let share = |(culprit, (time, cpus))| Share {
        culprit,
        time,
        cpus,
        suffices: match left_early {
            // The job was dropped before its deadline: no other culprit made it late.
            true => culprit == Culprit::TaskLeft,
            false => found.is_on_time_without(&[culprit]),
        },
    };
    let mut shares: Vec<Share> = sums.into_iter().map(share).collect();
    shares.sort_by_key(|share| (Reverse(share.time), share.culprit));
    shares
}

/// The rule of [`Cause`].
fn cause(found: &WalkResult<'_>, shares: &[Share]) -> Cause {
    let one = |level| {
        let enough = shares
            .iter()
            .filter(|share| share.suffices && share.culprit.level() == level);
        let least = enough.min_by_key(|share| (share.time, share.culprit));
        least.map(|share| Cause::One(share.culprit))
    };
    let several = |last| {
        let mut together: Vec<Culprit> = shares.iter().map(|share| share.culprit).collect();
        together.retain(|culprit| culprit.level() <= last);
        together.sort_by_key(|culprit| culprit.level());
        let is_enough = found.is_on_time_without(&together);
        is_enough.then(|| Cause::Several(needed(found, together)))
    };
    one(Level::Fault)
        .or_else(|| one(Level::Setting))
        .or_else(|| several(Level::Setting))
        .or_else(|| one(Level::Demand))
        .or_else(|| several(Level::Demand))
        .unwrap_or(Cause::OwnDemand)
}

/// Removes culprits that are not needed for the others to suffice, the last ones first.
fn needed(found: &WalkResult<'_>, mut together: Vec<Culprit>) -> Vec<Culprit> {
    for index in (0..together.len()).rev() {
        let mut fewer = together.clone();
        fewer.remove(index);
        if found.is_on_time_without(&fewer) {
            together = fewer;
        }
    }
    together
}

impl WalkResult<'_> {
    /// The part of the piece that counts for the miss: the time before the deadline, and of the time after it
    /// the execution that was already pending at the deadline, of the job, of earlier jobs of its task, or of
    /// more urgent jobs. Jobs released when the job was already late did not cause the miss.
    fn counted(&self, piece: &Piece) -> Span {
        let was_due = match piece.part {
            Part::Executing
            | Part::OwnOverrun
            | Part::Suspended
            | Part::Blocked(_)
            | Part::Spinning(_)
            | Part::Throttled => true,
            Part::MoreUrgent(_) | Part::Overrun(_) => piece.youngest < self.job.deadline,
            _ => false,
        };
        let to = if was_due {
            piece.to
        } else {
            piece.to.min(self.job.deadline)
        };
        to.late_since(piece.from)
    }

    /// Whether the job would have met its deadline without these culprits, all else being equal: the time in which
    /// its task had a CPU, or would have had one, is reassigned to the jobs of the row, the oldest first, and to
    /// each not before its release. Pending execution of other jobs at the deadline precedes the job.
    fn is_on_time_without(&self, culprits: &[Culprit]) -> bool {
        let is_gone = |piece: &Piece| {
            let goes = |(culprit, _): &(Culprit, CpuSet)| culprits.contains(culprit);
            piece.without.iter().any(goes)
        };
        let mut queue = self.demands(is_gone);
        for piece in self.pieces {
            if has_cpu(piece) || is_gone(piece) {
                queue.serve(piece.from, piece.to.min(self.job.deadline));
            }
        }
        queue.is_done()
    }

    /// The execution that the jobs of the row need.
    fn demands(&self, is_gone: impl Fn(&Piece) -> bool) -> Queue {
        let mut needs: BTreeMap<u64, Span> = BTreeMap::new();
        for piece in self.pieces.iter().filter(|piece| !is_gone(piece)) {
            let own = if has_cpu(piece) {
                piece.to.late_since(piece.from)
            } else {
                let early = self.job.deadline.late_since(piece.from);
                self.counted(piece).saturating_sub(early)
            };
            *needs.entry(piece.number).or_default() += own;
        }
        let job = |&(number, release, left): &(u64, Instant, Span)| {
            let needs = needs.get(&number).copied().unwrap_or_default();
            (release, needs + left)
        };
        Queue(self.row.iter().map(job).collect())
    }
}

/// Whether the job has a CPU, executing or not.
const fn has_cpu(piece: &Piece) -> bool {
    matches!(
        piece.part,
        Part::Executing | Part::OwnOverrun | Part::Interrupted
    )
}

/// The incomplete jobs: the release of each, and the execution that it needs.
struct Queue(VecDeque<(Instant, Span)>);

impl Queue {
    /// Gives the jobs a CPU from `from` to `to`.
    fn serve(&mut self, from: Instant, to: Instant) {
        let mut at = from;
        while let Some((release, needs)) = self.0.front_mut() {
            at = at.max(*release);
            let had = to.late_since(at).min(*needs);
            *needs -= had;
            at += had;
            if !needs.is_zero() {
                return;
            }
            self.0.pop_front();
        }
    }

    fn is_done(&self) -> bool {
        self.0.iter().all(|(_, needs)| needs.is_zero())
    }
}

/// A job in texts.
pub(super) fn named(names: &[&str], job: JobId) -> String {
    match names.get(job.task.index()) {
        Some(name) => format!("job {} of {name}", job.number),
        None => format!("job {} of an unknown task", job.number),
    }
}
