//! The status of all CPUs and tasks, as callers see it.

use std::collections::BTreeSet;

use shiftwork_client::{Cpu, Room, State, Status, Task};
use shiftwork_model::{CpuSet, Instant, Share, Span, TaskId};

use super::Daemon;
use super::handlers::number_of;
use super::request_validation::to_client;
use crate::quotas::share_ppm;
use crate::reservation_table::ReservedTask;

/// Period for which the available share is computed; the share is the same for every period.
const PERIOD: Span = Span::from_ms(100);

impl Daemon {
    /// The status as this user sees it: of tasks of others only what they take of the CPUs, to root everything.
    pub(super) fn status(&mut self, user: u32, now: Instant) -> Status {
        let since = std::mem::replace(&mut self.status_at, now);
        let elapsed = now.late_since(since).as_ns().max(1);
        let cpus = self.table.rules().cpus;
        let tasks = self.tasks(user);
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            policy: self.config.policy.clone(),
            guarantee: self.table.rules().guarantee.name().to_owned(),
            cpus: cpus
                .iter()
                .map(|cpu| self.cpu(user, cpu, elapsed))
                .collect(),
            rooms: self.rooms(user),
            misses: match user {
                0 => self.statistics.misses(),
                _ => tasks.iter().map(|task| task.misses).sum(),
            },
            tasks,
            since: self.since,
            now,
            lost: self.backend.events_lost(),
            problems: self.problems.all().map(str::to_owned).collect(),
        }
    }

    /// Whether this user may see the task.
    fn shows(&self, user: u32, task: TaskId) -> bool {
        let reserved = self.table.task(task);
        reserved.is_some_and(|it| user == 0 || it.owner.user == user)
    }

    fn cpu(&mut self, user: u32, cpu: shiftwork_model::CpuId, elapsed_ns: u64) -> Cpu {
        let reserve = as_float(self.table.rules().terms.reserve);
        let load = self.statistics.take_load(cpu).as_ns() as f64 / elapsed_ns as f64;
        let running = self.statistics.running_on(cpu);
        Cpu {
            cpu: cpu.index() as u32,
            online: self.table.online().contains(cpu),
            running: running
                .filter(|&task| self.shows(user, task))
                .map(number_of),
            // A stretch of execution counts as a whole when it ends, with what lies before the previous status.
            load: load.min(1.0),
            share: 1.0 - reserve,
            reserve,
        }
    }

    /// For each set of CPUs that a reservation names which the user may see, and for all CPUs.
    fn rooms(&mut self, user: u32) -> Vec<Room> {
        let visible = self
            .table
            .tasks()
            .filter(|&(task, _)| self.shows(user, task));
        let used = visible.map(|(_, it)| it.reservation.cpus);
        let all: BTreeSet<Vec<usize>> = used
            .chain([self.table.rules().cpus])
            .map(|cpus| cpus.iter().map(|cpu| cpu.index()).collect())
            .collect();
        let sets = all.into_iter().map(|numbers| {
            let cpus = numbers.into_iter().map(shiftwork_model::CpuId::from_index);
            cpus.collect::<CpuSet>()
        });
        sets.map(|cpus| {
            let within = self
                .table
                .tasks()
                .filter(|(_, it)| it.is_served && it.reservation.cpus.is_subset(&cpus));
            let reserved: u64 = within.map(|(_, it)| share_ppm(&it.reservation)).sum();
            let free = self.table.available_cost(cpus, PERIOD);
            Room {
                cpus: cpus.to_string(),
                reserved: reserved as f64 / 1e6,
                free: free.as_ns() as f64 / PERIOD.as_ns() as f64,
            }
        })
        .collect()
    }

    fn tasks(&self, user: u32) -> Vec<Task> {
        let task = |(task, reserved): (TaskId, &ReservedTask)| {
            let counters = self.statistics.of(task).copied().unwrap_or_default();
            Task {
                task: number_of(task),
                name: reserved.name.clone(),
                process: reserved.thread.process,
                thread: reserved.thread.thread,
                user: reserved.owner.user,
                cgroup: reserved.owner.cgroup.clone(),
                reservation: to_client(&reserved.reservation),
                state: match reserved.is_served {
                    true => State::Admitted,
                    false => State::Demoted,
                },
                guarantee: self
                    .table
                    .guarantee(task)
                    .map_or("none", |guarantee| guarantee.name())
                    .to_owned(),
                cpu: counters.cpu.map(|cpu| cpu.index() as u32),
                jobs: counters.jobs,
                misses: counters.misses,
                overruns: counters.overruns,
                tardiness_max: counters.tardiness_max,
                response_max: counters.response_max,
                ran: counters.ran,
            }
        };
        let visible = self
            .table
            .tasks()
            .filter(|&(task, _)| self.shows(user, task));
        visible.map(task).collect()
    }
}

fn as_float(share: Share) -> f64 {
    f64::from(share.billionths()) / f64::from(Share::WHOLE)
}
