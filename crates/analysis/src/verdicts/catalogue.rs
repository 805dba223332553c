//! The one table of tests: what each is called, of what it speaks, and how it is asked.
//!
//! A new test is one file elsewhere in this crate and one entry here. Within a criterion the entries are
//! in the order of their cost, so that the first that passes is the cheapest; before them are those that are
//! asked for response times alone, so that exact times are not put down to a test with the same bound.

mod domain;
mod non_preemptive;

use crate::policy::{
    is_by_affinity, is_edf, is_fair_lateness, is_fp, is_non_preemptive, is_semi_partitioned,
    is_zero_laxity, pfair as pfair_of, shifts,
};
use shiftwork_model::{Alignment, PolicyTraits};

use self::domain::{
    any, fitting_is_enough, globally, is_partitioned, is_partitioned_edf, is_partitioned_fp,
    on_one_cpu,
};
use super::ask::{
    Ask, ask_bertogna_cirinei, ask_edf_times, ask_fair_lateness, ask_fit, ask_fp_rta, ask_fp_times,
    ask_packing, ask_qpa, ask_rta, ask_waiting_levels_edf, ask_waiting_levels_fp, with_bounds,
    with_known_bounds, without_bounds,
};
use super::case::{Case, Deadlines, Shape};
use crate::affinity::{
    Rounding, any_affinities, laminar_tardiness, nested_density, reduction_edf, reduction_fp, spl,
};
use crate::exact::{beside, whole};
use crate::global_edf::{bak, bar, bcl, bcli, ffdbf, gfb, load};
use crate::global_fp::guan;
use crate::pfair::{pfair, pfair_responses};
use crate::response::{devi_anderson, gel};
use crate::speedup::speedup;

/// What is asked of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Criterion {
    /// All deadlines are met.
    Hard,
    /// Tardiness is bounded.
    Soft,
}

impl Criterion {
    /// The name in JSON: `hard` or `soft`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hard => "hard",
            Self::Soft => "soft",
        }
    }
}

/// How a test is asked.
#[derive(Clone, Copy)]
pub(super) enum Asked {
    /// About each part on its own, with the CPUs to which the policy binds the tasks.
    Parts(Ask),
    /// About all tasks at once, with the CPUs that they ask for.
    Whole(Ask),
    /// The same, and a pass shows what could be done, not what this policy does.
    Aside(Ask),
    /// About each part, for the response times alone: verdicts are those of other tests, which cost less.
    Times(Ask),
}

impl Asked {
    /// The question itself.
    pub const fn question(self) -> Ask {
        let (Self::Parts(ask) | Self::Whole(ask) | Self::Aside(ask) | Self::Times(ask)) = self;
        ask
    }
}

/// One published test.
#[derive(Clone, Copy)]
pub struct Test {
    /// The name in JSON and tables.
    pub name: &'static str,
    /// What a pass shows.
    pub criterion: Criterion,
    /// The most general deadlines that it takes.
    pub deadlines: Deadlines,
    /// When a failure shows that some job is late, in words; `None` if never.
    pub exact: Option<&'static str>,
    /// Where it comes from.
    pub source: &'static str,
    speaks_of: fn(&PolicyTraits) -> bool,
    takes: fn(&PolicyTraits, &Case) -> bool,
    pub(super) asked: Asked,
}

impl Test {
    /// Whether the test says anything about policies like this.
    pub fn speaks_of(&self, policy: &PolicyTraits) -> bool {
        (self.speaks_of)(policy)
    }

    /// Whether it is asked for response times alone.
    pub(super) const fn is_for_times(&self) -> bool {
        matches!(self.asked, Asked::Times(_))
    }

    /// Whether the tasks are within its domain.
    pub(super) fn takes(&self, policy: &PolicyTraits, case: &Case) -> bool {
        case.deadlines <= self.deadlines && (self.takes)(policy, case)
    }
}

/// All tests.
pub const TESTS: &[Test] = &[
    Test {
        name: "qpa",
        criterion: Criterion::Hard,
        deadlines: Deadlines::Arbitrary,
        exact: Some("one CPU"),
        source: "Zhang, Burns, IEEE Transactions on Computers 58(9), 2009; with suspensions docs/theory/suspensions.md, Theorems 3 and 4, not refereed",
        speaks_of: is_edf,
        takes: on_one_cpu,
        asked: Asked::Parts(ask_qpa),
    },
    Test {
        name: "fp-rta",
        criterion: Criterion::Hard,
        deadlines: Deadlines::Arbitrary,
        exact: Some("one CPU, distinct priorities"),
        source: "Joseph, Pandya, The Computer Journal 29(5), 1986; Lehoczky, RTSS 1990; with suspensions Chen, Nelissen, Huang, ECRTS 2016",
        speaks_of: is_fp,
        takes: on_one_cpu,
        asked: Asked::Parts(ask_fp_rta),
    },
    non_preemptive::NP_EDF,
    non_preemptive::NP_FP_RTA,
    Test {
        name: "edf-rta",
        source: "Spuri, INRIA RR-2772, 1996; Guan, Yi, DATE 2014; with suspensions docs/theory/suspensions.md, Theorem 4, not refereed",
        ..times_on_one_cpu(is_edf, ask_edf_times)
    },
    Test {
        name: "fp-rta",
        source: "Lehoczky, RTSS 1990; with suspensions Chen, Nelissen, Huang, ECRTS 2016",
        ..times_on_one_cpu(is_fp, ask_fp_times)
    },
    non_preemptive::NP_FP_TIMES,
    Test {
        source: "Goossens, Funk, Baruah, Real-Time Systems 25, 2003",
        ..global_edf("gfb", |case, steps| {
            without_bounds(gfb(&case.tasks, case.cpus.len(), steps))
        })
    },
    Test {
        name: "nested-density",
        criterion: Criterion::Hard,
        deadlines: Deadlines::Arbitrary,
        exact: None,
        source: "docs/theory/strong-edf.md, Theorem 1, not refereed",
        speaks_of: |policy| is_edf(policy) && shifts(policy),
        takes: |_, case| case.shape != Shape::Overlapping,
        asked: Asked::Parts(|case, steps| {
            without_bounds(nested_density(&case.placed(), whole(), steps))
        }),
    },
    Test {
        source: "Baruah, Baker, Real-Time Systems 41, 2009",
        ..global_edf("load", |case, steps| {
            without_bounds(load(&case.tasks, case.cpus.len(), steps))
        })
    },
    Test {
        deadlines: Deadlines::Constrained,
        source: "Baker, RTSS 2003",
        ..global_edf("bak", |case, steps| {
            without_bounds(bak(&case.tasks, case.cpus.len(), steps))
        })
    },
    Test {
        deadlines: Deadlines::Constrained,
        source: "Bertogna, Cirinei, Lipari, ECRTS 2005",
        ..global_edf("bcl", |case, steps| {
            without_bounds(bcl(&case.tasks, case.cpus.len(), steps))
        })
    },
    Test {
        deadlines: Deadlines::Constrained,
        source: "Bertogna, Cirinei, Lipari, IEEE TPDS 20(4), 2009",
        ..global_edf("bcli", |case, steps| {
            with_bounds(bcli(&case.tasks, case.cpus.len(), steps))
        })
    },
    Test {
        deadlines: Deadlines::Constrained,
        source: "Baruah, RTSS 2007",
        ..global_edf("bar", |case, steps| {
            without_bounds(bar(&case.tasks, case.cpus.len(), steps))
        })
    },
    Test {
        deadlines: Deadlines::Constrained,
        source: "Bertogna, Cirinei, RTSS 2007; with suspensions docs/theory/suspensions.md, Theorems 5 and 6, not refereed",
        ..global_edf("rta", ask_rta)
    },
    Test {
        source: "Baruah, Bonifaci, Marchetti-Spaccamela, Stiller, Real-Time Systems 46, 2010",
        ..global_edf("ffdbf", |case, steps| {
            without_bounds(ffdbf(&case.tasks, case.cpus.len(), steps))
        })
    },
    Test {
        name: "bc",
        criterion: Criterion::Hard,
        deadlines: Deadlines::Constrained,
        exact: None,
        source: "Bertogna, Cirinei, RTSS 2007; with suspensions docs/theory/suspensions.md, Theorem 5, not refereed",
        speaks_of: |policy| is_fp(policy) && !is_partitioned(policy),
        takes: globally,
        asked: Asked::Parts(ask_bertogna_cirinei),
    },
    Test {
        name: "guan",
        criterion: Criterion::Hard,
        deadlines: Deadlines::Constrained,
        exact: None,
        source: "Guan, Stigge, Yi, Yu, RTSS 2009",
        speaks_of: is_fp,
        takes: globally,
        asked: Asked::Parts(|case, steps| {
            with_bounds(guan(&case.ranked(), case.cpus.len(), steps))
        }),
    },
    non_preemptive::NP_DENSITY,
    non_preemptive::NP_RTA_EDF,
    non_preemptive::NP_RTA_FP,
    Test {
        name: "speedup",
        criterion: Criterion::Hard,
        deadlines: Deadlines::Arbitrary,
        exact: None,
        source: "docs/theory/strong-edf.md, Theorem 2, not refereed; Phillips, Stein, Torng, Wein, STOC 1997",
        speaks_of: |policy| is_edf(policy) && shifts(policy),
        takes: |_, case| case.shape != Shape::Overlapping,
        asked: Asked::Parts(|case, steps| without_bounds(speedup(&case.placed(), steps))),
    },
    Test {
        name: "reduction",
        criterion: Criterion::Hard,
        deadlines: Deadlines::Constrained,
        exact: None,
        source: "Gujarati, Cerqueira, Brandenburg, Real-Time Systems 51(4), 2015",
        speaks_of: |policy| is_fp(policy) && is_by_affinity(policy),
        takes: any,
        asked: Asked::Parts(|case, steps| with_bounds(reduction_fp(&case.bound(), whole(), steps))),
    },
    Test {
        name: "reduction",
        criterion: Criterion::Hard,
        deadlines: Deadlines::Constrained,
        exact: None,
        source: "Gujarati, Cerqueira, Brandenburg, Real-Time Systems 51(4), 2015",
        speaks_of: |policy| is_edf(policy) && is_by_affinity(policy),
        takes: any,
        asked: Asked::Parts(|case, steps| {
            with_bounds(reduction_edf(&case.placed(), whole(), steps))
        }),
    },
    waiting_levels(
        |policy| is_fp(policy) && shifts(policy),
        ask_waiting_levels_fp,
    ),
    waiting_levels(
        |policy| is_edf(policy) && shifts(policy),
        ask_waiting_levels_edf,
    ),
    pfair_test(Criterion::Hard, is_aligned_pfair, |case, steps| {
        without_bounds(pfair(
            &case.tasks,
            case.cpus.len(),
            &case.quanta(false),
            steps,
        ))
    }),
    pfair_test(Criterion::Hard, is_staggered_pfair, |case, steps| {
        without_bounds(pfair(
            &case.tasks,
            case.cpus.len(),
            &case.quanta(true),
            steps,
        ))
    }),
    packing("ff", is_partitioned_edf, ask_packing::<0, false>),
    packing("bf", is_partitioned_edf, ask_packing::<1, false>),
    packing("wf", is_partitioned_edf, ask_packing::<2, false>),
    packing("ffd", is_partitioned_edf, ask_packing::<3, false>),
    packing("bfd", is_partitioned_edf, ask_packing::<4, false>),
    packing("wfd", is_partitioned_edf, ask_packing::<5, false>),
    packing("ff", is_partitioned_fp, ask_packing::<0, true>),
    packing("bf", is_partitioned_fp, ask_packing::<1, true>),
    packing("wf", is_partitioned_fp, ask_packing::<2, true>),
    packing("ffd", is_partitioned_fp, ask_packing::<3, true>),
    packing("bfd", is_partitioned_fp, ask_packing::<4, true>),
    packing("wfd", is_partitioned_fp, ask_packing::<5, true>),
    Test {
        name: "laminar",
        criterion: Criterion::Soft,
        deadlines: Deadlines::Arbitrary,
        exact: None,
        source: "Bonifaci et al., ECRTS 2016; Erickson, Devi, Baruah, ECRTS 2010",
        speaks_of: |policy| is_edf(policy) || is_fp(policy) || is_non_preemptive(policy),
        takes: |policy, case| case.shape != Shape::Overlapping && fitting_is_enough(policy, case),
        asked: Asked::Parts(ask_fit),
    },
    Test {
        name: "flow",
        criterion: Criterion::Soft,
        deadlines: Deadlines::Arbitrary,
        exact: None,
        source: "Baruah, Brandenburg, RTSS 2013; Tang, Anderson, Abeni, RTNS 2021",
        speaks_of: |policy| is_edf(policy) && shifts(policy),
        takes: fitting_is_enough,
        asked: Asked::Parts(ask_fit),
    },
    Test {
        name: "spl",
        criterion: Criterion::Soft,
        deadlines: Deadlines::Implicit,
        exact: None,
        source: "Tang, Anderson, Abeni, RTNS 2021, conditions (1) and (2)",
        speaks_of: is_semi_partitioned,
        takes: any,
        asked: Asked::Whole(|case, steps| {
            let terms = (beside(case.terms.reserve), Rounding::Exact);
            without_bounds(spl(&case.placed(), &case.cpus, terms, steps))
        }),
    },
    Test {
        name: "devi-anderson",
        criterion: Criterion::Soft,
        deadlines: Deadlines::Implicit,
        exact: None,
        source: "Devi, Anderson, RTSS 2005",
        speaks_of: is_edf,
        takes: globally,
        asked: Asked::Parts(|case, steps| {
            with_bounds(devi_anderson(&case.tasks, case.cpus.len(), steps))
        }),
    },
    non_preemptive::DEVI_ANDERSON,
    Test {
        name: "gel",
        criterion: Criterion::Soft,
        deadlines: Deadlines::Arbitrary,
        exact: None,
        source: "Erickson, Anderson, ECRTS 2012",
        speaks_of: is_edf,
        takes: globally,
        asked: Asked::Parts(|case, steps| with_bounds(gel(&case.tasks, case.cpus.len(), steps))),
    },
    Test {
        name: "gel",
        criterion: Criterion::Soft,
        deadlines: Deadlines::Arbitrary,
        exact: None,
        source: "Erickson, Anderson, Ward, Real-Time Systems 50(1), 2014",
        speaks_of: is_fair_lateness,
        takes: |_, case| case.is_global() && case.in_ticks().is_none_or(|(_, is_whole)| is_whole),
        asked: Asked::Parts(ask_fair_lateness),
    },
    Test {
        name: "laminar-tardiness",
        criterion: Criterion::Soft,
        deadlines: Deadlines::Arbitrary,
        exact: None,
        source: "docs/theory/laminar-tardiness.md, not refereed",
        speaks_of: |policy| is_edf(policy) && shifts(policy),
        takes: |_, case| case.shape != Shape::Overlapping,
        asked: Asked::Parts(|case, steps| {
            with_known_bounds(laminar_tardiness(&case.placed(), steps))
        }),
    },
    Test {
        name: "any-affinities",
        criterion: Criterion::Soft,
        deadlines: Deadlines::Arbitrary,
        exact: None,
        source: "docs/theory/strong-edf.md, Theorem 3, not refereed; Tang, Voronov, Anderson, ECRTS 2019",
        speaks_of: |policy| is_edf(policy) && shifts(policy),
        takes: any,
        asked: Asked::Parts(|case, steps| with_known_bounds(any_affinities(&case.placed(), steps))),
    },
    pfair_test(Criterion::Soft, is_aligned_pfair, |case, steps| {
        with_bounds(pfair_responses(
            &case.tasks,
            case.cpus.len(),
            &case.quanta(false),
            steps,
        ))
    }),
    pfair_test(Criterion::Soft, is_staggered_pfair, |case, steps| {
        with_bounds(pfair_responses(
            &case.tasks,
            case.cpus.len(),
            &case.quanta(true),
            steps,
        ))
    }),
];

/// Response times under the strong invariant.
const fn waiting_levels(speaks_of: fn(&PolicyTraits) -> bool, ask: Ask) -> Test {
    Test {
        name: "waiting-levels",
        deadlines: Deadlines::Constrained,
        source: "docs/theory/waiting-levels.md, with suspensions docs/theory/suspensions.md, Theorems 5 and 6, not refereed",
        speaks_of,
        takes: any,
        ..global_edf("", ask)
    }
}

/// Worst-case response times, which are there whenever the tasks fit the CPU.
const fn times_on_one_cpu(speaks_of: fn(&PolicyTraits) -> bool, ask: Ask) -> Test {
    Test {
        name: "",
        criterion: Criterion::Soft,
        deadlines: Deadlines::Arbitrary,
        exact: None,
        source: "",
        speaks_of,
        takes: on_one_cpu,
        asked: Asked::Times(ask),
    }
}

/// Whether there are quanta enough.
const fn pfair_test(criterion: Criterion, speaks_of: fn(&PolicyTraits) -> bool, ask: Ask) -> Test {
    Test {
        name: "pfair",
        criterion,
        deadlines: Deadlines::Arbitrary,
        exact: None,
        source: "Srinivasan, Anderson, STOC 2002; Holman, Anderson, Journal of Embedded Computing 1(4), 2005",
        speaks_of,
        takes: globally,
        asked: Asked::Parts(ask),
    }
}

fn is_aligned_pfair(policy: &PolicyTraits) -> bool {
    pfair_of(policy) == Some(Alignment::Aligned)
}

fn is_staggered_pfair(policy: &PolicyTraits) -> bool {
    pfair_of(policy) == Some(Alignment::Staggered)
}

/// A test of global EDF for arbitrary deadlines, and of EDZL for constrained ones.
const fn global_edf(name: &'static str, ask: Ask) -> Test {
    Test {
        name,
        criterion: Criterion::Hard,
        deadlines: Deadlines::Arbitrary,
        exact: None,
        source: "",
        speaks_of: |policy| is_edf(policy) && !is_partitioned(policy) || is_zero_laxity(policy),
        takes: |policy, case| {
            let is_constrained = case.deadlines <= Deadlines::Constrained;
            case.is_global() && (is_edf(policy) || is_constrained)
        },
        asked: Asked::Parts(ask),
    }
}

/// Whether a heuristic finds a CPU for every task; policies bind tasks in their own way.
const fn packing(name: &'static str, speaks_of: fn(&PolicyTraits) -> bool, ask: Ask) -> Test {
    Test {
        name,
        criterion: Criterion::Hard,
        deadlines: Deadlines::Arbitrary,
        exact: None,
        source: "Johnson, MIT 1973; Baruah, Fisher, RTSS 2005",
        speaks_of,
        takes: any,
        asked: Asked::Aside(ask),
    }
}
