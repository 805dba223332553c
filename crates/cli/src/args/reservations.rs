//! The options of the verbs that reserve, change and give back for threads that run.

use clap::{ArgGroup, Args};
use shiftwork_model::{CpuSet, Span};
use shiftwork_taskset::positive_span;

use super::OnOverrunName;

/// Options of `apply`.
///
/// Requests from the daemon a reservation for every task of a task-set file, all or none: for the threads of running programs
/// that tasks name (`thread`), and for programs that it starts (`command`). The reservations are called `SET/TASK` and end with
/// their threads. Applied again, the file changes only what differs.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sudo shiftwork init --pid $(pgrep -o rover) -o rover.toml\n  \
    shiftwork apply rover.toml --dry-run\n  \
    shiftwork apply rover.toml\n  \
    shiftwork apply rover.toml --prune\n\n\
    Exit status: 0 done, 1 a task is refused and nothing is changed, 2 bad usage or input, 3 no daemon, 130 interrupted.")]
pub struct ApplyArgs {
    /// Task-set file, `-` for stdin.
    pub file: String,
    /// Take the threads of this process, where several have the same name; may be given several times.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Vec<u32>,
    /// Give back reservations of this set whose tasks are not in the file any more.
    #[arg(long)]
    pub prune: bool,
    /// Change nothing: say what would be requested, and whether it would be admitted.
    #[arg(long)]
    pub dry_run: bool,
}

/// Options of `change`.
///
/// Changes a reservation; what is not given stays as it is, and a deadline at the end of the period stays there. A refusal
/// names the condition that fails, and what would be admitted.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("new").required(true).multiple(true)
        .args(["cost", "period", "deadline", "cpus", "priority", "on_overrun"]),
    after_help = "Examples:\n  \
    shiftwork change 4711 --cost 3ms\n  \
    shiftwork change rover/camera --period 40ms --cpus 2-3\n\n\
    Exit status: 0 done, 1 refused, 2 bad usage or no such reservation, 3 no daemon."
)]
pub struct ChangeArgs {
    /// The thread, a process with one reservation, or the name of the task.
    #[arg(value_name = "TID|NAME")]
    pub which: String,
    /// CPU time in each period, such as 2ms.
    #[arg(short = 'C', long, value_name = "TIME", value_parser = positive_span)]
    pub cost: Option<Span>,
    /// The period, such as 10ms.
    #[arg(short = 'T', long, value_name = "TIME", value_parser = positive_span)]
    pub period: Option<Span>,
    /// Relative deadline, from waking up.
    #[arg(short = 'D', long, value_name = "TIME", value_parser = positive_span)]
    pub deadline: Option<Span>,
    /// Affinity, as for `taskset -c`.
    #[arg(short, long, value_name = "LIST")]
    pub cpus: Option<CpuSet>,
    /// Priority under fixed priorities, 1 is the most urgent.
    #[arg(long, value_name = "N")]
    pub priority: Option<u32>,
    /// What happens when the cost is used up before the end of the period.
    #[arg(long, value_name = "WHAT")]
    pub on_overrun: Option<OnOverrunName>,
    /// Change nothing: say whether it would be admitted.
    #[arg(long)]
    pub dry_run: bool,
}

/// Options of `release`.
///
/// Ends reservations: the threads continue as ordinary work, and their CPU time is available to others after a period. A user
/// may release its own, root all of them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    shiftwork release 4711\n  \
    shiftwork release rover/camera\n  \
    shiftwork release --file rover.toml\n  \
    sudo shiftwork release --all")]
pub struct ReleaseArgs {
    /// Release the threads of this process, the thread with this number, or the task with this name.
    #[arg(value_name = "PID|NAME", required_unless_present_any = ["all", "file"])]
    pub which: Option<String>,
    /// Release all reservations that `apply` made of this file, also of tasks that are not in it any more.
    #[arg(long, value_name = "FILE", conflicts_with = "which")]
    pub file: Option<String>,
    /// Release all reservations that you may release.
    #[arg(long, conflicts_with_all = ["which", "file"])]
    pub all: bool,
}
