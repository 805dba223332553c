//! What can be said of a task set before it runs: whether any scheduler could meet its needs, what a
//! policy guarantees, and why a task or a change is refused.
//!
//! This crate owns verdicts: each comes from a published condition, decided with integers or exact
//! fractions, and each "no" carries a [`Witness`] that can be checked by hand. It must never contain
//! a policy, a clock, a text format, or floating point in a decision. "Not shown" is never called
//! "no": tests have three outcomes, and one that gives up after a number of steps says so.
//!
//! Start reading at [`verdicts`], which asks everything about a task set, or at [`admission`], which
//! `run` asks before it starts anything. What they ask is one file per published test: in `affinity/`
//! (does the demand fit the CPUs, and what follows under affinities?), `uniprocessor/`, `packing/`,
//! `global_edf/`, `global_fp/`, `response/` (how late at most?), `pfair` and `speedup`. [`overheads`] says what they
//! are asked about where scheduling is not free. [`schedule_abstraction`] is for programs alone: it asks about
//! releases that are known, of which verdicts do not speak. `exact` and `filter` are the arithmetic.
//!
//! The *supply* of a CPU is the share of it that real-time tasks may have, 1 without a reserve. A
//! test with a supply below 1 treats every CPU as slower by that factor; the published test is the
//! one with supply 1.

pub mod admission;
pub mod affinity;
mod arrivals;
mod blocking;
pub mod chains;
mod curves;
mod exact;
mod filter;
pub mod global_edf;
pub mod global_fp;
mod names;
pub mod overheads;
pub mod packing;
pub mod pfair;
mod policy;
pub mod response;
pub mod schedule_abstraction;
pub mod speedup;
pub mod stand_ins;
mod steps;
pub mod suspensions;
mod task;
mod triggers;
pub mod uniprocessor;
pub mod verdicts;
mod witness;

pub use exact::{Demand, Rate};
pub use steps::{Outcome, Steps};
pub use task::{NotShown, Placed, Ranked, Sporadic};
pub use witness::Witness;
