//! No job waits while a less urgent one runs, as far as the policy's invariant promises it.

use shiftwork_model::{CpuId, Invariant, JobId, Order, TaskId};

use super::state::State;
use super::survey::Survey;
use super::{Findings, PolicyContract};
use crate::shift_chain::key;

/// Checks the state after the instant.
pub(super) fn check(
    contract: &PolicyContract,
    state: &State,
    survey: &Survey,
    found: &mut Findings,
) {
    if matches!(contract.invariant, Invariant::PushPull | Invariant::Quanta) {
        return;
    }
    if contract.invariant == Invariant::NonPreemptive {
        check_preemptions(state, found);
        check_starts(contract.order, state, found);
        return;
    }
    for front in survey.fronts() {
        let Some((least, task, cpu)) = front
            .reach
            .least_urgent
            .filter(|&(least, ..)| front.key < least)
        else {
            continue;
        };
        found.add(state.now(), || {
            let what = contract.order.ranks_by();
            format!(
                "{} ({what} {}) waits, and could get CPU {cpu} from {} ({what} {least}){}",
                state.ready_name(front.waiting),
                front.key,
                state.ready_name(task),
                match contract.invariant {
                    Invariant::Strong => ", if need be over shifts",
                    _ => "",
                }
            )
        });
    }
}

/// A started job keeps its CPU as long as it is ready, unless the CPU was taken away or left its affinity.
fn check_preemptions(state: &State, found: &mut Findings) {
    let available = state.available() - state.lost;
    for change in state.changes() {
        let Some(job) = change.before else { continue };
        let Some(task) = state.tasks.get(job.task.index()) else {
            continue;
        };
        let preempted = task.ready == Some(job.number)
            && task.since < state.now()
            && available.contains(change.cpu)
            && task.affinity.contains(change.cpu);
        if preempted {
            found.add(state.now(), || {
                format!("{} was preempted on CPU {}", state.name(job), change.cpu)
            });
        }
    }
}

/// A CPU that is free after all events of the instant takes the most urgent job that waits for it by then,
/// arrivals of the instant included, except for those that follow from what started at it.
fn check_starts(order: Order, state: &State, found: &mut Findings) {
    for change in state.changes() {
        let Some(job) = change.after else { continue };
        let Some(task) = state.tasks.get(job.task.index()) else {
            continue;
        };
        let waiting = state.ready.iter().filter(|id| {
            let other = &state.tasks[id.index()];
            let precedes = other.triggered_late != Some(state.now());
            other.waits() && precedes && other.affinity.contains(change.cpu)
        });
        let first = waiting.min_by_key(|id| key(order, &state.tasks[id.index()]));
        if let Some(&first) = first
            && key(order, &state.tasks[first.index()]) < key(order, task)
        {
            found.add(state.now(), || wronged(state, first, job, change.cpu));
        }
    }
}

fn wronged(state: &State, first: TaskId, job: JobId, cpu: CpuId) -> String {
    format!(
        "{} starts on CPU {cpu}, for which the more urgent {} waits",
        state.name(job),
        state.ready_name(first)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::{edf, found};
    use crate::testing::{Script, at, cpu, set};
    use shiftwork_model::{
        Affinity, CpuSet, Priority, RandomStream, RecordKind, Span, TaskId, TaskSet,
    };

    fn two_tasks() -> TaskSet {
        set(1, &[("a", "0"), ("b", "0")])
    }

    /// Task a runs and is due at 20; task b becomes ready at 5.
    fn b_waits(deadline: u64) -> Script {
        let script = Script::default()
            .at(0)
            .release(0, 1, 20)
            .switch(0, Some((0, 1)));
        script.at(5).release(1, 1, deadline)
    }

    #[test]
    fn waiting_more_urgent_job_is_a_violation() {
        for invariant in [Invariant::Weak, Invariant::Strong] {
            let report = found(&two_tasks(), edf(invariant), &b_waits(19), 9);
            let expected = "at 5ns: job 1 of b (deadline 19) waits, and could get CPU 0 from job 1 of \
                            a (deadline 20)";
            assert!(
                report.len() == 1 && report[0].starts_with(expected),
                "{report:?}"
            );
            assert_eq!(
                found(&two_tasks(), edf(invariant), &b_waits(20), 9),
                [""; 0]
            );
        }
    }

    #[test]
    fn order_may_be_by_the_current_priority() {
        let contract = || PolicyContract {
            order: Order::FixedPriority,
            ..edf(Invariant::Strong)
        };
        assert_eq!(found(&two_tasks(), contract(), &b_waits(19), 9), [""; 0]);
        let demoted = RecordKind::PrioritySet {
            task: TaskId::from_index(0),
            priority: Priority::new(3).unwrap(),
        };
        assert_eq!(
            found(
                &two_tasks(),
                contract(),
                &b_waits(90).at(6).record(demoted),
                9
            ),
            [
                "at 6ns: job 1 of b (priority 2) waits, and could get CPU 0 from job 1 of a (priority 3), \
              if need be over shifts"
            ]
        );
    }

    #[test]
    fn replenished_job_is_ranked_by_its_new_deadline() {
        let postponed = RecordKind::Replenished {
            task: TaskId::from_index(0),
            budget: Span::from_ns(10),
            deadline: at(40),
        };
        let script = b_waits(30).at(6).record(postponed);
        assert_eq!(
            found(&two_tasks(), edf(Invariant::Weak), &script, 9).len(),
            1
        );
    }

    #[test]
    fn only_the_strong_invariant_requires_shifts() {
        // a could shift to CPU 1, preempting the less urgent c, which would make room for b.
        let set = set(2, &[("a", "0-1"), ("b", "0"), ("c", "1")]);
        let script = Script::default()
            .at(0)
            .release(0, 1, 10)
            .switch(0, Some((0, 1)))
            .release(2, 1, 30)
            .switch(1, Some((2, 1)))
            .at(1)
            .release(1, 1, 20);
        assert_eq!(found(&set, edf(Invariant::Weak), &script, 9), [""; 0]);
        assert_eq!(
            found(&set, edf(Invariant::Strong), &script, 9),
            [
                "at 1ns: job 1 of b (deadline 20) waits, and could get CPU 1 from job 1 of c (deadline \
              30), if need be over shifts"
            ]
        );
    }

    #[test]
    fn packed_tasks_compete_only_within_their_packing() {
        let set = set(2, &[("a", "0-1"), ("b", "0-1"), ("c", "0-1")]);
        let packing = |cpus: [usize; 3]| PolicyContract {
            packing: Some(cpus.map(|index| Affinity::pinned(cpu(index))).to_vec()),
            ..edf(Invariant::Packed)
        };
        let script = Script::default()
            .at(0)
            .release(0, 1, 10)
            .switch(0, Some((0, 1)))
            .release(1, 1, 20)
            .release(2, 1, 30)
            .switch(1, Some((2, 1)));
        assert_eq!(found(&set, packing([0, 0, 1]), &script, 9), [""; 0]);
        assert_eq!(found(&set, packing([0, 1, 1]), &script, 9).len(), 1);
        assert_eq!(
            found(&set, packing([1, 0, 1]), &script, 9)[0],
            "at 0ns: job 1 of a runs on CPU 0, and is packed onto {1}"
        );
    }

    #[test]
    fn packed_task_with_a_new_affinity_is_bound_where_it_runs_next() {
        let set = set(2, &[("a", "0"), ("b", "0")]);
        let contract = PolicyContract {
            packing: Some(vec![Affinity::pinned(cpu(0)); 2]),
            ..edf(Invariant::Packed)
        };
        let affinity = Box::new(Affinity::pinned(cpu(1)));
        let script = Script::default()
            .at(0)
            .release(0, 1, 20)
            .switch(0, Some((0, 1)))
            .at(1)
            .record(RecordKind::AffinitySet {
                task: TaskId::from_index(0),
                affinity,
            })
            .switch(0, None)
            .switch(1, Some((0, 1)))
            .release(1, 1, 10)
            .switch(0, Some((1, 1)))
            .at(2)
            .switch(1, None);
        assert_eq!(
            found(&set, contract, &script, 9),
            ["at 2ns: CPU 1 is idle, and job 1 of a waits for it"]
        );
    }

    #[test]
    fn preemption_under_a_non_preemptive_policy_is_a_violation() {
        let script = b_waits(5).switch(0, Some((1, 1)));
        assert_eq!(
            found(&two_tasks(), edf(Invariant::NonPreemptive), &script, 9),
            ["at 5ns: job 1 of a was preempted on CPU 0"]
        );
        assert_eq!(
            found(&two_tasks(), edf(Invariant::NonPreemptive), &b_waits(5), 9),
            [""; 0]
        );
    }

    #[test]
    fn free_cpu_takes_the_most_urgent_waiting_job_under_a_non_preemptive_policy() {
        let set = set(1, &[("a", "0"), ("b", "0"), ("c", "0")]);
        let waiting = b_waits(15).release(2, 1, 10).at(7).complete(0, 1);
        let right = waiting.clone().switch(0, Some((2, 1)));
        assert_eq!(
            found(&set, edf(Invariant::NonPreemptive), &right, 9),
            [""; 0]
        );
        let wrong = waiting.switch(0, Some((1, 1)));
        assert_eq!(
            found(&set, edf(Invariant::NonPreemptive), &wrong, 9),
            ["at 7ns: job 1 of b starts on CPU 0, for which the more urgent job 1 of c waits"]
        );
    }

    #[test]
    fn free_cpu_considers_arrivals_of_the_same_instant() {
        let set = set(1, &[("a", "0"), ("b", "0"), ("c", "0")]);
        let both = b_waits(15).at(7).complete(0, 1).release(2, 1, 10);
        let right = both.clone().switch(0, Some((2, 1)));
        assert_eq!(
            found(&set, edf(Invariant::NonPreemptive), &right, 9),
            [""; 0]
        );
        let wrong = both.switch(0, Some((1, 1)));
        assert_eq!(
            found(&set, edf(Invariant::NonPreemptive), &wrong, 9),
            ["at 7ns: job 1 of b starts on CPU 0, for which the more urgent job 1 of c waits"]
        );
    }

    #[test]
    fn job_that_lost_its_cpu_competes_for_free_cpus() {
        let set = set(2, &[("a", "0-1"), ("b", "0-1"), ("c", "0-1")]);
        let displaced = Script::default()
            .at(0)
            .release(0, 1, 10)
            .switch(0, Some((0, 1)))
            .release(1, 1, 90)
            .switch(1, Some((1, 1)))
            .at(1)
            .release(2, 1, 20)
            .at(5)
            .complete(1, 1)
            .record(RecordKind::CpuOffline { cpu: cpu(0) })
            .switch(0, None);
        let right = displaced.clone().switch(1, Some((0, 1)));
        assert_eq!(
            found(&set, edf(Invariant::NonPreemptive), &right, 9),
            [""; 0]
        );
        let wrong = displaced.switch(1, Some((2, 1)));
        assert_eq!(
            found(&set, edf(Invariant::NonPreemptive), &wrong, 9),
            ["at 5ns: job 1 of c starts on CPU 1, for which the more urgent job 1 of a waits"]
        );
    }

    #[test]
    fn cpu_offline_and_online_at_one_instant_loses_its_job() {
        let set = set(1, &[("a", "0"), ("b", "0")]);
        let script = b_waits(15)
            .at(7)
            .record(RecordKind::CpuOffline { cpu: cpu(0) })
            .record(RecordKind::CpuOnline { cpu: cpu(0) });
        let script = script.switch(0, Some((1, 1)));
        assert_eq!(
            found(&set, edf(Invariant::NonPreemptive), &script, 9),
            [""; 0]
        );
    }

    #[test]
    fn shift_under_a_non_preemptive_policy_is_a_violation() {
        let set = set(2, &[("a", "0-1")]);
        let script = Script::default()
            .at(0)
            .release(0, 1, 10)
            .switch(0, Some((0, 1)))
            .at(5)
            .switch(0, None)
            .switch(1, Some((0, 1)));
        assert_eq!(
            found(&set, edf(Invariant::NonPreemptive), &script, 9),
            ["at 5ns: job 1 of a was preempted on CPU 0"]
        );
    }

    #[test]
    fn order_is_not_checked_if_reactions_take_time() {
        let contract = PolicyContract {
            immediate: false,
            ..edf(Invariant::Strong)
        };
        assert_eq!(found(&two_tasks(), contract, &b_waits(10), 9), [""; 0]);
    }

    /// The greedy set: most urgent first, a job is kept if the kept ones still fit on the CPUs.
    fn greedy(affinities: &[u64]) -> Vec<usize> {
        let mut kept: Vec<usize> = Vec::new();
        for job in 0..affinities.len() {
            kept.push(job);
            let masks: Vec<u64> = kept.iter().map(|&job| affinities[job]).collect();
            if !fits(&masks, 0) {
                kept.pop();
            }
        }
        kept
    }

    fn fits(masks: &[u64], taken: u64) -> bool {
        let Some((&mask, rest)) = masks.split_first() else {
            return true;
        };
        (0..64).any(|cpu| mask & !taken & 1 << cpu != 0 && fits(rest, taken | 1 << cpu))
    }

    #[test]
    fn strong_invariant_holds_exactly_for_the_greedy_set_and_weak_invariant_by_its_definition() {
        let names = ["a", "b", "c", "d", "e", "f"];
        let mut kept = [0; 4];
        for seed in 1..=20_000 {
            let mut random = RandomStream::new(seed, 0, 0);
            let (cpus, jobs) = (1 + random.below(4), 1 + random.below(6));
            let masks: Vec<u64> = (0..jobs)
                .map(|_| 1 + random.below((1 << cpus) - 1))
                .collect();
            let lists: Vec<String> = masks
                .iter()
                .map(|&mask| CpuSet::from_bits(mask).to_string())
                .collect();
            let tasks: Vec<_> = names
                .into_iter()
                .zip(lists.iter().map(String::as_str))
                .collect();
            let set = set(cpus as usize, &tasks);
            let mut script = Script::default().at(0);
            for job in 0..jobs {
                script = script.release(job as usize, 1, 100 + job);
            }
            let mut on = vec![None; cpus as usize];
            for (job, mask) in masks.iter().enumerate() {
                let cpu = random.below(cpus) as usize;
                if mask >> cpu & 1 == 1 && on[cpu].is_none() {
                    on[cpu] = Some(job);
                    script = script.switch(cpu, Some((job, 1)));
                }
            }
            let mut running: Vec<usize> = on.iter().flatten().copied().collect();
            running.sort_unstable();
            let strong = found(&set, edf(Invariant::Strong), &script, 9).is_empty();
            assert_eq!(strong, running == greedy(&masks), "seed {seed}");
            let wronged = |job: usize| {
                let mut mine = (0..cpus as usize).filter(|&cpu| masks[job] >> cpu & 1 == 1);
                !running.contains(&job) && mine.any(|cpu| on[cpu].is_none_or(|other| job < other))
            };
            let weak = found(&set, edf(Invariant::Weak), &script, 9).is_empty();
            assert_eq!(weak, !(0..jobs as usize).any(wronged), "seed {seed}");
            kept[usize::from(strong)] += 1;
            kept[2 + usize::from(weak)] += 1;
        }
        assert!(kept.iter().all(|&count| count > 500), "{kept:?}");
    }
}
