//! The steps of a run, drawn from its seed. Numbers stand for whatever there is at that moment, modulo how many there are.

use shiftwork_client::{OnOverrun, Reservation};
use shiftwork_model::{RandomStream, Span};

/// The CPUs that the daemon schedules, as lists.
const CPUS: [&str; 7] = ["1", "2", "3", "1-2", "2-3", "1,3", "1-3"];

/// What a thread of a member does from its start on.
pub const WORK: [&str; 9] = [
    "hogs", "naps", "yields", "renames", "opens", "barriers", "locks", "forks", "wanders",
];

/// Something that a member does, or that happens to one.
#[derive(Clone, Debug)]
pub enum Step {
    /// It starts a thread with this work.
    Start(&'static str),
    /// It starts threads that compute all the time, bound to these CPUs.
    Crowd(u64, &'static str),
    /// It reserves for one of its threads.
    Admit(u64, Reservation),
    /// It reserves for one and gives that back, so often.
    Loop(u64, u64, Reservation),
    /// It changes one of its reservations.
    Change(u64, Reservation),
    /// It gives one of them back.
    Dismiss(u64),
    /// It binds one of its threads.
    Bind(u64, &'static str),
    /// It requests the status, over so many connections so often.
    Statuses(u64, u64),
    /// It sends malformed messages.
    Malformed(u64),
    /// It has a reserved process execute a set-user-ID program of root's, and calls about that.
    SetUserId(Reservation),
    /// It reserves for a thread of another user, and changes and ends reservations of others.
    Trespass(Reservation),
    /// Its process moves to another of its control groups.
    Move(u64),
    /// Its process is killed, and another one is started.
    Kill,
}

/// The member, and what it does.
pub fn step(random: &mut RandomStream) -> (usize, Step) {
    let member = random.below(super::MEMBERS.len() as u64) as usize;
    let number = random.below(1 << 20);
    let step = match random.below(32) {
        0..=5 => Step::Start(pick(random, &WORK)),
        6 => Step::Crowd(2 + random.below(9), pick(random, &CPUS)),
        7..=13 => Step::Admit(number, reservation(random)),
        14..=17 => Step::Change(number, reservation(random)),
        18..=19 => Step::Dismiss(number),
        20 => Step::Loop(number, 2 + random.below(6), reservation(random)),
        21..=24 => Step::Bind(number, pick(random, &["0-3", "1", "2", "3", "0", "1-3"])),
        25 => Step::Statuses(1 + random.below(16), 4 + random.below(12)),
        26 => Step::Malformed(1 + random.below(20)),
        // Two seconds may pass until the daemon notices.
        27 if random.below(3) == 0 => Step::SetUserId(reservation(random)),
        27 => Step::Admit(number, reservation(random)),
        28 => Step::Trespass(reservation(random)),
        29 => Step::Move(number % 3),
        _ => Step::Kill,
    };
    (member, step)
}

fn pick<T: Copy>(random: &mut RandomStream, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

/// From next to nothing to most of what a user may have, due at once or much later, with every reaction to an overrun.
fn reservation(random: &mut RandomStream) -> Reservation {
    let period_us = match random.below(16) {
        0 => 10_000_000,
        _ => pick(random, &[2_000, 5_000, 10_000, 20_000, 50_000, 100_000]),
    };
    let cost_us = match random.below(3) {
        0 => 50 + random.below(50),
        1 => 50 + random.below(period_us.min(50_000) / 20),
        _ => 50 + random.below(period_us.min(50_000) / 5),
    };
    // Reservations that have ended count until the longest deadline: with such of 10 s hardly any would be admitted.
    let latest_us = period_us.min(100_000);
    let deadline_us = match random.below(4) {
        0 | 1 => latest_us,
        2 => (cost_us + 50 + random.below(500)).min(latest_us),
        _ => cost_us + random.below(latest_us - cost_us + 1),
    };
    let modes = [OnOverrun::Throttle, OnOverrun::Continue, OnOverrun::Signal];
    Reservation {
        deadline: Some(Span::from_us(deadline_us)),
        cpus: Some(pick(random, &CPUS).to_owned()),
        on_overrun: Some(pick(random, &modes)),
        priority: Some(1 + random.below(99) as u32),
        ..Reservation::new(Span::from_us(cost_us), Span::from_us(period_us))
    }
}
