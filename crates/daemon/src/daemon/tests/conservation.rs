//! Quotas are conserved: whatever users with control groups and namespaces call, what they are charged with is what they
//! have and what still counts, and never more than their limits.

use std::collections::BTreeMap;

use rustix::io::Errno;
use shiftwork_model::{CpuId, RandomStream, RecordKind};

use super::*;
use crate::files::tests::Fault;
use crate::quotas::share_ppm;

/// A user with three IDs of its namespace, in delegated control groups; two users of one service; and one by itself. The
/// accounts are those of `/etc/subuid`.
const USERS: [(u32, u32, &str); 7] = [
    (
        1_000,
        1_000,
        "/user.slice/user@1000.service/app.slice/a.scope",
    ),
    (100_000, 1_000, "/user.slice/user@1000.service/b/c"),
    (100_001, 1_000, "/user.slice/user@1000.service/b/d"),
    (
        100_002,
        1_000,
        "/user.slice/user-1000.slice/session-1.scope",
    ),
    (1_001, 1_001, "/system.slice/some.service"),
    (1_002, 1_002, "/system.slice/some.service"),
    (1_003, 1_003, "/"),
];

const THREADS: u32 = 42;

const LIMITS: &str = "[limits.user]\ntasks = 8\nshare = 0.8\nended-tasks = 6\nended-share = 0.5\n\
                      [limits.cgroup]\ntasks = 9\nshare = 0.9\nended-tasks = 7\nended-share = 0.6";

struct Random {
    test: TestDaemon,
    random: RandomStream,
    next_thread: u32,
    /// Reservations that were ended: until when their budgets may be in use, by the definition; and their shares.
    ended: Vec<(Instant, u32, u64)>,
    /// The same of reservations that end at the next poll.
    ending: Vec<(Instant, u32, u64)>,
    admitted: u64,
    exhausted: u64,
}

impl Random {
    fn new(seed: u64) -> Self {
        Self {
            test: TestDaemon::start(LIMITS),
            random: RandomStream::new(seed, 0, 0),
            next_thread: 1,
            ended: Vec::new(),
            ending: Vec::new(),
            admitted: 0,
            exhausted: 0,
        }
    }

    fn reservation(&mut self) -> ClientReservation {
        let period = [1_000, 5_000, 20_000, 100_000][self.random.below(4) as usize];
        let cost = 50 + self.random.below(period / 3);
        let bits = 1 + self.random.below(15);
        ClientReservation {
            cpus: Some(CpuSet::from_bits(bits).to_string()),
            ..ClientReservation::new(Span::from_us(cost), Span::from_us(period))
        }
    }

    fn thread(&mut self) -> (u32, u32) {
        let live: Vec<(u32, u32)> = {
            let world = self.test.world.borrow();
            let all = world.threads.values();
            all.filter_map(|it| Some((it.thread.thread, it.credentials.user?)))
                .collect()
        };
        if live.len() < THREADS as usize {
            let number = self.next_thread;
            self.next_thread += 1;
            let (user, account, cgroup) = USERS[self.random.below(USERS.len() as u64) as usize];
            self.test.thread(number, user);
            self.test.alter(number, |it| {
                it.account = account;
                cgroup.clone_into(&mut it.cgroup);
            });
            return (number, user);
        }
        live[self.random.below(live.len() as u64) as usize]
    }

    fn task(&mut self) -> Option<(TaskId, u32)> {
        let all: Vec<(TaskId, u32)> = {
            let tasks = self.test.daemon.table.tasks();
            tasks.map(|(task, it)| (task, it.owner.user)).collect()
        };
        let at = self.random.below(all.len().max(1) as u64) as usize;
        all.get(at).copied()
    }

    /// The task's reservation ends now, by whatever means.
    fn note_end(&mut self, task: TaskId) {
        if let Some(reserved) = self.test.daemon.table.task(task) {
            let it = &reserved.reservation;
            let until = self.test.now + it.period;
            self.ending
                .push((until, reserved.owner.account, share_ppm(it)));
        }
    }

    fn record(&self, kind: RecordKind) {
        let at = self.test.now;
        self.test
            .world
            .borrow_mut()
            .records
            .push(Record { at, kind });
    }

    /// One call or event; says which.
    fn step(&mut self) -> String {
        match self.random.below(20) {
            0..=7 => {
                let ((thread, user), it) = (self.thread(), self.reservation());
                let answer = self.test.admit_with(user, thread, it);
                self.admitted += u64::from(answer.is_ok());
                self.exhausted += u64::from(matches!(answer, Err(Error::Exhausted { .. })));
                format!("admit {thread} of {user}: {answer:?}")
            }
            8..=10 => {
                let (Some((task, user)), it) = (self.task(), self.reservation()) else {
                    return String::new();
                };
                let answer = self.test.change(user, task.index() as u32, it);
                format!("change {task:?}: {answer:?}")
            }
            11..=14 => {
                let Some((task, user)) = self.task() else {
                    return String::new();
                };
                self.note_end(task);
                // The thread may have become root's, which ends the reservation as well.
                let _ = self.test.dismiss(user, task.index() as u32);
                assert!(self.test.daemon.table.task(task).is_none());
                self.ended.append(&mut self.ending);
                format!("dismiss {task:?}")
            }
            15 => {
                let Some((task, _)) = self.task() else {
                    return String::new();
                };
                let is_served = self.test.daemon.table.task(task).unwrap().is_served;
                // Otherwise that is found out later, and it stays charged until then.
                if is_served {
                    self.note_end(task);
                }
                let thread = self.test.daemon.table.task(task).unwrap().thread.thread;
                self.test.end_thread(task, thread);
                format!("thread {thread} of {task:?} ends")
            }
            16 => {
                let Some((task, _)) = self.task() else {
                    return String::new();
                };
                let thread = self.test.daemon.table.task(task).unwrap().thread.thread;
                let cpus = CpuSet::from_bits(1 + self.random.below(15));
                if !self.test.world.borrow().threads.contains_key(&thread) {
                    return String::new();
                }
                self.test.alter(thread, |it| it.cpus = cpus);
                self.test.world.borrow_mut().backend.request_affinity(task);
                let asked = Box::new(cpus);
                self.record(RecordKind::Demoted { task, asked });
                format!("{task:?} asks for {cpus}")
            }
            17 => {
                let (thread, _) = self.thread();
                self.test.alter(thread, |it| it.credentials.user = Some(0));
                format!("thread {thread} becomes root's")
            }
            18 => {
                let cpu = CpuId::from_index(self.random.below(3) as usize);
                let is_online = self.test.daemon.table.online().contains(cpu);
                self.record(match is_online {
                    true => RecordKind::CpuOffline { cpu },
                    false => RecordKind::CpuOnline { cpu },
                });
                format!("CPU {cpu} goes or comes")
            }
            _ => String::new(),
        }
    }

    fn poll(&mut self) {
        let span = Span::from_us(self.random.below(8) * self.random.below(1_000));
        self.test.now += span;
        self.test.poll();
        let now = self.test.now;
        self.ended.append(&mut self.ending);
        self.ended.retain(|(until, ..)| *until > now);
        // Threads of root are no use to the users.
        let mut world = self.test.world.borrow_mut();
        let served: Vec<u32> = {
            let tasks = self.test.daemon.table.tasks();
            tasks.map(|(_, it)| it.thread.thread).collect()
        };
        let is_used = |number: &u32| served.contains(number);
        world
            .threads
            .retain(|number, it| it.credentials.user != Some(0) || is_used(number));
    }

    fn check(&self) -> Result<(), String> {
        let table = &self.test.daemon.table;
        table.check_charges()?;
        // What has just ended counts, whatever the daemon's books say.
        let mut least: BTreeMap<u32, u64> = BTreeMap::new();
        for &(_, account, share) in &self.ended {
            *least.entry(account).or_default() += share;
        }
        for (account, share) in least {
            let charged = table.released_by(account).share_ppm;
            if charged < share {
                return Err(format!(
                    "user {account} is charged {charged}, and ended {share}"
                ));
            }
        }
        Ok(())
    }
}

fn conserve(seed: u64, calls: u64) {
    let mut run = Random::new(seed);
    // Nothing is saved: the test is of charges, and disks are slow.
    run.test.disk.set(Some(Fault::All(Errno::NOSPC)));
    for step in 0..calls {
        let what = run.step();
        // After each call and after each event.
        let checked = run.check().and_then(|()| {
            run.poll();
            run.check()
        });
        if let Err(why) = checked {
            panic!("seed {seed}, step {step}, {what}: {why}");
        }
    }
    assert!(
        run.admitted > calls / 20,
        "{} admitted of {calls}",
        run.admitted
    );
    assert!(
        run.exhausted > calls / 100,
        "{} exhausted of {calls}",
        run.exhausted
    );
    let all: Vec<TaskId> = run
        .test
        .daemon
        .table
        .tasks()
        .map(|(task, _)| task)
        .collect();
    for task in all {
        let _ = run.test.dismiss(0, task.index() as u32);
    }
    // The longest period, three times.
    run.test.advance(310);
    assert!(
        run.test.daemon.table.is_empty(),
        "seed {seed}: something is left"
    );
}

#[test]
fn charges_equal_what_users_have_and_never_exceed_their_limits() {
    let calls = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 1_000_000,
        None => 100_000,
    };
    for seed in 1..=4 {
        conserve(seed, calls / 4);
    }
}
