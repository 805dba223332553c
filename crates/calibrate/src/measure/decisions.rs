//! Decide: what a policy takes to decide on one event, by the number of tasks.
//!
//! Tasks that may use every CPU become ready and finish at random, the same way for every policy, and each
//! event is timed. Nothing is switched: this is the part of a scheduler that depends on the policy and on
//! how many tasks there are, and nothing else. In the simulator it is a part of `schedule`.
//!
//! Implementations of global EDF that differ in their ready queues are not measured one by one:
//! these decide alike, and the cost of their queues is measured by itself. So the cost of their
//! decisions is that of global EDF with as many tasks as CPUs, where no job ever waits.

use shiftwork_live::probe::{Probe, monotonic_ns, ring};
use shiftwork_model::{
    Affinity, CpuId, CpuSet, Instant, Job, Priority, RandomStream, Span, Task, TaskId, TaskSet,
};
use shiftwork_policy::registry::{Entry, find};
use shiftwork_policy::{Event, Switches};

use super::{Batch, Measurement, Slice};
use crate::place::{Place, Rank, Urgency, clock_ns, collected, join, note};
use crate::plan::{Aim, Plan};
use crate::quantity::{Kind, Quantity};
use crate::structure::structure;

/// Numbers of tasks for each CPU.
const TASKS: [usize; 6] = [2, 4, 8, 16, 32, 64];

/// So many events are not counted: until queues are as full as they will be.
const WARM: usize = 400;

/// So many are, in each round.
const EVENTS: usize = 1_000;

pub(super) struct Decisions {
    place: Place,
    cpus: usize,
    policies: Vec<&'static Entry>,
    /// The policy with the same decisions as all that keep ready queues of their own; `None` if the
    /// plan has none of these.
    unqueued: Option<&'static Entry>,
}

impl Decisions {
    pub(super) fn new(plan: &Plan, cpu: CpuId, rank: Rank) -> Self {
        Self {
            place: Place {
                cpu,
                rank,
                urgency: Urgency::High,
            },
            cpus: super::live::stage(plan).map_or(plan.cpus.len(), |cpus| cpus.len()),
            policies: decided(plan),
            unqueued: plan
                .policies
                .iter()
                .any(|entry| structure(entry).is_some())
                .then(|| find(UNQUEUED).ok())
                .flatten(),
        }
    }

    /// The decisions of one policy with so many tasks.
    fn decisions(
        &self,
        entry: &'static Entry,
        tasks: usize,
        round: usize,
    ) -> Result<Taken, String> {
        let (probe, collector) = ring(EVENTS);
        let (place, cpus, seed) = (self.place, self.cpus, round as u64);
        let done = std::thread::scope(|scope| {
            join(place.spawn(scope, move || decide(entry, cpus, tasks, seed, &probe)))
        })?;
        done.map_err(|why| format!("{}: {why}", entry.name))?;
        Ok(collected(&collector))
    }
}

/// What all nine implementations decide by.
const UNQUEUED: &str = "g-edf";

/// Samples, and how many found no room.
type Taken = (Vec<i64>, u64);

/// The policies that have their own decisions measured: of those with ready queues of their own
/// only the policy of live runs.
fn decided(plan: &Plan) -> Vec<&'static Entry> {
    let is_live = plan.aim != Aim::InKernel;
    let all = plan.policies.iter().copied().enumerate();
    all.filter(|&(number, entry)| structure(entry).is_none() || (is_live && number == 0))
        .map(|(_, entry)| entry)
        .collect()
}

impl Measurement for Decisions {
    fn name(&self) -> &'static str {
        "decide"
    }

    fn share(&self) -> u64 {
        4
    }

    fn take(&mut self, slice: &Slice, into: &mut Vec<Batch>) -> Result<(), String> {
        if let Some(entry) = self.unqueued {
            let (samples, lost) = self.decisions(entry, self.cpus, slice.round)?;
            into.push((Quantity::of(Kind::DecideUnqueued), samples, lost));
        }
        let count = self.policies.len() * TASKS.len();
        for number in 0..count {
            // Not always the same ones come first, if time does not suffice for all; in the first round it has to.
            let turn = (number + slice.round * TASKS.len()) % count;
            let (entry, tasks) = (
                self.policies[turn / TASKS.len()],
                self.cpus * TASKS[turn % TASKS.len()],
            );
            if monotonic_ns() >= slice.until_ns && slice.round > 0 && number > 0 {
                break;
            }
            let (samples, lost) = self.decisions(entry, tasks, slice.round)?;
            let quantity = Quantity {
                kind: Kind::Decide,
                variant: entry.name,
                at: tasks as u64,
            };
            into.push((quantity, samples, lost));
        }
        Ok(())
    }
}

/// Drives the policy, and notes how long each event took it; where it decides in quanta, how long it took to decide about
/// each, on all CPUs together.
fn decide(
    entry: &Entry,
    cpus: usize,
    tasks: usize,
    seed: u64,
    probe: &Probe,
) -> Result<(), String> {
    let set = task_set(cpus, tasks);
    let mut policy = entry.build(&set).map_err(|error| error.to_string())?;
    let quantum = policy.quanta().map(|quanta| quanta.length);
    let clock_ns = clock_ns();
    let mut crowd = Crowd::new(&set, seed);
    let mut out = Switches::with_capacity(cpus);
    let (mut begun, mut step) = (0, 0);
    while step < WARM + EVENTS {
        let event = crowd.next();
        let now = quantum.map_or(0, |quantum| crowd.now.as_ns() / quantum.as_ns());
        let begins = now > begun;
        begun = now;
        out.clear();
        let begin_ns = monotonic_ns();
        policy.on_event(event, &mut out);
        if begins {
            for cpu in (0..cpus).map(CpuId::from_index) {
                policy.on_event(Event::Tick { cpu, quantum: now }, &mut out);
            }
        }
        policy.end_instant(&mut out);
        let took_ns = monotonic_ns() - begin_ns;
        if quantum.is_some() && !begins {
            continue;
        }
        if step >= WARM {
            note(probe, took_ns.saturating_sub(clock_ns) as i64);
        }
        step += 1;
    }
    Ok(())
}

/// Tasks that may use all CPUs.
fn task_set(cpus: usize, tasks: usize) -> TaskSet {
    let all = Affinity::new(CpuSet::first(cpus)).unwrap_or(Affinity::pinned(CpuId::from_index(0)));
    let task = |number: usize| {
        let period = Span::from_ms(10 + number as u64);
        Task::periodic(&format!("t{number}"), Span::from_us(10), period, all)
    };
    TaskSet::new("decisions", cpus, (0..tasks).map(task).collect())
}

/// Tasks that become ready and finish. About half of them are ready at any time.
struct Crowd {
    random: RandomStream,
    periods: Vec<Span>,
    priorities: Vec<Priority>,
    is_ready: Vec<bool>,
    now: Instant,
}

impl Crowd {
    fn new(set: &TaskSet, seed: u64) -> Self {
        Self {
            random: RandomStream::new(seed, set.tasks.len() as u64, 0),
            periods: set.tasks.iter().map(|task| task.period).collect(),
            priorities: set.priorities(),
            is_ready: vec![false; set.tasks.len()],
            now: Instant::ZERO,
        }
    }

    fn next(&mut self) -> Event<'static> {
        self.now += Span::from_us(1 + self.random.below(1_000));
        let task = self.random.below(self.is_ready.len() as u64) as usize;
        self.is_ready[task] = !self.is_ready[task];
        let id = TaskId::from_index(task);
        match self.is_ready[task] {
            true => Event::Wake(Job {
                task: id,
                ready: self.now,
                deadline: self.now + self.periods[task],
                priority: self.priorities[task],
            }),
            false => Event::Complete(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use shiftwork_live::probe::usable_cpus;
    use shiftwork_policy::registry::POLICIES;

    use super::*;

    #[test]
    fn every_policy_decides_and_all_of_its_events_are_noted() {
        for entry in POLICIES {
            for tasks in [2, 8] {
                let (probe, collector) = ring(EVENTS);
                let done = decide(entry, 2, tasks, 1, &probe);
                assert_eq!(done, Ok(()), "{}", entry.name);
                assert_eq!(collected(&collector).0.len(), EVENTS, "{}", entry.name);
            }
        }
    }

    /// What is measured of these policies on one CPU.
    fn measured(aim: Aim, policies: &[&str]) -> Vec<Quantity> {
        let plan = Plan {
            cpus: CpuSet::single(usable_cpus().iter().next().unwrap()),
            aim,
            parts: Vec::new(),
            policies: policies.iter().map(|name| find(name).unwrap()).collect(),
            rounds: 1,
            budget: Span::from_ms(1),
            largest_set: None,
        };
        let cpu = plan.cpus.iter().next().unwrap();
        let mut decisions = Decisions::new(&plan, cpu, Rank::Ordinary);
        let mut batches = Vec::new();
        let slice = Slice {
            round: 0,
            until_ns: 0,
        };
        decisions.take(&slice, &mut batches).unwrap();
        batches.into_iter().map(|batch| batch.0).collect()
    }

    /// One CPU alone is outside the domain of CE1.
    #[test]
    fn implementations_are_measured_as_one() {
        let of = |variant, at: usize| Quantity {
            kind: Kind::Decide,
            variant,
            at: at as u64,
        };
        let unqueued = [Quantity::of(Kind::DecideUnqueued)];
        let alone = TASKS.map(|tasks| of("p-fp", tasks));
        assert_eq!(measured(Aim::InKernel, &["p-fp"]), alone);
        let both = [&unqueued[..], &alone].concat();
        assert_eq!(measured(Aim::InKernel, &["CE1", "p-fp"]), both);
        // Live runs are made under the first policy: its decisions are a part of their time.
        let live = Aim::Fifo(shiftwork_live::Attention::Shared);
        let hem = TASKS.map(|tasks| of("HEm", tasks));
        assert_eq!(
            measured(live, &["HEm", "FEm"]),
            [&unqueued[..], &hem].concat()
        );
    }

    #[test]
    fn a_crowd_only_finishes_what_is_ready() {
        let set = task_set(2, 10);
        let mut crowd = Crowd::new(&set, 3);
        let mut ready = [false; 10];
        for step in 0..2_000 {
            match crowd.next() {
                Event::Wake(job) => assert!(
                    !std::mem::replace(&mut ready[job.task.index()], true),
                    "{step}"
                ),
                Event::Complete(id) => {
                    assert!(std::mem::replace(&mut ready[id.index()], false), "{step}")
                }
                other => panic!("step {step}: {other:?}"),
            }
        }
    }
}
