//! Orders by laxity: the ranks of jobs change with time, also where nothing happens.

use shiftwork_model::{Instant, Order, Span};

use super::budget::Budgets;
use super::state::{State, TaskState, latest_start};

/// The next instant after the present one at which a policy by laxity has to decide although nothing happens, if
/// a job waits; [`Instant::NEVER`] if there is none. The instants are those of the definitions: for EDZL, one
/// at which a waiting job has no laxity left; for LLF, a multiple of the quantum.
pub(super) fn next_decision(
    order: Order,
    quantum: Span,
    state: &State,
    budgets: &Budgets,
) -> Instant {
    let now = state.now();
    let ready = || state.ready.iter().map(|id| (*id, &state.tasks[id.index()]));
    let start = |(id, task): (_, &TaskState)| latest_start(task.deadline, budgets.left(now, id));
    let waiting = || ready().filter(|(_, task)| task.waits()).map(start);
    match order {
        Order::ZeroLaxity => {
            let later = waiting().filter(|&start| start > now);
            later.min().unwrap_or(Instant::NEVER)
        }
        Order::LeastLaxity => {
            let running = ready().filter(|(_, task)| !task.waits()).map(start);
            match (waiting().min(), running.max()) {
                (Some(waiting), Some(running)) => {
                    // Not before a running job can have more laxity.
                    let from = now
                        .as_ns()
                        .saturating_add(waiting.late_since(running).as_ns());
                    let quantum = quantum.as_ns().max(1);
                    let at = (from / quantum + 1).checked_mul(quantum);
                    at.map_or(Instant::NEVER, Instant::from_ns)
                }
                _ => Instant::NEVER,
            }
        }
        _ => Instant::NEVER,
    }
}

#[cfg(test)]
mod tests {
    use crate::check::PolicyContract;
    use crate::check::testing::{edf, found};
    use crate::testing::{Script, set};
    use shiftwork_model::{Invariant, Order, Span};

    /// Two jobs with C = 10 on one CPU, due at 12 and 15: first job a runs, and at each of these instants the job
    /// of this task begins to.
    fn judged(order: Order, switches: &[(u64, usize)], horizon: u64) -> Vec<String> {
        let mut set = set(1, &[("a", "0"), ("b", "0")]);
        set.scheduler.quantum = Some(Span::from_ns(4));
        let mut script = Script::default()
            .at(0)
            .release(0, 1, 12)
            .release(1, 1, 15)
            .switch(0, Some((0, 1)));
        for &(at, task) in switches {
            script = script.at(at).switch(0, Some((task, 1)));
        }
        let contract = PolicyContract {
            order,
            ..edf(Invariant::Strong)
        };
        found(&set, contract, &script, horizon)
    }

    fn begins(found: &[String], expected: &str) -> bool {
        found
            .first()
            .is_some_and(|first| first.starts_with(expected))
    }

    #[test]
    fn job_without_laxity_must_run_also_where_nothing_happens() {
        let late = judged(Order::ZeroLaxity, &[], 6);
        let expected = "at 5ns: job 1 of b (deadline or zero laxity 0) waits, and could get CPU 0 from job 1 \
                        of a (deadline or zero laxity 12)";
        assert!(begins(&late, expected), "{late:?}");
        assert_eq!(judged(Order::ZeroLaxity, &[], 5), [""; 0]);
        // From 7 on neither has laxity.
        assert_eq!(judged(Order::ZeroLaxity, &[(5, 1)], 10), [""; 0]);
        let early = judged(Order::ZeroLaxity, &[(4, 1)], 5);
        assert!(begins(&early, "at 4ns: job 1 of a"), "{early:?}");
    }

    #[test]
    fn laxities_are_compared_at_quanta() {
        let late = judged(Order::LeastLaxity, &[], 5);
        let expected = "at 4ns: job 1 of b (latest start 5) waits, and could get CPU 0 from job 1 of a \
                        (latest start 6)";
        assert!(begins(&late, expected), "{late:?}");
        assert_eq!(judged(Order::LeastLaxity, &[(4, 1)], 8), [""; 0]);
        let late = judged(Order::LeastLaxity, &[(4, 1)], 9);
        assert!(
            begins(&late, "at 8ns: job 1 of a (latest start 6)"),
            "{late:?}"
        );
        assert_eq!(judged(Order::LeastLaxity, &[(4, 1), (8, 0)], 12), [""; 0]);
        let early = judged(Order::LeastLaxity, &[(2, 1)], 3);
        assert!(
            begins(&early, "at 2ns: job 1 of a (latest start 4)"),
            "{early:?}"
        );
    }
}
