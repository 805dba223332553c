//! The socket of the daemon: a varlink service that one thread serves beside its other work.
//!
//! It owns bytes, connections and the order in which they are served. It never blocks, reads no clock, and bounds the
//! resources that each user takes. A [`Service`] carries out the calls.
//!
//! Start reading at [`Server`]. The path of a call: `listener.rs` accepts the connection, `connection.rs` reads bytes,
//! `fair_queue.rs` selects the next connection, `users.rs` and `groups.rs` check its rate, and `shiftwork_client::react`
//! decodes the message.

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
