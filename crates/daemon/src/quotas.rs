//! How much a user or a control group may hold at most.

use std::collections::BTreeMap;

use crate::reservation::{Denial, Owner, Reservation};

/// What one user, or one control group, may have at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// How many tasks.
    pub tasks: usize,
    /// The sum of their costs over their periods, in millionths of a CPU.
    pub share_ppm: u64,
}

/// The quotas of everybody but root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quotas {
    /// Of each user.
    pub user: Quota,
    /// Of each control group.
    pub cgroup: Quota,
}

/// What somebody holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    tasks: usize,
    share_ppm: u64,
}

/// What everybody holds, as far as it is limited.
#[derive(Clone, Debug)]
pub(crate) struct QuotaUsage {
    quotas: Quotas,
    users: BTreeMap<u32, Usage>,
    cgroups: BTreeMap<String, Usage>,
}

impl QuotaUsage {
    /// Nobody holds anything.
    pub(crate) fn new(quotas: Quotas) -> Self {
        Self {
            quotas,
            users: BTreeMap::new(),
            cgroups: BTreeMap::new(),
        }
    }

    /// Other limits from now on. Whoever holds more than they allow keeps it.
    pub(crate) fn set_quotas(&mut self, quotas: Quotas) {
        self.quotas = quotas;
    }

    /// Whether the owner may hold this beside, or instead of `before`, what it has.
    ///
    /// # Errors
    /// The limit that it would exceed.
    pub(crate) fn check(
        &self,
        owner: &Owner,
        before: Option<&Reservation>,
        after: &Reservation,
    ) -> Result<(), Denial> {
        // Root can have anything by other means.
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

    /// The owner holds `after` instead of `before`.
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
        // Looked up by what it is called: most of the time it is there already.
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
            "has {} tasks, and may have no more; see [limits] in the agent's configuration",
            usage.tasks
        ));
    }
    if wanted.share_ppm > quota.share_ppm && wanted.share_ppm > usage.share_ppm {
        return Err(format!(
            "would hold {} of a CPU, and may hold {}; see [limits] in the agent's configuration",
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

/// C/T in millionths, rounded up, so that many small ones count for something.
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
    fn a_user_has_so_many_tasks_and_so_much_of_a_cpu() {
        let mut all = QuotaUsage::new(quotas(2, 500_000));
        let (anna, tenth) = (owner(1, "/a"), reservation(100, 1_000));
        assert_eq!(all.check(&anna, None, &tenth), Ok(()));
        all.exchange(&anna, None, Some(&tenth));
        let much = all.check(&anna, None, &reservation(401, 1_000));
        let said = "user 1 would hold 0.501 of a CPU, and may hold 0.500; see [limits] in the agent's configuration";
        assert_eq!(much.unwrap_err().to_string(), said);
        all.exchange(&anna, None, Some(&tenth));
        let many = all.check(&anna, None, &tenth).unwrap_err().to_string();
        assert!(many.starts_with("user 1 has 2 tasks"), "{many}");
        // Instead of another is no more.
        assert_eq!(
            all.check(&anna, Some(&tenth), &reservation(400, 1_000)),
            Ok(())
        );
        all.exchange(&anna, Some(&tenth), None);
        assert_eq!(all.check(&anna, None, &tenth), Ok(()));
        assert_eq!(all.check(&owner(2, "/b"), None, &tenth), Ok(()));
    }

    #[test]
    fn a_control_group_is_limited_whoever_is_in_it() {
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
    fn nothing_is_left_of_who_gave_everything_back() {
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
    fn whoever_holds_too_much_after_a_change_of_limits_may_have_less() {
        let mut all = QuotaUsage::new(quotas(4, 900_000));
        let (anna, half) = (owner(1, "/a"), reservation(1, 2));
        all.exchange(&anna, None, Some(&half));
        all.set_quotas(quotas(1, 100_000));
        assert_eq!(all.check(&anna, Some(&half), &reservation(2, 5)), Ok(()));
        assert!(all.check(&anna, Some(&half), &reservation(3, 5)).is_err());
    }
}
