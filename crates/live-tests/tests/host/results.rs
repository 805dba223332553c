//! The results of the tests, printed as they come in the words of the standard test harness.

use std::io::{self, Write as _};
use std::time::Duration;

/// The results so far.
#[derive(Debug, Default)]
pub struct Results {
    passed: usize,
    /// Names, and what these tests wrote.
    failed: Vec<(String, Vec<String>)>,
    all: usize,
    filtered: usize,
    show_output: bool,
}

impl Results {
    /// For `all` tests, beside which `filtered` were not asked for.
    pub fn new(all: usize, filtered: usize, show_output: bool) -> Self {
        println!("\nrunning {all} tests");
        Self {
            all,
            filtered,
            show_output,
            ..Self::default()
        }
    }

    /// A test that ended after this time of its machine, if it is known.
    pub fn record(&mut self, name: &str, passed: bool, took_ms: Option<u64>, output: Vec<String>) {
        let result = if passed { "ok" } else { "FAILED" };
        let took = took_ms.map_or_else(String::new, |ms| format!("{ms} ms, "));
        let number = self.passed + self.failed.len() + 1;
        println!("test {name} ... {result} ({took}{number} of {})", self.all);
        for line in &output {
            if !passed || self.show_output || line.starts_with("SKIPPED:") {
                println!("{line}");
            }
        }
        match passed {
            true => self.passed += 1,
            false => self.failed.push((name.to_owned(), output)),
        }
        // A reader that is gone is noticed at the end.
        let _ = io::stdout().flush();
    }

    /// A test that could not run here.
    pub fn skip(&mut self, name: &str, why: &str) {
        self.record(name, true, None, vec![format!("SKIPPED: {name}: {why}")]);
    }

    /// A test that could not be begun.
    pub fn fail(&mut self, name: &str, why: &str) {
        self.record(name, false, None, vec![why.to_owned()]);
    }

    /// Prints the failures and the sums; whether all tests passed.
    pub fn close(&self, took: Duration) -> bool {
        let failed = self.failed.len();
        if failed > 0 {
            println!("\nfailures:");
            for (name, output) in &self.failed {
                println!("\n---- {name}");
                output.iter().for_each(|line| println!("{line}"));
            }
            println!("\nfailures:");
            let named = self.failed.iter();
            named.for_each(|(name, _)| println!("    {name}"));
        }
        let result = if failed == 0 { "ok" } else { "FAILED" };
        println!(
            "\ntest result: {result}. {} passed; {failed} failed; 0 ignored; 0 measured; {} filtered out; \
             finished in {:.2}s\n",
            self.passed,
            self.filtered,
            took.as_secs_f64()
        );
        failed == 0
    }
}
