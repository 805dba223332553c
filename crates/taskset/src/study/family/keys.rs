//! The keys of a family of task sets, and the methods by which `utilizations` names how they are drawn.

use shiftwork_model::CPUS_MAX;

use crate::generate::{Deadlines, Distribution, Shape, Spread};
use crate::keys::{Key, Takes, may, must, words};

/// The keys of `[tasks]`.
pub(in crate::study) static SHARED_KEYS: [Key; 15] = draw_keys();

/// The keys of a family; what it does not say, `[tasks]` does.
pub(in crate::study) static KEYS: [Key; 16] = {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = draw_keys();
    let name = must(
        "name",
        Takes::Name,
        "What to call the family; no other has this name.",
    );
    [name, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o]
};

const fn draw_keys() -> [Key; 15] {
    [
        may(
            "cpus",
            NUMBERS,
            "How many CPUs there are; a row of cells for each.",
        ),
        may(
            "caps",
            LOADS_TAKES,
            "Total utilizations in CPUs, a cell for each; or `loads`.",
        ),
        may(
            "loads",
            LOADS_TAKES,
            "Total utilizations as shares of the platform, a cell for each; or `caps`.",
        ),
        may(
            "cluster-size",
            Takes::Whole(1, CPUS_MAX as u32),
            "How many CPUs are in a cluster; default all.",
        ),
        may(
            "utilizations",
            Takes::Words(|| words(&methods())),
            "How the utilizations of tasks are drawn.",
        ),
        may(
            "tasks",
            Takes::Whole(1, TASKS_MAX),
            "How many tasks, where the load is shared among them.",
        ),
        may(
            "tasks-per-cpu",
            Takes::Whole(1, TASKS_MAX),
            "The same, for each CPU.",
        ),
        may(
            "periods",
            Takes::List(&Takes::Duration, 2),
            "The shortest and the longest period.",
        ),
        may(
            "granularity",
            Takes::Duration,
            "Periods are multiples of it.",
        ),
        may(
            "spread",
            Takes::Words(|| words(&Spread::ALL)),
            "How periods are distributed.",
        ),
        may(
            "deadlines",
            Takes::Words(|| words(&Deadlines::ALL)),
            "How deadlines are drawn; default `implicit`.",
        ),
        may(
            "affinities",
            Takes::Words(|| words(&Shape::all(1))),
            "What affinities look like; default `global`.",
        ),
        may(
            "min-cost",
            Takes::Duration,
            "No cost is below it; default 1ns.",
        ),
        may(
            "feasible",
            Takes::Boolean,
            "Whether sets are drawn again until affinities leave room for every task; default false.",
        ),
        may(
            "tardiness",
            Takes::Boolean,
            "Whether bounds on tardiness are looked for; default false.",
        ),
    ]
}

const NUMBERS: Takes = Takes::Either(&[
    Takes::Whole(1, CPUS_MAX as u32),
    Takes::List(&Takes::Whole(1, CPUS_MAX as u32), 1),
]);

const LOADS_TAKES: Takes = Takes::Either(&[Takes::List(&LOAD, 1), Takes::Table(&RANGE_KEYS)]);

const LOAD: Takes = Takes::Number(0.0, 1e6);

pub(super) static RANGE_KEYS: [Key; 3] = [
    must("from", LOAD, "The first."),
    must("to", LOAD, "The last, if a step leads to it."),
    must("step", LOAD, "From one to the next."),
];

#[derive(Clone, Copy)]
pub(super) enum Method {
    UntilCap(Distribution),
    RandFixedSum,
    UUniFastDiscard,
}

/// The ways to draw utilizations, by name.
pub(super) fn methods() -> Vec<(&'static str, Method)> {
    let one_by_one = Distribution::ALL.iter();
    one_by_one
        .map(|&(name, one)| (name, Method::UntilCap(one)))
        .chain([
            ("randfixedsum", Method::RandFixedSum),
            ("uunifast-discard", Method::UUniFastDiscard),
        ])
        .collect()
}

pub(super) const TASKS_MAX: u32 = 100_000;
