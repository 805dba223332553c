//! Response times of tasks that suspend themselves on several CPUs: the bounds of one affinity against their definition, and those of nested
//! affinities against schedules that keep the strong invariant. The waits of nested affinities have their definition beside the code,
//! in `src/affinity/waiting_levels/tests/`.

use shiftwork_analysis::affinity::{
    Bound, waiting_levels_edf_with_suspensions, waiting_levels_fp_with_suspensions,
};
use shiftwork_analysis::{Outcome, Placed, Steps};
use shiftwork_model::{CpuSet, RandomStream, Share, Span};

use super::schedules::{Order, longest_responses_on};
use super::{Compared, Plain, count, random_tasks};

const ORDERS: [Order; 2] = [Order::Priority, Order::Deadline];

/// The condition of the theorem where all tasks may use all CPUs, or one that differs from it in one term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    Proved,
    /// The task's own suspension is left out.
    NoOwnSuspension,
    /// Jobs of the others are not left from before.
    NoDelay,
    /// They are late by their suspension.
    DelayOfSuspension,
    /// By their response, but for their suspension.
    DelayWithoutSuspension,
    /// Fewer tasks than CPUs have jobs left from before the window, as is right where no task suspends itself.
    FewCarryIn,
}

impl Variant {
    const WRONG: [Self; 5] = [
        Self::NoOwnSuspension,
        Self::NoDelay,
        Self::DelayOfSuspension,
        Self::DelayWithoutSuspension,
        Self::FewCarryIn,
    ];

    /// Under EDF windows would have to begin earlier.
    fn applies(self, order: Order) -> bool {
        self != Self::FewCarryIn || order == Order::Priority
    }
}

/// Tasks that may all use all of so many CPUs; the first is the most urgent under fixed priorities.
struct Definition<'a> {
    tasks: &'a [Plain],
    cpus: u64,
    order: Order,
    variant: Variant,
}

impl Definition<'_> {
    /// How much later than its release a job may begin to execute, if it executes for the whole cost.
    fn delay(&self, place: usize, response: u64) -> u64 {
        let task = &self.tasks[place];
        match self.variant {
            Variant::NoDelay => 0,
            Variant::DelayOfSuspension => task.suspension,
            Variant::DelayWithoutSuspension => response - task.cost - task.suspension,
            _ => response - task.cost,
        }
    }

    /// What a task executes in a window of which jobs are left from before by this delay.
    fn work(&self, place: usize, delay: u64, length: u64) -> u64 {
        let task = &self.tasks[place];
        let reach = length + delay;
        reach / task.period * task.cost + task.cost.min(reach % task.period)
    }

    /// What jobs of a task execute that are due no later than a job of another one, from its release on.
    fn due(&self, place: usize, delay: u64, own: usize) -> u64 {
        let task = &self.tasks[place];
        let within = self.tasks[own].deadline;
        let slack = task.deadline - task.cost - delay;
        let last = (within % task.period).saturating_sub(slack);
        within / task.period * task.cost + task.cost.min(last)
    }

    /// How long a job waits while all CPUs execute others that do so for these times.
    fn waited(&self, works: &[u64]) -> u64 {
        let fills = |&time: &u64| {
            let executed: u64 = works.iter().map(|&work| work.min(time)).sum();
            self.cpus * time <= executed
        };
        (1..).take_while(fills).last().unwrap_or(0)
    }

    /// The longest wait in a window of this length after the release.
    fn longest_wait(&self, own: usize, known: &[u64], length: u64) -> u64 {
        let others: Vec<usize> = match self.order {
            Order::Priority => (0..own).collect(),
            Order::Deadline => (0..self.tasks.len()).filter(|&it| it != own).collect(),
        };
        let work = |&other: &usize, carries_in: bool| {
            let delay = match carries_in {
                true => self.delay(other, known[other]),
                false => 0,
            };
            let work = self.work(other, delay, length);
            match self.order {
                Order::Priority => work,
                Order::Deadline => work.min(self.due(other, delay, own)),
            }
        };
        let wait = |carry: u32| {
            let works = (0..).zip(&others);
            let works = works.map(|(at, other)| work(other, carry >> at & 1 == 1));
            self.waited(&works.collect::<Vec<_>>())
        };
        let all = (1_u32 << others.len()) - 1;
        match self.variant {
            Variant::FewCarryIn => {
                let few = |carry: &u32| u64::from(carry.count_ones()) < self.cpus;
                (0..=all).filter(few).map(wait).max().unwrap()
            }
            _ => wait(all),
        }
    }

    /// The least window that leaves no job unfinished, from this one on.
    fn response(&self, own: usize, known: &[u64], from: u64) -> Option<u64> {
        let task = &self.tasks[own];
        let alone = match self.variant {
            Variant::NoOwnSuspension => task.cost,
            _ => task.cost + task.suspension,
        };
        (from.max(alone)..=task.deadline)
            .find(|&length| self.longest_wait(own, known, length) <= length - alone)
    }

    /// Bounds of all tasks; `None` if there are none for some.
    fn bounds(&self) -> Option<Vec<u64>> {
        let alone = |task: &Plain| task.cost + task.suspension;
        let mut known: Vec<u64> = self.tasks.iter().map(alone).collect();
        let mut rises = true;
        while rises {
            rises = false;
            for own in 0..self.tasks.len() {
                // Without the own suspension it would begin above the bound.
                let from = match self.variant {
                    Variant::NoOwnSuspension => 0,
                    _ => known[own],
                };
                let response = self.response(own, &known, from)?;
                rises |= response > known[own];
                known[own] = match self.variant {
                    Variant::NoOwnSuspension => response.max(known[own]),
                    _ => response,
                };
            }
        }
        match self.variant {
            Variant::NoOwnSuspension => {
                let all = 0..self.tasks.len();
                all.map(|own| self.response(own, &known, 0)).collect()
            }
            _ => Some(known),
        }
    }
}

/// What is shown of tasks that may use these CPUs, as bits.
fn bounds(tasks: &[Plain], cpus: &[u64], order: Order) -> Option<Vec<u64>> {
    let whole = Share::from_billionths(Share::WHOLE).unwrap();
    let suspensions: Vec<Span> = tasks
        .iter()
        .map(|task| Span::from_ns(task.suspension))
        .collect();
    let bound = tasks.iter().zip(cpus).map(|(task, &cpus)| Bound {
        ranked: task.suspending().ranked,
        cpus: CpuSet::from_bits(cpus),
    });
    let steps = &mut Steps::ordinary();
    let outcome = match order {
        Order::Priority => {
            let bound: Vec<Bound> = bound.collect();
            waiting_levels_fp_with_suspensions(&bound, &suspensions, whole, steps)
        }
        Order::Deadline => {
            let placed = bound.map(|bound| Placed {
                task: bound.ranked.task,
                cpus: bound.cpus,
            });
            let placed: Vec<Placed> = placed.collect();
            waiting_levels_edf_with_suspensions(&placed, &suspensions, whole, steps)
        }
    };
    match outcome {
        Outcome::Pass(bounds) => Some(bounds.into_iter().map(Span::as_ns).collect()),
        Outcome::Fail(_) => None,
        Outcome::StepLimit => panic!("out of steps: {tasks:?} on {cpus:?}"),
    }
}

/// More tasks than these CPUs, with deadlines within the periods.
fn random(stream: &mut RandomStream, cpus: u64, ties: bool) -> Vec<Plain> {
    loop {
        let mut tasks = random_tasks(stream, 2 * cpus + 2, ties);
        for task in &mut tasks {
            task.deadline = task.limit();
        }
        if tasks.len() as u64 > cpus {
            return tasks;
        }
    }
}

/// An affinity of a nested family, or any.
fn affinity(stream: &mut RandomStream, cpus: u64, is_nested: bool) -> u64 {
    if !is_nested {
        return 1 + stream.below((1 << cpus) - 1);
    }
    let (mut first, mut end) = (0, cpus);
    while end - first > 1 && stream.below(3) > 0 {
        let middle = u64::midpoint(first, end);
        match stream.below(2) {
            0 => first = middle,
            _ => end = middle,
        }
    }
    (1 << end) - (1 << first)
}

/// Takes away the last tasks until there are bounds for all that are left, and then lengthens executions and suspensions as long as
/// there are; these tasks and the bounds.
fn just_shown(
    mut tasks: Vec<Plain>,
    stream: &mut RandomStream,
    bounds: impl Fn(&[Plain]) -> Option<Vec<u64>>,
) -> (Vec<Plain>, Vec<u64>) {
    let mut found = loop {
        match bounds(&tasks) {
            Some(found) => break found,
            None => _ = tasks.pop(),
        }
    };
    for _ in 0..4 * tasks.len() {
        let mut more = tasks.clone();
        let task = &mut more[stream.below(tasks.len() as u64) as usize];
        match stream.below(2) {
            0 => task.cost += 1,
            _ => task.suspension += 1,
        }
        if task.cost + task.suspension <= task.deadline
            && let Some(bounds) = bounds(&more)
        {
            (tasks, found) = (more, bounds);
        }
    }
    (tasks, found)
}

#[test]
fn bounds_of_one_affinity_are_those_of_the_definition() {
    let [mut exact, mut earlier] = [0; 2];
    for seed in 0..count(1_500) {
        let stream = &mut RandomStream::new(seed, 152, 0);
        let cpus = 2 + stream.below(3);
        let tasks = random(stream, cpus, false);
        let masks = vec![(1 << cpus) - 1; tasks.len()];
        for order in ORDERS {
            let found = bounds(&tasks, &masks, order);
            let definition = Definition {
                tasks: &tasks,
                cpus,
                order,
                variant: Variant::Proved,
            };
            match definition.bounds() {
                // Windows that begin before the release may show it.
                None if found.is_some() && order == Order::Deadline => earlier += 1,
                defined => {
                    exact += u64::from(found.is_some());
                    assert_eq!(
                        found, defined,
                        "seed {seed}, {order:?} on {cpus}: {tasks:?}"
                    );
                }
            }
        }
    }
    println!("{exact} sets as defined, {earlier} by earlier windows");
    assert!(exact > count(1_000) && earlier > count(2));
}

#[test]
fn no_schedule_exceeds_a_bound() {
    for order in ORDERS {
        let mut compared = Compared::default();
        for seed in 0..count(600) {
            let stream = &mut RandomStream::new(seed, 153, 0);
            let ties = stream.below(3) == 0;
            let cpus = 2 + stream.below(3);
            let tasks = random(stream, cpus, ties);
            let is_nested = stream.below(4) > 0;
            let masks: Vec<u64> = tasks
                .iter()
                .map(|_| affinity(stream, cpus, is_nested))
                .collect();
            let find = |tasks: &[Plain]| bounds(tasks, &masks[..tasks.len()], order);
            let (tasks, bounds) = just_shown(tasks, stream, find);
            let masks = &masks[..tasks.len()];
            let longest = longest_responses_on(masks, (&tasks, order), stream, 150);
            let context = format!("seed {seed}, {order:?}: {tasks:?} on {masks:?}");
            compared.add(&longest, &bounds, &context);
        }
        compared.conclude(4);
    }
}

/// Each of these drops or changes one term of the condition, and schedules show it to be wrong.
#[test]
fn schedules_refute_each_variant_with_a_term_less() {
    for order in ORDERS {
        let applies = |variant: &Variant| variant.applies(order);
        for variant in Variant::WRONG.into_iter().filter(applies) {
            let refuted = (0..count(6_000)).find(|&seed| {
                let stream = &mut RandomStream::new(seed, 154, 0);
                let cpus = 2;
                let mut tasks = random(stream, cpus, false);
                if stream.below(2) == 0 {
                    // It takes a CPU for itself.
                    let all = tasks[0].period;
                    (tasks[0].cost, tasks[0].deadline) = (all, all);
                    tasks[0].suspension = 0;
                }
                let define = |tasks: &[Plain]| {
                    let definition = Definition {
                        tasks,
                        cpus,
                        order,
                        variant,
                    };
                    definition.bounds()
                };
                let (tasks, bounds) = just_shown(tasks, stream, define);
                let masks = vec![(1 << cpus) - 1; tasks.len()];
                let longest = longest_responses_on(&masks, (&tasks, order), stream, 150);
                let mut pairs = longest.iter().zip(&bounds);
                let exceeded = pairs.position(|(response, bound)| response > bound);
                if let Some(place) = exceeded {
                    println!(
                        "{order:?} {variant:?}: seed {seed}, task {place}: {longest:?} > {bounds:?} on {cpus}: {tasks:?}"
                    );
                }
                exceeded.is_some()
            });
            assert!(refuted.is_some(), "{order:?} {variant:?}");
        }
    }
}
