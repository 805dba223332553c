//! The command line of `analyze`.

use clap::{Args, ValueEnum};

/// Options of `analyze`.
///
/// The first and the last line say whether all deadlines are met under every policy that is asked about, or with
/// `--criterion soft` whether tardiness is bounded; where it is not so, or not known, the lines before the last name
/// policies, affinities and costs with which it would be so. All that is about any releases that are a period or more
/// apart; a further line says what is known of exactly those of the file, and `--releases as-written` makes that the answer.
///
/// Exit status: 0 if it is shown, 1 if it is proven that it is not so under one of the policies, 4 if neither is known.
/// Where neither `--policy` nor the file names a policy, any of those listed will do. Admission (what `run` says, which
/// keeps the reserve free) is a line of its own and does not count here.
#[derive(Debug, Args)]
pub struct AnalyzeArgs {
    /// Task-set file, `-` for stdin; an rt-app file (`.json`) is converted on the way.
    pub file: String,
    /// Policies to look at, instead of all, as in `p-edf,g-edf`; without it the file's is the one that counts.
    #[arg(short, long = "policy", value_name = "NAME", value_delimiter = ',')]
    pub policies: Vec<String>,
    /// What is asked of every policy, and answered by the first and the last line and the exit status.
    #[arg(long, value_name = "CRITERION", default_value = "hard")]
    pub criterion: CriterionName,
    /// For which releases it is asked: any that are a period or more apart, or exactly those of the file (every period
    /// from the offset on).
    #[arg(long, value_name = "RELEASES", default_value = "sporadic")]
    pub releases: ReleasesName,
    /// How many steps each test may take for each policy before it gives up; counted, not timed, so
    /// that the answer is the same on every machine.
    #[arg(long, value_name = "N", default_value_t = 20_000_000)]
    pub max_steps: u64,
    /// Overhead file, instead of the one that the task-set file names; `none`: scheduling costs nothing.
    /// Hard verdicts take the worst overheads into account, soft ones the average.
    #[arg(long, value_name = "FILE.toml")]
    pub overheads: Option<String>,
    /// Find the largest factor on all costs with which the criterion is met, policy by policy.
    #[arg(long)]
    pub scale: bool,
    /// Propose affinities with which the criterion is met, within the file's if possible.
    #[arg(long)]
    pub assign: bool,
}

/// What is asked of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CriterionName {
    /// All deadlines are met.
    Hard,
    /// Tardiness is bounded.
    Soft,
}

/// The releases of which something is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReleasesName {
    /// Of each task a period or more apart, from any time on.
    Sporadic,
    /// Every period from the offset on, as the file says.
    AsWritten,
}
