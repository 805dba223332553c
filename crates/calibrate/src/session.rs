//! A calibration from beginning to end: rounds, in each of which every measurement has its slice of time.

use std::collections::BTreeMap;

use shiftwork_live::probe::{monotonic_ns, sample_cost};

use crate::measure::{self, Measurement, Slice};
use crate::place::Rank;
use crate::plan::Plan;
use crate::quantity::{Kind, Quantity};
use crate::statistics::Batches;

/// What a calibration measured.
#[derive(Clone, Debug, Default)]
pub struct Calibration {
    /// The batches of each quantity.
    pub measured: BTreeMap<Quantity, Batches>,
    /// What could not be measured or is not as it should be, and what to do about it, a sentence each.
    pub notes: Vec<String>,
    /// How many rounds were begun.
    pub rounds: usize,
    /// Whether it was stopped before its end.
    pub is_interrupted: bool,
    /// With how many tasks live runs were made.
    pub live_tasks: usize,
}

/// Measures what the plan says. `go_on` is asked before each slice, with the number of the round from 0, what
/// is measured next and what share of all is done; if it says no, what was measured until then is returned.
///
/// The calling thread only waits. Takes about the plan's budget; a slice that has to finish what it began
/// may take longer.
pub fn calibrate(
    plan: &Plan,
    go_on: &mut dyn FnMut(usize, &'static str, f64) -> bool,
) -> Calibration {
    let mut done = Calibration::default();
    let rank = Rank::find();
    if rank == Rank::Ordinary {
        done.notes.push(String::from(
            "SCHED_FIFO is not allowed for this user, so measuring threads share their CPUs with whatever \
             else runs there; as root, or with `ulimit -r 99`, they would not",
        ));
    }
    let mut measurements = measure::all(plan, rank, &mut done.notes);
    done.live_tasks =
        measure::live::TASKS_PER_CPU * measure::live::stage(plan).map_or(0, |cpus| cpus.len());
    let shares: u64 = measurements.iter().map(|it| it.share()).sum();
    let slice_ns =
        |share: u64| plan.budget.as_ns() / plan.rounds.max(1) as u64 * share / shares.max(1);
    let all = (plan.rounds * measurements.len()).max(1) as f64;
    let mut slices = 0;
    for round in 0..plan.rounds {
        // A measurement that fails is named once and left out from then on.
        let mut failed = Vec::new();
        for (index, measurement) in measurements.iter_mut().enumerate() {
            if !go_on(round, measurement.name(), f64::from(slices) / all) {
                done.is_interrupted = true;
                return done;
            }
            slices += 1;
            done.rounds = round + 1;
            let slice = Slice {
                round,
                until_ns: monotonic_ns() + slice_ns(measurement.share()),
            };
            if let Err(why) = done.take(measurement.as_mut(), &slice) {
                done.notes.push(format!("{}: {why}", measurement.name()));
                failed.push(index);
            }
        }
        let mut index = 0;
        measurements.retain(|_| {
            index += 1;
            !failed.contains(&(index - 1))
        });
        done.push(
            Quantity::of(Kind::Record),
            vec![sample_cost().as_ns() as i64],
            0,
        );
    }
    done.note_what_is_absent();
    done
}

impl Calibration {
    fn take(&mut self, measurement: &mut dyn Measurement, slice: &Slice) -> Result<(), String> {
        let mut batches = Vec::new();
        let taken = measurement.take(slice, &mut batches);
        for (quantity, samples, lost) in batches {
            self.push(quantity, samples, lost);
        }
        taken
    }

    fn push(&mut self, quantity: Quantity, samples: Vec<i64>, lost: u64) {
        let batches = self.measured.entry(quantity).or_default();
        batches.lost += lost;
        batches.push(samples);
    }

    /// Says of what was looked for in vain.
    fn note_what_is_absent(&mut self) {
        let nothing = |batches: &Batches| batches.summary().is_none();
        let absent: Vec<Quantity> = self
            .measured
            .iter()
            .filter(|(_, batches)| nothing(batches))
            .map(|(&quantity, _)| quantity)
            .collect();
        for quantity in absent {
            self.measured.remove(&quantity);
            self.notes.push(match quantity.kind {
                Kind::Tick => String::from(
                    "tick: no regular interruption was seen; this CPU has no ticks while one thread computes \
                     (nohz_full)",
                ),
                _ => format!("{quantity}: nothing could be measured in the time there was"),
            });
        }
        for (quantity, batches) in &self.measured {
            if batches.lost > 0 {
                let lost = batches.lost;
                self.notes.push(format!(
                    "{quantity}: {lost} samples found no room and are not counted"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use shiftwork_live::probe::usable_cpus;
    use shiftwork_model::{CpuSet, Span};
    use shiftwork_policy::registry::find;

    use super::*;
    use crate::plan::{Aim, Part};

    /// Two calibrations at a time would be after the same CPUs.
    static ALONE: Mutex<()> = Mutex::new(());

    fn alone() -> MutexGuard<'static, ()> {
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A short calibration of everything that needs no live run, on the CPUs there are.
    fn plan(rounds: usize) -> Plan {
        Plan {
            cpus: usable_cpus(),
            aim: Aim::InKernel,
            parts: Part::ALL.map(|(part, _)| part).to_vec(),
            policies: vec![find("weak-fp").expect("it is in the registry")],
            rounds,
            budget: Span::from_ms(400 * rounds as u64),
            largest_set: Some(16 << 10),
        }
    }

    #[test]
    fn everything_is_measured_in_every_round() {
        let _alone = alone();
        let mut said = Vec::new();
        let done = calibrate(&plan(2), &mut |round, name, share| {
            assert!((0.0..1.0).contains(&share));
            said.push((round, name));
            true
        });
        assert!(!done.is_interrupted && done.rounds == 2, "{:?}", done.notes);
        assert!(said.is_sorted_by_key(|&(round, _)| round));
        let batches = |kind| {
            // In a short round not everything of a kind has its turn.
            let of = done
                .measured
                .iter()
                .filter(|(quantity, _)| quantity.kind == kind);
            of.filter_map(|(_, batches)| batches.summary())
                .map(|it| it.batches)
                .max()
        };
        let mut wanted = vec![
            Kind::Record,
            Kind::SwitchThreads,
            Kind::Decide,
            Kind::QueueTake,
            Kind::Preemption,
        ];
        if usable_cpus().len() > 1 {
            wanted.extend([Kind::IpiIdle, Kind::IpiBusy, Kind::Migration]);
        }
        for kind in wanted {
            assert_eq!(batches(kind), Some(2), "{kind:?}: {:?}", done.notes);
        }
        let notes = done.notes.join(" ");
        assert!(notes.contains("this kernel ticks every"), "{notes}");
    }

    #[test]
    fn what_was_measured_until_an_interruption_is_kept() {
        let _alone = alone();
        let mut slices = 0;
        let done = calibrate(&plan(3), &mut |_, _, _| {
            slices += 1;
            slices <= 3
        });
        assert!(done.is_interrupted);
        assert_eq!((slices, done.rounds), (4, 1));
        assert!(
            done.measured
                .contains_key(&Quantity::of(Kind::SwitchThreads))
        );
        assert!(!done.measured.contains_key(&Quantity::of(Kind::IpiIdle)));
    }

    #[test]
    fn failing_measurement_is_named_once_and_the_others_go_on() {
        let _alone = alone();
        let nowhere = CpuSet::single(shiftwork_model::CpuId::from_index(1_000));
        let failing = Plan {
            cpus: nowhere,
            ..plan(2)
        };
        let done = calibrate(&failing, &mut |_, _, _| true);
        let named = done
            .notes
            .iter()
            .filter(|note| note.starts_with("release: "))
            .count();
        assert_eq!(named, 1, "{:?}", done.notes);
        assert!(
            done.notes
                .iter()
                .any(|note| note.contains("cannot be put on CPU 1000"))
        );
        assert!(done.measured.contains_key(&Quantity::of(Kind::Record)));
    }
}
