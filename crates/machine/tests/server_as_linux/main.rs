//! The server under Linux's rule: every edge of Fig. 1 of S. Tang, J. H. Anderson, L. Abeni, RTNS 2021, also
//! with deadlines before the end of the period, and random walks against Linux's own arithmetic.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod linux;

use shiftwork_machine::{Admission, Server, ServerParameters, ServerRule, Spent};
use shiftwork_model::{Instant, Lagging, RandomStream, Span};

use linux::{Eligible, Entity};

const AT: fn(u64) -> Instant = Instant::from_ns;
const NS: fn(u64) -> Span = Span::from_ns;
const BOTH: [Lagging; 2] = [Lagging::Grid, Lagging::Reset];

fn parameters(cost: u64, period: u64, deadline: u64) -> ServerParameters {
    ServerParameters {
        cost: NS(cost),
        period: NS(period),
        deadline: NS(deadline),
    }
}

/// The deadline is the end of the period.
const IMPLICIT: (u64, u64, u64) = (4, 10, 10);
/// The deadline is before the end of the period.
const CONSTRAINED: (u64, u64, u64) = (3, 10, 6);

/// A server with these cost, period and deadline; its task has entered at 0 and run for `ran`.
fn after((cost, period, deadline): (u64, u64, u64), lagging: Lagging, ran: u64) -> Server {
    let parameters = parameters(cost, period, deadline);
    let mut server = Server::new(parameters, ServerRule::Linux(lagging));
    let admission = server.begin(AT(0), AT(0), parameters);
    assert_eq!(admission, Admission::Ready(AT(deadline)));
    server.consume(NS(ran));
    server
}

/// The remaining budget and the end of the period.
fn rest(server: &Server) -> (u64, u64) {
    (server.left().as_ns(), server.end().unwrap().as_ns())
}

fn wake(server: &mut Server, now: u64) -> Admission {
    // The release and the parameters of the job are ignored.
    server.begin(AT(0), AT(now), parameters(1, 1, 1))
}

fn succeed(server: &mut Server, now: u64) -> Admission {
    server.succeed(AT(0), AT(now), parameters(1, 1, 1))
}

#[test]
fn entering_task_has_a_full_budget_and_a_deadline_relative_to_its_entry() {
    for lagging in BOTH {
        let parameters = parameters(3, 10, 6);
        let mut server = Server::new(parameters, ServerRule::Linux(lagging));
        assert_eq!(server.end(), None);
        assert_eq!(wake(&mut server, 7), Admission::Ready(AT(13)));
        assert_eq!(rest(&server), (3, 17));
    }
}

#[test]
fn wake_up_at_or_after_the_deadline_starts_a_period() {
    for lagging in BOTH {
        for (ran, now) in [(0, 10), (2, 10), (4, 10), (2, 11), (4, 37)] {
            let mut server = after(IMPLICIT, lagging, ran);
            assert_eq!(wake(&mut server, now), Admission::Ready(AT(now + 10)));
            assert_eq!(rest(&server), (4, now + 10));

            let mut server = after(IMPLICIT, lagging, ran);
            let resumed = server.resume(AT(now));
            assert_eq!(resumed, Admission::Replenished(AT(now + 10)));
            assert_eq!(rest(&server), (4, now + 10));
        }
    }
}

#[test]
fn wake_up_before_the_deadline_keeps_a_budget_that_the_bandwidth_allows() {
    for lagging in BOTH {
        // Half of the budget lasts for half of the period.
        for now in [2, 4, 5] {
            let mut server = after(IMPLICIT, lagging, 2);
            assert_eq!(wake(&mut server, now), Admission::Ready(AT(10)));
            assert_eq!(rest(&server), (2, 10));
            assert_eq!(server.resume(AT(now)), Admission::Ready(AT(10)));
            assert_eq!(rest(&server), (2, 10));
        }
        for now in [6, 9] {
            let mut server = after(IMPLICIT, lagging, 2);
            assert_eq!(wake(&mut server, now), Admission::Ready(AT(now + 10)));
            assert_eq!(rest(&server), (4, now + 10));
            let mut server = after(IMPLICIT, lagging, 2);
            let resumed = server.resume(AT(now));
            assert_eq!(resumed, Admission::Replenished(AT(now + 10)));
        }
    }
}

#[test]
fn wake_up_without_budget_is_throttled_until_the_end_of_the_period() {
    for lagging in BOTH {
        for (ran, deadline, left) in [(4, 20, 4), (5, 20, 3)] {
            let mut server = after(IMPLICIT, lagging, ran);
            assert_eq!(wake(&mut server, 7), Admission::Throttled(AT(10)));
            assert_eq!(server.replenish(AT(10)), AT(deadline));
            assert_eq!(rest(&server), (left, 20));
        }
    }
}

#[test]
fn wake_up_with_a_constrained_deadline_shrinks_the_budget_and_keeps_the_deadline() {
    for lagging in BOTH {
        // By the density, 3 in 6, the remaining 2 are allowed for 4.
        for (now, left) in [(1, 2), (2, 2), (3, 1), (4, 1)] {
            let mut server = after(CONSTRAINED, lagging, 1);
            assert_eq!(wake(&mut server, now), Admission::Ready(AT(6)), "at {now}");
            assert_eq!(rest(&server), (left, 10), "at {now}");
            assert_eq!(server.resume(AT(now)), Admission::Ready(AT(6)));
        }
        let mut server = after(CONSTRAINED, lagging, 1);
        assert_eq!(wake(&mut server, 5), Admission::Throttled(AT(10)));
        assert_eq!(server.replenish(AT(10)), AT(16));
        assert_eq!(rest(&server), (3, 20));
    }
}

#[test]
fn wake_up_between_a_constrained_deadline_and_the_end_of_the_period_is_throttled() {
    for lagging in BOTH {
        for now in [6, 9] {
            let mut server = after(CONSTRAINED, lagging, 1);
            assert_eq!(wake(&mut server, now), Admission::Throttled(AT(10)));
            assert_eq!(rest(&server), (0, 10));
            assert_eq!(server.replenish(AT(10)), AT(16));
            assert_eq!(rest(&server), (3, 20));
        }
        for now in [10, 12] {
            let mut server = after(CONSTRAINED, lagging, 1);
            assert_eq!(wake(&mut server, now), Admission::Ready(AT(now + 6)));
            assert_eq!(rest(&server), (3, now + 10));
        }
        // The overdraft is kept meanwhile.
        let mut server = after(CONSTRAINED, lagging, 4);
        assert_eq!(wake(&mut server, 8), Admission::Throttled(AT(10)));
        assert_eq!(server.replenish(AT(10)), AT(16));
        assert_eq!(rest(&server), (2, 20));
    }
}

#[test]
fn pending_job_gives_up_the_budget_and_waits_for_the_next_period() {
    for lagging in BOTH {
        for (shape, now) in [
            (IMPLICIT, 3),
            (IMPLICIT, 9),
            (CONSTRAINED, 2),
            (CONSTRAINED, 8),
        ] {
            let (cost, _, deadline) = shape;
            let mut server = after(shape, lagging, 2);
            assert_eq!(succeed(&mut server, now), Admission::Throttled(AT(10)));
            assert_eq!(rest(&server), (0, 10));
            assert_eq!(server.replenish(AT(10)), AT(10 + deadline));
            assert_eq!(rest(&server), (cost, 20));
        }
        let mut server = after(IMPLICIT, lagging, 5);
        assert_eq!(succeed(&mut server, 6), Admission::Throttled(AT(10)));
        assert_eq!(server.replenish(AT(10)), AT(20));
        assert_eq!(rest(&server), (3, 20), "the debt is kept");
    }
}

#[test]
fn pending_job_after_the_end_of_the_period_gets_the_next_period_at_once() {
    for lagging in BOTH {
        for now in [10, 13, 20] {
            let mut server = after(IMPLICIT, lagging, 3);
            let admission = succeed(&mut server, now);
            assert_eq!(admission, Admission::Replenished(AT(20)));
            assert_eq!(rest(&server), (4, 20));
        }
        for now in [10, 16] {
            let mut server = after(CONSTRAINED, lagging, 3);
            let admission = succeed(&mut server, now);
            assert_eq!(admission, Admission::Replenished(AT(16)));
            assert_eq!(rest(&server), (3, 20));
        }
    }
}

#[test]
fn spent_budget_throttles_until_the_end_of_the_period_unless_it_is_over() {
    for lagging in BOTH {
        let mut server = after(IMPLICIT, lagging, 4);
        assert_eq!(server.spent(AT(9)), Spent::Throttled(AT(10)));
        assert_eq!(server.spent(AT(10)), Spent::Replenished(AT(20)));
        assert_eq!(rest(&server), (4, 20));
        // Also between the deadline and the end of the period.
        let mut server = after(CONSTRAINED, lagging, 3);
        assert_eq!(server.spent(AT(8)), Spent::Throttled(AT(10)));
        assert_eq!(server.spent(AT(11)), Spent::Replenished(AT(16)));
    }
}

#[test]
fn overdraft_is_paid_back_period_by_period() {
    for lagging in BOTH {
        for (beyond, periods, left) in [
            (0, 1, 4),
            (1, 1, 3),
            (3, 1, 1),
            (4, 2, 4),
            (5, 2, 3),
            (7, 2, 1),
            (8, 3, 4),
        ] {
            let mut server = after(IMPLICIT, lagging, 4 + beyond);
            assert_eq!(server.overdrawn(), NS(beyond));
            let end = 10 + 10 * periods;
            assert_eq!(server.replenish(AT(10)), AT(end), "{beyond} too much");
            assert_eq!(rest(&server), (left, end), "{beyond} too much");
            assert_eq!(server.overdrawn(), Span::ZERO);
        }
    }
}

#[test]
fn lagging_server_restarts_at_the_present_only_under_reset() {
    let late = |lagging, ran, now| {
        let mut server = after(IMPLICIT, lagging, ran);
        let spent = server.spent(AT(now));
        (spent, rest(&server))
    };
    for lagging in BOTH {
        // A deadline that is due now is not over yet.
        let expected = (Spent::Replenished(AT(20)), (4, 20));
        assert_eq!(late(lagging, 4, 20), expected);
        // The debt postpones it far enough.
        let expected = (Spent::Replenished(AT(30)), (3, 30));
        assert_eq!(late(lagging, 9, 30), expected);
    }
    let expected = (Spent::Replenished(AT(20)), (4, 20));
    assert_eq!(late(Lagging::Grid, 4, 21), expected);
    let expected = (Spent::Replenished(AT(31)), (4, 31));
    assert_eq!(late(Lagging::Reset, 4, 21), expected);
    // A restart also clears the overdraft.
    let expected = (Spent::Replenished(AT(20)), (3, 20));
    assert_eq!(late(Lagging::Grid, 5, 21), expected);
    let expected = (Spent::Replenished(AT(31)), (4, 31));
    assert_eq!(late(Lagging::Reset, 5, 21), expected);
    // The deadline counts, not the end of the period.
    let mut server = after(CONSTRAINED, Lagging::Reset, 3);
    assert_eq!(server.replenish(AT(17)), AT(23));
    assert_eq!(rest(&server), (3, 27));
}

#[test]
fn changed_parameters_take_effect_with_the_next_replenishment() {
    for lagging in BOTH {
        let mut server = after(IMPLICIT, lagging, 1);
        server.set_parameters(parameters(2, 5, 5));
        assert_eq!(rest(&server), (3, 10));
        server.consume(NS(3));
        assert_eq!(server.spent(AT(6)), Spent::Throttled(AT(10)));
        assert_eq!(server.replenish(AT(10)), AT(15));
        assert_eq!(rest(&server), (2, 15));
        // The test of a wake-up uses the new bandwidth: 3 are left for 6.
        for (cost, deadline, left) in [(6, 10, 3), (5, 10, 3), (4, 14, 4)] {
            let mut server = after(IMPLICIT, lagging, 1);
            server.set_parameters(parameters(cost, 10, 10));
            assert_eq!(wake(&mut server, 4), Admission::Ready(AT(deadline)));
            assert_eq!(rest(&server), (left, deadline));
        }
    }
}

#[test]
fn zero_lag_time_follows_the_bandwidth_and_the_deadline() {
    for lagging in BOTH {
        for (ran, zero_lag) in [(0, 0), (1, 3), (2, 5), (3, 8), (4, 10), (5, 13), (8, 20)] {
            let server = after(IMPLICIT, lagging, ran);
            assert_eq!(server.zero_lag(), Some(AT(zero_lag)), "after {ran}");
        }
        // It is computed with the period, also with a constrained deadline.
        for (ran, zero_lag) in [(0, 0), (2, 3), (3, 6), (4, 10)] {
            let server = after(CONSTRAINED, lagging, ran);
            assert_eq!(server.zero_lag(), Some(AT(zero_lag)), "after {ran}");
        }
    }
    let server = Server::new(parameters(4, 10, 10), ServerRule::Linux(Lagging::Grid));
    assert_eq!(server.zero_lag(), None);
}

fn of_admission(admission: Admission) -> Eligible {
    match admission {
        Admission::Ready(deadline) | Admission::Replenished(deadline) => by(deadline),
        Admission::Throttled(until) => Eligible::From(until.as_ns().into()),
    }
}

fn of_spent(spent: Spent) -> Eligible {
    match spent {
        Spent::Replenished(deadline) => by(deadline),
        Spent::Throttled(until) => Eligible::From(until.as_ns().into()),
    }
}

fn by(deadline: Instant) -> Eligible {
    Eligible::By(deadline.as_ns().into())
}

fn random_parameters(random: &mut RandomStream) -> ServerParameters {
    let period = 2 + random.below(20);
    let deadline = match random.below(2) {
        0 => period,
        _ => 1 + random.below(period),
    };
    parameters(1 + random.below(deadline), period, deadline)
}

/// Drives both with a task that runs, sleeps, yields, is late, and overruns; returns how often it was
/// throttled.
fn walk(seed: u64, lagging: Lagging) -> u64 {
    let mut random = RandomStream::new(seed, 0, 0);
    let first = random_parameters(&mut random);
    let mut now = random.below(30);
    let mut server = Server::new(first, ServerRule::Linux(lagging));
    let mut entity = Entity::new(first, lagging, now.into());
    let mut found = of_admission(server.begin(AT(now), AT(now), first));
    let mut expected = Eligible::By(entity.deadline);
    let mut throttled = 0;
    for step in 0..200 {
        let overdrawn = server.overdrawn().as_ns();
        let runtime = i128::from(server.left().as_ns()) - i128::from(overdrawn);
        let end = server.end().map(|end| end.as_ns().into());
        let zero_lag = server.zero_lag().map(|at| at.as_ns().into());
        assert_eq!(
            (found, runtime, end, zero_lag),
            (
                expected,
                entity.runtime,
                Some(entity.next_period),
                Some(entity.zero_lag())
            ),
            "seed {seed}, step {step}, {lagging:?}, at {now}: {entity:?}"
        );
        if random.below(12) == 0 {
            let other = random_parameters(&mut random);
            server.set_parameters(other);
            entity.set(other);
        }
        if let Eligible::From(until) = expected {
            throttled += 1;
            // The timer may expire late.
            now = now.max(u64::try_from(until).unwrap()) + random.below(3) * random.below(15);
            found = by(server.replenish(AT(now)));
            entity.replenish(now.into());
            expected = Eligible::By(entity.deadline);
            continue;
        }
        // It waits for a CPU, and runs for as long as it has a budget, for less, or for more.
        let left = server.left().as_ns();
        let ran = match random.below(4) {
            0 => random.below(left + 1),
            1 => left + random.below(3) * random.below(20),
            _ => left,
        };
        now += ran + random.below(2) * random.below(25);
        server.consume(NS(ran));
        entity.runtime -= i128::from(ran);
        (found, expected) = match random.below(4) {
            0 => {
                let succeeded = server.succeed(AT(now), AT(now), first);
                (of_admission(succeeded), entity.give_up(now.into()))
            }
            1 if entity.runtime <= 0 => {
                (of_spent(server.spent(AT(now))), entity.throttle(now.into()))
            }
            sleep => {
                now += random.below(2) * random.below(20);
                let admission = match sleep {
                    2 => server.resume(AT(now)),
                    _ => server.begin(AT(now), AT(now), first),
                };
                (of_admission(admission), entity.wake(now.into()))
            }
        };
    }
    throttled
}

#[test]
fn random_walks_have_the_budgets_and_deadlines_of_linux() {
    let seeds = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 100_000,
        None => 3_000,
    };
    for lagging in BOTH {
        let throttled: u64 = (1..=seeds).map(|seed| walk(seed, lagging)).sum();
        assert!(throttled > 20 * seeds, "{throttled}");
    }
}
