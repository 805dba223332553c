//! The cells of the study: Brandenburg, Calandrino, Anderson, "On the Scalability of Real-Time Scheduling Algorithms
//! on Multicore Platforms: A Case Study", RTSS 2008.

use shiftwork_analysis::verdicts::Criterion;
use shiftwork_model::{CpuSet, Overheads, Span, TaskSet};
use shiftwork_taskset::generate::{
    Distribution, Key, Options, Periods, Spread, Utilizations, generate,
};
use shiftwork_taskset::overheads::{OverheadFile, Use, read};

pub const CPUS: usize = 32;
/// So many hardware threads share a core.
const CLUSTER: usize = 4;

pub const POLICIES: [&str; 8] = [
    "p-edf", "c-edf", "g-edf", "np-g-edf", "pd2", "s-pd2", "c-pd2", "cs-pd2",
];

pub const CRITERIA: [Criterion; 2] = [Criterion::Hard, Criterion::Soft];

const FILE: &str = include_str!("../../../../examples/brandenburg-2008/niagara-2008.toml");

/// The worst overheads for deadlines, the average for tardiness. What clusters cost under Pfair was not measured:
/// they count as all CPUs together.
pub fn overheads(policy: &str, criterion: Criterion) -> Overheads {
    let file: OverheadFile = read(FILE).unwrap();
    let name = match policy {
        "c-pd2" => "pd2",
        "cs-pd2" => "s-pd2",
        other => other,
    };
    let purpose = match criterion {
        Criterion::Hard => Use::Worst,
        Criterion::Soft => Use::Average,
    };
    file.find(purpose, name).unwrap().clone()
}

/// One CPU each.
pub fn singles() -> Vec<CpuSet> {
    CpuSet::first(CPUS).iter().map(CpuSet::single).collect()
}

/// The threads of each core.
pub fn clusters() -> Vec<CpuSet> {
    let all: Vec<_> = CpuSet::first(CPUS).iter().collect();
    let chunks = all.chunks(CLUSTER);
    chunks
        .map(|chunk| chunk.iter().copied().collect())
        .collect()
}

/// Tasks until the next would exceed the cap, periods uniform from 10 ms to 100 ms.
pub fn task_set(distribution: Distribution, cap: usize, index: u64) -> TaskSet {
    let options = Options {
        cpus: CPUS,
        utilizations: Utilizations::UntilCap {
            distribution,
            cap: cap as f64,
        },
        periods: Periods {
            shortest: Span::from_ms(10),
            longest: Span::from_ms(100),
            granularity: Span::from_ms(1),
            spread: Spread::Uniform,
        },
        ..Options::default()
    };
    let key = Key {
        seed: 2008,
        cell: cap as u64,
        index,
    };
    let mut set = generate(&options, key).unwrap();
    set.platform.clusters = clusters();
    set.platform.caches = clusters();
    set
}
