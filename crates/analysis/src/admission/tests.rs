//! Decisions and requests, and the sentences that go with them.

use shiftwork_model::{Affinity, CpuId, CpuSet, Priority, Share, Span, Task, TaskId, TaskSet};

use super::{
    Admitted, Claim, Decision, Guarantee, Loss, Order, Placement, Terms, Verdict, admit, claims,
};
use crate::Witness;

/// Tasks with names, costs, periods and deadlines in milliseconds, and CPUs.
fn set(cpus: usize, tasks: &[(&str, u64, u64, u64, &str)]) -> TaskSet {
    let tasks = tasks.iter().map(|&(name, cost, period, deadline, mask)| {
        let affinity = Affinity::new(mask.parse().unwrap()).unwrap();
        let mut task = Task::periodic(name, Span::from_ms(cost), Span::from_ms(period), affinity);
        task.deadline = Span::from_ms(deadline);
        task
    });
    TaskSet::new("test", cpus, tasks.collect())
}

fn terms(policy: &str) -> Terms {
    Terms::of_policy(policy, Share::DEFAULT_RESERVE).unwrap()
}

fn decided(policy: &str, set: &TaskSet) -> Decision {
    admit(set, &[], terms(policy))
}

fn id(index: usize) -> TaskId {
    TaskId::from_index(index)
}

fn begun(policy: &str, set: &TaskSet) -> Admitted {
    let all = set.platform.all();
    Admitted::begin(all, terms(policy), claims(set, &[]))
        .unwrap()
        .0
}

fn mask(text: &str) -> CpuSet {
    text.parse().unwrap()
}

#[test]
fn a_crowd_is_named_with_its_cpus_and_both_sums() {
    let set = set(
        4,
        &[
            ("a", 7, 10, 10, "0-1"),
            ("b", 7, 10, 10, "0"),
            ("c", 7, 10, 10, "0-1"),
            ("d", 1, 10, 10, "2-3"),
        ],
    );
    let decision = decided("strong-edf", &set);
    assert_eq!(decision.verdict, Verdict::Refused);
    assert_eq!(
        decision.reason,
        "tasks `a`, `b` and `c` may run only on CPUs 0,1 and need 2.10 CPUs there, of which there \
         are 1.90 (2 less the reserve of 0.05 of each); lower a cost, widen an affinity or lower \
         the reserve"
    );
    let Some(Witness::Crowd { tasks, cpus, .. }) = decision.witness else {
        panic!("{:?}", decision.witness);
    };
    assert_eq!(tasks, [id(0), id(1), id(2)]);
    assert_eq!(*cpus, mask("0-1"));
}

#[test]
fn the_paper_s_semi_partitioned_example_is_admitted() {
    // Tang et al. 2021, Example 5: 17/6 of 2.85 CPUs.
    let set = set(
        3,
        &[
            ("t1", 2, 6, 6, "0"),
            ("t2", 2, 2, 2, "0-2"),
            ("t3", 1, 6, 6, "1"),
            ("t4", 2, 2, 2, "0-2"),
            ("t5", 2, 6, 6, "2"),
        ],
    );
    let decision = decided("hpa-edf", &set);
    assert_eq!(decision.guarantee, Guarantee::BoundedTardiness);
    assert_eq!(
        decision.reason,
        "tardiness is bounded; 2.83 of 2.85 CPUs are used; tasks `t2` and `t4` may fall behind \
         while the reserve is taken of all their CPUs at once"
    );
}

#[test]
fn partitioned_edf_is_hard_and_says_what_that_assumes() {
    let set = set(2, &[("a", 9, 10, 10, "0"), ("b", 95, 100, 100, "1")]);
    let decision = decided("p-edf", &set);
    assert_eq!(
        (decision.verdict, decision.guarantee),
        (Verdict::Admitted, Guarantee::Hard)
    );
    assert_eq!(
        decision.reason,
        "all deadlines are met; 1.85 of 1.90 CPUs are used; deadlines assume that the reserve is \
         taken in small pieces"
    );
}

#[test]
fn partitioned_scheduling_refuses_what_would_be_late() {
    let short = set(1, &[("a", 4, 10, 5, "0"), ("b", 2, 10, 5, "0")]);
    let decision = decided("p-edf", &short);
    assert_eq!(decision.verdict, Verdict::Refused);
    assert_eq!(
        decision.reason,
        "on CPU 0 jobs that need 6ms may all be released and due within 5ms (with a reserve of \
         0.05); lower a cost, lengthen a deadline or use another CPU"
    );
    let full = set(1, &[("a", 3, 6, 6, "0"), ("b", 4, 9, 9, "0")]);
    let decision = decided("p-fp", &full);
    assert_eq!(
        decision.reason,
        "task `b` may take 10526316ns on CPU 0 and is due after 9ms (with a reserve of 0.05); \
         lower a cost, make it more urgent or use another CPU"
    );
    // EDF takes both, on a CPU that they fill to 17/18.
    assert_eq!(decided("p-edf", &full).guarantee, Guarantee::Hard);
}

#[test]
fn a_packing_that_is_too_tight_is_told_from_a_demand_that_is() {
    let thirds = [
        ("a", 2, 3, 3, "0-1"),
        ("b", 2, 3, 3, "0-1"),
        ("c", 1, 2, 2, "0-1"),
    ];
    let set = set(2, &thirds);
    let bound = ["0", "1", "0"].map(|cpus| Affinity::new(mask(cpus)).unwrap());
    let decision = admit(&set, &bound, terms("p-edf"));
    assert_eq!(
        decision.reason,
        "tasks `a` and `c` may run only on CPU 0 and need 1.16 CPUs there, of which there are 0.95 \
         (1 less the reserve of 0.05); lower a cost, widen an affinity or lower the reserve; the \
         tasks do fit their affinities, only not bound like this: `strong-edf` admits them, with \
         other guarantees"
    );
    assert_eq!(
        decided("strong-edf", &set).guarantee,
        Guarantee::BoundedTardiness
    );
}

#[test]
fn what_is_not_shown_is_admitted_with_nothing_and_says_why() {
    let two = [
        ("a", 6, 10, 10, "0-1"),
        ("b", 6, 10, 10, "1-2"),
        ("c", 6, 10, 10, "0,2"),
    ];
    for (policy, why) in [
        (
            "weak-edf",
            "without shifts a task may wait although moving others would make room; a `strong` \
             policy moves them",
        ),
        (
            "strong-fp",
            "no test shows that task `c` meets its deadlines",
        ),
    ] {
        let decision = decided(policy, &set(3, &two));
        assert_eq!(decision.verdict, Verdict::Admitted);
        assert_eq!(decision.guarantee, Guarantee::None);
        assert_eq!(
            decision.reason,
            format!("nothing is guaranteed; 1.80 of 2.85 CPUs are used; {why}")
        );
    }
}

#[test]
fn parts_of_the_machine_get_their_own_guarantees() {
    let set = set(
        4,
        &[
            ("a", 1, 10, 10, "0"),
            ("b", 9, 10, 10, "1-2"),
            ("c", 9, 10, 10, "2-3"),
        ],
    );
    let decision = decided("strong-edf", &set);
    assert_eq!(decision.guarantee, Guarantee::BoundedTardiness);
    let promises: Vec<Guarantee> = decision.tasks.iter().map(|&(_, promise)| promise).collect();
    assert_eq!(
        promises,
        [
            Guarantee::Hard,
            Guarantee::BoundedTardiness,
            Guarantee::BoundedTardiness
        ]
    );
    assert!(
        decision.reason.starts_with(
            "all deadlines are met for task `a`, tardiness is bounded for tasks `b` and `c`; 1.90 \
             of 3.80 CPUs are used"
        ),
        "{}",
        decision.reason
    );
}

#[test]
fn short_deadlines_count_by_density_where_affinities_differ() {
    let of = |deadline| {
        set(
            3,
            &[("a", 4, 10, deadline, "0-1"), ("b", 4, 10, deadline, "1-2")],
        )
    };
    assert_eq!(
        decided("strong-edf", &of(5)).guarantee,
        Guarantee::BoundedTardiness
    );
    assert_eq!(
        decided("strong-edf", &of(4)).guarantee,
        Guarantee::BoundedTardiness
    );
    let late = decided("strong-edf", &of(3));
    assert_eq!(
        (late.verdict, late.guarantee),
        (Verdict::Admitted, Guarantee::None)
    );
    assert!(
        late.reason.contains("by their deadlines"),
        "{}",
        late.reason
    );
    let dense = [
        ("a", 4, 10, 5, "0-1"),
        ("b", 4, 10, 5, "0-1"),
        ("c", 4, 10, 5, "0-1"),
        ("d", 1, 10, 10, "1-2"),
    ];
    let late = decided("strong-edf", &set(3, &dense));
    assert_eq!(late.guarantee, Guarantee::None);
    assert!(
        late.reason.ends_with(
            "by their deadlines, which are before the end of the period, tasks `a`, `b` and `c` \
             need more than there is"
        ),
        "{}",
        late.reason
    );
    let long = decided("strong-edf", &of(20));
    assert!(
        long.reason.contains("deadlines beyond the period"),
        "{}",
        long.reason
    );
    assert_eq!(
        decided("g-edf", &set(2, &[("a", 4, 10, 3, "0-1")])).guarantee,
        Guarantee::BoundedTardiness
    );
}

#[test]
fn impossible_tasks_are_refused_in_words() {
    for (tasks, found) in [
        (
            [("a", 15, 10, 10, "0-1")],
            "task `a` needs 1.50 CPUs, and a job runs on one CPU at a time; lower its cost to its \
             period or less",
        ),
        (
            [("a", 0, 10, 10, "0-1")],
            "task `a` has a cost, period or deadline of zero; all must be above zero",
        ),
        (
            [("a", 1, 0, 10, "0-1")],
            "task `a` has a cost, period or deadline of zero; all must be above zero",
        ),
        (
            [("a", 1, 10, 10, "5")],
            "no CPU that task `a` may use is online; widen its affinity",
        ),
    ] {
        for policy in ["p-edf", "strong-fp"] {
            assert_eq!(decided(policy, &set(2, &tasks)).reason, found);
        }
    }
}

#[test]
fn nobody_and_everything_reserved_are_answered_too() {
    assert_eq!(decided("p-edf", &set(2, &[])).guarantee, Guarantee::Hard);
    let everything = Share::from_billionths(Share::WHOLE).unwrap();
    for policy in ["p-edf", "g-fp", "strong-edf"] {
        let terms = Terms::of_policy(policy, everything).unwrap();
        let decision = admit(&set(2, &[("a", 1, 10, 10, "0-1")]), &[], terms);
        assert_eq!(decision.verdict, Verdict::Refused, "{policy}");
    }
}

#[test]
fn a_policy_s_name_gives_its_terms() {
    let kernel = terms("Strong-FP-kernel");
    assert_eq!(
        (kernel.order, kernel.placement),
        (Order::FixedPriority, Placement::Strong)
    );
    for unknown in ["np-g-edf", "dl-linux", "pd2", "", "strong"] {
        assert_eq!(
            Terms::of_policy(unknown, Share::DEFAULT_RESERVE),
            None,
            "{unknown}"
        );
    }
}

#[test]
fn an_affinity_that_does_not_fit_costs_the_reservation_and_nobody_else() {
    let set = set(2, &[("a", 6, 10, 10, "0-1"), ("b", 6, 10, 10, "1")]);
    let mut admitted = begun("strong-edf", &set);
    let refusal = admitted.request_affinity(id(0), mask("1")).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "tasks `a` and `b` may run only on CPU 1 and need 1.20 CPUs there, of which there are 0.95 \
         (1 less the reserve of 0.05); lower a cost, widen an affinity or lower the reserve"
    );
    assert_eq!(admitted.promise(id(0)), None);
    assert_eq!(admitted.promise(id(1)), Some(Guarantee::BoundedTardiness));
    // Changed back, or to where there is room, it is in again.
    assert_eq!(
        admitted.request_affinity(id(0), mask("0")),
        Ok(Guarantee::Hard)
    );
    assert!(admitted.request_affinity(id(7), mask("0")).is_err());
}

#[test]
fn a_refused_change_of_parameters_leaves_everything_as_it_was() {
    let set = set(1, &[("a", 5, 10, 10, "0"), ("b", 4, 10, 10, "0")]);
    let mut admitted = begun("p-edf", &set);
    let ms = Span::from_ms;
    assert!(
        admitted
            .set_parameters(id(0), ms(6), ms(10), ms(10))
            .is_err()
    );
    assert_eq!(admitted.promise(id(0)), Some(Guarantee::Hard));
    let mut wish = claims(&set, &[]).remove(0);
    wish.cost = ms(6);
    // 0.95 - 0.4 of 10 ms.
    assert_eq!(admitted.largest_cost(&wish), Some(Span::from_us(5500)));
    admitted.leave(id(1));
    assert!(
        admitted
            .set_parameters(id(0), ms(6), ms(10), ms(10))
            .is_ok()
    );
    assert_eq!(admitted.largest_cost(&wish), Some(ms(6)));
}

#[test]
fn no_request_weakens_what_another_was_promised() {
    let set = set(2, &[("a", 6, 10, 10, "0-1"), ("b", 6, 10, 10, "0-1")]);
    let mut admitted = begun("g-fp", &set);
    assert_eq!(admitted.promise(id(0)), Some(Guarantee::Hard));
    let claim = |priority| Claim {
        task: id(2),
        name: "c".to_owned(),
        cost: Span::from_ms(6),
        period: Span::from_ms(10),
        deadline: Span::from_ms(10),
        priority: Priority::new(priority).unwrap(),
        cpus: mask("0-1"),
    };
    let refusal = admitted.enter(claim(1)).unwrap_err();
    assert!(
        refusal
            .reason
            .starts_with("task `a` was promised `hard` and would have `none`: "),
        "{refusal}"
    );
    assert_eq!(admitted.promise(id(2)), None);
}

#[test]
fn the_reserve_grows_only_into_what_is_free() {
    let set = set(1, &[("a", 8, 10, 10, "0")]);
    let mut admitted = begun("p-edf", &set);
    let share = |percent: u32| Share::from_billionths(percent * 10_000_000).unwrap();
    assert!(admitted.set_reserve(share(20)).is_ok());
    assert!(admitted.set_reserve(share(21)).is_err());
    assert_eq!(admitted.terms().reserve, share(20));
}

#[test]
fn a_cpu_that_goes_takes_the_last_come_and_gives_them_back() {
    let set = set(
        2,
        &[
            ("a", 5, 10, 10, "0-1"),
            ("b", 5, 10, 10, "0-1"),
            ("c", 3, 10, 10, "0-1"),
            ("d", 1, 10, 10, "1"),
        ],
    );
    let mut admitted = begun("strong-edf", &set);
    let losses = admitted.cpu_offline(CpuId::from_index(1));
    let gone: Vec<(TaskId, Option<Guarantee>)> = losses
        .iter()
        .map(|loss: &Loss| (loss.task, loss.left))
        .collect();
    // d has nowhere to go; of the others, the last come until 0.95 suffice.
    assert_eq!(gone, [(id(3), None), (id(2), None), (id(1), None)]);
    assert!(
        losses[0]
            .reason
            .starts_with("CPU 1 is gone: no CPU that task `d`"),
        "{losses:?}"
    );
    assert_eq!(admitted.decision().guarantee, Guarantee::Hard);
    let back: Vec<TaskId> = admitted
        .cpu_online(CpuId::from_index(1))
        .regained
        .into_iter()
        .map(|(task, _)| task)
        .collect();
    assert_eq!(back, [id(1), id(2), id(3)]);
}

#[test]
fn a_cpu_that_comes_back_may_weaken_what_was_shown_without_it() {
    let set = set(
        2,
        &[
            ("a", 3, 10, 10, "0"),
            ("b", 3, 10, 10, "0-1"),
            ("c", 1, 10, 10, "0-1"),
        ],
    );
    let mut admitted = Admitted::new(mask("0"), terms("weak-edf"));
    for claim in claims(&set, &[]) {
        assert_eq!(admitted.enter(claim), Ok(Guarantee::Hard));
    }
    let returned = admitted.cpu_online(CpuId::from_index(1));
    let left: Vec<Option<Guarantee>> = returned.losses.iter().map(|loss| loss.left).collect();
    assert_eq!(left, [Some(Guarantee::None); 3]);
    assert_eq!(admitted.promise(id(0)), Some(Guarantee::None));
}
