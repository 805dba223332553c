//! What happened at the socket, for whoever keeps watch over it.

/// What happened since the server began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections that were let in.
    pub accepted: u64,
    /// Connections that were not, because their user had too many.
    pub rejected: u64,
    /// How often nobody could be let in for want of descriptors or memory.
    pub accept_failures: u64,
    /// Messages that were answered, or wanted no answer.
    pub calls: u64,
    /// Those of them that were refused because their user asked too much.
    pub exhausted: u64,
    /// Connections that ended because of what they sent, or how long it took.
    pub closed: u64,
    /// Connections that were cut because they did not take their answers.
    pub aborted: u64,
}
