//! Numbers and witnesses as people read them.

use shiftwork_model::{TaskId, TaskSet};

use crate::Witness;
use crate::exact::{Decimal as _, Demand, Supplied, common_multiple, side_by_side, whole};
use crate::names::{list, quoted};

/// Maximum size of the denominator of a fraction that is shown, in bits.
const FRACTION_BITS: u64 = 1024;

/// The sum as a reduced fraction (`17/6`); `None` if its denominator may have more than 1024 bits, as
/// with very many different periods.
pub fn fraction(demand: &Demand) -> Option<String> {
    (common_multiple([demand]).bits() <= FRACTION_BITS).then(|| demand.to_fraction().to_string())
}

/// The sum as a decimal of up to so many places, rounded down.
pub fn decimal(demand: &Demand, places: u32) -> String {
    demand.to_decimal(places)
}

/// The names of tasks.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a>(pub &'a TaskSet);

impl Names<'_> {
    fn of(&self, task: TaskId) -> String {
        let known = self.0.tasks.get(task.index());
        quoted(task, known.map(|task| task.name.as_str()))
    }

    /// `tasks a, b and c`, or the first few and how many more.
    pub fn list(&self, tasks: &[TaskId]) -> String {
        list(tasks, |task| self.of(task))
    }
}

/// The witness as a clause: `tasks a, b and c need 2.10 of CPUs {0,1}, which are 2.00`.
pub fn witness(witness: &Witness, names: Names<'_>) -> String {
    match witness {
        Witness::NoTask { task } => format!(
            "task {} has a cost, period or deadline of zero",
            names.of(*task)
        ),
        Witness::Alone { task, needed } => format!(
            "task {} needs {} CPUs, and a job runs on one at a time",
            names.of(*task),
            side_by_side(&Demand::of(*needed), &Supplied(1, whole())).0
        ),
        Witness::TooLong {
            task,
            least,
            deadline,
        } => format!(
            "a job of task {} may take {least} from its arrival even if nothing else executes, and is due after {deadline}",
            names.of(*task)
        ),
        Witness::Nowhere { task } => format!(
            "the platform has no CPU that task {} may use",
            names.of(*task)
        ),
        Witness::Crowd {
            tasks,
            cpus,
            needed,
            supply,
        } => {
            let (needed, available) = side_by_side(needed, &Supplied(cpus.len(), *supply));
            let need = if tasks.len() == 1 { "needs" } else { "need" };
            let (of, are) = if cpus.len() == 1 {
                ("CPU", "is")
            } else {
                ("CPUs", "are")
            };
            format!(
                "{} {need} {needed} of {of} {{{cpus}}}, which {are} {available}",
                names.list(tasks)
            )
        }
        Witness::Interval {
            cpu,
            length,
            demand,
        } if length.is_zero() && demand.is_zero() => {
            format!("CPU {cpu} is needed for longer than time passes")
        }
        Witness::Interval {
            cpu,
            length,
            demand,
        } => format!(
            "on CPU {cpu} jobs that need {demand} may all be released and due within {length}"
        ),
        Witness::Blocked {
            task,
            cpu,
            length,
            demand,
        } => format!(
            "on CPU {cpu} jobs that need {demand} may all be released and due within {length}, just after a job \
             of task {} has begun",
            names.of(*task)
        ),
        Witness::Late {
            task,
            cpu,
            response,
            deadline,
        } => format!(
            "task {} may take {response} on CPU {cpu} and is due after {deadline}",
            names.of(*task)
        ),
    }
}
