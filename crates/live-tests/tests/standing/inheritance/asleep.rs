//! A reserved thread sleeps while it holds a lock for which less urgent ones wait: it runs as its own task when it wakes up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use shiftwork_live::standing::Reservation;
use shiftwork_model::{OnOverrun, Span};

use super::{Again, ONE, Sections, locked, now_ns, sleep_until, wish_of};
use crate::faults::{compute, wait_for};
use crate::kernel::is_realtime;
use crate::standing::stage::Stage;

const PERIOD_NS: u64 = 10_000_000;
/// For how long it sleeps in each section.
const ASLEEP_NS: u64 = 4_000_000;
/// What it computes afterwards, still in the section.
const COMPUTES: Duration = Duration::from_micros(500);
/// From when it was to wake up until it has computed that. A thread that computes in between has 20 ms.
const BOUND: Span = Span::from_ms(3);
const BOUND_RT: Span = Span::from_ms(5);
const ROUNDS: u64 = 20;

#[derive(Default)]
struct Found {
    rounds: AtomicU64,
    longest_ns: AtomicU64,
    /// How often a less urgent thread had the mutex.
    others: AtomicU64,
}

/// The holder has its own rank when it wakes up, although the reservation of a less urgent thread that waits for it could serve it.
pub fn holder_that_sleeps_wakes_up_as_its_own_task() -> Result<(), String> {
    let bound = match is_realtime()? {
        true => BOUND_RT,
        false => BOUND,
    };
    let mut stage = Stage::load()?;
    let (sections, found) = (Arc::<Sections>::default(), Arc::<Found>::default());
    let holder = holder(Arc::clone(&sections), Arc::clone(&found));
    let others = [(); 2].map(|()| waiter(Arc::clone(&sections), Arc::clone(&found)));
    let between = Again::start(|| compute(Duration::from_micros(100)));
    let reserved = |of: &Again, cost, period| Reservation {
        cost: Span::from_ms(cost),
        period: Span::from_ms(period),
        deadline: Span::from_ms(period),
        on_overrun: OnOverrun::Continue,
        ..wish_of(of.id, ONE)
    };
    stage.must_admit(0, &reserved(&between, 20, 60))?;
    stage.must_admit(1, &reserved(&others[0], 5, 100))?;
    stage.must_admit(2, &reserved(&others[1], 5, 120))?;
    stage.must_admit(3, &reserved(&holder, 3, 10))?;
    let rounds = |least: u64| {
        wait_for("the rounds of the holder", || {
            (found.rounds.load(Ordering::SeqCst) >= least).then_some(())
        })
    };
    let begins = found.rounds.load(Ordering::SeqCst) + 2;
    rounds(begins)?;
    found.longest_ns.store(0, Ordering::SeqCst);
    let others_before = found.others.load(Ordering::SeqCst);
    rounds(begins + ROUNDS)?;
    let longest = Span::from_ns(found.longest_ns.load(Ordering::SeqCst));
    let waited = found.others.load(Ordering::SeqCst) - others_before;
    println!("{longest} at most, others had the mutex {waited} times");
    drop((holder, others, between));
    if longest > bound {
        return Err(format!("the holder took {longest} after it woke up"));
    }
    if waited == 0 {
        return Err("no other thread waited for the mutex".to_owned());
    }
    stage.end()
}

/// Sleeps in each section and computes a little when it wakes up.
fn holder(sections: Arc<Sections>, found: Arc<Found>) -> Again {
    let mut next_ns = now_ns();
    Again::start(move || {
        next_ns += PERIOD_NS;
        sleep_until(next_ns);
        locked(&sections.mutex, || {
            // The mutex may have been held until later.
            let wakes_ns = next_ns.max(now_ns()) + ASLEEP_NS;
            sleep_until(wakes_ns);
            sections.compute(COMPUTES);
            let took_ns = now_ns() - wakes_ns;
            found.longest_ns.fetch_max(took_ns, Ordering::SeqCst);
        });
        found.rounds.fetch_add(1, Ordering::SeqCst);
    })
}

/// Requests the mutex again and again, and computes a little with it.
fn waiter(sections: Arc<Sections>, found: Arc<Found>) -> Again {
    Again::start(move || {
        locked(&sections.mutex, || {
            sections.compute(Duration::from_micros(50))
        });
        found.others.fetch_add(1, Ordering::SeqCst);
        sleep_until(now_ns() + PERIOD_NS / 5);
    })
}
