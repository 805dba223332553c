//! What is promised about the speed of policies, measured side by side in one run, with a verdict
//! for each promise. Exits with 1 if one is missed.
//!
//! Policies that are compared take turns on the same events, and the best of several turns counts,
//! in CPU time: what else the machine does hits all alike. After `--counts DIR` it also reads the
//! instruction counts that the benchmark `instructions` has left below DIR.

mod workload;

use std::process::ExitCode;

use shiftwork_model::Span;
use shiftwork_policy::registry::{self, Entry};

use workload::clock::cpu_time;
use workload::counted::{EVENTS, counted, growth};
use workload::counts::Counts;
use workload::recording::record;
use workload::replay::Replay;
use workload::runs::{Library, SIZES};
use workload::sets::{Case, Shape};

fn main() -> ExitCode {
    let mut report = Report {
        library: Library::new(),
        counts: Counts::read(std::env::args().skip_while(|arg| arg != "--counts").nth(1)),
        missed: 0,
    };
    report.ours_against_the_published();
    report.with_long_backlogs();
    report.arbitrary_masks();
    report.growth();
    report.shifts();
    println!("\n{} promises missed", report.missed);
    ExitCode::from(u8::from(report.missed > 0))
}

fn policy(name: &str) -> &'static Entry {
    registry::find(name).expect("the registry has this policy")
}

/// Turns that each policy gets; the best counts.
const TURNS: usize = 7;

/// Events of a turn, and less if they take too long.
const TURN: usize = 20_000;
const LONGEST_TURN_NS: f64 = 60e6;

struct Report {
    library: Library,
    counts: Counts,
    missed: usize,
}

impl Report {
    /// Nanoseconds per event of each policy on the same run.
    fn measure(&mut self, case: &Case, policies: &[&str]) -> Vec<f64> {
        let runs: Vec<_> = policies
            .iter()
            .map(|name| (policy(name), self.library.get(case, policy(name))))
            .collect();
        let mut replays: Vec<Replay<'_>> = runs
            .iter()
            .map(|(entry, run)| Replay::new(entry, run).check_same_run())
            .collect();
        let mut best = vec![f64::MAX; policies.len()];
        let mut events = vec![PROBE; policies.len()];
        for turn in 0..=TURNS {
            for (index, replay) in replays.iter_mut().enumerate() {
                let time = turn_of(replay, events[index]);
                if turn == 0 {
                    events[index] = ((LONGEST_TURN_NS / time) as usize).clamp(PROBE, TURN);
                } else {
                    best[index] = best[index].min(time);
                }
            }
        }
        best
    }

    fn verdict(&mut self, kept: bool) -> &'static str {
        self.missed += usize::from(!kept);
        if kept { "kept" } else { "MISSED" }
    }

    fn ours_against_the_published(&mut self) {
        println!("Three levels, 75% load, n = 10 m: nanoseconds per event");
        println!("    m  hpa-edf  ecrts16     alg4   ratio  promised");
        let promised = |cpus| match cpus {
            24 => Some(3.0),
            64 => Some(10.0),
            1024 => Some(50.0),
            _ => None,
        };
        for cpus in SIZES {
            let case = Case::new(Shape::ThreeLevel, cpus, 75);
            let names = ["hpa-edf", "hpa-edf-ecrts16", "hpa-edf-ecrts16-alg4"];
            let times = self.measure(&case, &names);
            let ratio = times[1] / times[0];
            print!(
                "{cpus:5} {:8.1} {:8.0} {:8.0} {ratio:6.1}x",
                times[0], times[1], times[2]
            );
            if let Some(least) = promised(cpus) {
                print!("  at least {least}x: {}", self.verdict(ratio >= least));
            }
            if cpus == 24 {
                let kept = self.verdict(times[0] < 200.0);
                print!("; hpa-edf below 200 ns: {kept}");
            }
            println!();
        }
    }

    fn with_long_backlogs(&mut self) {
        println!(
            "\nThree levels, 150% load (backlogs of 2 to 8 jobs per CPU): nanoseconds per event"
        );
        println!(
            "    m  hpa-edf  ecrts16   ratio  strong-edf   hpa-fp  ecrts16   ratio  strong-fp"
        );
        for cpus in [4, 8, 24, 64] {
            let case = Case::new(Shape::ThreeLevel, cpus, 150);
            let edf = self.measure(&case, &["hpa-edf", "hpa-edf-ecrts16", "strong-edf"]);
            let fp = self.measure(&case, &["hpa-fp", "hpa-fp-ecrts16", "strong-fp"]);
            println!(
                "{cpus:5} {:8.1} {:8.0} {:6.1}x {:11.0} {:8.1} {:8.0} {:6.1}x {:10.0}",
                edf[0],
                edf[1],
                edf[1] / edf[0],
                edf[2],
                fp[0],
                fp[1],
                fp[1] / fp[0],
                fp[2]
            );
        }
    }

    fn arbitrary_masks(&mut self) {
        println!("\nArbitrary masks, 75% load, n = 10 m: nanoseconds per event");
        println!("    m  strong-edf  strong-fp  emsoft21   ratio");
        for cpus in [4, 8, 24, 64] {
            let case = Case::new(Shape::Arbitrary, cpus, 75);
            let edf = self.measure(&case, &["strong-edf"])[0];
            let fp = self.measure(&case, &["strong-fp", "strong-fp-emsoft21"]);
            print!(
                "{cpus:5} {edf:11.1} {:10.1} {:9.0} {:6.1}x",
                fp[0],
                fp[1],
                fp[1] / fp[0]
            );
            if cpus == 64 {
                print!("  strong-edf below 1000 ns: {}", self.verdict(edf < 1000.0));
            }
            println!();
        }
    }

    fn growth(&mut self) {
        println!("\nWhat hpa-edf grows with: 75% load, wake and complete together");
        println!("affinities      m      n     ns  instructions per event");
        for case in growth() {
            let time = self.measure(&case, &["hpa-edf"])[0];
            let counted = counted();
            let counts = |kind| {
                let position = counted.iter().position(|count| {
                    count.kind == kind
                        && count.policy.name == "hpa-edf"
                        && format!("{:?}", count.case) == format!("{case:?}")
                })?;
                self.counts.get(position)
            };
            let instructions = counts(workload::counted::Kind::Wake)
                .zip(counts(workload::counted::Kind::Complete))
                .map_or("not counted".into(), |(wake, complete)| {
                    format!("{:.0}", (wake + complete) as f64 / (2 * EVENTS) as f64)
                });
            println!(
                "{:12} {:4} {:6} {time:6.1}  {instructions}",
                case.shape.name(),
                case.cpus,
                case.tasks
            );
        }
    }

    /// On the workload of Bonifaci et al.: 100 task sets.
    fn shifts(&mut self) {
        println!("\nShifts per 1000 events on the paper's workload (24 CPUs, 100 task sets)");
        for order in ["edf", "fp"] {
            let names: Vec<String> = ["hpa-O", "strong-O", "hpa-O-ecrts16", "hpa-O-ecrts16-alg4"]
                .into_iter()
                .map(|name| name.replace('O', order))
                .chain((order == "fp").then(|| "strong-fp-emsoft21".into()))
                .collect();
            let shifts: Vec<u64> = names.iter().map(|name| shifts_of(policy(name))).collect();
            for (name, count) in names.iter().zip(&shifts) {
                println!(
                    "{name:22} {:6.1}  {:.3} of hpa-{order}",
                    *count as f64 * 1000.0 / (SHIFT_EVENTS * 100) as f64,
                    *count as f64 / shifts[0] as f64
                );
            }
            let fewest = shifts[0] <= *shifts[2..].iter().min().expect("others were counted");
            println!("hpa-{order} shifts least: {}", self.verdict(fewest));
        }
    }
}

/// Events from which the length of a turn is taken.
const PROBE: usize = 500;

/// Events per task set in which shifts are counted.
const SHIFT_EVENTS: usize = 10_000;

/// Nanoseconds per event.
fn turn_of(replay: &mut Replay<'_>, events: usize) -> f64 {
    if replay.left() < events {
        replay.advance(usize::MAX);
        replay.rewind();
    }
    let start = cpu_time();
    replay.advance(events);
    (cpu_time() - start).as_nanos() as f64 / events as f64
}

fn shifts_of(policy: &Entry) -> u64 {
    let sets = [75, 85].into_iter().flat_map(|load| {
        (1..=5).flat_map(move |doubles| (1..=10).map(move |seed| (load, 48 * doubles, seed)))
    });
    sets.map(|(load, tasks, seed)| {
        let case = Case {
            tasks,
            seed,
            shortest_cost: Span::from_us(500),
            ..Case::new(Shape::ThreeLevel, 24, load)
        };
        record(&case.task_set(), policy, SHIFT_EVENTS, SHIFT_EVENTS).shifts
    })
    .sum()
}
