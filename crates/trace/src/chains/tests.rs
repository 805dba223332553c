use shiftwork_model::Span;

use super::*;
use crate::counters::Counters;
use crate::jobs::{JobRow, Jobs};
use crate::testing::{Script, at, random_run, set};
use shiftwork_model::RandomStream;

/// A set of tasks that may use all CPUs, and these chains of them.
fn chained(tasks: usize, chains: &[&[usize]]) -> TaskSet {
    let mut set = set(2, &vec![("t", "0-1"); tasks]);
    for path in chains {
        set.chains.push(Chain {
            name: format!("c{}", set.chains.len()),
            tasks: path.iter().copied().map(TaskId::from_index).collect(),
            reaction: None,
            age: None,
            latency: None,
        });
    }
    set
}

fn measure(set: &TaskSet, script: &Script, horizon: u64) -> Vec<ChainSummary> {
    let mut counters = Counters::new(set, set.platform.cpus);
    script.play(&mut counters);
    counters.finish(at(horizon)).chains
}

/// The definition, executed directly over the complete list of jobs.
struct Definition {
    /// Per task of the chain its jobs that started, in their order.
    jobs: Vec<Vec<JobRow>>,
}

impl Definition {
    fn of(chain: &Chain, rows: &[JobRow]) -> Self {
        let started = |task: &TaskId| {
            let of_task = |row: &&JobRow| row.job.task == *task && row.start.is_some();
            let mut jobs: Vec<JobRow> = rows.iter().filter(of_task).copied().collect();
            jobs.sort_by_key(|row| row.job.number);
            jobs
        };
        Self {
            jobs: chain.tasks.iter().map(started).collect(),
        }
    }

    /// The read of the first task, as an index, on which the output of a job rests.
    fn source(&self, place: usize, job: usize) -> Option<usize> {
        let Some(before) = place.checked_sub(1) else {
            return Some(job);
        };
        let read = self.jobs[place][job].start;
        let seen = |writer: &JobRow| writer.finish.is_some() && writer.finish <= read;
        let writer = self.jobs[before].iter().rposition(seen)?;
        self.source(before, writer)
    }

    /// The outputs of the last task: when each was written, and on which read it rests.
    fn outputs(&self) -> Vec<(Instant, Option<usize>)> {
        let last = self.jobs.len() - 1;
        let jobs = self.jobs[last].iter().enumerate();
        jobs.filter_map(|(job, row)| Some((row.finish?, self.source(last, job))))
            .collect()
    }

    fn reads(&self) -> Vec<Instant> {
        self.jobs[0].iter().filter_map(|row| row.start).collect()
    }

    fn reaction(&self, horizon: Instant) -> EndToEnd {
        let outputs = self.outputs();
        let of = |(index, read): (usize, Instant)| {
            let answers = |output: &&(Instant, Option<usize>)| output.1 > Some(index);
            (read, outputs.iter().find(answers).map(|output| output.0))
        };
        summarised(self.reads().into_iter().enumerate().map(of), horizon)
    }

    fn age(&self, horizon: Instant) -> EndToEnd {
        let (reads, outputs) = (self.reads(), self.outputs());
        let of = |(index, output): (usize, &(Instant, Option<usize>))| {
            let next = outputs.get(index + 1).map(|next| next.0);
            Some((reads[output.1?], next))
        };
        summarised(outputs.iter().enumerate().filter_map(of), horizon)
    }
}

/// Of times with their beginnings and, where there is one, their ends.
fn summarised(
    times: impl Iterator<Item = (Instant, Option<Instant>)>,
    horizon: Instant,
) -> EndToEnd {
    let mut found = EndToEnd::default();
    for (begin, end) in times {
        match end {
            Some(end) => {
                found.samples += 1;
                found.max = found.max.max(Some(end.late_since(begin)));
            }
            None => found.pending = found.pending.max(Some(horizon.late_since(begin))),
        }
    }
    found
}

fn random_chain(random: &mut RandomStream, tasks: usize) -> Vec<usize> {
    let mut path: Vec<usize> = (0..tasks).collect();
    for place in (1..tasks).rev() {
        path.swap(place, random.below(place as u64 + 1) as usize);
    }
    path.truncate(2 + random.below(tasks as u64 - 1) as usize);
    path
}

#[test]
fn chains_measure_what_the_definition_says_of_random_runs() {
    let (mut reactions, mut ages) = (0, 0);
    for seed in 1..=3_000 {
        let mut random = RandomStream::new(seed, 7, 0);
        let tasks = 2 + random.below(4) as usize;
        let paths: Vec<_> = (0..1 + random.below(3))
            .map(|_| random_chain(&mut random, tasks))
            .collect();
        let paths: Vec<&[usize]> = paths.iter().map(Vec::as_slice).collect();
        let set = chained(tasks, &paths);
        let (cpus, steps) = (1 + random.below(3) as usize, random.below(400));
        let script = random_run(&mut random, tasks, cpus, steps);
        let last = script.records.last().map_or(0, |record| record.at.as_ns());
        let horizon = at(last + random.below(3));
        let mut jobs = Jobs::new(&set, Vec::new());
        script.play(&mut jobs);
        let rows = jobs.finish(at(u64::MAX));
        let found = measure(&set, &script, horizon.as_ns());
        for (chain, found) in set.chains.iter().zip(&found) {
            let definition = Definition::of(chain, &rows);
            let place = format!("seed {seed}, chain {:?}", chain.tasks);
            assert_eq!(found.reaction, definition.reaction(horizon), "{place}");
            assert_eq!(found.age, definition.age(horizon), "{place}");
            // Günzel et al. 2023: the two maxima are equal, but for what happens before the first output.
            let longest = |times: EndToEnd| times.max.max(times.pending);
            assert!(longest(found.age) <= longest(found.reaction), "{place}");
            reactions += found.reaction.samples;
            ages += found.age.samples;
        }
    }
    assert!(reactions > 10_000 && ages > 10_000, "{reactions} {ages}");
}

/// Whether the steps are those of a reaction to the event just after `from`: each job is the first of its task to complete
/// with an output that rests on a later read.
fn is_reaction(definition: &Definition, from: Instant, steps: &[Step]) -> bool {
    let rests_on_later = |place: usize, job: usize| {
        let source = definition.source(place, job);
        source.is_some_and(|read| definition.jobs[0][read].start > Some(from))
    };
    steps.iter().enumerate().all(|(place, step)| {
        let jobs = definition.jobs[place].iter().enumerate();
        let mut answers =
            jobs.filter(|(job, row)| row.finish.is_some() && rests_on_later(place, *job));
        let first = answers.next().map(|(_, row)| row);
        match (step.is_over, step.job, first) {
            (true, Some(job), Some(first)) => job.job == first.job && first.finish == Some(step.to),
            (false, ..) => first.is_none_or(|first| first.finish > Some(step.to)),
            _ => false,
        }
    })
}

/// Whether the steps are those of the age of an output: each job but the last reads what the one before wrote last.
fn is_age(definition: &Definition, from: Instant, steps: &[Step]) -> bool {
    let (replaces, steps) = steps.split_last().unwrap();
    let index = |place: usize, job: &JobRow| {
        let mut jobs = definition.jobs[place].iter();
        jobs.position(|row| row.job == job.job).unwrap()
    };
    let jobs: Vec<JobRow> = steps.iter().map(|step| step.job.unwrap()).collect();
    let last = jobs.len() - 1;
    let output = index(last, &jobs[last]);
    let source = definition.source(last, output);
    let follows = definition.jobs[last][output + 1..].iter();
    let mut follows = follows.filter(|row| row.finish.is_some_and(|at| at <= replaces.to));
    jobs.len() == definition.jobs.len()
        && source == Some(index(0, &jobs[0]))
        && jobs[0].start == Some(from)
        && (1..jobs.len()).all(|place| {
            let written = jobs[place - 1].finish;
            let mut between =
                definition.jobs[place - 1][index(place - 1, &jobs[place - 1]) + 1..].iter();
            written <= jobs[place].start
                && between.all(|row| row.finish.is_none() || row.finish > jobs[place].start)
        })
        && match replaces.is_over {
            true => follows
                .next()
                .is_some_and(|row| replaces.job.unwrap().job == row.job),
            false => follows.next().is_none(),
        }
}

#[test]
fn paths_of_the_longest_times_are_those_of_the_definition() {
    let (mut ended, mut open) = (0, 0);
    for seed in 1..=3_000 {
        let mut random = RandomStream::new(seed, 9, 0);
        let tasks = 2 + random.below(4) as usize;
        let path = random_chain(&mut random, tasks);
        let mut set = chained(tasks, &[&path]);
        set.chains[0].reaction = Some(Span::ZERO);
        set.chains[0].age = Some(Span::ZERO);
        let (cpus, steps) = (1 + random.below(3) as usize, random.below(400));
        let script = random_run(&mut random, tasks, cpus, steps);
        let last = script.records.last().map_or(0, |record| record.at.as_ns());
        let horizon = at(last + random.below(3));
        let mut jobs = Jobs::new(&set, Vec::new());
        script.play(&mut jobs);
        let definition = Definition::of(&set.chains[0], &jobs.finish(at(u64::MAX)));
        let mut chains = Chains::new(&set);
        script.play(&mut chains);
        let (_, found) = chains.finish_measured(horizon).next().unwrap();
        for (kind, times) in [
            (ChainTime::Reaction, found.reaction),
            (ChainTime::Age, found.age),
        ] {
            let Some((time, has_ended)) = times.excessive() else {
                continue;
            };
            let measured = Measured {
                set: &set,
                chain: &set.chains[0],
                records: (&script.records).into(),
                time,
                has_ended,
            };
            let place = format!("seed {seed}, {kind:?} of {path:?}: {time:?}");
            let steps = measured.steps(kind).expect(&place);
            let summary = times.summary();
            assert_eq!(
                Some(time.length()),
                summary.max.max(summary.pending),
                "{place}"
            );
            assert_eq!(steps[0].from, time.from, "{place}");
            assert_eq!(steps.last().unwrap().to, time.to, "{place}");
            assert!(
                steps.windows(2).all(|pair| pair[0].to == pair[1].from),
                "{place}"
            );
            let is_path = match kind {
                ChainTime::Reaction => is_reaction(&definition, time.from, &steps),
                _ => is_age(&definition, time.from, &steps),
            };
            assert!(is_path, "{place}: {steps:?}");
            match has_ended {
                true => ended += 1,
                false => open += 1,
            }
        }
    }
    assert!(ended > 1_000 && open > 1_000, "{ended} {open}");
}

/// Jobs of `a` read at 0, 10, 20, ... and write 2 later; those of `b` read at 5, 21, ... and write 3 later.
fn two_tasks() -> Script {
    let job = |script: Script, cpu: usize, number: u64, from: u64, to: u64| {
        let script = script.at(from).release(cpu, number, to);
        let script = script.switch(cpu, Some((cpu, number)));
        script.at(to).complete(cpu, number).switch(cpu, None)
    };
    let script = job(Script::default(), 0, 1, 0, 2);
    let script = job(script, 1, 1, 5, 8);
    let script = job(script, 0, 2, 10, 12);
    let script = job(script, 0, 3, 13, 15);
    job(script, 1, 2, 21, 24)
}

#[test]
fn chain_of_two_tasks_has_the_times_worked_out_by_hand() {
    let set = chained(2, &[&[0, 1]]);
    let found = &measure(&set, &two_tasks(), 30)[0];
    // Events after the reads at 0 and 10 are in the output at 24, which rests on the read at 13.
    assert_eq!(found.reaction.samples, 2);
    assert_eq!(found.reaction.max, Some(Span::from_ns(24)));
    assert_eq!(found.reaction.pending, Some(Span::from_ns(17)));
    // The output at 8 rests on the read at 0, and is replaced at 24.
    assert_eq!(found.age.samples, 1);
    assert_eq!(found.age.max, Some(Span::from_ns(24)));
    assert_eq!(found.age.pending, Some(Span::from_ns(17)));
}

#[test]
fn read_sees_what_is_written_at_its_instant_whatever_the_order_of_records() {
    let set = chained(2, &[&[0, 1]]);
    let script = Script::default()
        .at(0)
        .release(0, 1, 9)
        .switch(0, Some((0, 1)));
    let writes = |script: Script| script.complete(0, 1).switch(0, None);
    let reads = |script: Script| script.release(1, 1, 9).switch(1, Some((1, 1)));
    let orders = [
        writes(reads(script.clone().at(4))),
        reads(writes(script.clone().at(4))),
    ];
    for script in orders {
        let found = &measure(&set, &script.at(6).complete(1, 1), 7)[0];
        assert_eq!(found.age.pending, Some(Span::from_ns(7)));
    }
}

#[test]
fn requirement_is_violated_by_what_has_not_ended_by_the_horizon() {
    let mut set = chained(2, &[&[0, 1]]);
    set.chains[0].reaction = Some(Span::from_ns(24));
    set.chains[0].age = Some(Span::from_ns(23));
    let found = &measure(&set, &two_tasks(), 30)[0];
    assert_eq!(
        (found.reaction.is_met(), found.age.is_met()),
        (Some(true), Some(false))
    );
    let found = &measure(&set, &two_tasks(), 38)[0];
    assert_eq!(found.reaction.is_met(), Some(false));
    set.chains[0].reaction = None;
    let found = &measure(&set, &two_tasks(), 38)[0];
    assert_eq!(found.reaction.is_met(), None);
    assert!(found.is_violated());
}

#[test]
fn job_that_is_dropped_writes_nothing() {
    let set = chained(2, &[&[0, 1]]);
    let script = Script::default()
        .at(0)
        .release(0, 1, 9)
        .switch(0, Some((0, 1)))
        .at(2)
        .record(RecordKind::Left {
            task: TaskId::from_index(0),
        })
        .switch(0, None)
        .at(3)
        .release(1, 1, 9)
        .switch(1, Some((1, 1)))
        .at(4)
        .complete(1, 1);
    let found = &measure(&set, &script, 10)[0];
    assert_eq!((found.age.samples, found.age.pending), (0, None));
    assert_eq!(found.reaction.pending, Some(Span::from_ns(10)));
}
