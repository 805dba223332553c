//! CPUs that tasks change to, and that go offline and come back.

use shiftwork_live::standing::Reservation;
use shiftwork_model::{CpuId, CpuSet, Record, RecordKind, Span};

use super::stage::{Stage, is_demoted, is_spent, runs, task, wish};
use super::worker::{Doing, Worker};
use super::{is_bound, is_on};
use crate::faults::{Offline, goes_on, wait_for};

/// A task that binds itself to other CPUs is demoted, and has its reservation again if it is
/// admitted for those CPUs. Approved CPUs it may change to without another admission. A demoted
/// task that ends has left.
pub fn change_to_other_cpus_is_granted() -> Result<(), String> {
    let mut stage = Stage::load()?;
    let (mut worker, other) = (Worker::start(Doing::Naps), Worker::start(Doing::Naps));
    stage.must_admit(0, &wish(&worker, 0b0110))?;
    stage.hear(0, 0, runs)?;
    worker.binds_itself(0b1000);
    let asks_for_3 = |kind: &RecordKind| matches!(kind, RecordKind::Demoted { asked, .. } if **asked == CpuSet::from_bits(0b1000));
    stage.hear(0, 0, asks_for_3)?;
    // An answer to another question, and another thread in its place.
    let admit = |stage: &mut Stage, of: &Reservation| {
        let admitted = stage.standing.admit(task(0), of);
        admitted.map_err(|error| error.to_string())
    };
    if admit(&mut stage, &wish(&worker, 0b0110))? || admit(&mut stage, &wish(&other, 0b1000))? {
        return Err(String::from("a thread was admitted that did not ask"));
    }
    let mark = stage.mark()?;
    if !admit(&mut stage, &wish(&worker, 0b1000))? {
        return Err(String::from("it is not admitted for what it asked for"));
    }
    let running = stage.hear(mark, 0, runs)?;
    if !is_on(&running.kind, 3) {
        return Err(format!("{running:?}"));
    }
    let (mark, cpus) = (stage.mark()?, CpuSet::from_bits(0b0010));
    stage
        .standing
        .approve(task(0), &cpus)
        .map_err(|error| error.to_string())?;
    let bound = stage.standing.bind(worker.id, &cpus);
    bound.map_err(|error| error.to_string())?;
    stage.hear(mark, 0, |kind| is_bound(kind, 0b0010))?;
    let demotions = stage.count(mark, 0, is_demoted);
    worker.binds_itself(0b0100);
    stage.hear(mark, 0, is_demoted)?;
    worker.end();
    if demotions > 0 {
        return Err(String::from("it was demoted for what was approved"));
    }
    // Its number is free; a thread that is bound to other CPUs than it is admitted for has asked
    // for those.
    let admitted = stage.standing.bind(other.id, &CpuSet::from_bits(0b1000));
    admitted.map_err(|error| error.to_string())?;
    let mark = stage.mark()?;
    // As soon as the kernel knows that the one that was demoted has ended.
    wait_for("the number to be free", || {
        let admitted = admit(&mut stage, &wish(&other, 0b0110));
        (admitted != Ok(false)).then_some(admitted)
    })??;
    stage.hear(mark, 0, asks_for_3)?;
    stage.end()
}

/// Tasks of a CPU that goes offline run elsewhere; one that is offline when the machine is loaded is used once it is
/// back.
pub fn standing_scheduler_loses_and_regains_a_cpu() -> Result<(), String> {
    const LOST: u64 = 2;
    let cpu = CpuId::from_index(2);
    let lost = |it: &Record| it.kind == RecordKind::CpuOffline { cpu };
    let back = |it: &Record| it.kind == RecordKind::CpuOnline { cpu };
    let [one, two] = [Doing::Naps; 2].map(Worker::start);
    let early = Offline::take(LOST)?;
    let mut stage = Stage::load()?;
    if !stage.take()?.iter().any(lost) {
        return Err(String::from("no record says that a CPU is offline already"));
    }
    stage.must_admit(0, &wish(&one, 0b1100))?;
    stage.must_admit(1, &wish(&two, 0b1100))?;
    let mark = stage.mark()?;
    for index in [0, 1] {
        let begins = stage.hear(mark, index, runs)?;
        if !is_on(&begins.kind, 3) {
            return Err(format!("on a CPU that is offline: {begins:?}"));
        }
    }
    drop(early);
    stage.wait_for("the CPU to be back", back)?;
    one.does(Doing::Hogs);
    runs_on(&mut stage, 2)?;
    let again = Offline::take(LOST)?;
    stage.wait_for("the CPU to be gone", lost)?;
    let mark = stage.mark()?;
    for index in [0, 1] {
        stage.hear(mark, index, runs)?;
    }
    drop(again);
    runs_on(&mut stage, 2)?;
    stage.end()
}

/// A CPU goes although ordinary work that is bound to it waits for its turn there, and a task that has no other CPU for
/// its budget: the kernel moves them to others.
pub fn cpu_goes_that_threads_wait_for() -> Result<(), String> {
    const ONLY: u64 = 0b0100;
    let mut stage = Stage::load()?;
    let [one, two, spent] = [Doing::Hogs; 3].map(Worker::start);
    for ordinary in [&one, &two] {
        let bound = stage.standing.bind(ordinary.id, &CpuSet::from_bits(ONLY));
        bound.map_err(|error| error.to_string())?;
    }
    let long = Reservation {
        period: Span::from_s(2),
        deadline: Span::from_s(2),
        ..wish(&spent, ONLY)
    };
    stage.must_admit(0, &long)?;
    stage.hear(0, 0, is_spent)?;
    for ordinary in [&one, &two] {
        goes_on(ordinary.number(), 10)?;
    }
    let offline = Offline::take(2)?;
    for worker in [&one, &two, &spent] {
        goes_on(worker.number(), 1)?;
    }
    drop(offline);
    stage.end()
}

/// Waits until some task runs there.
fn runs_on(stage: &mut Stage, cpu: usize) -> Result<(), String> {
    stage.wait_for(&format!("a task to run on CPU {cpu}"), |it| {
        is_on(&it.kind, cpu)
    })
}
