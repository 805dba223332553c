//! Connections, unread replies and call rates of users.

use std::collections::BTreeMap;

use shiftwork_client::Error;
use shiftwork_model::Instant;

use super::rate_limits::{RateLimit, SocketLimits, TokenBucket, has_room};

/// The user ID of root, for which connections are reserved.
pub(super) const ROOT: u32 = 0;

/// The state of one user.
#[derive(Debug)]
struct UserState {
    connections: usize,
    unread: usize,
    bucket: TokenBucket,
}

/// The state of all users. A user without connections and with a full token bucket is removed.
///
/// Invariant: `connections` and `unread` are sums over the users; `connections_of_others` is the sum without root's.
#[derive(Debug, Default)]
pub(super) struct Users {
    users: BTreeMap<u32, UserState>,
    connections: usize,
    connections_of_others: usize,
    unread: usize,
}

impl Users {
    /// Adds a connection of the user.
    ///
    /// # Errors
    /// If the user has too many connections or exceeds the rate.
    pub(super) fn connect(
        &mut self,
        user: u32,
        now: Instant,
        limits: &SocketLimits,
    ) -> Result<(), Error> {
        self.remove_idle(now);
        let for_others = limits.connections - limits.root_connections;
        let (taken, connections) = (self.connections, self.connections_of_others);
        let state = self.state_of(user);
        let own = state.connections;
        let (room, all) = if user == ROOT {
            (taken < limits.connections, limits.connections)
        } else {
            let room = taken < limits.connections && has_room(own, connections, for_others);
            (room, for_others)
        };
        if !room {
            return Err(exhausted(format!(
                "user {user} has {own} of {all} connections, and at least as many must remain for other users; \
                 close some"
            )));
        }
        if !state.bucket.take(now, limits.user_rate) {
            return Err(rate_exceeded(&format!("user {user}"), limits.user_rate));
        }
        state.connections += 1;
        self.connections += 1;
        self.connections_of_others += usize::from(user != ROOT);
        Ok(())
    }

    /// Removes a connection of the user, with this number of unread bytes.
    pub(super) fn disconnect(&mut self, user: u32, unread: usize) {
        self.unread_changed(user, unread, 0);
        self.state_of(user).connections -= 1;
        self.connections -= 1;
        self.connections_of_others -= usize::from(user != ROOT);
    }

    /// Counts a call of the user.
    ///
    /// # Errors
    /// If the user exceeds the rate, or has too many unread replies.
    pub(super) fn call(
        &mut self,
        user: u32,
        now: Instant,
        limits: &SocketLimits,
    ) -> Result<(), Error> {
        let unread = self.unread;
        let state = self.state_of(user);
        if !state.bucket.take(now, limits.user_rate) {
            return Err(rate_exceeded(&format!("user {user}"), limits.user_rate));
        }
        let own = state.unread;
        if !has_room(own, unread, limits.unread) {
            return Err(exhausted(format!(
                "user {user} has {own} bytes of unread replies, of {} for all users; read them",
                limits.unread
            )));
        }
        Ok(())
    }

    /// Updates the number of unread bytes of one connection of the user.
    pub(super) fn unread_changed(&mut self, user: u32, before: usize, after: usize) {
        let state = self.state_of(user);
        state.unread = state.unread + after - before;
        self.unread = self.unread + after - before;
    }

    fn state_of(&mut self, user: u32) -> &mut UserState {
        self.users.entry(user).or_insert(UserState {
            connections: 0,
            unread: 0,
            bucket: TokenBucket::FULL,
        })
    }

    /// Removes users without connections and with full buckets: they are equivalent to new ones.
    /// The number of others without connections is bounded by the connections made within the time
    /// that fills a bucket.
    fn remove_idle(&mut self, now: Instant) {
        self.users
            .retain(|_, state| state.connections > 0 || !state.bucket.is_full(now));
    }
}

/// The error of a user or control group that exceeds its rate.
pub(super) fn rate_exceeded(subject: &str, rate: RateLimit) -> Error {
    exhausted(format!(
        "{subject} exceeds the rate limit: a burst of {} calls, then one each {} µs; make fewer",
        rate.burst,
        // Truncated, for output only.
        rate.interval.as_ns() / 1_000
    ))
}

fn exhausted(limit: String) -> Error {
    Error::Exhausted { limit }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::Span;

    fn limits() -> SocketLimits {
        SocketLimits {
            connections: 10,
            root_connections: 2,
            unread: 100,
            user_rate: RateLimit {
                interval: Span::from_ns(10),
                burst: 12,
            },
            ..SocketLimits::default()
        }
    }

    /// Number of connections that the user gets.
    fn connect_all(users: &mut Users, user: u32) -> usize {
        let connect = || users.connect(user, Instant::ZERO, &limits()).ok();
        std::iter::from_fn(connect).count()
    }

    #[test]
    fn users_share_connections_and_root_keeps_its_own() {
        let mut users = Users::default();
        assert_eq!(
            [7, 8, 9, 10].map(|user| connect_all(&mut users, user)),
            [4, 2, 1, 1]
        );
        assert_eq!(
            connect_all(&mut users, 11),
            0,
            "all that are not reserved for root are taken"
        );
        assert_eq!(connect_all(&mut users, ROOT), 2);
        users.disconnect(7, 0);
        assert_eq!(
            connect_all(&mut users, 7),
            0,
            "a user may not have more than remain free"
        );
        assert_eq!(connect_all(&mut users, 11), 1);
        users.disconnect(ROOT, 0);
        assert_eq!(
            connect_all(&mut users, 12),
            0,
            "the connections of root stay reserved"
        );
    }

    #[test]
    fn root_may_take_all_connections() {
        let mut users = Users::default();
        assert_eq!(connect_all(&mut users, ROOT), 10);
        assert_eq!(connect_all(&mut users, 7), 0);
    }

    #[test]
    fn rate_counts_calls_and_connections_together() {
        let (mut users, limits) = (Users::default(), limits());
        users.connect(7, Instant::ZERO, &limits).unwrap();
        for call in 1..12 {
            assert_eq!(users.call(7, Instant::ZERO, &limits), Ok(()), "call {call}");
        }
        let text =
            "user 7 exceeds the rate limit: a burst of 12 calls, then one each 0 µs; make fewer";
        assert_eq!(
            users.call(7, Instant::ZERO, &limits),
            Err(exhausted(text.into()))
        );
        assert!(users.connect(7, Instant::from_ns(9), &limits).is_err());
        assert!(
            users.connect(8, Instant::from_ns(9), &limits).is_ok(),
            "the rate of another user is its own"
        );
        assert!(users.connect(7, Instant::from_ns(10), &limits).is_ok());
        assert!(users.call(7, Instant::from_ns(10), &limits).is_err());
    }

    #[test]
    fn reconnecting_does_not_refill_bucket() {
        let (mut users, limits) = (Users::default(), limits());
        let mut entered = 0;
        for round in 0..100 {
            if users
                .connect(7, Instant::from_ns(round % 5), &limits)
                .is_ok()
            {
                users.disconnect(7, 0);
                entered += 1;
            }
        }
        assert_eq!(entered, 12);
        users.connect(8, Instant::from_ns(200), &limits).unwrap();
        assert_eq!(users.users.len(), 1, "an idle user is removed");
    }

    #[test]
    fn unread_replies_are_shared_among_users() {
        let (mut users, limits) = (Users::default(), limits());
        for user in [7, 8] {
            users.connect(user, Instant::ZERO, &limits).unwrap();
        }
        users.unread_changed(7, 0, 50);
        assert_eq!(
            users.call(7, Instant::ZERO, &limits),
            Err(exhausted(
                "user 7 has 50 bytes of unread replies, of 100 for all users; read them".into()
            ))
        );
        assert_eq!(users.call(8, Instant::ZERO, &limits), Ok(()));
        users.unread_changed(7, 50, 20);
        assert_eq!(users.call(7, Instant::ZERO, &limits), Ok(()));
        users.disconnect(7, 20);
        assert_eq!(users.unread, 0);
    }
}
