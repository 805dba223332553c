//! The long-lived daemon: it reserves CPU time for threads of programs that come and go.
//!
//! This crate owns the reservations, the quotas and permissions of callers, the state that survives a restart, and the
//! socket. It must never decide which task runs (`live` and the kernel do) nor whether a task fits (`analysis` does). Start
//! reading at [`daemon`]; [`reservation_table`] has the reservations, [`socket`] the calls, and [`run`] the main loop,
//! which has one thread.

mod accounts;
mod audit;
pub mod backend;
pub mod clock;
pub mod config;
pub mod daemon;
mod files;
mod log_rate_limit;
pub mod metrics;
pub mod observations;
mod privileges;
mod problems;
pub mod quotas;
pub mod recorder;
pub mod requests;
pub mod reservation;
pub mod reservation_table;
pub mod run;
pub mod socket;
pub mod state;
pub mod statistics;
pub mod threads;
