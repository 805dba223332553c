//! What users are charged with, counted again from what there is.

use std::collections::BTreeSet;

use super::*;
use crate::quotas::charged_groups;

fn add(to: &mut Amount, amount: Amount) {
    to.tasks += amount.tasks;
    to.share_ppm += amount.share_ppm;
}

impl ReservationTable {
    /// Checks that each user and each control group is charged with exactly its reservations and with what still counts of
    /// others, within its limits, and that each number that no task may get belongs to one of these.
    pub(crate) fn check_charges(&self) -> Result<(), String> {
        let mut users: BTreeMap<u32, [Amount; 2]> = BTreeMap::new();
        let mut groups: BTreeMap<String, [Amount; 2]> = BTreeMap::new();
        let held = self
            .tasks
            .values()
            .map(|it| (&it.owner, 0, Amount::of(&it.reservation)));
        let released = self.released.iter().map(|it| (&it.owner, 1, it.amount));
        for (owner, place, amount) in held.chain(released) {
            add(&mut users.entry(owner.account).or_default()[place], amount);
            for group in charged_groups(&owner.cgroup) {
                add(
                    &mut groups.entry(group.to_owned()).or_default()[place],
                    amount,
                );
            }
        }
        let quotas = self.rules.quotas;
        for (&user, &[held, released]) in &users {
            let usage = self.usage.of_user(user);
            if (usage.held, usage.released) != (held, released) {
                return Err(format!(
                    "user {user}: {usage:?}, but {held:?} and {released:?}"
                ));
            }
            if user != 0 {
                within(held, released, quotas.user).map_err(|why| format!("user {user}: {why}"))?;
            }
        }
        for (group, &[held, released]) in &groups {
            let usage = self.usage.of_cgroup(group);
            if (usage.held, usage.released) != (held, released) {
                return Err(format!("{group}: {usage:?}, but {held:?} and {released:?}"));
            }
            within(held, released, quotas.cgroup).map_err(|why| format!("{group}: {why}"))?;
        }
        let charged = self.usage.count();
        if charged != (users.len(), groups.len()) {
            return Err(format!(
                "{charged:?} are charged, not {users:?} and {groups:?}"
            ));
        }
        let resting = self.released.iter().filter(|it| it.amount.tasks > 0);
        let resting: BTreeSet<TaskId> = resting.map(|it| it.task).collect();
        match resting == self.unavailable_numbers {
            true => Ok(()),
            false => Err(format!(
                "{:?} rest, charged are {resting:?}",
                self.unavailable_numbers
            )),
        }
    }

    /// What still counts of ended and changed reservations that this user is charged with.
    pub(crate) fn released_by(&self, user: u32) -> Amount {
        self.usage.of_user(user).released
    }

    /// Whether nothing is reserved, and nothing counts any more.
    pub(crate) fn is_empty(&self) -> bool {
        let numbers = self.unavailable_numbers.len() + self.released.len();
        self.tasks.len() + numbers + self.admission.lingering() == 0 && self.usage.count() == (0, 0)
    }
}

fn within(held: Amount, released: Amount, quota: Quota) -> Result<(), String> {
    let is_within = held.tasks <= quota.held.tasks
        && held.share_ppm <= quota.held.share_ppm
        && held.tasks + released.tasks <= quota.held.tasks + quota.released.tasks
        && held.share_ppm + released.share_ppm <= quota.held.share_ppm + quota.released.share_ppm;
    match is_within {
        true => Ok(()),
        false => Err(format!("{held:?} and {released:?} exceed {quota:?}")),
    }
}
