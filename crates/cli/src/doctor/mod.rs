//! What this machine can do for real-time scheduling, and the one command that mends what it
//! cannot.
//!
//! Each check is one function that looks at a [`System`] and returns a [`Finding`]; [`CHECKS`] is
//! the list. The verb in `verb/doctor.rs` prints them.

mod cpus;
mod kernel;
mod privileges;

use schemars::JsonSchema;
use serde::Serialize;

use crate::system::System;

/// How good something is for real-time scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// Works, but guarantees or measurements suffer.
    Poor,
    /// Something of the live machines will not work.
    Missing,
    /// The machine does not say.
    Unknown,
}

impl Verdict {
    /// The word that people and programs read.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Poor => "poor",
            Self::Missing => "missing",
            Self::Unknown => "unknown",
        }
    }
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// What was looked at.
    pub name: &'static str,
    /// How good it is.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What mends it: one command, or one sentence where no command can; null if nothing need be
    /// mended.
    pub remedy: Option<String>,
}

impl Finding {
    fn good(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            verdict: Verdict::Good,
            found: found.into(),
            remedy: None,
        }
    }

    fn unknown(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Unknown,
            ..Self::good(name, found)
        }
    }

    fn poor(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Poor,
            remedy: Some(remedy.into()),
            ..Self::good(name, found)
        }
    }

    fn missing(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Missing,
            ..Self::poor(name, found, remedy)
        }
    }
}

type Check = fn(&System) -> Finding;

/// All checks, in the order in which they are shown.
const CHECKS: &[Check] = &[
    kernel::release,
    kernel::sched_ext,
    kernel::btf,
    kernel::preemption,
    kernel::rt_throttling,
    kernel::clock,
    cpus::online,
    cpus::caches,
    cpus::smt,
    cpus::isolated,
    cpus::governor,
    privileges::capabilities,
    privileges::rtprio,
];

/// Looks at everything.
pub fn examine(system: &System) -> Vec<Finding> {
    CHECKS.iter().map(|check| check(system)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::tests::Tree;

    fn finding(system: &System, name: &str) -> Finding {
        examine(system)
            .into_iter()
            .find(|finding| finding.name == name)
            .unwrap()
    }

    #[test]
    fn a_machine_that_says_nothing_is_examined_without_a_panic_and_claims_nothing_good() {
        let findings = examine(&System::at("/nonexistent"));
        assert_eq!(findings.len(), CHECKS.len());
        // The clock is asked of the kernel itself, not of a file.
        let good: Vec<_> = findings
            .iter()
            .filter(|finding| finding.verdict == Verdict::Good && finding.name != "clock")
            .collect();
        assert_eq!(good, Vec::<&Finding>::new());
    }

    #[test]
    fn a_kernel_before_6_12_has_no_sched_ext() {
        let tree = Tree::new("old", &[("proc/sys/kernel/osrelease", "6.1.0-40-amd64\n")]);
        let system = System::at(&tree.0);
        assert_eq!(finding(&system, "kernel").verdict, Verdict::Missing);
        assert_eq!(finding(&system, "sched_ext").verdict, Verdict::Missing);
    }

    #[test]
    fn a_loaded_scheduler_is_named() {
        let tree = Tree::new(
            "loaded",
            &[
                ("proc/sys/kernel/osrelease", "6.19.14+deb13-amd64\n"),
                ("sys/kernel/sched_ext/state", "enabled\n"),
                ("sys/kernel/sched_ext/root/ops", "rusty_1.0.4\n"),
            ],
        );
        let finding = finding(&System::at(&tree.0), "sched_ext");
        assert_eq!(finding.verdict, Verdict::Poor);
        assert!(finding.found.contains("rusty_1.0.4"), "{}", finding.found);
    }

    #[test]
    fn switched_off_throttling_is_no_good_sign() {
        let tree = Tree::new(
            "throttling",
            &[
                ("proc/sys/kernel/sched_rt_runtime_us", "-1\n"),
                ("proc/sys/kernel/sched_rt_period_us", "1000000\n"),
            ],
        );
        let finding = finding(&System::at(&tree.0), "rt-throttling");
        assert_eq!(finding.verdict, Verdict::Poor);
        assert_eq!(
            finding.remedy.as_deref(),
            Some("sudo sysctl kernel.sched_rt_runtime_us=950000")
        );
    }

    #[test]
    fn the_governor_is_judged_by_the_slowest_cpu() {
        let tree = Tree::new(
            "governor",
            &[
                ("sys/devices/system/cpu/online", "0-1\n"),
                (
                    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                    "performance\n",
                ),
                (
                    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
                    "powersave\n",
                ),
            ],
        );
        let finding = finding(&System::at(&tree.0), "governor");
        assert_eq!(finding.verdict, Verdict::Poor);
        assert_eq!(finding.found, "CPUs 0: performance; CPUs 1: powersave");
    }

    #[test]
    fn whoever_may_change_nothing_is_told_which_capabilities_lack() {
        let tree = Tree::new(
            "user",
            &[(
                "proc/self/status",
                "Name:\tshiftwork\nCapEff:\t0000000000000000\n",
            )],
        );
        let finding = finding(&System::at(&tree.0), "privileges");
        assert_eq!(finding.verdict, Verdict::Missing);
        assert!(finding.found.contains("CAP_SYS_NICE"), "{}", finding.found);
    }
}
