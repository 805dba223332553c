//! How MPCP and DPCP delay the jobs of tasks, if these respond in time.

use shiftwork_model::{CpuId, Span, Task};

use super::super::Blocked;
use super::super::responses::{self, Delays, Load, least, longer, pending_in};
use super::super::sections::{Jobs, at_moments};
use super::{System, User, saturating};
use crate::Steps;

/// What follows from these responses.
pub(super) struct Round<'a> {
    system: &'a System<'a>,
    responses: &'a [Span],
    /// By task, how long its job waits for global mutexes in all.
    requests: Vec<Span>,
}

impl Delays for Round<'_> {
    fn tasks(&self) -> &[Task] {
        self.system.tasks
    }

    fn level(&self, place: usize) -> u64 {
        self.system.users[place].level
    }

    fn longer(&self, place: usize, cpu: CpuId) -> Span {
        self.longer_up_to(place, cpu, u64::MAX)
    }

    fn added(&self, place: usize, cpu: CpuId) -> Span {
        let level = self.level(place);
        let low = self.low((place, cpu), 1, level);
        saturating(low, self.longer_up_to(place, cpu, level))
    }

    fn kept_back(&self, place: usize, cpu: CpuId) -> Span {
        // What jobs had requested when it arrived they may not request again while it waits.
        let moments = self.system.users[place].global().count() + 1;
        let low = self.low((place, cpu), moments, self.level(place));
        saturating(low, self.requests[place])
    }

    fn executes(&self, place: usize) -> Span {
        self.system.users[place].executes()
    }

    fn visiting(&self, cpu: CpuId) -> Vec<Load> {
        let others = self.system.users.iter().zip(self.responses);
        let guests = others.filter(|(user, _)| user.cpu != Some(cpu));
        let loads = guests.filter_map(|(user, &response)| user.load(cpu, response));
        loads.collect()
    }

    fn guests(&self, place: usize, cpu: CpuId, steps: &mut Steps) -> Option<Span> {
        let guests = self.visiting(cpu);
        if guests.is_empty() {
            return Some(Span::ZERO);
        }
        let user = &self.system.users[place];
        let all = self.system.users.iter().enumerate();
        let own = all.filter(|(_, other)| {
            other.level <= user.level && other.task.affinity.cpus().contains(cpu)
        });
        let own = own.filter_map(|(other, of)| {
            let task = longer(of.task, self.longer(other, cpu));
            Load::new(task.period, Span::ZERO, task.cost)
        });
        let all: Vec<Load> = guests.iter().copied().chain(own).collect();
        let low = self.low((place, cpu), 1, user.level);
        let busy = least((low, Span::MAX), &all, steps)?;
        within(&guests, busy)
    }
}

impl<'a> Round<'a> {
    /// `None` if the requests have no bound, or not within the steps.
    pub(super) fn new(
        system: &'a System<'a>,
        responses: &'a [Span],
        steps: &mut Steps,
    ) -> Option<Self> {
        Some(Self {
            system,
            responses,
            requests: system.requests(responses, steps)?,
        })
    }

    /// For how long requests keep back a job of the task on this CPU: they wait for others, and less urgent jobs execute after
    /// each.
    fn longer_up_to(&self, place: usize, cpu: CpuId, ceiling: u64) -> Span {
        let moments = self.system.users[place].global().count();
        let low = self.low((place, cpu), moments, ceiling);
        saturating(low, self.requests[place])
    }

    /// How long jobs of less urgent tasks of the CPU execute sections there that they have requested at any of so many moments at which a job
    /// of the task is pending, of mutexes of the CPU alone those up to this ceiling.
    fn low(&self, (place, cpu): (usize, CpuId), moments: usize, ceiling: u64) -> Span {
        let own = &self.system.users[place];
        let others = self.system.users.iter().zip(self.responses);
        let low = others.filter(|(user, _)| user.cpu == Some(cpu) && user.level > own.level);
        let jobs = low.map(|(user, &response)| Jobs {
            of: &user.beside,
            count: pending_in(self.responses[place], response, user.task.period),
        });
        at_moments(&jobs.collect::<Vec<_>>(), moments, ceiling)
    }

    /// Bounds on the responses of the tasks, no less than those; [`Span::MAX`] of one that uses no global mutex, if none is known.
    pub(super) fn responses(&self, steps: &mut Steps) -> Option<Vec<Span>> {
        let users = self.system.users.iter().enumerate();
        let of = |(place, user): (usize, &User<'_>)| {
            let found = responses::response(self, place, self.responses, steps);
            match found {
                None if user.global().next().is_none() => Some(Span::MAX),
                found => found.map(|found| found.max(self.responses[place])),
            }
        };
        users.map(of).collect()
    }

    /// What all this adds, on the worst CPU that a task may be bound to.
    pub(super) fn blocked(&self, steps: &mut Steps) -> Option<Blocked> {
        let mut longer = Vec::new();
        for (place, task) in self.tasks().iter().enumerate() {
            let mut worst = Span::ZERO;
            for cpu in task.affinity.cpus().iter() {
                let response = Some(self.responses[place]).filter(|it| *it <= task.period);
                let while_pending =
                    response.and_then(|response| within(&self.visiting(cpu), response));
                let while_busy = self.guests(place, cpu, steps);
                let guests = while_pending.into_iter().chain(while_busy).min()?;
                worst = worst.max(saturating(self.kept_back(place, cpu), guests));
            }
            longer.push(worst);
        }
        let all = self.system.users.iter().zip(&longer);
        let suspended = all.map(|(user, &longer)| saturating(user.elsewhere(), longer));
        Some(Blocked {
            suspended: suspended.collect(),
            longer,
        })
    }
}

/// What these take in a window of this length; `None` if it is too much to count.
fn within(loads: &[Load], window: Span) -> Option<Span> {
    let mut loads = loads.iter();
    loads.try_fold(Span::ZERO, |all, load| {
        Some(saturating(all, load.within(window)?))
    })
}
