//! BPF instructions per event of the core: the same on every run and every machine.
//!
//! The object that the kernel loads runs in the interpreter of the tests, on the runs that the other
//! benchmarks use. A `may_goto` counts as the four instructions to which the kernel expands it. The
//! kernel's native code has about as many instructions, or a few more.
#![allow(missing_docs, reason = "a benchmark has no callers")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail where it stands")]

#[path = "../../policy/benches/workload/mod.rs"]
mod workload;

#[path = "../tests/bpf/compile.rs"]
#[allow(dead_code, reason = "one variant is enough")]
mod compile;
#[path = "../tests/bpf/machine.rs"]
mod machine;
#[path = "../tests/bpf/object.rs"]
#[allow(dead_code, reason = "only loading is needed")]
mod object;
#[path = "../tests/bpf/probe.rs"]
#[allow(dead_code, reason = "two events are enough")]
mod probe;

use machine::Machine;
use probe::{Event, Probe};
use shiftwork_model::TaskSet;
use shiftwork_policy::registry;
use workload::recording::{Step, record};
use workload::sets::{Case, Shape};

const STEPS: usize = 20_000;

fn main() {
    let Some(clang) = compile::clang() else {
        eprintln!(
            "SKIPPED: BPF instructions: there is no clang with the BPF target; install clang-19"
        );
        return;
    };
    let object = compile::compile(&clang, &["-mcpu=v3"], "counted.o");
    let reference = registry::find("strong-edf").unwrap();
    println!("BPF instructions per event, ten tasks per CPU");
    println!(
        "{:<26}{:>10}{:>8}{:>8}{:>8}{:>12}{:>8}{:>8}{:>8}",
        "", "wake mean", "p50", "p99", "max", "finish mean", "p50", "p99", "max"
    );
    for load in [75, 150] {
        for shape in [Shape::Global, Shape::ThreeLevel, Shape::Arbitrary] {
            for cpus in [4, 24, 64] {
                let case = Case::new(shape, cpus, load);
                let set = case.task_set();
                let recording = record(&set, reference, 50 * case.tasks, STEPS);
                let mut machine = Machine::load(&object);
                prepare(&mut machine, &set);
                for step in &recording.before {
                    probe(step).run(&mut machine);
                }
                let mut counts = [Vec::new(), Vec::new()];
                for step in &recording.steps {
                    let before = machine.count;
                    probe(step).run(&mut machine);
                    let is_finish = matches!(step, Step::Complete(_));
                    counts[usize::from(is_finish)].push(machine.count - before);
                }
                let name = format!("{load}%/{}/m={cpus}", shape.name());
                println!(
                    "{name:<26}{}  {}",
                    line(&mut counts[0]),
                    line(&mut counts[1])
                );
            }
        }
    }
}

/// All tasks enter.
fn prepare(machine: &mut Machine, set: &TaskSet) {
    let all = u64::MAX >> (64 - set.platform.cpus);
    for (id, task) in set.iter() {
        if id.index() == 0 {
            let init = Probe {
                priority: 0,
                mask: all,
                ..Probe::of(Event::Init, id)
            };
            init.run(machine);
        }
        let enter = Probe {
            mask: task.affinity.cpus().words()[0],
            ..Probe::of(Event::Enter, id)
        };
        enter.run(machine);
    }
}

fn probe(step: &Step) -> Probe {
    match step {
        Step::Wake(job) => Probe {
            now: job.ready.as_ns(),
            span: job.deadline.as_ns(),
            priority: job.priority.number(),
            ..Probe::of(Event::Arrive, job.task)
        },
        Step::Complete(task) => Probe::of(Event::Depart, *task),
    }
}

fn line(counts: &mut [u64]) -> String {
    counts.sort_unstable();
    let last = counts.len() - 1;
    let mean = counts.iter().sum::<u64>() / counts.len() as u64;
    let [p50, p99] = [50, 99].map(|percent| counts[last * percent / 100]);
    format!("{mean:>10}{p50:>8}{p99:>8}{:>8}", counts[last])
}
