//! The command line of the agent and of those who ask it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use shiftwork_model::{CpuSet, Span};
use shiftwork_taskset::positive_span;

/// Options of `daemon`.
///
/// It schedules the machine until it is ended by Ctrl-C or SIGTERM; then everything is the kernel's own again. Programs ask
/// for reservations by `shiftwork exec`. SIGHUP makes it read its configuration again. Who has a reservation keeps it over a
/// restart.
#[derive(Debug, Args)]
pub struct DaemonArgs {
    /// Configuration file; default: /etc/shiftwork/agent.toml, if there is one.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where it listens; default: what SHIFTWORK_SOCKET says, or /run/shiftwork/agent.sock.
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Where it keeps who has a reservation; default: agent.json in the folder that systemd gives it, or in
    /// /var/lib/shiftwork.
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
}

/// What happens when a cost is used up before its period ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnOverrunName {
    /// The thread waits for the next period.
    Throttle,
    /// Its process gets SIGXCPU, once for each job.
    Signal,
    /// Nothing.
    Continue,
}

/// What a reservation is to be.
#[derive(Debug, Args)]
pub struct ReservationArgs {
    /// Processor time in each period, such as 2ms.
    #[arg(short = 'C', long, value_name = "TIME", value_parser = positive_span, required_unless_present = "measure")]
    pub cost: Option<Span>,
    /// How often, such as 10ms.
    #[arg(short = 'T', long, value_name = "TIME", value_parser = positive_span, required_unless_present = "measure")]
    pub period: Option<Span>,
    /// By when after waking up it has to be done; default: the period.
    #[arg(short = 'D', long, value_name = "TIME", value_parser = positive_span)]
    pub deadline: Option<Span>,
    /// The CPUs to use, as of `taskset -c`; default: those that it may use already.
    #[arg(short, long, value_name = "LIST")]
    pub cpus: Option<CpuSet>,
    /// Under fixed priorities, 1 is the most urgent; default: by the deadline.
    #[arg(long, value_name = "N")]
    pub priority: Option<u32>,
    /// What happens when the cost is used up before the period ends.
    #[arg(long, value_name = "WHAT", default_value = "throttle")]
    pub on_overrun: OnOverrunName,
}

/// Options of `exec`.
///
/// Asks the agent for a reservation and becomes the program, as `chrt -d` and `taskset` in one. The reservation is the main
/// thread's. A refusal says what does not fit, and what would.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    shiftwork exec --cost 2ms --period 10ms -- ./control\n  \
    shiftwork exec --cost 500us --period 2ms --deadline 1ms --cpus 1-3 -- ./imu\n  \
    shiftwork exec --cost 1ms --period 5ms --pid 4711 --all-threads\n  \
    shiftwork exec --measure -- ./control\n\n\
    The reservation is the main thread's; what it starts inherits nothing.\n\n\
    Exit status: that of the program; 1 refused, 2 bad usage, 3 no agent, 126 the program cannot be run, 127 there is none.")]
pub struct ExecArgs {
    /// What to reserve.
    #[command(flatten)]
    pub reservation: ReservationArgs,
    /// Reserve for the main thread of this process instead of running a program.
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pub pid: Option<u32>,
    /// Reserve for this thread instead of running a program.
    #[arg(long, value_name = "TID", conflicts_with_all = ["command", "pid"])]
    pub tid: Option<u32>,
    /// With --pid: for each thread of the process, a reservation of its own.
    #[arg(long, requires = "pid")]
    pub all_threads: bool,
    /// Reserve nothing: run the program, or watch the thread until Ctrl-C, and propose what to reserve.
    #[arg(long, conflicts_with_all = ["cost", "period", "all_threads"])]
    pub measure: bool,
    /// Stay beside the program, and exit with status 1 if it missed a deadline and its own status is 0.
    #[arg(long, conflicts_with_all = ["measure", "pid", "tid"])]
    pub strict: bool,
    /// What `status` calls it; default: the program's name, or the thread's.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The program and its arguments.
    #[arg(last = true, required_unless_present_any = ["pid", "tid"], value_name = "CMD")]
    pub command: Vec<std::ffi::OsString>,
}

/// Options of `record`.
///
/// The agent remembers what happened in the last seconds, and keeps those of a missed deadline in a file. Without a file
/// they are printed, one JSON object a line; with one it is said who missed, who ran where, and the cause. Only root may
/// read what the agent remembers.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    shiftwork record --list\n  \
    shiftwork record 2026-11-22T17-16-48.123Z-imu.ndjson\n  \
    shiftwork record --last 2s > now.ndjson && shiftwork record now.ndjson --trace now.pftrace\n  \
    shiftwork record --explain 5")]
pub struct RecordArgs {
    /// A record, to say what it tells; `-` is stdin.
    #[arg(value_name = "FILE", conflicts_with_all = ["last", "explain", "list"])]
    pub file: Option<String>,
    /// How far back; default: as far as the agent remembers.
    #[arg(long, value_name = "TIME", value_parser = positive_span)]
    pub last: Option<Span>,
    /// Say why the last deadlines were missed, so many of them, instead of what happened.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "3", conflicts_with = "last")]
    pub explain: Option<u32>,
    /// List the records of missed deadlines that the agent has kept.
    #[arg(long, conflicts_with_all = ["last", "explain"])]
    pub list: bool,
    /// Write the record as a Perfetto trace, which `report` takes, too.
    #[arg(long, value_name = "FILE.pftrace", requires = "file")]
    pub trace: Option<PathBuf>,
}

/// Options of `top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// How long a picture stays.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive_span)]
    pub interval: Span,
    /// Show so many pictures and end; default: until Ctrl-C.
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
}
