//! Costs and periods of tasks, from those that were measured.

use shiftwork_model::{Arrival, Span};

use super::{Options, comments};
use crate::measure::{Activity, ThreadMeasurement};
use crate::statistics::{Costs, Distances};

/// Times of a trace are exact to so much.
const RESOLUTION: Span = Span::from_us(1);

/// What a task of its own gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameters {
    pub(super) cost: Span,
    pub(super) period: Span,
    pub(super) arrival: Arrival,
    /// Whether the cost has the margin that was asked for: without, it just fits its period.
    pub(super) has_margin: bool,
    /// Whether the period is the median distance, as the least one is shorter than the cost.
    pub(super) uses_median: bool,
}

/// Long times are written in steps of 10 us, short ones of 1 us.
const fn step(span: Span) -> u64 {
    match span.as_ns() {
        0..100_000 => 1_000,
        _ => 10_000,
    }
}

fn rounded_up(span: Span) -> Span {
    let step = step(span);
    Span::from_ns(span.as_ns().div_ceil(step).saturating_mul(step)).min(Span::MAX)
}

/// At least a microsecond.
fn rounded_down(span: Span) -> Span {
    let step = step(span);
    Span::from_ns((span.as_ns() / step * step).max(RESOLUTION.as_ns()))
}

/// To as few digits as can be without a change by more than one part in 2000: timers are late by different times. Down if
/// that would not be whole microseconds.
fn rounded(span: Span) -> Span {
    const PARTS: u64 = 2_000;
    let steps = (3..=18).rev().map(|digits| 10_u64.pow(digits));
    let mut nearest = steps.map(|step| (span.as_ns() + step / 2) / step * step);
    let is_near = |it: &u64| it.abs_diff(span.as_ns()) <= span.as_ns() / PARTS;
    let found = nearest.find(|it| *it > 0 && is_near(it));
    found.map_or_else(|| rounded_down(span), Span::from_ns)
}

/// The measured cost with the margin, or if that does not fit the period without, and whether it has the margin. `None`
/// if neither fits.
pub(super) fn cost(costs: &Costs, period: Span, options: &Options) -> Option<(Span, bool)> {
    let measured = u128::from((costs.chosen + RESOLUTION).as_ns());
    let wanted = measured * (100 + u128::from(options.margin_percent)) / 100;
    let wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
    let wanted = rounded_up(Span::from_ns(wanted).min(Span::MAX));
    if wanted <= period {
        return Some((wanted, true));
    }
    let bare = Span::from_ns((costs.chosen + RESOLUTION).as_ns().next_multiple_of(1_000));
    (bare <= period).then_some((bare, false))
}

/// The parameters of a thread by its own wake-ups; otherwise why there are none.
pub(super) fn own_parameters(
    thread: &ThreadMeasurement,
    options: &Options,
) -> Result<Parameters, String> {
    let Some(distances) = thread.distances else {
        return Err("no two jobs that follow one another were seen".to_owned());
    };
    let Distances {
        min,
        median,
        regular,
        ..
    } = distances;
    let with = |period, arrival, uses_median| {
        let (cost, has_margin) = cost(&thread.costs, period, options)?;
        Some(Parameters {
            cost,
            period,
            arrival,
            has_margin,
            uses_median,
        })
    };
    let found = match thread.activity {
        Activity::Periodic => with(rounded(regular), Arrival::Periodic, false),
        _ => with(rounded_down(min), Arrival::Sporadic, false)
            .or_else(|| with(rounded_down(median), Arrival::Sporadic, true)),
    };
    found.ok_or_else(|| {
        format!(
            "busy: its jobs take up to {}, and wake-ups are {} apart (median)",
            comments::span(thread.costs.chosen),
            comments::span(median),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Percentile;
    use shiftwork_model::CpuSet;

    fn options(margin_percent: u32) -> Options {
        Options {
            selection: super::super::Selection::All,
            margin_percent,
            percentile: Percentile::MAX,
            online: CpuSet::first(1),
        }
    }

    fn costs(ns: u64) -> Costs {
        Costs {
            chosen: Span::from_ns(ns),
            ..Costs::default()
        }
    }

    #[test]
    fn cost_has_the_margin_unless_only_without_it_fits() {
        let us = Span::from_us;
        let found = |ns, period, margin| cost(&costs(ns), us(period), &options(margin));
        assert_eq!(found(1_000_000, 5_000, 20), Some((us(1_210), true)));
        assert_eq!(found(1_000_000, 5_000, 0), Some((us(1_010), true)));
        assert_eq!(found(40_000, 5_000, 0), Some((us(41), true)));
        assert_eq!(found(0, 5_000, 20), Some((us(2), true)));
        assert_eq!(found(1_000_000, 1_100, 20), Some((us(1_001), false)));
        assert_eq!(found(1_000_000, 1_000, 20), None);
        assert_eq!(found(Span::MAX.as_ns(), 5_000, u32::MAX), None);
    }

    #[test]
    fn period_is_rounded_to_what_was_meant() {
        let us = Span::from_us;
        for (ns, expected) in [
            (10_000_300, us(10_000)),
            (9_999_700, us(10_000)),
            (9_994_000, us(9_990)),
            (99_993_000, us(100_000)),
            (999_900, us(1_000)),
            (996_300, us(996)),
            (16_666_700, us(16_670)),
            (33_333, us(33)),
            (300, us(1)),
        ] {
            assert_eq!(rounded(Span::from_ns(ns)), expected, "{ns}");
        }
        assert_eq!(rounded_down(Span::from_ns(9_999_999)), us(9_990));
    }
}
