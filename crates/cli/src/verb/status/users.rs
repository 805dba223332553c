//! Names of users.

use std::collections::BTreeMap;
use std::fs;

use crate::table::printable;

/// The names of users by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Users(BTreeMap<u32, String>);

impl Users {
    /// Those of this machine: of `/etc/passwd`, as the daemon reads it.
    pub fn of_this_machine() -> Self {
        let passwd = fs::read("/etc/passwd").unwrap_or_default();
        Self::read(&String::from_utf8_lossy(&passwd))
    }

    /// Those of a text like `/etc/passwd`. Of users with one number the first has it.
    pub fn read(passwd: &str) -> Self {
        let mut names = BTreeMap::new();
        for line in passwd.lines() {
            let mut fields = line.split(':');
            let name = fields.next();
            let number = fields.nth(1).and_then(|number| number.parse().ok());
            if let (Some(name), Some(number)) = (name, number) {
                names.entry(number).or_insert_with(|| printable(name));
            }
        }
        Self(names)
    }

    /// The name of the user; the number if there is no name.
    pub fn name(&self, user: u32) -> String {
        let name = self.0.get(&user).cloned();
        name.unwrap_or_else(|| user.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_without_name_is_number() {
        let users = Users::read("root:x:0:0::/:\nbroken\nanna:x:1000:\nberta:x:1000:\n:x:y\n");
        assert_eq!(
            [0, 1_000, 7].map(|it| users.name(it)),
            ["root", "anna", "7"]
        );
    }
}
