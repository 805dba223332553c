//! Ordinary work in control groups, beside a scheduler without tasks: their weights, and their limits.

use std::fs;
use std::time::Duration;

use super::ordinary::hogs;
use super::stage::{Stage, wish};
use super::worker::Worker;
use crate::faults::{goes_on, processor_time};
use crate::kernel::is_realtime;

/// Where the kernel keeps its groups.
const ROOT: &str = "/sys/fs/cgroup";
/// What the kernel says of a group without a limit.
const NO_LIMIT: &str = "max 100000";

/// A group for threads of this process, until this is dropped.
struct Group {
    path: String,
}

impl Group {
    /// A group in this one.
    fn inside(parent: &str, name: &str) -> Result<Self, String> {
        write(parent, "cgroup.subtree_control", "+cpu")?;
        let path = format!("{parent}/{name}");
        fs::create_dir(&path).map_err(|error| format!("{path}: {error}"))?;
        let group = Self { path };
        group.set("cgroup.type", "threaded")?;
        Ok(group)
    }

    fn set(&self, key: &str, value: &str) -> Result<(), String> {
        write(&self.path, key, value)
    }

    fn take(&self, workers: &[Worker]) -> Result<(), String> {
        for worker in workers {
            self.set("cgroup.threads", &worker.number().to_string())?;
        }
        Ok(())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The threads in it have ended, or the test has failed.
        let _ = fs::remove_dir(&self.path);
    }
}

fn write(group: &str, key: &str, value: &str) -> Result<(), String> {
    let path = format!("{group}/{key}");
    fs::write(&path, value).map_err(|error| format!("{path}: {value}: {error}"))
}

/// How long each of these ran in the same interval, s.
fn ran(workers: &[&[Worker]], interval: Duration) -> Result<Vec<f64>, String> {
    let times = || -> Result<Vec<Duration>, String> {
        let all = workers.iter().copied().flatten();
        all.map(|worker| processor_time(worker.number()).ok_or("a thread is gone".to_owned()))
            .collect()
    };
    let before = times()?;
    std::thread::sleep(interval);
    let after = times()?;
    let ran = |(after, before): (&Duration, &Duration)| (*after - *before).as_secs_f64();
    Ok(after.iter().zip(&before).map(ran).collect())
}

/// Fails unless what ran is as wanted, but for this part.
fn compare(what: &str, found: &[f64], wanted: &[f64], tolerance: f64) -> Result<(), String> {
    println!("{what}: {found:.3?}, wanted {wanted:.3?}");
    let differs = |(found, wanted): (&f64, &f64)| (found / wanted - 1.0).abs() > tolerance;
    match found.len() != wanted.len() || found.iter().zip(wanted).any(differs) {
        true => Err(format!("{what}: {found:.3?}, wanted {wanted:.3?}")),
        false => Ok(()),
    }
}

/// Threads that compute all the time share a CPU as the weights of their groups say, and of the groups in these; how many a
/// group has does not matter, nor where it was when the scheduler came.
pub fn control_groups_share_a_cpu_by_their_weights() -> Result<(), String> {
    const INTERVAL: Duration = Duration::from_secs(2);
    const CPU: u64 = 0b0010;
    let heavy = Group::inside(ROOT, "heavy")?;
    let light = Group::inside(ROOT, "light")?;
    let upper = Group::inside(&light.path, "upper")?;
    let lower = Group::inside(&light.path, "lower")?;
    heavy.set("cpu.weight", "300")?;
    let stage = Stage::load()?;
    let one = hogs(&stage, CPU, &[0])?;
    let [first, second] = [hogs(&stage, CPU, &[0, 0])?, hogs(&stage, CPU, &[0])?];
    heavy.take(&one)?;
    upper.take(&first)?;
    lower.take(&second)?;
    let interval = INTERVAL.as_secs_f64();
    let shares = |parts: &[f64]| -> Vec<f64> { parts.iter().map(|part| part * interval).collect() };
    let found = ran(&[&one, &first, &second], INTERVAL)?;
    let wanted = shares(&[0.75, 0.0625, 0.0625, 0.125]);
    compare("3 to 1, and halves in that", &found, &wanted, 0.15)?;
    // Both while they compute.
    heavy.set("cpu.weight", "100")?;
    upper.set("cpu.weight", "200")?;
    let found = ran(&[&one, &first, &second], INTERVAL)?;
    let wanted = shares(&[0.5, 1.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0]);
    compare("halves, and 2 to 1 in that", &found, &wanted, 0.15)?;
    // What leaves no longer counts.
    drop(second);
    let found = ran(&[&one, &first], INTERVAL)?;
    compare("halves", &found, &shares(&[0.5, 0.25, 0.25]), 0.15)?;
    // One that weighs next to nothing, beside one of the root, is served all the same.
    light.set("cpu.weight", "1")?;
    let found = ran(&[&one, &first], INTERVAL)?;
    println!("1 to 100: {found:.3?}");
    let few = found[1..].iter().sum::<f64>() / interval;
    if !(0.005..0.05).contains(&few) {
        return Err(format!("1 to 100: {few} of the CPU"));
    }
    drop((one, first));
    stage.end()
}

/// Threads of a group run for no longer than it may, on one CPU or two, with another group's limit around it or without; and again as
/// before once there is none.
///
/// The interval is a whole number of each period. At its beginning and at its end, all or nothing of the present period's part may have
/// been used, and a turn on each CPU may have overdrawn it: what is used differs by so much at most.
pub fn limits_of_control_groups_are_kept() -> Result<(), String> {
    const INTERVAL: Duration = Duration::from_secs(2);
    // A slice of 5 ms ends with the kernel's next tick, at 250 Hz.
    const TURN: f64 = 0.008;
    let stage = Stage::load()?;
    let outer = Group::inside(ROOT, "outer")?;
    let inner = Group::inside(&outer.path, "inner")?;
    let interval = INTERVAL.as_secs_f64();
    for (cpus, limited) in [(0b0010_u64, 1), (0b1100, 3)] {
        let free = hogs(&stage, cpus, &[0])?;
        let within = hogs(&stage, cpus, &vec![0; limited])?;
        inner.take(&within)?;
        for (outer_max, inner_max, quota, period) in [
            (NO_LIMIT, "20000 100000", 0.020, 0.1),
            ("3000 20000", NO_LIMIT, 0.003, 0.02),
            ("15000 100000", "6000 20000", 0.015, 0.1),
        ] {
            let what = format!("{outer_max} around {inner_max} on CPUs {cpus:#b}");
            outer.set("cpu.max", outer_max)?;
            inner.set("cpu.max", inner_max)?;
            // What it has run before the limit does not count.
            std::thread::sleep(Duration::from_millis(200));
            let found = ran(&[&free, &within], INTERVAL)?;
            let used: f64 = found[1..].iter().sum();
            let part = quota / period;
            let off = used - part * interval;
            println!("{what}: {used:.3} s, {off:+.3} s from what is wanted");
            if off.abs() > quota + TURN * f64::from(cpus.count_ones()) {
                return Err(format!("{what}: {used} s in {interval} s"));
            }
            // One thread cannot use more than one CPU, and for a while there are more threads than CPUs.
            let rest = (f64::from(cpus.count_ones()) - part).min(1.0) * interval;
            if found[0] < 0.9 * rest {
                return Err(format!(
                    "{what}: the other ran for {:.3} of {rest:.3}",
                    found[0]
                ));
            }
        }
        outer.set("cpu.max", NO_LIMIT)?;
        inner.set("cpu.max", NO_LIMIT)?;
        for worker in &within {
            goes_on(worker.number(), 50)?;
        }
    }
    stage.end()
}

/// Threads whose group may run for next to nothing are not forgotten, however many they are, so that no scheduler is unloaded for
/// them; and one of them that has a reservation gets it.
pub fn threads_of_a_group_at_its_limit_are_served() -> Result<(), String> {
    const THREADS: usize = 40;
    const INTERVAL: Duration = Duration::from_secs(15);
    let mut stage = Stage::load()?;
    let group = Group::inside(ROOT, "crowded")?;
    let hogs = hogs(&stage, 0b1110, &[0; THREADS])?;
    group.set("cpu.max", "1000 1000000")?;
    group.take(&hogs)?;
    std::thread::sleep(Duration::from_millis(100));
    stage.must_admit(0, &wish(&hogs[0], 0b1110))?;
    let found = ran(&[&hogs], INTERVAL)?;
    let [reserved, others @ ..] = &found[..] else {
        return Err("there is none".to_owned());
    };
    let least = others.iter().copied().fold(f64::INFINITY, f64::min);
    let sum: f64 = others.iter().sum();
    println!(
        "in {INTERVAL:?} the one with a tenth ran for {reserved:.3} s, the others for {sum:.3} s, each for {least:.4} s at least"
    );
    // So that they can end at once.
    group.set("cpu.max", NO_LIMIT)?;
    let share = reserved / INTERVAL.as_secs_f64();
    let off = if is_realtime()? { 0.01 } else { 0.005 };
    if least == 0.0 || sum > 2.0 || (share - 0.1).abs() > off {
        return Err(format!("they ran for {found:.4?}"));
    }
    drop(hogs);
    stage.end()
}
