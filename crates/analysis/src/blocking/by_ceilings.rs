//! Blocking by mutexes with MPCP or DPCP, which jobs on different CPUs share and wait for suspended: their holders are boosted, by
//! ceilings.
//!
//! `docs/theory/blocking.md`, "Jobs that are boosted by ceilings" and "Sections on other CPUs", has the bounds and why tests may count
//! them as computing.

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
    /// `None` of a mutex that tasks of one CPU share.
    global: Option<Global>,
}

/// How a job executes a section of a global mutex.
#[derive(Clone, Copy, Debug)]
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
}

impl User<'_> {
    /// Its sections that are executed on this CPU with DPCP.
    fn served_on(&self, cpu: CpuId) -> impl Iterator<Item = &Section> {
        let all = self.sections.iter();
        all.filter(move |it| matches!(it.global, Some(Global::On(on)) if on == cpu))
    }

    /// These, if there are any and this bounds its responses.
    fn load(&self, cpu: CpuId, response: Span) -> Option<Load> {
        let lengths = self.served_on(cpu).map(|it| it.length);
        let each = lengths.fold(Span::ZERO, saturating);
        let period = self.task.period;
        (!each.is_zero()).then_some(Load {
            period,
            response,
            each,
        })
    }
}

/// What each job of a task takes of something while it is pending.
#[derive(Clone, Copy)]
struct Load {
    period: Span,
    response: Span,
    each: Span,
}

impl Load {
    /// What jobs take that are pending in a window of this length; `None` if it is too much to count.
    fn within(&self, window: Span) -> Option<Span> {
        let window = u128::from(window.as_ns()) + u128::from(self.response.as_ns());
        let jobs = window.div_ceil(u128::from(self.period.as_ns().max(1)));
        let all = jobs.checked_mul(self.each.as_ns().into())?;
        u64::try_from(all).ok().map(Span::from_ns)
    }
}

/// The least window that is as long as this and what these take in it.
fn least(first: Span, loads: &[Load], steps: &mut Steps) -> Option<Span> {
    let mut window = first;
    loop {
        steps.take(loads.len() + 1)?;
        let next = loads.iter().try_fold(first, |sum, load| {
            let all = sum.as_ns().checked_add(load.within(window)?.as_ns())?;
            Some(Span::from_ns(all))
        })?;
        if next <= window {
            return Some(window);
        }
        window = next;
    }
}

struct System<'a> {
    users: Vec<User<'a>>,
    /// By mutex, the least level of the tasks that use it.
    ceilings: Vec<u64>,
    cpus: usize,
}

/// What MPCP or DPCP adds to the cost of each task, of these levels, which are priorities.
///
/// `None` where no bound is known: if any mutex that matters has another protocol, but for ceilings of mutexes that tasks of one CPU
/// share, some have MPCP and some DPCP, any is nested, a task that uses one is not bound to one CPU, or the responses of the tasks that wait for each other are not
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
            let mut low = |user: &User<'_>| system.low(user, (&responses, &longer), &mut steps);
            let low = system.users.iter().map(&mut low);
            let low: Vec<Span> = low.collect::<Option<_>>()?;
            let all = longer.iter().zip(low);
            return Some(all.map(|(own, low)| saturating(*own, low)).collect());
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

    /// W: how long a job of the task waits for this mutex with MPCP at most if these are bounds on responses; `None` if there is no bound, or
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
        let high: Vec<Load> = others()
            .filter(|(other, _)| other.level <= own.level)
            .map(|(high, &response)| Load {
                period: high.task.period,
                response,
                each: all(high).into_iter().fold(Span::ZERO, saturating),
            })
            .filter(|load| !load.each.is_zero())
            .collect();
        least(first, &high, steps)
    }

    /// X: how long it takes at most from the request of a job of the task until the end of this section, which it executes on this CPU,
    /// with DPCP, if these are bounds on responses.
    fn served(
        &self,
        own: &User<'_>,
        (section, cpu): (Section, CpuId),
        responses: &[Span],
        steps: &mut Steps,
    ) -> Option<Span> {
        let others = self.users.iter().zip(responses);
        let others = others.filter(|(user, _)| !std::ptr::eq(user.task, own.task));
        let (high, low): (Vec<_>, Vec<_>) = others.partition(|(other, _)| other.level <= own.level);
        let low = low.iter().flat_map(|(low, _)| low.served_on(cpu));
        let blocks = |it: &&Section| self.ceilings[it.mutex.index()] <= own.level;
        let low = low.filter(blocks).map(|it| it.length).max();
        let high: Vec<_> = high
            .iter()
            .filter_map(|(high, response)| high.load(cpu, **response))
            .collect();
        least(
            saturating(section.length, low.unwrap_or_default()),
            &high,
            steps,
        )
    }

    /// C' - C of each task if these are bounds on responses.
    fn longer(&self, responses: &[Span], steps: &mut Steps) -> Option<Vec<Span>> {
        let of = |user: &User<'_>| {
            let global = user.sections.iter().filter(|it| it.global.is_some());
            let Some(cpu) = user.cpu else {
                return Some(Span::ZERO);
            };
            let again = self.pending(cpu, user, u64::MAX);
            global.copied().try_fold(Span::ZERO, |sum, section| {
                let request = match section.global {
                    Some(Global::On(cpu)) => self.served(user, (section, cpu), responses, steps)?,
                    _ => {
                        let wait = self.wait(user, section.mutex, responses, steps)?;
                        saturating(wait, self.hold(user, section))
                    }
                };
                let more = request.saturating_sub(section.length);
                Some([more, again].into_iter().fold(sum, saturating))
            })
        };
        self.users.iter().map(of).collect()
    }

    /// Bounds on the responses of the tasks that use global mutexes; those of the others stay as they are.
    fn responses(&self, before: &[Span], longer: &[Span], steps: &mut Steps) -> Option<Vec<Span>> {
        let of = |((user, &response), &own): ((&User<'_>, &Span), &Span)| {
            let is_global = |section: &Section| section.global.is_some();
            let cpu = user.cpu.filter(|_| user.sections.iter().any(is_global));
            let Some(cpu) = cpu else {
                return Some(response);
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
            let low = self.low(user, (before, longer), steps)?;
            let own = with(user, saturating(own, low));
            fp_response_time(own, &urgent, steps)
        };
        self.users.iter().zip(before).zip(longer).map(of).collect()
    }

    /// B of the task, on the worst CPU that it may be bound to, if these are bounds on responses and what C' has more than C.
    fn low(
        &self,
        user: &User<'_>,
        (responses, longer): (&[Span], &[Span]),
        steps: &mut Steps,
    ) -> Option<Span> {
        let all = (0..self.cpus).filter_map(CpuId::new);
        let cpus = all.filter(|cpu| user.task.affinity.cpus().contains(*cpu));
        cpus.map(|cpu| {
            let pending = self.pending(cpu, user, user.level);
            let guests = self.guests((cpu, user.level), pending, (responses, longer), steps)?;
            Some(saturating(pending, guests))
        })
        .try_fold(Span::ZERO, |most, on| Some(most.max(on?)))
    }

    /// A: how long jobs of other CPUs execute sections on this one at most while jobs of this level or less are pending, and low
    /// sections of the CPU itself take so long.
    fn guests(
        &self,
        (cpu, level): (CpuId, u64),
        low: Span,
        (responses, longer): (&[Span], &[Span]),
        steps: &mut Steps,
    ) -> Option<Span> {
        let others = self.users.iter().zip(responses);
        let guests = others.filter(|(user, _)| user.cpu != Some(cpu));
        let guests: Vec<Load> = guests
            .filter_map(|(user, &response)| user.load(cpu, response))
            .collect();
        if guests.is_empty() {
            return Some(Span::ZERO);
        }
        let own = self.users.iter().zip(longer);
        let own =
            own.filter(|(user, _)| user.level <= level && user.task.affinity.cpus().contains(cpu));
        let own = own.map(|(user, &longer)| Load {
            period: user.task.period,
            response: Span::ZERO,
            each: saturating(user.task.cost, longer),
        });
        let all: Vec<Load> = guests.iter().copied().chain(own).collect();
        let busy = least(low, &all, steps)?;
        guests.iter().try_fold(Span::ZERO, |sum, guest| {
            Some(saturating(sum, guest.within(busy)?))
        })
    }

    /// R: the longest time for which jobs of less urgent tasks of the CPU execute sections there that they have requested by an instant:
    /// each one, and only one of them a section of a mutex of that CPU alone, of which the ceiling is this level or less.
    fn pending(&self, cpu: CpuId, user: &User<'_>, level: u64) -> Span {
        let (mut sum, mut more) = (Span::ZERO, Span::ZERO);
        for low in self.beside(cpu, user).filter(|low| low.level > user.level) {
            let (mut global, mut any) = (Span::ZERO, Span::ZERO);
            for section in &low.sections {
                let is_local = section.global.is_none();
                if section.is_boosted_on(cpu) {
                    global = global.max(section.length);
                }
                if is_local && self.ceilings[section.mutex.index()] <= level {
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
