//! No input, however bad, makes a test panic, hang or say nonsense: times of zero and of 64 bits,
//! tasks that cannot be, no CPUs and a thousand, ten thousand tasks, periods without a common
//! multiple in sight.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod admission;
mod catalogue;
mod schedulability;

use shiftwork_analysis::Sporadic;
use shiftwork_model::{RandomStream, Span};

fn sporadic(cost: u64, period: u64, deadline: u64) -> Sporadic {
    Sporadic {
        cost: Span::from_ns(cost),
        period: Span::from_ns(period),
        deadline: Span::from_ns(deadline),
    }
}

const ODD: [u64; 9] = [
    0,
    1,
    2,
    3,
    1_000_000_007,
    1 << 62,
    u64::MAX / 2,
    u64::MAX - 1,
    u64::MAX,
];

/// Tasks of a random total utilization, with periods that are odd and large: no common multiple
/// below far more than 64 bits.
fn without_common_periods(count: u64, load: u64, stream: &mut RandomStream) -> Vec<Sporadic> {
    (0..count)
        .map(|_| {
            let period = (1 << 40) + 2 * stream.below(1 << 39) + 1;
            let share = 1 + stream.below(2 * load);
            let cost = (u128::from(period) * u128::from(share) / 1_000_000).max(1) as u64;
            let cost = cost.min(period);
            let deadline = match stream.below(3) {
                0 => period,
                1 => cost + stream.below(period - cost + 1),
                _ => period.saturating_mul(1 + stream.below(1 << 20)),
            };
            sporadic(cost, period, deadline)
        })
        .collect()
}
