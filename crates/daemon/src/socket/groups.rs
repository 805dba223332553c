//! How often each control group asks.

use std::collections::BTreeMap;

use shiftwork_client::Error;
use shiftwork_model::Instant;

use super::rate_limits::{SocketLimits, TokenBucket};
use super::users::{ROOT, rate_exceeded};
use crate::threads::cgroup_of;

/// All whose group cannot be found are in this one.
const UNKNOWN: &str = "unknown";

/// The control group of a process that connects, as it is now; `None`: nobody here can tell the process.
pub(super) fn cgroup_of_peer(process: Option<u32>) -> String {
    let found = process.and_then(cgroup_of);
    found.unwrap_or_else(|| UNKNOWN.to_owned())
}

/// The tokens of all control groups. Nothing is kept of those that have them all.
#[derive(Debug, Default)]
pub(super) struct Groups(BTreeMap<String, TokenBucket>);

impl Groups {
    /// Somebody of the group connects or calls. Root is not counted, and never locked out.
    ///
    /// # Errors
    /// If the group was too fast.
    pub(super) fn call(
        &mut self,
        group: &str,
        user: u32,
        now: Instant,
        limits: &SocketLimits,
    ) -> Result<(), Error> {
        if user == ROOT {
            return Ok(());
        }
        let mut bucket = self.0.get(group).copied().unwrap_or(TokenBucket::FULL);
        if !bucket.take(now, limits.cgroup_rate) {
            let who = format!("control group {group}");
            return Err(rate_exceeded(&who, limits.cgroup_rate));
        }
        match self.0.get_mut(group) {
            Some(kept) => *kept = bucket,
            None => {
                self.0.retain(|_, bucket| !bucket.is_full(now));
                self.0.insert(group.to_owned(), bucket);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use shiftwork_model::Span;

    use super::*;
    use crate::socket::rate_limits::RateLimit;

    #[test]
    fn whoever_is_in_a_group_shares_its_pace_and_root_does_not() {
        let limits = SocketLimits {
            cgroup_rate: RateLimit {
                interval: Span::from_ns(10),
                burst: 5,
            },
            ..SocketLimits::default()
        };
        let mut groups = Groups::default();
        let at = Instant::from_ns(1_000);
        for user in 1..=5 {
            assert_eq!(groups.call("/a", user, at, &limits), Ok(()), "user {user}");
        }
        let refused = groups.call("/a", 6, at, &limits).unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("control group /a makes more than 5 calls at once"),
            "{refused}"
        );
        assert_eq!(groups.call("/a", ROOT, at, &limits), Ok(()));
        assert_eq!(groups.call("/b", 6, at, &limits), Ok(()));
        let later = at + Span::from_ns(10);
        assert_eq!(groups.call("/a", 6, later, &limits), Ok(()));
        assert!(groups.call("/a", 6, later, &limits).is_err());
        assert_eq!(groups.0.len(), 2);
        let much_later = at + Span::from_us(1);
        assert_eq!(groups.call("/c", 6, much_later, &limits), Ok(()));
        assert_eq!(groups.0.len(), 1, "who has all tokens is forgotten");
    }

    #[test]
    fn a_process_has_a_group() {
        assert!(cgroup_of_peer(Some(std::process::id())).starts_with('/'));
        assert_eq!(cgroup_of_peer(None), UNKNOWN);
        assert_eq!(cgroup_of_peer(Some(4_194_304)), UNKNOWN);
    }
}
