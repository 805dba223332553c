//! Worst-case response times on one CPU against their definition: the longest response in any schedule.
//!
//! The definition is executed one unit of time after the other, for all offsets of all tasks, or for all
//! patterns of releases. It shares nothing with what it judges, not even what is known of worst cases.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod ticks;

use shiftwork_analysis::response::gel;
use shiftwork_analysis::uniprocessor::{edf_rta, fp_response_times, fp_rta, qpa};
use shiftwork_analysis::{NotShown, Outcome, Ranked, Sporadic, Steps};
use shiftwork_model::{Priority, RandomStream, Share, Span};
use ticks::{factor, lcm, sporadic};

const WHOLE: Share = Share::from_billionths(Share::WHOLE).unwrap();

/// A task in whole units of time.
#[derive(Clone, Copy, Debug)]
struct Plain {
    cost: u64,
    period: u64,
    deadline: u64,
}

/// What is unfinished of a task's jobs, which run one after the other.
#[derive(Clone, Default)]
struct Backlog {
    releases: Vec<u64>,
    first: usize,
    /// Of the first job that is not finished.
    left: u64,
}

impl Backlog {
    fn release(&mut self, now: u64, cost: u64) {
        if self.first == self.releases.len() {
            self.left = cost;
        }
        self.releases.push(now);
    }

    fn oldest(&self) -> Option<u64> {
        self.releases.get(self.first).copied()
    }

    /// One unit of work; the release of the job that it ends, if it ends one.
    fn run(&mut self, cost: u64) -> Option<u64> {
        self.left -= 1;
        if self.left > 0 {
            return None;
        }
        let release = self.oldest();
        self.first += 1;
        self.left = cost;
        release
    }
}

/// The first unfinished job of a task, to be ranked.
#[derive(Clone, Copy)]
struct Head {
    task: usize,
    release: u64,
    deadline: u64,
}

/// Runs one CPU for a unit of time from `now` on; the smallest rank goes first. Adds to `longest`.
fn tick<Rank: Ord>(
    (tasks, backlogs): (&[Plain], &mut [Backlog]),
    now: u64,
    rank: impl Fn(Head) -> Rank,
    longest: &mut [u64],
) {
    let heads = (0..tasks.len()).filter_map(|task| {
        let release = backlogs[task].oldest()?;
        let deadline = release + tasks[task].deadline;
        Some(Head {
            task,
            release,
            deadline,
        })
    });
    let Some(next) = heads.min_by_key(|&head| rank(head)) else {
        return;
    };
    if let Some(release) = backlogs[next.task].run(tasks[next.task].cost) {
        longest[next.task] = longest[next.task].max(now + 1 - release);
    }
}

/// The longest responses where the tasks are released every period from these offsets on, for so long,
/// and all that is released is finished.
fn responses_from<Rank: Ord>(
    tasks: &[Plain],
    offsets: &[u64],
    until: u64,
    rank: impl Fn(Head) -> Rank + Copy,
) -> Vec<u64> {
    let mut backlogs = vec![Backlog::default(); tasks.len()];
    let mut longest = vec![0; tasks.len()];
    let mut now = 0;
    while now < until || backlogs.iter().any(|backlog| backlog.oldest().is_some()) {
        for ((task, &offset), backlog) in tasks.iter().zip(offsets).zip(&mut backlogs) {
            if now < until && now >= offset && (now - offset) % task.period == 0 {
                backlog.release(now, task.cost);
            }
        }
        tick((tasks, &mut backlogs), now, rank, &mut longest);
        now += 1;
    }
    longest
}

/// The longest responses over all offsets, below the periods, of all tasks.
fn worst_over_offsets<Rank: Ord>(tasks: &[Plain], rank: impl Fn(Head) -> Rank + Copy) -> Vec<u64> {
    let hyperperiod = tasks.iter().fold(1, |all, task| lcm(all, task.period));
    let until = 2 * hyperperiod + tasks.iter().map(|task| task.period).max().unwrap();
    let mut offsets = vec![0; tasks.len()];
    let mut worst = vec![0; tasks.len()];
    loop {
        let seen = responses_from(tasks, &offsets, until, rank);
        worst
            .iter_mut()
            .zip(seen)
            .for_each(|(worst, seen)| *worst = seen.max(*worst));
        let Some(place) = (0..tasks.len()).find(|&place| offsets[place] + 1 < tasks[place].period)
        else {
            return worst;
        };
        offsets[place] += 1;
        offsets[..place].fill(0);
    }
}

/// The worst response of each task where it loses all ties between deadlines.
fn edf_by_definition(tasks: &[Plain]) -> Vec<u64> {
    let of_task = |own: usize| {
        let rank = move |head: Head| (head.deadline, head.task == own, head.release, head.task);
        worst_over_offsets(tasks, rank)[own]
    };
    (0..tasks.len()).map(of_task).collect()
}

/// Up to so many tasks that need at most one CPU, often all of it. Deadlines up to `percent` of the periods.
fn random_tasks(stream: &mut RandomStream, most: u64, periods: &[u64], percent: u64) -> Vec<Plain> {
    let mut tasks = Vec::new();
    let hyperperiod = periods.iter().fold(1, |all, &period| lcm(all, period));
    let mut left = hyperperiod;
    for _ in 0..1 + stream.below(most) {
        let period = periods[stream.below(periods.len() as u64) as usize];
        let room = left / (hyperperiod / period);
        if room == 0 {
            continue;
        }
        let cost = 1 + stream.below(room);
        left -= cost * (hyperperiod / period);
        let longest = (period * percent / 100).max(1);
        let deadline = match stream.below(3) {
            0 => period,
            _ => 1 + stream.below(longest),
        };
        tasks.push(Plain {
            cost,
            period,
            deadline,
        });
    }
    tasks
}

fn as_sporadic(tasks: &[Plain]) -> Vec<Sporadic> {
    let one = |task: &Plain| sporadic(task.cost, task.period, task.deadline);
    tasks.iter().map(one).collect()
}

/// In the order of the tasks, the first the most urgent.
fn as_ranked(tasks: &[Plain]) -> Vec<Ranked> {
    let ranks = (1..).map(|rank| Priority::new(rank).unwrap());
    let ranked = as_sporadic(tasks).into_iter().zip(ranks);
    ranked
        .map(|(task, priority)| Ranked { task, priority })
        .collect()
}

fn in_ns(outcome: &Outcome<NotShown, Vec<Span>>) -> Option<Vec<u64>> {
    match outcome {
        Outcome::Pass(responses) => Some(responses.iter().map(|span| span.as_ns()).collect()),
        _ => None,
    }
}

fn edf(tasks: &[Plain]) -> Option<Vec<u64>> {
    in_ns(&edf_rta(&as_sporadic(tasks), WHOLE, &mut Steps::ordinary()))
}

fn fp(tasks: &[Plain]) -> Option<Vec<u64>> {
    in_ns(&fp_response_times(
        &as_ranked(tasks),
        WHOLE,
        &mut Steps::ordinary(),
    ))
}

fn is_full(tasks: &[Plain]) -> bool {
    let hyperperiod = tasks.iter().fold(1, |all, task| lcm(all, task.period));
    let work = |task: &Plain| hyperperiod / task.period * task.cost;
    tasks.iter().map(work).sum::<u64>() == hyperperiod
}

/// Tasks of few different periods, so that all offsets can be tried.
fn small_tasks(stream: &mut RandomStream) -> Vec<Plain> {
    let periods: &[u64] =
        [&[2, 3, 4, 6][..], &[4, 5], &[3, 7], &[2, 4, 8], &[1, 5, 6]][stream.below(5) as usize];
    let percent = [100, 150, 300][stream.below(3) as usize];
    random_tasks(stream, 3, periods, percent)
}

#[test]
fn edf_responses_are_the_longest_of_any_schedule() {
    let (mut full, mut late) = (0, 0);
    for seed in 0..500 * factor() {
        let mut stream = RandomStream::new(seed, 83, 0);
        let tasks = small_tasks(&mut stream);
        let expected = edf_by_definition(&tasks);
        assert_eq!(
            edf(&tasks),
            Some(expected.clone()),
            "seed {seed}: {tasks:?}"
        );
        full += u64::from(is_full(&tasks));
        let in_time = tasks
            .iter()
            .zip(&expected)
            .all(|(task, &worst)| worst <= task.deadline);
        late += u64::from(!in_time);
        let passes = qpa(&as_sporadic(&tasks), WHOLE, &mut Steps::ordinary());
        assert_eq!(
            passes == Outcome::Pass(()),
            in_time,
            "seed {seed}: {tasks:?}"
        );
    }
    assert!(full > 50 && late > 50, "{full} {late}");
}

/// Between equal deadlines the earlier release goes first, then the task that is listed first.
#[test]
fn the_rule_for_ties_makes_a_difference_of_one_unit_at_most() {
    let (mut same, mut less) = (0, 0);
    for seed in 0..300 * factor() {
        let mut stream = RandomStream::new(seed, 83, 1);
        let tasks = small_tasks(&mut stream);
        let rank = |head: Head| (head.deadline, head.release, head.task);
        let seen = worst_over_offsets(&tasks, rank);
        for (place, bound) in edf(&tasks).unwrap().into_iter().enumerate() {
            match bound - seen[place] {
                0 => same += 1,
                1 => less += 1,
                _ => panic!("seed {seed}: {tasks:?}: {seen:?}, and {bound} for task {place}"),
            }
        }
    }
    assert!(same > 100 && less > 10, "{same} {less}");
}

#[test]
fn fixed_priority_responses_are_the_longest_of_any_schedule() {
    let (mut full, mut beyond) = (0, 0);
    for seed in 0..500 * factor() {
        let mut stream = RandomStream::new(seed, 83, 2);
        let tasks = small_tasks(&mut stream);
        let expected = worst_over_offsets(&tasks, |head: Head| head.task);
        assert_eq!(fp(&tasks), Some(expected.clone()), "seed {seed}: {tasks:?}");
        full += u64::from(is_full(&tasks));
        let past_next = |(task, &worst): (&Plain, &u64)| worst > task.period;
        beyond += u64::from(tasks.iter().zip(&expected).any(past_next));
        let in_time = tasks
            .iter()
            .zip(&expected)
            .all(|(task, &worst)| worst <= task.deadline);
        let passes = fp_rta(&as_ranked(&tasks), WHOLE, &mut Steps::ordinary());
        assert_eq!(
            passes == Outcome::Pass(()),
            in_time,
            "seed {seed}: {tasks:?}"
        );
    }
    assert!(full > 50 && beyond > 15, "{full} {beyond}");
}

/// Goes through all patterns of releases a period or more apart up to `until`.
struct Patterns<'a, Rank> {
    tasks: &'a [Plain],
    until: u64,
    rank: Rank,
    worst: Vec<u64>,
}

impl<Rank: Fn(Head) -> (u64, bool) + Copy> Patterns<'_, Rank> {
    fn from(&mut self, now: u64, backlogs: &[Backlog]) {
        if now == self.until {
            let mut backlogs = backlogs.to_vec();
            for now in now.. {
                if backlogs.iter().all(|backlog| backlog.oldest().is_none()) {
                    return;
                }
                tick((self.tasks, &mut backlogs), now, self.rank, &mut self.worst);
            }
        }
        let may = |task: usize| {
            let last = backlogs[task].releases.last();
            last.is_none_or(|last| now - last >= self.tasks[task].period)
        };
        let free: Vec<usize> = (0..self.tasks.len()).filter(|&task| may(task)).collect();
        for choice in 0..1u32 << free.len() {
            let mut backlogs = backlogs.to_vec();
            for (bit, &task) in free.iter().enumerate() {
                if choice >> bit & 1 == 1 {
                    backlogs[task].release(now, self.tasks[task].cost);
                }
            }
            tick((self.tasks, &mut backlogs), now, self.rank, &mut self.worst);
            self.from(now + 1, &backlogs);
        }
    }
}

/// The worst response of each task over all sporadic releases up to a time.
fn worst_over_patterns(
    tasks: &[Plain],
    until: u64,
    rank: impl Fn(usize, Head) -> (u64, bool) + Copy,
) -> Vec<u64> {
    let of_task = |own: usize| {
        let mut patterns = Patterns {
            tasks,
            until,
            rank: move |head: Head| rank(own, head),
            worst: vec![0; tasks.len()],
        };
        patterns.from(0, &vec![Backlog::default(); tasks.len()]);
        patterns.worst[own]
    };
    (0..tasks.len()).map(of_task).collect()
}

#[test]
fn no_sporadic_releases_make_longer_responses() {
    for seed in 0..60 * factor() {
        let mut stream = RandomStream::new(seed, 83, 3);
        let tasks = random_tasks(&mut stream, 2, &[3, 4], 200);
        // The longest busy period ends by the hyperperiod, 12.
        let by_deadline = |own: usize, head: Head| (head.deadline, head.task == own);
        let expected = worst_over_patterns(&tasks, 12, by_deadline);
        assert_eq!(edf(&tasks), Some(expected), "EDF, seed {seed}: {tasks:?}");
        let by_rank = |_: usize, head: Head| (head.task as u64, false);
        let expected = worst_over_patterns(&tasks, 12, by_rank);
        assert_eq!(fp(&tasks), Some(expected), "FP, seed {seed}: {tasks:?}");
    }
}

/// Spuri's formula for every release within the busy period, one after the other.
fn edf_by_every_release(tasks: &[Plain]) -> Vec<u64> {
    let mut busy = tasks.iter().map(|task| task.cost).sum::<u64>();
    loop {
        let work = |task: &Plain| busy.div_ceil(task.period) * task.cost;
        match tasks.iter().map(work).sum::<u64>() {
            next if next == busy => break,
            next => busy = next,
        }
    }
    let finish = |own: usize, release: u64| {
        let due = release + tasks[own].deadline;
        let mut finish = 0u64;
        loop {
            let work = |(place, task): (usize, &Plain)| match due.checked_sub(task.deadline) {
                None => 0,
                Some(rest) if place == own => (rest / task.period + 1) * task.cost,
                Some(rest) => finish.div_ceil(task.period).min(rest / task.period + 1) * task.cost,
            };
            match tasks.iter().enumerate().map(work).sum::<u64>() {
                next if next == finish => return finish,
                next => finish = next,
            }
        }
    };
    let worst = |own: usize| {
        let responses = (0..busy).map(|release| finish(own, release).saturating_sub(release));
        responses.max().unwrap().max(tasks[own].cost)
    };
    (0..tasks.len()).map(worst).collect()
}

#[test]
fn larger_sets_have_the_responses_of_the_published_formula() {
    for seed in 0..150 * factor() {
        let mut stream = RandomStream::new(seed, 83, 4);
        let percent = [60, 100, 300][stream.below(3) as usize];
        let periods = [10, 12, 15, 18, 20, 24, 30, 36, 40, 45, 60, 72];
        let tasks = random_tasks(&mut stream, 12, &periods, percent);
        let expected = edf_by_every_release(&tasks);
        assert_eq!(edf(&tasks), Some(expected), "seed {seed}: {tasks:?}");
    }
}

#[test]
fn a_smaller_supply_makes_responses_of_a_slower_cpu() {
    // At four fifths of the speed every cost takes five quarters: count time in quarters.
    let slower = Share::from_billionths(800_000_000).unwrap();
    let mut shown = 0;
    for seed in 0..300 * factor() {
        let mut stream = RandomStream::new(seed, 83, 5);
        let tasks = random_tasks(&mut stream, 5, &[6, 8, 12, 24], 200);
        let quarters = |task: &Plain| Plain {
            cost: 5 * task.cost,
            period: 4 * task.period,
            deadline: 4 * task.deadline,
        };
        let quarters: Vec<Plain> = tasks.iter().map(quarters).collect();
        let round = |responses: Option<Vec<u64>>| {
            responses.map(|all| all.iter().map(|one| one.div_ceil(4)).collect::<Vec<u64>>())
        };
        let found = edf_rta(&as_sporadic(&tasks), slower, &mut Steps::ordinary());
        assert_eq!(
            in_ns(&found),
            round(edf(&quarters)),
            "EDF, seed {seed}: {tasks:?}"
        );
        let found = fp_response_times(&as_ranked(&tasks), slower, &mut Steps::ordinary());
        assert_eq!(
            in_ns(&found),
            round(fp(&quarters)),
            "FP, seed {seed}: {tasks:?}"
        );
        shown += u64::from(in_ns(&found).is_some());
    }
    assert!(shown > 50, "{shown}");
}

#[test]
fn published_examples_have_their_published_responses() {
    // Lehoczky 1990, example 1: the jobs of the second task respond after 114, 102, 116, 104, 118, 106,
    // 94 in a busy period of 694, where the first is not the worst.
    let tasks = [(26, 70, 70), (62, 100, 120)];
    let tasks = tasks.map(|(cost, period, deadline)| Plain {
        cost,
        period,
        deadline,
    });
    assert_eq!(fp(&tasks), Some(vec![26, 118]));
}

#[test]
fn a_set_without_responses_or_without_steps_says_so() {
    let tasks = [(1, 2, 2), (1, 2, 2), (1, 9, 9)];
    let tasks = tasks.map(|(cost, period, deadline)| sporadic(cost, period, deadline));
    let found = edf_rta(&tasks, WHOLE, &mut Steps::ordinary());
    assert_eq!(found, Outcome::Fail(NotShown { place: 2 }));
    let ranked = tasks.map(|task| Ranked {
        task,
        priority: Priority::LEAST_URGENT,
    });
    let found = fp_response_times(&ranked, WHOLE, &mut Steps::ordinary());
    assert_eq!(found, Outcome::Fail(NotShown { place: 2 }));
    // All of the CPU is used, and the busy period ends with the product of the periods.
    let long = [
        sporadic(999_999_937, 1_999_999_874, 1),
        sporadic(499_999_996, 999_999_992, 1),
    ];
    let found = edf_rta(&long, WHOLE, &mut Steps::at_most(1_000));
    assert_eq!(found, Outcome::StepLimit);
    assert_eq!(
        edf_rta(&[], WHOLE, &mut Steps::at_most(0)),
        Outcome::Pass(vec![])
    );
    for bad in [sporadic(0, 1, 1), sporadic(1, 0, 1), sporadic(1, 1, 0)] {
        let found = edf_rta(&[bad], WHOLE, &mut Steps::ordinary());
        assert_eq!(found, Outcome::Fail(NotShown { place: 0 }), "{bad:?}");
    }
    let longest = sporadic(u64::MAX, u64::MAX, u64::MAX);
    let found = edf_rta(&[longest], WHOLE, &mut Steps::ordinary());
    assert_eq!(found, Outcome::Fail(NotShown { place: 0 }));
}

/// So many tasks with a sum of utilizations just below `percent`; periods from 1 ms to 1 s, in nanoseconds and
/// not multiples of each other, as many in each power of two.
fn large_tasks(stream: &mut RandomStream, count: u64, percent: u64, most: u64) -> Vec<Plain> {
    let shares: Vec<u64> = (0..count).map(|_| 1 + stream.below(1_000)).collect();
    let sum: u64 = shares.iter().sum();
    let task = |share: u64| {
        let period = (1_000_000 << stream.below(10)) + stream.below(900_000);
        let cost =
            (u128::from(period) * u128::from(share * percent) / u128::from(100 * sum)) as u64;
        let deadline = period * (most / 2 + stream.below(most / 2)) / 100;
        Plain {
            cost: cost.max(1),
            period,
            deadline: deadline.max(1),
        }
    };
    shares.into_iter().map(task).collect()
}

#[test]
fn a_hundred_tasks_need_a_fraction_of_the_ordinary_steps() {
    for (most, percent) in [(100, 95), (200, 95), (100, 99), (300, 99)] {
        for seed in 0..2 * factor() {
            let mut stream = RandomStream::new(seed, 83, 6);
            let tasks = large_tasks(&mut stream, 100, percent, most);
            let at = format!("seed {seed}, {percent}%, deadlines up to {most}%");
            let found = edf_rta(&as_sporadic(&tasks), WHOLE, &mut Steps::at_most(8_000_000));
            assert!(in_ns(&found).is_some(), "EDF, {at}");
            let ranked = as_ranked(&tasks);
            let found = fp_response_times(&ranked, WHOLE, &mut Steps::at_most(2_000_000));
            assert!(in_ns(&found).is_some(), "FP, {at}");
        }
    }
}

#[test]
fn times_of_every_size_have_an_answer() {
    let mut shown = 0;
    for seed in 0..400 * factor().min(4) {
        let mut stream = RandomStream::new(seed, 83, 7);
        let mut any = |size: u64| 1 + stream.below(u64::MAX >> (63 - size));
        let sizes: Vec<u64> = (0..5).map(|_| any(5)).collect();
        let one = |size: &u64| {
            let period = any(*size);
            let cost = 1 + any(*size) % (period / 4 + 1);
            sporadic(cost, period, any(*size))
        };
        let tasks: Vec<Sporadic> = sizes.iter().map(one).collect();
        let steps = Steps::at_most(100_000);
        let found = edf_rta(&tasks, WHOLE, &mut steps.clone());
        if let Outcome::Pass(responses) = &found {
            shown += 1;
            let least = responses
                .iter()
                .zip(&tasks)
                .all(|(&response, task)| response >= task.cost);
            assert!(least, "seed {seed}: {tasks:?}: {found:?}");
            assert!(
                gel_is_no_tighter(&tasks, responses),
                "seed {seed}: {tasks:?}: {found:?}"
            );
        }
    }
    assert!(shown > 50, "{shown}");
}

fn gel_is_no_tighter(tasks: &[Sporadic], responses: &[Span]) -> bool {
    match gel(tasks, 1, &mut Steps::ordinary()) {
        Outcome::Pass(bounds) => bounds
            .iter()
            .zip(responses)
            .all(|(bound, exact)| bound >= exact),
        _ => true,
    }
}
