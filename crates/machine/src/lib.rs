//! What joins a policy to something that runs jobs, as far as every machine does it alike: when jobs
//! are released, what a job does, how budgets are enforced, and the trait of a machine.
//!
//! This crate owns pure integer logic. It must never decide who runs (policies do), read a clock or
//! run anything (machines do).
//!
//! Start reading at [`Machine`]; then [`ReleasePattern`], [`WorkSource`] and [`Server`], one per file.
//! [`Timeline`] is for those who wait for many instants, [`Ticks`] for quanta; [`Cpusets`] is how Linux answers requests.

mod cpusets;
mod machine;
mod release;
mod server;
mod ticks;
mod timeline;
mod work;

pub use cpusets::{Bandwidth, Cpusets, Place, RequestRefused};
pub use machine::{Machine, Outcome, Workload};
pub use release::ReleasePattern;
pub use server::{Admission, Server, ServerParameters, ServerRule, Spent};
pub use ticks::Ticks;
pub use timeline::Timeline;
pub use work::{Stretch, WorkSource, may_be_throttled};
