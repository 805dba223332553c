//! Task sets.

use std::sync::Arc;

use pyo3::prelude::*;
use shiftwork_model::{Arrival, CapacitySum, Pace, Task};
use shiftwork_taskset::read_in;
use shiftwork_verbs::catalogue;

use crate::failure::refused;

/// A task set that does not change any more.
#[pyclass(frozen, eq, module = "shiftwork._shiftwork")]
#[derive(PartialEq)]
pub struct TaskSet(pub Arc<shiftwork_model::TaskSet>);

/// A task as Python sees it: name; cost, period, deadline and offset in nanoseconds; the list of
/// CPUs; priority; how jobs arrive, and the instants of releases or the distances of arrivals if they are given.
type TaskFields = (
    String,
    (u64, u64, u64, u64, u64),
    String,
    Option<u32>,
    (&'static str, Option<Vec<u64>>),
);

#[pymethods]
impl TaskSet {
    /// Reads the text of a task-set file.
    #[staticmethod]
    fn read(text: &str) -> PyResult<Self> {
        let environment = catalogue::environment();
        let set = read_in(text, &environment).map_err(|error| refused(&error))?;
        Ok(Self(Arc::new(set)))
    }

    /// The same as a task-set file.
    fn write(&self) -> String {
        shiftwork_taskset::write(&self.0)
    }

    /// For people.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// How many CPUs there are.
    #[getter]
    fn cpus(&self) -> usize {
        self.0.platform.cpus
    }

    /// The policy that the file names, if any.
    #[getter]
    fn policy(&self) -> Option<&str> {
        self.0.scheduler.policy.as_deref()
    }

    /// The overhead file that the file names, if any.
    #[getter]
    fn overheads(&self) -> Option<&str> {
        self.0.scheduler.overheads.as_deref()
    }

    /// The sum of all C/T as a reduced fraction, `17/6` or `2`.
    #[getter]
    fn utilization(&self) -> String {
        let mut sum = CapacitySum::default();
        for task in &self.0.tasks {
            sum.add(task.utilization());
        }
        sum.to_fraction().to_string()
    }

    /// What the affinities look like together.
    #[getter]
    fn affinity_kind(&self) -> &'static str {
        self.0.affinity_kind().name()
    }

    /// The tasks.
    fn tasks(&self) -> Vec<TaskFields> {
        self.0.tasks.iter().map(fields).collect()
    }
}

fn fields(task: &Task) -> TaskFields {
    let arrival = match &task.arrival {
        Arrival::Periodic => ("periodic", None),
        Arrival::Sporadic => ("sporadic", None),
        Arrival::Triggered(_) => ("triggered", None),
        Arrival::Curve(curve, pace) => {
            let distances = curve.distances().iter().map(|it| it.as_ns());
            let name = match pace {
                Pace::Earliest => "periodic",
                Pace::Random => "sporadic",
            };
            (name, Some(distances.collect()))
        }
        Arrival::Releases(at) => ("releases", Some(at.iter().map(|at| at.as_ns()).collect())),
    };
    (
        task.name.clone(),
        (
            task.cost.as_ns(),
            task.period.as_ns(),
            task.deadline.as_ns(),
            task.offset.as_ns(),
            task.jitter.as_ns(),
        ),
        task.affinity.to_string(),
        task.priority.map(|priority| priority.number()),
        arrival,
    )
}
