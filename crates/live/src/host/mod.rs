//! Facts about the machine that a live run depends on.
//!
//! All of them are read through [`System`]; nothing is changed here, and nothing is loaded. Each module
//! owns one kind of fact and the obstacles of that kind. [`obstacles`] collects them all, before `run` loads
//! anything. `shiftwork doctor` shows the same facts in the same words.

pub mod bandwidth;
pub mod deadline;
pub mod kernel;
mod obstacle;
pub mod privileges;
pub mod sched_ext;
pub mod system;
pub mod taken;

pub use bandwidth::{DeadlineServer, RealTimeLimit, Served, deadline_servers, real_time_limit};
pub use deadline::{DeadlineThread, DeadlineThreads, Reservation, deadline_threads};
pub use kernel::is_real_time;
pub use obstacle::{Obstacle, obstacle_to_fifo, obstacle_to_pinning, obstacles};
pub use sched_ext::WATCHDOG_MAX;
pub use system::System;
pub use taken::Taken;
