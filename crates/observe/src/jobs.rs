//! From events to the jobs of threads.
//!
//! A job begins when its thread is woken and ends when the thread goes to sleep. What began before the thread was seen to go
//! to sleep, or is not over at the end of the recording, is no job.

use std::collections::BTreeMap;

use shiftwork_model::{Instant, Span};

use crate::event::{Event, EventKind, Recording, SwitchedOut, Waker};

/// The job of another thread within which a job was triggered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The number of that job, among those of its thread.
    pub(crate) number: u64,
    /// For how long that job had executed.
    pub(crate) executed: Span,
}

/// A job that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// Counts from 1 for each thread. One more than that of the job before it if nothing between the two is missing.
    pub(crate) number: u64,
    /// When the thread was woken.
    pub(crate) released: Instant,
    /// When it went to sleep.
    pub(crate) completed: Instant,
    /// For how long it executed.
    pub(crate) cost: Span,
    /// What woke the thread.
    pub(crate) waker: Waker,
    /// The job of the waker, if that is a thread of the process with a known job.
    pub(crate) origin: Option<Origin>,
    /// How often it was suspended within.
    pub(crate) suspensions: u64,
    /// How often the same job of the waker woke the thread once more, which continued the job.
    pub(crate) continued: u64,
}

/// What is known of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct History {
    /// By time.
    pub(crate) jobs: Vec<Job>,
    /// For how long the thread executed, jobs or not.
    pub(crate) executed: Span,
}

/// The jobs of all threads of the process.
pub(crate) fn reconstruct(recording: &Recording) -> BTreeMap<u32, History> {
    let threads = recording.threads.keys();
    let mut tracker = Tracker {
        threads: threads
            .map(|&id| (id, Tracked::new(recording.from)))
            .collect(),
    };
    let mut gaps = recording.gaps.clone();
    gaps.sort_unstable();
    let mut gaps = gaps.into_iter().peekable();
    for event in &recording.events {
        while let Some((_, end)) = gaps.next_if(|&(_, end)| end <= event.at) {
            tracker.reset(end);
        }
        match gaps.peek() {
            Some(&(start, _)) if start <= event.at => {}
            _ => tracker.take(event),
        }
    }
    tracker.finish(recording.until)
}

/// A wake-up.
#[derive(Clone, Copy, Debug)]
struct Wakeup {
    by: Waker,
    origin: Option<Origin>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Nothing was seen since then.
    Unseen(Instant),
    /// Asleep since then.
    Asleep(Instant),
    /// Woken or preempted; the job is `None` if its beginning was not seen.
    Ready(Option<Job>),
    /// Executes since then.
    Running(Option<Job>, Instant),
    /// Suspended within a job.
    Suspended(Option<Job>),
    /// It has ended.
    Ended,
}

struct Tracked {
    state: State,
    /// The latest wake-up while the thread did not sleep. A thread that is about to sleep can be woken before its CPU
    /// switches; then no other wake-up follows.
    early: Option<Wakeup>,
    /// The number of the latest job that began.
    number: u64,
    history: History,
}

impl Tracked {
    fn new(from: Instant) -> Self {
        Self {
            state: State::Unseen(from),
            early: None,
            number: 0,
            history: History::default(),
        }
    }

    /// The job that a wake-up begins, or that it continues if the same job of the same thread began the latest one.
    fn begin(&mut self, at: Instant, wakeup: Wakeup) -> Job {
        let continues = |job: &Job| {
            let origins = job.origin.zip(wakeup.origin);
            job.number == self.number
                && job.waker == wakeup.by
                && origins.is_some_and(|(before, now)| before.number == now.number)
        };
        if let Some(job) = self.history.jobs.pop_if(|job| continues(job)) {
            return Job {
                continued: job.continued + 1,
                ..job
            };
        }
        self.number += 1;
        Job {
            number: self.number,
            released: at,
            completed: at,
            cost: Span::ZERO,
            waker: wakeup.by,
            origin: wakeup.origin,
            suspensions: 0,
            continued: 0,
        }
    }

    fn wake(&mut self, at: Instant, wakeup: Wakeup) {
        match self.state {
            State::Asleep(_) => self.state = State::Ready(Some(self.begin(at, wakeup))),
            // It slept, or was suspended within a job, or runs.
            State::Unseen(_) => self.state = State::Ready(None),
            State::Suspended(job) => self.state = State::Ready(job),
            State::Ready(_) | State::Running(..) => self.early = Some(wakeup),
            State::Ended => {}
        }
    }

    fn switch_in(&mut self, at: Instant) {
        let job = match self.state {
            State::Ready(job) | State::Suspended(job) => job,
            State::Asleep(since) => {
                let unseen = Wakeup {
                    by: Waker::Unknown,
                    origin: None,
                };
                let (released, wakeup) = self.early.map_or((at, unseen), |early| (since, early));
                Some(self.begin(released, wakeup))
            }
            State::Unseen(_) | State::Running(..) | State::Ended => None,
        };
        self.early = None;
        self.state = State::Running(job, at);
    }

    fn switch_out(&mut self, at: Instant, out: SwitchedOut) {
        let (job, since) = match self.state {
            State::Running(job, since) => (job, since),
            // It ran since then: no switch to it was seen.
            State::Unseen(since) => (None, since),
            // The switch to it was not seen.
            State::Ready(_) | State::Asleep(_) | State::Suspended(_) | State::Ended => (None, at),
        };
        let executed = at.late_since(since);
        self.history.executed += executed;
        let job = job.map(|job| Job {
            cost: job.cost + executed,
            ..job
        });
        self.state = match out {
            SwitchedOut::Ready => State::Ready(job),
            SwitchedOut::Suspended => State::Suspended(job.map(|job| Job {
                suspensions: job.suspensions + 1,
                ..job
            })),
            SwitchedOut::Asleep => {
                self.history.jobs.extend(job.map(|job| Job {
                    completed: at,
                    ..job
                }));
                State::Asleep(at)
            }
            SwitchedOut::Ended => State::Ended,
        };
    }

    /// The job that executes at this instant, and for how long it has done so.
    fn origin(&self, at: Instant) -> Option<Origin> {
        match self.state {
            State::Running(Some(job), since) => Some(Origin {
                number: job.number,
                executed: job.cost + at.late_since(since),
            }),
            _ => None,
        }
    }
}

struct Tracker {
    threads: BTreeMap<u32, Tracked>,
}

impl Tracker {
    fn take(&mut self, event: &Event) {
        let at = event.at;
        match event.kind {
            EventKind::Wakeup { thread, by } => {
                let origin = match by {
                    Waker::Thread(id) => self.threads.get(&id).and_then(|it| it.origin(at)),
                    Waker::Interrupt | Waker::Unknown => None,
                };
                if let Some(tracked) = self.threads.get_mut(&thread) {
                    tracked.wake(at, Wakeup { by, origin });
                }
            }
            EventKind::Switch { from, out, to } => {
                if let Some(tracked) = self.threads.get_mut(&from) {
                    tracked.switch_out(at, out);
                }
                if let Some(tracked) = self.threads.get_mut(&to) {
                    tracked.switch_in(at);
                }
            }
        }
    }

    /// Nothing is known any more: events are missing. Of jobs on both sides it is not known how far apart they are.
    fn reset(&mut self, at: Instant) {
        for tracked in self.threads.values_mut() {
            tracked.state = State::Unseen(at);
            tracked.early = None;
            tracked.number += 1;
        }
    }

    fn finish(mut self, until: Instant) -> BTreeMap<u32, History> {
        for tracked in self.threads.values_mut() {
            if let State::Running(_, since) = tracked.state {
                let executed = until.late_since(since);
                tracked.history.executed += executed;
            }
        }
        let threads = self.threads.into_iter();
        threads.map(|(id, it)| (id, it.history)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Thread;
    use shiftwork_model::CpuSet;

    const A: u32 = 10;
    const B: u32 = 11;
    const IDLE: u32 = 0;

    fn wake(at: u64, thread: u32, by: Waker) -> Event {
        let kind = EventKind::Wakeup { thread, by };
        let at = Instant::from_ns(at);
        Event { at, kind }
    }

    fn switch(at: u64, from: u32, out: SwitchedOut, to: u32) -> Event {
        let kind = EventKind::Switch { from, out, to };
        let at = Instant::from_ns(at);
        Event { at, kind }
    }

    fn histories(events: &[Event], gaps: &[(u64, u64)]) -> BTreeMap<u32, History> {
        let thread = |name: &str| Thread {
            process: 1,
            process_name: String::new(),
            name: name.to_owned(),
            affinity: CpuSet::first(2),
            cpu_time: None,
            started: 0,
            has_ended: false,
        };
        let instants = |&(from, until)| (Instant::from_ns(from), Instant::from_ns(until));
        reconstruct(&Recording {
            process: A,
            threads: [(A, thread("a")), (B, thread("b"))].into(),
            from: Instant::ZERO,
            until: Instant::from_ns(1_000),
            events: events.to_vec(),
            gaps: gaps.iter().map(instants).collect(),
            unreadable: 0,
        })
    }

    /// Number, release, completion and cost of each job.
    fn shown(history: &History) -> Vec<(u64, u64, u64, u64)> {
        let jobs = history.jobs.iter();
        let ns = |job: &Job| {
            (
                job.released.as_ns(),
                job.completed.as_ns(),
                job.cost.as_ns(),
            )
        };
        jobs.map(|job| {
            let (released, completed, cost) = ns(job);
            (job.number, released, completed, cost)
        })
        .collect()
    }

    #[test]
    fn job_is_from_wakeup_to_sleep_with_preemption_and_suspension_within() {
        use SwitchedOut::{Asleep, Ready, Suspended};
        let found = histories(
            &[
                switch(10, A, Asleep, IDLE),
                wake(100, A, Waker::Interrupt),
                switch(110, IDLE, Ready, A),
                switch(120, A, Ready, B),
                switch(150, B, Asleep, A),
                switch(155, A, Suspended, IDLE),
                wake(170, A, Waker::Interrupt),
                switch(175, IDLE, Ready, A),
                switch(180, A, Asleep, IDLE),
                // Not over at the end.
                wake(900, A, Waker::Interrupt),
                switch(910, IDLE, Ready, A),
            ],
            &[],
        );
        assert_eq!(shown(&found[&A]), [(1, 100, 180, 20)]);
        assert_eq!(found[&A].jobs[0].suspensions, 1);
        assert_eq!(found[&A].executed.as_ns(), 10 + 20 + 90);
        // Of `b` no beginning was seen.
        assert_eq!(shown(&found[&B]), []);
        assert_eq!(found[&B].executed.as_ns(), 30);
    }

    #[test]
    fn thread_that_ran_at_the_beginning_has_no_job_until_it_sleeps() {
        use SwitchedOut::{Asleep, Ready};
        let events = [
            // It runs, and is woken without effect.
            wake(50, A, Waker::Thread(B)),
            switch(60, A, Asleep, IDLE),
            wake(100, A, Waker::Interrupt),
            switch(100, IDLE, Ready, A),
            switch(130, A, Asleep, IDLE),
            // It was suspended, or asleep.
            wake(50, B, Waker::Interrupt),
            switch(60, IDLE, Ready, B),
            switch(70, B, Asleep, IDLE),
        ];
        let found = histories(&events, &[]);
        assert_eq!(shown(&found[&A]), [(1, 100, 130, 30)]);
        assert_eq!(shown(&found[&B]), []);
    }

    #[test]
    fn wakeup_just_before_the_switch_to_sleep_begins_the_next_job() {
        use SwitchedOut::{Asleep, Ready};
        let found = histories(
            &[
                switch(10, A, Asleep, IDLE),
                wake(100, A, Waker::Interrupt),
                switch(100, IDLE, Ready, A),
                // Without effect: it does not sleep yet.
                wake(105, A, Waker::Interrupt),
                wake(109, A, Waker::Thread(7)),
                switch(110, A, Asleep, IDLE),
                switch(115, IDLE, Ready, A),
                switch(120, A, Asleep, IDLE),
                // Its wake-up is missing.
                switch(200, IDLE, Ready, A),
                switch(220, A, Asleep, IDLE),
            ],
            &[],
        );
        assert_eq!(
            shown(&found[&A]),
            [(1, 100, 110, 10), (2, 110, 120, 5), (3, 200, 220, 20)]
        );
        let wakers = found[&A].jobs.iter().map(|job| job.waker);
        assert_eq!(
            wakers.collect::<Vec<_>>(),
            [Waker::Interrupt, Waker::Thread(7), Waker::Unknown]
        );
    }

    #[test]
    fn job_knows_the_job_that_triggered_it_and_the_same_job_continues_it() {
        use SwitchedOut::{Asleep, Ready};
        let found = histories(
            &[
                switch(10, A, Asleep, B),
                switch(20, B, Asleep, IDLE),
                wake(100, A, Waker::Interrupt),
                switch(100, IDLE, Ready, A),
                wake(130, B, Waker::Thread(A)),
                switch(130, IDLE, Ready, B),
                // It waits for a mutex that `a` holds.
                switch(135, B, Asleep, IDLE),
                wake(150, B, Waker::Thread(A)),
                switch(150, IDLE, Ready, B),
                switch(155, A, Asleep, IDLE),
                switch(160, B, Asleep, IDLE),
            ],
            &[],
        );
        assert_eq!(shown(&found[&B]), [(1, 130, 160, 15)]);
        let job = found[&B].jobs[0];
        let origin = job.origin.map(|it| (it.number, it.executed.as_ns()));
        assert_eq!((origin, job.continued), (Some((1, 30)), 1));
    }

    #[test]
    fn jobs_in_a_gap_do_not_count_and_no_distance_spans_it() {
        use SwitchedOut::{Asleep, Ready};
        let job = |at| {
            [
                wake(at, A, Waker::Interrupt),
                switch(at, IDLE, Ready, A),
                switch(at + 10, A, Asleep, IDLE),
            ]
        };
        let events = [0, 100, 200, 300, 400, 500].map(job).concat();
        let found = histories(&events, &[(205, 315)]);
        // Of the job at 400 it is not known that the thread slept before it.
        assert_eq!(shown(&found[&A]), [(1, 100, 110, 10), (4, 500, 510, 10)]);
    }
}
