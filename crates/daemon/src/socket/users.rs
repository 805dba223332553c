//! What each user has of the agent now.

use std::collections::BTreeMap;

use shiftwork_client::Error;
use shiftwork_model::Instant;

use super::limits::{Bucket, Limits, Pace, has_room};

/// Root, who is never locked out by others.
pub(super) const ROOT: u32 = 0;

/// What one user has.
#[derive(Debug)]
struct Account {
    connections: usize,
    unread: usize,
    bucket: Bucket,
}

/// What all users have. Users who have nothing, and whose tokens are all there, are forgotten.
///
/// Invariant: `connections` and `unread` are sums over the accounts; `connections_of_others` without
/// root's.
#[derive(Debug, Default)]
pub(super) struct Users {
    accounts: BTreeMap<u32, Account>,
    connections: usize,
    connections_of_others: usize,
    unread: usize,
}

impl Users {
    /// The user gets one more connection.
    ///
    /// # Errors
    /// If the user has too many, or was too fast.
    pub(super) fn enter(&mut self, user: u32, now: Instant, limits: &Limits) -> Result<(), Error> {
        self.forget(now);
        let for_others = limits.connections - limits.connections_of_root;
        let (taken, connections) = (self.connections, self.connections_of_others);
        let account = self.account(user);
        let own = account.connections;
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
        if !account.bucket.take(now, limits.pace) {
            return Err(too_fast(&format!("user {user}"), limits.pace));
        }
        account.connections += 1;
        self.connections += 1;
        self.connections_of_others += usize::from(user != ROOT);
        Ok(())
    }

    /// A connection of the user, with so many bytes unread, is no more.
    pub(super) fn leave(&mut self, user: u32, unread: usize) {
        self.unread_changed(user, unread, 0);
        self.account(user).connections -= 1;
        self.connections -= 1;
        self.connections_of_others -= usize::from(user != ROOT);
    }

    /// The user makes a call.
    ///
    /// # Errors
    /// If the user was too fast, or does not read the answers to other calls.
    pub(super) fn call(&mut self, user: u32, now: Instant, limits: &Limits) -> Result<(), Error> {
        let unread = self.unread;
        let account = self.account(user);
        if !account.bucket.take(now, limits.pace) {
            return Err(too_fast(&format!("user {user}"), limits.pace));
        }
        let own = account.unread;
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
        let account = self.account(user);
        account.unread = account.unread + after - before;
        self.unread = self.unread + after - before;
    }

    fn account(&mut self, user: u32) -> &mut Account {
        self.accounts.entry(user).or_insert(Account {
            connections: 0,
            unread: 0,
            bucket: Bucket::FULL,
        })
    }

    /// Keeps those only who have something; others come back as if they were new. As many can be without
    /// anything as come and go within the time that a bucket takes to fill.
    fn forget(&mut self, now: Instant) {
        self.accounts
            .retain(|_, account| account.connections > 0 || !account.bucket.is_full(now));
    }
}

/// Why somebody has to wait: a user, or a control group.
pub(super) fn too_fast(who: &str, pace: Pace) -> Error {
    exhausted(format!(
        "{who} makes more than {} calls at once, then one each {} µs; make fewer",
        pace.burst,
        // Truncated for people only.
        pace.interval.as_ns() / 1_000
    ))
}

fn exhausted(limit: String) -> Error {
    Error::Exhausted { limit }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::Span;

    fn limits() -> Limits {
        Limits {
            connections: 10,
            connections_of_root: 2,
            unread: 100,
            pace: Pace {
                interval: Span::from_ns(10),
                burst: 12,
            },
            ..Limits::default()
        }
    }

    /// How many connections the user gets.
    fn enter_all(users: &mut Users, user: u32) -> usize {
        let enter = || users.enter(user, Instant::ZERO, &limits()).ok();
        std::iter::from_fn(enter).count()
    }

    #[test]
    fn no_user_locks_out_another_one() {
        let mut users = Users::default();
        assert_eq!(
            [7, 8, 9, 10].map(|user| enter_all(&mut users, user)),
            [4, 2, 1, 1]
        );
        assert_eq!(
            enter_all(&mut users, 11),
            0,
            "all that are not root's are taken"
        );
        assert_eq!(enter_all(&mut users, ROOT), 2);
        users.leave(7, 0);
        assert_eq!(
            enter_all(&mut users, 7),
            0,
            "of many users, none keeps more than is left"
        );
        assert_eq!(enter_all(&mut users, 11), 1);
        users.leave(ROOT, 0);
        assert_eq!(enter_all(&mut users, 12), 0, "what is root's stays root's");
    }

    #[test]
    fn root_may_have_all() {
        let mut users = Users::default();
        assert_eq!(enter_all(&mut users, ROOT), 10);
        assert_eq!(enter_all(&mut users, 7), 0);
    }

    #[test]
    fn calls_and_connections_are_paced_together() {
        let (mut users, limits) = (Users::default(), limits());
        users.enter(7, Instant::ZERO, &limits).unwrap();
        for call in 1..12 {
            assert_eq!(users.call(7, Instant::ZERO, &limits), Ok(()), "call {call}");
        }
        let text = "user 7 makes more than 12 calls at once, then one each 0 µs; make fewer";
        assert_eq!(
            users.call(7, Instant::ZERO, &limits),
            Err(exhausted(text.into()))
        );
        assert!(users.enter(7, Instant::from_ns(9), &limits).is_err());
        assert!(
            users.enter(8, Instant::from_ns(9), &limits).is_ok(),
            "others are not meant"
        );
        assert!(users.enter(7, Instant::from_ns(10), &limits).is_ok());
        assert!(users.call(7, Instant::from_ns(10), &limits).is_err());
    }

    #[test]
    fn going_and_coming_back_brings_no_tokens() {
        let (mut users, limits) = (Users::default(), limits());
        let mut entered = 0;
        for round in 0..100 {
            if users.enter(7, Instant::from_ns(round % 5), &limits).is_ok() {
                users.leave(7, 0);
                entered += 1;
            }
        }
        assert_eq!(entered, 12);
        users.enter(8, Instant::from_ns(200), &limits).unwrap();
        assert_eq!(users.accounts.len(), 1, "whoever has nothing is forgotten");
    }

    #[test]
    fn unread_answers_are_shared_as_connections_are() {
        let (mut users, limits) = (Users::default(), limits());
        for user in [7, 8] {
            users.enter(user, Instant::ZERO, &limits).unwrap();
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
        users.leave(7, 20);
        assert_eq!(users.unread, 0);
    }
}
