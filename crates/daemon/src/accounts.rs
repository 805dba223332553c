//! Which user quotas charge for a thread in a user namespace.
//!
//! The owner of a namespace may switch to each of its user IDs, so these have no quotas of their own. The kernel names the
//! owner only to processes that may trace the thread, which the daemon may not; `/etc/subuid` says the same of the ranges
//! that `newuidmap` accepts. IDs from the range that systemd assigns to containers while they run, and that no user is
//! named for, are charged to one account together.

/// The account of namespaces with unknown owners: the number by which the kernel shows users that have none.
const UNKNOWN_OWNER: u32 = 65_534;

/// The user IDs that systemd assigns to containers.
///
/// # Source
/// <https://systemd.io/UIDS-GIDS>
const CONTAINER_USERS: std::ops::RangeInclusive<u32> = 0x0008_0000..=0x6FFF_FFFF;

/// Where subordinate user IDs and the users that they belong to are named.
const SUBUID: &str = "/etc/subuid";
const PASSWD: &str = "/etc/passwd";

/// The user that is charged for a thread of this user with this `/proc/PID/uid_map`.
///
/// # Cost
/// For a thread in the initial user namespace none; otherwise two files are read.
pub(crate) fn charged_user(user: u32, uid_map: &str) -> u32 {
    if is_initial(uid_map) {
        return user;
    }
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    owner_of(user, &read(SUBUID), &read(PASSWD))
}

/// The number of the user with this name or number; `None` if no user has the name.
pub(crate) fn user_number(name: &str) -> Option<u32> {
    let named = || number_of(name, &std::fs::read_to_string(PASSWD).unwrap_or_default());
    name.parse().ok().or_else(named)
}

/// Whether this maps all IDs to themselves, as only the initial namespace does by default.
fn is_initial(uid_map: &str) -> bool {
    let mut fields = uid_map.split_whitespace();
    let whole = ["0", "0", "4294967295"];
    whole.into_iter().all(|field| fields.next() == Some(field)) && fields.next().is_none()
}

/// The user to whom this ID of a namespace belongs, by texts like `/etc/subuid` and `/etc/passwd`.
fn owner_of(user: u32, subuid: &str, passwd: &str) -> u32 {
    let range = subuid.lines().find_map(|line| {
        let mut fields = line.split(':');
        let owner = fields.next()?;
        let first: u32 = fields.next()?.trim().parse().ok()?;
        let count: u32 = fields.next()?.trim().parse().ok()?;
        let is_within = user.checked_sub(first).is_some_and(|at| at < count);
        is_within.then_some(owner)
    });
    let Some(owner) = range else {
        return match CONTAINER_USERS.contains(&user) {
            true => UNKNOWN_OWNER,
            // A namespace that was made without privileges maps its owner's own ID.
            false => user,
        };
    };
    let number = owner.parse().ok().or_else(|| number_of(owner, passwd));
    // Root may be given ranges for containers; its account has no quota.
    number
        .filter(|&number| number != 0)
        .unwrap_or(UNKNOWN_OWNER)
}

/// The number of a user in a text like `/etc/passwd`.
fn number_of(name: &str, passwd: &str) -> Option<u32> {
    let mut lines = passwd.lines().map(|line| line.split(':'));
    lines.find_map(|mut fields| {
        let is_it = fields.next() == Some(name);
        // The field after the password.
        is_it.then(|| fields.nth(1)?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGES: &str =
        "anna:100000:65536\n1001:165536:65536\nroot:300000:10\ngone:400000:10\nbroken:x\n";
    const USERS: &str = "root:x:0:0::/root:/bin/sh\nanna:x:1000:1000::/home/anna:/bin/sh\n";

    #[test]
    fn subordinate_user_is_charged_to_owner_of_range() {
        for (user, charged) in [
            (100_000, 1_000),
            (165_535, 1_000),
            (165_536, 1_001),
            (231_072, 231_072),
            (300_009, UNKNOWN_OWNER),
            (400_000, UNKNOWN_OWNER),
            // The namespace maps its owner alone.
            (1_000, 1_000),
            (524_288, UNKNOWN_OWNER),
        ] {
            assert_eq!(owner_of(user, RANGES, USERS), charged, "user {user}");
        }
    }

    #[test]
    fn user_of_initial_namespace_is_charged_itself() {
        let initial = "         0          0 4294967295\n";
        assert!(is_initial(initial));
        assert_eq!(charged_user(600_000, initial), 600_000);
        for map in [
            "",
            "0 100000 65536\n",
            "0 0 4294967295\n1 1 1\n",
            "0 1000 1\n",
        ] {
            assert!(!is_initial(map), "{map:?}");
        }
        assert_eq!(charged_user(600_000, "0 600000 1\n"), UNKNOWN_OWNER);
        let own = std::fs::read_to_string("/proc/self/uid_map").unwrap();
        assert!(own.split_whitespace().count() >= 3, "{own}");
    }
}
