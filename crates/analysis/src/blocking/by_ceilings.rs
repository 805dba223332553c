//! Blocking by mutexes with MPCP or DPCP, which jobs on different CPUs share and wait for suspended: their holders are boosted, by
//! ceilings.
//!
//! `docs/theory/blocking.md`, "Jobs that are boosted by ceilings", "Sections on other CPUs" and "Sections that come while a job is
//! pending", has the bounds and why tests may count them as computing.

mod responses;

use shiftwork_model::{CpuId, Priority, Protocol, ResourceId, Span, Task, TaskId, TaskSet};

use super::responses::{Load, STEPS, least};
use super::sections::Sections;
use super::{Blocked, Holding, holdings, is_local, matters, sum};
use crate::Steps;
use responses::Round;

/// A section of a job.
#[derive(Clone, Copy, Debug)]
struct Section {
    mutex: ResourceId,
    length: Span,
    /// `None` of a mutex that tasks of one CPU share.
    global: Option<Global>,
}

/// How a job executes a section of a global mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Global {
    /// On its CPU, with this remote ceiling.
    Remote(Priority),
    /// On this CPU.
    On(CpuId),
}

impl Section {
    fn remote(&self) -> Option<Priority> {
        match self.global {
            Some(Global::Remote(ceiling)) => Some(ceiling),
            _ => None,
        }
    }

    /// Whether the requests wait for the same: that mutex, or with DPCP those of that CPU.
    fn waits_with(&self, other: &Self) -> bool {
        match self.global {
            Some(Global::On(_)) => self.global == other.global,
            _ => self.mutex == other.mutex,
        }
    }

    /// Whether it is one of a global mutex that a task of this CPU executes there.
    fn is_boosted_on(&self, cpu: CpuId) -> bool {
        match self.global {
            Some(Global::Remote(_)) => true,
            Some(Global::On(on)) => on == cpu,
            None => false,
        }
    }
}

/// What is known of a task.
struct User<'a> {
    task: &'a Task,
    level: u64,
    /// `None` of a task that may be on several CPUs, and then locks nothing.
    cpu: Option<CpuId>,
    sections: Vec<Section>,
    /// Those with which it may keep back others of its CPU.
    beside: Sections,
}

impl User<'_> {
    /// Its sections that are executed on this CPU with DPCP.
    fn served_on(&self, cpu: CpuId) -> impl Iterator<Item = &Section> {
        let all = self.sections.iter();
        all.filter(move |it| matches!(it.global, Some(Global::On(on)) if on == cpu))
    }

    /// These, if there are any and this bounds its responses.
    fn load(&self, cpu: CpuId, response: Span) -> Option<Load> {
        let each = sum(self.served_on(cpu).map(|it| it.length));
        Load::new(self.task.period, response, each)
    }

    /// Those of global mutexes.
    fn global(&self) -> impl Iterator<Item = &Section> {
        self.sections.iter().filter(|it| it.global.is_some())
    }

    /// How long a job executes sections on other CPUs than its own.
    fn elsewhere(&self) -> Span {
        let is_elsewhere =
            |it: &&Section| matches!(it.global, Some(Global::On(on)) if Some(on) != self.cpu);
        let sections = self.sections.iter().filter(is_elsewhere);
        sum(sections.map(|it| it.length))
    }

    /// How long a job executes on its own CPU, nothing added.
    fn executes(&self) -> Span {
        self.task.cost.saturating_sub(self.elsewhere())
    }
}

struct System<'a> {
    tasks: &'a [Task],
    users: Vec<User<'a>>,
    /// By mutex, the least level of the tasks that use it.
    ceilings: Vec<u64>,
}

/// What MPCP or DPCP adds to the cost of each task, of these levels, which are priorities.
///
/// `None` where no bound is known: if any mutex that matters has another protocol, but for ceilings of mutexes that tasks of one CPU
/// share, some have MPCP and some DPCP, any is nested, a task that uses one is not bound to one CPU, or the responses of the tasks that wait for each other are not
/// bounded, or not within so many steps.
pub(super) fn blocking(set: &TaskSet, levels: &[u64]) -> Option<Blocked> {
    let system = System::new(set, levels)?;
    let mut steps = Steps::at_most(STEPS);
    // The least responses that are bounds if they are.
    let mut responses: Vec<Span> = set.tasks.iter().map(|task| task.cost).collect();
    loop {
        steps.take(1)?;
        let round = Round::new(&system, &responses, &mut steps)?;
        let next = round.responses(&mut steps)?;
        if next == responses {
            return round.blocked(&mut steps);
        }
        responses = next;
    }
}

impl<'a> System<'a> {
    fn new(set: &'a TaskSet, levels: &[u64]) -> Option<Self> {
        let mut tracked = vec![false; set.resources.len()];
        let mut protocols = (false, false);
        let mut remote: Vec<Vec<(TaskId, Priority)>> = vec![Vec::new(); set.resources.len()];
        for (index, resource) in set.resources.iter().enumerate() {
            let id = ResourceId::from_index(index);
            if !matters(set, id) {
                continue;
            }
            match resource.protocol {
                Protocol::Mpcp => {
                    remote[index] = set.remote_ceilings(id);
                    protocols.0 |= !remote[index].is_empty();
                }
                Protocol::Dpcp(_) => protocols.1 |= set.served_on(id).is_some(),
                Protocol::Ceiling if is_local(set, id) => {}
                _ => return None,
            }
            tracked[index] = true;
        }
        if protocols == (true, true) {
            return None;
        }
        let is_tracked = |id: ResourceId| tracked[id.index()];
        let mut nested = set.nested_locks().into_iter();
        if nested.any(|it| is_tracked(it.held) || is_tracked(it.locked)) {
            return None;
        }
        let all = (0..set.resources.len()).map(ResourceId::from_index);
        let ceiling = |id: ResourceId| {
            let users = set.tasks.iter().zip(levels);
            let users = users.filter(|(task, _)| task.locks_one(id));
            users.map(|(_, level)| *level).min().unwrap_or(u64::MAX)
        };
        let ceilings: Vec<u64> = all.map(ceiling).collect();
        let user = |((id, task), &level): ((TaskId, &'a Task), &u64)| {
            let section = |Holding { resource, from, to }| {
                let mut ceilings = remote[resource.index()].iter();
                let ceiling = ceilings.find(|(user, _)| *user == id);
                let served_on = set.served_on(resource).map(Global::On);
                Section {
                    mutex: resource,
                    length: to.saturating_sub(from),
                    global: served_on.or(ceiling.map(|it| Global::Remote(it.1))),
                }
            };
            let sections = holdings(task, &tracked, |_, _| Span::ZERO)?.into_iter();
            let sections: Vec<Section> = sections.map(section).collect();
            let cpu = task.only_cpu();
            (cpu.is_some() || sections.is_empty()).then(|| User {
                task,
                level,
                cpu,
                beside: beside(&sections, cpu, &ceilings),
                sections,
            })
        };
        Some(Self {
            tasks: &set.tasks,
            users: set.iter().zip(levels).map(user).collect::<Option<_>>()?,
            ceilings,
        })
    }

    /// The others that may be on this CPU.
    fn beside<'b>(&'b self, cpu: CpuId, own: &'b User<'_>) -> impl Iterator<Item = &'b User<'a>> {
        let others = self.users.iter();
        others.filter(move |it| {
            !std::ptr::eq(it.task, own.task) && it.task.affinity.cpus().contains(cpu)
        })
    }

    /// H: how long a job of the task has the mutex of this section with MPCP at most, which is global: for the section, and one of each other
    /// task of its CPU of which the ceiling is as urgent.
    fn hold(&self, own: &User<'_>, section: Section) -> Span {
        let precedes =
            |other: &Section| other.remote().is_some() && other.remote() <= section.remote();
        let others = own.cpu.into_iter().flat_map(|cpu| self.beside(cpu, own));
        let longest = others.map(|other| {
            let sections = other.sections.iter().filter(|it| precedes(it));
            sections.map(|it| it.length).max().unwrap_or_default()
        });
        longest.fold(section.length, saturating)
    }

    /// Jobs of other tasks with at least this priority that this request may wait for, if these are bounds on responses.
    fn ahead(&self, own: &User<'_>, section: Section, responses: &[Span]) -> Vec<Load> {
        let others = self.users.iter().zip(responses);
        let high = others
            .filter(|(other, _)| !std::ptr::eq(other.task, own.task) && other.level <= own.level);
        let load = |(high, &response): (&User<'_>, &Span)| match section.global {
            Some(Global::On(cpu)) => high.load(cpu, response),
            _ => {
                let same = high.sections.iter().filter(|it| it.mutex == section.mutex);
                let each = sum(same.map(|it| self.hold(high, *it)));
                Load::new(high.task.period, response, each)
            }
        };
        high.filter_map(load).collect()
    }

    /// What this request waits for beside those: a job of a task with a lower priority, and with DPCP until the end of its own section.
    fn first(&self, own: &User<'_>, section: Section) -> Span {
        let low = self.users.iter().filter(|other| other.level > own.level);
        match section.global {
            Some(Global::On(cpu)) => {
                let low = low.flat_map(|low| low.served_on(cpu));
                let blocks = |it: &&Section| self.ceilings[it.mutex.index()] <= own.level;
                let low = low.filter(blocks).map(|it| it.length).max();
                saturating(section.length, low.unwrap_or_default())
            }
            _ => {
                let low = low.filter(|other| other.cpu != own.cpu);
                let holds = low.flat_map(|low| {
                    let same = low.sections.iter().filter(|it| it.mutex == section.mutex);
                    same.map(|it| self.hold(low, *it))
                });
                holds.max().unwrap_or_default()
            }
        }
    }

    /// By task, how long its job waits for global mutexes in all at most, and with DPCP for others during its sections, if these are
    /// bounds on responses; `None` if there is no bound, or not within the steps.
    fn requests(&self, responses: &[Span], steps: &mut Steps) -> Option<Vec<Span>> {
        let of = |(user, &response): (&User<'_>, &Span)| {
            let mut left: Vec<Section> = user.global().copied().collect();
            let mut all = Span::ZERO;
            while let Some(&section) = left.first() {
                let (same, others) = left.into_iter().partition(|it| it.waits_with(&section));
                left = others;
                all = saturating(
                    all,
                    self.together(user, (&same, response), responses, steps)?,
                );
            }
            Some(all)
        };
        self.users.iter().zip(responses).map(of).collect()
    }

    /// That of requests that wait for the same: the sum of the longest of each, or what all other jobs can take while the job is pending.
    fn together(
        &self,
        own: &User<'_>,
        (sections, response): (&[Section], Span),
        responses: &[Span],
        steps: &mut Steps,
    ) -> Option<Span> {
        let ahead = self.ahead(own, *sections.first()?, responses);
        let first = sections.iter().map(|it| self.first(own, *it));
        let first: Vec<Span> = first.collect();
        let of = |&first: &Span| least((first, Span::MAX), &ahead, steps);
        let each = first.iter().map(of);
        let each: Option<Vec<Span>> = each.collect();
        let while_pending = ahead.iter().try_fold(sum(first), |all, load| {
            Some(saturating(all, load.within(response)?))
        });
        let most = each.map(sum).into_iter().chain(while_pending).min()?;
        let is_served = |it: &&Section| matches!(it.global, Some(Global::On(_)));
        let served = sections.iter().filter(is_served);
        Some(most.saturating_sub(sum(served.map(|it| it.length))))
    }
}

/// With which of these sections the task keeps back others of its CPU.
fn beside(sections: &[Section], cpu: Option<CpuId>, ceilings: &[u64]) -> Sections {
    let boosted = sections
        .iter()
        .filter(|it| cpu.is_some_and(|cpu| it.is_boosted_on(cpu)));
    let alone = sections.iter().filter(|it| it.global.is_none());
    let alone = alone.map(|it| (it.length, ceilings[it.mutex.index()]));
    Sections::new(boosted.map(|it| it.length).collect(), alone.collect())
}

fn saturating(a: Span, b: Span) -> Span {
    (a + b).min(Span::MAX)
}
