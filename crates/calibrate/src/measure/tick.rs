//! Tick: what the kernel's timer tick takes from the job that runs.
//!
//! A thread computes and looks at the clock all the time. The gaps that come with the period of the kernel's
//! tick are ticks; those that come otherwise are other interrupts. The simulator steals this from every CPU
//! once each `quantum`; it is the kernel's own tick if the quantum is its period.

use rustix::time::{ClockId, clock_getres};
use shiftwork_live::probe::{Sample, monotonic_ns, ring, sleep_until};
use shiftwork_model::CpuId;

use super::{Batch, Measurement, Slice};
use crate::place::{Place, Rank, Urgency, clock_ns, join};
use crate::quantity::{Kind, Quantity};

/// A gap is an interruption from here on: what a look at the clock takes, several times.
const GAP_NS_MIN: u64 = 300;

/// The period is cut into so many parts, of which the ticks come in two neighbours.
const PARTS: u64 = 32;

/// For so long the CPU is kept at a time, and so long left to others between.
const STRETCH_NS: u64 = 60_000_000;
const PAUSE_NS: u64 = 5_000_000;

/// Room for the interruptions of one slice.
const ROOM: usize = 1 << 16;

pub(super) struct Tick {
    pub(super) cpu: CpuId,
    pub(super) rank: Rank,
}

impl Measurement for Tick {
    fn name(&self) -> &'static str {
        "tick"
    }

    fn share(&self) -> u64 {
        4
    }

    fn take(&mut self, slice: &Slice, into: &mut Vec<Batch>) -> Result<(), String> {
        let place = Place {
            cpu: self.cpu,
            rank: self.rank,
            urgency: Urgency::High,
        };
        let until_ns = slice.until_ns;
        let (probe, collector) = ring(ROOM);
        let watched_ns = std::thread::scope(|scope| {
            join(place.spawn(scope, move || {
                let clock_ns = clock_ns();
                let mut watched_ns = 0;
                while monotonic_ns() < until_ns {
                    let begin_ns = monotonic_ns();
                    let mut before_ns = begin_ns;
                    while before_ns < until_ns.min(begin_ns + STRETCH_NS) {
                        let now_ns = monotonic_ns();
                        if now_ns - before_ns >= GAP_NS_MIN {
                            probe.record(Sample {
                                at_ns: before_ns,
                                ns: (now_ns - before_ns - clock_ns) as i64,
                            });
                        }
                        before_ns = now_ns;
                    }
                    watched_ns += before_ns - begin_ns;
                    if sleep_until(before_ns + PAUSE_NS).is_err() {
                        break;
                    }
                }
                watched_ns
            }))
        })?;
        let ticks = ticks(&collector.collect(), period_ns(), watched_ns);
        into.push((Quantity::of(Kind::Tick), ticks, collector.lost()));
        Ok(())
    }
}

/// From tick to tick: the resolution of the clock that only ticks move on.
pub(crate) fn period_ns() -> u64 {
    let resolution = clock_getres(ClockId::MonotonicCoarse);
    (resolution.tv_sec as u64 * 1_000_000_000 + resolution.tv_nsec as u64).max(1)
}

/// The interruptions that come in the part of the period in which most do, if that is half of the periods
/// at least; otherwise there are no ticks.
fn ticks(gaps: &[Sample], period_ns: u64, watched_ns: u64) -> Vec<i64> {
    let part = |gap: &Sample| (gap.at_ns % period_ns * PARTS / period_ns) as usize;
    let mut counts = [0_usize; PARTS as usize];
    gaps.iter().for_each(|gap| counts[part(gap)] += 1);
    let pair = |first: usize| [first, (first + 1) % PARTS as usize];
    let of_pair = |first: &usize| pair(*first).iter().map(|&at| counts[at]).sum::<usize>();
    let most = (0..PARTS as usize).max_by_key(of_pair).unwrap_or(0);
    if of_pair(&most) as u64 * 2 < watched_ns / period_ns {
        return Vec::new();
    }
    let is_tick = |gap: &&Sample| pair(most).contains(&part(gap));
    // Of several in one of these parts the longest is the tick.
    let mut found: Vec<(u64, i64)> = Vec::new();
    for gap in gaps.iter().filter(is_tick) {
        let number = (gap.at_ns + period_ns / 2) / period_ns;
        match found.last_mut() {
            Some((last, ns)) if *last == number => *ns = gap.ns.max(*ns),
            _ => found.push((number, gap.ns)),
        }
    }
    found.into_iter().map(|(_, ns)| ns).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: u64 = 4_000_000;

    fn gap(at_ns: u64, ns: i64) -> Sample {
        Sample { at_ns, ns }
    }

    #[test]
    fn regular_interruptions_are_ticks_and_others_are_not() {
        let mut gaps = Vec::new();
        for number in 0..100 {
            gaps.push(gap(
                number * PERIOD + 1_000_000 + number % 7 * 1_000,
                2_000 + number as i64,
            ));
            // A timer of another program, at all times.
            gaps.push(gap(number * PERIOD + 1_300_000 + number * 20_000, 9_000));
        }
        let found = ticks(&gaps, PERIOD, 100 * PERIOD);
        assert_eq!(found, (2_000..2_100).collect::<Vec<i64>>());
    }

    #[test]
    fn now_and_then_is_no_tick() {
        let gaps: Vec<Sample> = (0..40).map(|number| gap(number * PERIOD, 5)).collect();
        assert_eq!(ticks(&gaps, PERIOD, 100 * PERIOD), Vec::<i64>::new());
        assert_eq!(ticks(&gaps, PERIOD, 79 * PERIOD).len(), 40);
    }

    #[test]
    fn ticks_are_found_on_both_sides_of_a_period_s_end() {
        let at = |number: u64| number * PERIOD + [0, PERIOD - 1_000][number as usize % 2];
        let gaps: Vec<Sample> = (0..100).map(|number| gap(at(number), 7)).collect();
        assert!(ticks(&gaps, PERIOD, 100 * PERIOD).len() >= 50);
    }
}
