//! The status of all CPUs and tasks, as callers see it.

use std::collections::BTreeSet;

use shiftwork_client::{Cpu, Room, State, Status, Task};
use shiftwork_model::{CpuId, CpuSet, Instant, Share, Span, TaskId};

use super::Daemon;
use super::handlers::number_of;
use super::request_validation::to_client;
use crate::reservation_table::ReservedTask;
use crate::reservation_table::capacity::Capacity;

impl Daemon {
    /// The status as this user sees it: of tasks of others only what they take of the CPUs, to root everything.
    ///
    /// # Cost
    /// O(n) for n tasks, most of it for those that the user may see.
    pub(super) fn status(&mut self, user: u32, now: Instant) -> Status {
        self.capacities.refresh(&self.table);
        let cpus = self.table.rules().cpus;
        let tasks = self.tasks(user);
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            policy: self.config.policy.clone(),
            guarantee: self.table.rules().guarantee.name().to_owned(),
            cpus: cpus.iter().map(|cpu| self.cpu(user, cpu)).collect(),
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

    /// Computes the loads since the last call.
    pub(super) fn measure_loads(&mut self, now: Instant) {
        let since = std::mem::replace(&mut self.loads_at, now);
        self.loads_over = now.late_since(since);
        self.statistics.measure(now);
        for cpu in self.table.rules().cpus.iter() {
            // A stretch of execution counts as a whole when it ends, with what lies before the last call.
            let ran = self.statistics.take_load(cpu);
            self.loads.insert(cpu, share_of(ran, self.loads_over));
        }
    }

    /// Whether this user may see the task.
    fn shows(&self, user: u32, task: TaskId) -> bool {
        let reserved = self.table.task(task);
        reserved.is_some_and(|it| user == 0 || it.owner.user == user)
    }

    fn cpu(&self, user: u32, cpu: CpuId) -> Cpu {
        let reserve = as_float(self.table.rules().terms.reserve);
        let running = self.statistics.running_on(cpu);
        let running = running.filter(|&task| self.shows(user, task));
        Cpu {
            cpu: cpu.index() as u32,
            online: self.table.online().contains(cpu),
            running: running.map(number_of),
            load: self.loads.get(&cpu).copied().unwrap_or(0.0),
            share: 1.0 - reserve,
            reserve,
        }
    }

    /// For each set of CPUs that a reservation names which the user may see, and for all CPUs.
    fn rooms(&self, user: u32) -> Vec<Room> {
        let visible = self
            .table
            .tasks()
            .filter(|&(task, _)| self.shows(user, task));
        let all = self.table.rules().cpus;
        let used: BTreeSet<CpuSet> = visible
            .map(|(_, it)| it.reservation.cpus)
            .chain([all])
            .collect();
        let known = self.capacities.all().iter();
        let shown = known.filter(|it| used.contains(&it.cpus));
        let room = |it: &Capacity| Room {
            cpus: it.cpus.to_string(),
            reserved: it.reserved,
            free: it.free,
        };
        shown.map(room).collect()
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
                load: share_of(counters.recent, self.loads_over),
            }
        };
        let visible = self
            .table
            .tasks()
            .filter(|&(task, _)| self.shows(user, task));
        visible.map(task).collect()
    }
}

/// The fraction of the whole time, at most 1.
fn share_of(time: Span, whole: Span) -> f64 {
    (time.as_ns() as f64 / whole.as_ns().max(1) as f64).min(1.0)
}

fn as_float(share: Share) -> f64 {
    f64::from(share.billionths()) / f64::from(Share::WHOLE)
}
