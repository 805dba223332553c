//! Jobs that are boosted while they hold mutexes with FMLP+, of several CPUs or of one.

use std::collections::BTreeSet;

use shiftwork_analysis::stand_ins::StandIns;
use shiftwork_model::{Affinity, CpuId, Phase, Protocol, ResourceId, Span, TaskSet, Work};
use shiftwork_policy::registry;

use crate::alone::{self, Urgent, longest_of};
use crate::{Kind, no_phasing_refutes_what_is_shown, pair, sections};

fn cpu(set: &TaskSet, task: usize) -> CpuId {
    set.tasks[task].only_cpu().unwrap()
}

/// The CPUs, other than its own, of tasks that use the mutex with this one.
fn elsewhere(set: &TaskSet, task: usize, mutex: usize) -> BTreeSet<CpuId> {
    let id = ResourceId::from_index(mutex);
    let users = (0..set.tasks.len()).filter(|&it| set.tasks[it].locks_one(id));
    let cpus = users.map(|user| cpu(set, user));
    cpus.filter(|&it| it != cpu(set, task)).collect()
}

/// The longest section of the task, of mutexes that tasks on other CPUs use or of those that none does.
fn longest(set: &TaskSet, task: usize, is_across: bool) -> u64 {
    let all = sections(&set.tasks[task]).into_iter();
    let some = all.filter(|(mutex, _)| {
        mutex.is_some_and(|mutex| elsewhere(set, task, mutex).is_empty() != is_across)
    });
    some.map(|(_, length)| length).max().unwrap_or(0)
}

/// The most that jobs of these tasks, all of one CPU, have requested at an instant and not executed: one section each, one of them
/// perhaps of a mutex of that CPU.
fn pending(set: &TaskSet, tasks: &[usize]) -> u64 {
    let with = |local: Option<usize>| {
        let of = |&task: &usize| longest(set, task, local != Some(task));
        tasks.iter().map(of).sum()
    };
    let local = tasks.iter().map(|&task| with(Some(task)));
    local.chain([with(None)]).max().unwrap_or(0)
}

/// The tasks of the CPU that are not this one.
fn others(set: &TaskSet, on: CpuId, task: usize) -> Vec<usize> {
    let all = 0..set.tasks.len();
    all.filter(|&it| it != task && cpu(set, it) == on).collect()
}

/// How long a request of a job of the task waits at most, and its section takes longer than it is: for one section of each other
/// task of its CPU and those of the users.
fn waits(set: &TaskSet, task: usize, mutex: usize) -> u64 {
    let mut cpus = elsewhere(set, task, mutex);
    cpus.insert(cpu(set, task));
    let ahead = cpus.into_iter().flat_map(|on| others(set, on, task));
    ahead.map(|it| longest(set, it, true)).sum()
}

/// The sections of a job of the task of mutexes that tasks on other CPUs use, or of the others.
fn lengths(set: &TaskSet, task: usize, is_across: bool) -> Vec<u64> {
    let all = sections(&set.tasks[task]).into_iter();
    let some = all.filter(|(mutex, _)| {
        mutex.is_some_and(|mutex| elsewhere(set, task, mutex).is_empty() != is_across)
    });
    some.map(|(_, length)| length).collect()
}

/// What is added to a task if these bound responses, in which `u64::MAX` stands for none.
struct Added<'a> {
    set: &'a TaskSet,
    levels: &'a [u64],
    is_edf: bool,
    responses: Vec<u64>,
}

impl Added<'_> {
    /// All sections of jobs of the other task that may be pending while one of this task is; no more than matter.
    fn while_pending(&self, task: usize, other: usize, is_across: bool) -> Vec<u64> {
        let window = self.responses[task].saturating_add(self.responses[other]);
        let jobs = window.div_ceil(self.set.tasks[other].period.as_ns());
        let moments = sections(&self.set.tasks[task]).len() + 1;
        let each = lengths(self.set, other, is_across);
        each.repeat(usize::try_from(jobs).unwrap_or(moments).min(moments))
    }

    fn low(&self, task: usize) -> Vec<usize> {
        let mut all = others(self.set, cpu(self.set, task), task);
        all.retain(|it| self.levels[*it] > self.levels[task]);
        all
    }

    /// By request of a remote mutex, the other CPUs of its users.
    fn requests(&self, task: usize) -> Vec<BTreeSet<CpuId>> {
        let all = sections(&self.set.tasks[task]).into_iter();
        let cpus = all.filter_map(|(mutex, _)| Some(elsewhere(self.set, task, mutex?)));
        cpus.filter(|cpus| !cpus.is_empty()).collect()
    }

    /// For each request of a remote mutex the tasks of the CPUs of its users execute a section each, but no more than come while the job
    /// is pending.
    fn there(&self, task: usize) -> u64 {
        let requests = self.requests(task);
        let all = (0..self.set.tasks.len()).map(|other| {
            let on = cpu(self.set, other);
            let count = requests.iter().filter(|cpus| cpus.contains(&on)).count();
            longest_of(self.while_pending(task, other, true), count)
        });
        all.sum()
    }

    /// The same for these tasks of its own CPU, at so many moments.
    fn beside(&self, task: usize, tasks: &[usize], moments: usize) -> u64 {
        let boosted = tasks.iter().map(|&it| self.while_pending(task, it, true));
        let alone = tasks
            .iter()
            .flat_map(|&it| self.while_pending(task, it, false));
        let each = pending(self.set, tasks);
        alone::at_moments(moments, each, boosted.collect(), alone.collect())
    }

    /// While its requests wait.
    fn longer(&self, task: usize) -> u64 {
        let beside = match self.is_edf {
            true => others(self.set, cpu(self.set, task), task),
            false => self.low(task),
        };
        self.there(task) + self.beside(task, &beside, self.requests(task).len())
    }

    /// And once more, when a busy interval begins.
    fn added(&self, task: usize) -> u64 {
        self.longer(task) + pending(self.set, &self.low(task))
    }

    /// Or when the job arrives.
    fn kept_back(&self, task: usize) -> u64 {
        if self.is_edf {
            return self.added(task);
        }
        let moments = self.requests(task).len() + 1;
        self.there(task) + self.beside(task, &self.low(task), moments)
    }

    fn response(&self, task: usize) -> u64 {
        let beside = others(self.set, cpu(self.set, task), task).into_iter();
        let urgent = beside.filter(|it| self.levels[*it] <= self.levels[task]);
        let urgent = urgent.map(|it| Urgent {
            period: self.set.tasks[it].period.as_ns(),
            executes: self.set.tasks[it].cost.as_ns(),
            computes: self.set.tasks[it].cost.as_ns() + self.longer(it),
            response: self.responses[it],
        });
        let urgent: Vec<Urgent> = urgent.collect();
        let of = &self.set.tasks[task];
        let own = |longer| (of.cost.as_ns() + longer, of.period.as_ns());
        let suspended = alone::suspended(own(self.kept_back(task)), &urgent, |_| 0);
        let computing = alone::computing(own(self.added(task)), &urgent);
        let best = suspended.into_iter().chain(computing).min();
        best.map_or(u64::MAX, |it| it.max(self.responses[task]))
    }
}

fn added(set: &TaskSet, levels: &[u64], is_edf: bool) -> Option<Vec<[u64; 2]>> {
    let all = || 0..set.tasks.len();
    let is_suspension = !is_edf || set.tasks.iter().all(|it| it.deadline <= it.period);
    let responses = match is_edf {
        true => vec![u64::MAX; set.tasks.len()],
        false => set.tasks.iter().map(|it| it.cost.as_ns()).collect(),
    };
    let mut round = Added {
        set,
        levels,
        is_edf,
        responses,
    };
    // The least responses that bound themselves.
    loop {
        let next: Vec<u64> = all().map(|task| round.response(task)).collect();
        if is_edf || next == round.responses {
            break;
        }
        round.responses = next;
    }
    let of = |task| {
        let all = round.kept_back(task);
        [all, if is_suspension { all } else { 0 }]
    };
    Some(all().map(of).collect())
}

#[test]
fn no_phasing_refutes_what_is_shown_of_boosting() {
    no_phasing_refutes_what_is_shown(&Kind {
        across: Protocol::Fmlp,
        local: [Protocol::Fmlp; 2],
        takes: |_| true,
        policies: &["p-fp", "p-edf"],
        waits,
        added,
    });
}

#[test]
fn nothing_is_shown_where_the_proof_does_not_hold() {
    let traits = registry::find("p-fp").unwrap().traits;
    let is_known = |set: &TaskSet| matches!(StandIns::of(set, &traits), StandIns::Other(_));
    let run = |ns| Phase::Run(Span::from_ns(ns));
    let [a, b] = [0, 1].map(ResourceId::from_index);
    let after = |first, second| {
        [
            Phase::Lock(a),
            run(1),
            Phase::Unlock(a),
            first,
            Phase::Lock(b),
            second,
            Phase::Unlock(b),
        ]
    };
    let set = pair(Protocol::Fmlp, &after(run(1), run(2)));
    assert!(is_known(&set));
    let nested = [
        Phase::Lock(a),
        run(1),
        Phase::Lock(b),
        run(3),
        Phase::Unlock(b),
        Phase::Unlock(a),
    ];
    assert!(!is_known(&pair(Protocol::Fmlp, &nested)));
    // What is executed for no time does not come after a lock.
    assert!(!is_known(&pair(Protocol::Fmlp, &after(run(3), run(0)))));
    let mut unbound = set.clone();
    unbound.tasks[1].affinity = Affinity::new("0-1".parse().unwrap()).unwrap();
    assert!(!is_known(&unbound));
    for protocol in [Protocol::Inheritance, Protocol::Spin] {
        let mut other = set.clone();
        other.resources[1].protocol = protocol;
        assert!(!is_known(&other), "{protocol:?}");
    }
    // Of a mutex that a single task uses the protocol matters if its holder is not preempted.
    for (protocol, may_be) in [(Protocol::Ceiling, true), (Protocol::NonPreemptive, false)] {
        let mut own = set.clone();
        own.resources[1].protocol = protocol;
        own.tasks[1].work = Work::Phases(vec![Phase::Lock(a), run(4), Phase::Unlock(a)]);
        assert_eq!(is_known(&own), may_be, "{protocol:?}");
    }
}
