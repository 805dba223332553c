//! A day of threads that come, change and go, CPUs that go and come, and agents that are restarted.

use shiftwork_model::{CpuId, RandomStream};

use super::*;

const CPUS: usize = 4;

/// What is true outside of the ledger.
struct World {
    random: RandomStream,
    now: Instant,
    hands: Obedient,
    next_thread: u32,
    online: CpuSet,
    /// What those had who are gone, and until when it may still be used up.
    former: Vec<(Instant, Reservation)>,
    /// Until when it may matter what somebody had before a change.
    changed_until: Instant,
    refusals: u64,
    grants: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            random: RandomStream::new(seed, 0, 0),
            now: Instant::ZERO,
            hands: Obedient::default(),
            next_thread: 0,
            online: CpuSet::first(CPUS),
            former: Vec::new(),
            changed_until: Instant::ZERO,
            refusals: 0,
            grants: 0,
        }
    }

    fn reservation(&mut self) -> Reservation {
        let bits = 1 + self.random.below((1 << CPUS) - 1);
        let period = [1, 2, 5, 10, 50, 100][self.random.below(6) as usize] * 1_000;
        let cost = 10 + self.random.below(period * 7 / 10);
        Reservation {
            cost: Span::from_us(cost),
            period: Span::from_us(period),
            deadline: Span::from_us(period),
            ..reservation(1, 1, "0")
        }
        .on(CpuSet::from_bits(bits))
    }

    /// One of those that there are.
    fn some(&mut self, ledger: &Ledger) -> Option<TaskId> {
        let count = ledger.holders().count() as u64;
        let at = self.random.below(count.max(1)) as usize;
        ledger.holders().nth(at).map(|(task, _)| task)
    }

    fn gives_back(&mut self, holder: &Holder) {
        if holder.is_served {
            let until = self.now + holder.reservation.period;
            self.former.push((until, holder.reservation.clone()));
        }
    }
}

impl World {
    fn changes(&mut self, holder: &Holder) {
        let period = holder.reservation.period;
        self.changed_until = self.changed_until.max(self.now + period + period);
    }
}

impl Reservation {
    fn on(self, cpus: CpuSet) -> Self {
        Self { cpus, ..self }
    }
}

/// Whether some CPUs are promised more than they have, by Hall's condition, in integers: per `SCALE` of a CPU, each
/// share rounded down and what there is rounded up.
fn over_committed<'a>(
    all: impl Iterator<Item = &'a Reservation>,
    online: &CpuSet,
) -> Option<String> {
    const SCALE: u128 = 1_000_000_000_000;
    let all: Vec<(u64, u128)> = all
        .map(|it| {
            let share = u128::from(it.cost.as_ns()) * SCALE / u128::from(it.period.as_ns());
            ((it.cpus & *online).words()[0], share)
        })
        .collect();
    for some in 1_u64..1 << CPUS {
        let wanted: u128 = all
            .iter()
            .filter(|(cpus, _)| cpus & !some == 0)
            .map(|(_, share)| share)
            .sum();
        let room = u128::from((some & online.words()[0]).count_ones()) * SCALE * 95 / 100;
        if wanted > room {
            return Some(format!("CPUs {some:#b}: {wanted} of {room}"));
        }
    }
    None
}

fn step(world: &mut World, ledger: &mut Ledger) -> String {
    let span = Span::from_us(world.random.below(40_000) * world.random.below(100));
    world.now += span;
    world.former.retain(|(until, _)| *until > world.now);
    ledger.advance(world.now, &mut world.hands);
    match world.random.below(16) {
        0..=5 => {
            let (number, it) = (world.next_thread, world.reservation());
            world.next_thread += 1;
            let answer = ledger.admit(owner(), thread(number), "t", it.clone(), &mut world.hands);
            judge(world, &answer.map(|_| ()), &it);
            format!("admit {it:?}")
        }
        6..=7 => {
            let Some(task) = world.some(ledger) else {
                return String::new();
            };
            let (it, before) = (world.reservation(), ledger.holder(task).unwrap().clone());
            let was = world.hands.clone();
            match ledger.change(task, it.clone(), &mut world.hands) {
                Ok(_) => {
                    world.changes(&before);
                    world.grants += 1;
                }
                Err(_) => {
                    assert_eq!(world.hands, was);
                    assert_eq!(ledger.holder(task), Some(&before));
                    world.refusals += 1;
                }
            }
            format!("change {task:?} to {it:?}")
        }
        8..=9 => {
            let Some(task) = world.some(ledger) else {
                return String::new();
            };
            let holder = ledger.holder(task).unwrap().clone();
            world.gives_back(&holder);
            ledger.dismiss(task, &mut world.hands).unwrap();
            format!("dismiss {task:?}")
        }
        10..=12 => {
            let Some(task) = world.some(ledger) else {
                return String::new();
            };
            // The machine knows first that its thread is gone.
            let holder = ledger.holder(task).unwrap().clone();
            world.gives_back(&holder);
            world.hands.ends(task);
            ledger.left(task);
            format!("{task:?} is gone")
        }
        13 => {
            let Some(task) = world.some(ledger) else {
                return String::new();
            };
            let holder = ledger.holder(task).unwrap().clone();
            world.changes(&holder);
            world.hands.asks(task);
            let cpus = CpuSet::from_bits(world.random.below(1 << (CPUS + 1)));
            ledger.asked(task, cpus, &mut world.hands);
            // Now and then that is told once more, or where it was bound to.
            if world.random.below(2) == 0 {
                ledger.asked(task, cpus, &mut world.hands);
            } else if let Some(holder) = ledger.holder(task) {
                ledger.asked(task, holder.reservation.cpus, &mut world.hands);
            }
            format!("{task:?} asks for {cpus}")
        }
        14 => {
            let cpu = CpuId::from_index(world.random.below(CPUS as u64) as usize);
            if world.online.contains(cpu) {
                if world.online.len() > 1 {
                    world.online.remove(cpu);
                    ledger.cpu_offline(world.now, cpu, &mut world.hands);
                    // What is used up on a CPU that is gone is nobody's loss but theirs who use it.
                    world.former.clear();
                }
            } else {
                world.online.insert(cpu);
                ledger.cpu_online(world.now, cpu, &mut world.hands);
            }
            format!("CPU {cpu} goes or comes")
        }
        _ => {
            restart(world, ledger);
            "restart".to_owned()
        }
    }
}

/// The agent ends, and the next one takes in again whom it finds.
fn restart(world: &mut World, ledger: &mut Ledger) {
    let remembered: Vec<Holder> = ledger.holders().map(|(_, it)| it.clone()).collect();
    let rules = ledger.rules().clone();
    world.hands.served.clear();
    world.hands.demoted.clear();
    *ledger = Ledger::new(rules);
    for cpu in (CpuSet::first(CPUS) - world.online).iter() {
        ledger.cpu_offline(world.now, cpu, &mut world.hands);
    }
    world.former.clear();
    ledger.advance(world.now, &mut world.hands);
    for holder in remembered {
        ledger.restore(holder, &mut world.hands);
    }
}

/// A refusal for want of room is right only if there is none.
fn judge(world: &mut World, answer: &Result<(), Denial>, it: &Reservation) {
    match answer {
        Ok(()) => world.grants += 1,
        Err(Denial::Refused(reason)) => {
            world.refusals += 1;
            let held = world.hands.served.values().map(|(_, it)| it);
            let held = held
                .chain(world.former.iter().map(|(_, it)| it))
                .chain([it]);
            // What others had before they changed counts for a while, too, of which nothing is known here.
            assert!(
                world.changed_until > world.now || over_committed(held, &world.online).is_some(),
                "{it:?} would have fitted: {reason}"
            );
        }
        Err(Denial::Exhausted(_)) => {}
        Err(other) => panic!("{it:?}: {other:?}"),
    }
}

fn check(world: &World, ledger: &Ledger) -> Result<(), String> {
    let held = world.hands.served.values().map(|(_, it)| it);
    let all = held.chain(world.former.iter().map(|(_, it)| it));
    if let Some(what) = over_committed(all, &world.online) {
        return Err(format!("over-committed: {what}"));
    }
    for (task, holder) in ledger.holders() {
        let served = world.hands.served.get(&task);
        let is_as_held = |(thread, it): &(Thread, Reservation)| {
            *thread == holder.thread && *it == holder.reservation
        };
        if served.is_some() != holder.is_served || !served.is_none_or(is_as_held) {
            return Err(format!("{task:?} is {holder:?}, and served as {served:?}"));
        }
        if ledger.promise(task).is_some() != holder.is_served {
            return Err(format!("{task:?} is promised {:?}", ledger.promise(task)));
        }
    }
    for (&task, thread) in &world.hands.demoted {
        let holder = ledger.holder(task);
        if holder.is_none_or(|it| it.thread != *thread || it.is_served) {
            return Err(format!("{task:?} is {thread:?} still, and {holder:?}"));
        }
    }
    let known = ledger.holders().count();
    let served = world.hands.served.len();
    if served > known {
        return Err(format!("{served} are served, and {known} are known"));
    }
    Ok(())
}

fn churn(seed: u64, span: Span) {
    let (mut world, mut ledger) = (World::new(seed), ledger("strong-edf", CPUS));
    let mut steps = 0;
    while world.now < Instant::ZERO + span {
        let what = step(&mut world, &mut ledger);
        steps += 1;
        if let Err(why) = check(&world, &ledger) {
            panic!("seed {seed}, step {steps}, at {}: {what}: {why}", world.now);
        }
    }
    assert!(world.grants > steps / 10, "{} of {steps}", world.grants);
    assert!(world.refusals > steps / 50, "{} of {steps}", world.refusals);
}

#[test]
fn no_churn_promises_more_than_there_is_or_loses_anybody() {
    let hours = if std::env::var_os("SHIFTWORK_LONG").is_some() {
        24
    } else {
        1
    };
    for seed in 0..2 {
        churn(seed, Span::from_s(3_600 * hours));
    }
}
