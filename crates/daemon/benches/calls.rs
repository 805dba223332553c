//! What each call of a client costs the daemon at most: 1,023 tasks on 64 CPUs, each user with other CPUs.
//!
//! The machine is a fake that carries out everything at once, so that only the daemon's own work is measured.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark that cannot go on fails"
)]

mod fake_scheduler;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use shiftwork_client::{
    Admit, Answer, Call, Change, Dismiss, Error, Explain, GetStatus, Reservation, answer_bytes,
};
use shiftwork_daemon::config::Config;
use shiftwork_daemon::daemon::{Daemon, Machine};
use shiftwork_daemon::reservation::{Credentials, Denial, Thread};
use shiftwork_daemon::socket::{Peer, Service as _};
use shiftwork_daemon::state::StateFile;
use shiftwork_daemon::threads::{ThreadDirectory, ThreadInfo};
use shiftwork_live::PeerCredentials;
use shiftwork_model::{CpuSet, Instant, RandomStream, Span};

use fake_scheduler::FakeScheduler;

const TASKS: u32 = 1_023;
const CPUS: usize = 64;
/// Each has as many tasks as a user may have.
const USERS: u32 = 16;

/// Threads of all numbers: that with the number `n` belongs to user `1000 + n mod 16`.
struct Threads;

impl ThreadDirectory for Threads {
    fn look_up(&self, number: u32) -> Result<ThreadInfo, Denial> {
        let user = user_of(number);
        Ok(ThreadInfo {
            thread: Thread {
                process: number,
                thread: number,
                started: 1,
            },
            credentials: Credentials {
                user: Some(user),
                group: Some(user),
            },
            account: user,
            name: "thread".to_owned(),
            cgroup: format!("/user.slice/user-{user}.slice/user@{user}.service/app.slice/a.scope"),
            cpus: CpuSet::first(CPUS),
            has_higher_class: false,
        })
    }

    fn credentials(&self, thread: &Thread) -> Option<Credentials> {
        Some(self.look_up(thread.thread).ok()?.credentials)
    }

    fn is_alive(&self, _: &Thread) -> bool {
        true
    }
}

const fn user_of(thread: u32) -> u32 {
    1_000 + thread % USERS
}

/// About 1 in 32 of a CPU each, on CPUs that mostly no other task has.
fn reservation(stream: &mut RandomStream) -> Reservation {
    let cpus = CpuSet::from_bits(stream.bits() | 1 << stream.below(CPUS as u64));
    Reservation {
        cpus: Some(cpus.to_string()),
        ..Reservation::new(
            Span::from_ms(1),
            stream.span(Span::from_ms(20), Span::from_ms(60)),
        )
    }
}

fn call(daemon: &mut Daemon, user: u32, call: Call) -> Result<Answer, Error> {
    let credentials = PeerCredentials {
        process: None,
        user,
        group: user,
    };
    daemon.call(&Peer::new(credentials, None), call)
}

fn admit(thread: u32, reservation: Reservation) -> Call {
    Call::Admit(Admit {
        name: format!("program-{thread}"),
        thread: Some(thread),
        reservation,
    })
}

/// A daemon with all but one of the tasks that it accepts.
fn full(folder: &tempfile::TempDir) -> (Daemon, RandomStream, Instant) {
    let text = "own-share = 0\nrecord-files = 0\n[limits.user]\ntasks = 2000\nshare = 64.0\n\
                [limits.cgroup]\ntasks = 2000\nshare = 64.0";
    let machine = Machine {
        scheduler: Box::new(FakeScheduler::new(CPUS).unwrap()),
        threads: Box::new(Threads),
        online: CpuSet::first(CPUS),
    };
    let state = StateFile::at(folder.path().join("daemon.json")).unwrap();
    let now = Instant::ZERO + Span::from_s(1);
    let started = Daemon::start_on(machine, Config::parse(text).unwrap(), state, now);
    let (mut daemon, _) = started.unwrap();
    let mut stream = RandomStream::new(1, 0, 0);
    for thread in 0..TASKS - 1 {
        let it = reservation(&mut stream);
        call(&mut daemon, user_of(thread), admit(thread, it)).unwrap();
    }
    daemon.poll(now + Span::from_ms(1)).unwrap();
    (daemon, stream, now)
}

fn calls(c: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let (mut daemon, mut stream, mut now) = full(&folder);
    let mut group = c.benchmark_group("calls, 1,022 tasks on 64 CPUs");
    group.sample_size(20);
    for (name, user) in [("GetStatus of a user", 1_000), ("GetStatus of root", 0)] {
        group.bench_function(name, |b| {
            b.iter(|| {
                let answer = call(&mut daemon, user, Call::GetStatus(GetStatus {})).unwrap();
                black_box(answer_bytes(&answer))
            });
        });
    }
    // Every call changes the table, so that nothing that is cached remains valid.
    group.bench_function("Change, then GetStatus", |b| {
        b.iter(|| {
            let change = Change {
                task: stream.below(u64::from(TASKS - 1)) as u32,
                reservation: reservation(&mut stream),
            };
            let _ = black_box(call(&mut daemon, 0, Call::Change(change)));
            black_box(call(&mut daemon, 1_000, Call::GetStatus(GetStatus {}))).unwrap();
            // What a change leaves ends before the next.
            now += Span::from_s(1);
            daemon.poll(now).unwrap();
        });
    });
    group.bench_function("Admit, then Dismiss", |b| {
        b.iter(|| {
            let it = reservation(&mut stream);
            let admitted = call(&mut daemon, 0, admit(TASKS, it));
            if let Ok(Answer::Admit(admitted)) = admitted {
                let task = admitted.task;
                call(&mut daemon, 0, Call::Dismiss(Dismiss { task })).unwrap();
            }
            now += Span::from_s(1);
            daemon.poll(now).unwrap();
        });
    });
    group.bench_function("Admit that is refused", |b| {
        let too_much = Reservation {
            cpus: Some("0".to_owned()),
            ..Reservation::new(Span::from_ms(99), Span::from_ms(100))
        };
        b.iter(|| black_box(call(&mut daemon, 0, admit(TASKS, too_much.clone()))).unwrap_err());
    });
    group.bench_function("Explain", |b| {
        let explain = || Call::Explain(Explain { count: Some(100) });
        b.iter(|| black_box(call(&mut daemon, 1_000, explain())).unwrap());
    });
    group.bench_function("poll without events", |b| {
        b.iter(|| {
            now += Span::from_ms(50);
            black_box(daemon.poll(now).unwrap())
        });
    });
    group.finish();
}

criterion_group!(benches, calls);
criterion_main!(benches);
