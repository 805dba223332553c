//! Observation of ordinary work.

use shiftwork_live::standing::Activity;
use shiftwork_model::{CpuSet, Span};

use super::stage::{ALL, Stage, completes, runs, task, wish};
use super::worker::{Doing, Worker};
use crate::faults::{all_is_well, goes_on, wait_for};

/// The observation of a thread shows what it does as ordinary work, and nothing else: it is no
/// task. While it is a task, its activity is recorded as that of the task.
pub fn standing_scheduler_observes_ordinary_work() -> Result<(), String> {
    const OBSERVED: usize = 7;
    let mut stage = Stage::load()?;
    let (mut seen, other) = (Worker::start(Doing::Naps), Worker::start(Doing::Naps));
    let observe = |stage: &mut Stage, of: &Worker, index| {
        let observed = stage.standing.observe(task(index), of.id);
        observed.map_err(|error| error.to_string())
    };
    if !observe(&mut stage, &seen, OBSERVED)? || observe(&mut stage, &other, OBSERVED)? {
        return Err(String::from(
            "it is not observed, or another thread is by its number",
        ));
    }
    if observe(&mut stage, &seen, OBSERVED + 1).is_ok() {
        return Err(String::from("one thread is observed by two numbers"));
    }
    if !observe(&mut stage, &other, OBSERVED + 1)? {
        return Err(String::from("a second is not observed"));
    }
    if stage.admit(OBSERVED, &wish(&other, ALL))? {
        return Err(String::from(
            "a thread was admitted by the number of an observation",
        ));
    }
    naps_are_whole(&mut stage, OBSERVED)?;
    changes_of_affinity_are_no_sleep(&mut stage, OBSERVED + 2)?;
    stage.must_admit(0, &wish(&seen, ALL))?;
    let mark = stage.mark()?;
    stage.hear(mark, 0, completes)?;
    let (mark, did) = (stage.mark()?, stage.observed.len());
    stage.hear(mark, 0, completes)?;
    if stage.did(did, OBSERVED).count() > 0 {
        return Err(String::from(
            "what it did as a task was observed as ordinary work, too",
        ));
    }
    stage.dismiss(0)?;
    naps_are_whole(&mut stage, OBSERVED)?;
    let stopped = stage.standing.stop_observing(task(OBSERVED));
    stopped.map_err(|error| error.to_string())?;
    stage.take()?;
    let did = stage.observed.len();
    goes_on(seen.number(), 3)?;
    stage.take()?;
    if stage.did(did, OBSERVED).count() > 0 {
        return Err(String::from("it is still observed"));
    }
    stage.must_admit(OBSERVED, &wish(&other, ALL))?;
    let mark = stage.mark()?;
    stage.hear(mark, OBSERVED, runs)?;
    stage.dismiss(OBSERVED)?;
    let mark = stage.mark()?;
    if !observe(&mut stage, &seen, OBSERVED)? {
        return Err(String::from("it is not observed again"));
    }
    stage.wait_until_it(did, OBSERVED, Activity::Woken)?;
    seen.end();
    stage.wait_until_it(did, OBSERVED, Activity::Ended)?;
    if stage.count(mark, OBSERVED, |_| true) > 0 {
        return Err(String::from(
            "there are records of a thread that is only observed",
        ));
    }
    stage.is_sound()?;
    drop(stage);
    all_is_well()
}

/// A change of its affinity is neither waking up nor going to sleep for a thread that computes all the time. Another
/// thread changes it: a thread that binds itself to CPUs other than its own sleeps in the kernel until it was moved there.
fn changes_of_affinity_are_no_sleep(stage: &mut Stage, index: usize) -> Result<(), String> {
    let busy = Worker::start(Doing::Hogs);
    let observed = stage.standing.observe(task(index), busy.id);
    observed.map_err(|error| error.to_string())?;
    goes_on(busy.number(), 3)?;
    for cpus in [0b1000, 0b0010, 0b1000, 0b1111] {
        stage.take()?;
        let mark = stage.observed.len();
        let bound = stage.standing.bind(busy.id, &CpuSet::from_bits(cpus));
        bound.map_err(|error| error.to_string())?;
        goes_on(busy.number(), 3)?;
        stage.take()?;
        let slept = |did: &Activity| matches!(did, Activity::Woken | Activity::Blocked);
        if let Some(did) = stage.did(mark, index).find(slept) {
            return Err(format!("bound to CPUs {cpus:#b}: {did:?}"));
        }
    }
    if !stage
        .did(0, index)
        .any(|did| matches!(did, Activity::Ran(_)))
    {
        return Err(String::from("it was moved, and nothing shows that it ran"));
    }
    let stopped = stage.standing.stop_observing(task(index));
    stopped.map_err(|error| error.to_string())
}

/// Three naps that are observed from now on: it wakes up and goes to sleep in turns, and computes
/// between.
fn naps_are_whole(stage: &mut Stage, index: usize) -> Result<(), String> {
    stage.take()?;
    let mark = stage.observed.len();
    let (mut awake, mut naps) = (None, 0);
    wait_for("naps", || {
        if let Err(why) = stage.take() {
            return Some(Err(why));
        }
        let blocked = stage.did(mark, index).filter(|it| *it == Activity::Blocked);
        (blocked.count() > 4).then_some(Ok(()))
    })??;
    for did in stage.did(mark, index) {
        match (did, &mut awake) {
            (Activity::Woken, None) => awake = Some(Span::ZERO),
            (Activity::Ran(ran), Some(sum)) => *sum += ran,
            (Activity::Blocked, Some(sum)) => {
                // It computes for 300 us by its own clock.
                if *sum < Span::from_us(250) {
                    return Err(format!("it ran for {sum} in a nap"));
                }
                awake = None;
                naps += 1;
            }
            // What it does at first began before.
            (Activity::Ran(_) | Activity::Blocked, None) if naps == 0 => {}
            other => return Err(format!("after {naps} naps {other:?}")),
        }
    }
    Ok(())
}
