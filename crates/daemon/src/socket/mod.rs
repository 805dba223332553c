//! The socket of the agent: a varlink service that one thread serves beside its other work.
//!
//! It owns bytes, connections and whose turn it is; it never waits, reads no clock, and keeps in bounds
//! what anybody may take of it. What a call means is up to a [`Service`].
//!
//! Start reading at [`Server`]. The way of a call: `listener.rs` lets somebody in, `connection.rs` reads
//! bytes, `turns.rs` says who is next, `users.rs` and `groups.rs` whether they may, and
//! `shiftwork_client::react` what the bytes ask.

mod bind_error;
mod connection;
mod counters;
mod groups;
mod limits;
mod listener;
mod peer;
mod server;
mod turns;
mod users;
mod watch;

pub use bind_error::BindError;
pub use counters::Counters;
pub use limits::{Bucket, CALLS_OF_CGROUP, CALLS_OF_USER, Limits, Pace, has_room};
pub use listener::Access;
pub use peer::{Peer, Service};
pub use server::Server;
