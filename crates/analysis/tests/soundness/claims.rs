//! What each test claims, as bounds on response times under the policies that it speaks of. The list
//! of them is the one place where a test joins the campaign.

use shiftwork_analysis::affinity::{
    any_affinities, laminar_tardiness, nested_density, reduction_edf, reduction_fp,
    waiting_levels_edf, waiting_levels_fp,
};
use shiftwork_analysis::global_edf::{
    bak, bar, bcl, bcli, ffdbf, gfb, load, np_density, np_rta, rta,
};
use shiftwork_analysis::global_fp::{self, bertogna_cirinei, guan};
use shiftwork_analysis::response::{
    devi_anderson, devi_anderson_non_preemptive, gel, gel_with_points,
};
use shiftwork_analysis::speedup::speedup;
use shiftwork_analysis::uniprocessor::{
    edf_rta, fp_response_times, fp_rta, np_edf, np_fp_response_times, np_fp_rta, qpa,
};
use shiftwork_analysis::{NotShown, Outcome, Ranked, Sporadic, Steps};
use shiftwork_model::{CpuId, Order, Share, Span};

use super::system::{Shape, System};

/// Non-preemptive global EDF, decided directly: see `non_preemptive.rs`.
pub const BY_DEFINITION: &str = "np-g-edf by definition";

/// A test as the campaign sees it.
pub struct Claim {
    /// As in `analyze`.
    pub name: &'static str,
    /// The policies that it speaks of. Of `strong` and `hpa`, which run the same jobs, one; `analyze`
    /// is asked about both.
    pub policies: &'static [&'static str],
    /// Whether it speaks of such a system.
    pub takes: fn(&System) -> bool,
    /// No job takes longer than this from its release, by task; `None` if that is not shown.
    pub bounds: fn(&System) -> Option<Vec<Span>>,
}

/// Every test.
pub const CLAIMS: &[Claim] = &[
    Claim {
        name: "qpa",
        policies: &["p-edf"],
        takes: is_partitioned,
        bounds: |system| {
            on_each_cpu(system, |part| {
                pass(qpa(&sporadic(part), whole(), &mut steps()))
            })
        },
    },
    Claim {
        name: "fp-rta",
        policies: &["p-fp"],
        takes: is_partitioned,
        bounds: |system| on_each_cpu(system, |part| pass(fp_rta(part, whole(), &mut steps()))),
    },
    Claim {
        name: "edf-rta",
        policies: &["p-edf", "weak-edf", "strong-edf"],
        takes: is_partitioned,
        bounds: |system| {
            times_on_each_cpu(system, |part| {
                proof(edf_rta(&sporadic(part), whole(), &mut steps()))
            })
        },
    },
    Claim {
        name: "fp-response-times",
        policies: &["p-fp", "weak-fp", "strong-fp"],
        takes: is_partitioned,
        bounds: |system| {
            times_on_each_cpu(system, |part| {
                proof(fp_response_times(part, whole(), &mut steps()))
            })
        },
    },
    Claim {
        name: "reduction-fp",
        policies: &["weak-fp", "strong-fp"],
        takes: |_| true,
        bounds: |system| proof(reduction_fp(&system.bound(), whole(), &mut steps())),
    },
    Claim {
        name: "reduction-edf",
        policies: &["weak-edf", "strong-edf"],
        takes: |_| true,
        bounds: |system| proof(reduction_edf(&system.placed(), whole(), &mut steps())),
    },
    Claim {
        name: "waiting-levels-fp",
        policies: &["strong-fp"],
        takes: |_| true,
        bounds: |system| proof(waiting_levels_fp(&system.bound(), whole(), &mut steps())),
    },
    Claim {
        name: "waiting-levels-edf",
        policies: &["strong-edf"],
        takes: |_| true,
        bounds: |system| proof(waiting_levels_edf(&system.placed(), whole(), &mut steps())),
    },
    Claim {
        name: "speedup",
        policies: &["hpa-edf"],
        takes: System::is_laminar,
        bounds: |system| in_time(system, pass(speedup(&system.placed(), &mut steps()))),
    },
    Claim {
        name: "nested-density",
        policies: &["hpa-edf"],
        takes: System::is_laminar,
        bounds: |system| {
            in_time(
                system,
                pass(nested_density(&system.placed(), whole(), &mut steps())),
            )
        },
    },
    Claim {
        name: "any-affinities",
        policies: &["strong-edf"],
        takes: |_| true,
        bounds: |system| {
            let bounds = proof(any_affinities(&system.placed(), &mut steps()))?;
            bounds.into_iter().collect()
        },
    },
    Claim {
        name: "laminar-tardiness",
        policies: &["hpa-edf"],
        takes: System::is_laminar,
        bounds: |system| {
            let bounds = proof(laminar_tardiness(&system.placed(), &mut steps()))?;
            bounds.into_iter().collect()
        },
    },
    Claim {
        name: "gfb",
        policies: &["g-edf"],
        takes: is_global,
        bounds: |system| on_all(system, gfb),
    },
    Claim {
        name: "bak",
        policies: &["g-edf"],
        takes: is_global,
        bounds: |system| on_all(system, bak),
    },
    Claim {
        name: "bcl",
        policies: &["g-edf"],
        takes: is_global,
        bounds: |system| on_all(system, bcl),
    },
    Claim {
        name: "bar",
        policies: &["g-edf"],
        takes: is_global,
        bounds: |system| on_all(system, bar),
    },
    Claim {
        name: "ffdbf",
        policies: &["g-edf"],
        takes: is_global,
        bounds: |system| on_all(system, ffdbf),
    },
    Claim {
        name: "load",
        policies: &["g-edf"],
        takes: is_global,
        bounds: |system| on_all(system, load),
    },
    Claim {
        name: "bcli",
        policies: &["g-edf"],
        takes: is_global,
        bounds: |system| proof(bcli(&system.sporadic(), system.cpus, &mut steps())),
    },
    Claim {
        name: "rta",
        policies: &["g-edf"],
        takes: is_global,
        bounds: |system| proof(rta(&system.sporadic(), system.cpus, &mut steps())),
    },
    Claim {
        name: "guan",
        policies: &["g-fp"],
        takes: is_global,
        bounds: |system| proof(guan(&system.ranked(), system.cpus, &mut steps())),
    },
    Claim {
        name: "bc",
        policies: &["g-fp"],
        takes: is_global,
        bounds: |system| {
            proof(bertogna_cirinei(
                &system.ranked(),
                system.cpus,
                &mut steps(),
            ))
        },
    },
    Claim {
        name: "devi-anderson",
        policies: &["g-edf"],
        takes: is_global,
        bounds: |system| proof(devi_anderson(&system.sporadic(), system.cpus, &mut steps())),
    },
    Claim {
        name: "devi-anderson-np",
        policies: &["np-g-edf", BY_DEFINITION],
        takes: is_global,
        bounds: |system| {
            let tasks = system.sporadic();
            proof(devi_anderson_non_preemptive(
                &tasks,
                system.cpus,
                &mut steps(),
            ))
        },
    },
    Claim {
        name: "np-edf",
        policies: &["np-g-edf"],
        takes: is_one_cpu,
        bounds: |system| in_time(system, pass(np_edf(&system.sporadic(), &mut steps()))),
    },
    Claim {
        name: "np-fp-rta",
        policies: &["np-g-fp"],
        takes: is_one_cpu,
        bounds: |system| in_time(system, pass(np_fp_rta(&system.ranked(), &mut steps()))),
    },
    Claim {
        name: "np-fp-response-times",
        policies: &["np-g-fp"],
        takes: is_one_cpu,
        bounds: |system| proof(np_fp_response_times(&system.ranked(), &mut steps())),
    },
    Claim {
        name: "np-density",
        policies: &["np-g-edf"],
        takes: is_global,
        bounds: |system| on_all(system, np_density),
    },
    Claim {
        name: "np-rta-edf",
        policies: &["np-g-edf"],
        takes: is_global,
        bounds: |system| proof(np_rta(&system.sporadic(), system.cpus, &mut steps())),
    },
    Claim {
        name: "np-rta-fp",
        policies: &["np-g-fp"],
        takes: is_global,
        bounds: |system| {
            proof(global_fp::np_rta(
                &system.ranked(),
                system.cpus,
                &mut steps(),
            ))
        },
    },
    Claim {
        name: "gel",
        policies: &["g-edf"],
        takes: is_global,
        bounds: |system| proof(gel(&system.sporadic(), system.cpus, &mut steps())),
    },
    Claim {
        name: "gel, fair lateness",
        policies: &["g-fl"],
        takes: is_global,
        bounds: |system| {
            let cpus = system.cpus;
            let point = |task: &Sporadic| {
                Order::FairLateness.relative_deadline(task.cost, task.deadline, cpus)
            };
            proof(gel_with_points(
                &system.sporadic(),
                cpus,
                point,
                &mut steps(),
            ))
        },
    },
    Claim {
        name: "global EDF, of EDZL",
        policies: &["edzl"],
        takes: |system| is_global(system) && is_constrained(system),
        bounds: |system| {
            let of_edf = [gfb, bak, bcl, bar, ffdbf, load];
            let tests = of_edf.into_iter();
            let shown = tests.filter_map(|test| on_all(system, test)).next();
            let tasks = system.sporadic();
            shown
                .or_else(|| proof(bcli(&tasks, system.cpus, &mut steps())))
                .or_else(|| proof(rta(&tasks, system.cpus, &mut steps())))
        },
    },
];

/// Enough for nearly all systems here; what needs more makes no claim.
fn steps() -> Steps {
    Steps::at_most(20_000)
}

fn whole() -> Share {
    Share::from_billionths(Share::WHOLE).expect("a whole is a share")
}

fn is_global(system: &System) -> bool {
    system.shape == Shape::Global
}

fn is_one_cpu(system: &System) -> bool {
    is_global(system) && system.cpus == 1
}

fn is_constrained(system: &System) -> bool {
    let mut tasks = system.members.iter().map(|member| &member.task);
    tasks.all(|task| task.deadline <= task.period)
}

fn is_partitioned(system: &System) -> bool {
    system.members.iter().all(|member| member.cpus.len() == 1)
}

fn sporadic(ranked: &[Ranked]) -> Vec<Sporadic> {
    ranked.iter().map(|ranked| ranked.task).collect()
}

fn pass<Failure, Proof>(outcome: Outcome<Failure, Proof>) -> bool {
    matches!(outcome, Outcome::Pass(_))
}

fn proof<Failure, Proof>(outcome: Outcome<Failure, Proof>) -> Option<Proof> {
    match outcome {
        Outcome::Pass(bounds) => Some(bounds),
        _ => None,
    }
}

/// Every job meets its deadline, if `shown`.
fn in_time(system: &System, shown: bool) -> Option<Vec<Span>> {
    let deadlines = system.members.iter().map(|member| member.task.deadline);
    shown.then(|| deadlines.collect())
}

/// Every job meets its deadline under global EDF, if this test shows it.
fn on_all(
    system: &System,
    test: fn(&[Sporadic], usize, &mut Steps) -> Outcome<NotShown>,
) -> Option<Vec<Span>> {
    in_time(
        system,
        pass(test(&system.sporadic(), system.cpus, &mut steps())),
    )
}

/// Every job meets its deadline, if that is shown of the tasks of each CPU.
fn on_each_cpu(system: &System, shown: impl Fn(&[Ranked]) -> bool) -> Option<Vec<Span>> {
    let alone = |cpu| {
        alone(system, cpu)
            .into_iter()
            .unzip::<_, _, Vec<_>, Vec<_>>()
            .1
    };
    in_time(system, (0..system.cpus).all(|cpu| shown(&alone(cpu))))
}

/// The response times of the tasks of each CPU, if they have any.
fn times_on_each_cpu(
    system: &System,
    times: impl Fn(&[Ranked]) -> Option<Vec<Span>>,
) -> Option<Vec<Span>> {
    let mut all = vec![Span::ZERO; system.members.len()];
    for cpu in 0..system.cpus {
        let (places, part): (Vec<usize>, Vec<Ranked>) = alone(system, cpu).into_iter().unzip();
        for (place, time) in places.into_iter().zip(times(&part)?) {
            all[place] = time;
        }
    }
    Some(all)
}

/// The tasks of a CPU, with their places.
fn alone(system: &System, cpu: usize) -> Vec<(usize, Ranked)> {
    let ranked = system.ranked().into_iter().enumerate();
    let there =
        |&(place, _): &(usize, Ranked)| system.members[place].cpus.contains(CpuId::from_index(cpu));
    ranked.filter(there).collect()
}
