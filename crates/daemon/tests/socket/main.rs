//! The socket of the agent, with real sockets and an imagined clock.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bench;
mod calls;
mod echo;
mod hostile;
mod others;
mod patience;
mod place;
mod shares;
