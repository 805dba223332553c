//! The options of the daemon and of its clients.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use shiftwork_model::{CpuSet, Span};
use shiftwork_taskset::positive_span;

/// Options of `daemon`.
///
/// Schedules the machine until Ctrl-C or SIGTERM; afterwards the kernel's own scheduler runs all threads. Programs request
/// reservations by `shiftwork exec`. SIGHUP reloads the configuration. Reservations survive a restart.
#[derive(Debug, Args)]
pub struct DaemonArgs {
    /// Configuration file; default: /etc/shiftwork/daemon.toml, if there is one.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Path of the socket; default: SHIFTWORK_SOCKET, or /run/shiftwork/daemon.sock.
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// File of the saved reservations; default: daemon.json in the state folder of the systemd unit, or in /var/lib/shiftwork.
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Check the configuration, print what it means on this machine, and end; exit status 2 or 3 as the daemon would.
    #[arg(long)]
    pub check_config: bool,
}

/// What happens when the cost is used up before the end of the period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnOverrunName {
    /// The thread waits for the next period.
    Throttle,
    /// It is ordinary work until the next period, and its process gets SIGXCPU, once for each job.
    Signal,
    /// It is ordinary work until the next period.
    Continue,
}

/// The reservation to request.
#[derive(Debug, Args)]
pub struct ReservationArgs {
    /// CPU time in each period, such as 2ms.
    #[arg(short = 'C', long, value_name = "TIME", value_parser = positive_span, required_unless_present = "measure")]
    pub cost: Option<Span>,
    /// The period, such as 10ms.
    #[arg(short = 'T', long, value_name = "TIME", value_parser = positive_span, required_unless_present = "measure")]
    pub period: Option<Span>,
    /// Relative deadline, from waking up; default: the period.
    #[arg(short = 'D', long, value_name = "TIME", value_parser = positive_span)]
    pub deadline: Option<Span>,
    /// Affinity, as for `taskset -c`; default: the current affinity.
    #[arg(short, long, value_name = "LIST")]
    pub cpus: Option<CpuSet>,
    /// Priority under fixed priorities, 1 is the most urgent; default: by the deadline.
    #[arg(long, value_name = "N")]
    pub priority: Option<u32>,
    /// What happens when the cost is used up before the end of the period.
    #[arg(long, value_name = "WHAT", default_value = "throttle")]
    pub on_overrun: OnOverrunName,
}

/// Options of `exec`.
///
/// Requests a reservation from the daemon and executes the program, as `chrt -d` and `taskset` in one. The reservation applies
/// to the main thread. A refusal names the condition that fails, and what would be admitted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    shiftwork exec --cost 2ms --period 10ms -- ./control\n  \
    shiftwork exec --cost 500us --period 2ms --deadline 1ms --cpus 1-3 -- ./imu\n  \
    shiftwork exec --cost 1ms --period 5ms --pid 4711 --all-threads\n  \
    shiftwork exec --measure -- ./control\n  \
    shiftwork exec --measure -- timeout 10s ./rover\n\n\
    The reservation applies to the main thread; threads and processes that it creates do not inherit it.\n\n\
    Exit status: that of the program; 1 refused, 2 bad usage, 3 no daemon, 126 the program cannot be executed, 127 it is not \
    found.")]
pub struct ExecArgs {
    /// The reservation.
    #[command(flatten)]
    pub reservation: ReservationArgs,
    /// Reserve for the main thread of this process instead of running a program.
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pub pid: Option<u32>,
    /// Reserve for this thread instead of running a program.
    #[arg(long, value_name = "TID", conflicts_with_all = ["command", "pid"])]
    pub tid: Option<u32>,
    /// With --pid: a reservation for each thread of the process.
    #[arg(long, requires = "pid")]
    pub all_threads: bool,
    /// Reserve nothing: run the program, or measure the process or thread until Ctrl-C, and propose reservations.
    ///
    /// With all threads and processes that it starts. By the daemon if it answers, otherwise by the kernel's trace, which takes
    /// root, otherwise by counters, which give mean values only.
    #[arg(long, conflicts_with_all = ["cost", "period", "all_threads"])]
    pub measure: bool,
    /// Wait for the program, and exit with status 1 if it missed a deadline and its own status is 0.
    #[arg(long, conflicts_with_all = ["measure", "pid", "tid"])]
    pub strict: bool,
    /// Name of the task; default: that of the program or the thread.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The program and its arguments.
    #[arg(last = true, required_unless_present_any = ["pid", "tid"], value_name = "CMD")]
    pub command: Vec<std::ffi::OsString>,
}

/// Options of `record`.
///
/// The daemon records the scheduling events of the last seconds, and saves the recording of a missed deadline to a file.
/// Without a file, prints the events, one JSON object per line; with one, shows the missed deadline, the schedule and the
/// cause. Only root may read recordings.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    shiftwork record --list\n  \
    shiftwork record 2026-11-22T17-16-48.123Z-imu.pftrace\n  \
    shiftwork record --last 2s --output now.pftrace && shiftwork record now.pftrace\n  \
    shiftwork record --explain 5")]
pub struct RecordArgs {
    /// Show this recording; `-` is stdin.
    #[arg(value_name = "FILE", conflicts_with_all = ["last", "explain", "list"])]
    pub file: Option<String>,
    /// Length of the part to print; default: the whole recording in memory.
    #[arg(long, value_name = "TIME", value_parser = positive_span)]
    pub last: Option<Span>,
    /// Explain the last N missed deadlines instead of printing events.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "3", conflicts_with = "last")]
    pub explain: Option<u32>,
    /// List the saved recordings of missed deadlines.
    #[arg(long, conflicts_with_all = ["last", "explain"])]
    pub list: bool,
    /// Where the recording goes, a Perfetto trace; default: standard output, or `record.pftrace` if that is a terminal.
    #[arg(long, value_name = "FILE.pftrace", conflicts_with_all = ["file", "explain", "list"])]
    pub output: Option<PathBuf>,
}

/// Options of `top`.
///
/// On a terminal the threads are shown until q or Ctrl-C; keys sort and filter them, and show the misses of one; ? lists all
/// keys. Without a terminal, with --json or with --count the status is printed repeatedly.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Interval between two updates.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive_span)]
    pub interval: Span,
    /// Print the status so many times; default: until Ctrl-C.
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
}
