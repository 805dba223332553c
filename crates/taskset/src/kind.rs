//! What kind of TOML file a text is.

use core::fmt;

/// A kind of TOML file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Platform, scheduler, tasks and timed changes.
    TaskSet,
    /// A policy, tasks, and events with what should run after each.
    Scenario,
    /// Families of task sets, and policies to ask about each.
    Study,
    /// What scheduling costs.
    Overheads,
    /// The configuration of the daemon.
    Daemon,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::TaskSet,
        Self::Scenario,
        Self::Study,
        Self::Overheads,
        Self::Daemon,
    ];

    /// The name, as `shiftwork schema` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TaskSet => "task-set",
            Self::Scenario => "scenario",
            Self::Study => "study",
            Self::Overheads => "overheads",
            Self::Daemon => "daemon",
        }
    }

    /// What to do with such a file.
    pub(crate) const fn usage(self) -> &'static str {
        match self {
            Self::TaskSet => "use `shiftwork analyze`, `shiftwork simulate` or `shiftwork run`",
            Self::Scenario => "use `shiftwork scenario`",
            Self::Study => "use `shiftwork study run`",
            Self::Overheads => {
                "name it with --overheads of `shiftwork analyze` or `shiftwork simulate`, or as \
                 `overheads` in a task-set or study file"
            }
            Self::Daemon => "use `shiftwork daemon --config`",
        }
    }

    /// Keys at the top that only such a file has.
    pub(crate) const fn distinctive_keys(self) -> &'static [&'static str] {
        match self {
            Self::TaskSet => &["platform", "scheduler"],
            Self::Scenario => &["step"],
            Self::Study => &["tasks", "family"],
            Self::Overheads => &["worst", "average"],
            Self::Daemon => &[
                "limits",
                "guarantee",
                "own-share",
                "group",
                "record-seconds",
                "record-folder",
                "record-files",
                "record-gap-seconds",
                "metrics",
            ],
        }
    }

    /// The other kind of file that a text with these top-level keys is: none of them is distinctive
    /// for this kind, and one of them is for the other.
    pub(crate) fn instead(self, found: &[&str]) -> Option<Self> {
        let has = |kind: &Self| {
            kind.distinctive_keys()
                .iter()
                .any(|key| found.contains(key))
        };
        let mut others = Self::ALL.into_iter().filter(|&kind| kind != self);
        others.find(has).filter(|_| !has(&self))
    }
}

impl fmt::Display for Kind {
    /// As messages call it, with its article.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TaskSet => "a task-set file",
            Self::Scenario => "a scenario file",
            Self::Study => "a study file",
            Self::Overheads => "an overhead file",
            Self::Daemon => "a configuration of the daemon",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_with_keys_of_its_own_kind_is_never_taken_for_another() {
        assert_eq!(Kind::TaskSet.instead(&["platform", "step"]), None);
        assert_eq!(Kind::TaskSet.instead(&["cpus"]), None);
        assert_eq!(Kind::TaskSet.instead(&[]), None);
        assert_eq!(
            Kind::TaskSet.instead(&["cpus", "step"]),
            Some(Kind::Scenario)
        );
        assert_eq!(Kind::Daemon.instead(&["name", "tasks"]), Some(Kind::Study));
    }
}
