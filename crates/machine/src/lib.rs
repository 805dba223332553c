//! The parts that all machines share: when jobs are released, how long they execute, and how budgets are
//! enforced.
//!
//! This crate owns pure integer logic. It must never decide which job runs (policies do), read a clock or
//! run anything (machines do).
//!
//! Start reading at [`ReleasePattern`], [`WorkSource`] and [`Server`], one per file.
//! [`Timeline`] holds the next instants of many timers, [`Ticks`] the boundaries of quanta, [`TriggerQueue`] the triggers of a
//! task, [`Mutexes`] which job holds each mutex and what follows; [`Cpusets`] is Linux's admission control.

mod cpusets;
mod mutexes;
mod release;
mod server;
mod ticks;
mod timeline;
mod trigger_queue;
mod work;

pub use cpusets::{Bandwidth, BandwidthScope, Cpusets, RequestRefused};
pub use mutexes::{Handed, MutexMachine, Mutexes, Rank, Request};
pub use release::ReleasePattern;
pub use server::{Admission, Server, ServerParameters, ServerRule, Spent};
pub use ticks::Ticks;
pub use timeline::Timeline;
pub use trigger_queue::{Taken, TriggerQueue};
pub use work::{Step, Stretch, WorkSource, may_be_throttled};
