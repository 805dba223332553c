//! Bounds on the responses of tasks that share mutexes with MPCP or DPCP, and what is added to their costs.
//!
//! `docs/theory/blocking.md`, "Jobs that are suspended while they are blocked", has the theorem.

use shiftwork_model::{CpuId, Span};

use super::super::{Blocked, sum};
use super::{Load, System, User, least, saturating};
use crate::uniprocessor::fp_response_time;
use crate::{Sporadic, Steps};

impl System<'_> {
    /// For how long requests keep back a job of the task on this CPU: they wait for `request` in all, and less urgent jobs execute after
    /// each, of which sections of mutexes of the CPU alone count up to this ceiling.
    fn longer(&self, (user, request): (&User<'_>, Span), cpu: CpuId, ceiling: u64) -> Span {
        let low = self.pending(cpu, user, ceiling);
        sum(user.global().map(|_| low).chain([request]))
    }

    /// The same, and what less urgent jobs had requested when the job arrived: all that is added but for what tasks of other CPUs execute.
    fn added(&self, (place, cpu): (usize, CpuId), requests: &[Span]) -> Span {
        let user = &self.users[place];
        let low = self.pending(cpu, user, user.level);
        saturating(low, self.longer((user, requests[place]), cpu, user.level))
    }

    /// Bounds on the responses of the tasks, no less than these; [`Span::MAX`] of one that uses no global mutex, if none is known.
    pub(super) fn responses(
        &self,
        before: &[Span],
        requests: &[Span],
        steps: &mut Steps,
    ) -> Option<Vec<Span>> {
        let mut of = |place: usize| {
            let user = &self.users[place];
            let mut worst = Some(before[place]);
            for cpu in self.cpus_of(user) {
                let suspended = self.suspended((place, cpu), before, requests, steps);
                let computing = self.computing((place, cpu), before, requests, steps);
                let best = suspended.into_iter().chain(computing).min();
                worst = worst.zip(best).map(|(worst, best)| worst.max(best));
            }
            match worst {
                None if user.global().next().is_none() => Some(Span::MAX),
                worst => worst,
            }
        };
        (0..self.users.len()).map(&mut of).collect()
    }

    /// A bound on the response of this task on this CPU where the others there are suspended while they wait, if it is within its
    /// period; `None` elsewhere.
    fn suspended(
        &self,
        (place, cpu): (usize, CpuId),
        before: &[Span],
        requests: &[Span],
        steps: &mut Steps,
    ) -> Option<Span> {
        let user = &self.users[place];
        let urgent = self.urgent(user, cpu).map(|other| {
            let (period, response) = (self.users[other].task.period, before[other]);
            let executes = self.users[other].executes();
            let late = response.saturating_sub(executes);
            (response <= period).then(|| Load::new(period, late, executes))
        });
        let urgent: Vec<Option<Load>> = urgent.collect::<Option<_>>()?;
        let loads = urgent
            .into_iter()
            .flatten()
            .chain(self.visiting(cpu, before));
        let first = saturating(user.task.cost, self.added((place, cpu), requests));
        let limit = user.task.period;
        let found = least((first, limit), &loads.collect::<Vec<_>>(), steps)?;
        (found <= limit).then_some(found)
    }

    /// The same where they compute while they wait; of any length.
    fn computing(
        &self,
        (place, cpu): (usize, CpuId),
        before: &[Span],
        requests: &[Span],
        steps: &mut Steps,
    ) -> Option<Span> {
        let user = &self.users[place];
        let guests = self.guests((user, cpu), before, requests, steps)?;
        let added = saturating(self.added((place, cpu), requests), guests);
        let urgent = self.urgent(user, cpu).map(|other| {
            let other = (&self.users[other], requests[other]);
            other.0.computing(self.longer(other, cpu, u64::MAX))
        });
        let urgent: Vec<Sporadic> = urgent.collect();
        fp_response_time(user.computing(added), &urgent, steps)
    }

    /// The places of the others that may be on this CPU and have at least the priority.
    fn urgent(&self, own: &User<'_>, cpu: CpuId) -> impl Iterator<Item = usize> {
        let all = self.users.iter().enumerate();
        let urgent = all.filter(move |(_, other)| {
            other.level <= own.level
                && !std::ptr::eq(other.task, own.task)
                && other.task.affinity.cpus().contains(cpu)
        });
        urgent.map(|(place, _)| place)
    }

    /// What tasks of other CPUs execute on this one.
    fn visiting(&self, cpu: CpuId, responses: &[Span]) -> impl Iterator<Item = Load> {
        let others = self.users.iter().zip(responses);
        let guests = others.filter(move |(user, _)| user.cpu != Some(cpu));
        guests.filter_map(move |(user, &response)| user.load(cpu, response))
    }

    fn cpus_of(&self, user: &User<'_>) -> impl Iterator<Item = CpuId> {
        let all = (0..self.cpus).filter_map(CpuId::new);
        all.filter(|cpu| user.task.affinity.cpus().contains(*cpu))
    }

    /// What all this adds, on the worst CPU that a task may be bound to.
    pub(super) fn blocked(
        &self,
        responses: &[Span],
        requests: &[Span],
        steps: &mut Steps,
    ) -> Option<Blocked> {
        let mut longer = Vec::new();
        for (place, user) in self.users.iter().enumerate() {
            let mut worst = Span::ZERO;
            for cpu in self.cpus_of(user) {
                let response = Some(responses[place]).filter(|it| *it <= user.task.period);
                let while_pending = response.and_then(|response| {
                    let mut guests = self.visiting(cpu, responses);
                    guests.try_fold(Span::ZERO, |all, guest| {
                        Some(saturating(all, guest.within(response)?))
                    })
                });
                let while_busy = self.guests((user, cpu), responses, requests, steps);
                let guests = while_pending.into_iter().chain(while_busy).min()?;
                worst = worst.max(saturating(self.added((place, cpu), requests), guests));
            }
            longer.push(worst);
        }
        let all = self.users.iter().zip(&longer);
        let suspended = all.map(|(user, &longer)| saturating(user.elsewhere(), longer));
        Some(Blocked {
            suspended: suspended.collect(),
            longer,
        })
    }

    /// A: how long jobs of other CPUs execute sections on this one at most while jobs of the priority or a higher one are pending.
    fn guests(
        &self,
        (user, cpu): (&User<'_>, CpuId),
        responses: &[Span],
        requests: &[Span],
        steps: &mut Steps,
    ) -> Option<Span> {
        let guests: Vec<Load> = self.visiting(cpu, responses).collect();
        if guests.is_empty() {
            return Some(Span::ZERO);
        }
        let own = self.users.iter().zip(requests).filter(|(other, _)| {
            other.level <= user.level && other.task.affinity.cpus().contains(cpu)
        });
        let own = own.filter_map(|(other, &request)| {
            let longer = self.longer((other, request), cpu, u64::MAX);
            let task = other.computing(longer);
            Load::new(task.period, Span::ZERO, task.cost)
        });
        let all: Vec<Load> = guests.iter().copied().chain(own).collect();
        let low = self.pending(cpu, user, user.level);
        let busy = least((low, Span::MAX), &all, steps)?;
        guests.iter().try_fold(Span::ZERO, |sum, guest| {
            Some(saturating(sum, guest.within(busy)?))
        })
    }
}
