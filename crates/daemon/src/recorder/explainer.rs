//! Explains misses and keeps them in files, in a thread of its own.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use shiftwork_client::Miss;
use shiftwork_model::{Instant, Span, TaskId};
use shiftwork_trace::explain::End;

use crate::files::Files;

use super::{Folder, MissReport, Recording, RecordingAnalysis};

/// What is kept of misses in memory, the last ones.
const EXPLANATIONS_MAX: usize = 100;

/// After a recording the thread rests for so many times as long as that took: a task that misses all its deadlines costs
/// at most a tenth of a CPU.
const REST: u64 = 9;

/// An explained miss.
#[derive(Debug)]
struct ExplainedMiss {
    /// The user of the task.
    user: u32,
    /// The task, by the number of its incarnation.
    task: TaskId,
    /// As root sees it.
    whole: Miss,
    /// As its user sees it: tasks of others are without names.
    own: Miss,
}

impl ExplainedMiss {
    /// As this user sees it; `None` if it may not.
    fn seen_by(&self, user: u32) -> Option<&Miss> {
        match user {
            0 => Some(&self.whole),
            _ => (self.user == user).then_some(&self.own),
        }
    }
}

/// What the thread has found out.
#[derive(Debug, Default)]
struct Output {
    explanations: VecDeque<ExplainedMiss>,
    /// Not yet taken sentences about files.
    news: Vec<String>,
    /// Not yet taken: whether the last recording could be kept.
    kept: Option<Result<(), String>>,
}

/// A thread that takes one recording at a time.
#[derive(Debug)]
pub struct MissExplainer {
    sender: Option<SyncSender<(Box<Recording>, TaskId)>>,
    is_busy: Arc<AtomicBool>,
    /// When it began with its present recording.
    pub(super) began: Option<Instant>,
    rests_until: Instant,
    output: Arc<Mutex<Output>>,
    thread: Option<JoinHandle<()>>,
}

impl MissExplainer {
    /// Begins, with nothing to do. There are files in the folder at least this span from each other; without a folder there
    /// are none.
    ///
    /// # Errors
    /// If no thread can be made.
    pub(crate) fn begin(
        folder: Option<Folder>,
        gap: Span,
        files: Arc<dyn Files>,
    ) -> io::Result<Self> {
        let (sender, recordings) = sync_channel(1);
        let output = Arc::new(Mutex::new(Output::default()));
        let is_busy = Arc::new(AtomicBool::new(false));
        let explainer = ExplainerThread {
            store: folder
                .filter(|folder| folder.files_max > 0)
                .map(|folder| RecordingStore {
                    folder,
                    files,
                    gap,
                    kept_at: None,
                }),
            output: Arc::clone(&output),
            is_busy: Arc::clone(&is_busy),
        };
        let thread = Builder::new()
            .name("recorder".to_owned())
            .spawn(move || explainer.run(&recordings))?;
        Ok(Self {
            sender: Some(sender),
            is_busy,
            began: None,
            rests_until: Instant::ZERO,
            output,
            thread: Some(thread),
        })
    }

    /// Whether it has nothing to do, and has rested. To be called often: the end of its work is seen here.
    pub fn is_idle(&mut self, now: Instant) -> bool {
        if self.is_busy.load(Ordering::Acquire) {
            return false;
        }
        if let Some(began) = self.began.take() {
            let rest = now.late_since(began).as_ns().saturating_mul(REST);
            self.rests_until = now + Span::from_ns(rest);
        }
        now >= self.rests_until
    }

    /// Explains the miss of this incarnation that this was recorded for, and keeps it if it is time for that. To be called
    /// while idle.
    pub fn take(&mut self, recording: Recording, task: TaskId, now: Instant) {
        self.began = Some(now);
        self.is_busy.store(true, Ordering::Release);
        let recording = (Box::new(recording), task);
        let sender = self.sender.as_ref();
        if sender.is_none_or(|sender| sender.try_send(recording).is_err()) {
            // The thread is gone: there will be no explanations, and nothing else is the worse for it.
            self.is_busy.store(false, Ordering::Release);
        }
    }

    /// The last explanations, the newest last: to root all, to another user those of its own tasks.
    pub fn explanations(&self, user: u32, count: usize) -> Vec<String> {
        self.last(count, |it| Some(it.seen_by(user)?.text.clone()))
    }

    /// The same of one incarnation of a task.
    pub fn misses(&self, user: u32, task: TaskId, count: usize) -> Vec<Miss> {
        self.last(count, |it| {
            it.seen_by(user).filter(|_| it.task == task).cloned()
        })
    }

    fn last<T>(&self, count: usize, shown: impl Fn(&ExplainedMiss) -> Option<T>) -> Vec<T> {
        let output = lock(&self.output);
        let newest = output.explanations.iter().rev();
        let mut last: Vec<T> = newest.filter_map(shown).take(count).collect();
        last.reverse();
        last
    }

    /// Whether the last recording could be kept, once; `Err` says why not.
    pub fn take_kept(&self) -> Option<Result<(), String>> {
        lock(&self.output).kept.take()
    }

    /// Sentences about files, each once.
    pub fn take_news(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.output).news)
    }
}

impl Drop for MissExplainer {
    /// What is being written is finished.
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // Its failure has no consequences any more.
            let _ = thread.join();
        }
    }
}

/// Texts are whole whichever thread panicked.
fn lock(output: &Mutex<Output>) -> MutexGuard<'_, Output> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread's side.
struct ExplainerThread {
    store: Option<RecordingStore>,
    output: Arc<Mutex<Output>>,
    is_busy: Arc<AtomicBool>,
}

impl ExplainerThread {
    fn run(mut self, recordings: &Receiver<(Box<Recording>, TaskId)>) {
        while let Ok((mut recording, task)) = recordings.recv() {
            if let Some(report) = explained(&recording) {
                if let Some(missed) = &mut recording.metadata.missed {
                    missed.cause = report.cause();
                }
                let mut output = lock(&self.output);
                if output.explanations.len() == EXPLANATIONS_MAX {
                    output.explanations.pop_front();
                }
                let explained = of_users(&recording, task, report);
                output.explanations.push_back(explained);
            }
            if let Some(store) = &mut self.store
                && let Some(kept) = store.keep(&recording)
            {
                let mut output = lock(&self.output);
                output.news.extend(kept.as_ref().ok().cloned());
                output.kept = Some(kept.map(drop));
            }
            self.is_busy.store(false, Ordering::Release);
        }
    }
}

fn explained(recording: &Recording) -> Option<MissReport> {
    RecordingAnalysis::new(recording).explain(recording.metadata.missed_job()?)
}

/// The explanation for the user of the task, and for root.
fn of_users(recording: &Recording, task: TaskId, report: MissReport) -> ExplainedMiss {
    let users = &recording.users;
    let missed = recording.metadata.missed_job();
    // Root, if that is not known.
    let user = missed.and_then(|job| users.get(job.task.index()).copied());
    let user = user.unwrap_or(0);
    ExplainedMiss {
        user,
        task,
        whole: miss_of(recording, &report),
        own: miss_of(recording, &report.for_user(user, users)),
    }
}

fn miss_of(recording: &Recording, report: &MissReport) -> Miss {
    let it = &report.explanation;
    let due = recording.metadata.origin_ns + it.deadline.as_ns();
    Miss {
        job: it.job.number,
        due: Instant::from_ns(due),
        tardiness: it.tardiness(),
        ended: it.end == End::Finished,
        cause: report.cause(),
        text: report.text(),
    }
}

/// Where files are kept, and when the last was.
struct RecordingStore {
    folder: Folder,
    files: Arc<dyn Files>,
    gap: Span,
    kept_at: Option<Instant>,
}

impl RecordingStore {
    /// Keeps the recording if it is time for that; says where, or why it cannot.
    fn keep(&mut self, recording: &Recording) -> Option<Result<String, String>> {
        let metadata = &recording.metadata;
        let now = Instant::from_ns(metadata.origin_ns + recording.until.as_ns());
        if self.kept_at.is_some_and(|at| at + self.gap > now) {
            return None;
        }
        let job = metadata.missed_job()?;
        let name = &recording.set.tasks.get(job.task.index())?.name;
        let kept = self
            .folder
            .keep(&*self.files, metadata.unix_ns, name, &recording.trace());
        Some(match kept {
            Ok(path) => {
                self.kept_at = Some(now);
                Ok(format!("what led to it is in {}", path.display()))
            }
            Err(error) => Err(format!(
                "misses are not kept in {}: {error}; `record-folder` names another, `record-files = 0` none",
                self.folder.path.display()
            )),
        })
    }
}
