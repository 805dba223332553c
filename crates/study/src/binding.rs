//! To which CPUs a contender binds the tasks of a set.

use shiftwork_analysis::overheads::Structure;
use shiftwork_analysis::packing::pack_under;
use shiftwork_model::{Affinity, CpuSet, Fit, Heuristic, Parcel, Placement, TaskSet, pack_by};
use shiftwork_taskset::study::Packing;

use crate::plan::{Contender, QuestionKind};

/// The CPUs of each task, in one way or in two; the criterion is met if it is in one of them. Nothing if the policy refuses
/// the set.
pub(crate) fn bindings(
    contender: &Contender,
    kind: QuestionKind,
    set: &TaskSet,
) -> Vec<Vec<Affinity>> {
    let Ok(policy) = contender.entry.build(set) else {
        return Vec::new();
    };
    let Some(packing) = policy.packing() else {
        let serving = contender.entry.traits.serving(set.platform.all());
        let within = |affinity: Affinity| Affinity::new(*affinity.cpus() & serving);
        let own: Option<_> = set.tasks.iter().map(|task| within(task.affinity)).collect();
        return own.into_iter().collect();
    };
    let parts = parts(contender, set);
    let full = || filled(contender, kind, set, &parts).unwrap_or(packing);
    let even = || spread(set, &parts);
    match contender.file.packing {
        Packing::FirstFit => vec![full()],
        Packing::WorstFit => even().into_iter().collect(),
        Packing::Either => [Some(full()), even()].into_iter().flatten().collect(),
    }
}

/// The CPUs or clusters onto which it packs.
fn parts(contender: &Contender, set: &TaskSet) -> Vec<CpuSet> {
    match contender.entry.traits.placement {
        Placement::Partitioned => set.platform.all().iter().map(CpuSet::single).collect(),
        _ => set.platform.clusters_or_one(),
    }
}

/// First fit, with room for the overheads that count; `None` if there are none.
fn filled(
    contender: &Contender,
    kind: QuestionKind,
    set: &TaskSet,
    parts: &[CpuSet],
) -> Option<Vec<Affinity>> {
    let traits = &contender.entry.traits;
    let structure = Structure::of(traits, set);
    let overheads = contender.overheads(kind)?;
    pack_under(set, traits, parts, (&structure, overheads))
}

/// Worst fit, so that all parts are loaded alike; `None` if some task lies in none of them.
fn spread(set: &TaskSet, parts: &[CpuSet]) -> Option<Vec<Affinity>> {
    let tasks = set.tasks.iter().map(|task| Parcel {
        utilization: task.utilization(),
        cpus: task.affinity.cpus(),
    });
    let heuristic = Heuristic {
        fit: Fit::Worst,
        decreasing: true,
    };
    let packing = pack_by(heuristic, tasks, parts);
    let part = |place: Option<usize>| Affinity::new(parts[place?]);
    packing.group_of.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::path::Path;

    use shiftwork_analysis::verdicts::Criterion;
    use shiftwork_model::{Span, Task};
    use shiftwork_taskset::study;

    use super::*;
    use crate::plan::Plan;

    /// How three tasks of 0.5, 0.3 and 0.2 are packed onto two CPUs.
    fn packed(policy: &str, packing: &str) -> Vec<Vec<String>> {
        let text = format!(
            "name = \"small\"\nsets = 1\n[tasks]\ncpus = 2\ncaps = [1]\nutilizations = \"uniform-light\"\n[[policy]]\n\
             name = \"{policy}\"\n{packing}\n"
        );
        let file = study::read(&text).unwrap();
        let plan = Plan::new(file, Path::new("small.toml")).unwrap();
        let all = Affinity::new(CpuSet::first(2)).unwrap();
        let task = |cost| Task::periodic("T", Span::from_ms(cost), Span::from_ms(10), all);
        let set = TaskSet::new("three", 2, [3, 5, 2].map(task).to_vec());
        let found = bindings(
            &plan.contenders[0],
            QuestionKind::Shown(Criterion::Hard),
            &set,
        );
        let words = |bound: Vec<Affinity>| bound.iter().map(Affinity::to_string).collect();
        found.into_iter().map(words).collect()
    }

    #[test]
    fn packings_are_full_or_even_or_both_in_turn() {
        let (full, even) = (["0", "0", "0"], ["1", "0", "1"]);
        assert_eq!(packed("p-edf", ""), [full]);
        assert_eq!(packed("p-edf", "packing = \"first-fit\""), [full]);
        assert_eq!(packed("p-edf", "packing = \"worst-fit\""), [even]);
        assert_eq!(packed("p-edf", "packing = \"either\""), [full, even]);
        // A policy that does not pack is bound once.
        assert_eq!(packed("g-edf", "packing = \"either\""), [["0,1"; 3]]);
    }
}
