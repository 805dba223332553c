//! The shape of what is measured of cause-effect chains.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One cause-effect chain of a run.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChainOutput {
    name: String,
    /// Reaction times: one for each read of the first task but the first.
    reaction: EndToEndOutput,
    /// Data ages: one for each output of the last task that rests on a read and was replaced.
    age: EndToEndOutput,
    /// End-to-end latencies: one for each job of the last task that stems from a job of the first; null if not every task
    /// triggers the next.
    latency: Option<EndToEndOutput>,
}

/// Times from a read or an arrival of the first task of a chain to an effect of its last.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EndToEndOutput {
    /// The longest that ended by the horizon; null if none did.
    max_ns: Option<u64>,
    /// Number of times that ended by the horizon.
    samples: u64,
    /// The length up to the horizon of the longest that had not ended by then; null if there is none.
    pending_ns: Option<u64>,
    /// The longest that is wanted; null if any is.
    wanted_ns: Option<u64>,
    /// Whether none was longer than wanted, including those that had not ended; null if any length is wanted.
    met: Option<bool>,
}
