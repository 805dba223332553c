//! Which machine runs a policy here.

use shiftwork_live::host::{self, Obstacle, System};
use shiftwork_model::{Budgets, Machines, TaskSet};
use shiftwork_policy::registry::Entry;

use crate::args::MachineName;
use crate::catalogue;
use crate::failure::Failure;

/// A machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// The core decides inside the kernel.
    Kernel,
    /// An agent decides, and the kernel carries out.
    Agent,
    /// An agent decides, and fixed priorities carry out.
    Fifo,
    /// Nothing is really run.
    Sim,
}

impl Chosen {
    /// As results name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Agent => "agent",
            Self::Fifo => "fifo",
            Self::Sim => "sim",
        }
    }
}

/// Whether the machine that was asked for can run the policy.
///
/// # Errors
/// If it is the kernel, which does not decide by every policy; if no real machine runs the policy; or if none was
/// chosen, and the policy is the one that Linux has anyway.
pub fn check(wanted: MachineName, entry: &Entry) -> Result<(), Failure> {
    match wanted {
        MachineName::Auto | MachineName::Kernel if entry.traits.budgets == Budgets::AsLinux => {
            Err(of_linux(entry))
        }
        MachineName::Sim => Ok(()),
        _ if entry.traits.machines == Machines::None => Err(only_simulated(entry)),
        MachineName::Kernel if !runs_in_kernel(entry) => Err(not_in_kernel(entry)),
        _ => Ok(()),
    }
}

/// The machine that was asked for and [`check`]ed, or the best that this one can be for the policy; and
/// what people should know of that choice.
///
/// # Errors
/// If nothing can be had.
pub fn choose(
    wanted: MachineName,
    entry: &Entry,
    set: &TaskSet,
) -> Result<(Chosen, Option<String>), Failure> {
    match wanted {
        MachineName::Sim => Ok((Chosen::Sim, None)),
        MachineName::Agent => Ok((Chosen::Agent, None)),
        MachineName::Fifo => Ok((Chosen::Fifo, None)),
        MachineName::Kernel => Ok((Chosen::Kernel, None)),
        MachineName::Auto => {
            let system = System::this();
            let sched_ext = host::obstacles(&system).into_iter().next();
            best(entry, sched_ext, || {
                programs(set).or_else(|| host::obstacle_to_fifo(&system))
            })
        }
    }
}

/// Programs, which fixed priorities cannot serve.
fn programs(set: &TaskSet) -> Option<Obstacle> {
    let task = set.tasks.iter().find(|task| !task.command.is_empty())?;
    Some(Obstacle {
        what: format!(
            "task `{}` runs a program, and without sched_ext it is unknown when it wants to run",
            task.name
        ),
        remedy: String::from("give it `work` instead of a `command`"),
    })
}

fn best(
    entry: &Entry,
    sched_ext: Option<Obstacle>,
    fifo: impl FnOnce() -> Option<Obstacle>,
) -> Result<(Chosen, Option<String>), Failure> {
    match sched_ext {
        None if runs_in_kernel(entry) => Ok((Chosen::Kernel, None)),
        None => Ok((Chosen::Agent, None)),
        Some(obstacle) => match fifo() {
            None => {
                let why = format!("note: SCHED_FIFO is used instead of sched_ext: {obstacle}");
                Ok((Chosen::Fifo, Some(why)))
            }
            Some(other) => Err(Failure::Machine(format!(
                "{obstacle}\nfixed priorities instead (--machine fifo): {other}\nwithout either, \
                 `--machine sim` simulates the same, and `shiftwork doctor` says all that this machine lacks"
            ))),
        },
    }
}

/// A user of Linux's own policy expects Linux's own scheduler: a copy of it would be slower, and its
/// figures would be taken for Linux's.
fn of_linux(entry: &Entry) -> Failure {
    Failure::input(format_args!(
        "policy {} is what Linux does by itself: start each task under SCHED_DEADLINE (`chrt -d -T \
         RUNTIME_NS -P PERIOD_NS 0 COMMAND`); `--machine sim` simulates it, `--policy dl-sp` runs it with its \
         repairs, and `--machine agent --best-effort` runs a copy of it to compare with",
        entry.name
    ))
}

fn only_simulated(entry: &Entry) -> Failure {
    Failure::input(format_args!(
        "policy {} has to know the laxity of running jobs at every instant, which no real machine measures: \
         `--machine sim` simulates it",
        entry.name
    ))
}

fn not_in_kernel(entry: &Entry) -> Failure {
    let names: Vec<&str> = in_kernel().collect();
    Failure::input(format_args!(
        "policy {} needs an agent (`--machine agent` or `--machine fifo`); inside the kernel run: {}",
        entry.name,
        names.join(" ")
    ))
}

/// Whether the kernel can decide so: the core schedules strongly, and partitioned, clustered,
/// global and nested affinities are special cases of that. Published variants differ in where they
/// place jobs; weak and non-preemptive ones in which jobs they run.
fn runs_in_kernel(entry: &Entry) -> bool {
    entry.traits.machines == Machines::KernelOrAgent
}

fn in_kernel() -> impl Iterator<Item = &'static str> {
    let entries = catalogue::policies().filter(|entry| runs_in_kernel(entry));
    entries.map(|entry| entry.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_takes_what_strong_scheduling_with_special_affinities_is() {
        assert_eq!(
            in_kernel().collect::<Vec<_>>(),
            [
                "p-edf",
                "g-edf",
                "c-edf",
                "strong-edf",
                "hpa-edf",
                "p-fp",
                "g-fp",
                "c-fp",
                "strong-fp",
                "hpa-fp",
                "strong-edf-kernel",
                "strong-fp-kernel"
            ]
        );
    }

    fn named(name: &str) -> &'static Entry {
        catalogue::policies()
            .find(|entry| entry.name == name)
            .unwrap()
    }

    fn obstacle(what: &str) -> Option<Obstacle> {
        Some(Obstacle {
            what: what.to_owned(),
            remedy: String::from("mend it"),
        })
    }

    #[test]
    fn the_first_machine_that_can_is_taken() {
        let found = |name, sched_ext, fifo: Option<Obstacle>| best(named(name), sched_ext, || fifo);
        assert_eq!(found("strong-edf", None, None), Ok((Chosen::Kernel, None)));
        assert_eq!(found("weak-fp", None, None), Ok((Chosen::Agent, None)));
        let why = "note: SCHED_FIFO is used instead of sched_ext: no sched_ext; mend it";
        assert_eq!(
            found("strong-edf", obstacle("no sched_ext"), None),
            Ok((Chosen::Fifo, Some(why.to_owned())))
        );
        let refused = found("weak-fp", obstacle("no sched_ext"), obstacle("no rank"));
        let refused = refused.unwrap_err().render(false);
        assert_eq!(
            refused,
            "error: no sched_ext; mend it\nfixed priorities instead (--machine fifo): no rank; mend \
             it\nwithout either, `--machine sim` simulates the same, and `shiftwork doctor` says all that \
             this machine lacks"
        );
    }

    #[test]
    fn what_the_kernel_cannot_decide_is_for_an_agent() {
        let set = TaskSet::new("s", 1, vec![]);
        assert_eq!(
            choose(MachineName::Agent, named("weak-edf"), &set),
            Ok((Chosen::Agent, None))
        );
        let refused = check(MachineName::Kernel, named("weak-edf")).unwrap_err();
        assert!(refused.render(false).contains("--machine agent"));
    }

    #[test]
    fn quantum_policies_run_under_an_agent_only() {
        for policy in ["S-CQm", "pd2"] {
            let refused = check(MachineName::Kernel, named(policy)).unwrap_err();
            assert!(refused.render(false).contains("--machine agent"));
            for wanted in [MachineName::Auto, MachineName::Agent, MachineName::Fifo] {
                assert_eq!(check(wanted, named(policy)), Ok(()));
            }
        }
    }

    #[test]
    fn what_linux_does_by_itself_is_copied_only_on_request() {
        for wanted in [MachineName::Auto, MachineName::Kernel] {
            let refused = check(wanted, named("dl-linux")).unwrap_err();
            assert!(refused.render(false).contains("chrt -d"), "{refused:?}");
            assert_eq!(refused.status(), 2);
        }
        for wanted in [MachineName::Agent, MachineName::Fifo, MachineName::Sim] {
            assert_eq!(check(wanted, named("dl-linux")), Ok(()));
        }
        assert_eq!(check(MachineName::Auto, named("dl-sp")), Ok(()));
    }
}
