//! The set function of Theorem 3, the conditions that it must satisfy, and the bounds that follow.

use num_bigint::BigInt;
use shiftwork_model::RandomStream;

use crate::naive::{Exact, exact, is_inside, size};
use crate::system::Plain;
use crate::times_if_long;

/// Theorem 3, or that with one of its constants changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    True,
    /// b half as large.
    HalfB,
    /// b from the least quotient of two tasks.
    LeastB,
    /// b = 0.
    NoB,
    /// No T/2 for the task itself.
    NoHalfPeriod,
    /// U - u_j in place of U - u_j / 2.
    OthersOnly,
    /// The least term in place of the greatest in a.
    LeastA,
    /// No T_j/2 in a.
    NoPeriodInA,
    /// No deadline in a.
    NoDeadline,
}

pub const WRONG_RESPONSES: [Response; 8] = [
    Response::HalfB,
    Response::LeastB,
    Response::NoB,
    Response::NoHalfPeriod,
    Response::OthersOnly,
    Response::LeastA,
    Response::NoPeriodInA,
    Response::NoDeadline,
];

/// The set function f of Theorem 3 for one component of two tasks or more.
#[derive(Clone, Debug)]
pub struct Potential {
    a: Exact,
    b: Exact,
    /// By task u, and what stands for T/2.
    tasks: Vec<(Exact, Exact)>,
}

impl Potential {
    pub fn new(tasks: &[Plain], variant: Response) -> Self {
        let rates: Vec<Exact> = tasks
            .iter()
            .map(|task| exact(task.cost, task.period))
            .collect();
        let all: Exact = rates.iter().cloned().sum();
        let pairs = (0..tasks.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
        let quotients = pairs
            .map(|(i, j)| exact(tasks[i].period + tasks[j].period, 1) / (&rates[i] + &rates[j]));
        let b = match variant {
            Response::NoB => exact(0, 1),
            Response::LeastB => quotients.min().unwrap(),
            Response::HalfB => quotients.max().unwrap() / exact(2, 1),
            _ => quotients.max().unwrap(),
        };
        let terms = tasks.iter().zip(&rates).map(|(task, rate)| {
            let own = match variant {
                Response::OthersOnly => rate.clone(),
                _ => rate / exact(2, 1),
            };
            let period = match variant {
                Response::NoPeriodInA => exact(0, 1),
                _ => exact(task.period, 2),
            };
            let deadline = match variant {
                // As for implicit deadlines.
                Response::NoDeadline => exact(task.period, 1),
                _ => exact(task.deadline, 1),
            };
            period - deadline + &b * (&all - own)
        });
        let a = match variant {
            Response::LeastA => terms.min().unwrap(),
            _ => terms.max().unwrap(),
        };
        let half = |task: &Plain| match variant {
            Response::NoHalfPeriod => exact(0, 1),
            _ => exact(task.period, 2),
        };
        let tasks = rates.iter().cloned().zip(tasks.iter().map(half)).collect();
        Self { a, b, tasks }
    }

    /// f of the tasks of a set.
    pub fn of(&self, set: impl Iterator<Item = usize> + Clone) -> Exact {
        let rate: Exact = set.clone().map(|task| self.tasks[task].0.clone()).sum();
        let linear: Exact = set
            .map(|task| {
                let (rate, half) = &self.tasks[task];
                rate * (&self.a + half)
            })
            .sum();
        linear - &self.b * &rate * rate / exact(2, 1)
    }

    /// How late after its deadline a task may finish: f of it alone, by its rate.
    pub fn lateness(&self, task: usize) -> Exact {
        self.of(std::iter::once(task)) / &self.tasks[task].0
    }
}

/// Bounds on the response times of one component, rounded up.
pub fn responses(tasks: &[Plain], variant: Response) -> Vec<BigInt> {
    if let [alone] = tasks {
        return vec![alone.cost.into()];
    }
    let potential = Potential::new(tasks, variant);
    let bound = |(place, task): (usize, &Plain)| {
        (potential.lateness(place) + exact(task.deadline, 1))
            .ceil()
            .to_integer()
    };
    tasks.iter().enumerate().map(bound).collect()
}

/// Whether all u are at most 1, and every set of CPUs has room for the tasks that have no others.
pub fn fits(tasks: &[Plain], cpus: usize) -> bool {
    let rate = |task: &Plain| exact(task.cost, task.period);
    tasks.iter().all(|task| task.cost <= task.period)
        && (1..1u64 << cpus).all(|set| {
            let inside = tasks.iter().filter(|task| is_inside(task.mask, set));
            inside.map(rate).sum::<Exact>() <= exact(size(set), 1)
        })
}

/// The tasks by component, as places.
pub fn components(tasks: &[Plain]) -> Vec<Vec<usize>> {
    let mut unions: Vec<u64> = tasks.iter().map(|task| task.mask).collect();
    for _ in 0..tasks.len() {
        for i in 0..unions.len() {
            for j in 0..unions.len() {
                if unions[i] & unions[j] != 0 {
                    unions[i] |= unions[j];
                }
            }
        }
    }
    let mut distinct = unions.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let members = |union: u64| {
        (0..unions.len())
            .filter(|&at| unions[at] == union)
            .collect()
    };
    distinct.into_iter().map(members).collect()
}

/// Two tasks or more on up to `cpus_max` CPUs, connected, with any affinities and deadlines, which fit the CPUs and
/// use most of them; and the number of CPUs.
pub fn overlapping(
    cpus_max: u64,
    count_max: u64,
    stream: &mut RandomStream,
) -> (Vec<Plain>, usize) {
    loop {
        let cpus = 1 + stream.below(cpus_max) as usize;
        let longest = [4, 8, 12][stream.below(3) as usize];
        // Of the last kind are tasks that differ in everything as much as possible.
        let kind = stream.below(4);
        let mut tasks: Vec<Plain> = Vec::new();
        for _ in 0..4 * count_max {
            let period = 1 + stream.below(longest);
            let cost = match kind {
                3 => [1, period, period.div_ceil(2)][stream.below(3) as usize],
                _ => 1 + stream.below(period),
            };
            let deadline = match kind {
                0 => period,
                1 => 1 + stream.below(period),
                2 => 1 + stream.below(3 * period),
                _ => [1, period, 4 * longest][stream.below(3) as usize],
            };
            tasks.push(Plain {
                cost,
                period,
                deadline,
                mask: 1 + stream.below((1 << cpus) - 1),
            });
            if !fits(&tasks, cpus) {
                tasks.pop();
            }
            if tasks.len() as u64 == count_max {
                break;
            }
        }
        if tasks.len() > 1 && components(&tasks).len() == 1 {
            return (tasks, cpus);
        }
    }
}

/// The tasks of a set that is written in bits.
pub fn members(set: usize) -> impl Iterator<Item = usize> + Clone {
    (0..usize::BITS as usize).filter(move |place| set >> place & 1 == 1)
}

/// Whether f satisfies (1) and (2) of the proof, for all sets and tasks.
fn satisfies_the_conditions(tasks: &[Plain], potential: &Potential) -> bool {
    let count = tasks.len();
    let values: Vec<Exact> = (0..1 << count)
        .map(|set| potential.of(members(set)))
        .collect();
    let rates: Vec<Exact> = tasks
        .iter()
        .map(|task| exact(task.cost, task.period))
        .collect();
    let added = |set: usize, task: usize| (&values[set | 1 << task] - &values[set]) / &rates[task];
    let outside = |set: usize| (0..count).filter(move |task| set >> task & 1 == 0);
    (0..1usize << count).all(|set| {
        let mut others = outside(set);
        others.all(|other| {
            let next = added(set, other);
            let task = &tasks[other];
            let released = next >= exact(task.period, 1) - exact(task.deadline, 1);
            let earlier = members(set).all(|one| {
                let before = added(set & !(1 << one), one);
                before - exact(tasks[one].period, 1) >= next
            });
            released && earlier
        })
    })
}

#[test]
fn the_set_function_satisfies_both_conditions_and_changed_ones_do_not() {
    let mut broken = [0; WRONG_RESPONSES.len()];
    let rounds = times_if_long(60, 50);
    for seed in 0..rounds {
        let mut stream = RandomStream::new(seed, 73, 0);
        let (tasks, _) = overlapping(4, 5, &mut stream);
        let potential = Potential::new(&tasks, Response::True);
        assert!(satisfies_the_conditions(&tasks, &potential), "{tasks:?}");
        for (broken, variant) in broken.iter_mut().zip(WRONG_RESPONSES) {
            let potential = Potential::new(&tasks, variant);
            *broken += u64::from(!satisfies_the_conditions(&tasks, &potential));
        }
    }
    println!(
        "of {rounds} systems break a condition: {:?}",
        WRONG_RESPONSES.iter().zip(broken).collect::<Vec<_>>()
    );
    assert!(
        broken.iter().all(|&broken| broken > rounds / 4),
        "{broken:?}"
    );
}
