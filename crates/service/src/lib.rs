//! The long-lived agent: threads of programs come and go, and each has the time that it was promised.
//!
//! This crate owns who has which reservation, who may ask for one, what is remembered across a restart, and the socket.
//! It must never decide who runs (`live` and the kernel do) nor who fits (`analysis` does).

pub mod socket;
