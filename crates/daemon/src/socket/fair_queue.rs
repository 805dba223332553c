//! The round-robin queue of connections.

use std::collections::{BTreeMap, VecDeque};

/// Connections that wait to be served, round-robin over users and over the connections of each user: the latency of a user
/// does not depend on the number of another user's connections.
///
/// Invariant: `users` has exactly the keys of `waiting`, each once; no queue of `waiting` is empty.
#[derive(Debug, Default)]
pub(super) struct FairQueue {
    users: VecDeque<u32>,
    waiting: BTreeMap<u32, VecDeque<u64>>,
}

impl FairQueue {
    /// Appends the connection, which must not be in the queue already.
    pub(super) fn push(&mut self, user: u32, connection: u64) {
        let queue = self.waiting.entry(user).or_default();
        if queue.is_empty() {
            self.users.push_back(user);
        }
        queue.push_back(connection);
    }

    /// Removes the next connection; `None` if the queue is empty.
    pub(super) fn pop(&mut self) -> Option<u64> {
        let user = self.users.pop_front()?;
        let queue = self.waiting.get_mut(&user)?;
        let connection = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(&user);
        } else {
            self.users.push_back(user);
        }
        connection
    }

    /// Whether the queue is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.users.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::RandomStream;

    #[test]
    fn users_and_their_connections_are_served_round_robin() {
        let mut queue = FairQueue::default();
        for (user, connection) in [(7, 1), (7, 2), (7, 3), (8, 4), (9, 5), (8, 6)] {
            queue.push(user, connection);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [1, 4, 5, 2, 6, 3]);
        assert!(queue.is_empty());
    }

    #[test]
    fn first_connection_of_user_waits_for_at_most_one_of_each_other_user() {
        for seed in 1..=100 {
            let mut stream = RandomStream::new(seed, 2, 0);
            let mut queue = FairQueue::default();
            let mut waiting = Vec::new();
            for step in 0..300_u64 {
                if stream.below(2) == 0 {
                    let user = stream.below(4) as u32;
                    queue.push(user, step);
                    waiting.push((user, step, 0));
                    continue;
                }
                let Some(served) = queue.pop() else {
                    assert!(waiting.is_empty(), "seed {seed}, step {step}");
                    continue;
                };
                let place = waiting.iter().position(|&(_, id, _)| id == served).unwrap();
                let (user, ..) = waiting.remove(place);
                let own_before = |id| waiting.iter().any(|&(u, other, _)| u == user && other < id);
                assert!(
                    !own_before(served),
                    "seed {seed}, step {step}: FIFO order within a user"
                );
                // There are three other users: the first connection of a user waits for at most one of each.
                for user in 0..4 {
                    if let Some(first) = waiting.iter_mut().find(|entry| entry.0 == user) {
                        first.2 += 1;
                        assert!(first.2 <= 3, "seed {seed}, step {step}, user {user}");
                    }
                }
                if let Some(next) = waiting.iter_mut().find(|entry| entry.0 == user) {
                    next.2 = 0;
                }
            }
        }
    }
}
