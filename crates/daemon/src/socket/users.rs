//! What each user has of the agent now.

use std::collections::BTreeMap;

use shiftwork_client::Error;
use shiftwork_model::Instant;

use super::rate_limits::{RateLimit, SocketLimits, TokenBucket, has_room};

/// Root, who is never locked out by others.
pub(super) const ROOT: u32 = 0;

/// What one user has.
#[derive(Debug)]
struct UserState {
    connections: usize,
    unread: usize,
    bucket: TokenBucket,
}

/// What all users have. Users who have nothing, and whose tokens are all there, are forgotten.
///
/// Invariant: `connections` and `unread` are sums over the accounts; `connections_of_others` without
/// root's.
#[derive(Debug, Default)]
pub(super) struct Users {
    users: BTreeMap<u32, UserState>,
    connections: usize,
    connections_of_others: usize,
    unread: usize,
}

impl Users {
    /// The user gets one more connection.
    ///
    /// # Errors
    /// If the user has too many, or was too fast.
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
                "user {user} has {own} connections of {all}, and as many are to be left for others; \
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

    /// A connection of the user, with so many bytes unread, is no more.
    pub(super) fn disconnect(&mut self, user: u32, unread: usize) {
        self.unread_changed(user, unread, 0);
        self.state_of(user).connections -= 1;
        self.connections -= 1;
        self.connections_of_others -= usize::from(user != ROOT);
    }

    /// The user makes a call.
    ///
    /// # Errors
    /// If the user was too fast, or does not read the answers to other calls.
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
                "answers to user {user} of {own} bytes are unread, of {} for all; read them",
                limits.unread
            )));
        }
        Ok(())
    }

    /// The bytes that wait to be read at one connection of the user have become more, or fewer.
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

    /// Keeps those only who have something; others come back as if they were new. As many can be without
    /// anything as come and go within the time that a bucket takes to fill.
    fn remove_idle(&mut self, now: Instant) {
        self.users
            .retain(|_, state| state.connections > 0 || !state.bucket.is_full(now));
    }
}

/// Why somebody has to wait: a user, or a control group.
pub(super) fn rate_exceeded(who: &str, rate: RateLimit) -> Error {
    exhausted(format!(
        "{who} makes more than {} calls at once, then one each {} µs; make fewer",
        rate.burst,
        // Truncated for people only.
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

    /// How many connections the user gets.
    fn connect_all(users: &mut Users, user: u32) -> usize {
        let connect = || users.connect(user, Instant::ZERO, &limits()).ok();
        std::iter::from_fn(connect).count()
    }

    #[test]
    fn no_user_locks_out_another_one() {
        let mut users = Users::default();
        assert_eq!(
            [7, 8, 9, 10].map(|user| connect_all(&mut users, user)),
            [4, 2, 1, 1]
        );
        assert_eq!(
            connect_all(&mut users, 11),
            0,
            "all that are not root's are taken"
        );
        assert_eq!(connect_all(&mut users, ROOT), 2);
        users.disconnect(7, 0);
        assert_eq!(
            connect_all(&mut users, 7),
            0,
            "of many users, none keeps more than is left"
        );
        assert_eq!(connect_all(&mut users, 11), 1);
        users.disconnect(ROOT, 0);
        assert_eq!(
            connect_all(&mut users, 12),
            0,
            "what is root's stays root's"
        );
    }

    #[test]
    fn root_may_have_all() {
        let mut users = Users::default();
        assert_eq!(connect_all(&mut users, ROOT), 10);
        assert_eq!(connect_all(&mut users, 7), 0);
    }

    #[test]
    fn calls_and_connections_are_paced_together() {
        let (mut users, limits) = (Users::default(), limits());
        users.connect(7, Instant::ZERO, &limits).unwrap();
        for call in 1..12 {
            assert_eq!(users.call(7, Instant::ZERO, &limits), Ok(()), "call {call}");
        }
        let text = "user 7 makes more than 12 calls at once, then one each 0 µs; make fewer";
        assert_eq!(
            users.call(7, Instant::ZERO, &limits),
            Err(exhausted(text.into()))
        );
        assert!(users.connect(7, Instant::from_ns(9), &limits).is_err());
        assert!(
            users.connect(8, Instant::from_ns(9), &limits).is_ok(),
            "others are not meant"
        );
        assert!(users.connect(7, Instant::from_ns(10), &limits).is_ok());
        assert!(users.call(7, Instant::from_ns(10), &limits).is_err());
    }

    #[test]
    fn going_and_coming_back_brings_no_tokens() {
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
        assert_eq!(users.users.len(), 1, "whoever has nothing is forgotten");
    }

    #[test]
    fn unread_answers_are_shared_as_connections_are() {
        let (mut users, limits) = (Users::default(), limits());
        for user in [7, 8] {
            users.connect(user, Instant::ZERO, &limits).unwrap();
        }
        users.unread_changed(7, 0, 50);
        assert_eq!(
            users.call(7, Instant::ZERO, &limits),
            Err(exhausted(
                "answers to user 7 of 50 bytes are unread, of 100 for all; read them".into()
            ))
        );
        assert_eq!(users.call(8, Instant::ZERO, &limits), Ok(()));
        users.unread_changed(7, 50, 20);
        assert_eq!(users.call(7, Instant::ZERO, &limits), Ok(()));
        users.disconnect(7, 20);
        assert_eq!(users.unread, 0);
    }
}
