//! Every schedulability test under a common signature, and what holds of every answer.

use shiftwork_analysis::affinity::{
    Bound, any_affinities, laminar_tardiness, nested_density, reduction_edf, reduction_fp,
    waiting_levels_edf, waiting_levels_edf_with_suspensions, waiting_levels_fp,
    waiting_levels_fp_with_suspensions,
};
use shiftwork_analysis::global_edf::{
    bak, bar, bcl, bcli, ffdbf, gfb, load, np_density, np_rta, rta,
};
use shiftwork_analysis::global_fp::{self, bertogna_cirinei, guan};
use shiftwork_analysis::pfair::{Quanta, pfair};
use shiftwork_analysis::response::{devi_anderson, devi_anderson_non_preemptive, gel};
use shiftwork_analysis::speedup::speedup;
use shiftwork_analysis::uniprocessor::{
    edf_rta, fp_response_times, fp_rta, np_edf, np_fp_response_times, np_fp_rta, qpa,
};
use shiftwork_analysis::{NotShown, Outcome, Placed, Ranked, Sporadic, Steps};
use shiftwork_model::{CpuSet, Priority, Share, Span};

/// What a test said, whatever the test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// With bounds on response times, if it gives any.
    Pass(Option<Vec<Span>>),
    /// With the place of a task, if it names one.
    Fail(Option<usize>),
    StepLimit,
}

/// A test under a common signature.
pub(super) struct Tested {
    pub(super) name: &'static str,
    /// Whether passing means that all deadlines are met, rather than that lateness is bounded.
    pub(super) hard: bool,
    /// Whether it is about one CPU, whatever number is given.
    pub(super) one_cpu: bool,
    pub(super) run: fn(&[Sporadic], usize, &mut Steps) -> Answer,
}

pub(super) const TESTED: &[Tested] = &[
    Tested {
        name: "qpa",
        hard: true,
        one_cpu: true,
        run: |tasks, _, steps| plain(qpa(tasks, whole(), steps)),
    },
    Tested {
        name: "fp-rta",
        hard: true,
        one_cpu: true,
        run: |tasks, _, steps| match fp_rta(&ranked(tasks), whole(), steps) {
            Outcome::Pass(()) => Answer::Pass(None),
            Outcome::Fail(late) => Answer::Fail(Some(late.place)),
            Outcome::StepLimit => Answer::StepLimit,
        },
    },
    Tested {
        name: "edf-rta",
        hard: false,
        one_cpu: true,
        run: |tasks, _, steps| proven(edf_rta(tasks, whole(), steps)),
    },
    Tested {
        name: "fp-response-times",
        hard: false,
        one_cpu: true,
        run: |tasks, _, steps| proven(fp_response_times(&ranked(tasks), whole(), steps)),
    },
    Tested {
        name: "gfb",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| shown(gfb(tasks, cpus, steps)),
    },
    Tested {
        name: "bak",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| shown(bak(tasks, cpus, steps)),
    },
    Tested {
        name: "bcl",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| shown(bcl(tasks, cpus, steps)),
    },
    Tested {
        name: "bar",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| shown(bar(tasks, cpus, steps)),
    },
    Tested {
        name: "ffdbf",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| shown(ffdbf(tasks, cpus, steps)),
    },
    Tested {
        name: "load",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| shown(load(tasks, cpus, steps)),
    },
    Tested {
        name: "bcli",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(bcli(tasks, cpus, steps)),
    },
    Tested {
        name: "rta",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(rta(tasks, cpus, steps)),
    },
    Tested {
        name: "devi-anderson",
        hard: false,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(devi_anderson(tasks, cpus, steps)),
    },
    Tested {
        name: "np-edf",
        hard: true,
        one_cpu: true,
        run: |tasks, _, steps| plain(np_edf(tasks, steps)),
    },
    Tested {
        name: "np-fp-rta",
        hard: true,
        one_cpu: true,
        run: |tasks, _, steps| match np_fp_rta(&ranked(tasks), steps) {
            Outcome::Pass(()) => Answer::Pass(None),
            Outcome::Fail(late) => Answer::Fail(Some(late.place)),
            Outcome::StepLimit => Answer::StepLimit,
        },
    },
    Tested {
        name: "np-fp-response-times",
        hard: false,
        one_cpu: true,
        run: |tasks, _, steps| proven(np_fp_response_times(&ranked(tasks), steps)),
    },
    Tested {
        name: "np-density",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| shown(np_density(tasks, cpus, steps)),
    },
    Tested {
        name: "np-rta-edf",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(np_rta(tasks, cpus, steps)),
    },
    Tested {
        name: "np-rta-fp",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(global_fp::np_rta(&ranked(tasks), cpus, steps)),
    },
    Tested {
        name: "devi-anderson-np",
        hard: false,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(devi_anderson_non_preemptive(tasks, cpus, steps)),
    },
    Tested {
        name: "gel",
        hard: false,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(gel(tasks, cpus, steps)),
    },
    Tested {
        name: "guan",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(guan(&ranked(tasks), cpus, steps)),
    },
    Tested {
        name: "bc",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(bertogna_cirinei(&ranked(tasks), cpus, steps)),
    },
    Tested {
        name: "reduction-fp",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(reduction_fp(&bound(tasks, cpus), whole(), steps)),
    },
    Tested {
        name: "reduction-edf",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(reduction_edf(&placed(tasks, cpus), whole(), steps)),
    },
    Tested {
        name: "waiting-levels-fp",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(waiting_levels_fp(&bound(tasks, cpus), whole(), steps)),
    },
    Tested {
        name: "waiting-levels-edf",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(waiting_levels_edf(&placed(tasks, cpus), whole(), steps)),
    },
    Tested {
        name: "waiting-levels-fp, with suspensions",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| {
            proven(waiting_levels_fp_with_suspensions(
                &bound(tasks, cpus),
                &suspensions(tasks),
                whole(),
                steps,
            ))
        },
    },
    Tested {
        name: "waiting-levels-edf, with suspensions",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| {
            proven(waiting_levels_edf_with_suspensions(
                &placed(tasks, cpus),
                &suspensions(tasks),
                whole(),
                steps,
            ))
        },
    },
    Tested {
        name: "laminar-tardiness",
        hard: false,
        one_cpu: false,
        run: |tasks, cpus, steps| known(laminar_tardiness(&placed(tasks, cpus), steps)),
    },
    Tested {
        name: "any-affinities",
        hard: false,
        one_cpu: false,
        run: |tasks, cpus, steps| known(any_affinities(&placed(tasks, cpus), steps)),
    },
    Tested {
        name: "nested-density",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| shown(nested_density(&placed(tasks, cpus), whole(), steps)),
    },
    Tested {
        name: "speedup",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| shown(speedup(&placed(tasks, cpus), steps)),
    },
    Tested {
        name: "pfair",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| shown(pfair(tasks, cpus, &quanta(false), steps)),
    },
    Tested {
        name: "pfair, staggered",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| shown(pfair(tasks, cpus, &quanta(true), steps)),
    },
];

fn plain<Failure>(outcome: Outcome<Failure>) -> Answer {
    match outcome {
        Outcome::Pass(()) => Answer::Pass(None),
        Outcome::Fail(_) => Answer::Fail(None),
        Outcome::StepLimit => Answer::StepLimit,
    }
}

fn shown(outcome: Outcome<NotShown>) -> Answer {
    match outcome {
        Outcome::Pass(()) => Answer::Pass(None),
        Outcome::Fail(not_shown) => Answer::Fail(Some(not_shown.place)),
        Outcome::StepLimit => Answer::StepLimit,
    }
}

fn proven(outcome: Outcome<NotShown, Vec<Span>>) -> Answer {
    match outcome {
        Outcome::Pass(bounds) => Answer::Pass(Some(bounds)),
        Outcome::Fail(not_shown) => Answer::Fail(Some(not_shown.place)),
        Outcome::StepLimit => Answer::StepLimit,
    }
}

/// Bounds of which some may be missing.
fn known(outcome: Outcome<NotShown, Vec<Option<Span>>>) -> Answer {
    match outcome {
        Outcome::Pass(bounds) => Answer::Pass(bounds.into_iter().collect()),
        Outcome::Fail(not_shown) => Answer::Fail(Some(not_shown.place)),
        Outcome::StepLimit => Answer::StepLimit,
    }
}

/// Quanta of a nanosecond, and no luck with releases.
const fn quanta(staggered: bool) -> Quanta {
    Quanta {
        quantum: Span::from_ns(1),
        staggered,
        aligned: false,
    }
}

fn whole() -> Share {
    Share::from_billionths(Share::WHOLE).unwrap()
}

/// With priorities in the order of the tasks.
fn ranked(tasks: &[Sporadic]) -> Vec<Ranked> {
    let ranks = (1..).map(|rank| Priority::new(rank).unwrap());
    let ranked = tasks.iter().zip(ranks);
    ranked
        .map(|(&task, priority)| Ranked { task, priority })
        .collect()
}

fn bound(tasks: &[Sporadic], cpus: usize) -> Vec<Bound> {
    let ranked = ranked(tasks).into_iter();
    ranked
        .map(|ranked| Bound {
            ranked,
            cpus: CpuSet::first(cpus),
        })
        .collect()
}

/// As long as the deadline leaves time, or as the period, or none.
fn suspensions(tasks: &[Sporadic]) -> Vec<Span> {
    let of = |(place, task): (usize, &Sporadic)| match place % 3 {
        0 => task.deadline.saturating_sub(task.cost),
        1 => task.period,
        _ => Span::ZERO,
    };
    tasks.iter().enumerate().map(of).collect()
}

/// Nested affinities: all CPUs, the first half, the first.
fn placed(tasks: &[Sporadic], cpus: usize) -> Vec<Placed> {
    let counts = [cpus, cpus.div_ceil(2), cpus.min(1)].into_iter().cycle();
    let placed = tasks.iter().zip(counts);
    placed
        .map(|(&task, count)| Placed {
            task,
            cpus: CpuSet::first(count),
        })
        .collect()
}

/// What holds of every answer of a sufficient test.
pub(super) fn check(tested: &Tested, tasks: &[Sporadic], cpus: usize, answer: &Answer) {
    let context = || format!("{}, {cpus} CPUs, {tasks:?}: {answer:?}", tested.name);
    match answer {
        Answer::Pass(bounds) => {
            for task in tasks {
                let is_a_task = ![task.cost, task.period, task.deadline].contains(&Span::ZERO);
                assert!(is_a_task, "there is no such task: {}", context());
                assert!(task.cost <= task.period, "{}", context());
                assert!(!tested.hard || task.cost <= task.deadline, "{}", context());
            }
            assert!(
                tasks.is_empty() || cpus > 0 || tested.one_cpu,
                "{}",
                context()
            );
            let Some(bounds) = bounds else { return };
            assert_eq!(bounds.len(), tasks.len(), "{}", context());
            for (&bound, task) in bounds.iter().zip(tasks) {
                assert!(bound >= task.cost, "{}", context());
                assert!(!tested.hard || bound <= task.deadline, "{}", context());
            }
        }
        Answer::Fail(place) => {
            assert!(!tasks.is_empty(), "no task to fail: {}", context());
            assert!(
                place.is_none_or(|place| place < tasks.len()),
                "{}",
                context()
            );
        }
        Answer::StepLimit => {}
    }
}
