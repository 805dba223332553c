//! Storms of CPU hotplug: all CPUs of the platform go and come back, again and again, under threads with reservations
//! and ordinary work. Afterwards every thread runs, every reservation is served, and the kernel has complained of nothing.

use std::fs;
use std::time::Duration;

use shiftwork_model::RandomStream;

use crate::faults::{Actor, goes_on, wait_for};
use crate::long;
use crate::service::Daemon;
use rustix::fs::OFlags;
use rustix::io::Errno;

/// The daemon's CPUs.
const CPUS: [u64; 3] = [1, 2, 3];
/// Times that each CPU goes in a storm.
const ROUNDS: u32 = 90;

/// What the kernel says of a scheduler or a thread that is in trouble.
const COMPLAINTS: [&str; 6] = [
    "rcu_preempt",
    "soft lockup",
    "hung_task",
    "blocked for more than",
    "runnable task stall",
    "BUG:",
];

/// Twenty storms where there is time for them, otherwise a short one.
pub fn storms_of_hotplug_lose_no_reservation() -> Result<(), String> {
    let (storms, rounds) = if long() {
        (20, ROUNDS)
    } else {
        (1, ROUNDS / 9)
    };
    for seed in 1..=storms {
        storm(seed, rounds).map_err(|why| format!("seed {seed}: {why}"))?;
        println!("storm {seed} of {storms}: {rounds} rounds");
    }
    Ok(())
}

fn storm(seed: u64, rounds: u32) -> Result<(), String> {
    let mut random = RandomStream::new(seed, 0, 0);
    let mut daemon = Daemon::start("record-seconds = 0")?;
    let reserved = [
        ("--cost 2ms --period 10ms --cpus 1", "naps 300 5000"),
        ("--cost 3ms --period 20ms --cpus 1-3", "hog"),
        ("--cost 1ms --period 20ms --cpus 2-3", "beats 300 20000"),
    ];
    let reserved: Vec<u32> = reserved
        .iter()
        .map(|(reservation, part)| daemon.admit(reservation, part))
        .collect::<Result<_, _>>()?;
    let ordinary = ["hog", "hog 1", "naps 200 1000"].map(Actor::start);
    let ordinary: Vec<Actor> = ordinary.into_iter().collect::<Result<_, _>>()?;
    for round in 0..rounds {
        let went = blow(&mut random);
        went.map_err(|why| format!("round {round}: {why}\n{}", daemon.log()))?;
    }
    for id in reserved
        .iter()
        .copied()
        .chain(ordinary.iter().map(Actor::id))
    {
        goes_on(id, 3).map_err(|why| format!("{id}: {why}\n{}", daemon.log()))?;
    }
    wait_for("all reservations to be served", || {
        let tasks = daemon.status().ok()?["tasks"].clone();
        let tasks = tasks.as_array()?;
        let served = |task: &&serde_json::Value| task["state"] == "admitted";
        (tasks.iter().filter(served).count() == reserved.len()).then_some(())
    })
    .map_err(|why| format!("{why}: {:?}\n{}", daemon.status(), daemon.log()))?;
    has_no_complaint()
}

/// All CPUs go, in some order, and come back in another; now and then there is a pause between.
fn blow(random: &mut RandomStream) -> Result<(), String> {
    for online in ["0", "1"] {
        let mut cpus = CPUS;
        for at in (1..cpus.len()).rev() {
            cpus.swap(at, random.below(at as u64 + 1) as usize);
        }
        for cpu in cpus {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/online");
            fs::write(&path, online).map_err(|error| format!("{path}: {error}"))?;
            if random.below(4) == 0 {
                std::thread::sleep(Duration::from_micros(random.below(20_000)));
            }
        }
    }
    Ok(())
}

/// The kernel's log since boot has no complaint.
pub fn has_no_complaint() -> Result<(), String> {
    let log = kernel_log()?;
    let complaints: Vec<&str> = log
        .lines()
        .filter(|line| COMPLAINTS.iter().any(|words| line.contains(words)))
        .collect();
    match complaints.is_empty() {
        true => Ok(()),
        false => Err(format!("the kernel complains:\n{}", complaints.join("\n"))),
    }
}

/// What the kernel has logged, as far as its buffer goes back.
fn kernel_log() -> Result<String, String> {
    use std::io::{ErrorKind, Read as _};
    use std::os::unix::fs::OpenOptionsExt as _;

    let mut log = fs::OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open("/dev/kmsg")
        .map_err(|error| format!("/dev/kmsg: {error}"))?;
    let (mut all, mut record) = (Vec::new(), vec![0; 8 << 10]);
    loop {
        match log.read(&mut record) {
            Ok(0) => break,
            Ok(count) => all.extend_from_slice(&record[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            // Older records were overwritten meanwhile.
            Err(error) if error.raw_os_error() == Some(Errno::PIPE.raw_os_error()) => {}
            Err(error) => return Err(format!("/dev/kmsg: {error}")),
        }
    }
    Ok(String::from_utf8_lossy(&all).into_owned())
}
