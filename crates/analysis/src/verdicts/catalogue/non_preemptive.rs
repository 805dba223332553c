//! The tests of `np-g-edf` and `np-g-fp`.

use super::super::ask::{ask_np_edf, ask_np_fp_rta, with_bounds, without_bounds};
use super::super::case::Deadlines;
use super::{Asked, Criterion, Test, globally, on_one_cpu, times_on_one_cpu};
use crate::global_edf::{np_density, np_rta};
use crate::global_fp::np_rta as np_rta_fp;
use crate::policy::{is_np_edf, is_np_fp};
use crate::response::devi_anderson_non_preemptive;
use crate::uniprocessor::np_fp_response_times;

const BUSY_PERIOD: &str = "George, Rivierre, Spuri, INRIA RR-2966, 1996; Davis, Burns, Bril, Lukkien, Real-Time Systems 35, 2007";

pub(super) const NP_EDF: Test = Test {
    name: "np-edf",
    criterion: Criterion::Hard,
    deadlines: Deadlines::Arbitrary,
    exact: Some("one CPU"),
    source: "Jeffay, Stanat, Martel, RTSS 1991; George, Rivierre, Spuri, INRIA RR-2966, 1996",
    speaks_of: is_np_edf,
    takes: on_one_cpu,
    asked: Asked::Parts(ask_np_edf),
};

pub(super) const NP_FP_RTA: Test = Test {
    name: "np-fp-rta",
    criterion: Criterion::Hard,
    deadlines: Deadlines::Arbitrary,
    exact: Some("one CPU, distinct priorities"),
    source: BUSY_PERIOD,
    speaks_of: is_np_fp,
    takes: on_one_cpu,
    asked: Asked::Parts(ask_np_fp_rta),
};

pub(super) const NP_FP_TIMES: Test = Test {
    name: "np-fp-rta",
    source: BUSY_PERIOD,
    ..times_on_one_cpu(is_np_fp, |case, steps| {
        with_bounds(np_fp_response_times(&case.ranked(), steps))
    })
};

pub(super) const NP_DENSITY: Test = Test {
    name: "np-density",
    criterion: Criterion::Hard,
    deadlines: Deadlines::Constrained,
    exact: None,
    source: "Baruah, Real-Time Systems 32, 2006",
    speaks_of: is_np_edf,
    takes: globally,
    asked: Asked::Parts(|case, steps| {
        without_bounds(np_density(&case.tasks, case.cpus.len(), steps))
    }),
};

pub(super) const NP_RTA_EDF: Test = Test {
    name: "np-rta",
    criterion: Criterion::Hard,
    deadlines: Deadlines::Constrained,
    exact: None,
    source: "after Bertogna, Cirinei, RTSS 2007",
    speaks_of: is_np_edf,
    takes: globally,
    asked: Asked::Parts(|case, steps| with_bounds(np_rta(&case.tasks, case.cpus.len(), steps))),
};

pub(super) const NP_RTA_FP: Test = Test {
    name: "np-rta",
    criterion: Criterion::Hard,
    deadlines: Deadlines::Constrained,
    exact: None,
    source: "after Bertogna, Cirinei, RTSS 2007; Guan, Stigge, Yi, Yu, RTSS 2009",
    speaks_of: is_np_fp,
    takes: globally,
    asked: Asked::Parts(|case, steps| {
        with_bounds(np_rta_fp(&case.ranked(), case.cpus.len(), steps))
    }),
};

pub(super) const DEVI_ANDERSON: Test = Test {
    name: "devi-anderson",
    criterion: Criterion::Soft,
    deadlines: Deadlines::Implicit,
    exact: None,
    source: "Devi, Anderson, RTSS 2005, non-preemptive, corrected",
    speaks_of: is_np_edf,
    takes: globally,
    asked: Asked::Parts(|case, steps| {
        with_bounds(devi_anderson_non_preemptive(
            &case.tasks,
            case.cpus.len(),
            steps,
        ))
    }),
};
