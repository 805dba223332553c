//! The rate limit of control groups.

use std::collections::BTreeMap;

use shiftwork_client::Error;
use shiftwork_model::Instant;

use super::rate_limits::{SocketLimits, TokenBucket};
use super::users::{ROOT, rate_exceeded};
use crate::threads::cgroup_of;

/// The group of all processes with a control group that cannot be determined.
const UNKNOWN: &str = "unknown";

/// The current control group of a process; `None`: a process in another PID namespace.
pub(super) fn cgroup_of_peer(process: Option<u32>) -> String {
    let found = process.and_then(cgroup_of);
    found.unwrap_or_else(|| UNKNOWN.to_owned())
}

/// The token buckets of all control groups. Full buckets are not stored.
#[derive(Debug, Default)]
pub(super) struct Groups(BTreeMap<String, TokenBucket>);

impl Groups {
    /// Counts a call or a new connection of the group. Those of root are neither counted nor refused.
    ///
    /// # Errors
    /// If the group exceeds its rate.
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
            let subject = format!("control group {group}");
            return Err(rate_exceeded(&subject, limits.cgroup_rate));
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
    fn rate_of_cgroup_is_shared_by_its_users_except_root() {
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
                .contains("control group /a exceeds the rate limit: a burst of 5 calls"),
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
        assert_eq!(groups.0.len(), 1, "full buckets are removed");
    }

    #[test]
    fn process_has_cgroup() {
        assert!(cgroup_of_peer(Some(std::process::id())).starts_with('/'));
        assert_eq!(cgroup_of_peer(None), UNKNOWN);
        assert_eq!(cgroup_of_peer(Some(4_194_304)), UNKNOWN);
    }
}
