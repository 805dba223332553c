//! Quotas: the maximum of reservations of a user and of a control group.

use std::collections::BTreeMap;

use crate::reservation::{Denial, Owner, Reservation};

/// Quota of one user or one control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Maximum number of tasks.
    pub tasks: usize,
    /// Maximum sum of their utilizations, in millionths of a CPU.
    pub share_ppm: u64,
}

/// The quotas of all users except root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quotas {
    /// Of each user.
    pub user: Quota,
    /// Of each control group.
    pub cgroup: Quota,
}

/// Reservations of one user or control group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    tasks: usize,
    share_ppm: u64,
}

/// Reservations of all users and control groups, counted against their quotas.
#[derive(Clone, Debug)]
pub(crate) struct QuotaUsage {
    quotas: Quotas,
    users: BTreeMap<u32, Usage>,
    cgroups: BTreeMap<String, Usage>,
}

impl QuotaUsage {
    /// No reservations.
    pub(crate) fn new(quotas: Quotas) -> Self {
        Self {
            quotas,
            users: BTreeMap::new(),
            cgroups: BTreeMap::new(),
        }
    }

    /// Replaces the quotas. Reservations beyond them are kept.
    pub(crate) fn set_quotas(&mut self, quotas: Quotas) {
        self.quotas = quotas;
    }

    /// Checks that the quotas of the owner allow `after` in addition, or in place of `before`.
    ///
    /// # Errors
    /// The quota that would be exceeded.
    pub(crate) fn check(
        &self,
        owner: &Owner,
        before: Option<&Reservation>,
        after: &Reservation,
    ) -> Result<(), Denial> {
        // Root can take CPU time by other means.
        if owner.user == 0 {
            return Ok(());
        }
        let user = self.users.get(&owner.user).copied().unwrap_or_default();
        let cgroup = self.cgroups.get(&owner.cgroup).copied().unwrap_or_default();
        fits(user, self.quotas.user, before, after)
            .map_err(|what| Denial::Exhausted(format!("user {} {what}", owner.user)))?;
        fits(cgroup, self.quotas.cgroup, before, after)
            .map_err(|what| Denial::Exhausted(format!("control group {} {what}", owner.cgroup)))
    }

    /// Replaces `before` by `after` among the reservations of the owner.
    pub(crate) fn exchange(
        &mut self,
        owner: &Owner,
        before: Option<&Reservation>,
        after: Option<&Reservation>,
    ) {
        let user = self.users.entry(owner.user).or_default();
        *user = after_exchange(*user, before, after);
        if *user == Usage::default() {
            self.users.remove(&owner.user);
        }
        // No `entry`: it would allocate a key, and mostly the group is there already.
        let mut usage = self.cgroups.get(&owner.cgroup).copied().unwrap_or_default();
        usage = after_exchange(usage, before, after);
        if usage == Usage::default() {
            self.cgroups.remove(&owner.cgroup);
        } else {
            self.cgroups.insert(owner.cgroup.clone(), usage);
        }
    }
}

fn fits(
    usage: Usage,
    quota: Quota,
    before: Option<&Reservation>,
    after: &Reservation,
) -> Result<(), String> {
    let wanted = after_exchange(usage, before, Some(after));
    if wanted.tasks > quota.tasks && wanted.tasks > usage.tasks {
        return Err(format!(
            "has {} tasks, which is the maximum; see [limits] in the daemon's configuration",
            usage.tasks
        ));
    }
    if wanted.share_ppm > quota.share_ppm && wanted.share_ppm > usage.share_ppm {
        return Err(format!(
            "would reserve {} CPUs, and the maximum is {}; see [limits] in the daemon's configuration",
            as_cpus(wanted.share_ppm),
            as_cpus(quota.share_ppm)
        ));
    }
    Ok(())
}

fn after_exchange(
    usage: Usage,
    before: Option<&Reservation>,
    after: Option<&Reservation>,
) -> Usage {
    let add = |usage: Usage, it: &Reservation| Usage {
        tasks: usage.tasks + 1,
        share_ppm: usage.share_ppm.saturating_add(share_ppm(it)),
    };
    let subtract = |usage: Usage, it: &Reservation| Usage {
        tasks: usage.tasks.saturating_sub(1),
        share_ppm: usage.share_ppm.saturating_sub(share_ppm(it)),
    };
    let usage = before.map_or(usage, |it| subtract(usage, it));
    after.map_or(usage, |it| add(usage, it))
}

/// Utilization C/T in millionths, rounded up, so that many tiny reservations do not count as zero.
pub(crate) fn share_ppm(it: &Reservation) -> u64 {
    const MILLION: u128 = 1_000_000;
    let period = u128::from(it.period.as_ns().max(1));
    let share = (u128::from(it.cost.as_ns()) * MILLION).div_ceil(period);
    u64::try_from(share).unwrap_or(u64::MAX)
}

fn as_cpus(ppm: u64) -> String {
    format!("{}.{:03}", ppm / 1_000_000, ppm % 1_000_000 / 1_000)
}

#[cfg(test)]
mod tests {
    use shiftwork_model::{CpuId, CpuSet, OnOverrun, Priority, Span};

    use super::*;

    fn reservation(cost_us: u64, period_us: u64) -> Reservation {
        Reservation {
            cost: Span::from_us(cost_us),
            period: Span::from_us(period_us),
            deadline: Span::from_us(period_us),
            cpus: CpuSet::single(CpuId::from_index(0)),
            priority: Priority::MOST_URGENT,
            on_overrun: OnOverrun::Throttle,
        }
    }

    fn owner(user: u32, cgroup: &str) -> Owner {
        Owner {
            user,
            cgroup: cgroup.to_owned(),
        }
    }

    fn quotas(tasks: usize, share_ppm: u64) -> Quotas {
        let quota = Quota { tasks, share_ppm };
        Quotas {
            user: quota,
            cgroup: Quota {
                tasks: 2 * tasks,
                share_ppm: 2 * share_ppm,
            },
        }
    }

    #[test]
    fn reservation_beyond_quota_of_user_is_refused() {
        let mut all = QuotaUsage::new(quotas(2, 500_000));
        let (anna, tenth) = (owner(1, "/a"), reservation(100, 1_000));
        assert_eq!(all.check(&anna, None, &tenth), Ok(()));
        all.exchange(&anna, None, Some(&tenth));
        let much = all.check(&anna, None, &reservation(401, 1_000));
        let text = "user 1 would reserve 0.501 CPUs, and the maximum is 0.500; see [limits] in the daemon's configuration";
        assert_eq!(much.unwrap_err().to_string(), text);
        all.exchange(&anna, None, Some(&tenth));
        let many = all.check(&anna, None, &tenth).unwrap_err().to_string();
        assert!(many.starts_with("user 1 has 2 tasks"), "{many}");
        // In place of another it does not count in addition.
        assert_eq!(
            all.check(&anna, Some(&tenth), &reservation(400, 1_000)),
            Ok(())
        );
        all.exchange(&anna, Some(&tenth), None);
        assert_eq!(all.check(&anna, None, &tenth), Ok(()));
        assert_eq!(all.check(&owner(2, "/b"), None, &tenth), Ok(()));
    }

    #[test]
    fn quota_of_cgroup_applies_to_all_users_except_root() {
        let mut all = QuotaUsage::new(quotas(1, 500_000));
        let tenth = reservation(100, 1_000);
        for user in 1..3 {
            assert_eq!(all.check(&owner(user, "/x"), None, &tenth), Ok(()));
            all.exchange(&owner(user, "/x"), None, Some(&tenth));
        }
        let refused = all.check(&owner(3, "/x"), None, &tenth).unwrap_err();
        assert!(refused.to_string().starts_with("control group /x has 2"));
        assert_eq!(all.check(&owner(0, "/x"), None, &tenth), Ok(()));
    }

    #[test]
    fn usage_without_reservations_is_removed() {
        let mut all = QuotaUsage::new(quotas(9, 900_000));
        let some = reservation(1, 3);
        for user in 0..5 {
            all.exchange(&owner(user, "/x"), None, Some(&some));
        }
        for user in 0..5 {
            all.exchange(&owner(user, "/x"), Some(&some), None);
        }
        assert!(all.users.is_empty() && all.cgroups.is_empty());
    }

    #[test]
    fn reservation_beyond_lowered_quota_may_only_shrink() {
        let mut all = QuotaUsage::new(quotas(4, 900_000));
        let (anna, half) = (owner(1, "/a"), reservation(1, 2));
        all.exchange(&anna, None, Some(&half));
        all.set_quotas(quotas(1, 100_000));
        assert_eq!(all.check(&anna, Some(&half), &reservation(2, 5)), Ok(()));
        assert!(all.check(&anna, Some(&half), &reservation(3, 5)).is_err());
    }
}
