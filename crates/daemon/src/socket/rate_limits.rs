//! What anybody may take of the agent, and the two rules by which that is kept: shares and paces.

use shiftwork_model::{Instant, Span};

/// How much there is of everything that connections take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketLimits {
    /// The longest message to the agent in bytes, without its NUL.
    pub message: usize,
    /// Connections of all users.
    pub connections: usize,
    /// How many of them are root's alone, so that whoever keeps the machine is always heard.
    pub root_connections: usize,
    /// Answers of all users that wait to be read, in bytes.
    pub unread: usize,
    /// How many calls and new connections a user may make.
    pub user_rate: RateLimit,
    /// How many those of a control group may make together, root's aside.
    pub cgroup_rate: RateLimit,
    /// How long a message may take from its first byte to its last.
    pub message_timeout: Span,
    /// How long an answer may wait without a byte of it being read.
    pub send_timeout: Span,
    /// How long a connection is not listened to after it asked more than its user may.
    pub backoff: Span,
    /// How long nobody is let in once this process has no descriptors or memory left.
    pub accept_backoff: Span,
    /// How many calls are answered in one turn, how many are let in, and how many are looked at: in
    /// between, the agent keeps its accounts.
    pub batch: usize,
}

/// Calls and new connections of a user in a second, unless the configuration says something else.
pub const USER_CALLS_PER_SECOND: u32 = 1_000;
/// Those of a control group.
pub const CGROUP_CALLS_PER_SECOND: u32 = 500;

impl Default for SocketLimits {
    fn default() -> Self {
        Self {
            // A call is some hundred bytes.
            message: 64 << 10,
            // A thousand programs of one user, see `has_room`, and as many descriptors as systemd gives
            // to services unless told otherwise are 524,288.
            connections: 2_400,
            root_connections: 200,
            // A record is some megabytes long.
            unread: 64 << 20,
            // A machine that starts admits some thousand threads at once; later it is people and
            // monitors that ask. A call takes some 20 µs.
            user_rate: RateLimit::per_second(USER_CALLS_PER_SECOND),
            // Half: no service of a user makes another one unheard.
            cgroup_rate: RateLimit::per_second(CGROUP_CALLS_PER_SECOND),
            // Programs write a message at once; people who type them are slower than any bound.
            message_timeout: Span::from_s(10),
            // A reader that was stopped by its terminal may go on; its memory is missed by others.
            send_timeout: Span::from_s(30),
            // Whoever does not heed the answer gets ten more each second and connection.
            backoff: Span::from_ms(100),
            accept_backoff: Span::from_ms(100),
            // Some 20 µs each.
            batch: 16,
        }
    }
}

/// Whether a user who holds `own` of what all together hold `taken` of may have one more, if there are
/// `all`: as long as that is no more than what is left over for others.
///
/// One user alone gets half, the next half of the rest, and so on: however much some of them take, there
/// is some left for whoever comes later, and nobody's share depends on how many users there might be.
///
/// # Examples
/// Of 8, one user gets 4, then another one gets 2, and the next two get 1 each.
pub const fn has_room(own: usize, taken: usize, all: usize) -> bool {
    own < all.saturating_sub(taken)
}

/// How often something may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// The mean time from one to the next.
    pub interval: Span,
    /// How many there may be at once after a pause; at least one.
    pub burst: u64,
}

impl RateLimit {
    /// So many in a second, at least one, and at once what there may be in four.
    pub fn per_second(calls: u32) -> Self {
        const SECOND_NS: u64 = 1_000_000_000;
        let calls = u64::from(calls.max(1));
        Self {
            interval: Span::from_ns(SECOND_NS / calls),
            burst: 4 * calls,
        }
    }
}

/// Tokens of one user: there are `burst` at first, each is back an `interval` after the one before it.
///
/// # Source
/// The generic cell rate algorithm (ITU-T I.371, virtual scheduling), which is a token bucket that needs
/// one instant: when all tokens will be there again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    full_at: Instant,
}

impl TokenBucket {
    /// All tokens are there.
    pub const FULL: Self = Self {
        full_at: Instant::ZERO,
    };

    /// Takes a token; whether there was one.
    pub fn take(&mut self, now: Instant, rate: RateLimit) -> bool {
        let others = rate.interval.as_ns().saturating_mul(rate.burst.max(1) - 1);
        if self.full_at.late_since(now) > Span::from_ns(others) {
            return false;
        }
        self.full_at = self.full_at.max(now) + rate.interval;
        true
    }

    /// Whether all tokens are there.
    pub fn is_full(self, now: Instant) -> bool {
        self.full_at <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::RandomStream;

    /// The definition: a level that rises evenly up to the burst. Kept in parts of a token, of which a
    /// token has as many as an interval has nanoseconds.
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
    fn a_bucket_is_a_level_that_rises_up_to_the_burst() {
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
    fn a_pace_is_so_many_in_a_second() {
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
    fn times_beyond_all_bounds_do_no_harm() {
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
    fn whoever_comes_later_finds_room() {
        for all in 1..200_usize {
            let (mut taken, mut users, mut first) = (0, 0, None);
            // One user after the other takes all that they get.
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
                "{users} users had room in {all}"
            );
        }
        assert!(!has_room(0, 9, 8));
    }
}
