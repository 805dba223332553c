//! The core as an implementation of [`Policy`].

use alloc::boxed::Box;
use alloc::format;

use shiftwork_model::{Affinity, CpuId, CpuSet, Order, PolicyTraits, Role, TaskId, TaskSet};
use shiftwork_policy::registry::traits::{STRONG, by_priority};
use shiftwork_policy::registry::{Built, Entry};
use shiftwork_policy::{Event, Policy, PolicyError, Switch, Switches};

use crate::native::{CPUS_MAX, Core};
use crate::task::{TASKS_MAX, TaskNumber};

/// The policies of this crate, in the order of the documentation.
pub const POLICIES: &[Entry] = &[
    Entry {
        name: "strong-edf-kernel",
        summary: "strong affinities, earliest deadline first: the code that decides inside the kernel",
        source: "ours",
        domain: "any affinities, to 64 CPUs and 1,024 tasks",
        traits: TRAITS,
        build,
    },
    Entry {
        name: "strong-fp-kernel",
        summary: "strong affinities, fixed priorities: the code that decides inside the kernel",
        source: "ours",
        domain: "any affinities, to 64 CPUs and 1,024 tasks",
        traits: by_priority(TRAITS),
        build,
    },
];

const TRAITS: PolicyTraits = PolicyTraits {
    role: Role::Variant,
    ..STRONG
};

fn build(entry: &Entry, set: &TaskSet) -> Built {
    let order = entry.traits.order;
    Ok(Box::new(KernelPolicy::new(entry.name, order, set)?))
}

/// Strong scheduling under arbitrary affinities, decided by the native build of the kernel core.
///
/// After every event its assignment equals that of `strong-edf` or `strong-fp` of the reference
/// implementation on every CPU.
#[derive(Debug)]
pub struct KernelPolicy {
    name: &'static str,
    order: Order,
    core: Core,
    cpus: usize,
    /// The assignment after the switches that were returned so far.
    assigned: [Option<TaskNumber>; CPUS_MAX],
}

impl KernelPolicy {
    /// A core with all tasks that are present from the start, and no ready job.
    ///
    /// # Errors
    /// Beyond 64 CPUs or 1,024 tasks, or if an affinity names a CPU that the platform does not have.
    pub fn new(name: &'static str, order: Order, set: &TaskSet) -> Result<Self, PolicyError> {
        let platform = &set.platform;
        let within = |what, found, at_most| {
            (found <= at_most)
                .then_some(())
                .ok_or(PolicyError::TooMany {
                    policy: name,
                    order,
                    what,
                    found,
                    at_most,
                })
        };
        within("CPUs", platform.cpus, CPUS_MAX)?;
        within("tasks", set.tasks.len(), TASKS_MAX)?;
        let mut policy = Self {
            name,
            order,
            core: Core::new(order, bits(&platform.all())),
            cpus: platform.cpus,
            assigned: [None; CPUS_MAX],
        };
        if !platform.caches.is_empty() {
            for cpu in (0..platform.cpus).map(CpuId::from_index) {
                let mates = platform.cache_mates(cpu);
                policy.core.set_cache_mates(cpu, bits(&mates));
            }
        }
        for (id, task) in set.iter() {
            policy.check_affinity(&task.name, &task.affinity)?;
            let number = TaskNumber::of(id).expect("there are no more tasks than numbers");
            policy
                .core
                .enter(number, bits(task.affinity.cpus()), task.start_cpu);
        }
        Ok(policy)
    }

    /// The core, for inspection.
    pub fn core(&mut self) -> &mut Core {
        &mut self.core
    }

    fn check_affinity(&self, name: &str, affinity: &Affinity) -> Result<(), PolicyError> {
        match (*affinity.cpus() - CpuSet::first(self.cpus)).lowest() {
            Some(cpu) => Err(PolicyError::NoSuchCpu {
                task: name.into(),
                cpu,
                cpus: self.cpus,
            }),
            None => Ok(()),
        }
    }

    fn check_task(&self, id: TaskId) -> Result<(), PolicyError> {
        match TaskNumber::of(id) {
            Some(_) => Ok(()),
            None => Err(PolicyError::TooMany {
                policy: self.name,
                order: self.order,
                what: "tasks",
                found: id.index() + 1,
                at_most: TASKS_MAX,
            }),
        }
    }

    fn has(&self, cpu: CpuId) -> bool {
        cpu.index() < self.cpus
    }

    /// Applies the event to the core. Returns the CPUs whose assignment may have changed.
    fn apply(&mut self, event: Event<'_>) -> Option<u64> {
        let number = TaskNumber::of;
        let core = &mut self.core;
        Some(match event {
            Event::Wake(job) => {
                core.arrive(number(job.task)?, job.ready, job.deadline, job.priority)
            }
            Event::Block(task) | Event::Complete(task) | Event::BudgetSpent(task) => {
                core.depart(number(task)?)
            }
            Event::SetAffinity(task, affinity) => {
                core.set_affinity(number(task)?, bits(affinity.cpus()))
            }
            Event::SetPriority(task, priority) => core.set_priority(number(task)?, priority),
            Event::SetDeadline(task, deadline) => core.set_deadline(number(task)?, deadline),
            Event::Enter(id, task) => {
                core.enter(number(id)?, bits(task.affinity.cpus()), task.start_cpu)
            }
            Event::Leave(task) => core.leave(number(task)?),
            Event::CpuOffline(cpu) if self.has(cpu) => self.core.cpu_leave(cpu),
            Event::CpuOnline(cpu) if self.has(cpu) => self.core.cpu_join(cpu),
            Event::SetClusters(_)
            | Event::CpuOffline(_)
            | Event::CpuOnline(_)
            | Event::Tick { .. }
            | Event::Released(_)
            | Event::LatestStarts(..)
            | Event::SetAttributes(..) => {
                return None;
            }
        })
    }
}

impl Policy for KernelPolicy {
    fn on_event(&mut self, event: Event<'_>, out: &mut Switches) {
        let mut changed = self.apply(event).unwrap_or(0);
        while changed != 0 {
            let cpu = CpuId::from_index(changed.trailing_zeros() as usize);
            changed &= changed - 1;
            let to = self.core.runner(cpu);
            let from = core::mem::replace(&mut self.assigned[cpu.index()], to);
            if from != to {
                out.push(Switch {
                    cpu,
                    from: from.map(TaskNumber::task),
                    to: to.map(TaskNumber::task),
                });
            }
        }
    }

    /// Does nothing: every event was decided at once.
    fn end_instant(&mut self, _out: &mut Switches) {}

    fn assigned(&self, cpu: CpuId) -> Option<TaskId> {
        self.core.runner(cpu).map(TaskNumber::task)
    }

    fn accepts(&self, event: &Event<'_>) -> Result<(), PolicyError> {
        match event {
            Event::SetAffinity(task, affinity) => {
                self.check_affinity(&format!("{task:?}"), affinity)
            }
            Event::Enter(id, task) => {
                self.check_task(*id)?;
                self.check_affinity(&task.name, &task.affinity)
            }
            _ => Ok(()),
        }
    }
}

/// The CPUs of a set that has been checked, one bit each.
fn bits(cpus: &CpuSet) -> u64 {
    cpus.words()[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;
    use shiftwork_model::{Span, Task};

    fn set(cpus: usize, tasks: usize) -> TaskSet {
        let affinity = Affinity::pinned(CpuId::from_index(0));
        let task = |index| {
            let name = format!("t{index}");
            Task::periodic(&name, Span::from_ms(1), Span::from_ms(9), affinity)
        };
        TaskSet::new("test", cpus, (0..tasks).map(task).collect::<Vec<_>>())
    }

    fn refusal(cpus: usize, tasks: usize) -> alloc::string::String {
        match POLICIES[0].build(&set(cpus, tasks)) {
            Ok(_) => "taken".into(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn more_than_64_cpus_or_1024_tasks_are_refused() {
        assert_eq!(refusal(64, 1024), "taken");
        assert_eq!(
            refusal(65, 1),
            "strong-edf-kernel takes up to 64 CPUs, here are 65; `strong-edf` takes any number"
        );
        assert_eq!(
            refusal(4, 1025),
            "strong-edf-kernel takes up to 1024 tasks, here are 1025; `strong-edf` takes any number"
        );
    }

    #[test]
    fn task_beyond_the_maximum_may_not_enter() {
        let set = set(4, 3);
        let policy = POLICIES[1].build(&set).unwrap();
        let event = |index| Event::Enter(TaskId::from_index(index), &set.tasks[0]);
        assert_eq!(policy.accepts(&event(1023)), Ok(()));
        assert!(policy.accepts(&event(1024)).is_err());
    }
}
