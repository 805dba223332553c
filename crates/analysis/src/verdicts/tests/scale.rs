//! By how much all costs may grow.

use super::*;

#[test]
fn costs_may_grow_until_a_sum_is_full() {
    let factor = |name: &str, set: &TaskSet, criterion| {
        let mut bind = |set: &TaskSet| candidate(name, set);
        largest_factor(set, &mut bind, criterion, STEPS).map(|factor| factor.to_string())
    };
    let fits = |text: &str| Some(text.to_owned());
    let uneven = set(
        3,
        &[
            (2, 6, 6, "0"),
            (1, 2, 2, "0-2"),
            (1, 6, 6, "1"),
            (1, 2, 2, "0-2"),
        ],
    );
    // t2 and t4 fill a CPU each at a factor of 2, and all together 3 CPUs at 2.
    assert_eq!(factor("strong-edf", &uneven, Criterion::Soft), fits("2"));
    let one = set(1, &[(1, 3, 3, "0"), (1, 4, 4, "0")]);
    assert_eq!(factor("p-edf", &one, Criterion::Hard), fits("12/7"));
    assert_eq!(factor("p-edf", &set(1, &[]), Criterion::Hard), None);
    let tang = tang_5();
    assert_eq!(
        factor("strong-edf", &tang, Criterion::Soft),
        fits("1"),
        "two have a whole CPU"
    );
    let thirds = three_of_two_thirds();
    assert_eq!(
        factor("pd2", &thirds, Criterion::Hard),
        fits("1"),
        "costs are whole quanta"
    );
    let full = set(1, &[(4, 3, 3, "0")]);
    assert_eq!(
        factor("p-edf", &full, Criterion::Hard),
        fits("3/4"),
        "less than it has"
    );
}
