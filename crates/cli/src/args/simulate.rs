//! The command line of `simulate`.

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use shiftwork_model::{Lagging, Repairs};

use super::recording::RecordingArgs;

/// Options of `simulate`.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// Task-set file, `-` for stdin; an rt-app file (`.json`) is converted on the way.
    pub file: String,
    /// Policy to simulate, instead of the file's. Several, as in `p-edf,g-edf`, are compared side by side, also on the page
    /// of `--report`; those that do not take the task set are left out; and a file of `--jobs` or `--trace` is written for
    /// each, with the policy's name before the extension.
    #[arg(short, long = "policy", value_name = "NAME", value_delimiter = ',')]
    pub policies: Vec<String>,
    /// What to keep, and for how long.
    #[command(flatten)]
    pub recording: RecordingArgs,
    /// Overhead file, instead of the one that the task-set file names; `none`: scheduling costs nothing.
    #[arg(long, value_name = "FILE.toml")]
    pub overheads: Option<String>,
    /// Which of the overheads to apply.
    #[arg(long, value_name = "USE", default_value = "worst")]
    pub overheads_use: OverheadsUse,
    /// Give background work that has waited for a second its reserve, as a live machine does.
    #[arg(long)]
    pub reserve_server: bool,
    /// Look for priority inversions: jobs that wait for less urgent ones, or for idle CPUs. Without being
    /// asked, this is done under `dl-*`, for several policies, and with `--report`.
    #[arg(long)]
    pub inversions: bool,
    /// Which of the four repairs of Tang et al. dl-sp has, instead of the file's; without either, all.
    /// dl-linux never has any, and other policies know none.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = repair_names())]
    pub repairs: Vec<String>,
    /// The deadline of a server that is replenished over a period late, instead of the file's: the next
    /// of its own, or one counted from now, as Linux has it. Only for dl-linux and dl-sp.
    #[arg(long, value_name = "RULE", value_parser = PossibleValuesParser::new(Lagging::NAMES))]
    pub lagging: Option<String>,
}

/// Which overheads to apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OverheadsUse {
    /// The worst that was measured, as for hard deadlines.
    Worst,
    /// The average, as for soft deadlines.
    Average,
}

/// What `--repairs` takes beside the names of repairs: that there are none.
pub const NO_REPAIRS: &str = "none";

fn repair_names() -> PossibleValuesParser {
    PossibleValuesParser::new(Repairs::NAMES.into_iter().chain([NO_REPAIRS]))
}
