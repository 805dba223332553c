//! Which tests the catalogue has, for which policies, and what none of them takes into account.

use std::collections::BTreeSet;

use shiftwork_model::PolicyTraits;

use super::*;

#[test]
fn no_test_is_asked_twice_about_one_policy() {
    for policy in policies() {
        let traits = &registry::find(policy).unwrap().traits;
        let mut seen = BTreeSet::new();
        for test in TESTS.iter().filter(|test| test.speaks_of(traits)) {
            assert!(
                seen.insert((test.name, test.criterion)),
                "{policy}: {}",
                test.name
            );
        }
        // Of least laxity first nothing is proven that a test could show.
        assert_eq!(seen.is_empty(), policy == "llf", "{policy}");
    }
}

#[test]
fn tests_speak_alike_of_all_implementations_of_a_policy() {
    let traits = |name| &registry::find(name).unwrap().traits;
    let speak = |traits: &PolicyTraits| -> Vec<bool> {
        TESTS.iter().map(|test| test.speaks_of(traits)).collect()
    };
    for name in ["CEm", "HEm", "FEm", "CE1", "FE1"] {
        assert_eq!(speak(traits(name)), speak(traits("g-edf")), "{name}");
    }
    for name in ["CQm", "S-CQm", "CQ1", "S-CQ1"] {
        assert!(!speak(traits(name)).contains(&true), "{name}");
        let charged = under_overheads(traits(name));
        assert_eq!(speak(&charged), speak(traits("g-edf")), "{name}");
    }
    assert_eq!(speak(traits("hpa-fp-ecrts16")), speak(traits("hpa-fp")));
    assert!(!speak(traits("dl-linux")).contains(&true));
}

#[test]
fn every_test_has_a_source() {
    for test in TESTS {
        assert!(test.source.len() > 8, "{}", test.name);
    }
}

#[test]
fn left_out_lists_what_no_test_takes_into_account() {
    use shiftwork_model::{Frequency, Phase, Share, Work};
    let mut set = set(1, &[(2, 10, 10, "0"), (2, 10, 10, "0"), (2, 10, 10, "0")]);
    let [run, sleep] = [Phase::Run(Span::from_ms(1)), Phase::Sleep(Span::from_ms(1))];
    set.tasks[0].work = Work::Phases(vec![run, sleep, run]);
    set.tasks[1].work = Work::Uniform(Span::from_ms(1), Span::from_ms(3));
    let expected = [
        "jobs of task `t2` may run for 3ms, longer than its cost of 2ms",
        "CPUs that are not at full speed",
        "frequencies that follow the load",
        "the reserve that `reserve-server` takes",
    ];
    set.platform.capacities = vec![Share::from_billionths(500_000_000).unwrap()];
    set.platform.frequency = Frequency::GrubPa;
    set.scheduler.reserve_server = true;
    assert_eq!(left_out(&set), expected);
}
