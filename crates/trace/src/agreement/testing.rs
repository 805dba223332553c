//! A machine for tests that needs time to react: the greedy schedule, one nanosecond at a time,
//! with every reaction late by a random span. It is the definition of what agreement must allow.

use shiftwork_model::{
    Affinity, CpuSet, Happening, Priority, RandomStream, Record, Span, Task, TaskSet,
};

use crate::check::{Facts, Invariant, Order};
use crate::testing::{at, cpu, job};

/// In what the machine is not the ideal one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fault {
    /// The longest reaction.
    pub reaction: u64,
    /// The job of this task and number executes for so much longer.
    pub overrun: Option<(usize, u64, u64)>,
}

pub(super) fn facts(order: Order) -> Facts {
    Facts {
        invariant: Invariant::Strong,
        order,
        packing: None,
        immediate: false,
    }
}

/// A random task set that is not overloaded, with any affinities.
pub(super) fn random_set(random: &mut RandomStream) -> TaskSet {
    let cpus = 1 + random.below(3);
    let count = 2 + random.below(4);
    let tasks = (0..count).map(|index| {
        // Multiples of 10, so that jobs often end just when others arrive.
        let period = 100 * (2 + random.below(6));
        let cost = (period * cpus * (30 + random.below(60)) / (100 * count)).min(period * 9 / 10);
        let cost = Span::from_ns((cost / 10).max(1) * 10);
        let bits = 1 + random.below((1 << cpus) - 1);
        let affinity = Affinity::new(CpuSet::from_bits(bits)).unwrap();
        let mut task = Task::periodic(&format!("t{index}"), cost, Span::from_ns(period), affinity);
        task.priority = Priority::new(index as u32 + 1);
        task
    });
    TaskSet::new("random", cpus as usize, tasks.collect())
}

struct Machine<'a> {
    set: &'a TaskSet,
    order: Order,
    fault: Fault,
    random: &'a mut RandomStream,
    records: Vec<Record>,
    now: u64,
    tasks: Vec<TaskState>,
    /// Per CPU: what it runs, what it is to run, and when it gets there.
    runs: Vec<Option<(usize, u64)>>,
    target: Vec<Option<usize>>,
    due: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
struct TaskState {
    released: u64,
    done: u64,
    /// When the job that comes next is noticed.
    noticed: u64,
    ready: bool,
    left: u64,
}

/// Runs the task set with this fault.
pub(super) fn run(
    set: &TaskSet,
    order: Order,
    fault: Fault,
    random: &mut RandomStream,
    horizon: u64,
) -> Vec<Record> {
    let cpus = set.platform.cpus;
    let mut machine = Machine {
        set,
        order,
        fault,
        random,
        records: Vec::new(),
        now: 0,
        tasks: vec![TaskState::default(); set.tasks.len()],
        runs: vec![None; cpus],
        target: vec![None; cpus],
        due: vec![0; cpus],
    };
    while machine.now < horizon {
        machine.complete();
        machine.release();
        machine.decide();
        machine.switch();
        machine.execute();
        machine.now += 1;
    }
    machine.complete();
    machine.records
}

impl Machine<'_> {
    fn tell(&mut self, what: Happening) {
        self.records.push(Record {
            at: at(self.now),
            what,
        });
    }

    fn late(&mut self) -> u64 {
        self.now + self.random.below(self.fault.reaction + 1)
    }

    fn complete(&mut self) {
        for index in 0..self.tasks.len() {
            let task = &mut self.tasks[index];
            if task.ready && task.left == 0 {
                task.ready = false;
                task.done += 1;
                let number = task.done;
                // A job that waits for its predecessor is there already.
                task.noticed = self.now;
                self.tell(Happening::Completed {
                    job: job(index, number),
                });
            }
        }
    }

    fn release(&mut self) {
        for index in 0..self.tasks.len() {
            let period = self.set.tasks[index].period.as_ns();
            if self.now.is_multiple_of(period) {
                self.tasks[index].released += 1;
                let number = self.tasks[index].released;
                self.tell(Happening::Released {
                    job: job(index, number),
                    deadline: at(self.now + period),
                });
                if self.tasks[index].released == self.tasks[index].done + 1 {
                    self.tasks[index].noticed = self.late();
                }
            }
            let now = self.now;
            let task = &mut self.tasks[index];
            if !task.ready && task.released > task.done && task.noticed <= now {
                task.ready = true;
                let number = task.done + 1;
                let more = match self.fault.overrun {
                    Some((who, which, more)) if (who, which) == (index, number) => more,
                    _ => 0,
                };
                task.left = self.set.tasks[index].cost.as_ns() + more;
                self.tell(Happening::Ready {
                    job: job(index, number),
                    deadline: at(number * period),
                    priority: self.set.tasks[index].priority.unwrap(),
                });
            }
        }
    }

    /// The greedy set, placed with as many jobs as possible where they are to run already.
    fn decide(&mut self) {
        let key = |&index: &usize| {
            let number = self.tasks[index].done + 1;
            let deadline = number * self.set.tasks[index].period.as_ns();
            match self.order {
                Order::Edf => (deadline, number, index),
                Order::FixedPriority => (0, 0, index),
            }
        };
        let mut ready: Vec<usize> = (0..self.tasks.len())
            .filter(|&index| self.tasks[index].ready)
            .collect();
        ready.sort_by_key(key);
        let mut place = vec![None; self.target.len()];
        for &index in &ready {
            let current = self.target.iter().position(|&it| it == Some(index));
            if let Some(on) = current.filter(|&on| place[on].is_none()) {
                place[on] = Some(index);
            } else {
                let mut seen = vec![false; place.len()];
                self.augment(index, &mut place, &mut seen);
            }
        }
        for (on, to) in place.into_iter().enumerate() {
            if to != self.target[on] {
                self.target[on] = to;
                self.due[on] = self.late();
            }
        }
    }

    fn augment(&self, index: usize, place: &mut [Option<usize>], seen: &mut [bool]) -> bool {
        for on in self.set.tasks[index].affinity.cpus().iter() {
            let on = on.index();
            if on < place.len() && !std::mem::replace(&mut seen[on], true) {
                let free = match place[on] {
                    None => true,
                    Some(other) => self.augment(other, place, seen),
                };
                if free {
                    place[on] = Some(index);
                    return true;
                }
            }
        }
        false
    }

    /// A job leaves its CPU before it runs on another one.
    fn switch(&mut self) {
        let wanted = |machine: &Self, on: usize| {
            let ready = machine.target[on].filter(|&index| machine.tasks[index].ready);
            ready.map(|index| (index, machine.tasks[index].done + 1))
        };
        for on in 0..self.runs.len() {
            let leaves = self.runs[on].is_some() && self.runs[on] != wanted(self, on);
            if self.due[on] <= self.now && leaves {
                self.put(on, None);
            }
        }
        for on in 0..self.runs.len() {
            let to =
                wanted(self, on).filter(|_| self.due[on] <= self.now && self.runs[on].is_none());
            if to.is_some() && !self.runs.contains(&to) {
                self.put(on, to);
            }
        }
    }

    fn put(&mut self, on: usize, to: Option<(usize, u64)>) {
        let named = |it: Option<(usize, u64)>| it.map(|(task, number)| job(task, number));
        let from = std::mem::replace(&mut self.runs[on], to);
        self.tell(Happening::Switched {
            cpu: cpu(on),
            from: named(from),
            to: named(to),
        });
    }

    fn execute(&mut self) {
        for &(index, number) in self.runs.iter().flatten() {
            let task = &mut self.tasks[index];
            if task.ready && task.done + 1 == number {
                task.left -= 1;
            }
        }
    }
}
