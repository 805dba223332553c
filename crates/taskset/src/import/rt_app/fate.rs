//! What becomes of each thread: the jobs of a task, nothing since it does nothing, or a refusal.
//!
//! A thread that waits for others is a task if all that wake it are tasks, and if the wake-ups that a
//! task can be released by are those by which the thread goes on.

use std::collections::{BTreeMap, BTreeSet};

use super::jobs::{self, Jobs, Release};
use super::program::{Awaited, Step};
use super::shared::Shared;
use super::thread::{Server, Thread};

/// What becomes of a thread.
pub(super) enum Fate<'a> {
    Task(Jobs<'a>),
    /// It is never started, or never computes and does nothing to other threads.
    NoTask,
    /// Why it can be no task.
    Refused(String),
}

impl<'a> Fate<'a> {
    /// The jobs of the task that the thread becomes.
    pub(super) const fn jobs(&self) -> Option<&Jobs<'a>> {
        match self {
            Self::Task(jobs) => Some(jobs),
            Self::NoTask | Self::Refused(_) => None,
        }
    }

    const fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(_))
    }
}

/// Decides what becomes of each of these threads; `refused` are those that are refused for what they
/// do together with others, with the reason.
pub(super) fn decide<'a>(
    threads: &[Thread<'a>],
    refused: &BTreeMap<usize, String>,
) -> (Vec<Fate<'a>>, Shared<'a>) {
    let first = |(number, thread): (usize, &Thread<'a>)| {
        let reason = thread.refused.as_ref().or(refused.get(&number));
        reason.map_or(Fate::NoTask, |reason| Fate::Refused(reason.clone()))
    };
    let mut fates: Vec<Fate<'a>> = threads.iter().enumerate().map(first).collect();
    let both = fates.iter().zip(threads);
    let mut lives: Vec<bool> = both
        .map(|(fate, thread)| !fate.is_refused() && thread.instances > 0)
        .collect();
    let mut shared = None;
    // What threads do that are no tasks does not matter to others. So mutexes, and what is waited for,
    // become fewer with each turn; usually the second one changes nothing.
    loop {
        let living = threads.iter().zip(&lives).filter(|(_, lives)| **lives);
        let now = Shared::of(living.map(|(thread, _)| (&thread.program, thread.instances)));
        if let Some(before) = shared.take_if(|before| *before == now) {
            return (fates, before);
        }
        for ((fate, thread), _) in fates.iter_mut().zip(threads).zip(&lives).filter(|it| *it.1) {
            *fate = decide_alone(thread, &now);
        }
        Wakers::of(threads, &fates).refuse_unreleased(threads, &mut fates);
        lives = fates.iter().map(|fate| fate.jobs().is_some()).collect();
        shared = Some(now);
    }
}

/// What becomes of a thread if those that it waits for are tasks.
fn decide_alone<'a>(thread: &Thread<'a>, shared: &Shared<'a>) -> Fate<'a> {
    match jobs::find(&thread.program, shared) {
        Err(reason) => Fate::Refused(reason),
        Ok(None) => Fate::NoTask,
        Ok(Some(jobs)) => match refusal_by_server(&jobs, thread.server) {
            Some(reason) => Fate::Refused(reason),
            None => Fate::Task(jobs),
        },
    }
}

/// Why no task has these jobs under this server, if it is the server that keeps it from it.
fn refusal_by_server(jobs: &Jobs<'_>, server: Option<Server>) -> Option<String> {
    let server = server?;
    let (longest, runtime) = (jobs.longest(), server.runtime);
    if !server.is_valid() {
        return Some(format!(
            "Linux refuses SCHED_DEADLINE with runtime {runtime}, deadline {}, period {}",
            server.deadline, server.period
        ));
    }
    if longest <= runtime || jobs.takes_every_budget() {
        return None;
    }
    if jobs.locks() {
        return Some(format!(
            "it computes for {longest} with a budget of {runtime}, and would be throttled while it holds a mutex that others lock"
        ));
    }
    match &jobs.release {
        Release::ByTime { period, .. } if *period != server.period => Some(format!(
            "it computes for {longest} every {period}, with a budget of {runtime} every {}",
            server.period
        )),
        Release::ByTime { .. } | Release::Awaited { .. } => None,
    }
}

/// Which threads wake and which wait, by what is waited for.
#[derive(Default)]
pub(super) struct Wakers<'a> {
    /// The threads whose jobs wake what waits for it, by their numbers, in order.
    by: BTreeMap<Awaited<'a>, Vec<usize>>,
    /// A thread that does and is refused.
    refused: BTreeMap<Awaited<'a>, usize>,
    /// How many instances of threads wait for it.
    waiting: BTreeMap<Awaited<'a>, usize>,
    /// Where some thread wakes one of those that wait, and not all.
    one: BTreeSet<Awaited<'a>>,
}

impl<'a> Wakers<'a> {
    /// Those among these threads.
    pub(super) fn of(threads: &[Thread<'a>], fates: &[Fate<'a>]) -> Self {
        let mut all = Self::default();
        for (number, (thread, fate)) in threads.iter().zip(fates).enumerate() {
            match fate {
                Fate::NoTask => continue,
                Fate::Task(jobs) => {
                    let woken: BTreeSet<_> = jobs.woken().collect();
                    for awaited in woken {
                        all.by.entry(awaited).or_default().push(number);
                    }
                }
                Fate::Refused(_) => {
                    let woken = thread.program.steps().filter_map(Step::woken);
                    all.refused.extend(woken.map(|awaited| (awaited, number)));
                }
            }
            for awaited in thread.program.awaited() {
                *all.waiting.entry(awaited).or_default() += thread.instances;
            }
            let one = thread.program.steps().filter_map(|step| match step {
                Step::WakeOne(awaited) => Some(awaited),
                _ => None,
            });
            all.one.extend(one);
        }
        all
    }

    /// The threads that wake what waits for it, by their numbers, in order.
    pub(super) fn of_one(&self, awaited: Awaited<'a>) -> &[usize] {
        self.by.get(&awaited).map_or(&[], Vec::as_slice)
    }

    /// Refuses the threads that wait for others, and are woken otherwise than a task is triggered.
    ///
    /// A depth-first search: a thread is judged when all that wake it have been, or are found to wait
    /// for it in turn.
    fn refuse_unreleased(&self, threads: &[Thread<'a>], fates: &mut [Fate<'a>]) {
        let mut is_judged = vec![false; threads.len()];
        for root in 0..threads.len() {
            // On the way from one thread to one that wakes it, each with the number of those seen.
            let mut path = vec![(root, 0)];
            while let Some(&mut (thread, ref mut seen)) = path.last_mut() {
                let waker = match is_judged[thread] {
                    true => None,
                    false => self.waker(&fates[thread], *seen),
                };
                *seen += 1;
                match waker {
                    Some(waker) if is_judged[waker] => {}
                    Some(waker) => match path.iter().position(|(on, _)| *on == waker) {
                        None => path.push((waker, 0)),
                        Some(from) => refuse_circle(&path[from..], threads, fates),
                    },
                    None => {
                        if !is_judged[thread]
                            && let Some(reason) = self.refusal(threads, fates, thread)
                        {
                            fates[thread] = Fate::Refused(reason);
                        }
                        is_judged[thread] = true;
                        path.pop();
                    }
                }
            }
        }
    }

    /// One of the threads that wake this one.
    fn waker(&self, fate: &Fate<'a>, mut index: usize) -> Option<usize> {
        let Release::Awaited { all, .. } = &fate.jobs()?.release else {
            return None;
        };
        for awaited in all {
            let wakers = self.of_one(*awaited);
            if let Some(waker) = wakers.get(index) {
                return Some(*waker);
            }
            index -= wakers.len();
        }
        None
    }

    /// Why no task is released as this thread is woken.
    fn refusal(&self, threads: &[Thread<'a>], fates: &[Fate<'a>], thread: usize) -> Option<String> {
        let Release::Awaited { key, all } = &fates[thread].jobs()?.release else {
            return None;
        };
        for &awaited in all {
            let name = awaited.name();
            let wakers = self.of_one(awaited);
            let mut refused = wakers.iter().filter(|waker| fates[**waker].is_refused());
            if let Some(waker) = refused.next().or(self.refused.get(&awaited)) {
                let waker = threads[*waker].json.key;
                return Some(format!(
                    "`{key}` waits for `{name}`, for which thread `{waker}` is needed, which is not imported"
                ));
            }
            if wakers.is_empty() {
                return Some(format!(
                    "`{key}` waits for `{name}`, which no job of another thread makes happen"
                ));
            }
            let others = self.waiting.get(&awaited).copied().unwrap_or_default();
            if others > 1 && self.one.contains(&awaited) {
                return Some(format!(
                    "{others} threads wait for `{name}`, and which one is woken depends on the moment; \
                     accepted: one thread that waits, or a condition with `broad` or `resume`"
                ));
            }
            let first = |of: Awaited<'a>| match self.of_one(of) {
                [waker] if threads[*waker].instances == 1 => Some(*waker),
                _ => None,
            };
            let mut rest = all.iter().filter(|other| **other != awaited);
            let is_own =
                first(awaited).is_some_and(|own| rest.all(|other| first(*other) != Some(own)));
            if all.len() > 1 && !is_own {
                return Some(format!(
                    "`{key}` waits for several semaphores, and of `{name}` not one thread alone posts, which posts no other of them"
                ));
            }
        }
        None
    }
}

/// The most threads that a reason names.
const NAMES_MAX: usize = 8;

/// Refuses threads of which each is woken by the next, and the last by the first.
fn refuse_circle(circle: &[(usize, usize)], threads: &[Thread<'_>], fates: &mut [Fate<'_>]) {
    let names = circle.iter().take(NAMES_MAX);
    let mut names: Vec<String> = names
        .map(|(thread, _)| format!("`{}`", threads[*thread].json.key))
        .collect();
    if circle.len() > NAMES_MAX {
        names.push(format!("{} more", circle.len() - NAMES_MAX));
    }
    for (thread, _) in circle {
        if let Some(Release::Awaited { key, .. }) = fates[*thread].jobs().map(|it| &it.release) {
            fates[*thread] = Fate::Refused(match circle {
                [_] => format!(
                    "`{key}` waits for what the thread itself makes happen, and no task triggers itself"
                ),
                _ => format!(
                    "`{key}` waits in a circle of threads that wake each other ({}), and a task set starts each chain of \
                     triggers by a task that is released by time",
                    names.join(", ")
                ),
            });
        }
    }
}
