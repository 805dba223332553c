//! Explanations of chains name the jobs that made them late, and account for all of their time.

use shiftwork_model::{
    Chain, CpuId, Instant, JobId, Join, RandomStream, Record, RecordKind, Span, TaskId, TaskSet,
};
use shiftwork_sim::{Options, Simulation};
use shiftwork_trace::check::PolicyContract;
use shiftwork_trace::explain::{ChainExplanation, Link, Part, Recording, explain, first_misses};
use shiftwork_trace::{ChainTime, Counters};
use shiftwork_verbs::catalogue;

use crate::sets::random_set;

const HORIZON: Instant = Instant::from_ns(1_500);

/// A job of the definition.
#[derive(Clone, Copy, Debug)]
struct Job {
    id: JobId,
    /// Arrival, by its deadline.
    arrival: Instant,
    start: Option<Instant>,
    completion: Option<Instant>,
}

/// The complete records of a run, and the definition of its chains on them.
struct Run<'a> {
    set: &'a TaskSet,
    records: &'a [Record],
}

impl Run<'_> {
    /// The time in which the job has a CPU.
    fn on_cpu(&self, id: JobId) -> Vec<(Instant, Instant)> {
        let mut times = Vec::new();
        for cpu in (0..self.set.platform.cpus).map(CpuId::from_index) {
            let mut since = None;
            for record in self.records {
                let RecordKind::Switched { cpu: on, to, .. } = record.kind else {
                    continue;
                };
                if on != cpu {
                    continue;
                }
                if let Some(from) = since.take() {
                    times.push((from, record.at));
                }
                since = (to == Some(id)).then_some(record.at);
            }
            times.extend(since.map(|from| (from, HORIZON)));
        }
        times.retain(|(from, to)| from < to);
        times
    }

    fn jobs(&self, task: TaskId) -> Vec<Job> {
        let relative = self.set.tasks[task.index()].deadline;
        let released = self.records.iter().filter_map(|record| match record.kind {
            RecordKind::Released { job, deadline } if job.task == task => Some((job, deadline)),
            _ => None,
        });
        let job = |(id, deadline): (JobId, Instant)| {
            let done = |record: &&Record| record.kind == RecordKind::Completed { job: id };
            Job {
                id,
                arrival: Instant::from_ns(deadline.as_ns() - relative.as_ns()),
                start: self.on_cpu(id).iter().map(|(from, _)| *from).min(),
                completion: self.records.iter().find(done).map(|record| record.at),
            }
        };
        released.map(job).collect()
    }

    /// The job of the task before from which job `number` of the task at this place stems, and when it triggered that.
    fn triggered_by(&self, chain: &Chain, place: usize, number: u64) -> Option<(JobId, Instant)> {
        let (source, task) = (chain.tasks[place - 1], chain.tasks[place]);
        let join = self.set.tasks[task.index()].trigger()?.join;
        let triggers = self.records.iter().filter_map(|record| match record.kind {
            RecordKind::Triggered {
                by,
                task: to,
                is_lost: false,
            } if to == task && (join == Join::Any || by.task == source) => Some((by, record.at)),
            _ => None,
        });
        let (by, at) = triggers.into_iter().nth(number as usize - 1)?;
        (by.task == source).then_some((by, at))
    }

    /// Whether each link is a job that triggered that of the next, from the first task on.
    fn is_latency(&self, chain: &Chain, why: &ChainExplanation) -> bool {
        let links = &why.links;
        let root = links[0].job.unwrap();
        let arrives = |job: &Job| job.id.number == root && job.arrival == why.miss.from;
        self.jobs(chain.tasks[0]).iter().any(arrives)
            && links.windows(2).enumerate().all(|(place, pair)| {
                let by = JobId {
                    task: pair[0].task,
                    number: pair[0].job.unwrap(),
                };
                match pair[1].job {
                    Some(number) => {
                        self.triggered_by(chain, place + 1, number) == Some((by, pair[0].to))
                    }
                    // Not all that it waits for have triggered it.
                    None => !why.miss.has_ended && place + 2 == links.len(),
                }
            })
            && self.ends_with_completion(chain, why)
    }

    /// Whether the time ends with the completion of a job of the last task, or had not ended by the horizon.
    fn ends_with_completion(&self, chain: &Chain, why: &ChainExplanation) -> bool {
        let last = why.links.last().unwrap();
        let completion = self.completion(last);
        match why.miss.has_ended {
            true => chain.tasks.last() == Some(&last.task) && completion == Some(last.to),
            false => completion.is_none_or(|at| at > HORIZON),
        }
    }

    fn completion(&self, link: &Link) -> Option<Instant> {
        let jobs = self.jobs(link.task);
        let is_it = |job: &&Job| Some(job.id.number) == link.job;
        jobs.iter().find(is_it)?.completion
    }

    /// Whether each link is the first job of its task that reads after the event, or what the link before wrote.
    fn is_reaction(&self, chain: &Chain, why: &ChainExplanation) -> bool {
        why.links.iter().enumerate().all(|(place, link)| {
            let jobs = self.jobs(link.task);
            let reads = |job: &&Job| {
                job.start.is_some_and(|start| match place {
                    0 => start > link.from,
                    _ => start >= link.from,
                })
            };
            let first = jobs.iter().find(reads);
            match first.and_then(|job| Some((job, job.completion?))) {
                Some((job, at)) => link.job == Some(job.id.number) && link.to == at,
                None => !why.miss.has_ended && link.to == HORIZON,
            }
        }) && self.ends_with_completion(chain, why)
    }

    /// Whether each link but the last is the last job to complete before the next one reads, and the last one is the next
    /// to complete.
    fn is_age(&self, chain: &Chain, why: &ChainExplanation) -> bool {
        let (last, links) = why.links.split_last().unwrap();
        let written = |link: &Link, at: Instant| {
            let jobs = self.jobs(link.task);
            let completed = jobs
                .iter()
                .filter(|job| job.completion.is_some_and(|it| it <= at));
            completed.map(|job| job.id.number).next_back()
        };
        links.len() == chain.tasks.len()
            && links[0].start == Some(why.miss.from)
            && links.windows(2).all(|pair| {
                let reads = self.on_cpu(JobId {
                    task: pair[1].task,
                    number: pair[1].job.unwrap(),
                });
                let read = reads.iter().map(|(from, _)| *from).min().unwrap();
                written(&pair[0], read) == pair[0].job
            })
            && (!why.miss.has_ended || last.job == links.last().unwrap().job.map(|it| it + 1))
            && self.ends_with_completion(chain, why)
    }

    /// Whether the parts of the link account for its time, and for that on CPUs.
    fn accounts_for(&self, link: &Link) -> bool {
        let sum = |is: &dyn Fn(Part) -> bool| {
            let parts = link.parts.iter().filter(|(part, _)| is(*part));
            parts.map(|(_, time)| time.as_ns()).sum::<u64>()
        };
        let whole = sum(&|_| true) + link.waited.as_ns();
        let executing = sum(&|part| matches!(part, Part::Executing | Part::OwnOverrun));
        let on_cpu = link.job.map_or_else(Vec::new, |number| {
            let task = link.task;
            self.on_cpu(JobId { task, number })
        });
        let within = |&(from, to): &(Instant, Instant)| {
            to.min(link.to).late_since(from.max(link.from)).as_ns()
        };
        whole == link.length().as_ns() && executing == on_cpu.iter().map(within).sum::<u64>()
    }
}

#[test]
fn explained_chains_are_those_of_the_definition() {
    let mut counts = [[0; 2]; 3];
    for seed in 0..500 {
        let mut set = random_set(&mut RandomStream::new(seed, 85, 0));
        for index in 0..set.chains.len() {
            let is_triggered = set.chains[index].is_triggered(&set);
            let chain = &mut set.chains[index];
            chain.reaction = Some(Span::from_ns(seed % 150));
            chain.age = chain.reaction;
            chain.latency = chain.reaction.filter(|_| is_triggered);
        }
        for policy in ["p-fp", "strong-edf"] {
            let entry = catalogue::find(policy).unwrap();
            let built = entry.build(&set).unwrap();
            let contract = PolicyContract::of(&entry.traits, built.packing());
            let options = Options {
                seed,
                horizon: HORIZON,
                overheads: None,
                reserve_server: false,
            };
            let mut both = (Counters::new(&set, set.platform.cpus), Vec::new());
            Simulation::new(&set, built, &entry.traits, options).run(&mut both);
            let (counters, records) = both;
            let measured = counters.finish(HORIZON).chains;
            let recording = Recording {
                set: &set,
                contract: Some(&contract),
                records: (&records).into(),
                until: HORIZON,
            };
            let run = Run {
                set: &set,
                records: &records,
            };
            let misses = recording.chain_misses();
            for (index, (chain, times)) in set.chains.iter().zip(&measured).enumerate() {
                let all = [
                    (ChainTime::Reaction, Some(times.reaction)),
                    (ChainTime::Age, Some(times.age)),
                    (ChainTime::Latency, times.latency),
                ];
                for (time, found) in all {
                    let what =
                        format!("seed {seed}, {policy}, {time:?} of {}: {set:?}", chain.name);
                    let mut of_time = misses.iter();
                    let miss = of_time.find(|miss| miss.chain == index && miss.time == time);
                    let is_missed = found.is_some_and(|found| found.is_met() == Some(false));
                    assert_eq!(miss.is_some(), is_missed, "{what}");
                    let (Some(found), Some(miss)) = (found, miss) else {
                        continue;
                    };
                    assert_eq!(Some(miss.length()), found.max.max(found.pending), "{what}");
                    let why = recording.explain_chain(miss).expect(&what);
                    let what = format!("{what}\n{why:#?}");
                    assert_eq!(why.links[0].from, miss.from, "{what}");
                    assert_eq!(why.links.last().unwrap().to, miss.to, "{what}");
                    assert!(
                        why.links.windows(2).all(|pair| pair[0].to == pair[1].from),
                        "{what}"
                    );
                    assert!(
                        why.links.iter().all(|link| run.accounts_for(link)),
                        "{what}"
                    );
                    let is_path = match time {
                        ChainTime::Reaction => run.is_reaction(chain, &why),
                        ChainTime::Age => run.is_age(chain, &why),
                        ChainTime::Latency => run.is_latency(chain, &why),
                    };
                    assert!(is_path, "{what}");
                    counts[time as usize][usize::from(miss.has_ended)] += 1;
                }
            }
        }
    }
    println!("reaction, age, latency: not ended and ended: {counts:?}");
    assert!(
        counts
            .iter()
            .all(|[open, ended]| *open > 10 && *ended > 100),
        "{counts:?}"
    );
}

/// By the definition: which job triggered this one last, when, and the job from which both stem with its arrival.
fn origin(run: &Run<'_>, id: JobId) -> (JobId, Instant, JobId, Instant) {
    let trigger = run.set.tasks[id.task.index()].trigger().unwrap();
    let accepted = |sources: &[TaskId]| {
        let triggers = run.records.iter().filter_map(|record| match record.kind {
            RecordKind::Triggered {
                by,
                task,
                is_lost: false,
            } if task == id.task && sources.contains(&by.task) => Some((by, record.at)),
            _ => None,
        });
        triggers.into_iter().nth(id.number as usize - 1).unwrap()
    };
    let (by, at) = match trigger.join {
        Join::Any => accepted(&trigger.sources),
        Join::All => {
            let mut sources = trigger.sources.clone();
            sources.sort();
            let last = sources.iter().map(|source| accepted(&[*source]));
            last.max_by_key(|(_, at)| *at).unwrap()
        }
    };
    let is_root = run.set.tasks[by.task.index()].trigger().is_none();
    match is_root {
        true => {
            let jobs = run.jobs(by.task);
            let root = jobs.iter().find(|job| job.id == by).unwrap();
            (by, at, by, root.arrival)
        }
        false => {
            let (_, _, root, arrival) = origin(run, by);
            (by, at, root, arrival)
        }
    }
}

#[test]
fn triggers_of_late_jobs_are_those_of_the_definition() {
    let (mut compared, mut late) = (0, 0);
    for seed in 0..400 {
        let mut set = random_set(&mut RandomStream::new(seed, 86, 0));
        for task in &mut set.tasks {
            if task.trigger().is_some() {
                task.deadline = Span::from_ns(1);
            }
        }
        let entry = catalogue::find("strong-edf").unwrap();
        let built = entry.build(&set).unwrap();
        let contract = PolicyContract::of(&entry.traits, built.packing());
        let options = Options {
            seed,
            horizon: HORIZON,
            overheads: None,
            reserve_server: false,
        };
        let mut records = Vec::new();
        Simulation::new(&set, built, &entry.traits, options).run(&mut records);
        let run = Run {
            set: &set,
            records: &records,
        };
        for id in first_misses(&set, &records, HORIZON, 12) {
            let why = explain(&set, &contract, &records, id, HORIZON).unwrap();
            let what = format!("seed {seed}, {id:?}: {set:?}");
            assert_eq!(
                why.origin.is_some(),
                set.tasks[id.task.index()].trigger().is_some(),
                "{what}"
            );
            let Some(found) = why.origin else { continue };
            let (by, at, root, arrival) = origin(&run, id);
            assert_eq!((found.by, found.at), (by, at), "{what}");
            assert_eq!((found.root, found.arrival), (root, arrival), "{what}");
            let jobs = run.jobs(id.task);
            let mut delays: Vec<u64> = jobs
                .iter()
                .map(|job| {
                    let (_, at, _, arrival) = origin(&run, job.id);
                    at.late_since(arrival).as_ns()
                })
                .collect();
            delays.sort_unstable();
            let median = delays[(delays.len() - 1) / 2];
            assert!(
                found.usual.as_ns().abs_diff(median) <= median / 1_000,
                "{what}"
            );
            compared += 1;
            late += u64::from(found.is_late());
        }
    }
    println!("{compared} triggers compared, {late} late");
    assert!(compared > 500 && late > 50, "{compared} {late}");
}
