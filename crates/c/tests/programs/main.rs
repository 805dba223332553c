//! Programs that declare their own tasks, with the daemon's socket, reservation table and admission; only the kernel is
//! simulated.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod boundary;
mod built;
mod daemon;
mod documents;
mod examples;
mod installed;
