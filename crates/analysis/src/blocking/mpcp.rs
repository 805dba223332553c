//! Blocking by mutexes with MPCP, which jobs on different CPUs share and wait for suspended: their holders are boosted, by ceilings.
//!
//! `docs/theory/blocking.md`, "Jobs that are boosted by ceilings", has the bounds and why tests may count them as computing.

use shiftwork_model::{CpuId, Priority, Protocol, ResourceId, Span, Task, TaskId, TaskSet};

use super::{Holding, holdings, is_local, matters};
use crate::uniprocessor::fp_response_time;
use crate::{Sporadic, Steps};

/// For the responses of all tasks together.
const STEPS: u64 = 1_000_000;

/// A section of a job.
#[derive(Clone, Copy, Debug)]
struct Section {
    mutex: ResourceId,
    length: Span,
    /// The remote ceiling; `None` of a mutex that tasks of one CPU share.
    remote: Option<Priority>,
}

/// What is known of a task.
struct User<'a> {
    task: &'a Task,
    level: u64,
    /// `None` of a task that may be on several CPUs, and then locks nothing.
    cpu: Option<CpuId>,
    sections: Vec<Section>,
}

struct System<'a> {
    users: Vec<User<'a>>,
    /// By mutex, the least level of the tasks that use it.
    ceilings: Vec<u64>,
    cpus: usize,
}

/// What MPCP adds to the cost of each task, of these levels, which are priorities.
///
/// `None` where no bound is known: if any mutex that matters has another protocol, but for ceilings of mutexes that tasks of one CPU
/// share, any is nested, a task that uses one is not bound to one CPU, or the responses of the tasks that wait for each other are not
/// bounded, or not within so many steps.
pub(super) fn blocking(set: &TaskSet, levels: &[u64]) -> Option<Vec<Span>> {
    let system = System::new(set, levels)?;
    let mut steps = Steps::at_most(STEPS);
    // The least responses that are bounds if they are.
    let mut responses: Vec<Span> = set.tasks.iter().map(|task| task.cost).collect();
    loop {
        let longer = system.longer(&responses, &mut steps)?;
        let next = system.responses(&responses, &longer, &mut steps)?;
        if next == responses {
            let all = system.users.iter().zip(longer);
            return Some(all.map(|(user, own)| own + system.low(user)).collect());
        }
        responses = next;
    }
}

impl<'a> System<'a> {
    fn new(set: &'a TaskSet, levels: &[u64]) -> Option<Self> {
        let mut tracked = vec![false; set.resources.len()];
        let mut remote: Vec<Vec<(TaskId, Priority)>> = vec![Vec::new(); set.resources.len()];
        for (index, resource) in set.resources.iter().enumerate() {
            let id = ResourceId::from_index(index);
            if !matters(set, id) {
                continue;
            }
            match resource.protocol {
                Protocol::Mpcp => remote[index] = set.remote_ceilings(id),
                Protocol::Ceiling if is_local(set, id) => {}
                _ => return None,
            }
            tracked[index] = true;
        }
        let is_tracked = |id: ResourceId| tracked[id.index()];
        let mut nested = set.nested_locks().into_iter();
        if nested.any(|it| is_tracked(it.held) || is_tracked(it.locked)) {
            return None;
        }
        let user = |((id, task), &level): ((TaskId, &'a Task), &u64)| {
            let section = |Holding { resource, from, to }| {
                let mut ceilings = remote[resource.index()].iter();
                Section {
                    mutex: resource,
                    length: to.saturating_sub(from),
                    remote: ceilings.find(|(user, _)| *user == id).map(|it| it.1),
                }
            };
            let sections = holdings(task, &tracked, |_, _| Span::ZERO)?.into_iter();
            let sections: Vec<Section> = sections.map(section).collect();
            let cpu = task.only_cpu();
            (cpu.is_some() || sections.is_empty()).then_some(User {
                task,
                level,
                cpu,
                sections,
            })
        };
        let users = set.iter().zip(levels).map(user).collect::<Option<_>>()?;
        let all = (0..set.resources.len()).map(ResourceId::from_index);
        let ceiling = |id: ResourceId| {
            let users = set.tasks.iter().zip(levels);
            let users = users.filter(|(task, _)| task.locks_one(id));
            users.map(|(_, level)| *level).min().unwrap_or(u64::MAX)
        };
        Some(Self {
            users,
            ceilings: all.map(ceiling).collect(),
            cpus: set.platform.cpus,
        })
    }

    /// The others that may be on this CPU.
    fn beside<'b>(&'b self, cpu: CpuId, own: &'b User<'_>) -> impl Iterator<Item = &'b User<'a>> {
        let others = self.users.iter();
        others.filter(move |it| {
            !std::ptr::eq(it.task, own.task) && it.task.affinity.cpus().contains(cpu)
        })
    }

    /// H: how long a job of the task has the mutex of this section at most, which is global: for the section, and one of each other
    /// task of its CPU of which the ceiling is as urgent.
    fn hold(&self, own: &User<'_>, section: Section) -> Span {
        let precedes = |other: &Section| other.remote.is_some() && other.remote <= section.remote;
        let others = own.cpu.into_iter().flat_map(|cpu| self.beside(cpu, own));
        let longest = others.map(|other| {
            let sections = other.sections.iter().filter(|it| precedes(it));
            sections.map(|it| it.length).max().unwrap_or_default()
        });
        longest.fold(section.length, saturating)
    }

    /// W: how long a job of the task waits for this mutex at most if these are bounds on responses; `None` if there is no bound, or
    /// not within the steps.
    fn wait(
        &self,
        own: &User<'_>,
        mutex: ResourceId,
        responses: &[Span],
        steps: &mut Steps,
    ) -> Option<Span> {
        let all = |user: &User<'_>| {
            let sections = user.sections.iter().filter(|it| it.mutex == mutex);
            sections
                .map(|it| self.hold(user, *it))
                .collect::<Vec<Span>>()
        };
        let others = || {
            let users = self.users.iter().zip(responses);
            users.filter(|(user, _)| !std::ptr::eq(user.task, own.task))
        };
        let low = others().filter(|(other, _)| other.level > own.level && other.cpu != own.cpu);
        let first = low.flat_map(|(low, _)| all(low)).max().unwrap_or_default();
        let high: Vec<(Span, Span, Span)> = others()
            .filter(|(other, _)| other.level <= own.level)
            .map(|(high, response)| {
                let hold = all(high).into_iter().fold(Span::ZERO, saturating);
                (high.task.period, *response, hold)
            })
            .filter(|(_, _, hold)| !hold.is_zero())
            .collect();
        let mut wait = first;
        loop {
            steps.take(high.len() + 1)?;
            let mut next = u128::from(first.as_ns());
            for (period, response, hold) in &high {
                let window = u128::from(wait.as_ns()) + u128::from(response.as_ns());
                let jobs = window.div_ceil(u128::from(period.as_ns().max(1)));
                next = next.checked_add(jobs.checked_mul(hold.as_ns().into())?)?;
            }
            let next = Span::from_ns(u64::try_from(next).ok()?);
            if next <= wait {
                return Some(wait);
            }
            wait = next;
        }
    }

    /// C' - C of each task if these are bounds on responses.
    fn longer(&self, responses: &[Span], steps: &mut Steps) -> Option<Vec<Span>> {
        let of = |user: &User<'_>| {
            let global = user.sections.iter().filter(|it| it.remote.is_some());
            let Some(cpu) = user.cpu else {
                return Some(Span::ZERO);
            };
            let again = self.pending(cpu, user, u64::MAX);
            global.copied().try_fold(Span::ZERO, |sum, section| {
                let wait = self.wait(user, section.mutex, responses, steps)?;
                let hold = self.hold(user, section).saturating_sub(section.length);
                Some([wait, hold, again].into_iter().fold(sum, saturating))
            })
        };
        self.users.iter().map(of).collect()
    }

    /// Bounds on the responses of the tasks that use global mutexes; those of the others stay as they are.
    fn responses(&self, before: &[Span], longer: &[Span], steps: &mut Steps) -> Option<Vec<Span>> {
        let of = |((user, &before), &own): ((&User<'_>, &Span), &Span)| {
            let is_global = |section: &Section| section.remote.is_some();
            let cpu = user.cpu.filter(|_| user.sections.iter().any(is_global));
            let Some(cpu) = cpu else {
                return Some(before);
            };
            let with = |user: &User<'_>, more: Span| {
                let mut task = Sporadic::from(user.task);
                task.cost = saturating(task.cost, more);
                task
            };
            let urgent = self.users.iter().zip(longer).filter(|(other, _)| {
                other.level <= user.level
                    && !std::ptr::eq(other.task, user.task)
                    && other.task.affinity.cpus().contains(cpu)
            });
            let urgent: Vec<Sporadic> = urgent.map(|(other, &more)| with(other, more)).collect();
            let own = with(user, saturating(own, self.low(user)));
            fp_response_time(own, &urgent, steps)
        };
        self.users.iter().zip(before).zip(longer).map(of).collect()
    }

    /// B of the task, on the worst CPU that it may be bound to.
    fn low(&self, user: &User<'_>) -> Span {
        let all = (0..self.cpus).filter_map(CpuId::new);
        let cpus = all.filter(|cpu| user.task.affinity.cpus().contains(*cpu));
        let on = cpus.map(|cpu| self.pending(cpu, user, user.level));
        on.max().unwrap_or_default()
    }

    /// R: the longest time for which jobs of less urgent tasks of the CPU execute sections that they have requested by an instant:
    /// each one, and only one of them a section of a mutex of that CPU alone, of which the ceiling is this level or less.
    fn pending(&self, cpu: CpuId, user: &User<'_>, level: u64) -> Span {
        let (mut sum, mut more) = (Span::ZERO, Span::ZERO);
        for low in self.beside(cpu, user).filter(|low| low.level > user.level) {
            let (mut global, mut any) = (Span::ZERO, Span::ZERO);
            for section in &low.sections {
                let is_global = section.remote.is_some();
                if is_global {
                    global = global.max(section.length);
                }
                if is_global || self.ceilings[section.mutex.index()] <= level {
                    any = any.max(section.length);
                }
            }
            sum = saturating(sum, global);
            more = more.max(any.saturating_sub(global));
        }
        saturating(sum, more)
    }
}

fn saturating(a: Span, b: Span) -> Span {
    (a + b).min(Span::MAX)
}
