//! rt-app files: an imported task computes when the thread of rt-app does, and for as long, or the
//! thread is refused.
#![allow(clippy::unwrap_used, reason = "a test")]

mod generated;
mod interpreter;
mod keys;
mod model;
mod text;
mod together;
mod waking;
