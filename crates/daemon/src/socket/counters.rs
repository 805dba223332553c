//! Counters of the socket.

/// Counters since the start of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Accepted connections.
    pub accepted: u64,
    /// Connections refused because of the limits of their user or control group.
    pub rejected: u64,
    /// Failures of `accept` for lack of descriptors or memory.
    pub accept_failures: u64,
    /// Processed messages, including those without a reply.
    pub calls: u64,
    /// Messages refused because of the limits of their user or control group.
    pub exhausted: u64,
    /// Connections closed because of an invalid or incomplete message.
    pub closed: u64,
    /// Connections aborted because the peer did not read its replies.
    pub aborted: u64,
}
