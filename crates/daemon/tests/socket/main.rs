//! The socket of the daemon, with real sockets and a simulated clock.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod calls;
mod echo_service;
mod fair_shares;
mod hostile;
mod listening;
mod test_server;
mod timeouts;
mod varlink_clients;
