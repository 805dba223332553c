//! Ordinary work beside a scheduler without tasks: shares by nice value, and how soon a thread runs that has slept.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, setpriority_process};
use rustix::thread::gettid;
use shiftwork_live::standing::{Activity, Reservation};
use shiftwork_model::{CpuSet, Instant, Span};

use super::stage::{Stage, task, wish};
use super::worker::{Doing, Worker};
use crate::faults::{compute, goes_on, processor_time};
use crate::long;

/// Threads that compute all the time, bound to these CPUs, with these nice values.
pub fn hogs(stage: &Stage, cpus: u64, nice: &[i32]) -> Result<Vec<Worker>, String> {
    let hog = |&nice: &i32| {
        let worker = Worker::start(Doing::Hogs);
        let bound = stage.standing.bind(worker.id, &CpuSet::from_bits(cpus));
        bound.map_err(|error| error.to_string())?;
        setpriority_process(Some(worker.id), nice).map_err(|error| error.to_string())?;
        goes_on(worker.number(), 5)?;
        Ok(worker)
    };
    nice.iter().map(hog).collect()
}

/// Two threads that compute all the time share a CPU as their nice values say, within a tenth, bound to that CPU or, four of
/// them, to two.
pub fn nice_values_share_a_cpu() -> Result<(), String> {
    /// In half of that the ratio on two CPUs differs by up to a tenth from boot to boot.
    const SHARED: Duration = Duration::from_secs(4);
    let stage = Stage::load()?;
    // Linux' weights: 1,024 for nice 0, 335 for 5, 110 for 10.
    for (cpus, copies, nice, ratio) in [
        (0b0010, 1, 5, 1024.0 / 335.0),
        (0b0010, 1, 10, 1024.0 / 110.0),
        (0b1100, 2, 5, 1024.0 / 335.0),
    ] {
        let nices = [vec![0; copies], vec![nice; copies]].concat();
        let workers = hogs(&stage, cpus, &nices)?;
        let times = || {
            let time = |of: &Worker| processor_time(of.number()).ok_or("a thread is gone");
            workers.iter().map(time).collect::<Result<Vec<_>, _>>()
        };
        let before = times()?;
        std::thread::sleep(SHARED);
        let had: Vec<f64> = times()?
            .iter()
            .zip(&before)
            .map(|(after, before)| (*after - *before).as_secs_f64())
            .collect();
        let (first, second) = had.split_at(copies);
        let found = first.iter().sum::<f64>() / second.iter().sum::<f64>();
        println!("nice 0 and {nice} on CPUs {cpus:#b}: {found:.2} to 1, wanted {ratio:.2}");
        if (found / ratio - 1.0).abs() > 0.1 {
            return Err(format!(
                "nice {nice} on CPUs {cpus:#b}: {had:?}, {found:.2} to 1, wanted {ratio:.2}"
            ));
        }
    }
    stage.end()
}

/// Threads that compute all the time share two CPUs alike, whether they may use both or are bound to one of them; where too many are
/// bound to one, these have that CPU.
pub fn bound_threads_share_with_others_alike() -> Result<(), String> {
    const SHARED: Duration = Duration::from_secs(4);
    let stage = Stage::load()?;
    for (bound, free, wanted) in [(2, 6, 0.25), (1, 3, 0.5), (4, 4, 0.25), (6, 2, 1.0 / 6.0)] {
        let on_one = hogs(&stage, 0b0100, &vec![0; bound])?;
        let on_both = hogs(&stage, 0b1100, &vec![0; free])?;
        let time = |of: &Worker| processor_time(of.number()).ok_or("a thread is gone");
        let times = || on_one.iter().map(time).collect::<Result<Vec<_>, _>>();
        let before = times()?;
        std::thread::sleep(SHARED);
        let had = times()?.into_iter().zip(before);
        let had = had.map(|(after, before)| (after - before).as_secs_f64() / SHARED.as_secs_f64());
        let had: Vec<f64> = had.collect();
        println!("{bound} bound to a CPU beside {free}: {had:.3?} each, wanted {wanted:.3}");
        if had.iter().any(|share| (share / wanted - 1.0).abs() > 0.2) {
            return Err(format!(
                "{bound} threads that are bound to a CPU, beside {free} that are not, have {had:?} of it, wanted {wanted:.3}"
            ));
        }
        drop(on_both);
    }
    stage.end()
}

/// A thread that sleeps for most of the time runs within microseconds after it wakes up, beside threads that compute all the
/// time: bound with them to one CPU, or to two.
pub fn thread_that_sleeps_runs_when_it_wakes_up() -> Result<(), String> {
    const OBSERVED: usize = 3;
    const NAPS: usize = 60;
    for (cpus, count) in [(0b0010, 2), (0b1100, 4)] {
        let mut stage = Stage::load()?;
        let _others = hogs(&stage, cpus, &vec![0; count])?;
        let naps = Worker::start(Doing::Naps);
        let bound = stage.standing.bind(naps.id, &CpuSet::from_bits(cpus));
        bound.map_err(|error| error.to_string())?;
        let observed = stage.standing.observe(task(OBSERVED), naps.id);
        observed.map_err(|error| error.to_string())?;
        let mut waits = Vec::new();
        let mut woken = None::<Instant>;
        for _ in 0..1_000 {
            std::thread::sleep(Duration::from_millis(5));
            stage.take()?;
            for did in stage.observed.drain(..) {
                match (did.activity, woken) {
                    (Activity::Woken, _) => woken = Some(did.at),
                    (Activity::Ran(ran), Some(since)) => {
                        waits.push(did.at.since(since).unwrap_or_default().saturating_sub(ran));
                        woken = None;
                    }
                    _ => {}
                }
            }
            if waits.len() >= NAPS {
                break;
            }
        }
        waits.sort_unstable();
        let quantile = |percent: usize| waits.get(waits.len() * percent / 100).copied();
        let (half, most) = (quantile(50), quantile(95));
        println!(
            "{count} others on CPUs {cpus:#b}: p50 {half:?}, p95 {most:?}, of {}",
            waits.len()
        );
        if waits.len() < NAPS || half > Some(Span::from_us(50)) || most > Some(Span::from_us(500)) {
            return Err(format!("on CPUs {cpus:#b} it waited for {waits:?}"));
        }
        stage.end()?;
    }
    Ok(())
}

/// Threads that compute all the time, bound to a CPU of which nearly all is reserved, each run again and again, however many they are, long
/// before the kernel's watchdog would take the scheduler away (30 s); and the reserved thread has what is reserved.
pub fn five_hundred_pinned_threads_are_served() -> Result<(), String> {
    const THREADS: usize = 500;
    const CPU: u64 = 0b0010;
    /// The longest that one may wait: twice what it takes until those that come later have to wait behind it, and all that wait
    /// then have had their turns.
    const LONGEST_S: u64 = 20;
    let seconds = if long() { 60 } else { 11 };
    let mut stage = Stage::load()?;
    let reserved = Worker::start(Doing::Hogs);
    let nearly_all = Reservation {
        cost: Span::from_ms(94),
        period: Span::from_ms(100),
        deadline: Span::from_ms(100),
        ..wish(&reserved, CPU)
    };
    stage.must_admit(0, &nearly_all)?;
    let ends = Arc::<AtomicBool>::default();
    let (sender, receiver) = mpsc::channel();
    let threads: Vec<JoinHandle<()>> = (0..THREADS)
        .map(|_| {
            let (ends, sender) = (Arc::clone(&ends), sender.clone());
            thread::spawn(move || {
                // The receiver waits for all of them. One that computes would delay the start of others.
                let _ = sender.send(gettid());
                thread::park();
                while !ends.load(Ordering::SeqCst) {
                    compute(Duration::from_micros(100));
                }
            })
        })
        .collect();
    let ids: Vec<Pid> = receiver.iter().take(THREADS).collect();
    for &id in &ids {
        let bound = stage.standing.bind(id, &CpuSet::from_bits(CPU));
        bound.map_err(|error| error.to_string())?;
    }
    let time = |of: u32| processor_time(of).ok_or("a thread is gone");
    let times = || {
        let numbers = ids
            .iter()
            .map(|id| id.as_raw_nonzero().get().unsigned_abs());
        numbers.map(time).collect::<Result<Vec<_>, _>>()
    };
    let own = time(reserved.number())?;
    // Of each thread: what it had used when that was last seen to grow, and when that was.
    let mut seen: Vec<(Duration, u64)> = times()?.into_iter().map(|used| (used, 0)).collect();
    let mut longest = 0;
    for thread in &threads {
        thread.thread().unpark();
    }
    for second in 1..=seconds {
        thread::sleep(Duration::from_secs(1));
        // So that no event is lost.
        stage.take()?;
        for (seen, used) in seen.iter_mut().zip(times()?) {
            longest = longest.max(second - seen.1);
            if used > seen.0 {
                *seen = (used, second);
            }
        }
    }
    let used = time(reserved.number())? - own;
    let share = used.as_secs_f64() / Duration::from_secs(seconds).as_secs_f64();
    let never = seen.iter().filter(|seen| seen.1 == 0).count();
    println!(
        "beside {share:.3} of the CPU each of {THREADS} waited for {longest} s at most, and {never} never ran"
    );
    // Otherwise their ends would take minutes.
    stage.dismiss(0)?;
    ends.store(true, Ordering::SeqCst);
    drop(reserved);
    for thread in threads {
        thread.join().map_err(|_| "a thread panicked")?;
    }
    match never > 0 || longest > LONGEST_S || share < 0.93 {
        true => Err(format!("allowed are {LONGEST_S} s")),
        false => stage.end(),
    }
}
