//! What a test is asked about: tasks on CPUs that no task connects with any others.

use std::borrow::Cow;

use shiftwork_model::{CpuId, CpuSet, Priority, Share, Span, TaskId};

use crate::affinity::{Bound, Groups, laminar};
use crate::exact::Rate;
use crate::pfair::Quanta;
use crate::uniprocessor::Suspending;
use crate::{Placed, Ranked, Sporadic};

/// How deadlines compare with periods, from the most special to the most general.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deadlines {
    /// Every deadline is the period.
    Implicit,
    /// None is beyond the period.
    Constrained,
    /// Anything.
    Arbitrary,
}

impl Deadlines {
    /// `implicit`, `constrained` or `arbitrary`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Implicit => "implicit",
            Self::Constrained => "constrained",
            Self::Arbitrary => "arbitrary",
        }
    }

    /// Of these tasks.
    pub fn of<'a>(tasks: impl IntoIterator<Item = &'a Sporadic>) -> Self {
        let one = |task: &Sporadic| match task.deadline.cmp(&task.period) {
            std::cmp::Ordering::Equal => Self::Implicit,
            std::cmp::Ordering::Less => Self::Constrained,
            std::cmp::Ordering::Greater => Self::Arbitrary,
        };
        tasks.into_iter().map(one).max().unwrap_or(Self::Implicit)
    }
}

/// What the affinities of a case look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// There is one CPU.
    One(CpuId),
    /// Every task may use every CPU, of which there are several.
    Uniform,
    /// They differ, and are nested or disjoint.
    Nested,
    /// They differ, and two overlap without nesting.
    Overlapping,
}

/// Tasks and their CPUs; all lists are in the same order.
pub(super) struct Case {
    /// Which tasks they are.
    pub ids: Vec<TaskId>,
    pub tasks: Vec<Sporadic>,
    /// Of policies that do not ask for any, the same for all.
    pub priorities: Vec<Priority>,
    /// The CPUs of each, where they differ.
    own: Option<Vec<CpuSet>>,
    /// All that any task may use.
    pub cpus: CpuSet,
    pub shape: Shape,
    pub deadlines: Deadlines,
    /// What the task set says beside its tasks.
    pub terms: CaseTerms,
    /// What of the cost of each task is execution and what suspension; empty where there is none, or no test counts it. Not empty
    /// only where the policy runs the most urgent of the ready jobs.
    pub suspensions: Vec<Suspended>,
}

/// What a cost stands for that counts a suspension as computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Suspended {
    /// For so long a job executes at most.
    pub executes: Span,
    /// For so long a job is suspended at most.
    pub suspended: Span,
}

/// What a task set says beside its tasks, as far as published tests speak of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct CaseTerms {
    /// Of quantum-driven policies.
    pub quantum: Span,
    /// Whether all jobs are released where quanta begin.
    pub aligned: bool,
    /// What SCHED_DEADLINE keeps of each CPU.
    pub reserve: Share,
    /// What tests count time in.
    pub tick: Span,
}

impl Case {
    /// The case of these tasks, with these CPUs each (`None`: all of `cpus`).
    pub fn new(
        ids: Vec<TaskId>,
        (tasks, priorities): (Vec<Sporadic>, Vec<Priority>),
        (cpus, own): (CpuSet, Option<Vec<CpuSet>>),
        terms: CaseTerms,
    ) -> Self {
        let own = own.filter(|own| own.iter().any(|mine| *mine != cpus));
        Self {
            shape: match &own {
                None => even_shape(&cpus),
                Some(own) => uneven_shape(&ids, own),
            },
            deadlines: Deadlines::of(&tasks),
            ids,
            tasks,
            priorities,
            own,
            cpus,
            terms,
            suspensions: Vec::new(),
        }
    }

    /// The same case with other tasks in the place of these.
    pub fn with(&self, tasks: Vec<Sporadic>) -> Self {
        Self {
            ids: self.ids.clone(),
            deadlines: Deadlines::of(&tasks),
            tasks,
            priorities: self.priorities.clone(),
            own: self.own.clone(),
            suspensions: self.suspensions.clone(),
            ..*self
        }
    }

    /// The same case, its tasks in whole ticks: costs rounded up, periods and deadlines rounded down, which
    /// only asks for more where releases are at whole ticks, as the unit demands: a job that is due no later than another is so by the
    /// rounded deadlines, too; and whether nothing had to be rounded. `None` if the tick is a nanosecond.
    pub fn in_ticks(&self) -> Option<(Self, bool)> {
        let tick = self.terms.tick.as_ns();
        if tick <= 1 {
            return None;
        }
        let of = |task: &Sporadic| Sporadic {
            cost: Span::from_ns(task.cost.as_ns().div_ceil(tick)),
            period: Span::from_ns(task.period.as_ns() / tick),
            deadline: Span::from_ns(task.deadline.as_ns() / tick),
        };
        let times = |task: &Sporadic| [task.cost, task.period, task.deadline];
        let mut all = self.tasks.iter().flat_map(times);
        let is_whole = all.all(|time| time.as_ns() % tick == 0);
        let mut in_ticks = self.with(self.tasks.iter().map(of).collect());
        for of in &mut in_ticks.suspensions {
            // Both are rounded up, and may be a tick more than the cost.
            for time in [&mut of.executes, &mut of.suspended] {
                *time = Span::from_ns(time.as_ns().div_ceil(tick));
            }
        }
        Some((in_ticks, is_whole))
    }

    /// The tasks as they really suspend themselves, where there is a test that counts that, and any does; `None` elsewhere.
    pub fn suspending(&self) -> Option<Vec<Suspending>> {
        (!self.suspensions.is_empty()).then(|| {
            let tasks = self.ranked().into_iter().zip(&self.suspensions);
            let suspending = tasks.map(|(mut ranked, of)| {
                ranked.task.cost = of.executes;
                Suspending {
                    ranked,
                    suspension: of.suspended,
                }
            });
            suspending.collect()
        })
    }

    /// The same as a case of tasks with what they execute alone for their costs, and for how long each is suspended at most. `None`, too, where
    /// time is counted in longer units than nanoseconds: what is rounded to these is no schedule of the tasks, and that with less
    /// execution or suspension jobs respond no later does not hold.
    pub fn executing(&self) -> Option<(Self, Vec<Span>)> {
        let in_ns = self.terms.tick.as_ns() <= 1;
        let suspending = self.suspending().filter(|_| in_ns)?;
        let tasks = suspending.iter().map(|task| task.ranked.task).collect();
        let suspensions = suspending.iter().map(|task| task.suspension).collect();
        Some((self.with(tasks), suspensions))
    }

    /// The tasks with what they need of CPUs at least, whatever counts as computing elsewhere.
    pub fn demanding(&self) -> Cow<'_, [Sporadic]> {
        match self.suspending() {
            Some(tasks) => tasks.iter().map(|it| it.ranked.task).collect(),
            None => Cow::Borrowed(&self.tasks),
        }
    }

    /// The CPUs of the task at this place.
    pub fn cpus_of(&self, place: usize) -> &CpuSet {
        self.own.as_ref().map_or(&self.cpus, |own| &own[place])
    }

    /// The tasks with priorities.
    pub fn ranked(&self) -> Vec<Ranked> {
        let ranked = self.tasks.iter().zip(&self.priorities);
        let ranked = ranked.map(|(&task, &priority)| Ranked { task, priority });
        ranked.collect()
    }

    /// The tasks with CPUs.
    pub fn placed(&self) -> Vec<Placed> {
        let placed = self.tasks.iter().enumerate().map(|(place, &task)| Placed {
            task,
            cpus: *self.cpus_of(place),
        });
        placed.collect()
    }

    /// Whether every task may use every CPU.
    pub fn is_global(&self) -> bool {
        matches!(self.shape, Shape::One(_) | Shape::Uniform)
    }

    /// How time is divided, if it is.
    pub const fn quanta(&self, staggered: bool) -> Quanta {
        Quanta {
            quantum: self.terms.quantum,
            staggered,
            aligned: self.terms.aligned,
        }
    }

    /// The tasks with priorities and CPUs.
    pub fn bound(&self) -> Vec<Bound> {
        let tasks = self.ranked().into_iter().enumerate();
        let bound = tasks.map(|(place, ranked)| Bound {
            ranked,
            cpus: *self.cpus_of(place),
        });
        bound.collect()
    }

    /// Whether no two tasks have the same priority.
    pub fn priorities_differ(&self) -> bool {
        let mut all = self.priorities.clone();
        all.sort_unstable();
        all.windows(2).all(|pair| pair[0] != pair[1])
    }

    /// The tasks by affinity, at this rate; `None` if a task has none.
    pub fn groups(&self, rate: fn(&Sporadic) -> Option<Rate>) -> Option<Groups> {
        self.groups_of(&self.tasks, rate)
    }

    /// The same with these in the place of the tasks.
    pub fn groups_of(
        &self,
        tasks: &[Sporadic],
        rate: fn(&Sporadic) -> Option<Rate>,
    ) -> Option<Groups> {
        let mut groups = Groups::default();
        for (place, (&id, task)) in self.ids.iter().zip(tasks).enumerate() {
            groups.add(id, *self.cpus_of(place), rate(task)?);
        }
        Some(groups)
    }
}

/// C/T.
pub(super) fn utilization(task: &Sporadic) -> Option<Rate> {
    Rate::new(task.cost, task.period)
}

/// C / min(D, T).
pub(super) fn density(task: &Sporadic) -> Option<Rate> {
    Rate::new(task.cost, task.deadline.min(task.period))
}

fn even_shape(cpus: &CpuSet) -> Shape {
    match (cpus.len(), cpus.lowest()) {
        (1, Some(cpu)) => Shape::One(cpu),
        _ => Shape::Uniform,
    }
}

fn uneven_shape(ids: &[TaskId], own: &[CpuSet]) -> Shape {
    let mut groups = Groups::default();
    for (&id, &cpus) in ids.iter().zip(own) {
        // The rate does not matter to the shape.
        if let Some(rate) = Rate::new(Span::ZERO, Span::from_ns(1)) {
            groups.add(id, cpus, rate);
        }
    }
    match laminar::Tree::new(&groups) {
        Some(_) => Shape::Nested,
        None => Shape::Overlapping,
    }
}
