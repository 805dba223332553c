//! The schedule-abstraction search against every choice of releases and costs.

use std::collections::BTreeSet;

use shiftwork_analysis::schedule_abstraction::{
    JobRange, NotMet, PeriodicRange, explore, np_periodic,
};
use shiftwork_analysis::{Outcome, Ranked, Steps};
use shiftwork_model::{Instant, Order, RandomStream, Span};

use crate::sets::{Deadlines, factor, random};

/// A job that is released at one time and runs for one time.
#[derive(Clone, Copy)]
struct Fixed {
    place: usize,
    rank: u64,
    release: u64,
    cost: u64,
    deadline: u64,
}

/// When each job ends, by definition, one unit of time after the other. The jobs of a task follow each other.
fn ends(jobs: &[Fixed], cpus: usize) -> Vec<u64> {
    let mut ends = vec![0; jobs.len()];
    let mut running: Vec<(usize, u64)> = Vec::new();
    // Of each task: its first job that has not begun, and the one after its last.
    let by_task = jobs.chunk_by(|one, other| one.place == other.place);
    let mut next: Vec<(usize, usize)> = by_task
        .scan(0, |first, jobs| {
            let begin = *first;
            *first += jobs.len();
            Some((begin, *first))
        })
        .collect();
    for now in 0.. {
        running.retain(|&(_, end)| end > now);
        let is_running = |place| running.iter().any(|&(job, _)| jobs[job].place == place);
        let mut waiting: Vec<usize> = (0..next.len())
            .filter(|&task| {
                let (job, end) = next[task];
                job < end && jobs[job].release <= now && !is_running(jobs[job].place)
            })
            .collect();
        waiting.sort_by_key(|&task| {
            let job = &jobs[next[task].0];
            (job.rank, job.release, job.place)
        });
        for task in waiting.into_iter().take(cpus - running.len()) {
            let job = next[task].0;
            next[task].0 += 1;
            ends[job] = now + jobs[job].cost;
            running.push((job, ends[job]));
        }
        if next.iter().all(|&(job, end)| job == end) {
            return ends;
        }
    }
    ends
}

/// All jobs with every choice of releases and costs.
fn choices(tasks: &[Vec<JobRange>]) -> Vec<Vec<Fixed>> {
    let mut all = vec![Vec::new()];
    for (place, jobs) in tasks.iter().enumerate() {
        for job in jobs {
            let [first, last] = job.release.map(Instant::as_ns);
            let [least, most] = job.cost.map(Span::as_ns);
            let one = |release, cost| Fixed {
                place,
                rank: job.rank,
                release,
                cost,
                deadline: job.deadline.as_ns(),
            };
            let more = all.iter().flat_map(|jobs: &Vec<Fixed>| {
                (first..=last).flat_map(move |release| {
                    (least..=most).map(move |cost| {
                        let mut jobs = jobs.clone();
                        jobs.push(one(release, cost));
                        jobs
                    })
                })
            });
            all = more.collect();
        }
    }
    all
}

/// Up to five jobs of up to four tasks.
fn small(order: Order, jitter: u64, stream: &mut RandomStream) -> Vec<Vec<JobRange>> {
    let tasks = 2 + stream.below(3);
    let mut priorities: Vec<u64> = (1..=tasks).collect();
    stream.shuffle(&mut priorities);
    let mut left = 5;
    let jobs = |priority| {
        let mut at = stream.below(4);
        let mut jobs = Vec::new();
        for _ in 0..1 + stream.below(2) {
            if left == 0 {
                break;
            }
            left -= 1;
            let late = stream.below(jitter + 1);
            let least = 1 + stream.below(3);
            let most = least + stream.below(2);
            let deadline = at + late + most + stream.below(7);
            jobs.push(JobRange {
                release: [at, at + late].map(Instant::from_ns),
                cost: [least, most].map(Span::from_ns),
                deadline: Instant::from_ns(deadline),
                rank: match order {
                    Order::Edf => deadline,
                    _ => priority,
                },
            });
            at = deadline + stream.below(3);
        }
        jobs
    };
    priorities.into_iter().map(jobs).collect()
}

/// What every choice comes to: the longest time from the earliest release by task, and all ends by task and job.
fn by_definition(tasks: &[Vec<JobRange>], cpus: usize) -> (Vec<u64>, Vec<Vec<BTreeSet<u64>>>) {
    let mut longest = vec![0; tasks.len()];
    let mut all: Vec<Vec<BTreeSet<u64>>> = tasks
        .iter()
        .map(|jobs| vec![BTreeSet::new(); jobs.len()])
        .collect();
    for jobs in choices(tasks) {
        let mut number = vec![0; tasks.len()];
        for (job, end) in jobs.iter().zip(ends(&jobs, cpus)) {
            let place = job.place;
            all[place][number[place]].insert(end);
            let release = tasks[place][number[place]].release[0].as_ns();
            longest[place] = (end - release).max(longest[place]);
            number[place] += 1;
        }
    }
    (longest, all)
}

#[test]
fn search_is_exact_on_one_cpu() {
    let mut seen = [0; 2];
    for seed in 0..120 * factor() {
        let mut stream = RandomStream::new(seed, 93, 0);
        // With jitter, equal deadlines leave open which job goes first.
        let (order, jitter) = match seed % 2 {
            0 => (Order::Edf, 0),
            _ => (Order::FixedPriority, 2),
        };
        let tasks = small(order, jitter, &mut stream);
        let (longest, ends) = by_definition(&tasks, 1);
        let at = format!("seed {seed}, {order:?}: {tasks:?}");
        match explore(&tasks, 1, &mut Steps::ordinary()) {
            Outcome::Pass(found) => {
                let found: Vec<u64> = found.into_iter().map(Span::as_ns).collect();
                assert_eq!(found, longest, "{at}");
                seen[1] += 1;
            }
            Outcome::Fail(late) => {
                let end = late.end.as_ns();
                assert!(ends[late.place][late.job].contains(&end), "{at}: {late:?}");
                assert!(late.end > tasks[late.place][late.job].deadline, "{at}");
                seen[0] += 1;
            }
            Outcome::StepLimit => panic!("{at}"),
        }
    }
    assert!(seen.iter().all(|&count| count > 20), "{seen:?}");
}

#[test]
fn search_covers_every_schedule_on_several_cpus() {
    let (mut passed, mut tight) = (0, 0);
    for seed in 0..120 * factor() {
        let mut stream = RandomStream::new(seed, 93, 1);
        let order = [Order::Edf, Order::FixedPriority][seed as usize % 2];
        let cpus = 2 + seed as usize / 2 % 2;
        let tasks = small(order, 2, &mut stream);
        let Outcome::Pass(found) = explore(&tasks, cpus, &mut Steps::ordinary()) else {
            continue;
        };
        let (longest, _) = by_definition(&tasks, cpus);
        for (longest, found) in longest.iter().zip(&found) {
            assert!(
                *longest <= found.as_ns(),
                "seed {seed}, {order:?} on {cpus}: {tasks:?}"
            );
            tight += u32::from(*longest == found.as_ns());
        }
        passed += 1;
    }
    assert!(passed > 50 && tight > 100, "{passed} {tight}");
}

/// Periodic tasks with these offsets, of exact releases and costs.
fn periodic(seed: u64, cpus: u64) -> Vec<PeriodicRange> {
    let mut stream = RandomStream::new(seed, 93, 2);
    let size = (2 + stream.below(2), 8, cpus);
    let tasks = random(size, Deadlines::Constrained, &mut stream);
    let is_together = stream.below(3) == 0;
    tasks
        .into_iter()
        .map(|ranked| PeriodicRange {
            ranked,
            offset: match is_together {
                true => Span::ZERO,
                false => Span::from_ns(stream.below(ranked.task.period.as_ns())),
            },
            jitter: Span::ZERO,
            least: ranked.task.cost,
        })
        .collect()
}

/// The first jobs of each task.
fn released(tasks: &[PeriodicRange], order: Order, until: u64) -> Vec<Fixed> {
    let jobs = tasks.iter().enumerate().flat_map(|(place, task)| {
        let times = task.ranked.task;
        let from = task.offset.as_ns();
        let releases = (from..until).step_by(times.period.as_ns() as usize);
        releases.map(move |release| Fixed {
            place,
            rank: match order {
                Order::Edf => release + times.deadline.as_ns(),
                _ => u64::from(task.ranked.priority.number()),
            },
            release,
            cost: times.cost.as_ns(),
            deadline: release + times.deadline.as_ns(),
        })
    });
    jobs.collect()
}

/// Whether a job of periodic tasks from these offsets is late under non-preemptive scheduling.
pub fn a_job_is_late(tasks: &[Ranked], offsets: &[u64], order: Order, cpus: usize) -> bool {
    let ranges = tasks
        .iter()
        .zip(offsets)
        .map(|(&ranked, &offset)| PeriodicRange {
            ranked,
            offset: Span::from_ns(offset),
            jitter: Span::ZERO,
            least: ranked.task.cost,
        });
    let jobs = released(&ranges.collect::<Vec<_>>(), order, 1_500);
    let ends = ends(&jobs, cpus);
    jobs.iter().zip(&ends).any(|(job, &end)| end > job.deadline)
}

#[test]
fn periodic_tasks_of_exact_times_take_what_the_search_says() {
    let mut seen = [0; 3];
    for seed in 0..150 * factor() {
        let cpus = 1 + seed % 2;
        let tasks = periodic(seed, cpus);
        let order = [Order::Edf, Order::FixedPriority][seed as usize / 2 % 2];
        let jobs = released(&tasks, order, 700);
        let ends = ends(&jobs, cpus as usize);
        let mut longest = vec![0; tasks.len()];
        for (job, end) in jobs.iter().zip(&ends) {
            longest[job.place] = (end - job.release).max(longest[job.place]);
        }
        let late = jobs.iter().zip(&ends).any(|(job, &end)| end > job.deadline);
        let at = format!("seed {seed}, {order:?} on {cpus}: {tasks:?}");
        match np_periodic(&tasks, order, cpus as usize, &mut Steps::ordinary()) {
            // With exact times there is one schedule, and every state is one situation.
            Outcome::Pass(found) => {
                let found: Vec<u64> = found.into_iter().map(Span::as_ns).collect();
                assert_eq!(found, longest, "{at}");
                seen[0] += 1;
            }
            Outcome::Fail(NotMet::Late(_)) => {
                assert!(late, "{at}");
                seen[1] += 1;
            }
            Outcome::Fail(NotMet::Outside { .. }) => seen[2] += 1,
            Outcome::StepLimit => panic!("{at}"),
        }
    }
    assert!(seen.iter().all(|&count| count > 8), "{seen:?}");
}

#[test]
fn jitter_and_shorter_jobs_are_taken_into_account() {
    // A long job of low priority may begin before the urgent one comes if the job between them is done early.
    let task = |cost, period, priority| crate::sets::ranked(cost, period, period, priority);
    let range = |ranked, offset, least| PeriodicRange {
        ranked,
        offset: Span::from_ns(offset),
        jitter: Span::ZERO,
        least: Span::from_ns(least),
    };
    let mut tasks = vec![
        range(task(2, 10, 1), 0, 2),
        range(task(3, 20, 2), 0, 3),
        range(task(8, 20, 3), 0, 8),
    ];
    let exact = np_periodic(&tasks, Order::FixedPriority, 1, &mut Steps::ordinary());
    let spans = |all: [u64; 3]| all.map(Span::from_ns).to_vec();
    assert_eq!(exact, Outcome::Pass(spans([5, 5, 13])));
    tasks[0].jitter = Span::from_ns(1);
    let jitter = np_periodic(&tasks, Order::FixedPriority, 1, &mut Steps::ordinary());
    // Released at 1, the urgent job finds the second running, until 3.
    assert_eq!(jitter, Outcome::Pass(spans([5, 5, 13])));
    let none = np_periodic(&tasks, Order::FixedPriority, 1, &mut Steps::at_most(10));
    assert_eq!(none, Outcome::StepLimit);
}
