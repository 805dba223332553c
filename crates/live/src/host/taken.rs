//! Time that the hypervisor of a virtual machine, and interrupts, take from the CPUs.
//!
//! Budgets are charged for it, as for all time that passes while a thread has a CPU. The kernel counts it in ticks of its own clock, so that a
//! short run may not show it.

use std::collections::BTreeMap;

use rustix::param::clock_ticks_per_second;
use shiftwork_model::{CpuId, Span};

use super::System;

/// Where the kernel counts.
const COUNTERS: &str = "/proc/stat";
/// The positions of the counters in a line, from the first one on: user, nice, system, idle, iowait, irq, softirq, steal.
const IRQ: usize = 5;
const SOFTIRQ: usize = 6;
const STEAL: usize = 7;
/// Interrupts are noted from this part of a run on, in percent: less is usual.
const INTERRUPTS_MIN_PERCENT: u64 = 1;

/// What was taken from one CPU, in the kernel's ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    /// It was ready, and the hypervisor did not execute it.
    hypervisor: u64,
    /// It served interrupts.
    interrupts: u64,
}

/// What was taken from each CPU since the machine was booted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken(BTreeMap<usize, Ticks>);

impl Taken {
    /// Until now; nothing if the kernel does not report it.
    pub fn now(system: &System) -> Self {
        let counters = system.read(COUNTERS).unwrap_or_default();
        Self(counters.lines().filter_map(of_cpu).collect())
    }

    /// What was taken from these CPUs since `before`, within `span`: a sentence for each CPU and cause.
    pub fn since(&self, before: &Self, cpus: &[CpuId], span: Span) -> Vec<String> {
        let per_tick_ns = 1_000_000_000 / clock_ticks_per_second().max(1);
        let mut sentences = Vec::new();
        for cpu in cpus {
            let at = |taken: &Self| taken.0.get(&cpu.index()).copied().unwrap_or_default();
            let (after, before) = (at(self), at(before));
            let span_of = |after: u64, before: u64| {
                Span::from_ns(after.saturating_sub(before).saturating_mul(per_tick_ns))
            };
            let hypervisor = span_of(after.hypervisor, before.hypervisor);
            let interrupts = span_of(after.interrupts, before.interrupts);
            if !hypervisor.is_zero() {
                sentences.push(format!(
                    "the hypervisor did not execute CPU {cpu} of the machine for {hypervisor} while it was ready (steal): budgets are charged for it"
                ));
            }
            // One tick may have been any instant's.
            let least = span.as_ns() / 100 * INTERRUPTS_MIN_PERCENT;
            if interrupts.as_ns() >= least.max(2 * per_tick_ns) {
                sentences.push(format!(
                    "CPU {cpu} of the machine served interrupts for {interrupts}: budgets are charged for it"
                ));
            }
        }
        sentences
    }
}

/// What a line says of one CPU: `cpu2 10 0 5 900 0 1 2 0 ..`; nothing if it is another line.
fn of_cpu(line: &str) -> Option<(usize, Ticks)> {
    let mut words = line.strip_prefix("cpu")?.split(' ');
    let cpu = words.next()?.parse().ok()?;
    let counters: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    let ticks = Ticks {
        hypervisor: *counters.get(STEAL)?,
        interrupts: counters[IRQ] + counters[SOFTIRQ],
    };
    Some((cpu, ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(counters: &str) -> Taken {
        Taken::now(&System::of([(COUNTERS, counters)]))
    }

    fn cpus(indices: &[usize]) -> Vec<CpuId> {
        indices.iter().map(|&cpu| CpuId::from_index(cpu)).collect()
    }

    #[test]
    fn steal_and_interrupts_of_the_cpus_of_a_run_are_named() {
        let before = taken(
            "cpu 9 9 9 9 9 9 9 9 0 0\ncpu0 1 0 0 0 0 5 5 2 0 0\ncpu1 1 0 0 0 0 0 0 0 0 0\nintr 8",
        );
        let after = taken(
            "cpu 9 9 9 9 9 9 9 9 0 0\ncpu0 7 0 0 0 0 6 6 5 0 0\ncpu1 9 0 0 0 0 0 0 4 0 0\nintr 9",
        );
        let of = |indices: &[usize], span| after.since(&before, &cpus(indices), span);
        assert_eq!(
            of(&[0], Span::from_s(1)),
            [
                "the hypervisor did not execute CPU 0 of the machine for 30ms while it was ready (steal): budgets are charged for it",
                "CPU 0 of the machine served interrupts for 20ms: budgets are charged for it"
            ]
        );
        // Of ten seconds it is less than a hundredth, and the second CPU served none.
        assert_eq!(of(&[0], Span::from_s(10)).len(), 1);
        assert_eq!(of(&[1], Span::from_ms(10)).len(), 1);
        assert!(of(&[2], Span::from_s(1)).is_empty());
    }

    #[test]
    fn kernel_that_does_not_count_is_no_fault() {
        let without = Taken::now(&System::of([("/proc/version", "Linux")]));
        assert_eq!(without, taken("cpu0 1 2 3 4"));
        assert_eq!(without, taken("cpux 1 2 3 4 5 6 7 8"));
        let after = taken("cpu0 0 0 0 0 0 0 0 0");
        assert!(
            after
                .since(&taken("cpu0 0 0 0 0 0 9 9 9"), &cpus(&[0]), Span::from_s(1))
                .is_empty()
        );
    }

    #[test]
    fn this_machine_counts() {
        assert_ne!(Taken::now(&System::this()), Taken::default());
    }
}
