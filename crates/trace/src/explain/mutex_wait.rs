//! What a late job waited for at mutexes: which mutex, which task held it, and which tasks executed instead of that one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Value, json};
use shiftwork_model::{ResourceId, Span, TaskId, TaskSet};

/// The wait of a job for a mutex that a task held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutexWait {
    /// The name of the mutex.
    pub mutex: String,
    /// The task that held it. If that one waited for another mutex itself, another entry says for which.
    pub holder: TaskId,
    /// The time for which the job waited meanwhile.
    pub time: Span,
    /// The part of it in which the holder was ready and had no CPU.
    pub without_cpu: Span,
    /// The tasks that then executed on CPUs that the holder may use, the longest time first: a priority inversion, where
    /// they are less urgent than the job. Times overlap if there are several such CPUs.
    pub instead: Vec<(TaskId, Span)>,
}

/// A mutex that a job waits for during an interval without events, and its holder.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub mutex: ResourceId,
    pub holder: TaskId,
    /// The tasks on the CPUs that the holder may use, if it is ready and has none.
    pub instead: Option<Vec<TaskId>>,
}

/// The waits of a job for mutexes up to now.
#[derive(Clone, Debug, Default)]
pub(super) struct MutexSums(BTreeMap<(ResourceId, TaskId), Sum>);

#[derive(Clone, Debug, Default)]
struct Sum {
    time: Span,
    without_cpu: Span,
    instead: BTreeMap<TaskId, Span>,
}

impl MutexSums {
    /// Adds an interval of this length.
    pub fn add(&mut self, held: &[Held], time: Span) {
        for Held {
            mutex,
            holder,
            instead,
        } in held
        {
            let sum = self.0.entry((*mutex, *holder)).or_default();
            sum.time += time;
            if let Some(instead) = instead {
                sum.without_cpu += time;
                for &task in instead {
                    *sum.instead.entry(task).or_default() += time;
                }
            }
        }
    }

    /// The waits, the longest first.
    pub fn waits(self, set: &TaskSet) -> Vec<MutexWait> {
        let wait = |((mutex, holder), sum): ((ResourceId, TaskId), Sum)| {
            let name = set.resources.get(mutex.index()).map(|it| it.name.clone());
            let mut instead: Vec<(TaskId, Span)> = sum.instead.into_iter().collect();
            instead.sort_by_key(|&(task, time)| (Reverse(time), task));
            MutexWait {
                mutex: name.unwrap_or_default(),
                holder,
                time: sum.time,
                without_cpu: sum.without_cpu,
                instead,
            }
        };
        let waits = self.0.into_iter();
        let mut waits: Vec<MutexWait> = waits
            .filter(|(_, sum)| !sum.time.is_zero())
            .map(wait)
            .collect();
        waits.sort_by_key(|wait| Reverse(wait.time));
        waits
    }
}

impl MutexWait {
    pub(super) fn to_json(&self, names: &[&str]) -> Value {
        let named = |task: TaskId| names.get(task.index()).copied();
        let instead = self.instead.iter();
        let instead =
            instead.map(|&(task, time)| json!({ "task": named(task), "time_ns": time.as_ns() }));
        json!({
            "mutex": self.mutex,
            "task": named(self.holder),
            "time_ns": self.time.as_ns(),
            "without_cpu_ns": self.without_cpu.as_ns(),
            "instead": instead.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use shiftwork_model::{Invariant, NotReadyReason, Protocol, RecordKind, Resource};

    use super::*;
    use crate::check::testing::edf;
    use crate::explain::{Explanation, explain};
    use crate::testing::{Script, at, job, set};

    const NAMES: [&str; 4] = ["high", "middle", "low", "lowest"];

    fn mutex(index: usize) -> ResourceId {
        ResourceId::from_index(index)
    }

    fn task(index: usize) -> TaskId {
        TaskId::from_index(index)
    }

    fn locks(script: Script, at_ns: u64, of: usize, index: usize) -> Script {
        script.at(at_ns).record(RecordKind::Locked {
            job: job(of, 1),
            resource: mutex(index),
        })
    }

    fn unlocks(script: Script, at_ns: u64, of: usize, index: usize) -> Script {
        script.at(at_ns).record(RecordKind::Unlocked {
            job: job(of, 1),
            resource: mutex(index),
        })
    }

    /// The explanation of the job of the first task, on one CPU.
    fn explained(script: &Script) -> Explanation {
        let tasks = NAMES.map(|name| (name, "0"));
        let mut set = set(1, &tasks);
        set.resources = ["bus", "store"]
            .map(|name| Resource {
                name: name.to_owned(),
                protocol: Protocol::None,
            })
            .into();
        let contract = edf(Invariant::Weak);
        explain(&set, &contract, &script.records, job(0, 1), at(60)).unwrap()
    }

    #[test]
    fn priority_inversion_names_mutex_holder_and_the_task_that_executes_instead() {
        let script = Script::default()
            .at(0)
            .release(2, 1, 100)
            .switch(0, Some((2, 1)));
        let script = locks(script, 2, 2, 0)
            .at(4)
            .release(0, 1, 20)
            .switch(0, Some((0, 1)))
            .at(6)
            .not_ready(0, 1, NotReadyReason::Blocked(mutex(0)))
            .switch(0, Some((2, 1)))
            .at(8)
            .release(1, 1, 50)
            .switch(0, Some((1, 1)))
            .at(13)
            .complete(1, 1)
            .switch(0, Some((2, 1)));
        let script = unlocks(script, 16, 2, 0)
            .ready(0, 1, 20)
            .switch(0, Some((0, 1)))
            .at(24)
            .complete(0, 1)
            .switch(0, Some((2, 1)));
        let explanation = explained(&script);
        let expected = MutexWait {
            mutex: "bus".to_owned(),
            holder: task(2),
            time: Span::from_ns(10),
            without_cpu: Span::from_ns(5),
            instead: vec![(task(1), Span::from_ns(5))],
        };
        assert_eq!(explanation.mutexes, [expected]);
        let sentence = "It waited 10ns for the mutex bus, which low held; low had no CPU for 5ns of that, \
                        while middle (5ns) executed instead.";
        assert!(explanation.paragraph(&NAMES).contains(sentence));
        let json = explanation.to_json(&NAMES);
        let instead = json!([{ "task": "middle", "time_ns": 5 }]);
        assert_eq!(json["mutexes"][0]["mutex"], "bus");
        assert_eq!(json["mutexes"][0]["task"], "low");
        assert_eq!(json["mutexes"][0]["without_cpu_ns"], 5);
        assert_eq!(json["mutexes"][0]["instead"], instead);
    }

    #[test]
    fn holder_that_waits_for_another_mutex_is_followed_and_a_deadlock_ends() {
        for is_deadlock in [false, true] {
            let script = Script::default()
                .at(0)
                .release(3, 1, 100)
                .switch(0, Some((3, 1)));
            let script = locks(script, 1, 3, 1)
                .at(2)
                .release(2, 1, 90)
                .switch(0, Some((2, 1)));
            let mut script = locks(script, 3, 2, 0)
                .at(4)
                .not_ready(2, 1, NotReadyReason::Blocked(mutex(1)))
                .switch(0, Some((3, 1)))
                .release(0, 1, 20)
                .switch(0, Some((0, 1)))
                .at(5)
                .not_ready(0, 1, NotReadyReason::Blocked(mutex(0)))
                .switch(0, Some((3, 1)));
            if is_deadlock {
                script = script
                    .at(7)
                    .not_ready(3, 1, NotReadyReason::Blocked(mutex(0)))
                    .switch(0, None);
            }
            let waits = explained(&script).mutexes;
            let found: Vec<_> = waits
                .iter()
                .map(|it| (it.mutex.as_str(), it.holder))
                .collect();
            assert_eq!(found, [("bus", task(2)), ("store", task(3))]);
            assert!(waits.iter().all(|it| it.time == Span::from_ns(55)));
            assert!(waits.iter().all(|it| it.without_cpu.is_zero()));
        }
    }

    #[test]
    fn many_tasks_that_execute_instead_are_counted() {
        let wait = MutexWait {
            mutex: "m".to_owned(),
            holder: task(2),
            time: Span::from_ns(6),
            without_cpu: Span::from_ns(6),
            instead: (0..6).map(|it| (task(it), Span::from_ns(1))).collect(),
        };
        let text = wait.sentence(&NAMES, &|span| span.to_string());
        assert_eq!(
            text,
            "It waited 6ns for the mutex m, which low held; low had no CPU, while high (1ns), middle (1ns), \
             low (1ns), lowest (1ns) and 2 more executed instead."
        );
    }
}
