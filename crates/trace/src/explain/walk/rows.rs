//! The rows of jobs that end with those to be explained, found beforehand: only their time is kept piece by piece.

use std::collections::VecDeque;

use shiftwork_model::RecordKind;

use crate::explain::Recording;
use crate::explain::history::TaskHistory;

/// The pending jobs of a task, and the first of the row that they continue.
#[derive(Clone, Debug, Default)]
struct Open {
    first: u64,
    pending: VecDeque<u64>,
}

/// Finds the rows, each from the release of a job without pending predecessors to a job to be explained.
pub(super) fn find(recording: Recording<'_>, histories: &mut [TaskHistory]) {
    let has_explained = |history: &TaskHistory| !history.followed.explained.is_empty();
    let mut tasks: Vec<Option<Open>> = histories
        .iter()
        .map(|history| has_explained(history).then(Open::default))
        .collect();
    if tasks.iter().all(Option::is_none) {
        return;
    }
    for record in recording.in_window() {
        match record.kind {
            RecordKind::Released { job, .. } => {
                let Some(Some(open)) = tasks.get_mut(job.task.index()) else {
                    continue;
                };
                if open.pending.is_empty() {
                    open.first = job.number;
                }
                open.pending.push_back(job.number);
                let followed = &mut histories[job.task.index()].followed;
                if followed.explained.contains_key(&job.number) {
                    followed.rows.push((open.first, job.number));
                }
            }
            RecordKind::Completed { job } => {
                if let Some(Some(open)) = tasks.get_mut(job.task.index()) {
                    open.pending.retain(|&number| number != job.number);
                }
            }
            RecordKind::Left { task } => {
                if let Some(Some(open)) = tasks.get_mut(task.index()) {
                    open.pending.clear();
                }
            }
            _ => {}
        }
    }
}
