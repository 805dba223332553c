//! By how much all costs may grow.

use shiftwork_model::{Phase, Protocol, Resource, ResourceId, Span, TaskSet, Work};

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

/// Suspensions stay as long as they are, and sections that hold a mutex grow with the costs.
#[test]
fn what_jobs_do_beside_executing_is_scaled_as_it_should() {
    let ms = Span::from_ms;
    let (lock, unlock) = (
        Phase::Lock(ResourceId::from_index(0)),
        Phase::Unlock(ResourceId::from_index(0)),
    );
    let factor = |set: &TaskSet| {
        let mut bind = |set: &TaskSet| candidate("p-edf", set);
        largest_factor(set, &mut bind, Criterion::Hard, STEPS).map(|factor| factor.to_string())
    };
    let mut sleepy = set(1, &[(1, 4, 4, "0")]);
    sleepy.tasks[0].work = Work::Phases(vec![Phase::Run(ms(1)), Phase::Sleep(ms(1))]);
    assert_eq!(factor(&sleepy).as_deref(), Some("3"), "3 + 1 in 4");
    let mut sharing = set(1, &[(1, 4, 4, "0"), (2, 100, 100, "0")]);
    for task in &mut sharing.tasks {
        task.work = Work::Phases(vec![lock, Phase::Run(task.cost), unlock]);
    }
    sharing.resources = vec![Resource {
        name: "bus".to_owned(),
        protocol: Protocol::Ceiling,
    }];
    // 25 jobs with their cost and the section of 2, and one of 2, in 100.
    assert_eq!(factor(&sharing).as_deref(), Some("100/77"));
}
