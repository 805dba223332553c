//! The measurements, a file for each.
//!
//! Each is asked for a slice of samples in every round and says of what quantities they are. What a quantity
//! is, and why it stands for a key of overhead files, stands at the head of its file.

mod caches;
mod decisions;
mod ipi;
pub(crate) mod live;
mod queues;
mod release;
mod switch;
mod tick;

use shiftwork_model::Span;

use crate::place::Rank;
use crate::plan::{Aim, Part, Plan};
use crate::quantity::Quantity;

pub(crate) use caches::distance_name;

/// A measurement's time in one round.
pub(crate) struct Slice {
    /// From 0.
    pub(crate) round: usize,
    /// Until when to measure, of the monotonic clock.
    pub(crate) until_ns: u64,
}

/// The samples of one quantity in one slice, and how many found no room.
pub(crate) type Batch = (Quantity, Vec<i64>, u64);

/// Something that can be measured again and again.
pub(crate) trait Measurement {
    /// For progress and errors.
    fn name(&self) -> &'static str;

    /// What part of the time it should have, compared with others.
    fn share(&self) -> u64;

    /// Measures until the end of the slice.
    ///
    /// # Errors
    /// Why this cannot be measured here, and what to do about it; it is then not asked again.
    fn take(&mut self, slice: &Slice, into: &mut Vec<Batch>) -> Result<(), String>;
}

/// All measurements that the plan asks for; what it asks for and cannot have is noted.
pub(crate) fn all(plan: &Plan, rank: Rank, notes: &mut Vec<String>) -> Vec<Box<dyn Measurement>> {
    let cpus: Vec<_> = plan.cpus.iter().collect();
    // Kernels do more of their own work on the first CPU.
    let Some(&cpu) = cpus.last() else {
        return Vec::new();
    };
    let mut all: Vec<Box<dyn Measurement>> = Vec::new();
    for part in &plan.parts {
        match part {
            Part::Release => all.push(Box::new(release::Release { cpu, rank })),
            Part::Tick => {
                all.push(Box::new(tick::Tick { cpu, rank }));
                if plan.aim == Aim::InKernel {
                    let period = Span::from_ns(tick::period_ns());
                    notes.push(format!(
                        "tick: this kernel ticks every {period}; the simulator does every `quantum` of the \
                         task-set file"
                    ));
                }
            }
            Part::Switch => {
                all.push(Box::new(switch::Threads { cpu, rank }));
                all.push(Box::new(switch::Processes { cpu, rank }));
            }
            Part::Ipi => match cpus[..] {
                [.., from, to] => all.push(Box::new(ipi::Ipi { from, to, rank })),
                _ => notes.push(String::from(
                    "ipi, migration: these need a second CPU; name more with --cpus",
                )),
            },
            Part::Decide => all.push(Box::new(decisions::Decisions::new(plan, cpu, rank))),
            Part::Queues => all.push(Box::new(queues::Queues::new(cpu, rank))),
            Part::Caches => all.push(Box::new(caches::Caches::new(plan, cpu, rank, notes))),
            Part::Live if plan.aim == Aim::InKernel => {}
            Part::Live => match live::Live::new(plan) {
                Ok(live) => all.push(Box::new(live)),
                Err(why) => notes.push(format!("live: {why}")),
            },
        }
    }
    all
}
