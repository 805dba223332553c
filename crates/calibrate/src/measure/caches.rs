//! Preemption and migration: what a job that goes on takes longer because its working set is not in the caches
//! any more.
//!
//! A thread walks a working set in an order that no prefetcher guesses, once each cache line, three of four
//! only read and one written to. Walked twice it is warm; the third walk is what a warm one takes. Then either
//! another working set as large as the caches is walked on the same CPU (a preemption), or the thread moves to
//! a CPU that has no copies of its lines, for the same had been done there (a migration). The next walk less
//! the warm one is the delay.
//!
//! The synthetic method of A. Bastoni, B. Brandenburg, J. Anderson, "Cache-Related Preemption and Migration
//! Delays: Empirical Approximation and Impact on Schedulability", OSPERT 2010; working sets of 64 KiB and a
//! quarter of writes are those of Brandenburg et al., RTSS 2008. What others of this machine do to a cache
//! that all share cannot be kept out.

use std::fs;
use std::hint::black_box;

use shiftwork_live::probe::{Probe, monotonic_ns, ring, set_affinity};
use shiftwork_model::{CpuId, CpuSet, Platform, RandomStream};

use super::{Batch, Measurement, Slice};
use crate::place::{Place, Rank, Urgency, collected, join, note};
use crate::plan::Plan;
use crate::quantity::{Kind, Quantity};

/// The smallest working set; each other is four times as large as the one before it.
const SET_MIN: u64 = 4 << 10;

/// Where the machine does not say how large its last cache is.
const CACHE_BYTES: u64 = 8 << 20;

/// No more than this is walked to empty the caches, or there would be few samples.
const POLLUTION_MAX: u64 = 32 << 20;

/// Beyond this a walk takes so long that only one cycle in so many has it.
const LARGE: u64 = 1 << 20;
const LARGE_EVERY: u64 = 16;

/// One line in so many is written to.
const WRITES: usize = 4;

const LINE: u64 = 64;

/// The names of cache distances, the nearest first.
const DISTANCES: [&str; 6] = [
    "distance-1",
    "distance-2",
    "distance-3",
    "distance-4",
    "distance-5",
    "distance-6",
];

/// The name of a cache distance from 1 up; farther ones are as the last.
pub(crate) fn distance_name(distance: usize) -> &'static str {
    DISTANCES[distance.clamp(1, DISTANCES.len()) - 1]
}

pub(super) struct Caches {
    place: Place,
    sizes: Vec<u64>,
    /// Where to migrate to, for each cache distance that there is.
    targets: Vec<(usize, CpuId)>,
    pollution: Vec<Line>,
}

impl Caches {
    pub(super) fn new(plan: &Plan, cpu: CpuId, rank: Rank, notes: &mut Vec<String>) -> Self {
        let last = last_cache_bytes(cpu).unwrap_or_else(|| {
            notes.push(String::from(
                "preemption, migration: the machine does not say how large its caches are; 8 MiB are assumed",
            ));
            CACHE_BYTES
        });
        let largest = plan
            .largest_set
            .unwrap_or(2 * last)
            .clamp(SET_MIN, Plan::SET_MAX);
        let sizes = std::iter::successors(Some(SET_MIN), |size| Some(4 * size));
        let targets = match host() {
            Some(host) => targets(&host, cpu, &plan.cpus),
            None => {
                let others = plan.cpus - CpuSet::single(cpu);
                notes.push(String::from(
                    "migration: which CPUs share caches is not known; one distance is taken for all",
                ));
                others.lowest().map(|to| (1, to)).into_iter().collect()
            }
        };
        let lines = last.min(POLLUTION_MAX) / LINE;
        Self {
            place: Place {
                cpu,
                rank,
                urgency: Urgency::High,
            },
            sizes: sizes.take_while(|&size| size <= largest).collect(),
            targets,
            pollution: vec![Line::default(); lines as usize],
        }
    }

    /// All that is measured, smallest working sets first.
    fn cells(&self) -> Vec<Cell> {
        let ways = || {
            let migrations = self
                .targets
                .iter()
                .map(|&(distance, to)| Some((distance, to)));
            std::iter::once(None).chain(migrations)
        };
        let sizes = self.sizes.iter();
        sizes
            .flat_map(|&bytes| ways().map(move |way| Cell { bytes, way }))
            .collect()
    }
}

/// A working set, and to where it goes.
#[derive(Clone, Copy)]
struct Cell {
    bytes: u64,
    way: Option<(usize, CpuId)>,
}

impl Cell {
    fn quantity(&self) -> Quantity {
        match self.way {
            None => Quantity {
                kind: Kind::Preemption,
                variant: "",
                at: self.bytes,
            },
            Some((distance, _)) => Quantity {
                kind: Kind::Migration,
                variant: distance_name(distance),
                at: self.bytes,
            },
        }
    }
}

impl Measurement for Caches {
    fn name(&self) -> &'static str {
        "preemption and migration"
    }

    fn share(&self) -> u64 {
        24
    }

    fn take(&mut self, slice: &Slice, into: &mut Vec<Batch>) -> Result<(), String> {
        let cells = self.cells();
        let (probes, collectors): (Vec<_>, Vec<_>) = cells.iter().map(|_| ring(1 << 12)).unzip();
        let (place, until_ns, round) = (self.place, slice.until_ns, slice.round);
        let pollution = &mut self.pollution;
        let sizes = &self.sizes;
        std::thread::scope(|scope| {
            join(place.spawn(scope, || {
                // Other addresses in every round: which of them meet in a cache is luck, too.
                let mut sets: Vec<WorkingSet> = sizes
                    .iter()
                    .map(|&bytes| WorkingSet::new(bytes, round as u64))
                    .collect();
                let mut cycle = 0_u64;
                loop {
                    for (cell, probe) in cells.iter().zip(&probes) {
                        // Each once at least; large ones, which take long, less often.
                        let is_large = cell.bytes > LARGE;
                        if cycle > 0
                            && (monotonic_ns() >= until_ns
                                || (is_large && !cycle.is_multiple_of(LARGE_EVERY)))
                        {
                            continue;
                        }
                        let set = sets.iter_mut().find(|set| set.bytes == cell.bytes);
                        if let Some(set) = set {
                            delay(set, pollution, cell, place.cpu, probe)?;
                        }
                    }
                    cycle += 1;
                    if monotonic_ns() >= until_ns {
                        return Ok::<(), String>(());
                    }
                }
            }))
        })??;
        for (cell, collector) in cells.iter().zip(&collectors) {
            let (samples, lost) = collected(collector);
            into.push((cell.quantity(), samples, lost));
        }
        Ok(())
    }
}

/// Measures one delay.
fn delay(
    set: &mut WorkingSet,
    pollution: &mut [Line],
    cell: &Cell,
    home: CpuId,
    probe: &Probe,
) -> Result<(), String> {
    let go = |cpu| {
        set_affinity(None, &CpuSet::single(cpu))
            .map_err(|error| format!("a thread cannot move to CPU {cpu}: {error}"))
    };
    if let Some((_, to)) = cell.way {
        go(to)?;
        pollute(pollution);
        go(home)?;
    }
    set.walk();
    set.walk();
    let warm_ns = set.timed_walk();
    match cell.way {
        None => pollute(pollution),
        Some((_, to)) => go(to)?,
    }
    let after_ns = set.timed_walk();
    note(probe, after_ns - warm_ns);
    match cell.way {
        None => Ok(()),
        Some(_) => go(home),
    }
}

/// A cache line: where to go from here, and what is written.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Line {
    next: u32,
    written: u32,
}

/// Lines that are walked in one cycle through all of them.
struct WorkingSet {
    bytes: u64,
    lines: Vec<Line>,
}

impl WorkingSet {
    /// A random cycle, by the seed. O(lines) steps.
    fn new(bytes: u64, seed: u64) -> Self {
        let count = (bytes / LINE) as usize;
        let mut random = RandomStream::new(seed, bytes, 0);
        let mut order: Vec<u32> = (0..count as u32).collect();
        random.shuffle(&mut order);
        let mut lines = vec![Line::default(); count];
        for (at, &line) in order.iter().enumerate() {
            lines[line as usize].next = order[(at + 1) % count];
        }
        Self { bytes, lines }
    }

    fn walk(&mut self) {
        let mut at = 0;
        for step in 0..self.lines.len() {
            let line = &mut self.lines[at];
            if step % WRITES == 0 {
                line.written = line.written.wrapping_add(1);
            }
            at = line.next as usize;
        }
        black_box(at);
    }

    fn timed_walk(&mut self) -> i64 {
        let begin_ns = monotonic_ns();
        self.walk();
        (monotonic_ns() - begin_ns) as i64
    }
}

/// Fills the caches of this CPU with something else.
fn pollute(pollution: &mut [Line]) {
    for line in pollution.iter_mut() {
        line.written = line.written.wrapping_add(1);
    }
    black_box(pollution);
}

/// The caches and CPUs of this machine as task-set files see them with `cpus = "host"`: the simulator goes by
/// the same groups. `None` if such a file would be refused.
fn host() -> Option<Platform> {
    let file =
        "[platform]\ncpus = \"host\"\n[[task]]\nname = \"x\"\ncost = \"1ms\"\nperiod = \"1ms\"\n";
    shiftwork_taskset::read(file).ok().map(|set| set.platform)
}

/// For each cache distance the lowest CPU that is as far from this one: distances count the sizes of groups
/// that share a cache, from 1 for the smallest; one more is for CPUs that share nothing.
fn targets(host: &Platform, from: CpuId, allowed: &CpuSet) -> Vec<(usize, CpuId)> {
    let mut sizes: Vec<usize> = host.caches.iter().map(CpuSet::len).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let distance = |to: CpuId| {
        let shared = host
            .caches
            .iter()
            .filter(|group| group.contains(from) && group.contains(to));
        let nearest = shared.map(CpuSet::len).min();
        1 + nearest.map_or(sizes.len(), |size| {
            sizes.partition_point(|&other| other < size)
        })
    };
    let mut found: Vec<(usize, CpuId)> = Vec::new();
    for to in allowed.iter().filter(|&to| to != from) {
        let distance = distance(to);
        if found.iter().all(|&(other, _)| other != distance) {
            found.push((distance, to));
        }
    }
    found.sort_unstable();
    found
}

/// The size of the largest cache of this CPU, from /sys.
fn last_cache_bytes(cpu: CpuId) -> Option<u64> {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
    let sizes = fs::read_dir(folder).ok()?.flatten().filter_map(|entry| {
        let text = fs::read_to_string(entry.path().join("size")).ok()?;
        kibibytes(text.trim())
    });
    sizes.max()
}

/// `32768K` in bytes.
fn kibibytes(text: &str) -> Option<u64> {
    let number: u64 = text.strip_suffix('K')?.parse().ok()?;
    Some(number << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_comes_to_every_line_once_and_writes_to_a_quarter() {
        for seed in 1..=20 {
            let mut set = WorkingSet::new(16 << 10, seed);
            let (mut seen, mut at) = (vec![false; set.lines.len()], 0);
            for _ in 0..set.lines.len() {
                assert!(!std::mem::replace(&mut seen[at], true), "seed {seed}");
                at = set.lines[at].next as usize;
            }
            assert_eq!((at, seen.len()), (0, 256), "seed {seed}");
            set.walk();
            let written = set.lines.iter().filter(|line| line.written > 0).count();
            assert_eq!(written, 64, "seed {seed}");
        }
        assert_eq!(size_of::<Line>() as u64, LINE);
    }

    #[test]
    fn distances_are_those_of_the_simulator() {
        let set = |list: &str| list.parse::<CpuSet>().unwrap();
        let cpu = CpuId::from_index;
        let mut host = Platform::uniform(8);
        host.caches = vec![
            set("0-1"),
            set("2-3"),
            set("4-5"),
            set("6-7"),
            set("0-3"),
            set("4-7"),
        ];
        let found = |from, allowed| targets(&host, cpu(from), &set(allowed));
        assert_eq!(found(0, "0-7"), [(1, cpu(1)), (2, cpu(2)), (3, cpu(4))]);
        assert_eq!(found(7, "0,4,7"), [(2, cpu(4)), (3, cpu(0))]);
        assert_eq!(found(7, "7"), []);
        let alone = Platform::uniform(2);
        assert_eq!(targets(&alone, cpu(1), &set("0-1")), [(1, cpu(0))]);
    }

    #[test]
    fn sizes_are_read_in_the_format_of_sys() {
        assert_eq!(kibibytes("32768K"), Some(32 << 20));
        assert_eq!([kibibytes("32M"), kibibytes("K"), kibibytes("")], [None; 3]);
    }
}
