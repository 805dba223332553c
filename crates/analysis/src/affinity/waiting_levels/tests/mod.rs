//! The bounds against their definition, evaluated independently: `packing.rs` has the longest wait as a linear
//! program over all sets of tasks that can keep a job waiting, `definition.rs` the response times by trial.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod definition;
mod packing;

use shiftwork_model::RandomStream;

/// Cost, period, deadline, CPUs as bits. The first is the most urgent under fixed priorities.
type Plain = (u64, u64, u64, u64);

/// Times more cases if `SHIFTWORK_LONG` is set.
fn times_if_long(few: u64, factor: u64) -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => few * factor,
        None => few,
    }
}

/// Affinities as bits, nested or any.
fn masks(stream: &mut RandomStream, cpus: u64, is_nested: bool) -> Vec<u64> {
    let all = (1 << cpus) - 1;
    if !is_nested {
        return (0..3).map(|_| 1 + stream.below(all)).collect();
    }
    let mut family = vec![all];
    let mut at = 0;
    while at < family.len() {
        let mask: u64 = family[at];
        at += 1;
        if mask.count_ones() > 1 && stream.below(4) > 0 {
            let part = mask & stream.bits();
            let rest = mask & !part & stream.bits();
            family.extend(
                [part, rest]
                    .into_iter()
                    .filter(|&child| child != 0 && child != mask),
            );
        }
    }
    family
}

fn tasks(stream: &mut RandomStream, is_nested: bool, most: u64) -> Vec<Plain> {
    let cpus = 2 + stream.below(3);
    let family = masks(stream, cpus, is_nested);
    let load = 10 + stream.below(40);
    (0..2 + stream.below(most - 1))
        .map(|_| {
            let period = [3, 4, 5, 6, 8, 12][stream.below(6) as usize];
            let cost = 1 + stream.below((period * load / 100).max(1));
            let deadline = match stream.below(2) {
                0 => period,
                _ => cost + stream.below(period - cost + 1),
            };
            let mask = family[stream.below(family.len() as u64) as usize];
            (cost, period, deadline, mask)
        })
        .collect()
}
