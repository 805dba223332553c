//! What the registry says of the policies is what they are.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use shiftwork_model::{
    Affinities, Affinity, Alignment, Budgets, CpuId, CpuSet, Role, Span, Task, TaskId, TaskSet,
};
use shiftwork_policy::registry::{Entry, POLICIES};

fn range(cpus: std::ops::Range<usize>) -> CpuSet {
    cpus.map(CpuId::from_index).collect()
}

/// Two tasks with these affinities on four CPUs in two clusters.
fn set(affinities: [CpuSet; 2]) -> TaskSet {
    let task = |cpus| {
        let affinity = Affinity::new(cpus).unwrap();
        Task::periodic("any", Span::from_ms(1), Span::from_ms(10), affinity)
    };
    let mut set = TaskSet::new("test", 4, affinities.map(task).to_vec());
    set.platform.clusters = vec![range(0..2), range(2..4)];
    set
}

/// Whether the policy takes tasks with these affinities.
fn takes(entry: &Entry, affinities: [CpuSet; 2]) -> bool {
    entry.build(&set(affinities)).is_ok()
}

#[test]
fn policies_take_exactly_the_affinities_of_their_traits() {
    let all = range(0..4);
    for entry in POLICIES {
        let taken = entry.traits.affinities;
        let cases = [
            (
                [all, all],
                taken != Affinities::WithinClusters && taken != Affinities::SemiPartitioned,
            ),
            ([range(0..2), range(2..4)], taken != Affinities::Global),
            (
                [range(0..1), range(2..4)],
                !matches!(taken, Affinities::Global | Affinities::Clusters),
            ),
            ([range(0..2), range(1..4)], matches!(taken, Affinities::Any)),
        ];
        for (affinities, expected) in cases {
            let found = takes(entry, affinities);
            assert_eq!(found, expected, "{}: {affinities:?}", entry.name);
        }
    }
}

#[test]
fn built_policies_are_what_their_traits_say() {
    for entry in POLICIES {
        let (name, traits) = (entry.name, &entry.traits);
        let whole = match traits.affinities {
            Affinities::WithinClusters | Affinities::SemiPartitioned => range(0..2),
            _ => range(0..4),
        };
        let policy = entry.build(&set([whole, whole])).unwrap();
        let quanta = policy.quanta();
        let is_aligned = quanta.map(|quanta| quanta.phases.iter().all(|phase| phase.is_zero()));
        let alignment = traits.preemption.alignment();
        let expected = alignment.map(|alignment| alignment == Alignment::Aligned);
        assert_eq!(is_aligned, expected, "{name}");
        let serving = traits.serving(range(0..4));
        let is_bound = traits.placement.is_packed() || serving != range(0..4);
        assert_eq!(policy.packing().is_some(), is_bound, "{name}");
        let has_queues = policy.queue_of(TaskId::from_index(0)).is_some();
        assert_eq!(has_queues, traits.budgets != Budgets::OfJobs, "{name}");
    }
}

/// Tests and machines could not distinguish two references with the same traits.
#[test]
fn references_differ_in_their_traits() {
    let is_reference = |entry: &&Entry| entry.traits.role == Role::Reference;
    let mut seen = Vec::new();
    for entry in POLICIES.iter().filter(is_reference) {
        assert!(!seen.contains(&entry.traits), "{}", entry.name);
        seen.push(entry.traits);
    }
}

/// The words for people say what programs read.
#[test]
fn domains_in_words_are_those_of_the_traits() {
    for entry in POLICIES {
        let words = match entry.traits.affinities {
            Affinities::Any => "any affinities",
            Affinities::Global => "every task may use every CPU",
            Affinities::Clusters => "every affinity is a union of clusters",
            Affinities::Laminar => "affinities are nested or disjoint",
            Affinities::WithinClusters => "affinities within clusters",
            Affinities::SemiPartitioned => "each task on one CPU or on all of its cluster",
        };
        assert!(entry.domain.starts_with(words), "{}", entry.name);
    }
}
