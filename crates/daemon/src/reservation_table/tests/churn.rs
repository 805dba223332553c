//! A day of threads that come, change and go, CPUs that go and come, and agents that are restarted.

use shiftwork_model::{CpuId, RandomStream};

use super::*;

const CPUS: usize = 4;

/// What is true outside of the table.
struct World {
    random: RandomStream,
    now: Instant,
    backend: FakeBackend,
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
            backend: FakeBackend::default(),
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
    fn some(&mut self, table: &ReservationTable) -> Option<TaskId> {
        let count = table.tasks().count() as u64;
        let at = self.random.below(count.max(1)) as usize;
        table.tasks().nth(at).map(|(task, _)| task)
    }

    fn gives_back(&mut self, reserved: &ReservedTask) {
        if reserved.is_served {
            let until = self.now + reserved.reservation.period;
            self.former.push((until, reserved.reservation.clone()));
        }
    }
}

impl World {
    fn changes(&mut self, reserved: &ReservedTask) {
        let period = reserved.reservation.period;
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

fn step(world: &mut World, table: &mut ReservationTable) -> String {
    let span = Span::from_us(world.random.below(40_000) * world.random.below(100));
    world.now += span;
    world.former.retain(|(until, _)| *until > world.now);
    table.advance(world.now, &mut world.backend);
    match world.random.below(16) {
        0..=5 => {
            let (number, it) = (world.next_thread, world.reservation());
            world.next_thread += 1;
            let answer = table.admit(owner(), thread(number), "t", it.clone(), &mut world.backend);
            judge(world, &answer.map(|_| ()), &it);
            format!("admit {it:?}")
        }
        6..=7 => {
            let Some(task) = world.some(table) else {
                return String::new();
            };
            let (it, before) = (world.reservation(), table.task(task).unwrap().clone());
            let was = world.backend.clone();
            match table.change(task, it.clone(), &mut world.backend) {
                Ok(_) => {
                    world.changes(&before);
                    world.grants += 1;
                }
                Err(_) => {
                    assert_eq!(world.backend, was);
                    assert_eq!(table.task(task), Some(&before));
                    world.refusals += 1;
                }
            }
            format!("change {task:?} to {it:?}")
        }
        8..=9 => {
            let Some(task) = world.some(table) else {
                return String::new();
            };
            let reserved = table.task(task).unwrap().clone();
            world.gives_back(&reserved);
            table.dismiss(task, &mut world.backend).unwrap();
            format!("dismiss {task:?}")
        }
        10..=12 => {
            let Some(task) = world.some(table) else {
                return String::new();
            };
            // The machine knows first that its thread is gone.
            let reserved = table.task(task).unwrap().clone();
            world.gives_back(&reserved);
            world.backend.ends(task);
            table.remove(task);
            format!("{task:?} is gone")
        }
        13 => {
            let Some(task) = world.some(table) else {
                return String::new();
            };
            let reserved = table.task(task).unwrap().clone();
            world.changes(&reserved);
            world.backend.asks(task);
            let cpus = CpuSet::from_bits(world.random.below(1 << (CPUS + 1)));
            table.request_affinity(task, cpus, &mut world.backend);
            // Now and then that is told once more, or where it was bound to.
            if world.random.below(2) == 0 {
                table.request_affinity(task, cpus, &mut world.backend);
            } else if let Some(reserved) = table.task(task) {
                table.request_affinity(task, reserved.reservation.cpus, &mut world.backend);
            }
            format!("{task:?} asks for {cpus}")
        }
        14 => {
            let cpu = CpuId::from_index(world.random.below(CPUS as u64) as usize);
            if world.online.contains(cpu) {
                if world.online.len() > 1 {
                    world.online.remove(cpu);
                    table.cpu_offline(world.now, cpu, &mut world.backend);
                    // What is used up on a CPU that is gone is nobody's loss but theirs who use it.
                    world.former.clear();
                }
            } else {
                world.online.insert(cpu);
                table.cpu_online(world.now, cpu, &mut world.backend);
            }
            format!("CPU {cpu} goes or comes")
        }
        _ => {
            restart(world, table);
            "restart".to_owned()
        }
    }
}

/// The agent ends, and the next one takes in again whom it finds.
fn restart(world: &mut World, table: &mut ReservationTable) {
    let remembered: Vec<ReservedTask> = table.tasks().map(|(_, it)| it.clone()).collect();
    let rules = table.rules().clone();
    world.backend.served.clear();
    world.backend.demoted.clear();
    *table = ReservationTable::new(rules);
    for cpu in (CpuSet::first(CPUS) - world.online).iter() {
        table.cpu_offline(world.now, cpu, &mut world.backend);
    }
    world.former.clear();
    table.advance(world.now, &mut world.backend);
    for task in remembered {
        table.restore(task, &mut world.backend);
    }
}

/// A refusal for want of room is right only if there is none.
fn judge(world: &mut World, answer: &Result<(), Denial>, it: &Reservation) {
    match answer {
        Ok(()) => world.grants += 1,
        Err(Denial::Refused(reason)) => {
            world.refusals += 1;
            let held = world.backend.served.values().map(|(_, it)| it);
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

fn check(world: &World, table: &ReservationTable) -> Result<(), String> {
    let held = world.backend.served.values().map(|(_, it)| it);
    let all = held.chain(world.former.iter().map(|(_, it)| it));
    if let Some(what) = over_committed(all, &world.online) {
        return Err(format!("over-committed: {what}"));
    }
    for (task, reserved) in table.tasks() {
        let served = world.backend.served.get(&task);
        let is_as_held = |(thread, it): &(Thread, Reservation)| {
            *thread == reserved.thread && *it == reserved.reservation
        };
        if served.is_some() != reserved.is_served || !served.is_none_or(is_as_held) {
            return Err(format!(
                "{task:?} is {reserved:?}, and served as {served:?}"
            ));
        }
        if table.guarantee(task).is_some() != reserved.is_served {
            return Err(format!("{task:?} is promised {:?}", table.guarantee(task)));
        }
    }
    for (&task, thread) in &world.backend.demoted {
        let reserved = table.task(task);
        if reserved.is_none_or(|it| it.thread != *thread || it.is_served) {
            return Err(format!("{task:?} is {thread:?} still, and {reserved:?}"));
        }
    }
    let known = table.tasks().count();
    let served = world.backend.served.len();
    if served > known {
        return Err(format!("{served} are served, and {known} are known"));
    }
    Ok(())
}

fn churn(seed: u64, span: Span) {
    let (mut world, mut table) = (World::new(seed), table("strong-edf", CPUS));
    let mut steps = 0;
    while world.now < Instant::ZERO + span {
        let what = step(&mut world, &mut table);
        steps += 1;
        if let Err(why) = check(&world, &table) {
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
