//! Whether given jobs meet their deadlines without preemption, by exploring what schedulers may do with them.
//!
//! The tests of the catalogue take tasks as sporadic. Of jobs whose releases are known, but for some jitter, much more can
//! be shown: [`explore()`] goes through all orders in which global non-preemptive EDF or fixed priorities may start the
//! jobs of a finite set, and [`np_periodic()`] asks it about periodic tasks with offsets, which repeat. As `analyze` is about
//! sporadic tasks, no entry of its catalogue rests on this; it is for programs that know their releases.
//!
//! # States
//! Jobs are started one after the other. A state says how many jobs of each task have been started, and for x from 1
//! to m an interval [low, high]: x CPUs are available at `low` at the earliest and at `high` for certain, for jobs that are
//! started from then on. From a state, the next job of task i may be started from
//!
//! > earliest = max(its earliest release, low of x = 1)
//!
//! until the latest time at which nothing else has been:
//!
//! > latest = min(max(high of x = 1, the least latest release of all next jobs), the least latest release of the next jobs that are
//! > certainly more urgent, less one unit)
//!
//! since at max(..) there certainly is an available CPU and a waiting job, and a more urgent job that has been released
//! goes first, also one that is released at the very instant. If earliest <= latest, that is a transition: the job ends
//! between earliest + its least cost and latest + its greatest, one CPU is available then, and the others not before
//! `earliest`. States with the same numbers of started jobs whose intervals meet, each for each x, become one with their
//! hulls.
//!
//! Every schedule is a path, so no job ends later than its latest end on any path. On one CPU the reverse holds, too: each
//! time of the interval is reached by some releases and costs, and the interval of a hull is the union of two that meet.
//!
//! # Source
//! M. Nasri, B. Brandenburg, "An Exact and Sustainable Analysis of Non-Preemptive Scheduling", RTSS 2017; M. Nasri, G. Nelissen,
//! B. Brandenburg, "A Response-Time Analysis for Non-Preemptive Job Sets under Global Scheduling", ECRTS 2018. What differs:
//! jobs of one task are started in their order, so that their number says which they are; and jobs of equal rank are
//! ordered by the rule for ties where that is certain, and in both ways where jitter leaves it open.

mod explore;
mod periodic;
mod state;

pub use explore::{JobRange, Late, explore};
pub use periodic::{NotMet, PeriodicRange, np_periodic};
