//! How long requests wait, and the bounds on responses with them.

use std::collections::BTreeSet;

use shiftwork_model::CpuId;

use super::System;
use crate::alone::{self, LONGEST, Urgent};

impl System<'_> {
    /// How long the requests of a job wait in all, without their sections: the sum of each, or, of those that wait for the same, of
    /// what each waits for first and all that jobs of the others take while the job is pending.
    pub(super) fn requests(&self, task: usize, responses: &[u64]) -> Option<u64> {
        let all = self.sections(task).into_iter();
        let global: Vec<(usize, u64)> = all
            .filter(|(mutex, _)| self.is_global(task, *mutex))
            .collect();
        let queue = |mutex: usize| self.served(mutex).ok_or(mutex);
        let queues: BTreeSet<Result<CpuId, usize>> =
            global.iter().map(|(mutex, _)| queue(*mutex)).collect();
        let one = |section: (usize, u64), responses: &[u64]| match queue(section.0) {
            Ok(cpu) => self.request(task, (cpu, section.1), responses),
            Err(mutex) => self.wait(task, mutex, responses),
        };
        let of = |it: Result<CpuId, usize>| {
            let same = global.iter().filter(|(mutex, _)| queue(*mutex) == it);
            let same: Vec<(usize, u64)> = same.copied().collect();
            let each = same.iter().map(|section| one(*section, responses));
            let each = each.sum::<Option<u64>>();
            let others = self.all().filter(|&other| other != task);
            let high = others.filter(|&other| self.levels[other] <= self.levels[task]);
            let while_pending = high.map(|other| match it {
                Ok(cpu) => self.executes(other, (cpu, responses[task]), responses),
                Err(mutex) => {
                    let all = self.sections(other).into_iter();
                    let same = all.filter(|section| section.0 == mutex);
                    let holds: u64 = same.map(|section| self.hold(other, section)).sum();
                    self.jobs(other, responses[task], responses).min(LONGEST) * holds
                }
            });
            // Without jobs of the others.
            let first = same.iter().map(|section| self.first(task, *section));
            let together = first.sum::<u64>() + while_pending.sum::<u64>();
            let served = same.iter().filter(|_| it.is_ok()).map(|(_, length)| length);
            Some(each.map_or(together, |each| each.min(together)) - served.sum::<u64>())
        };
        queues.into_iter().map(of).sum()
    }

    /// What a request waits for if no other job has at least the priority, with DPCP until the end of its section.
    fn first(&self, task: usize, section: (usize, u64)) -> u64 {
        let own = self.levels[task];
        let low = self.all().filter(|&it| self.levels[it] > own);
        match self.served(section.0) {
            Some(cpu) => {
                let low = low.flat_map(|it| self.sections(it));
                let blocks =
                    |it: &(usize, u64)| self.served(it.0) == Some(cpu) && self.ceiling(it.0) <= own;
                let low = low.filter(blocks).map(|(_, length)| length).max();
                section.1 + low.unwrap_or(0)
            }
            None => {
                let low = low.filter(|&it| self.cpu(it) != self.cpu(task));
                let low = low.flat_map(|it| {
                    let all = self.sections(it).into_iter();
                    let same = all.filter(|it| it.0 == section.0);
                    same.map(move |section| self.hold(it, section))
                });
                low.max().unwrap_or(0)
            }
        }
    }

    /// How many requests of a job are for global mutexes.
    pub(super) fn global(&self, task: usize) -> usize {
        let all = self.sections(task).into_iter();
        all.filter(|(mutex, _)| self.is_global(task, *mutex))
            .count()
    }

    /// These requests, and low sections after each.
    fn longer(&self, task: usize, requests: u64, level: u64, responses: &[u64]) -> u64 {
        requests + self.low_at(self.global(task), task, level, responses)
    }

    /// The period, and how long a job takes if it computes while it waits.
    pub(super) fn computing(&self, task: usize, requests: u64, responses: &[u64]) -> (u64, u64) {
        let of = &self.set.tasks[task];
        let cost = of.cost.as_ns() + self.longer(task, requests, u64::MAX, responses);
        (of.period.as_ns(), cost)
    }

    /// How long a job executes on other CPUs.
    pub(super) fn away(&self, task: usize) -> u64 {
        let all = self.sections(task).into_iter();
        let away =
            all.filter(|(mutex, _)| self.served(*mutex).is_some_and(|cpu| cpu != self.cpu(task)));
        away.map(|(_, length)| length).sum()
    }

    /// The least responses that bound themselves, and how long requests then wait.
    pub(super) fn bounds(&self) -> Option<(Vec<u64>, Vec<u64>)> {
        let costs = self.set.tasks.iter().map(|task| task.cost.as_ns());
        let mut responses: Vec<u64> = costs.collect();
        loop {
            let all = self.all().map(|task| self.requests(task, &responses));
            let requests: Vec<u64> = all.collect::<Option<_>>()?;
            let next = self.all().map(|task| {
                let best = self.response(task, &responses, &requests);
                let mut all = self.sections(task).into_iter();
                match best {
                    None if all.any(|(mutex, _)| self.is_global(task, mutex)) => None,
                    best => Some(best.map_or(u64::MAX, |it| it.max(responses[task]))),
                }
            });
            let next: Vec<u64> = next.collect::<Option<_>>()?;
            if next == responses {
                return Some((responses, requests));
            }
            responses = next;
        }
    }

    /// On its CPU.
    fn response(&self, task: usize, responses: &[u64], requests: &[u64]) -> Option<u64> {
        let cpu = self.cpu(task);
        let level = self.levels[task];
        let urgent = self.all().filter(|&it| {
            it != task && self.levels[it] <= self.levels[task] && self.cpu(it) == cpu
        });
        let urgent = urgent.map(|it| {
            let (period, computes) = self.computing(it, requests[it], responses);
            Urgent {
                period,
                executes: self.set.tasks[it].cost.as_ns() - self.away(it),
                computes,
                response: responses[it],
            }
        });
        let urgent: Vec<Urgent> = urgent.collect();
        let of = &self.set.tasks[task];
        let longer = self.longer(task, requests[task], level, responses) + self.low(task, level);
        let kept_back = self.low_at(self.global(task) + 1, task, level, responses);
        let (cost, period) = (of.cost.as_ns(), of.period.as_ns());
        let guests = |window| {
            let guests = self.all().filter(|&it| self.cpu(it) != cpu);
            let guests = guests.map(|it| self.executes(it, (cpu, window), responses));
            guests.sum()
        };
        let suspended =
            alone::suspended((cost + requests[task] + kept_back, period), &urgent, guests);
        let guests = self.guests(task, responses, requests);
        let computing =
            guests.and_then(|it| alone::computing((cost + longer + it, period), &urgent));
        suspended.into_iter().chain(computing).min()
    }
}
