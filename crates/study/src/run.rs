//! Working off what is missing, on all CPUs, so that whatever happens little is lost.

use std::mem::take;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::error::StudyError;
use crate::part;
use crate::plan::Plan;
use crate::queue::Queue;
use crate::results::{PARTIAL, RESULTS, Results};
use crate::store::{Remark, Store};
use crate::work::{Batch, Counted, Shard, Work, join};

/// How a study is to be run; results depend on none of it.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many threads; as many as there are CPUs if it is 0.
    pub threads: usize,
    /// Which share of the study.
    pub shard: Shard,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: 0,
            shard: Shard::ALL,
        }
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// How many task sets of this share are done, those of earlier runs included.
    pub done: u64,
    /// How many it has.
    pub total: u64,
    /// How long this run has taken.
    pub elapsed: Duration,
    /// How long it will take from now on; `None` as long as nothing is known.
    pub left: Option<Duration>,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How many task sets this run added.
    pub added: u64,
    /// How many are there now, in how many parts.
    pub kept: (u64, usize),
    /// How many of this share are missing: more than none if the run was interrupted.
    pub missing_here: u64,
    /// How many of the whole study are missing.
    pub missing: u64,
    /// What was noticed in the folder.
    pub remarks: Vec<Remark>,
    /// The results, or those so far.
    pub results: Results,
    /// Where they were written.
    pub path: PathBuf,
}

/// Runs what is missing of a study in its folder. `watch` gets the progress several times a second,
/// and returns whether to go on. When it stops the run, or all work is done, the results are
/// written: first as parts, then as `results.parquet` if nothing is missing, otherwise as
/// `partial.parquet`.
///
/// # Errors
/// If the folder cannot be used (see [`Store::open`]), a task set cannot be drawn, or a file cannot be written. What was
/// done before is kept as far as it can be written.
pub fn run(
    plan: &Plan,
    folder: &Path,
    options: Options,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Outcome, StudyError> {
    let mut store = Store::open(plan, folder)?;
    let remarks = store.remarks().to_vec();
    let work = store.missing(options.shard);
    let added = match work.is_empty() {
        true => 0,
        false => run_missing(&mut store, options, work, watch)?,
    };
    // Others may have added parts meanwhile.
    let store = Store::open(plan, folder)?;
    let (results, path) = conclude(&store, plan)?;
    let sets = |shard| store.missing(shard).iter().map(Work::sets).sum();
    Ok(Outcome {
        added,
        kept: store.kept(),
        missing_here: sets(options.shard),
        missing: sets(Shard::ALL),
        remarks,
        results,
        path,
    })
}

/// Writes the results of what is there, whole or so far, and returns them with the path.
///
/// # Errors
/// If a part cannot be read, or a file cannot be written.
pub fn conclude(store: &Store<'_>, plan: &Plan) -> Result<(Results, PathBuf), StudyError> {
    let results = Results::new(plan, &store.sums()?);
    let is_complete = store.missing(Shard::ALL).is_empty();
    let [name, other] = match is_complete {
        true => [RESULTS, PARTIAL],
        false => [PARTIAL, RESULTS],
    };
    let path = store.write(name, &results.encode())?;
    // What was complete is not, once more sets are asked for; and it may not be there at all.
    let _ = std::fs::remove_file(store.folder().join(other));
    Ok((results, path))
}

/// How often `watch` is asked at least.
const GLANCE: Duration = Duration::from_millis(100);

/// So many pieces wait at least before neighbours among them are put together.
const PENDING_MIN: usize = 4_096;

/// Parts are written no more often than this, and than every hundredth of the time so far: so there are some
/// hundreds of them, however long a study takes.
const PART: Duration = Duration::from_secs(5);

/// A piece that came back: what was handed out, what was counted, and how long that took.
type Report = Result<(Work, Counted, Duration), StudyError>;

/// What all threads see.
struct Shared<'p> {
    plan: &'p Plan,
    queue: Mutex<Queue>,
    stopped: AtomicBool,
    clock: Clock,
}

impl Shared<'_> {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // A thread that panicked held it between whole changes only.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn goes_on(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }

    /// The life of a thread.
    fn run_worker(&self, reports: &Sender<Report>) {
        while self.goes_on() {
            let Some(piece) = self.queue().take() else {
                return;
            };
            let begun = self.clock.elapsed();
            let counted = self.plan.run_work(piece, || self.goes_on());
            let took = self.clock.elapsed() - begun;
            let report = counted.map(|counted| (piece, counted, took));
            // Sending fails only if the receiving thread has failed.
            if reports.send(report).is_err() {
                return;
            }
        }
    }
}

/// Runs this work of a share; returns how many task sets were added.
fn run_missing(
    store: &mut Store<'_>,
    options: Options,
    work: Vec<Work>,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<u64, StudyError> {
    let threads = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads)
        .build()
        .map_err(|error| StudyError::Threads {
            problem: error.to_string(),
        })?;
    let plan = store.plan();
    let missing: u64 = work.iter().map(Work::sets).sum();
    let total = options.shard.sets(plan);
    let shared = Shared {
        plan,
        queue: Mutex::new(Queue::new(work)),
        stopped: AtomicBool::new(false),
        clock: Clock::start(),
    };
    let mut collector = Collector {
        store,
        shared: &shared,
        threads: threads.current_num_threads(),
        total,
        done: total - missing,
        pending: Batch::new(),
        limit: PENDING_MIN,
        written: Duration::ZERO,
        failure: None,
    };
    let (reports, incoming) = channel();
    threads.in_place_scope(|scope| {
        for _ in 0..threads.current_num_threads() {
            let (shared, reports) = (&shared, reports.clone());
            scope.spawn(move |_| shared.run_worker(&reports));
        }
        drop(reports);
        collector.collect(&incoming, watch);
    });
    match collector.failure {
        Some(failure) => Err(failure),
        None => Ok(collector.done + missing - total),
    }
}

/// The one thread that takes what comes back, writes it, and watches.
struct Collector<'r, 'p> {
    store: &'r mut Store<'p>,
    shared: &'r Shared<'r>,
    threads: usize,
    total: u64,
    done: u64,
    /// What is not on disk yet.
    pending: Batch,
    /// At how many pieces neighbours are put together.
    limit: usize,
    /// When a part was written last.
    written: Duration,
    /// What went wrong first.
    failure: Option<StudyError>,
}

impl Collector<'_, '_> {
    fn collect(&mut self, incoming: &Receiver<Report>, watch: &mut dyn FnMut(&Progress) -> bool) {
        let mut seen = Duration::ZERO;
        loop {
            match incoming.recv_timeout(GLANCE) {
                Ok(Ok(report)) => self.take(report),
                Ok(Err(error)) => self.fail(error),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now = self.shared.clock.elapsed();
            if now - self.written >= PART.max(now / 100) && self.failure.is_none() {
                self.write();
                self.written = now;
            }
            if now - seen >= GLANCE {
                seen = now;
                if !watch(&self.progress(now)) {
                    self.shared.stop();
                }
            }
        }
        // After a failure as well: there may be room again, and what was done is worth a second try.
        self.write();
        watch(&self.progress(self.shared.clock.elapsed()));
    }

    fn take(&mut self, (piece, counted, took): (Work, Counted, Duration)) {
        // A piece that was given up in the middle says nothing of how long one takes.
        if counted.work == piece {
            self.shared.queue().done(piece, took);
        }
        self.done += counted.work.sets();
        if counted.work.sets() > 0 {
            self.pending.push(counted);
        }
        // Neighbours are put together early, so that what waits does not grow with the number of pieces.
        if self.pending.len() >= self.limit {
            self.pending = join(take(&mut self.pending));
            self.limit = (2 * self.pending.len()).max(PENDING_MIN);
        }
    }

    fn write(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let bytes = part::encode(self.shared.plan, self.pending.clone());
        match self.store.put(&bytes) {
            Ok(_) => self.pending.clear(),
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: StudyError) {
        self.shared.stop();
        self.failure.get_or_insert(error);
    }

    fn progress(&self, elapsed: Duration) -> Progress {
        Progress {
            done: self.done,
            total: self.total,
            elapsed,
            left: self.shared.queue().time_left(self.threads),
        }
    }
}
