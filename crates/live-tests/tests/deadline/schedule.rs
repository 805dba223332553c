//! Schedules: the task that each CPU runs, as a function of time; where two schedules differ.

use std::collections::BTreeMap;

use shiftwork_model::{Record, RecordKind};

use crate::ftrace::Switch;

/// For each CPU what it runs from each instant on, ascending; tasks by index. Times are nanoseconds from
/// the common start of all tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    cpus: Vec<Vec<(u64, Option<usize>)>>,
    end_ns: u64,
}

/// A stretch of time in which two schedules differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where it begins.
    pub from_ns: u64,
    /// Where it ends.
    pub to_ns: u64,
    /// How many switches both have in it.
    pub switches: u32,
    /// Whether other tasks run, and not only on other CPUs.
    pub in_tasks: bool,
}

impl Difference {
    /// Whether this is more than switches that come a little earlier or later.
    pub const fn exceeds(&self, tolerance_ns: u64) -> bool {
        self.to_ns - self.from_ns > tolerance_ns * (self.switches as u64 + 1)
    }
}

impl Schedule {
    /// What a model recorded until `end_ns`.
    pub fn of_records(records: &[Record], cpus: usize, end_ns: u64) -> Self {
        let mut schedule = Self::empty(cpus, end_ns);
        for record in records {
            if let RecordKind::Switched { cpu, to, .. } = record.kind {
                let task = to.map(|job| job.task.index());
                schedule.switch(cpu.index(), record.at.as_ns(), task);
            }
        }
        schedule
    }

    /// What the kernel traced from `origin_ns` on; its CPU `first` is the first here. `threads`
    /// says which thread is which task; other threads count as idle time.
    pub fn of_trace(
        switches: &[Switch],
        threads: &BTreeMap<u32, usize>,
        (first, cpus): (usize, usize),
        (origin_ns, end_ns): (u64, u64),
    ) -> Self {
        let mut schedule = Self::empty(cpus, end_ns);
        for switch in switches {
            let at_ns = switch.at_ns.checked_sub(origin_ns);
            let cpu = switch.cpu.checked_sub(first).filter(|&cpu| cpu < cpus);
            if let Some((at_ns, cpu)) = at_ns.zip(cpu) {
                schedule.switch(cpu, at_ns, threads.get(&switch.to).copied());
            }
        }
        schedule
    }

    /// The same with the CPUs counted from the other end.
    pub fn mirrored(mut self) -> Self {
        self.cpus.reverse();
        self
    }

    fn empty(cpus: usize, end_ns: u64) -> Self {
        Self {
            cpus: vec![vec![(0, None)]; cpus],
            end_ns,
        }
    }

    /// What the CPU runs from this instant on; the last word of an instant counts.
    fn switch(&mut self, cpu: usize, at_ns: u64, task: Option<usize>) {
        let runs = &mut self.cpus[cpu];
        if at_ns >= self.end_ns {
            return;
        }
        runs.pop_if(|&mut (last_ns, _)| last_ns == at_ns);
        if runs.last().is_none_or(|&(_, last)| last != task) {
            runs.push((at_ns, task));
        }
    }

    /// How often a CPU changed to a task.
    pub fn switches(&self) -> usize {
        let to_task = |&&(_, task): &&(u64, Option<usize>)| task.is_some();
        self.cpus
            .iter()
            .map(|runs| runs.iter().filter(to_task).count())
            .sum()
    }

    /// What all CPUs run at this instant.
    pub fn at(&self, at_ns: u64) -> Vec<Option<usize>> {
        let on = |runs: &Vec<(u64, Option<usize>)>| {
            let next = runs.partition_point(|&(from_ns, _)| from_ns <= at_ns);
            runs[..next].last().and_then(|&(_, task)| task)
        };
        self.cpus.iter().map(on).collect()
    }

    fn instants(&self) -> impl Iterator<Item = u64> {
        self.cpus.iter().flatten().map(|&(at_ns, _)| at_ns)
    }

    /// Where this and another schedule differ, by time.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
        for at_ns in self.instants().chain(other.instants()) {
            *counts.entry(at_ns).or_default() += 1;
        }
        counts.entry(self.end_ns).or_default();
        let mut found: Vec<Difference> = Vec::new();
        let instants: Vec<(u64, u32)> = counts.into_iter().collect();
        for pair in instants.windows(2) {
            let ((from_ns, switches), (to_ns, _)) = (pair[0], pair[1]);
            let (here, there) = (self.at(from_ns), other.at(from_ns));
            if here == there {
                continue;
            }
            let in_tasks = sorted(here) != sorted(there);
            match found.last_mut().filter(|last| last.to_ns == from_ns) {
                Some(last) => {
                    last.to_ns = to_ns;
                    last.switches += switches;
                    last.in_tasks |= in_tasks;
                }
                None => found.push(Difference {
                    from_ns,
                    to_ns,
                    switches: 0,
                    in_tasks,
                }),
            }
        }
        found
    }

    /// A line for each switch in a stretch of time, with what all CPUs run after it.
    pub fn show(&self, from_ns: u64, to_ns: u64, names: &[String]) -> Vec<String> {
        let mut instants: Vec<u64> = self.instants().collect();
        instants.sort_unstable();
        instants.dedup();
        instants.retain(|at_ns| (from_ns..=to_ns).contains(at_ns));
        let name = |task: Option<usize>| task.map_or("-", |task| names[task].as_str());
        let line = |at_ns: u64| {
            let row: Vec<&str> = self.at(at_ns).into_iter().map(name).collect();
            format!("{:10.3} ms  {}", at_ns as f64 / 1e6, row.join(" "))
        };
        instants.into_iter().map(line).collect()
    }
}

fn sorted(mut row: Vec<Option<usize>>) -> Vec<Option<usize>> {
    row.sort_unstable();
    row
}
