//! The long-lived agent: threads of programs come and go, and each has the time that it was promised.
//!
//! This crate owns who has which reservation, who may ask for one, what is remembered across a restart, and the socket.
//! It must never decide who runs (`live` and the kernel do) nor who fits (`analysis` does). Start reading at
//! [`agent`]; [`ledger`] is who has what, [`socket`] how it is asked, [`run`] the one thread of it all.

pub mod accounts;
pub mod agent;
pub mod config;
pub mod hands;
pub mod kernel;
pub mod ledger;
pub mod limits;
pub mod metrics;
pub mod observations;
mod privileges;
pub mod recorder;
mod reports;
pub mod reservation;
pub mod run;
pub mod socket;
pub mod state;
pub mod threads;
