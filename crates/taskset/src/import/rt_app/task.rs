//! The task that a thread becomes, once its jobs are known.

use std::collections::BTreeMap;
use std::ops::Range;

use shiftwork_model::{
    Arrival, Join, OnOverrun, Phase, ResourceId, Span, Task, TaskId, TaskSet, Trigger, Work,
};

use super::super::Draft;
use super::fate::{Fate, Wakers};
use super::jobs::{self, Jobs, Release};
use super::program::{Act, Awaited};
use super::thread::Thread;

/// What tasks refer to by number.
pub(super) struct Numbers<'a> {
    wakers: Wakers<'a>,
    /// The numbers of the mutexes.
    mutexes: BTreeMap<&'a str, usize>,
    /// Of each thread the numbers of its tasks.
    tasks: Vec<Range<usize>>,
    /// The threads that wait, by what they wait for.
    waiting: BTreeMap<Awaited<'a>, Vec<usize>>,
}

impl<'a> Numbers<'a> {
    /// Numbers the tasks of the threads, and the mutexes, in their order.
    pub(super) fn new(threads: &[Thread<'a>], fates: &[Fate<'a>], mutexes: &[&'a str]) -> Self {
        let mut waiting: BTreeMap<Awaited<'a>, Vec<usize>> = BTreeMap::new();
        let mut tasks = Vec::new();
        let mut next = 0;
        for (number, (thread, fate)) in threads.iter().zip(fates).enumerate() {
            let instances = fate.jobs().map_or(0, |_| thread.instances);
            tasks.push(next..next + instances);
            next += instances;
            if let Some(Release::Awaited { all, .. }) = fate.jobs().map(|it| &it.release) {
                for awaited in all {
                    waiting.entry(*awaited).or_default().push(number);
                }
            }
        }
        Self {
            wakers: Wakers::of(threads, fates),
            mutexes: mutexes.iter().copied().zip(0..).collect(),
            tasks,
            waiting,
        }
    }

    /// The numbers of the tasks of a thread.
    pub(super) fn tasks(&self, thread: usize) -> Range<usize> {
        self.tasks[thread].clone()
    }

    /// The thread of a task.
    pub(super) fn thread(&self, task: TaskId) -> usize {
        self.tasks
            .partition_point(|tasks| tasks.end <= task.index())
    }

    /// The tasks that wait for this.
    fn woken(&self, awaited: Awaited<'a>) -> impl Iterator<Item = TaskId> {
        let threads = self.waiting.get(&awaited).map_or(&[][..], Vec::as_slice);
        let tasks = threads.iter().flat_map(|thread| self.tasks(*thread));
        tasks.map(TaskId::from_index)
    }

    /// The tasks that wake what waits for this.
    fn waking(&self, awaited: Awaited<'a>) -> impl Iterator<Item = TaskId> {
        let threads = self.wakers.of_one(awaited).iter();
        let tasks = threads.flat_map(|thread| self.tasks(*thread));
        tasks.map(TaskId::from_index)
    }

    /// How many phases, releases and sources a task with these jobs has.
    pub(super) fn length(&self, jobs: &Jobs<'a>) -> usize {
        let count = |awaited: Awaited<'a>, of: &BTreeMap<Awaited<'a>, Vec<usize>>| {
            let threads = of.get(&awaited).map_or(&[][..], Vec::as_slice);
            threads
                .iter()
                .map(|it| self.tasks[*it].len())
                .sum::<usize>()
        };
        let work = match &jobs.work {
            jobs::Work::Runs(runs) => runs.len(),
            jobs::Work::Acts(acts) => {
                let phases = acts.iter().map(|act| match act {
                    Act::Wake(awaited) => count(*awaited, &self.waiting),
                    _ => 1,
                });
                phases.sum()
            }
        };
        let release = match &jobs.release {
            Release::ByTime {
                arrival: Arrival::Releases(releases),
                ..
            } => releases.len(),
            Release::ByTime { .. } => 0,
            Release::Awaited { all, .. } => {
                let sources = all.iter().flat_map(|it| self.wakers.of_one(*it));
                sources.map(|it| self.tasks[*it].len()).sum()
            }
        };
        work + release
    }

    fn phases(&self, acts: &[Act<'a>]) -> Vec<Phase> {
        let mutex = |name| {
            let number = self.mutexes.get(name);
            ResourceId::from_index(*number.expect("the mutexes of all jobs are numbered"))
        };
        let mut phases = Vec::new();
        for act in acts {
            match *act {
                Act::Run(span) => phases.push(Phase::Run(span)),
                Act::Sleep(span) => phases.push(Phase::Sleep(span)),
                Act::Lock(name) => phases.push(Phase::Lock(mutex(name))),
                Act::Unlock(name) => phases.push(Phase::Unlock(mutex(name))),
                Act::Wake(awaited) => phases.extend(self.woken(awaited).map(Phase::Trigger)),
            }
        }
        phases
    }

    fn trigger(&self, all: &[Awaited<'a>]) -> Trigger {
        let mut sources: Vec<TaskId> = all.iter().flat_map(|it| self.waking(*it)).collect();
        sources.sort_unstable();
        Trigger {
            sources,
            join: match all {
                [_] => Join::Any,
                _ => Join::All,
            },
            // Where none waits at a condition, what would wake it is lost.
            queue: match all {
                [Awaited::Condition(_), ..] => Some(0),
                _ => None,
            },
        }
    }

    /// The task that each instance of the thread is, and what is lost of it, a line each. If others
    /// release it, its period and what follows from that are not known yet.
    pub(super) fn make(&self, thread: &Thread<'a>, jobs: &Jobs<'a>) -> (Draft, Vec<String>) {
        let mut lost = Vec::new();
        let longest = jobs.longest();
        let mut draft = match &jobs.release {
            Release::Awaited { all, .. } => {
                if !thread.delay.is_zero() {
                    lost.push(format!(
                        "`delay` {}; others can wake it from the start",
                        thread.delay
                    ));
                }
                let mut draft = Draft::new("", longest, Span::from_ns(1));
                draft.task.arrival = Arrival::Triggered(self.trigger(all));
                draft
            }
            Release::ByTime {
                offset,
                period,
                arrival,
                by_timer,
            } => {
                let takes_all = thread.server.filter(|_| jobs.takes_every_budget());
                if !by_timer && takes_all.is_none() {
                    lost.push(match jobs.never_waits() {
                        true => format!("it never waits; it is taken as jobs of {period} without a pause"),
                        false => format!(
                            "it has no timer; it is released every {period}, even if a job ends late"
                        ),
                    });
                }
                let period = takes_all.map_or(*period, |server| server.period);
                let mut draft = Draft::new("", longest, period);
                draft.task.arrival = arrival.clone();
                draft.task.offset = *offset + thread.delay;
                self.set_cost(&mut draft.task, thread, jobs, &mut lost);
                lost.extend(late_start(thread));
                draft
            }
        };
        draft.cpus = thread.cpus;
        draft.task.priority = thread.priority;
        (draft, lost)
    }

    /// Gives a task of known period its cost, deadline and work.
    fn set_cost(
        &self,
        task: &mut Task,
        thread: &Thread<'a>,
        jobs: &Jobs<'a>,
        lost: &mut Vec<String>,
    ) {
        let longest = jobs.longest();
        if let Some(server) = thread.server {
            task.cost = server.runtime;
            task.deadline = server.deadline;
            if server.period != task.period {
                let lost_period = format!(
                    "dl-period {}; it is released every {}, which is kept",
                    server.period, task.period
                );
                lost.push(lost_period);
            }
        } else {
            task.deadline = task.period;
            task.cost = longest.min(task.period);
            if task.cost < longest {
                let kept = task.cost;
                lost.push(format!(
                    "the cost {longest} exceeds the deadline; {kept} is kept"
                ));
            }
            task.on_overrun = OnOverrun::Continue;
        }
        task.work = match &jobs.work {
            // It takes its whole budget every time that there is one.
            _ if thread.server.is_some() && jobs.takes_every_budget() => Work::Cost,
            jobs::Work::Runs(runs) => match runs.as_slice() {
                [run] if *run == task.cost => Work::Cost,
                [run] => Work::Constant(*run),
                runs => Work::Trace(runs.to_vec()),
            },
            jobs::Work::Acts(acts) => Work::Phases(self.phases(acts)),
        };
    }

    /// Gives the tasks that others release their periods, and what follows from them. What is lost is
    /// added to `lost`, by thread.
    pub(super) fn settle(
        &self,
        threads: &[Thread<'a>],
        fates: &[Fate<'a>],
        drafts: &mut [Draft],
        lost: &mut [Vec<String>],
    ) {
        let tasks = drafts.iter().map(|draft| draft.task.clone()).collect();
        let mut set = TaskSet::new("", 1, tasks);
        let order = set.trigger_order().expect("circles have been refused");
        let mut of_first = BTreeMap::new();
        let tasks = self.tasks.iter().enumerate();
        for (thread, tasks) in tasks.filter(|(_, tasks)| !tasks.is_empty()) {
            of_first.insert(TaskId::from_index(tasks.start), thread);
        }
        for first in order {
            let Some((thread, period)) = of_first.get(&first).zip(set.triggered_period(first))
            else {
                continue;
            };
            let jobs = fates[*thread].jobs().expect("it has a task");
            let mut task = set.tasks[first.index()].clone();
            task.period = period;
            self.set_cost(&mut task, &threads[*thread], jobs, &mut lost[*thread]);
            for instance in self.tasks(*thread) {
                let name = std::mem::take(&mut set.tasks[instance].name);
                set.tasks[instance] = Task {
                    name,
                    ..task.clone()
                };
                drafts[instance].task = set.tasks[instance].clone();
            }
        }
    }
}

/// What is lost of a delay after which Linux does not let a SCHED_DEADLINE thread begin: its first period has begun when the
/// thread started, so that its deadline is over.
///
/// # Source
/// `dl_check_constrained_dl()` of Linux, `kernel/sched/deadline.c`.
fn late_start(thread: &Thread<'_>) -> Option<String> {
    let (server, delay) = (thread.server?, thread.delay);
    (server.deadline <= delay && delay < server.period).then(|| {
        format!(
            "`delay` {delay} ends after its first deadline, and Linux lets it begin with its second period, after {}",
            server.period
        )
    })
}
