//! When quanta begin.

use shiftwork_model::{CpuId, Instant, Span};
use shiftwork_policy::Quanta;

/// The boundaries of quanta in order of time; those at one instant in order of CPU number.
///
/// Invariant: before `order[at]` the boundaries of quantum `number` have passed, the others have not.
#[derive(Clone, Debug)]
pub struct Ticks {
    length: Span,
    /// The CPUs by phase.
    order: Vec<(Span, CpuId)>,
    at: usize,
    number: u64,
}

impl Ticks {
    /// The boundaries from quantum `first` on.
    ///
    /// # Panics
    /// If the length of a quantum is zero, or a phase is not less than it.
    pub fn new(quanta: &Quanta, first: u64) -> Self {
        let phases = quanta.phases.iter();
        let mut order: Vec<(Span, CpuId)> = phases
            .enumerate()
            .map(|(index, &phase)| (phase, CpuId::from_index(index)))
            .collect();
        order.sort_unstable();
        let fits = |&(phase, _): &(Span, CpuId)| phase < quanta.length;
        assert!(order.iter().all(fits), "a phase exceeds the quantum");
        Self {
            length: quanta.length,
            order,
            at: 0,
            number: first,
        }
    }

    /// The next boundary on any CPU; [`Instant::NEVER`] if it is beyond the range of an instant.
    pub fn next(&self) -> Instant {
        let Some(&(phase, _)) = self.order.get(self.at) else {
            return Instant::NEVER;
        };
        let quanta = self.length.as_ns().checked_mul(self.number);
        let at = quanta.and_then(|ns| ns.checked_add(phase.as_ns()));
        at.map_or(Instant::NEVER, Instant::from_ns)
    }

    /// The next quantum that has begun by `now`: its CPU and its number. Returns each quantum once; `None` if
    /// none is left.
    pub fn take(&mut self, now: Instant) -> Option<(CpuId, u64)> {
        let next = self.next();
        if next > now || next == Instant::NEVER {
            return None;
        }
        let taken = (self.order[self.at].1, self.number);
        self.at += 1;
        if self.at == self.order.len() {
            self.at = 0;
            self.number += 1;
        }
        Some(taken)
    }

    /// Skips all quanta that have ended by `now`, so that a delayed caller handles only the last quantum of
    /// each CPU.
    pub fn skip_to(&mut self, now: Instant) {
        let begun = now.as_ns() / self.length.as_ns();
        if begun > self.number + 1 {
            // On some CPUs quantum `begun` may not have begun yet.
            (self.at, self.number) = (0, begun - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quanta(length: u64, phases: &[u64]) -> Quanta {
        Quanta {
            length: Span::from_ns(length),
            phases: phases.iter().copied().map(Span::from_ns).collect(),
        }
    }

    /// All boundaries up to `now`, with their instants.
    fn taken(ticks: &mut Ticks, now: u64) -> Vec<(u64, usize, u64)> {
        let mut all = Vec::new();
        loop {
            let at = ticks.next().as_ns();
            match ticks.take(Instant::from_ns(now)) {
                Some((cpu, number)) => all.push((at, cpu.index(), number)),
                None => return all,
            }
        }
    }

    #[test]
    fn aligned_quanta_begin_together() {
        let mut ticks = Ticks::new(&quanta(10, &[0, 0]), 0);
        let wanted = [(0, 0, 0), (0, 1, 0), (10, 0, 1), (10, 1, 1)];
        assert_eq!(taken(&mut ticks, 19), wanted);
        assert_eq!(ticks.next(), Instant::from_ns(20));
    }

    #[test]
    fn staggered_quanta_begin_by_phase() {
        let mut ticks = Ticks::new(&quanta(9, &[3, 0, 6]), 1);
        let wanted = [(9, 1, 1), (12, 0, 1), (15, 2, 1), (18, 1, 2)];
        assert_eq!(taken(&mut ticks, 20), wanted);
    }

    #[test]
    fn skipping_leaves_the_last_quantum_of_each_cpu() {
        let mut ticks = Ticks::new(&quanta(9, &[3, 0, 6]), 0);
        ticks.skip_to(Instant::from_ns(50));
        let last = |cpu| (50 - [3, 0, 6][cpu]) / 9;
        let found = taken(&mut ticks, 50);
        for cpu in 0..3 {
            let of_cpu = found.iter().rfind(|tick| tick.1 == cpu).unwrap();
            assert_eq!(of_cpu.2, last(cpu) as u64, "{found:?}");
        }
        assert!(found.len() <= 6);
    }

    #[test]
    fn boundary_beyond_the_last_instant_is_never() {
        let mut ticks = Ticks::new(&quanta(u64::MAX, &[0]), 2);
        assert_eq!(ticks.take(Instant::NEVER), None);
        assert_eq!(Ticks::new(&quanta(1, &[]), 0).next(), Instant::NEVER);
    }
}
