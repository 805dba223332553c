//! The command line of the runner: what `cargo test` passes to any test program, and one option more.

use clap::Parser;

/// Runs the live tests.
#[derive(Debug, Parser)]
pub struct Arguments {
    /// Only tests whose name contains one of these words
    filters: Vec<String>,
    /// Only tests whose name is one of these words
    #[arg(long)]
    exact: bool,
    /// But not those whose name contains, or with `--exact` is, this word
    #[arg(long)]
    skip: Vec<String>,
    /// Only list their names
    #[arg(long)]
    pub list: bool,
    /// Show what tests that passed have written
    #[arg(long, alias = "nocapture", alias = "no-capture")]
    pub show_output: bool,
    /// Only tests that are marked to be left out; there are none
    #[arg(long)]
    ignored: bool,
    /// How many guests run at once [default: one for each CPU]
    #[arg(long, value_name = "N")]
    pub test_threads: Option<usize>,
    /// Execute all tests of a machine in one boot, in the order of the catalogue: so a failure is replayed
    #[arg(long)]
    pub one_boot: bool,
    #[arg(long, short, hide = true)]
    quiet: bool,
}

impl Arguments {
    /// Whether a test of this name is to run.
    pub fn select(&self, name: &str) -> bool {
        let matches = |pattern: &String| match self.exact {
            true => name == pattern,
            false => name.contains(pattern.as_str()),
        };
        !self.ignored
            && (self.filters.is_empty() || self.filters.iter().any(matches))
            && !self.skip.iter().any(matches)
    }
}
