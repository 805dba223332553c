//! Tests of scheduling without preemption against every schedule of small task sets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod abstraction;
mod counts;
mod global;
mod one_cpu;
mod search;
mod sets;
