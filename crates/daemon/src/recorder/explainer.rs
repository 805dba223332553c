//! Explains misses and keeps them in files, in a thread of its own.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use shiftwork_model::{Instant, Span};

use super::{Folder, Recording, Tale};

/// What is kept of misses in memory, the last ones.
const EXPLANATIONS_MAX: usize = 100;

/// After a recording it rests for so many times as long as that took: whoever misses all the time gets no more than a tenth
/// of a CPU for it.
const REST: u64 = 9;

/// What the clerk has to say.
#[derive(Debug, Default)]
struct Said {
    explanations: VecDeque<String>,
    /// For the agent's owner, not yet told.
    news: Vec<String>,
}

/// A thread that takes one recording at a time.
#[derive(Debug)]
pub struct Clerk {
    hand: Option<SyncSender<Box<Recording>>>,
    is_busy: Arc<AtomicBool>,
    /// When it began with what it is at.
    pub(super) began: Option<Instant>,
    rests_until: Instant,
    said: Arc<Mutex<Said>>,
    thread: Option<JoinHandle<()>>,
}

impl Clerk {
    /// Begins, with nothing to do. There are files in the folder at least this span from each other; without a folder there
    /// are none.
    ///
    /// # Errors
    /// If no thread can be made.
    pub fn begin(folder: Option<Folder>, gap: Span) -> io::Result<Self> {
        let (hand, tray) = sync_channel(1);
        let said = Arc::new(Mutex::new(Said::default()));
        let is_busy = Arc::new(AtomicBool::new(false));
        let desk = Desk {
            shelf: folder
                .filter(|folder| folder.files_max > 0)
                .map(|folder| Shelf {
                    folder,
                    gap,
                    kept_at: None,
                    is_failing: false,
                }),
            said: Arc::clone(&said),
            is_busy: Arc::clone(&is_busy),
        };
        let thread = Builder::new()
            .name("recorder".to_owned())
            .spawn(move || desk.work(&tray))?;
        Ok(Self {
            hand: Some(hand),
            is_busy,
            began: None,
            rests_until: Instant::ZERO,
            said,
            thread: Some(thread),
        })
    }

    /// Whether it has nothing to do, and has rested. To be asked often: that it is done is seen here.
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

    /// Explains the miss that this was recorded for, and keeps it if it is time for that. To be asked while idle.
    pub fn take(&mut self, recording: Recording, now: Instant) {
        self.began = Some(now);
        self.is_busy.store(true, Ordering::Release);
        let recording = Box::new(recording);
        let hand = self.hand.as_ref();
        if hand.is_none_or(|hand| hand.try_send(recording).is_err()) {
            // The thread is gone: there will be no explanations, and nothing else is the worse for it.
            self.is_busy.store(false, Ordering::Release);
        }
    }

    /// The last explanations, the newest last.
    pub fn explanations(&self, count: usize) -> Vec<String> {
        let said = lock(&self.said);
        let first = said.explanations.len().saturating_sub(count);
        said.explanations.iter().skip(first).cloned().collect()
    }

    /// What its owner should know of, sentences; each once.
    pub fn take_news(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.said).news)
    }
}

impl Drop for Clerk {
    /// What is being written is finished.
    fn drop(&mut self) {
        self.hand = None;
        if let Some(thread) = self.thread.take() {
            // Whether it has failed matters to nobody any more.
            let _ = thread.join();
        }
    }
}

/// Texts are whole whoever panicked.
fn lock(said: &Mutex<Said>) -> MutexGuard<'_, Said> {
    said.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread's side.
struct Desk {
    shelf: Option<Shelf>,
    said: Arc<Mutex<Said>>,
    is_busy: Arc<AtomicBool>,
}

impl Desk {
    fn work(mut self, tray: &Receiver<Box<Recording>>) {
        while let Ok(recording) = tray.recv() {
            if let Some(text) = explained(&recording) {
                let mut said = lock(&self.said);
                if said.explanations.len() == EXPLANATIONS_MAX {
                    said.explanations.pop_front();
                }
                said.explanations.push_back(text);
            }
            if let Some(shelf) = &mut self.shelf
                && let Some(news) = shelf.keep(&recording)
            {
                lock(&self.said).news.push(news);
            }
            self.is_busy.store(false, Ordering::Release);
        }
    }
}

fn explained(recording: &Recording) -> Option<String> {
    let tale = Tale::of(recording);
    let told = tale.explain(tale.job(recording.missed.as_ref()?)?)?;
    Some(told.text())
}

/// Where files are kept, and when the last was.
struct Shelf {
    folder: Folder,
    gap: Span,
    kept_at: Option<Instant>,
    /// That it does not work was said, and it did not work since.
    is_failing: bool,
}

impl Shelf {
    /// Keeps the recording if it is time for that; what people should know of it.
    fn keep(&mut self, recording: &Recording) -> Option<String> {
        let now = Instant::from_ns(recording.until_ns);
        if self.kept_at.is_some_and(|at| at + self.gap > now) {
            return None;
        }
        let name = recording.name(recording.missed?.life);
        let text = recording.lines(self.folder.path.to_str());
        match self.folder.keep(recording.unix_ns, &name, &text) {
            Ok(path) => {
                self.kept_at = Some(now);
                self.is_failing = false;
                Some(format!("what led to it is in {}", path.display()))
            }
            Err(_) if self.is_failing => None,
            Err(error) => {
                self.is_failing = true;
                Some(format!(
                    "misses are not kept in {}: {error}; `record-folder` names another, `record-files = 0` none",
                    self.folder.path.display()
                ))
            }
        }
    }
}
