//! Blocking by mutexes with FMLP+, which jobs on different CPUs share and wait for suspended: their holders are boosted.
//!
//! `docs/theory/blocking.md`, "Jobs that are boosted" and "Sections that come while a job is pending", has the bounds
//! and why tests may count them as computing.

use shiftwork_model::{CpuId, Protocol, ResourceId, Span, Task, TaskSet};

use super::responses::{Delays, Load, STEPS, pending_in, response};
use super::sections::{Jobs, Sections, at_moments};
use super::{Blocked, Holding, holdings, locked, matters, sum};
use crate::Steps;

/// What a task does with mutexes.
struct User {
    /// `None` of a task that may be on several CPUs, and then locks nothing.
    cpu: Option<CpuId>,
    sections: Sections,
    /// By request of a mutex that tasks on other CPUs use, these CPUs.
    requests: Vec<Vec<CpuId>>,
}

struct System<'a> {
    tasks: &'a [Task],
    levels: &'a [u64],
    users: Vec<User>,
    /// Levels are relative deadlines, and later jobs of the others may be less urgent than earlier ones.
    is_edf: bool,
}

/// What FMLP+ adds to the cost of each task, of these levels; `is_edf`: levels are relative deadlines.
///
/// `None` where no bound is known: if any mutex that matters has another protocol, one with this protocol is nested, or a task that
/// uses one is not bound to one CPU.
pub(super) fn blocking(set: &TaskSet, levels: &[u64], is_edf: bool) -> Option<Blocked> {
    let system = System::new(set, levels, is_edf)?;
    // Under EDF the count is one of jobs whose predecessors are complete at their releases.
    let is_suspension = !is_edf || set.tasks.iter().all(|task| task.deadline <= task.period);
    let unlimited = vec![Span::MAX; set.tasks.len()];
    let responses = match is_edf {
        true => None,
        false => system.responses(),
    };
    let round = Round::new(&system, responses.as_deref().unwrap_or(&unlimited));
    let of = |place: usize| {
        let cpus = set.tasks[place].affinity.cpus().iter();
        let on = cpus.map(|cpu| round.kept_back(place, cpu));
        on.max().unwrap_or_default()
    };
    Some(Blocked::new(
        (0..set.tasks.len()).map(of).collect(),
        is_suspension,
    ))
}

impl<'a> System<'a> {
    fn new(set: &'a TaskSet, levels: &'a [u64], is_edf: bool) -> Option<Self> {
        let all = (0..set.resources.len()).map(ResourceId::from_index);
        let boosts = |id: ResourceId| set.resources[id.index()].protocol == Protocol::Fmlp;
        if all.clone().any(|id| matters(set, id) && !boosts(id)) {
            return None;
        }
        let mut nested = set.nested_locks().into_iter();
        if nested.any(|it| boosts(it.held) || boosts(it.locked)) {
            return None;
        }
        let boosting: Vec<bool> = all.map(boosts).collect();
        let uses_one = |task: &Task| locked(task).any(|id| boosting[id.index()]);
        let mut unbound = set.tasks.iter().filter(|task| task.only_cpu().is_none());
        if unbound.any(uses_one) {
            return None;
        }
        let users = set.tasks.iter().map(|task| User::new(set, task, &boosting));
        Some(Self {
            tasks: &set.tasks,
            levels,
            users: users.collect::<Option<_>>()?,
            is_edf,
        })
    }

    /// Bounds on the responses of the tasks, [`Span::MAX`] where none is known; `None` if these are not found within the steps.
    fn responses(&self) -> Option<Vec<Span>> {
        let mut steps = Steps::at_most(STEPS);
        // The least responses that are bounds if they are.
        let mut responses: Vec<Span> = self.tasks.iter().map(|task| task.cost).collect();
        loop {
            steps.take(self.tasks.len() * self.tasks.len())?;
            let round = Round::new(self, &responses);
            let of = |(place, &before): (usize, &Span)| {
                if before == Span::MAX {
                    return Some(before);
                }
                let found = response(&round, place, &responses, &mut steps);
                (!steps.are_used_up()).then(|| found.map_or(Span::MAX, |found| found.max(before)))
            };
            let next: Vec<Span> = responses
                .iter()
                .enumerate()
                .map(of)
                .collect::<Option<_>>()?;
            if next == responses {
                return Some(next);
            }
            responses = next;
        }
    }
}

/// What follows from these responses.
struct Round<'a> {
    system: &'a System<'a>,
    responses: &'a [Span],
    /// By task, V, and what other jobs of its CPU add while its requests wait.
    elsewhere: Vec<Span>,
    beside: Vec<Span>,
}

impl Delays for Round<'_> {
    fn tasks(&self) -> &[Task] {
        self.system.tasks
    }

    fn level(&self, place: usize) -> u64 {
        self.system.levels[place]
    }

    fn longer(&self, place: usize, _: CpuId) -> Span {
        sum([self.elsewhere[place], self.beside[place]])
    }

    fn added(&self, place: usize, cpu: CpuId) -> Span {
        let low = at_moments(&self.jobs_beside(place, cpu, false), 1, 0);
        sum([self.longer(place, cpu), low])
    }

    fn kept_back(&self, place: usize, cpu: CpuId) -> Span {
        if self.system.is_edf {
            return self.added(place, cpu);
        }
        // What jobs had requested when it arrived they may not request again while it waits.
        let moments = self.system.users[place].requests.len() + 1;
        let low = at_moments(&self.jobs_beside(place, cpu, false), moments, 0);
        sum([self.elsewhere[place], low])
    }

    fn executes(&self, place: usize) -> Span {
        self.system.tasks[place].cost
    }

    fn visiting(&self, _: CpuId) -> Vec<Load> {
        Vec::new()
    }

    fn guests(&self, _: usize, _: CpuId, _: &mut Steps) -> Option<Span> {
        Some(Span::ZERO)
    }
}

impl<'a> Round<'a> {
    fn new(system: &'a System<'a>, responses: &'a [Span]) -> Self {
        let mut round = Self {
            system,
            responses,
            elsewhere: Vec::new(),
            beside: Vec::new(),
        };
        let users = || system.users.iter().enumerate();
        round.elsewhere = users().map(|(place, _)| round.elsewhere(place)).collect();
        let beside = users().map(|(place, user)| {
            let jobs = user
                .cpu
                .map(|cpu| round.jobs_beside(place, cpu, system.is_edf));
            jobs.map_or(Span::ZERO, |jobs| at_moments(&jobs, user.requests.len(), 0))
        });
        round.beside = beside.collect();
        round
    }

    /// How long tasks of other CPUs execute sections there that were requested before those of a job of this task.
    fn elsewhere(&self, place: usize) -> Span {
        let requests = &self.system.users[place].requests;
        if requests.is_empty() {
            return Span::ZERO;
        }
        let others = self.system.users.iter().enumerate();
        sum(others.map(|(other, of)| {
            let on = |cpus: &&Vec<CpuId>| of.cpu.is_some_and(|cpu| cpus.contains(&cpu));
            let requests = requests.iter().filter(on).count();
            self.while_pending(place, other).boosted(requests)
        }))
    }

    /// The jobs of less urgent tasks of this CPU that may be pending while one of this task is, or of all others there.
    fn jobs_beside(&self, place: usize, cpu: CpuId, all: bool) -> Vec<Jobs<'_>> {
        let levels = self.system.levels;
        let others = self.system.users.iter().enumerate();
        let beside = others.filter(|(other, user)| {
            *other != place && user.cpu == Some(cpu) && (all || levels[*other] > levels[place])
        });
        let jobs = beside.map(|(other, _)| self.while_pending(place, other));
        jobs.collect()
    }

    /// The jobs of the other task that may be pending while one of this task is.
    fn while_pending(&self, place: usize, other: usize) -> Jobs<'_> {
        let period = self.system.tasks[other].period;
        Jobs {
            of: &self.system.users[other].sections,
            count: pending_in(self.responses[place], self.responses[other], period),
        }
    }
}

impl User {
    fn new(set: &TaskSet, task: &Task, boosting: &[bool]) -> Option<Self> {
        let cpu = task.only_cpu();
        let (mut boosted, mut alone) = (Vec::new(), Vec::new());
        let mut requests: Vec<Vec<CpuId>> = Vec::new();
        for Holding { resource, from, to } in holdings(task, boosting, |_, _| Span::ZERO)? {
            let length = to.saturating_sub(from);
            let users = set.tasks.iter().filter(|task| task.locks_one(resource));
            let mut cpus: Vec<CpuId> = users.filter_map(Task::only_cpu).collect();
            cpus.retain(|it| Some(*it) != cpu);
            if cpus.is_empty() {
                alone.push((length, 0));
            } else {
                boosted.push(length);
                requests.push(cpus);
            }
        }
        Some(Self {
            cpu,
            sections: Sections::new(boosted, alone),
            requests,
        })
    }
}
