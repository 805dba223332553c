//! What the benchmarks measure policies with: task sets like those of Bonifaci et al. (ECRTS 2016,
//! section V), and the events of real runs of them.
//!
//! Owns no measuring: [`sets`] draws task sets, [`recording`] runs them, [`replay`] feeds what was
//! recorded to a policy, [`runs`] and
//! [`counted`] say what is measured with what.
#![allow(dead_code, reason = "every benchmark uses a part of this")]

pub mod clock;
pub mod counted;
pub mod counts;
pub mod recording;
pub mod replay;
pub mod runs;
pub mod sets;
