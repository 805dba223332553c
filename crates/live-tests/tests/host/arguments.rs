//! The command line of the runner: what `cargo test` passes to any test program, and some options more.

use clap::Parser;
use shiftwork_emulator::KernelChoice;

use crate::soak::host::Request;

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
    /// Begin each test at a moment that is drawn from this seed, so that the same programs take another course
    #[arg(long, value_name = "SEED")]
    pub vary: Option<u64>,
    #[arg(long, short, hide = true)]
    quiet: bool,
    /// Instead of the tests: the soak of this seed
    #[arg(long, value_name = "SEED")]
    soak: Option<u64>,
    /// With --soak: of so many seeds, from that one on
    #[arg(long, value_name = "N", default_value_t = 1)]
    count: u64,
    /// With --soak: newest, rt, older-1, older-2, or the beginning of a release
    #[arg(long, default_value_t)]
    kernel: KernelChoice,
    /// With --soak: how many sets of tasks a run has
    #[arg(long, value_name = "N")]
    episodes: Option<usize>,
    /// With --soak: without these parts of the plan
    #[arg(long, value_name = "PARTS", default_value = "")]
    without: String,
    /// With --soak: make the plan of a failure smaller, in so many boots at most
    #[arg(long, value_name = "BOOTS", default_value_t = 0)]
    shrink: usize,
}

impl Arguments {
    /// The soak that is asked for, if one is.
    pub fn soak(&self) -> Option<Request> {
        Some(Request {
            seed: self.soak?,
            count: self.count,
            kernel: self.kernel.clone(),
            episodes: self.episodes,
            without: self.without.clone(),
            shrink: self.shrink,
            show_output: self.show_output,
            guests: self.test_threads.unwrap_or_else(super::cpus),
        })
    }

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
