//! The socket of the agent: a varlink service that one thread serves beside its other work.
//!
//! It owns bytes, connections and whose turn it is; it never waits, reads no clock, and keeps in bounds
//! what anybody may take of it. What a call means is up to a [`Service`].
//!
//! Start reading at [`Service`].

mod limits;
mod peer;

pub use limits::{Bucket, Limits, Pace, has_room};
pub use peer::{Peer, Service};
