//! Quotas: the maximum of reservations of a user and of a control group.
//!
//! A reservation is charged to the user that [`Owner::account`] names, to the thread's control group, and to each ancestor of
//! that: otherwise a user with a delegated control group would get a quota for each group that it creates. Neither the root
//! group nor an ancestor that is a slice has a quota, since both only partition the machine: systemd delegates services and
//! scopes, never slices.
//!
//! What a reservation may still use after it has ended or changed, its *released* part, stays charged until then. It has a
//! limit of its own, so that ending and requesting reservations in turns does not take more than both limits together.

use std::collections::BTreeMap;

use crate::reservation::{Denial, Owner, Reservation};

/// A number of tasks and the sum of their utilizations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Number of tasks.
    pub tasks: usize,
    /// Sum of utilizations, in millionths of a CPU.
    pub share_ppm: u64,
}

/// Quota of one user or one control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Maximum of the reservations.
    pub held: Amount,
    /// Maximum, beside [`held`](Self::held), of ended and changed reservations that still count.
    pub released: Amount,
}

/// The quotas of all users except root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quotas {
    /// Of each user.
    pub user: Quota,
    /// Of each control group.
    pub cgroup: Quota,
}

/// What is charged to one user or control group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) held: Amount,
    pub(crate) released: Amount,
}

/// Charges of all users and control groups, counted against their quotas.
#[derive(Clone, Debug)]
pub(crate) struct QuotaUsage {
    quotas: Quotas,
    users: BTreeMap<u32, Usage>,
    cgroups: BTreeMap<String, Usage>,
}

impl Amount {
    /// One task with this reservation.
    pub(crate) fn of(it: &Reservation) -> Self {
        Self {
            tasks: 1,
            share_ppm: share_ppm(it),
        }
    }

    /// What still counts of `before` when it is replaced by `after`: on the same CPUs only what `after` has less.
    pub(crate) fn released_by_change(before: &Reservation, after: &Reservation) -> Self {
        let kept = match before.cpus == after.cpus {
            true => share_ppm(after),
            false => 0,
        };
        Self {
            tasks: 0,
            share_ppm: share_ppm(before).saturating_sub(kept),
        }
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            tasks: self.tasks + other.tasks,
            share_ppm: self.share_ppm.saturating_add(other.share_ppm),
        }
    }

    const fn minus(self, other: Self) -> Self {
        Self {
            tasks: self.tasks.saturating_sub(other.tasks),
            share_ppm: self.share_ppm.saturating_sub(other.share_ppm),
        }
    }
}

impl Usage {
    const fn total(self) -> Amount {
        self.held.plus(self.released)
    }
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

    /// Checks that the quotas of the owner allow `after` in addition, or in place of `before`, of which a part still counts.
    ///
    /// # Errors
    /// The quota that would be exceeded.
    pub(crate) fn check(
        &self,
        owner: &Owner,
        before: Option<&Reservation>,
        after: &Reservation,
    ) -> Result<(), Denial> {
        let released = before.map(|it| Amount::released_by_change(it, after));
        self.check_each(owner, |usage| Usage {
            held: usage
                .held
                .minus(before.map(Amount::of).unwrap_or_default())
                .plus(Amount::of(after)),
            released: usage.released.plus(released.unwrap_or_default()),
        })
    }

    /// Checks that the quotas of the owner allow this to be [released](Self::release) beside the present reservations.
    ///
    /// # Errors
    /// The quota that would be exceeded.
    pub(crate) fn check_release(&self, owner: &Owner, amount: Amount) -> Result<(), Denial> {
        self.check_each(owner, |usage| Usage {
            released: usage.released.plus(amount),
            ..usage
        })
    }

    fn check_each(&self, owner: &Owner, change: impl Fn(Usage) -> Usage) -> Result<(), Denial> {
        // Root can take CPU time by other means.
        if owner.account == 0 {
            return Ok(());
        }
        let user = self.of_user(owner.account);
        fits(user, change(user), self.quotas.user)
            .map_err(|what| Denial::Exhausted(format!("user {} {what}", owner.account)))?;
        for group in charged_groups(&owner.cgroup) {
            let usage = self.of_cgroup(group);
            fits(usage, change(usage), self.quotas.cgroup)
                .map_err(|what| Denial::Exhausted(format!("control group {group} {what}")))?;
        }
        Ok(())
    }

    /// Replaces `before` by `after` among the reservations of the owner.
    pub(crate) fn exchange(
        &mut self,
        owner: &Owner,
        before: Option<&Reservation>,
        after: Option<&Reservation>,
    ) {
        let [before, after] = [before, after].map(|it| it.map(Amount::of).unwrap_or_default());
        self.change_each(owner, |usage| {
            usage.held = usage.held.minus(before).plus(after);
        });
    }

    /// Charges the owner with an amount that still counts although its reservation has ended or changed.
    pub(crate) fn release(&mut self, owner: &Owner, amount: Amount) {
        self.change_each(owner, |usage| usage.released = usage.released.plus(amount));
    }

    /// Ends a charge of [`release`](Self::release).
    pub(crate) fn settle(&mut self, owner: &Owner, amount: Amount) {
        self.change_each(owner, |usage| usage.released = usage.released.minus(amount));
    }

    fn change_each(&mut self, owner: &Owner, change: impl Fn(&mut Usage)) {
        let mut user = self.of_user(owner.account);
        change(&mut user);
        if user == Usage::default() {
            self.users.remove(&owner.account);
        } else {
            self.users.insert(owner.account, user);
        }
        for group in charged_groups(&owner.cgroup) {
            let mut usage = self.of_cgroup(group);
            change(&mut usage);
            if usage == Usage::default() {
                self.cgroups.remove(group);
                continue;
            }
            // No `entry`: it would allocate a key, and mostly the group is there already.
            match self.cgroups.get_mut(group) {
                Some(kept) => *kept = usage,
                None => drop(self.cgroups.insert(group.to_owned(), usage)),
            }
        }
    }

    /// Number of users and of control groups that are charged with something.
    #[cfg(test)]
    pub(crate) fn count(&self) -> (usize, usize) {
        (self.users.len(), self.cgroups.len())
    }

    /// What is charged to the user.
    pub(crate) fn of_user(&self, user: u32) -> Usage {
        self.users.get(&user).copied().unwrap_or_default()
    }

    /// What is charged to the control group.
    pub(crate) fn of_cgroup(&self, group: &str) -> Usage {
        self.cgroups.get(group).copied().unwrap_or_default()
    }
}

/// The control groups with a quota that the group `path` is charged to: itself, and those of its ancestors that are neither
/// the root group nor slices.
pub(crate) fn charged_groups(path: &str) -> impl Iterator<Item = &str> {
    let above = path.char_indices().filter(|&(at, it)| it == '/' && at > 0);
    let above = above.map(|(at, _)| &path[..at]);
    above
        .filter(|group| !group.ends_with(".slice"))
        .chain([path])
}

fn fits(usage: Usage, wanted: Usage, quota: Quota) -> Result<(), String> {
    let (before, after) = (usage.held, wanted.held);
    if after.tasks > quota.held.tasks && after.tasks > before.tasks {
        return Err(format!(
            "has {} tasks, which is the maximum; see [limits] in the daemon's configuration",
            before.tasks
        ));
    }
    if after.share_ppm > quota.held.share_ppm && after.share_ppm > before.share_ppm {
        return Err(format!(
            "would reserve {} CPUs, and the maximum is {}; see [limits] in the daemon's configuration",
            as_cpus(after.share_ppm),
            as_cpus(quota.held.share_ppm)
        ));
    }
    let (before, after) = (usage.total(), wanted.total());
    let most = quota.held.plus(quota.released);
    if after.tasks > most.tasks && after.tasks > before.tasks {
        return Err(format!(
            "has {} tasks, and {} that ended within their last two periods and still count, of at most {} together; \
             wait for a period, or see [limits] in the daemon's configuration",
            usage.held.tasks, usage.released.tasks, most.tasks
        ));
    }
    if after.share_ppm > most.share_ppm && after.share_ppm > before.share_ppm {
        return Err(format!(
            "would reserve {} CPUs beside {} that ended or changed within two periods and still count, of at most {} \
             together; wait for a period, or see [limits] in the daemon's configuration",
            as_cpus(wanted.held.share_ppm),
            as_cpus(wanted.released.share_ppm),
            as_cpus(most.share_ppm)
        ));
    }
    Ok(())
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
            group: Some(user),
            account: user,
            cgroup: cgroup.to_owned(),
        }
    }

    fn quotas(tasks: usize, share_ppm: u64) -> Quotas {
        let quota = |factor: usize| {
            let amount = Amount {
                tasks: factor * tasks,
                share_ppm: factor as u64 * share_ppm,
            };
            Quota {
                held: amount,
                released: amount,
            }
        };
        Quotas {
            user: quota(1),
            cgroup: quota(2),
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

    #[test]
    fn quota_of_cgroup_applies_to_its_descendants_together() {
        let mut all = QuotaUsage::new(quotas(1, 500_000));
        let tenth = reservation(100, 1_000);
        let service = "/user.slice/user-1.slice/user@1.service";
        for child in 1..3 {
            let owner = owner(child, &format!("{service}/app.slice/{child}.scope"));
            assert_eq!(all.check(&owner, None, &tenth), Ok(()));
            all.exchange(&owner, None, Some(&tenth));
        }
        let third = owner(3, &format!("{service}/own.slice/3.scope"));
        let refused = all.check(&third, None, &tenth).unwrap_err().to_string();
        assert!(
            refused.starts_with(&format!("control group {service} has 2 tasks")),
            "{refused}"
        );
        // Slices partition the machine and have no quota.
        let other = owner(3, "/user.slice/user-1.slice/session-4.scope");
        assert_eq!(all.check(&other, None, &tenth), Ok(()));
        assert_eq!(
            charged_groups("/a/b.slice/c").collect::<Vec<_>>(),
            ["/a", "/a/b.slice/c"]
        );
        assert_eq!(charged_groups("/").collect::<Vec<_>>(), ["/"]);
    }

    #[test]
    fn released_amounts_have_a_limit_of_their_own() {
        let mut all = QuotaUsage::new(quotas(2, 500_000));
        let (anna, half) = (owner(1, "/a"), reservation(500, 1_000));
        all.exchange(&anna, None, Some(&half));
        all.exchange(&anna, Some(&half), None);
        all.release(&anna, Amount::of(&half));
        assert_eq!(all.check(&anna, None, &half), Ok(()));
        all.exchange(&anna, None, Some(&half));
        // Moved to another CPU it would count on both, beside what was released before.
        let moved = Reservation {
            cpus: CpuSet::single(CpuId::from_index(1)),
            ..half.clone()
        };
        let refused = all.check(&anna, Some(&half), &moved).unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("beside 1.000 that ended or changed"),
            "{refused}"
        );
        all.exchange(&anna, Some(&half), None);
        all.release(&anna, Amount::of(&half));
        let refused = all.check(&anna, None, &half).unwrap_err();
        assert!(
            refused.to_string().contains("wait for a period"),
            "{refused}"
        );
        for _ in 0..2 {
            all.settle(&anna, Amount::of(&half));
        }
        assert!(all.users.is_empty() && all.cgroups.is_empty());
    }
}
