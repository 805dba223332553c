//! Affinities that threads requested from the kernel, until they are handled.
//!
//! A thread that does so stops being served until its admission is decided anew, which takes much longer than the thread's
//! system call. So only the latest request of a task counts, and each account has a rate.

use std::collections::BTreeMap;

use shiftwork_model::{CpuSet, Instant, Span, TaskId};

use super::Daemon;
use crate::reservation::Thread;
use crate::reservation_table::TaskNotice;
use crate::socket::{RateLimit, TokenBucket};

/// Time in which an account may have one more request handled; at once it may have one of each of its tasks.
const INTERVAL: Span = Span::from_ms(250);

/// Number of requests that are handled before calls are: a decision may take milliseconds.
const REQUESTS_AT_ONCE: usize = 4;

/// What is requested, in the order in which the tasks came; each task at most once.
#[derive(Debug, Default)]
pub(super) struct AffinityRequests {
    waiting: Vec<AffinityRequest>,
    /// Whether requests wait only because enough were handled at once.
    are_due: bool,
    /// Of the accounts that had requests handled lately.
    buckets: BTreeMap<u32, TokenBucket>,
}

#[derive(Clone, Debug)]
struct AffinityRequest {
    task: TaskId,
    thread: Thread,
    /// What counts if what the thread is bound to cannot be read.
    cpus: CpuSet,
}

impl AffinityRequests {
    fn push(&mut self, request: AffinityRequest) {
        let waiting = &mut self.waiting;
        let of_task = waiting.iter_mut().find(|it| it.task == request.task);
        match of_task {
            Some(before) => *before = request,
            None => waiting.push(request),
        }
    }
}

impl Daemon {
    /// The task's thread has requested these CPUs.
    pub(super) fn note_affinity_request(&mut self, task: TaskId, cpus: CpuSet) {
        if let Some(reserved) = self.table.task(task) {
            let thread = reserved.thread.clone();
            self.affinity_requests
                .push(AffinityRequest { task, thread, cpus });
        }
    }

    /// Whether [`handle_affinity_requests`](Self::handle_affinity_requests) has left requests that are due.
    pub(super) const fn has_due_affinity_requests(&self) -> bool {
        self.affinity_requests.are_due
    }

    /// Handles the requests that are due, a bounded number of them.
    ///
    /// # Cost
    /// Linear in the tasks, and a decision on each request that is handled.
    pub(super) fn handle_affinity_requests(&mut self, now: Instant) -> Vec<TaskNotice> {
        self.affinity_requests.are_due = false;
        if self.affinity_requests.waiting.is_empty() {
            return Vec::new();
        }
        let mut counts = BTreeMap::<u32, u64>::new();
        for (_, reserved) in self.table.tasks() {
            *counts.entry(reserved.owner.account).or_default() += 1;
        }
        let requests = std::mem::take(&mut self.affinity_requests);
        let mut buckets = requests.buckets;
        buckets.retain(|_, bucket| !bucket.is_full(now));
        let mut notices = Vec::new();
        let mut handled = 0;
        for request in requests.waiting {
            if handled == REQUESTS_AT_ONCE {
                self.affinity_requests.are_due = true;
                self.affinity_requests.waiting.push(request);
                continue;
            }
            let Some(reserved) = self.table.task(request.task) else {
                continue;
            };
            let account = reserved.owner.account;
            let rate = RateLimit {
                interval: INTERVAL,
                burst: counts.get(&account).copied().unwrap_or_default(),
            };
            let bucket = buckets.entry(account).or_insert(TokenBucket::FULL);
            if !bucket.take(now, rate) {
                self.affinity_requests.waiting.push(request);
                continue;
            }
            handled += 1;
            notices.extend(self.handle_affinity_request(&request));
        }
        self.affinity_requests.buckets = buckets;
        notices
    }

    /// Handles the task's request, if there is one, without waiting.
    pub(super) fn settle_affinity_request(&mut self, task: TaskId) {
        let waiting = &mut self.affinity_requests.waiting;
        if let Some(place) = waiting.iter().position(|it| it.task == task) {
            let request = waiting.remove(place);
            let notice = self.handle_affinity_request(&request);
            self.notices.extend(notice);
        }
    }

    fn handle_affinity_request(&mut self, request: &AffinityRequest) -> Option<TaskNotice> {
        let reserved = self.table.task(request.task)?;
        if reserved.thread != request.thread {
            // Its reservation has ended.
            return None;
        }
        // A record may be older than what came of it: what counts is what the thread is bound to now.
        let found = self.threads.look_up(request.thread.thread);
        let cpus = found.map_or(request.cpus, |it| it.cpus);
        self.request_affinity(request.task, cpus)
    }

    /// The task's thread has asked the kernel for these CPUs: it gets those that its owner may use, or has reserved.
    pub(super) fn request_affinity(&mut self, task: TaskId, cpus: CpuSet) -> Option<TaskNotice> {
        let reserved = self.table.task(task)?;
        let own = self.cpus_of(&reserved.owner) | reserved.reservation.cpus;
        // Without one of these it waits, as without one of the daemon's.
        self.table
            .request_affinity(task, cpus & own, &mut *self.backend)
    }
}
