//! Requests while tasks run.

use super::*;
use shiftwork_policy::registry;

#[test]
fn an_affinity_that_does_not_fit_costs_only_the_tasks_own_reservation() {
    let set = set(2, &[("a", 6, 10, 10, "0-1"), ("b", 6, 10, 10, "1")]);
    let mut admitted = begun("strong-edf", &set);
    let refusal = admitted
        .request_affinity(id(0), mask("1"), NOW)
        .unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "tasks `a` and `b` may run only on CPU 1 and need 1.20 CPUs there, of which there are 0.95 \
         (1 less the reserve of 0.05); lower a cost, widen an affinity or lower the reserve"
    );
    assert_eq!(admitted.promise(id(0)), None);
    assert_eq!(admitted.promise(id(1)), Some(Guarantee::BoundedTardiness));
    // Changed back, or to where there is room, it is in again; with less than before as long as what it
    // had on both CPUs counts.
    assert_eq!(
        admitted.clone().request_affinity(id(0), mask("0"), NOW),
        Ok(Guarantee::BoundedTardiness)
    );
    admitted.advance(at_ms(10));
    assert_eq!(
        admitted.request_affinity(id(0), mask("0"), NOW),
        Ok(Guarantee::Hard)
    );
    assert!(admitted.request_affinity(id(7), mask("0"), NOW).is_err());
}

#[test]
fn a_refused_change_of_parameters_leaves_everything_as_it_was() {
    let set = set(1, &[("a", 5, 10, 10, "0"), ("b", 4, 10, 10, "0")]);
    let mut admitted = begun("p-edf", &set);
    let ms = Span::from_ms;
    assert!(
        admitted
            .set_parameters(id(0), [ms(6), ms(10), ms(10)], NOW)
            .is_err()
    );
    assert_eq!(admitted.promise(id(0)), Some(Guarantee::Hard));
    let mut wish = claims(&set, &[]).remove(0);
    wish.cost = ms(6);
    // 0.95 - 0.4 of 10 ms.
    assert_eq!(admitted.largest_cost(&wish), Some(Span::from_us(5500)));
    admitted.leave(id(1), NOW);
    assert!(
        admitted
            .set_parameters(id(0), [ms(6), ms(10), ms(10)], NOW)
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
fn a_task_promised_less_than_could_be_shown_does_not_block_admission() {
    let all = Admitted::new(mask("0-1"), strong_edf());
    let enter_both = |mut all: Admitted| {
        [(0, "0"), (1, "0-1")].map(|(index, cpus)| all.enter(six_of_ten(index, cpus)).map_err(drop))
    };
    // Alone on its CPU, task 0 meets all deadlines; with a migrating task there, it may be tardy.
    assert_eq!(enter_both(all.clone()), [Ok(Guarantee::Hard), Err(())]);
    let bounded = Ok(Guarantee::BoundedTardiness);
    assert_eq!(
        enter_both(all.promising(Guarantee::BoundedTardiness)),
        [bounded, bounded]
    );
}

#[test]
fn a_task_with_too_weak_a_guarantee_is_refused() {
    let mut all = Admitted::new(mask("0-2"), strong_edf()).promising(Guarantee::Hard);
    assert_eq!(all.enter(six_of_ten(0, "0")), Ok(Guarantee::Hard));
    assert_eq!(all.enter(six_of_ten(1, "1")), Ok(Guarantee::Hard));
    // No two others can fill both of its CPUs.
    assert_eq!(all.enter(six_of_ten(2, "1-2")), Ok(Guarantee::Hard));
    let refusal = all.enter(six_of_ten(3, "0-2")).unwrap_err().reason;
    assert!(
        refusal.starts_with("task `t0` was promised `hard` and would have `bounded-tardiness`"),
        "{refusal}"
    );
    // What a task has had counts for one longest deadline more, as in a window there might be jobs of both.
    all.leave(id(2), Instant::ZERO + Span::from_ms(10));
    all.advance(Instant::ZERO + Span::from_ms(19));
    assert!(all.enter(six_of_ten(3, "1-2")).is_err());
    all.advance(Instant::ZERO + Span::from_ms(20));
    assert_eq!(all.enter(six_of_ten(3, "1-2")), Ok(Guarantee::Hard));
}

fn strong_edf() -> Terms {
    Terms::new(
        &registry::find("strong-edf").unwrap().traits,
        Share::from_billionths(50_000_000).unwrap(),
    )
    .unwrap()
}

fn six_of_ten(index: usize, cpus: &str) -> Claim {
    Claim {
        task: id(index),
        name: format!("t{index}"),
        cost: Span::from_ms(6),
        period: Span::from_ms(10),
        deadline: Span::from_ms(10),
        priority: Priority::MOST_URGENT,
        cpus: mask(cpus),
    }
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
    let set = set(2, &[("a", 11, 20, 20, "0"), ("b", 2, 5, 5, "0-1")]);
    let mut admitted = Admitted::new(mask("0"), terms("weak-edf"));
    for claim in claims(&set, &[]) {
        assert_eq!(admitted.enter(claim), Ok(Guarantee::Hard));
    }
    let returned = admitted.cpu_online(CpuId::from_index(1));
    let left: Vec<Option<Guarantee>> = returned.losses.iter().map(|loss| loss.left).collect();
    assert_eq!(left, [Some(Guarantee::None); 2]);
    assert_eq!(admitted.promise(id(0)), Some(Guarantee::None));
}

#[test]
fn what_a_task_had_counts_until_its_period_ends() {
    let set = set(1, &[("a", 8, 10, 10, "0"), ("b", 1, 10, 10, "0")]);
    let mut admitted = begun("p-edf", &set);
    let (ms, at) = (Span::from_ms, at_ms);
    admitted.advance(at(3));
    admitted
        .set_parameters(id(0), [ms(1), ms(10), ms(10)], at(10))
        .unwrap();
    let wish = [ms(8), ms(10), ms(10)];
    let refusal = admitted.set_parameters(id(1), wish, at(10)).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "tasks `a` and `b` may run only on CPU 0 and need 1.60 CPUs there, of which there are 0.95 (1 \
         less the reserve of 0.05); lower a cost, widen an affinity or lower the reserve; what task `a` \
         had before counts at least until 10ms; task `b` would be let in with a cost of up to 1.5ms"
    );
    assert_eq!(refusal.again, Some(at(10)));
    admitted.advance(at(9));
    assert!(admitted.set_parameters(id(1), wish, at(10)).is_err());
    admitted.advance(at(10));
    assert_eq!(admitted.lingering(), 0);
    assert_eq!(
        admitted.set_parameters(id(1), wish, at(20)),
        Ok(Guarantee::Hard)
    );
}

#[test]
fn a_task_that_leaves_and_returns_counts_twice_for_a_while() {
    let set = set(1, &[("a", 6, 10, 10, "0")]);
    let (mut admitted, at) = (begun("p-edf", &set), at_ms);
    admitted.advance(at(4));
    admitted.leave(id(0), at(10));
    let claim = claims(&set, &[]).remove(0);
    assert_eq!(
        admitted.enter(claim.clone()).unwrap_err().again,
        Some(at(10))
    );
    admitted.advance(at(10));
    assert_eq!(admitted.enter(claim), Ok(Guarantee::Hard));
}

#[test]
fn a_waiting_task_regains_its_reservation_when_capacity_is_released() {
    let set = set(2, &[("a", 6, 10, 10, "0"), ("b", 6, 10, 10, "1")]);
    let (mut admitted, at) = (begun("strong-edf", &set), at_ms);
    assert!(admitted.request_affinity(id(0), mask("1"), at(10)).is_err());
    admitted.leave(id(1), at(7));
    assert_eq!(admitted.advance(at(6)), []);
    assert_eq!(admitted.advance(at(7)), [(id(0), Guarantee::Hard)]);
}

#[test]
fn a_task_that_moves_counts_on_both_sides_for_a_while() {
    let set = set(2, &[("a", 6, 10, 10, "0"), ("b", 3, 10, 10, "1")]);
    let (mut admitted, at) = (begun("strong-edf", &set), at_ms);
    assert!(admitted.request_affinity(id(0), mask("1"), at(10)).is_ok());
    let mut other = claims(&set, &[]).remove(0);
    other.task = id(2);
    admitted.advance(at(10));
    assert!(admitted.enter(other.clone()).is_err());
    admitted.advance(at(20));
    assert!(admitted.enter(other).is_ok());
}

#[test]
fn a_restless_task_has_to_wait_in_the_end() {
    let set = set(1, &[("a", 9, 100, 100, "0")]);
    let mut admitted = begun("p-fp", &set);
    let at = Instant::from_ns(1_000_000_000);
    let changed = |admitted: &mut Admitted, index: u64| {
        let spans = [
            Span::from_ns(1),
            Span::from_ms(200 - index),
            Span::from_ms(20 + index),
        ];
        admitted.set_parameters(id(0), spans, at)
    };
    let refused = (0..40).find_map(|index| changed(&mut admitted, index).err());
    assert_eq!(
        refused.unwrap().reason,
        "task `a` has changed 16 times within its periods; it has to wait until they are over"
    );
    assert!(admitted.lingering() <= 16);
}

/// The sums that are kept from request to request decide as everything from scratch does.
#[test]
fn requests_are_answered_as_if_all_had_come_at_once() {
    for seed in 0..150 {
        let mut stream = shiftwork_model::RandomStream::new(seed, 40, 0);
        let online = CpuSet::first(4);
        let mut admitted = Admitted::new(online, terms("strong-edf"));
        let mut known: Vec<Claim> = Vec::new();
        for _ in 0..25 {
            let task = id(stream.below(8) as usize);
            let period = 2 + stream.below(8);
            let claim = Claim {
                task,
                name: String::new(),
                cost: Span::from_ns(1 + stream.below(period)),
                period: Span::from_ns(period),
                deadline: Span::from_ns(period),
                priority: Priority::new(1).unwrap(),
                cpus: CpuSet::from_bits(1 + stream.below(15)),
            };
            let mut all = known.clone();
            all.retain(|other| other.task != task);
            all.push(claim.clone());
            let counted = super::super::decide::Counted::all(&all);
            let steps = &mut crate::Steps::ordinary();
            let judged = super::super::decide::judge(&counted, &online, terms("strong-edf"), steps);
            let keeps = known
                .iter()
                .filter(|other| other.task != task)
                .all(|other| judged.promise(other.task) >= admitted.promise(other.task));
            let fits = judged.fits && keeps;
            let expected = fits.then(|| judged.promise(task).unwrap());
            admitted.leave(task, NOW);
            let answer = admitted.enter(claim);
            assert_eq!(answer.ok(), expected, "seed {seed}: {all:?}");
            known.retain(|other| other.task != task);
            if expected.is_some() {
                known = all;
            }
        }
    }
}

/// What holds of whole sets holds of requests: a task that would be promised nothing is refused, and says why.
#[test]
fn a_request_without_any_guarantee_is_refused() {
    let of = |name: &str, index: usize, cpus: &str| {
        let mut claim = claims(&set(3, &[(name, 6, 10, 10, cpus)]), &[]).remove(0);
        claim.task = id(index);
        claim
    };
    let mut admitted = Admitted::new(mask("0-2"), terms("weak-edf"));
    for claim in [of("a", 0, "0-1"), of("b", 1, "1-2")] {
        assert_eq!(admitted.enter(claim), Ok(Guarantee::Hard));
    }
    let refusal = admitted.enter(of("c", 2, "0-2")).unwrap_err();
    assert!(
        refusal.reason.contains("nothing is guaranteed"),
        "{refusal}"
    );
    assert_eq!(admitted.promise(id(2)), None);

    // This one breaks no promise to another task: nothing is known of its affinity.
    let mut empty = Admitted::new(mask("0-2"), terms("dl-sp"));
    let refusal = empty.enter(of("a", 0, "0-1")).unwrap_err();
    assert!(
        refusal.reason.starts_with(
            "nothing is guaranteed: nothing is known of tasks that may use neither one CPU nor all, as task `a`"
        ),
        "{refusal}"
    );

    // A machine that takes in whatever fits promises nothing, and says so.
    let mut best_effort = Admitted::new(mask("0-2"), terms("weak-edf")).promising(Guarantee::None);
    for claim in [of("a", 0, "0-1"), of("b", 1, "1-2"), of("c", 2, "0-2")] {
        assert_eq!(best_effort.enter(claim), Ok(Guarantee::None));
    }
}
