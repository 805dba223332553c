//! The long-lived agent: threads of programs come and go, and each has the time that it was promised.
//!
//! This crate owns who has which reservation, who may ask for one, what is remembered across a restart, and the socket.
//! It must never decide who runs (`live` and the kernel do) nor who fits (`analysis` does). Start reading at
//! [`daemon`]; [`reservation_table`] is who has what, [`socket`] how it is asked, [`run`] the one thread of it all.

pub mod backend;
pub mod config;
pub mod daemon;
mod log_rate_limit;
pub mod metrics;
pub mod observations;
mod privileges;
pub mod quotas;
pub mod recorder;
pub mod reservation;
pub mod reservation_table;
pub mod run;
pub mod socket;
pub mod state;
pub mod statistics;
pub mod threads;
