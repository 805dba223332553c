//! Periods, costs and deadlines.

use shiftwork_model::{RandomStream, Span};

use crate::error::TasksetError;

/// How periods are drawn: multiples of `granularity` from `shortest` to `longest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Periods {
    /// The shortest, a multiple of the granularity.
    pub shortest: Span,
    /// The longest.
    pub longest: Span,
    /// What every period is a multiple of.
    pub granularity: Span,
    /// How they spread.
    pub spread: Spread,
}

/// How periods spread over their range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Every multiple is as likely.
    Uniform,
    /// Every order of magnitude is as likely: log-uniform in `[shortest, longest + granularity)`,
    /// rounded down to a multiple (Emberson et al. 2010).
    LogUniform,
}

/// How deadlines are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadlines {
    /// The period.
    Implicit,
    /// Uniform from the cost to the period.
    Constrained,
    /// Uniform from the cost to twice the period.
    Arbitrary,
}

impl Spread {
    /// All of them with their names.
    pub const ALL: [(&'static str, Self); 2] = [
        ("uniform", Self::Uniform),
        ("log-uniform", Self::LogUniform),
    ];
}

impl Deadlines {
    /// All of them with their names.
    pub const ALL: [(&'static str, Self); 3] = [
        ("implicit", Self::Implicit),
        ("constrained", Self::Constrained),
        ("arbitrary", Self::Arbitrary),
    ];
}

/// Log-uniform from 1 ms to 1 s, whole microseconds.
impl Default for Periods {
    fn default() -> Self {
        Self {
            shortest: Span::from_ms(1),
            longest: Span::from_s(1),
            granularity: Span::from_us(1),
            spread: Spread::LogUniform,
        }
    }
}

impl Periods {
    /// Refuses a range without a period.
    pub(super) fn check(&self) -> Result<(), TasksetError> {
        let impossible = |what: String, accepted: &str| {
            Err(TasksetError::Impossible {
                what,
                accepted: accepted.to_string(),
            })
        };
        if self.granularity.is_zero() {
            return impossible(
                "a granularity of zero has no multiples".to_string(),
                "write more",
            );
        }
        if self.shortest.is_zero()
            || !self
                .shortest
                .as_ns()
                .is_multiple_of(self.granularity.as_ns())
        {
            return impossible(
                format!(
                    "the shortest period {} is no multiple of {}",
                    self.shortest, self.granularity
                ),
                "write a multiple of the granularity above zero",
            );
        }
        if self.shortest > self.longest || self.longest > MOST {
            return impossible(
                format!(
                    "periods cannot be from {} to {}",
                    self.shortest, self.longest
                ),
                "write the shorter first, and at most 10 years",
            );
        }
        Ok(())
    }

    /// The longest period that is drawn.
    pub(super) fn longest_multiple(&self) -> Span {
        let step = self.granularity.as_ns();
        Span::from_ns(self.longest.as_ns() / step * step)
    }

    /// A cost and a period for a task with this utilization and no cost below `min_cost`.
    pub(super) fn draw(
        &self,
        utilization: f64,
        min_cost: Span,
        stream: &mut RandomStream,
    ) -> (Span, Span) {
        let needed = min_cost.as_ns() as f64 / utilization;
        let period = self.draw_period(self.at_least(needed), stream);
        let cost = (utilization * period.as_ns() as f64).round() as u64;
        // Rounding may miss the bounds by a nanosecond, and a tiny utilization the lower by more.
        let cost = cost.max(min_cost.as_ns()).clamp(1, period.as_ns());
        (Span::from_ns(cost), period)
    }

    /// The least multiple in the range that is at least `needed_ns`; the greatest if none is.
    fn at_least(&self, needed_ns: f64) -> u64 {
        let step = self.granularity.as_ns();
        let (first, last) = (self.shortest.as_ns() / step, self.longest.as_ns() / step);
        let needed = (needed_ns / step as f64).ceil();
        match needed < last as f64 {
            true => first.max(needed as u64),
            false => last,
        }
    }

    /// A period of at least `first` steps.
    fn draw_period(&self, first: u64, stream: &mut RandomStream) -> Span {
        let step = self.granularity.as_ns();
        let last = self.longest.as_ns() / step;
        let steps = match self.spread {
            Spread::Uniform => first + stream.below(last - first + 1),
            Spread::LogUniform => {
                let low = libm::log(first as f64);
                let high = libm::log((last + 1) as f64);
                let drawn = libm::exp(low + (high - low) * stream.unit());
                (drawn as u64).clamp(first, last)
            }
        };
        Span::from_ns(steps * step)
    }
}

/// The longest period that is drawn: ten years, so that twice it is still a span.
const MOST: Span = Span::from_s(10 * 366 * 24 * 3_600);

impl Deadlines {
    /// A deadline.
    pub(super) fn draw(self, cost: Span, period: Span, stream: &mut RandomStream) -> Span {
        match self {
            Self::Implicit => period,
            Self::Constrained => stream.span(cost, period),
            Self::Arbitrary => stream.span(cost, self.latest(period)),
        }
    }

    /// The latest deadline that is drawn with a period.
    pub(super) fn latest(self, period: Span) -> Span {
        match self {
            Self::Implicit | Self::Constrained => period,
            Self::Arbitrary => period + period,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(index: u64) -> RandomStream {
        RandomStream::new(5, 1, index)
    }

    fn periods(spread: Spread) -> Vec<f64> {
        let periods = Periods {
            granularity: Span::from_us(100),
            spread,
            ..Periods::default()
        };
        let mut stream = stream(0);
        let drawn = (0..40_000).map(|_| {
            let (_, period) = periods.draw(0.5, Span::from_ns(1), &mut stream);
            assert!(period >= periods.shortest && period <= periods.longest);
            assert_eq!(period.as_ns() % periods.granularity.as_ns(), 0);
            period.as_ns() as f64
        });
        drawn.collect()
    }

    #[test]
    fn log_uniform_periods_favour_no_order_of_magnitude() {
        let drawn = periods(Spread::LogUniform);
        for (low, high) in [(1e6, 1e7), (1e7, 1e8), (1e8, 1.1e9)] {
            let count = drawn.iter().filter(|&&p| p >= low && p < high).count();
            assert!((12_700..14_000).contains(&count), "{low}: {count}");
        }
    }

    #[test]
    fn uniform_periods_favour_no_length() {
        let drawn = periods(Spread::Uniform);
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        assert!((mean / 500.5e6 - 1.0).abs() < 0.01, "{mean}");
    }

    #[test]
    fn no_cost_is_below_the_least_and_utilizations_are_kept_where_possible() {
        let periods = Periods::default();
        let min_cost = Span::from_us(500);
        let mut stream = stream(1);
        for _ in 0..5_000 {
            let utilization = stream.unit();
            let (cost, period) = periods.draw(utilization, min_cost, &mut stream);
            assert!(cost >= min_cost && cost <= period && period <= periods.longest);
            let found = cost.as_ns() as f64 / period.as_ns() as f64;
            if utilization > 0.000_5 {
                assert!((found - utilization).abs() < 1e-5, "{utilization} {found}");
            }
        }
        let (cost, period) = periods.draw(0.0, min_cost, &mut stream);
        assert_eq!((cost, period), (min_cost, periods.longest));
    }

    #[test]
    fn deadlines_are_within_their_range() {
        let (cost, period) = (Span::from_ms(2), Span::from_ms(10));
        let mut stream = stream(2);
        let mut mean = |kind: Deadlines| {
            let drawn: Vec<u64> = (0..20_000)
                .map(|_| kind.draw(cost, period, &mut stream).as_ns())
                .collect();
            assert!(drawn.iter().all(|&deadline| deadline >= cost.as_ns()));
            drawn.iter().sum::<u64>() as f64 / drawn.len() as f64 / 1e6
        };
        assert_eq!(mean(Deadlines::Implicit), 10.0);
        assert!((mean(Deadlines::Constrained) - 6.0).abs() < 0.1);
        assert!((mean(Deadlines::Arbitrary) - 11.0).abs() < 0.2);
    }
}
