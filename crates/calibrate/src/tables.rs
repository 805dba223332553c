//! From what was measured to overhead files: which quantity goes into which key.
//!
//! Inside the kernel, as the simulator has it: `release` and `tick` are what running jobs lose to
//! them; `schedule` is the policy's decision, a line in the number of tasks; `switch` is between
//! processes, where that is known; `ipi` is waking a thread on a busy CPU, less the switch that is
//! charged by itself.
//!
//! Live, where an agent decides on a CPU of its own: no job loses time when another is released, so
//! `release` is zero. The agent's way to each CPU is all in `schedule` (report, decide, kick), so
//! `ipi` is zero, too. Ticks are part of what synthetic work counts as its own. `schedule` grows
//! with the tasks as the policy's decisions do.
//!
//! Of the implementations that say how they are built, the ready queue has keys of its own, `enqueue` and `dequeue`. So what
//! they take to decide is without any queue, and nothing is counted twice.

mod figures;

use shiftwork_model::LinearCost;
use shiftwork_queue::{QUEUE_KINDS, QueueKind as Queue};
use shiftwork_taskset::overheads::{OverheadFile, Use};

use crate::plan::{Aim, Plan};
use crate::quantity::{Kind, QUEUE, Quantity};
use crate::session::Calibration;
use crate::structure::structure;
use figures::{Figures, constant};

/// What deciding takes under a policy, by the number of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyFit {
    /// The policy's name.
    pub policy: &'static str,
    /// For which use.
    pub purpose: Use,
    /// The line.
    pub cost: LinearCost,
}

/// What a call of a ready queue takes, by the number of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFit {
    /// The queue's name.
    pub queue: &'static str,
    /// Which call.
    pub call: Kind,
    /// For which use.
    pub purpose: Use,
    /// The line.
    pub cost: LinearCost,
}

const USES: [Use; 2] = [Use::Worst, Use::Average];

/// The overheads of all policies of the plan that were measured, for both uses; none at all if live runs were to
/// be measured and were not. `working_set` says which
/// delays of preemptions and migrations go in, in bytes: those of the nearest size that was measured; `None`:
/// none, as for jobs that touch no memory.
pub fn tables(
    plan: &Plan,
    done: &Calibration,
    working_set: Option<u64>,
    name: &str,
) -> OverheadFile {
    let mut file = OverheadFile {
        name: name.to_owned(),
        ..OverheadFile::default()
    };
    if plan.aim != Aim::InKernel && !absent_of_machine(plan, done).is_empty() {
        // Decisions alone would make a live machine look as if it had no other costs.
        return file;
    }
    let all = fits(plan, done);
    let decisions = |policy: &str, purpose| {
        let mut all = all.iter();
        let fit = all.find(|fit| fit.policy == policy && fit.purpose == purpose);
        fit.map(|fit| fit.cost)
    };
    let live = plan.policies.first().map_or("", |entry| entry.name);
    for entry in &plan.policies {
        for purpose in USES {
            let figures = Figures { done, purpose };
            let implementation = structure(entry);
            let decide = match implementation {
                Some(_) => figures.of(Quantity::of(Kind::DecideUnqueued)).map(constant),
                None => decisions(entry.name, purpose),
            };
            let Some(decide) = decide else {
                continue;
            };
            let mut overheads = match plan.aim {
                Aim::InKernel => figures.in_kernel(decide),
                Aim::Fifo(_) | Aim::Agent(_) => {
                    figures.live(decide, decisions(live, purpose).unwrap_or_default())
                }
            };
            if let Some(it) = implementation
                && figures.add_queue(&mut overheads, it).is_none()
            {
                // A queue that takes no time would look better than any that was measured.
                continue;
            }
            if let Some(bytes) = working_set {
                figures.add_caches(&mut overheads, bytes);
            }
            file.tables
                .insert((purpose, entry.name.to_ascii_lowercase()), overheads);
        }
    }
    file
}

/// What would have to be known for the overheads of the plan's machine and policies and is not: their keys say nothing of
/// it, or there is no table.
pub fn absent(plan: &Plan, done: &Calibration) -> Vec<Kind> {
    let mut absent = absent_of_machine(plan, done);
    if plan.policies.iter().any(|entry| structure(entry).is_some()) {
        let is_known = |kind| done.measured.keys().any(|other| other.kind == kind);
        let wanted = [Kind::DecideUnqueued].into_iter().chain(QUEUE);
        absent.extend(wanted.filter(|&kind| !is_known(kind)));
    }
    absent
}

fn absent_of_machine(plan: &Plan, done: &Calibration) -> Vec<Kind> {
    let wanted = match plan.aim {
        Aim::InKernel => vec![
            Kind::Release,
            Kind::Tick,
            Kind::SwitchThreads,
            Kind::IpiBusy,
        ],
        Aim::Fifo(_) | Aim::Agent(_) => LIVE.to_vec(),
    };
    let is_absent = |kind: &Kind| !done.measured.contains_key(&Quantity::of(*kind));
    wanted.into_iter().filter(is_absent).collect()
}

/// What the overheads of a live machine are made of.
const LIVE: [Kind; 5] = [
    Kind::LiveReport,
    Kind::LiveDecide,
    Kind::LiveKick,
    Kind::LiveSwitch,
    Kind::LiveExcess,
];

/// What deciding takes under each policy of the plan that had its own decisions measured.
pub fn fits(plan: &Plan, done: &Calibration) -> Vec<PolicyFit> {
    let of = |policy: &'static str, purpose| {
        let cost = Figures { done, purpose }.line(&[Kind::Decide], policy)?;
        Some(PolicyFit {
            policy,
            purpose,
            cost,
        })
    };
    let policies = plan.policies.iter().map(|entry| entry.name);
    policies
        .flat_map(|policy| {
            USES.into_iter()
                .filter_map(move |purpose| of(policy, purpose))
        })
        .collect()
}

/// What each call of each ready queue that was measured takes.
pub fn queue_fits(done: &Calibration) -> Vec<QueueFit> {
    let mut fits = Vec::new();
    for queue in QUEUE_KINDS.map(Queue::name) {
        for call in QUEUE {
            fits.extend(USES.into_iter().filter_map(|purpose| {
                let cost = Figures { done, purpose }.line(&[call], queue)?;
                Some(QueueFit {
                    queue,
                    call,
                    purpose,
                    cost,
                })
            }));
        }
    }
    fits
}

#[cfg(test)]
mod tests {
    use shiftwork_live::Attention;
    use shiftwork_model::{CpuSet, Overheads, ReadyQueue, Span};
    use shiftwork_policy::registry::find;

    use super::*;
    use crate::statistics::Batches;

    /// Two samples each, so that the worst (10 more) and the mean differ.
    fn calibration(of: &[(Kind, &'static str, u64, i64)]) -> Calibration {
        let mut done = Calibration {
            live_tasks: 3,
            ..Calibration::default()
        };
        for &(kind, variant, at, mean) in of {
            let mut batches = Batches::default();
            batches.push(vec![mean - 10, mean + 10]);
            done.measured
                .insert(Quantity { kind, variant, at }, batches);
        }
        done
    }

    fn plan(aim: Aim) -> Plan {
        let entry = |name| find(name).expect("it is in the registry");
        Plan {
            cpus: CpuSet::first(2),
            aim,
            parts: Vec::new(),
            policies: vec![entry("g-edf"), entry("p-fp")],
            rounds: 1,
            budget: Span::from_s(1),
            largest_set: None,
        }
    }

    const DECIDE: [(Kind, &str, u64, i64); 4] = [
        (Kind::Decide, "g-edf", 4, 140),
        (Kind::Decide, "g-edf", 8, 180),
        (Kind::Decide, "p-fp", 4, 1_060),
        (Kind::Decide, "p-fp", 8, 1_100),
    ];

    fn average(
        aim: Aim,
        more: &[(Kind, &'static str, u64, i64)],
        set: Option<u64>,
        policy: &str,
    ) -> Overheads {
        let done = calibration(&[&DECIDE[..], more].concat());
        let file = tables(&plan(aim), &done, set, "x");
        file.find(Use::Average, policy)
            .cloned()
            .expect("it was measured")
    }

    #[test]
    fn inside_the_kernel_each_part_has_its_key() {
        let more = [
            (Kind::Release, "", 0, 900),
            (Kind::Tick, "", 0, 700),
            (Kind::SwitchThreads, "", 0, 1_500),
            (Kind::SwitchProcesses, "", 0, 2_000),
            (Kind::IpiBusy, "", 0, 4_000),
        ];
        let found = average(Aim::InKernel, &more, None, "g-edf");
        let wanted = Overheads {
            release: constant(900),
            schedule: LinearCost {
                base: Span::from_ns(100),
                per_task: Span::from_ns(10),
            },
            switch: constant(2_000),
            tick: constant(700),
            ipi: constant(2_500),
            ..Overheads::default()
        };
        assert_eq!(found, wanted);
        let known = calibration(&more[2..]);
        assert_eq!(
            absent(&plan(Aim::InKernel), &known),
            [Kind::Release, Kind::Tick]
        );
        let done = calibration(&more);
        let figures = Figures {
            done: &done,
            purpose: Use::Worst,
        };
        assert_eq!(figures.in_kernel(LinearCost::default()).tick, constant(710));
    }

    #[test]
    fn live_policies_differ_by_what_they_decide() {
        let more = [
            (Kind::LiveReport, "", 0, 5_000),
            (Kind::LiveDecide, "", 0, 2_000),
            (Kind::LiveKick, "", 0, 3_000),
            (Kind::LiveSwitch, "", 0, 8_000),
            (Kind::LiveExcess, "", 0, -1_000),
        ];
        let aim = Aim::Fifo(Attention::Dedicated);
        let [own, other] = ["g-edf", "p-fp"].map(|policy| average(aim, &more, None, policy));
        // With as many tasks as were run live it is what was measured live.
        assert_eq!(own.schedule.at(3), Span::from_ns(10_000));
        assert_eq!(other.schedule.at(3), Span::from_ns(10_920));
        assert_eq!(
            (own.switch, own.release, own.ipi),
            (constant(7_000), constant(0), constant(0))
        );
        // A job that runs shorter than its work does not make switches negative.
        let less = [&more[..4], &[(Kind::LiveExcess, "", 0, -9_000)]].concat();
        assert_eq!(average(aim, &less, None, "g-edf").switch, constant(0));
        let done = calibration(&[&DECIDE[..], &more[..3]].concat());
        let plan = plan(aim);
        assert_eq!(absent(&plan, &done), [Kind::LiveSwitch, Kind::LiveExcess]);
        assert!(tables(&plan, &done, None, "x").tables.is_empty());
    }

    #[test]
    fn the_working_set_that_is_nearest_goes_in() {
        let more = [
            (Kind::Preemption, "", 4_096, 50),
            (Kind::Preemption, "", 65_536, 400),
            (Kind::Migration, "distance-2", 65_536, 800),
            (Kind::Migration, "distance-3", 65_536, 900),
        ];
        let found = average(Aim::InKernel, &more, Some(60_000), "p-fp");
        assert_eq!(found.preemption, [constant(400)]);
        assert_eq!(found.migration, [800, 800, 900].map(constant));
        let none = average(Aim::InKernel, &more, None, "p-fp");
        assert!(none.preemption.is_empty() && none.migration.is_empty());
        assert_eq!(
            average(Aim::InKernel, &more, Some(1), "p-fp").preemption,
            [constant(50)]
        );
    }

    #[test]
    fn policies_that_were_not_measured_have_no_table() {
        let done = calibration(&DECIDE[..2]);
        let file = tables(&plan(Aim::InKernel), &done, None, "x");
        assert!(file.find(Use::Worst, "g-edf").is_some());
        assert!(file.find(Use::Worst, "p-fp").is_none());
    }

    /// Each call of each of the queues that the nine are built of, at two numbers of tasks.
    fn queue_calls() -> Vec<(Kind, &'static str, u64, i64)> {
        let mut calls = vec![(Kind::DecideUnqueued, "", 0, 60)];
        for (more, queue) in [(0, "coarse"), (1_000, "hierarchical"), (2_000, "fine")] {
            for (kind, ns) in QUEUE.into_iter().zip([100, 300, 500, 20]) {
                calls.push((kind, queue, 10, more + ns));
                calls.push((kind, queue, 110, more + ns + 200));
            }
        }
        calls
    }

    const MACHINE: [(Kind, &str, u64, i64); 4] = [
        (Kind::Release, "", 0, 900),
        (Kind::Tick, "", 0, 700),
        (Kind::SwitchThreads, "", 0, 1_500),
        (Kind::IpiBusy, "", 0, 4_000),
    ];

    /// The plan for these policies, by name.
    fn plan_of(aim: Aim, policies: &[&'static str]) -> Plan {
        Plan {
            policies: policies.iter().filter_map(|name| find(name).ok()).collect(),
            ..plan(aim)
        }
    }

    const NINE: [&str; 9] = [
        "cem", "cqm", "s-cqm", "hem", "fem", "ce1", "cq1", "s-cq1", "fe1",
    ];

    #[test]
    fn implementations_have_the_machine_in_common_and_the_queue_that_they_are_built_of() {
        let plan = plan_of(Aim::InKernel, &[&["g-edf"], &NINE[..]].concat());
        let done = calibration(&[&DECIDE[..2], &MACHINE, &queue_calls()].concat());
        let file = tables(&plan, &done, None, "x");
        assert_eq!(file.tables.len(), 2 * 10);
        let line = |base, per_task| LinearCost {
            base: Span::from_ns(base),
            per_task: Span::from_ns(per_task),
        };
        let common = file.find(Use::Average, "g-edf").unwrap();
        assert_eq!((common.enqueue, common.dequeue), Default::default());
        for name in NINE {
            // Merging takes longer than inserting, and is not for fine-grained queues.
            let traits = find(name).unwrap().traits;
            let (enqueue, dequeue) = match traits.structure.unwrap().queue {
                ReadyQueue::Fine => (line(2_080, 2), line(2_480, 2)),
                ReadyQueue::Hierarchical => (line(1_280, 2), line(1_480, 2)),
                ReadyQueue::Coarse => (line(280, 2), line(480, 2)),
            };
            let wanted = Overheads {
                schedule: line(60, 0),
                enqueue,
                dequeue,
                // In quanta, ticks look at the queue.
                tick: match traits.preemption.alignment() {
                    Some(_) => line(700, 2),
                    None => line(700, 0),
                },
                ..common.clone()
            };
            assert_eq!(file.find(Use::Average, name), Some(&wanted), "{name}");
        }
        let read = shiftwork_taskset::overheads::read(&shiftwork_taskset::overheads::write(&file));
        assert_eq!(read.unwrap(), file);
        let calls = queue_fits(&done);
        assert_eq!(calls.len(), 3 * QUEUE.len() * USES.len());
        let take = calls
            .iter()
            .find(|it| (it.queue, it.call, it.purpose) == ("fine", Kind::QueueTake, Use::Worst));
        assert_eq!(take.unwrap().cost, line(2_490, 2));
    }

    #[test]
    fn an_implementation_has_no_table_without_its_queue_or_its_decisions() {
        let plan = plan_of(Aim::InKernel, &["g-edf", "hem"]);
        let all = queue_calls();
        let without = |kind, queue| {
            let others = all.iter().copied();
            let others = others.filter(|it| (it.0, it.1) != (kind, queue));
            let done = calibration(&[&DECIDE[..2], &MACHINE, &others.collect::<Vec<_>>()].concat());
            let known = ["g-edf", "hem"].map(|name| {
                tables(&plan, &done, None, "x")
                    .find(Use::Worst, name)
                    .is_some()
            });
            (known, absent(&plan, &done))
        };
        assert_eq!(without(Kind::Tick, "none"), ([true, true], vec![]));
        for kind in [Kind::QueueInsert, Kind::QueueMerge, Kind::QueueTake] {
            assert_eq!(without(kind, "hierarchical").0, [true, false], "{kind:?}");
            assert_eq!(without(kind, "fine").0, [true, true], "{kind:?}");
        }
        let (known, absent) = without(Kind::DecideUnqueued, "");
        assert_eq!((known, absent), ([true, false], vec![Kind::DecideUnqueued]));
    }

    #[test]
    fn live_implementations_move_the_queue_out_of_their_decisions() {
        let more = [
            (Kind::LiveReport, "", 0, 5_000),
            (Kind::LiveDecide, "", 0, 2_000),
            (Kind::LiveKick, "", 0, 3_000),
            (Kind::LiveSwitch, "", 0, 8_000),
            (Kind::LiveExcess, "", 0, -1_000),
        ];
        let plan = plan_of(Aim::Fifo(Attention::Dedicated), &["g-edf", "fe1"]);
        let done = calibration(&[&DECIDE[..2], &more, &queue_calls()].concat());
        let file = tables(&plan, &done, None, "x");
        let found = file.find(Use::Average, "fe1").unwrap();
        // With the three tasks of the live runs `g-edf` took 130 to decide, and 60 without a queue.
        assert_eq!(found.schedule, constant(10_000 - 130 + 60));
        assert_eq!(
            (found.switch, found.release),
            (constant(7_000), constant(0))
        );
        assert_eq!(found.enqueue.at(10), Span::from_ns(2_100));
    }
}
