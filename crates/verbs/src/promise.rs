//! What a policy promises, in the words of the checkers.

use shiftwork_model::{CpuSet, Preemption, Slots, TaskId, TaskSet, WindowSource, weights_fit};
use shiftwork_policy::Policy;
use shiftwork_policy::registry::Entry;
use shiftwork_trace::check::{PfairShare, QuantumChoice, QuantumRule};

/// What gets the quanta of a policy that was built for this task set; `None` if it decides at events alone.
///
/// That quanta are staggered is known by when they begin: where a quantum has fewer ns than there are CPUs, they
/// may seem not to be.
pub fn quantum_rule(set: &TaskSet, entry: &Entry, policy: &dyn Policy) -> Option<QuantumRule> {
    let quanta = policy.quanta()?;
    let choice = match entry.traits.preemption {
        Preemption::AtQuanta(_) => QuantumChoice::Jobs(entry.traits.serving(set.platform.all())),
        _ => QuantumChoice::Subtasks {
            shares: shares(set, policy),
            early_release: set.scheduler.early_release,
        },
    };
    Some(QuantumRule {
        length: quanta.length,
        phases: quanta.phases,
        choice,
    })
}

/// What each task declares to PD2: windows by deadlines where all of its group have room then, else by periods.
fn shares(set: &TaskSet, policy: &dyn Policy) -> Vec<PfairShare> {
    let phases = policy.quanta().map(|quanta| quanta.phases);
    let packing = policy.packing();
    let group = |id: TaskId| match &packing {
        Some(packing) => *packing[id.index()].cpus(),
        None => set.platform.all(),
    };
    let slots = |group: &CpuSet| {
        let phase = |cpu: shiftwork_model::CpuId| phases.as_ref()?.get(cpu.index()).copied();
        let mut of_group = group.iter().map(phase);
        let first = of_group.next();
        let is_staggered = of_group.any(|phase| Some(phase) != first);
        Slots::of(set, if is_staggered { group.len() } else { 1 })
    };
    let weight = |id: TaskId, group: &CpuSet, source| {
        let task = &set.tasks[id.index()];
        slots(group).weight([task.cost, task.period, task.deadline], source)
    };
    let share = |(id, _)| {
        let cpus = group(id);
        let members = set.iter().filter(|&(other, _)| group(other) == cpus);
        let by_deadline = members.map(|(other, _)| weight(other, &cpus, WindowSource::Deadline));
        let source = match weights_fit(by_deadline, &cpus) {
            true => WindowSource::Deadline,
            false => WindowSource::Period,
        };
        let weight = weight(id, &cpus, source);
        PfairShare {
            group: cpus,
            quanta: weight.quanta,
            slots: weight.slots,
        }
    };
    set.iter().map(share).collect()
}
