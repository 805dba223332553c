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
mod epoll;
mod fair_queue;
mod groups;
mod listener;
mod peer;
mod rate_limits;
mod server;
mod users;

pub use bind_error::BindError;
pub use counters::Counters;
pub use listener::Access;
pub use peer::{Peer, Service};
pub use rate_limits::{
    CGROUP_CALLS_PER_SECOND, RateLimit, SocketLimits, TokenBucket, USER_CALLS_PER_SECOND, has_room,
};
pub use server::Server;
