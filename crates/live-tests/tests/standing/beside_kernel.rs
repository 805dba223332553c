//! Ordinary work with the scheduler loaded, beside the same work under the kernel's own scheduler in the same boot: how long it
//! takes. Instructions are counted, so that nothing depends on the machine below.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet as RawCpuSet, sched_setaffinity, sched_yield};
use shiftwork_model::CpuSet;

use super::stage::{ALL, Stage};
use crate::faults::compute;

/// Some work, and what it may take at most with the scheduler, in percent of what it takes without.
struct Case {
    name: &'static str,
    percent: u64,
    /// Does it, and says how long one operation took, in ns.
    run: fn() -> u64,
}

const CASES: &[Case] = &[
    Case {
        name: "a byte to and fro through pipes, on one CPU",
        percent: 130,
        run: || pipe(0b0010, 0b0010),
    },
    Case {
        name: "a byte to and fro through pipes, on two CPUs",
        percent: 155,
        run: || pipe(0b0010, 0b0100),
    },
    Case {
        name: "a byte to and fro through pipes, on any of three CPUs",
        percent: 155,
        run: || pipe(ALL, ALL),
    },
    Case {
        name: "sched_yield of two threads, on one CPU",
        percent: 185,
        run: yields,
    },
    Case {
        name: "a message among 20 senders and receivers, as hackbench",
        percent: 115,
        run: messages,
    },
    Case {
        name: "a thread that begins and ends",
        percent: 105,
        run: threads,
    },
    Case {
        name: "a process that begins and ends, three at a time, as make",
        percent: 105,
        run: processes,
    },
    Case {
        name: "a millisecond of computing, six threads on three CPUs",
        percent: 105,
        run: computing,
    },
];

/// Each kind of work takes about as long as without the scheduler.
pub fn ordinary_work_is_nearly_as_quick_as_without() -> Result<(), String> {
    on(ALL);
    let measure = || CASES.iter().map(|case| (case.run)()).collect::<Vec<_>>();
    let without = measure();
    let stage = Stage::load()?;
    let with = measure();
    stage.end()?;
    let mut slow = Vec::new();
    for (case, (with, without)) in CASES.iter().zip(with.iter().zip(&without)) {
        let percent = with * 100 / without.max(&1);
        println!(
            "{}: {with} ns, without {without} ns: {percent}%, wanted {}%",
            case.name, case.percent
        );
        if percent > case.percent {
            slow.push(case.name);
        }
    }
    match slow.is_empty() {
        true => Ok(()),
        false => Err(format!("slower than allowed: {slow:?}")),
    }
}

/// Binds the calling thread, and with it those that it starts from now on.
fn on(cpus: u64) {
    let mut raw = RawCpuSet::new();
    for cpu in CpuSet::from_bits(cpus).iter() {
        raw.set(cpu.index());
    }
    sched_setaffinity(None, &raw).unwrap();
}

/// Starts a thread that may use these CPUs.
fn start(cpus: u64, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    thread::spawn(move || {
        on(cpus);
        work();
    })
}

/// Nanoseconds for each of `count` operations that `work` does.
#[allow(clippy::disallowed_methods, reason = "this is what is measured")]
fn each(count: u64, work: impl FnOnce()) -> u64 {
    let begin = Instant::now();
    work();
    u64::try_from(begin.elapsed().as_nanos()).unwrap() / count
}

fn pipe(one: u64, other: u64) -> u64 {
    const TURNS: u64 = 2_000;
    let (mut ask, mut asked) = std::io::pipe().map(|(read, write)| (write, read)).unwrap();
    let (mut answered, mut answer) = std::io::pipe().unwrap();
    let echo = start(other, move || {
        let mut byte = [0];
        while asked.read_exact(&mut byte).is_ok() {
            answer.write_all(&byte).unwrap();
        }
    });
    let (sender, receiver) = std::sync::mpsc::channel();
    let asks = start(one, move || {
        let mut byte = [0];
        let mut turns = |count| {
            for _ in 0..count {
                ask.write_all(&byte).unwrap();
                answered.read_exact(&mut byte).unwrap();
            }
        };
        turns(100);
        sender.send(each(TURNS, || turns(TURNS))).unwrap();
    });
    asks.join().unwrap();
    echo.join().unwrap();
    receiver.recv().unwrap()
}

fn yields() -> u64 {
    const YIELDS: u64 = 4_000;
    each(2 * YIELDS, || {
        let work = || (0..YIELDS).for_each(|_| sched_yield());
        let both = [start(0b0010, work), start(0b0010, work)];
        both.into_iter().for_each(|thread| thread.join().unwrap());
    })
}

/// Two groups, in each of which five senders send 100 bytes to each of five receivers, again and again.
fn messages() -> u64 {
    const ROUNDS: u64 = 100;
    const HALF: u64 = 5;
    const GROUPS: u64 = 2;
    each(GROUPS * HALF * HALF * ROUNDS, || {
        let mut all = Vec::new();
        for _ in 0..GROUPS {
            let pairs: Vec<_> = (0..HALF).map(|_| UnixStream::pair().unwrap()).collect();
            let ends: Vec<UnixStream> = pairs
                .iter()
                .map(|(end, _)| end.try_clone().unwrap())
                .collect();
            for (_, mut receiver) in pairs {
                all.push(start(ALL, move || {
                    let mut message = [0; 100];
                    for _ in 0..HALF * ROUNDS {
                        receiver.read_exact(&mut message).unwrap();
                    }
                }));
            }
            for _ in 0..HALF {
                let mut ends: Vec<_> = ends.iter().map(|end| end.try_clone().unwrap()).collect();
                all.push(start(ALL, move || {
                    for _ in 0..ROUNDS {
                        for end in &mut ends {
                            end.write_all(&[0; 100]).unwrap();
                        }
                    }
                }));
            }
        }
        all.into_iter().for_each(|thread| thread.join().unwrap());
    })
}

fn threads() -> u64 {
    const COUNT: u64 = 300;
    each(COUNT, || {
        (0..COUNT).for_each(|_| thread::spawn(|| ()).join().unwrap());
    })
}

fn processes() -> u64 {
    const COUNT: u64 = 5;
    let own = std::env::current_exe().unwrap();
    each(3 * COUNT, || {
        let make = |own: std::path::PathBuf| {
            move || {
                for _ in 0..COUNT {
                    let mut child = Command::new(&own);
                    child.args(["--act", "quits", "1000"]).stdin(Stdio::null());
                    child.status().unwrap();
                }
            }
        };
        let all: Vec<_> = (0..3).map(|_| start(ALL, make(own.clone()))).collect();
        all.into_iter().for_each(|thread| thread.join().unwrap());
    })
}

fn computing() -> u64 {
    const COUNT: u64 = 60;
    each(6 * COUNT, || {
        let work = || compute(Duration::from_millis(COUNT));
        let all: Vec<_> = (0..6).map(|_| start(ALL, work)).collect();
        all.into_iter().for_each(|thread| thread.join().unwrap());
    })
}
