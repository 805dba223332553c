//! The compiled half of the Python package `shiftwork`: the verbs on task sets, and the calling thread as a task of the agent,
//! without the interpreter's lock.
//!
//! This crate owns the way between Python's values and ours, and nothing else: it must never
//! contain scheduling, analysis, or the text of another crate's error. What people use is in
//! `python/shiftwork/`; the names here are private to it. Results cross as JSON, in the shapes of
//! the command line, and as columns of 64-bit integers.
//!
//! Start reading at `set.rs`, then one file per verb. `wait.rs` is how everything that computes waits: so
//! that other threads of Python go on and Ctrl-C is heard. `agent.rs` waits by itself: its thread is the task.

mod agent;
mod analyze;
mod columns;
mod failure;
mod generate;
mod overheads;
mod set;
mod simulate;
mod study;
mod wait;

use pyo3::prelude::*;

/// The private module `shiftwork._shiftwork`.
#[pymodule]
mod _shiftwork {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::agent::OwnTask;
    #[pymodule_export]
    use crate::analyze::analyze;
    #[pymodule_export]
    use crate::generate::generate;
    #[pymodule_export]
    use crate::overheads::Overheads;
    #[pymodule_export]
    use crate::set::TaskSet;
    #[pymodule_export]
    use crate::simulate::simulate;
    #[pymodule_export]
    use crate::study::Study;
    #[pymodule_export]
    use crate::study::read_results;

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// All policies, as JSON in the shape of `shiftwork policies --json`.
    #[pyfunction]
    fn policies() -> PyResult<String> {
        crate::to_json(&shiftwork_verbs::policies::output())
    }

    /// The length in nanoseconds of a text like `500us`, above zero if `positive`.
    #[pyfunction]
    fn span_ns(text: &str, positive: bool) -> PyResult<u64> {
        let read = match positive {
            true => shiftwork_taskset::positive_span(text),
            false => shiftwork_taskset::span(text),
        };
        let span = read.map_err(crate::failure::wrong)?;
        Ok(span.as_ns())
    }
}

/// An output of a verb as JSON.
fn to_json(output: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(output).map_err(|error| failure::wrong(error.to_string()))
}
