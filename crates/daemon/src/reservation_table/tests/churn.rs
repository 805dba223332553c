//! A simulated day: threads are admitted, change and end, CPUs go offline and online, and the daemon is restarted.

use shiftwork_model::{CpuId, RandomStream};

use super::*;

pub(super) const CPUS: usize = 4;

/// State of the machine, as far as the table does not know it.
struct World {
    random: RandomStream,
    now: Instant,
    backend: FakeBackend,
    next_thread: u32,
    online: CpuSet,
    /// Reservations of ended tasks, and until when their budgets may still be used.
    former: Vec<(Instant, Reservation)>,
    /// Until when reservations before a change may still count.
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

    /// A random task of the table.
    fn random_task(&mut self, table: &ReservationTable) -> Option<TaskId> {
        let count = table.tasks().count() as u64;
        let at = self.random.below(count.max(1)) as usize;
        table.tasks().nth(at).map(|(task, _)| task)
    }

    fn add_former(&mut self, reserved: &ReservedTask) {
        if reserved.is_served {
            let until = self.now + reserved.reservation.period;
            self.former.push((until, reserved.reservation.clone()));
        }
    }
}

impl World {
    fn note_change(&mut self, reserved: &ReservedTask) {
        let period = reserved.reservation.period;
        self.changed_until = self.changed_until.max(self.now + period + period);
    }
}

impl Reservation {
    fn on(self, cpus: CpuSet) -> Self {
        Self { cpus, ..self }
    }
}

/// A set of CPUs that is over-committed, by Hall's condition, in integers: parts of `SCALE` of a CPU, with utilizations
/// rounded down and capacities rounded up.
pub(super) fn over_committed<'a>(
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
            let Some(task) = world.random_task(table) else {
                return String::new();
            };
            let (it, before) = (world.reservation(), table.task(task).unwrap().clone());
            let was = world.backend.clone();
            match table.change(task, it.clone(), &mut world.backend) {
                Ok(_) => {
                    world.note_change(&before);
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
            let Some(task) = world.random_task(table) else {
                return String::new();
            };
            let reserved = table.task(task).unwrap().clone();
            world.add_former(&reserved);
            table.dismiss(task, &mut world.backend).unwrap();
            format!("dismiss {task:?}")
        }
        10..=12 => {
            let Some(task) = world.random_task(table) else {
                return String::new();
            };
            // The scheduler detects the end of the thread first.
            let reserved = table.task(task).unwrap().clone();
            world.add_former(&reserved);
            world.backend.end_thread(task);
            table.remove(task);
            format!("{task:?} ends")
        }
        13 => {
            let Some(task) = world.random_task(table) else {
                return String::new();
            };
            let reserved = table.task(task).unwrap().clone();
            world.note_change(&reserved);
            world.backend.request_affinity(task);
            let cpus = CpuSet::from_bits(world.random.below(1 << (CPUS + 1)));
            table.request_affinity(task, cpus, &mut world.backend);
            // Sometimes the event is repeated, or followed by that of the backend's own change.
            if world.random.below(2) == 0 {
                table.request_affinity(task, cpus, &mut world.backend);
            } else if let Some(reserved) = table.task(task) {
                table.request_affinity(task, reserved.reservation.cpus, &mut world.backend);
            }
            format!("{task:?} requests {cpus}")
        }
        14 => {
            let cpu = CpuId::from_index(world.random.below(CPUS as u64) as usize);
            if world.online.contains(cpu) {
                if world.online.len() > 1 {
                    world.online.remove(cpu);
                    table.cpu_offline(world.now, cpu, &mut world.backend);
                    // Budgets used after a CPU went offline affect no guarantee.
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

/// The daemon is restarted and restores all tasks.
fn restart(world: &mut World, table: &mut ReservationTable) {
    let saved: Vec<ReservedTask> = table.tasks().map(|(_, it)| it.clone()).collect();
    let rules = table.rules().clone();
    world.backend.served.clear();
    world.backend.demoted.clear();
    *table = ReservationTable::new(rules);
    for cpu in (CpuSet::first(CPUS) - world.online).iter() {
        table.cpu_offline(world.now, cpu, &mut world.backend);
    }
    world.former.clear();
    table.advance(world.now, &mut world.backend);
    for task in saved {
        table.restore(task, &mut world.backend);
    }
}

/// A refusal is correct only if the reservation does not fit.
fn judge(world: &mut World, answer: &Result<(), Denial>, it: &Reservation) {
    match answer {
        Ok(()) => world.grants += 1,
        Err(Denial::Refused(reason)) => {
            world.refusals += 1;
            let held = world.backend.served.values().map(|(_, it)| it);
            let held = held
                .chain(world.former.iter().map(|(_, it)| it))
                .chain([it]);
            // Reservations before a change also count for some time, which is not modelled here.
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
            return Err(format!(
                "{task:?} has guarantee {:?}",
                table.guarantee(task)
            ));
        }
    }
    for (&task, thread) in &world.backend.demoted {
        let reserved = table.task(task);
        if reserved.is_none_or(|it| it.thread != *thread || it.is_served) {
            return Err(format!("{task:?} is still {thread:?}, and {reserved:?}"));
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
fn churn_never_over_commits_cpus_or_loses_tasks() {
    let hours = if std::env::var_os("SHIFTWORK_LONG").is_some() {
        24
    } else {
        1
    };
    for seed in 0..2 {
        churn(seed, Span::from_s(3_600 * hours));
    }
}
