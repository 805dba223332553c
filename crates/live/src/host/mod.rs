//! What there is to know about the machine underneath, as far as a live run depends on it.
//!
//! All of it is read through [`System`]; nothing is changed here, and nothing is loaded. Each module
//! owns one kind of fact and what can be in the way there; [`obstacles`] asks them all, which `run`
//! does before it loads anything. `shiftwork doctor` shows the same facts and says the same words.

pub mod bandwidth;
pub mod deadline;
pub mod kernel;
mod obstacle;
pub mod privileges;
pub mod sched_ext;
pub mod system;

pub use bandwidth::{DeadlineServer, RealTimeLimit, Served, deadline_servers, real_time_limit};
pub use deadline::{DeadlineThread, DeadlineThreads, Reservation, deadline_threads};
pub use kernel::is_real_time;
pub use obstacle::{Obstacle, obstacle_to_fifo, obstacle_to_pinning, obstacles};
pub use sched_ext::WATCHDOG_MAX;
pub use system::System;
