//! What scheduling takes where an agent decides, under several policies, on task sets like those of V. Bonifaci et
//! al., ECRTS 2016, Section V: the quantities of their Fig. 1.
//!
//! What is printed here in lines that begin with `OVERHEADS` becomes a table of docs/papers.

use shiftwork_model::{Affinity, Span, TaskSet};
use shiftwork_taskset::generate::{self, Key, Periods, Shape, Spread, Utilizations};
use shiftwork_trace::Distribution;

use crate::running::run_by_agent;

/// The paper's baseline, ours, and the paper's own.
const POLICIES: [&str; 3] = ["g-fp", "hpa-fp", "hpa-fp-ecrts16"];

/// The CPUs that run jobs; one more decides.
const CPUS: usize = 3;

/// What was measured of one quantity.
#[derive(Default)]
struct Samples {
    count: u64,
    spans: Distribution,
}

impl Samples {
    fn add(&mut self, spans: &[Span]) {
        self.count += spans.len() as u64;
        spans.iter().for_each(|&span| self.spans.add(span));
    }

    fn percentile_ns(&self, permille: u64) -> u64 {
        let rank = (self.count * permille).div_ceil(1_000);
        self.spans.ranked_ns(rank).unwrap_or(0)
    }

    fn line(&self, policy: &str, what: &str) -> String {
        let [median, p95, p99, p99_9] = [500, 950, 990, 999].map(|p| self.percentile_ns(p));
        let (count, mean, max) = (
            self.count,
            self.spans.mean_ns(self.count),
            self.spans.max_ns(),
        );
        format!("OVERHEADS {policy} {what} {count} {mean} {median} {p95} {p99} {p99_9} {max}")
    }
}

/// Prints both quantities of each policy. There are at least as many
/// decisions as jobs, and none of the records is lost.
pub fn overheads_under_an_agent_are_those_of_its_policy() -> Result<(), String> {
    let (sets, seconds) = if crate::long() { (6, 3) } else { (1, 2) };
    for policy in POLICIES {
        let (mut scheduling, mut dispatch) = (Samples::default(), Samples::default());
        let mut jobs = 0;
        for index in 0..sets {
            let mut set = set(index)?;
            if policy == "g-fp" {
                let all = Affinity::new(set.platform.all()).ok_or("a platform has CPUs")?;
                set.tasks.iter_mut().for_each(|task| task.affinity = all);
            }
            let file = shiftwork_taskset::write(&set);
            let ran = run_by_agent(&file, policy, Span::from_s(seconds))?;
            let overheads = ran.report.overheads.ok_or("no overheads were measured")?;
            scheduling.add(&overheads.scheduling);
            dispatch.add(&overheads.dispatch);
            let completed = ran.summary.tasks.iter().map(|task| task.completed);
            jobs += completed.sum::<u64>();
        }
        println!("{}", scheduling.line(policy, "scheduling"));
        println!("{}", dispatch.line(policy, "dispatch"));
        let median = Span::from_ns(scheduling.percentile_ns(500));
        if jobs < 100 || scheduling.count < jobs || dispatch.count < jobs {
            let (scheduling, dispatch) = (scheduling.count, dispatch.count);
            return Err(format!(
                "{policy}: {jobs} jobs, {scheduling} decisions, {dispatch} of dispatchers"
            ));
        }
        // A few times what it takes even in builds that check themselves.
        if median > Span::from_us(200) {
            return Err(format!("{policy}: half of the decisions took {median}"));
        }
    }
    Ok(())
}

/// A set as in the paper, for these CPUs: three quarters used, costs of at least 500 us, each task as likely
/// global, bound to a group of CPUs or bound to one.
fn set(index: u64) -> Result<TaskSet, String> {
    let options = generate::Options {
        cpus: CPUS,
        utilizations: Utilizations::RandFixedSum {
            tasks: 4 * CPUS,
            total: 0.75 * CPUS as f64,
        },
        periods: Periods {
            shortest: Span::from_ms(1),
            longest: Span::from_ms(1_000),
            granularity: Span::from_us(1),
            spread: Spread::LogUniform,
        },
        shape: Shape::ThreeLevel(2),
        min_cost: Span::from_us(500),
        feasible: true,
        ..generate::Options::default()
    };
    let key = Key {
        seed: 2016,
        cell: 3,
        index,
    };
    generate::generate(&options, key).map_err(|error| error.to_string())
}
