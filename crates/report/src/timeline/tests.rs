use super::*;
use crate::run_script::{self, RunScript};
use shiftwork_model::{RandomStream, Record};

fn at(ms: u64) -> Instant {
    Instant::from_ns(ms * 1_000_000)
}

fn whole(horizon: Instant) -> Excerpt {
    Excerpt {
        windows: vec![(Instant::ZERO, horizon)],
        whole: true,
    }
}

fn timeline(script: &RunScript, horizon: Instant, excerpt: &Excerpt, most: usize) -> Timeline {
    let records = (&script.records).into();
    Timeline::of(&script.set, records, horizon, (excerpt, most))
}

/// The definition: an excerpt of a run is what of the whole run touches its windows.
#[test]
fn excerpt_has_exactly_what_touches_its_windows() {
    let scripts = [
        (run_script::crowd(24, 4, 300), 300),
        (run_script::everything(), 50),
        (run_script::fig_1_strong(), 100),
    ];
    for seed in 0..60 {
        let mut random = RandomStream::new(seed, 0, 0);
        let (script, end) = &scripts[random.below(3) as usize];
        let horizon = at(*end);
        let mut cuts: Vec<u64> = (0..2 * (1 + random.below(3)))
            .map(|_| random.below(*end * 1_000_000))
            .collect();
        cuts.sort_unstable();
        let windows = cuts
            .chunks(2)
            .map(|pair| (Instant::from_ns(pair[0]), Instant::from_ns(pair[1])))
            .collect();
        let excerpt = Excerpt {
            windows,
            whole: false,
        };
        let most = random.below(40) as usize;
        let all = timeline(script, horizon, &whole(horizon), usize::MAX);
        let part = timeline(script, horizon, &excerpt, most);
        let what = format!("seed {seed}");
        let touches = |from: Instant, to: Instant| {
            let mut windows = excerpt.windows.iter();
            windows.any(|&(start, end)| from <= end && start <= to)
        };
        for (all, part) in all.cpus.iter().zip(&part.cpus) {
            let mut wanted = all.clone();
            wanted.retain(|slice| excerpt.shows_slice(slice));
            assert_eq!(part, &wanted, "{what}");
        }
        for (all, part) in all.tasks.iter().zip(&part.tasks) {
            let end = |job: &JobHistory| job.end(horizon).max(job.deadline);
            let mut wanted = all.clone();
            wanted.retain(|job| touches(job.release, end(job)));
            assert_eq!(part, &wanted, "{what}");
        }
        let mut shifts = all.shifts.clone();
        shifts.retain(|shift| touches(shift.at, shift.at));
        assert_eq!(part.shifts, shifts, "{what}");
        let mut triggers = all.triggers.clone();
        triggers.retain(|made| touches(made.at, made.at));
        assert_eq!(part.triggers, triggers, "{what}");
        let mut first: Vec<JobHistory> = all.tasks.iter().flatten().cloned().collect();
        first.sort_by_key(|job| (job.release, job.job));
        first.truncate(most);
        assert_eq!(part.first, first, "{what}");
        assert_eq!(
            (part.foreign, &part.refusals, &part.away),
            (all.foreign, &all.refusals, &all.away),
            "{what}"
        );
    }
}

/// After its end a job is known, and nothing is noted of it.
#[test]
fn records_of_jobs_that_ended_are_not_foreign_and_change_nothing() {
    let mut script = run_script::fig_1_strong();
    let horizon = at(100);
    let before = timeline(&script, horizon, &whole(horizon), 0);
    let ended = before.tasks[0][0].job;
    assert!(before.tasks[0][0].end(horizon) < horizon);
    for number in [ended.number, 99] {
        let job = JobId { number, ..ended };
        let reason = NotReadyReason::Suspended;
        script.records.push(Record {
            at: horizon,
            kind: RecordKind::NotReady { job, reason },
        });
    }
    let after = timeline(&script, horizon, &whole(horizon), 0);
    assert_eq!(after.tasks, before.tasks);
    assert_eq!((before.foreign, after.foreign), (0, 1), "job 99 is unknown");
}
