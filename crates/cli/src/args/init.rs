//! The command line of `init`.

use clap::Args;
use shiftwork_model::Span;
use shiftwork_observe::Percentile;
use shiftwork_taskset::positive_span;

/// Options of `init`.
///
/// Without `--pid`, an example with comments, to be edited. With it, a running process is measured from outside, by the
/// kernel's trace of its scheduling events, which takes root and changes nothing: what jobs of its threads cost, how far
/// apart they are, and which thread triggers which. The file that is proposed says in comments what was measured.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    shiftwork init -o my.toml\n  \
    sudo shiftwork init --pid $(pgrep -o control) --for 30s -o control.toml\n  \
    shiftwork init --pid 4711 --sampled\n\n\
    Exit status: 0 done, 1 no thread has enough jobs, 2 bad usage or no such process, 3 the kernel's trace may not be used, 130 \
    interrupted: what was measured until then is proposed.")]
pub struct InitArgs {
    /// Measure this process, and those that it starts.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,
    /// Make a task of each thread with enough jobs, also of irregular ones that take less than a thousandth of a CPU.
    #[arg(long, requires = "pid", conflicts_with = "threads")]
    pub all_threads: bool,
    /// Make tasks of the threads with these names only.
    #[arg(long, value_name = "NAME,..", requires = "pid", value_delimiter = ',')]
    pub threads: Vec<String>,
    /// How long to measure.
    #[arg(long = "for", value_name = "TIME", default_value = "10s", requires = "pid", value_parser = positive_span)]
    pub duration: Span,
    /// What is added to measured costs.
    #[arg(long, value_name = "PERCENT", default_value = "20%", requires = "pid", value_parser = margin)]
    pub margin: u32,
    /// How many percent of the jobs the cost covers before the margin; 100 is the longest job.
    #[arg(long, value_name = "P", default_value = "100", requires = "pid", value_parser = percentile)]
    pub percentile: Percentile,
    /// Read counters in /proc instead of the kernel's trace, which takes no root: finds mean values only and no triggers.
    #[arg(long, requires = "pid")]
    pub sampled: bool,
    /// Where to write the file, instead of stdout.
    #[arg(short, long, value_name = "FILE.toml")]
    pub output: Option<String>,
    /// Overwrite the file if there is one.
    #[arg(long, requires = "output")]
    pub force: bool,
}

/// A margin in percent, with or without the sign.
fn margin(text: &str) -> Result<u32, String> {
    const MOST: u32 = 1_000;
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    let margin = number.parse().ok().filter(|it| *it <= MOST);
    margin.ok_or_else(|| format!("`{text}` is no margin; write a whole number from 0% to {MOST}%"))
}

fn percentile(text: &str) -> Result<Percentile, String> {
    let percentile = text.parse().ok().and_then(Percentile::new);
    percentile
        .ok_or_else(|| format!("`{text}` is no percentile; write a whole number from 1 to 100"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_and_percentiles_are_whole_percentages() {
        assert_eq!((margin("20%"), margin("0")), (Ok(20), Ok(0)));
        assert!(margin("-1%").unwrap_err().contains("0% to 1000%"));
        assert!(margin("1001%").is_err() && margin("%").is_err() && margin("1.5%").is_err());
        assert_eq!(percentile("99"), Ok(Percentile::new(99).unwrap()));
        assert!(percentile("0").unwrap_err().contains("1 to 100"));
        assert!(percentile("101").is_err() && percentile("").is_err());
    }
}
