//! What a task set says about Linux's `SCHED_DEADLINE`, for the policies that do as it does.

/// The four repairs by which S. Tang, J. H. Anderson and L. Abeni make semi-partitioned affinities sound
/// ("On the Defectiveness of `SCHED_DEADLINE` w.r.t. Tardiness and Affinities, and a Partial Fix", RTNS
/// 2021, Section 4). Each can be left out, to show what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Repairs {
    /// A server that is replenished late is throttled and woken again, so that it may be pushed, instead
    /// of going on where it runs (Section 4.1).
    pub no_bypass: bool,
    /// The target of a push is looked up without counting the task that is pushed (Section 4.2).
    pub push_without_itself: bool,
    /// The tasks that are bound to a CPU have to fit it, beside the condition that all tasks have to fit
    /// their cpuset: condition (2) of Section 4.3.
    pub admission: bool,
    /// Tasks keep the affinity and the parameters with which they entered (Section 4.4, Mitigation 1).
    pub no_changes: bool,
}

impl Repairs {
    /// Linux as it is.
    pub const NONE: Self = Self {
        no_bypass: false,
        push_without_itself: false,
        admission: false,
        no_changes: false,
    };

    /// All four.
    pub const ALL: Self = Self {
        no_bypass: true,
        push_without_itself: true,
        admission: true,
        no_changes: true,
    };

    /// The names, in the order of the paper.
    pub const NAMES: [&'static str; 4] = [
        "no-bypass",
        "push-without-itself",
        "admission",
        "no-changes",
    ];

    /// With the repair of this name as well; `None` if there is no such name.
    pub fn with(mut self, name: &str) -> Option<Self> {
        let at = Self::NAMES.iter().position(|known| *known == name)?;
        *self.fields_mut()[at] = true;
        Some(self)
    }

    /// The names of those that are there, in the order of the paper.
    pub fn names(mut self) -> impl Iterator<Item = &'static str> {
        let there = self.fields_mut().map(|field| *field);
        Self::NAMES
            .into_iter()
            .zip(there)
            .filter_map(|(name, is_there)| is_there.then_some(name))
    }

    fn fields_mut(&mut self) -> [&mut bool; 4] {
        [
            &mut self.no_bypass,
            &mut self.push_without_itself,
            &mut self.admission,
            &mut self.no_changes,
        ]
    }
}

/// The deadline of a server that is replenished when it is later than a period already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Lagging {
    /// One period after the last one, however late: what theory assumes, and what makes lateness visible.
    #[default]
    Grid,
    /// Counted from now, with a full budget, as Linux does ("DL replenish lagged too much"): a server is never much more
    /// than a period behind its own deadline, whatever becomes of the jobs in it.
    Reset,
}

impl Lagging {
    /// The names, as files have them.
    pub const NAMES: [&'static str; 2] = ["grid", "reset"];

    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Grid => "grid",
            Self::Reset => "reset",
        }
    }

    /// By its name.
    pub fn find(name: &str) -> Option<Self> {
        [Self::Grid, Self::Reset]
            .into_iter()
            .find(|lagging| lagging.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn repairs_are_known_by_their_names() {
        assert_eq!(Repairs::ALL.names().collect::<Vec<_>>(), Repairs::NAMES);
        assert_eq!(Repairs::NONE.names().count(), 0);
        let all = Repairs::NAMES
            .iter()
            .try_fold(Repairs::NONE, |repairs, name| repairs.with(name));
        assert_eq!(all, Some(Repairs::ALL));
        assert_eq!(Repairs::NONE.with("other"), None);
        let one = Repairs::NONE.with("admission").unwrap();
        assert!(one.admission && !one.no_bypass);
    }
}
