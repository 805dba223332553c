//! Records in any order.

use shiftwork_model::{NotReadyReason, RandomStream};

use super::*;

/// Whatever records there are, in whatever order: nothing panics, and the parts of every late job add up.
#[test]
fn noise_is_explained_as_well_as_it_can_be() {
    let seeds = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 20_000,
        None => 100,
    };
    let mut explained = 0;
    for seed in 1..=seeds {
        let mut random = RandomStream::new(seed, 0, 0);
        let mut tape = Tape::on("1-2");
        let mut at_us = 0;
        for _ in 0..150 {
            at_us += random.below(30_000) * random.below(2);
            noise(&mut tape, at_us, &mut random);
        }
        tape.polls_until(at_us + 10_000);
        for since_ms in [0, 500, 1_500] {
            let recording = tape.all(since_ms * 1_000, None);
            let recording = Recording::read(&recording.trace()).unwrap();
            let analysis = RecordingAnalysis::new(&recording);
            for job in analysis.late() {
                let Some(report) = analysis.explain(job) else {
                    continue;
                };
                assert!(!report.text().is_empty());
                let it = report.explanation;
                let sum = it.parts.iter().fold(Span::ZERO, |sum, part| sum + part.1);
                assert_eq!(
                    sum,
                    it.until.late_since(it.release),
                    "seed {seed}, since {since_ms} ms, {job:?}"
                );
                explained += 1;
            }
        }
    }
    assert!(explained > 300, "{explained}");
}

fn noise(tape: &mut Tape, at_us: u64, random: &mut RandomStream) {
    let task = [A, B][random.below(2) as usize];
    let (cpu, job) = (1 + random.below(2) as usize, tape.job(task));
    let deadline = at(at_us + random.below(9_000));
    let cpus = CpuSet::from_bits(1 + random.below(15));
    match random.below(20) {
        0..=4 => tape.wakes(at_us, task, at_us + random.below(9_000)),
        5 | 6 => tape.blocks(at_us, task),
        7 => tape.tell(at_us, RecordKind::BudgetSpent { job }),
        8 => {
            let budget = Span::from_ms(1);
            let kind = RecordKind::Replenished {
                task,
                budget,
                deadline,
            };
            tape.tell(at_us, kind);
        }
        9..=11 => tape.begins(at_us, task, cpu),
        12..=14 => tape.stops(at_us, task, cpu),
        15 => tape.tell(at_us, RecordKind::Entered { task }),
        16 => tape.tell(at_us, RecordKind::Left { task }),
        17 => {
            let asked = Box::new(cpus);
            tape.tell(at_us, RecordKind::Demoted { task, asked });
            tape.tell(at_us, RecordKind::Left { task });
        }
        18 => {
            let reason = NotReadyReason::Throttled;
            tape.tell(at_us, RecordKind::NotReady { job, reason });
        }
        _ => {
            let [one, other] = [cpu, 3 - cpu].map(absences);
            let which = random.below(3) as usize;
            tape.tell(at_us, one[which].0.clone());
            tape.tell(at_us, other[which].1.clone());
        }
    }
    match random.below(60) {
        0 => tape.recorder.forget(task, at(at_us)),
        1 => {
            let other = reservation("1-2", 1 + random.below(9));
            tape.recorder.know(task, "other", 7, &other);
        }
        _ => {}
    }
}
