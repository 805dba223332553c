//! Programs that declare their own tasks, against the agent's socket, ledger and admission; only the kernel is imagined.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod boundary;
mod built;
mod daemon;
mod documents;
mod examples;
mod installed;
