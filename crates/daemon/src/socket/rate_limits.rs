//! Limits of the resources that callers take, and the two rules that enforce them: shares and rates.

use shiftwork_model::{Instant, Span};

/// Limits of the socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketLimits {
    /// Maximum length of a message to the daemon in bytes, without its NUL.
    pub message: usize,
    /// Maximum number of connections of all users.
    pub connections: usize,
    /// How many of them are reserved for root, so that an administrator can always connect.
    pub root_connections: usize,
    /// Maximum size of unread replies of all users, in bytes.
    pub unread: usize,
    /// Rate limit of calls and new connections of a user.
    pub user_rate: RateLimit,
    /// Rate limit of calls and new connections of a control group, without those of root.
    pub cgroup_rate: RateLimit,
    /// Maximum time from the first byte of a message to its last.
    pub message_timeout: Span,
    /// Maximum time in which no byte of a reply is read.
    pub send_timeout: Span,
    /// Pause of a connection after a call beyond the limits of its user or control group.
    pub backoff: Span,
    /// Pause in accepting connections after this process ran out of descriptors or memory.
    pub accept_backoff: Span,
    /// Maximum numbers of connections accepted, and of events and timers handled per [`Server::serve`](super::Server::serve);
    /// the daemon processes scheduling events in between.
    pub batch: usize,
    /// Maximum number of calls answered per [`Server::serve`](super::Server::serve): a new connection waits meanwhile, and a
    /// call may take milliseconds.
    pub calls: usize,
}

/// Default rate of calls and new connections of a user.
pub const USER_CALLS_PER_SECOND: u32 = 1_000;
/// Default rate of calls and new connections of a control group.
pub const CGROUP_CALLS_PER_SECOND: u32 = 500;

impl Default for SocketLimits {
    fn default() -> Self {
        Self {
            // A typical call has some hundred bytes.
            message: 64 << 10,
            // For a thousand programs of one user, see `has_room`. The default limit of descriptors of a systemd service is
            // 524,288.
            connections: 2_400,
            root_connections: 200,
            // A recording has some megabytes.
            unread: 64 << 20,
            // At boot some thousand threads are admitted in a burst; later the callers are monitors and interactive users.
            // A call takes some 20 µs.
            user_rate: RateLimit::per_second(USER_CALLS_PER_SECOND),
            // Half of it: one service of a user cannot use up the rate of another.
            cgroup_rate: RateLimit::per_second(CGROUP_CALLS_PER_SECOND),
            // Programs write a message at once.
            message_timeout: Span::from_s(10),
            // Long enough for a reader that is stopped in its terminal, short enough to free its memory for others.
            send_timeout: Span::from_s(30),
            // A caller that ignores the error gets at most ten more per second and connection.
            backoff: Span::from_ms(100),
            accept_backoff: Span::from_ms(100),
            // Some 20 µs each.
            batch: 16,
            calls: 4,
        }
    }
}

/// Whether a user that holds `own` of `all` units, of which all users together hold `taken`, may have one more: if `own` is
/// less than the number of free units.
///
/// A first user gets half of all, the next one half of the rest, and so on. However much some users take, some units are
/// left for later users, and no share depends on the number of potential users.
///
/// # Examples
/// Of 8 units the first user gets 4, the second 2, and the next two 1 each.
pub const fn has_room(own: usize, taken: usize, all: usize) -> bool {
    own < all.saturating_sub(taken)
}

/// A rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Time in which one token is added.
    pub interval: Span,
    /// Capacity of the token bucket; at least one.
    pub burst: u64,
}

impl RateLimit {
    /// This many per second, at least one, with a burst of four seconds.
    pub fn per_second(calls: u32) -> Self {
        const SECOND_NS: u64 = 1_000_000_000;
        let calls = u64::from(calls.max(1));
        Self {
            interval: Span::from_ns(SECOND_NS / calls),
            burst: 4 * calls,
        }
    }
}

/// A token bucket: full at first, refilled by one token per `interval` up to `burst`.
///
/// # Source
/// The generic cell rate algorithm (ITU-T I.371, virtual scheduling), which is a token bucket that needs
/// one instant: when all tokens will be there again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    full_at: Instant,
}

impl TokenBucket {
    /// A full bucket.
    pub const FULL: Self = Self {
        full_at: Instant::ZERO,
    };

    /// Takes a token; `false` if the bucket is empty.
    pub fn take(&mut self, now: Instant, rate: RateLimit) -> bool {
        let others = rate.interval.as_ns().saturating_mul(rate.burst.max(1) - 1);
        if self.full_at.late_since(now) > Span::from_ns(others) {
            return false;
        }
        self.full_at = self.full_at.max(now) + rate.interval;
        true
    }

    /// Whether the bucket is full.
    pub fn is_full(self, now: Instant) -> bool {
        self.full_at <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::RandomStream;

    /// The definition: a level that rises linearly up to the burst, in parts of a token. A token has as many parts as the
    /// interval has nanoseconds.
    struct Level {
        parts: u64,
        at: u64,
    }

    impl Level {
        fn take(&mut self, now: u64, rate: RateLimit) -> bool {
            let token = rate.interval.as_ns();
            self.parts = (self.parts + (now - self.at)).min(token * rate.burst);
            self.at = now;
            let there = self.parts >= token;
            self.parts -= if there { token } else { 0 };
            there
        }
    }

    #[test]
    fn bucket_agrees_with_definition() {
        for seed in 1..=300 {
            let mut stream = RandomStream::new(seed, 1, 0);
            let rate = RateLimit {
                interval: Span::from_ns(1 + stream.below(6)),
                burst: 1 + stream.below(5),
            };
            let mut level = Level {
                parts: rate.interval.as_ns() * rate.burst,
                at: 0,
            };
            let (mut bucket, mut now) = (TokenBucket::FULL, 0);
            for step in 0..200 {
                now += stream.below(8) * stream.below(2) * stream.below(2);
                assert_eq!(
                    bucket.take(Instant::from_ns(now), rate),
                    level.take(now, rate),
                    "seed {seed}, step {step}, at {now} with {rate:?}"
                );
                let full = level.parts == rate.interval.as_ns() * rate.burst;
                assert_eq!(
                    bucket.is_full(Instant::from_ns(now)),
                    full,
                    "seed {seed}, step {step}"
                );
            }
        }
    }

    #[test]
    fn bucket_grants_rate_after_burst() {
        for calls in [1, 3, 500, 1_000] {
            let rate = RateLimit::per_second(calls);
            let mut bucket = TokenBucket::FULL;
            let mut granted = |ms| bucket.take(Instant::ZERO + Span::from_ms(ms), rate);
            let at_once = (0..=4 * calls).filter(|_| granted(0)).count();
            assert_eq!(at_once, 4 * calls as usize);
            let within_4_s = (1..=4_000).filter(|&ms| granted(ms)).count();
            assert_eq!(within_4_s, 4 * calls as usize);
        }
    }

    #[test]
    fn bucket_does_not_overflow_at_extreme_times() {
        let rate = RateLimit {
            interval: Span::from_ns(u64::MAX),
            burst: u64::MAX,
        };
        let mut bucket = TokenBucket::FULL;
        for now in [Instant::NEVER, Instant::ZERO, Instant::NEVER] {
            assert!(bucket.take(now, rate), "at {now:?}");
        }
    }

    #[test]
    fn later_users_get_a_share() {
        for all in 1..200_usize {
            let (mut taken, mut users, mut first) = (0, 0, None);
            // One user after the other takes as much as allowed.
            loop {
                let mut own = 0;
                while has_room(own, taken, all) {
                    own += 1;
                    taken += 1;
                }
                if own == 0 {
                    break;
                }
                first.get_or_insert(own);
                users += 1;
            }
            assert_eq!(first, Some(all.div_ceil(2)), "of {all}");
            assert_eq!(taken, all, "nothing is left unused");
            assert!(
                users as u32 > all.ilog2(),
                "{users} users got a share of {all}"
            );
        }
        assert!(!has_room(0, 9, 8));
    }
}
