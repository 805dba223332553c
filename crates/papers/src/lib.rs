//! What papers publish, computed again.
//!
//! This crate owns the reproductions: the inputs of the papers' examples and evaluations, what they expect,
//! and the pages that put ours beside theirs. It must never contain scheduling or analysis: what is shown is
//! what the other crates do.

pub mod affinities;
pub mod bonifaci_2016;
pub mod brandenburg_2008;
pub mod brandenburg_2009;
mod chapter;
mod clock;
pub mod figure;
pub mod measure;
pub mod outcome;
pub mod page;
pub mod pages;
pub mod picture;
pub mod schedule;
pub mod tang_2021;
