//! Debian packages without touching the system: which suites, from which mirror, by the system's own
//! package client with a state of its own.

mod apt;
mod mirror;
mod programs;
mod system;
mod unpacked;

pub use apt::Apt;
pub use mirror::{MIRROR_VARIABLE, find as find_mirror};
pub(crate) use programs::from_first_suite;
pub use programs::{LIBRARIES, LOADER, Program};
pub use system::System;
pub(crate) use unpacked::add_unpacked;

/// A suite of the Debian archive that something is fetched from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suite {
    /// Its name in the archive.
    pub name: &'static str,
    /// Whether QEMU and other programs are taken from here. QEMU has to be 10.0 or newer. (7.2 oopsed in one boot of seven, and hung when
    /// counting instructions with several CPUs.)
    pub programs: bool,
    /// Whether kernels with `sched_ext` may be found here; others are only looked for by name.
    pub kernels: bool,
    /// Whether a whole system may be put together from here. Every file of its packages has to be below
    /// `/usr`, `/etc` and `/var`, as from trixie on.
    pub system: bool,
}

/// Every suite, in the order in which the newest QEMU and kernels are looked for.
///
/// Kernels of testing come first: those of backports were built with a tool that spoils the type
/// information which `sched_ext` needs, from 7.1 on; that they stay in the table costs one look each.
pub const SUITES: &[Suite] = &[
    Suite {
        name: "forky",
        programs: false,
        kernels: true,
        system: true,
    },
    Suite {
        name: "sid",
        programs: false,
        kernels: true,
        system: false,
    },
    Suite {
        name: "trixie-backports",
        programs: false,
        kernels: true,
        system: false,
    },
    Suite {
        name: "trixie",
        programs: true,
        kernels: false,
        system: true,
    },
    Suite {
        name: "bookworm-backports",
        programs: true,
        kernels: false,
        system: false,
    },
    Suite {
        name: "bookworm",
        programs: false,
        kernels: false,
        system: false,
    },
];

impl Suite {
    /// The suite on which this one builds: its packages need those of that one.
    pub fn base(&self) -> Option<&'static str> {
        self.name
            .strip_suffix("-backports")
            .and_then(|base| SUITES.iter().find(|suite| suite.name == base))
            .map(|suite| suite.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backports_build_on_a_suite_of_the_table() {
        for suite in SUITES {
            let wanted = suite.name.ends_with("-backports");
            assert_eq!(suite.base().is_some(), wanted, "{}", suite.name);
        }
    }

    #[test]
    fn both_kinds_of_things_are_in_the_table() {
        assert!(SUITES.iter().any(|suite| suite.programs));
        assert!(SUITES.iter().any(|suite| suite.kernels));
    }
}
