//! Quotas of users, with what still counts of ended and changed reservations.

use super::*;

/// A quota of 0.2 CPUs, and as much that still counts after its end.
fn fifth() -> Quota {
    let amount = Amount {
        tasks: 2,
        share_ppm: 200_000,
    };
    Quota {
        held: amount,
        released: amount,
    }
}

#[test]
fn admit_and_dismiss_in_turns_claim_no_more_than_quotas() {
    let (mut table, mut backend) = (table_with("strong-edf", 2, fifth()), FakeBackend::default());
    let mut admitted = 0;
    for number in 0..40 {
        let Ok((task, _)) = admit(&mut table, &mut backend, number, reservation(2, 10, "0-1"))
        else {
            continue;
        };
        admitted += 1;
        table.dismiss(task, &mut backend).unwrap();
    }
    assert_eq!(admitted, 2, "one reservation, and one that still counts");
    let capacities = table.capacity_question().answer();
    assert!(capacities[0].free >= 0.75, "{capacities:?}");
    // Another user has capacity and numbers.
    let other = Owner {
        user: 7,
        group: Some(7),
        account: 7,
        cgroup: "/other".to_owned(),
    };
    let it = reservation(2, 10, "0-1");
    let granted = table.admit(other, thread(99), "t", it.clone(), &mut backend);
    granted.unwrap();
    table.advance(Instant::ZERO + Span::from_ms(20), &mut backend);
    admit(&mut table, &mut backend, 50, it).unwrap();
}

#[test]
fn users_of_one_account_share_its_quota() {
    let (mut table, mut backend) = (table_with("strong-edf", 2, fifth()), FakeBackend::default());
    let admit = |table: &mut ReservationTable, backend: &mut FakeBackend, user: u32| {
        let owner = Owner {
            user,
            cgroup: format!("/{user}"),
            ..owner()
        };
        table.admit(owner, thread(user), "t", reservation(2, 10, "0-1"), backend)
    };
    admit(&mut table, &mut backend, 100_000).unwrap();
    let refused = admit(&mut table, &mut backend, 100_001).unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("user 1000 would reserve 0.400 CPUs"),
        "{refused}"
    );
}

#[test]
fn thread_that_moves_too_often_waits_until_quota_allows() {
    let (mut table, mut backend) = (table_with("strong-edf", 4, fifth()), FakeBackend::default());
    let (task, _) = admit(&mut table, &mut backend, 1, reservation(2, 10, "0")).unwrap();
    let cpus = |list: &str| list.parse::<CpuSet>().unwrap();
    backend.request_affinity(task);
    let notice = table.request_affinity(task, cpus("1"), &mut backend);
    assert_eq!(notice.unwrap().what, "has its reservation again");
    backend.request_affinity(task);
    let notice = table.request_affinity(task, cpus("2"), &mut backend);
    let what = notice.unwrap().what;
    assert!(
        what.contains("lost its reservation: user 1000 would reserve 0.200 CPUs beside 0.400"),
        "{what}"
    );
    assert!(!table.task(task).unwrap().is_served);
    let at = |ms| Instant::ZERO + Span::from_ms(ms);
    assert_eq!(table.advance(at(19), &mut backend), []);
    let notices = table.advance(at(20), &mut backend);
    assert_eq!(notices[0].what, "has its reservation again");
    assert_eq!(backend.served[&task].1.cpus, cpus("2"));
}
