//! No sequence of requests over-commits a CPU or breaks a promise to another task.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod deadlines;
mod one_cpu;
mod overcommitment;
