//! Several requests at once, compared with the same requests one after the other on a copy: all of them have come true, or
//! nothing has changed.

use shiftwork_model::RandomStream;

use super::churn::{CPUS, over_committed};
use super::*;
use crate::reservation_table::Step;

/// What threads hold, and whether it is in effect.
fn held(table: &ReservationTable) -> BTreeMap<u32, (Reservation, bool)> {
    let tasks = table.tasks();
    tasks
        .map(|(_, it)| (it.thread.thread, (it.reservation.clone(), it.is_served)))
        .collect()
}

fn random_reservation(random: &mut RandomStream, policy: &str) -> Reservation {
    let period_ms = [5, 10, 20][random.below(3) as usize];
    let cpus = match policy {
        // Nested.
        "hpa-edf" => ["0", "1", "0-1", "2", "3", "0-3"][random.below(6) as usize],
        _ => ["0", "0-1", "1-2", "3", "0-3", "1,3"][random.below(6) as usize],
    };
    reservation(1 + random.below(period_ms), period_ms, cpus)
}

fn random_steps(
    random: &mut RandomStream,
    table: &ReservationTable,
    policy: &str,
    next: &mut u32,
) -> Vec<Step> {
    let tasks: Vec<TaskId> = table.tasks().map(|(task, _)| task).collect();
    let steps = (0..1 + random.below(5)).map(|_| {
        let at = random.below(tasks.len().max(1) as u64) as usize;
        match (random.below(4), tasks.get(at)) {
            (0, Some(&task)) => Step::Dismiss { task },
            (1, Some(&task)) => Step::Change {
                task,
                to: random_reservation(random, policy),
            },
            _ => {
                *next += 1;
                Step::Admit {
                    owner: owner(),
                    thread: thread(*next),
                    name: "t".to_owned(),
                    reservation: random_reservation(random, policy),
                }
            }
        }
    });
    steps.collect()
}

/// The same, one request after the other.
fn one_by_one(
    table: &mut ReservationTable,
    backend: &mut FakeBackend,
    steps: &[Step],
) -> Result<(), usize> {
    for (index, step) in steps.iter().enumerate() {
        let done = match step.clone() {
            Step::Admit {
                owner,
                thread,
                name,
                reservation,
            } => {
                let admitted = table.admit(owner, thread, &name, reservation, backend);
                admitted.map(drop)
            }
            Step::Change { task, to } => table.change(task, to, backend).map(drop),
            Step::Dismiss { task } => table.dismiss(task, backend),
        };
        done.map_err(|_| index)?;
    }
    Ok(())
}

fn assert_fits(table: &ReservationTable, context: &str) {
    let served = table.tasks().filter(|(_, it)| it.is_served);
    let served = served.map(|(_, it)| &it.reservation);
    let over = over_committed(served, table.online());
    assert_eq!(over, None, "{context}");
}

#[test]
fn steps_are_carried_out_together_or_not_at_all() {
    let (mut applied, mut refused, mut undone) = (0, 0, 0);
    for seed in 1..=200 {
        let policy = ["strong-edf", "hpa-edf"][seed as usize % 2];
        let mut random = RandomStream::new(seed, 91, 0);
        let (mut table, mut backend) = (table(policy, CPUS), FakeBackend::default());
        let (mut now, mut next) = (Instant::ZERO, 0);
        for round in 0..12 {
            let context = format!("seed {seed}, round {round}, {policy}");
            now += Span::from_ms(random.below(30));
            table.advance(now, &mut backend);
            let steps = random_steps(&mut random, &table, policy, &mut next);
            let (before, served) = (held(&table), backend.clone());
            let (mut plain, mut plain_backend) = (table.clone(), backend.clone());
            let expected = one_by_one(&mut plain, &mut plain_backend, &steps);
            let tried = table.try_steps(&steps).1;
            assert_eq!(held(&table), before, "{context}: only tried");
            match (expected, tried) {
                (Ok(()), Ok(done)) => {
                    assert_eq!(done.len(), steps.len());
                    // The thread of one admission ends before its turn, in some rounds.
                    let ends = steps.iter().rev().find_map(|step| match step {
                        Step::Admit { thread, .. } => Some(thread.thread),
                        _ => None,
                    });
                    let ends = ends.filter(|_| random.below(3) == 0);
                    backend.ended.extend(ends);
                    let result = table.carry_out_steps(&steps, &mut backend, |_| Ok(()));
                    backend.ended.clear();
                    if ends.is_none() {
                        assert_eq!(result, Ok(done), "{context}");
                        assert_eq!(held(&table), held(&plain), "{context}");
                        assert_eq!(backend, plain_backend, "{context}");
                        applied += 1;
                        continue;
                    }
                    assert!(matches!(result.unwrap_err().denial, Denial::Missing(_)));
                    assert_fits(&table, &context);
                    let settled = now + Span::from_s(1);
                    // What had to wait has its reservation again.
                    table.advance(settled, &mut backend);
                    now = settled;
                    let all_served = |all: BTreeMap<u32, (Reservation, bool)>| -> Vec<_> {
                        all.into_iter()
                            .map(|(thread, (it, _))| (thread, it, true))
                            .collect()
                    };
                    let found = held(&table).into_iter();
                    let found: Vec<_> = found
                        .map(|(thread, (it, is_served))| (thread, it, is_served))
                        .collect();
                    assert_eq!(found, all_served(before), "{context}");
                    undone += 1;
                }
                (Err(index), Err(failed)) => {
                    assert_eq!(failed.done.len(), index, "{context}");
                    assert_eq!(backend, served, "{context}");
                    refused += 1;
                }
                (expected, tried) => panic!("{context}: {expected:?} but {tried:?}"),
            }
            assert_fits(&table, &context);
        }
    }
    println!("{applied} applied, {refused} refused, {undone} undone");
    assert!(applied > 250 && refused > 250 && undone > 50);
}

/// Half of a CPU goes from one task to another: not at once, and as soon as what the first had counts no more.
#[test]
fn exchange_fits_only_once_settled() {
    let (mut table, mut backend) = (table("strong-edf", 1), FakeBackend::default());
    let of = |cost| reservation(cost, 10, "0");
    let (large, _) = admit(&mut table, &mut backend, 1, of(7)).unwrap();
    let (small, _) = admit(&mut table, &mut backend, 2, of(2)).unwrap();
    let exchange = |large_ms| {
        vec![
            Step::Change {
                task: large,
                to: of(2),
            },
            Step::Change {
                task: small,
                to: of(large_ms),
            },
        ]
    };
    let denial = |table: &ReservationTable, steps: &[Step]| table.try_steps(steps).1.err();
    let refused = denial(&table, &exchange(7)).unwrap();
    assert_eq!(refused.done.len(), 1);
    assert!(table.fit_once_settled(&exchange(7)));
    assert!(!table.fit_once_settled(&exchange(8)), "2 and 8 of 9.5");
    table.change(large, of(2), &mut backend).unwrap();
    assert!(denial(&table, &exchange(7)).is_some());
    table.advance(Instant::ZERO + Span::from_ms(10), &mut backend);
    assert_eq!(denial(&table, &exchange(7)), None);
}

/// A task that has this reservation is left as it is, also by the scheduler.
#[test]
fn step_without_a_change_changes_nothing() {
    let (mut table, mut backend) = (table("strong-edf", 1), FakeBackend::default());
    let (task, guarantee) = admit(&mut table, &mut backend, 1, reservation(5, 10, "0")).unwrap();
    let before = backend.clone();
    // Otherwise a change would fail.
    backend.ended.push(1);
    let to = reservation(5, 10, "0");
    let done = table
        .carry_out_steps(&[Step::Change { task, to }], &mut backend, |_| Ok(()))
        .unwrap();
    assert_eq!(
        (done[0].changed, done[0].guarantee),
        (false, Some(guarantee))
    );
    backend.ended.clear();
    assert_eq!(backend, before);
}

#[test]
fn thread_that_the_check_refuses_has_no_reservation_and_others_are_as_before() {
    let (mut table, mut backend) = (table("strong-edf", 2), FakeBackend::default());
    let (task, _) = admit(&mut table, &mut backend, 1, reservation(5, 10, "0")).unwrap();
    let admits = |number| Step::Admit {
        owner: owner(),
        thread: thread(number),
        name: "t".to_owned(),
        reservation: reservation(1, 10, "1"),
    };
    let steps = [
        Step::Change {
            task,
            to: reservation(4, 10, "0"),
        },
        admits(2),
        admits(3),
    ];
    let check = |it: &ReservedTask| match it.thread.thread {
        3 => Err(Denial::Forbidden("no".to_owned())),
        _ => Ok(()),
    };
    let failed = table
        .carry_out_steps(&steps, &mut backend, check)
        .unwrap_err();
    assert_eq!(
        (failed.done.len(), failed.denial),
        (2, Denial::Forbidden("no".to_owned()))
    );
    let expected = BTreeMap::from([(1, (reservation(5, 10, "0"), true))]);
    assert_eq!(held(&table), expected);
    assert_eq!(backend.served.len(), 1);
}
