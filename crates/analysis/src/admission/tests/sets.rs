//! Decisions on whole sets.

use super::*;
use shiftwork_model::{Action, Arrival, Change, Join, Trigger, Work};
use shiftwork_policy::registry;

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
    assert_eq!(decision.verdict(), Verdict::Refused);
    assert_eq!(
        decision.reason,
        "tasks `a`, `b` and `c` may run only on CPUs 0,1 and need 2.10 CPUs there, of which there \
         are 1.90 (2 less the reserve of 0.05 of each); lower a cost, widen an affinity or lower \
         the reserve; task `c` would be let in with a cost of up to 5ms or on CPUs 0-3"
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
    assert_eq!(decision.verdict(), Verdict::Admitted(Guarantee::Hard));
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
    assert_eq!(decision.verdict(), Verdict::Refused);
    assert_eq!(
        decision.reason,
        "on CPU 0 jobs that need 6ms may all be released and due within 5ms (with a reserve of \
         0.05); lower a cost, lengthen a deadline or use another CPU; task `b` would be let in \
         with a cost of up to 750us"
    );
    let full = set(1, &[("a", 3, 6, 6, "0"), ("b", 4, 9, 9, "0")]);
    let decision = decided("p-fp", &full);
    assert_eq!(
        decision.reason,
        "task `b` may take 10.526316ms on CPU 0 and is due after 9ms (with a reserve of 0.05); \
         lower a cost, make it more urgent or use another CPU; task `b` would be let in with a \
         cost of up to 2.7ms"
    );
    // EDF takes both, on a CPU that they fill to 17/18.
    assert_eq!(decided("p-edf", &full).guarantee, Guarantee::Hard);
}

#[test]
fn a_failed_packing_is_distinguished_from_excess_demand() {
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
         (1 less the reserve of 0.05); lower a cost, widen an affinity or lower the reserve; task \
         `c` would be let in with a cost of up to 566.666us; the tasks do fit their affinities, only not bound like this: `strong-edf` admits them, with \
         other guarantees"
    );
    assert_eq!(
        decided("strong-edf", &set).guarantee,
        Guarantee::BoundedTardiness
    );
}

#[test]
fn a_set_of_which_nothing_is_shown_is_refused_with_the_reason() {
    let three = [
        ("a", 6, 10, 10, "0-1"),
        ("b", 6, 10, 10, "1-2"),
        ("c", 6, 10, 10, "0,2"),
    ];
    let four = [three[0], three[1], three[2], ("d", 6, 10, 10, "0-1")];
    for (policy, tasks, why) in [
        (
            "weak-edf",
            &three[..],
            "without shifts a task may wait although moving others would make room; a `strong` \
             policy moves them; 1.80 of 2.85 CPUs are used",
        ),
        (
            "strong-fp",
            &four[..],
            "no test shows that task `c` meets its deadlines; 2.40 of 2.85 CPUs are used; task `c` would be let in with a cost \
             of up to 3.499999ms",
        ),
    ] {
        let decision = decided(policy, &set(3, tasks));
        assert_eq!(decision.verdict(), Verdict::Refused);
        assert_eq!(
            decision.to_string(),
            format!("refused: nothing is guaranteed: {why}")
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
fn short_deadlines_matter_to_boundedness_under_dl_sp_alone() {
    for deadline in [3, 4, 5, 15] {
        let short = [("a", 4, 10, deadline, "0-1"), ("b", 4, 10, deadline, "1-2")];
        let decision = decided("strong-edf", &set(3, &short));
        assert_eq!(decision.guarantee, Guarantee::BoundedTardiness);
    }
    let dense = [
        ("a", 4, 10, 5, "0-2"),
        ("b", 4, 10, 5, "0-2"),
        ("c", 4, 10, 5, "0-2"),
        ("d", 4, 10, 5, "0-2"),
        ("e", 1, 10, 10, "1"),
    ];
    let late = decided("dl-sp", &set(3, &dense));
    assert_eq!(late.guarantee, Guarantee::None);
    assert!(
        late.reason
            .contains("by their deadlines, which are before the end of the period"),
        "{}",
        late.reason
    );
    let long = decided(
        "dl-sp",
        &set(3, &[("a", 4, 10, 20, "0-2"), ("b", 4, 10, 10, "1")]),
    );
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
            let reason = decided(policy, &set(2, &tasks)).reason;
            assert!(reason.starts_with(found), "{reason}");
        }
    }
}

#[test]
fn an_empty_set_and_a_full_reserve_are_answered() {
    assert_eq!(decided("p-edf", &set(2, &[])).guarantee, Guarantee::Hard);
    let everything = Share::from_billionths(Share::WHOLE).unwrap();
    for policy in ["p-edf", "g-fp", "strong-edf"] {
        let terms = Terms::new(&registry::find(policy).unwrap().traits, everything).unwrap();
        let decision = admit(&set(2, &[("a", 1, 10, 10, "0-1")]), &[], terms);
        assert_eq!(decision.verdict(), Verdict::Refused, "{policy}");
    }
}

#[test]
fn policies_without_a_known_condition_have_no_terms() {
    let traits = |name| registry::find(name).unwrap().traits;
    for unknown in [
        traits("np-g-fp"),
        traits("dl-linux"),
        traits("pd2"),
        traits("CQm"),
    ] {
        assert_eq!(
            Terms::new(&unknown, Share::DEFAULT_RESERVE),
            None,
            "{unknown:?}"
        );
    }
}

#[test]
fn utilization_exactly_at_the_limit_is_let_in() {
    for policy in ["p-edf", "g-edf", "strong-edf", "np-g-edf", "dl-sp"] {
        let set = set(1, &[("a", 65, 100, 100, "0"), ("b", 3, 10, 10, "0")]);
        assert_ne!(
            decided(policy, &set).verdict(),
            Verdict::Refused,
            "{policy}"
        );
        let mut admitted = begun(policy, &set);
        let mut more = claims(&set, &[]).remove(1);
        more.task = id(2);
        more.cost = Span::from_ns(1);
        assert!(admitted.enter(more).is_err(), "{policy}");
    }
}

#[test]
fn policies_that_do_not_preempt_or_are_repaired_bound_tardiness() {
    let all = [("a", 9, 10, 10, "0-1"), ("b", 9, 10, 10, "0-1")];
    let pinned = [("a", 9, 10, 10, "0-2"), ("b", 9, 10, 10, "1")];
    for (policy, set) in [("np-g-edf", set(2, &all)), ("dl-sp", set(3, &pinned))] {
        let decision = decided(policy, &set);
        assert_eq!(decision.guarantee, Guarantee::BoundedTardiness, "{policy}");
        assert_eq!(decision.tasks[1].1, Guarantee::BoundedTardiness);
    }
    let between = set(3, &[("a", 9, 10, 10, "0-1"), ("b", 9, 10, 10, "1")]);
    let decision = decided("dl-sp", &between);
    assert_eq!(decision.guarantee, Guarantee::None);
    assert!(
        decision
            .reason
            .contains("neither one CPU nor all, as task `a`"),
        "{}",
        decision.reason
    );
}

#[test]
fn without_shifts_deadlines_are_promised_where_windows_show_them() {
    let set = set(3, &[("a", 3, 10, 10, "0-1"), ("b", 3, 10, 10, "1-2")]);
    assert_eq!(decided("weak-edf", &set).guarantee, Guarantee::Hard);
}

#[test]
fn tardiness_is_bounded_where_affinities_overlap_and_shifts_make_room() {
    let set = set(3, &[("a", 9, 10, 10, "0-1"), ("b", 9, 10, 10, "1-2")]);
    let decision = decided("strong-edf", &set);
    assert_eq!(
        decision.reason,
        "tardiness is bounded; 1.80 of 2.85 CPUs are used"
    );
}

#[test]
fn the_verdict_is_shown_in_the_same_words_everywhere() {
    let fits = set(1, &[("a", 1, 10, 10, "0")]);
    let decision = decided("p-edf", &fits);
    assert_eq!(
        decision.to_string(),
        "admitted, guarantee hard: all deadlines are met; 0.10 of 0.95 CPUs are used; deadlines assume that \
         the reserve is taken in small pieces"
    );
    assert_eq!(
        Decision::refused("the reason".to_owned()).to_string(),
        "refused: the reason"
    );
}

/// A part of the machine without a guarantee is enough, and only what is missing there is the reason.
#[test]
fn a_set_with_one_unguaranteed_part_is_refused() {
    let set = set(
        6,
        &[
            ("a", 6, 10, 10, "0-1"),
            ("b", 6, 10, 10, "0-1"),
            ("c", 6, 10, 10, "0-1"),
            ("d", 6, 10, 10, "2-3"),
            ("e", 6, 10, 10, "3-4"),
            ("f", 6, 10, 10, "2-4"),
            ("g", 1, 10, 10, "5"),
        ],
    );
    let decision = decided("weak-edf", &set);
    assert_eq!(
        decision.to_string(),
        "refused: nothing is guaranteed for tasks `d`, `e` and `f`: without shifts a task may wait although moving \
         others would make room; a `strong` policy moves them; all deadlines are met for task `g`, tardiness is \
         bounded for tasks `a`, `b` and `c`; 3.70 of 5.70 CPUs are used"
    );
}

/// Guarantee none and a refusal are the same thing, whatever the set and the policy.
#[test]
fn a_set_is_refused_exactly_if_nothing_is_guaranteed() {
    let mut seen = [0; 2];
    for seed in 0..400 {
        let mut stream = shiftwork_model::RandomStream::new(seed, 41, 0);
        let tasks: Vec<(&str, u64, u64, u64, String)> = ["a", "b", "c", "d"]
            .into_iter()
            .map(|name| {
                let period = 4 + stream.below(8);
                let cost = 1 + stream.below(period / 2);
                let deadline = cost + stream.below(period + 4 - cost);
                let mask = format!("{:#x}", 1 + stream.below(7));
                (name, cost, period, deadline, mask)
            })
            .collect();
        let tasks: Vec<(&str, u64, u64, u64, &str)> = tasks
            .iter()
            .map(|&(name, cost, period, deadline, ref mask)| {
                (name, cost, period, deadline, mask.as_str())
            })
            .collect();
        let set = set(3, &tasks);
        for policy in ["weak-edf", "weak-fp", "strong-edf", "strong-fp", "dl-sp"] {
            let decision = decided(policy, &set);
            let refused = decision.verdict() == Verdict::Refused;
            let at = format!("{policy}, seed {seed}: {decision}");
            assert_eq!(refused, decision.guarantee == Guarantee::None, "{at}");
            assert_eq!(
                refused,
                decision.to_string().starts_with("refused: "),
                "{at}"
            );
            let begun = Admitted::begin(set.platform.all(), terms(policy), claims(&set, &[]));
            assert_eq!(refused, begun.is_err(), "{at}");
            // What fits and has no guarantee says so first.
            let shown = decision.tasks.iter().map(|&(_, shown)| shown).min();
            let fits = shown == Some(Guarantee::None);
            assert_eq!(
                fits,
                decision.reason.starts_with("nothing is guaranteed"),
                "{at}"
            );
            seen[usize::from(refused)] += 1;
        }
    }
    assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
}

/// Of 10 ms a sensor computes for 2 and then triggers what computes for `cost` of the milliseconds that it has.
fn triggered(cost: u64, deadline: u64) -> TaskSet {
    let mut set = set(
        1,
        &[
            ("sensor", 2, 10, 10, "0"),
            ("filter", cost, 10, deadline, "0"),
        ],
    );
    set.tasks[1].arrival = Arrival::Triggered(Trigger {
        sources: vec![id(0)],
        join: Join::Any,
        queue: None,
    });
    set
}

#[test]
fn triggered_tasks_are_promised_what_is_shown_beside_the_reserve() {
    let hard = decided("p-fp", &triggered(3, 6));
    assert_eq!(
        hard.to_string(),
        "admitted, guarantee hard: all deadlines are met by fp-rta, which counts the latest arrivals of triggered jobs"
    );
    assert_eq!(
        hard.tasks,
        [(id(0), Guarantee::Hard), (id(1), Guarantee::Hard)]
    );
    // The reserve of a twentieth makes 3 ms longer than 3 ms.
    let late = decided("p-fp", &triggered(3, 3));
    assert_eq!(late.guarantee, Guarantee::BoundedTardiness, "{late}");
    let mut terms = terms("p-fp");
    terms.reserve = Share::from_billionths(0).unwrap();
    let decision = admit(&triggered(3, 3), &[], terms);
    assert_eq!(decision.guarantee, Guarantee::Hard);
    // Both never arrive at once, so what they demand at once refutes nothing.
    let apart = set(1, &[("sensor", 4, 10, 5, "0"), ("filter", 3, 10, 5, "0")]);
    assert!(matches!(
        decided("p-edf", &apart).witness,
        Some(Witness::Interval { .. })
    ));
    let mut apart = apart;
    apart.tasks[1].arrival = triggered(3, 5).tasks[1].arrival.clone();
    assert_eq!(decided("p-edf", &apart).witness, None);
    let mut served = triggered(3, 6);
    served.tasks[0].work = Work::Constant(Span::from_ms(3));
    assert_eq!(decided("p-fp", &served).guarantee, Guarantee::None);
    let refused = decided("p-fp", &triggered(8, 8));
    assert_eq!(refused.verdict(), Verdict::Refused);
    assert!(matches!(refused.witness, Some(Witness::Crowd { .. })));
    let mut set = triggered(3, 6);
    set.actions.push(Action {
        at: at_ms(5),
        change: Change::SetPriority(id(0), Priority::MOST_URGENT),
    });
    assert_eq!(
        decided("p-fp", &set).to_string(),
        "refused: nothing is guaranteed: nothing is known of timed changes where tasks trigger others"
    );
}
