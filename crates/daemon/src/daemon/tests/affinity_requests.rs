//! Affinities that threads request from the kernel: how often the daemon decides on them.

use super::*;

const ANNA: u32 = 1_000;
const BERT: u32 = 1_001;

impl TestDaemon {
    /// The task's thread, of this number, requests these CPUs from the kernel.
    fn request(&mut self, task: u32, thread: u32, cpus: &str) {
        let cpus: CpuSet = cpus.parse().unwrap();
        let task = TaskId::from_index(task as usize);
        self.alter(thread, |it| it.cpus = cpus);
        let mut world = self.world.borrow_mut();
        world.backend.request_affinity(task);
        let asked = Box::new(cpus);
        let kind = RecordKind::Demoted { task, asked };
        world.records.push(Record { at: self.now, kind });
    }

    fn poll_after(&mut self, ms: u64) {
        self.now += Span::from_ms(ms);
        self.poll();
    }
}

fn with_tasks() -> (TestDaemon, [u32; 3]) {
    let mut test = TestDaemon::start("");
    let of = [(7, ANNA), (8, ANNA), (9, BERT)];
    let tasks = of.map(|(thread, user)| {
        test.thread(thread, user);
        test.admit(user, thread).unwrap()
    });
    test.advance(10);
    (test, tasks)
}

#[test]
fn several_requests_of_a_task_are_one() {
    let (mut test, [task, other, _]) = with_tasks();
    for cpus in ["2", "3", "1", "0"].iter().cycle().take(100) {
        test.request(task, 7, cpus);
    }
    test.request(other, 8, "3");
    test.poll_after(1);
    assert!(test.is_served(task) && test.is_served(other));
    let cpus = |test: &mut TestDaemon| {
        let status = test.status(0);
        let cpus = status.tasks.iter().map(|it| it.reservation.cpus.clone());
        cpus.map(Option::unwrap).collect::<Vec<String>>()
    };
    assert_eq!(cpus(&mut test), ["0", "3", "1"]);
}

#[test]
fn each_account_has_a_rate_of_requests() {
    let (mut test, [busy, calm, other]) = with_tasks();
    let mut handled = 0;
    let mut go_on = |test: &mut TestDaemon, ms: usize| {
        for _ in 0..ms {
            if test.is_served(busy) {
                handled += 1;
                test.request(busy, 7, ["2", "3"][handled % 2]);
            }
            test.poll_after(1);
        }
        handled
    };
    // As many at once as the account has tasks, and then four in a second.
    let handled = go_on(&mut test, 2_000);
    assert!((9..=11).contains(&handled), "{handled} requests in 2 s");
    // The first request of another account does not wait for them, and that of another task of the same account for one.
    test.request(calm, 8, "3");
    test.request(other, 9, "3");
    go_on(&mut test, 1);
    assert!(test.is_served(other));
    go_on(&mut test, 500);
    assert!(test.is_served(calm));
    test.advance(250);
    assert!(test.is_served(busy));
}

#[test]
fn change_of_a_task_settles_its_request_first() {
    let (mut test, [task, ..]) = with_tasks();
    for cpus in ["2", "3", "2"] {
        test.request(task, 7, cpus);
        test.poll_after(1);
    }
    assert!(!test.is_served(task));
    test.change(ANNA, task, reservation(1, 10)).unwrap();
    assert!(test.is_served(task));
    test.advance(1_000);
    let status = test.status(0);
    assert_eq!(status.tasks[0].reservation.cost, Span::from_ms(1));
    assert!(test.is_served(task));
}

#[test]
fn request_of_an_earlier_thread_with_the_number_is_dropped() {
    let (mut test, [first, second, _]) = with_tasks();
    for cpus in ["2", "3", "2"] {
        test.request(first, 7, cpus);
        test.poll_after(1);
    }
    assert!(!test.is_served(first));
    test.dismiss(ANNA, first).unwrap();
    test.thread(10, ANNA);
    let next = test.admit(ANNA, 10).unwrap();
    test.advance(1_000);
    assert!(test.is_served(next) && test.is_served(second));
    let status = test.status(0);
    let of_next = status.tasks.iter().find(|it| it.task == next).unwrap();
    assert_eq!(of_next.reservation.cpus.as_deref(), Some("1"));
}

#[test]
fn few_requests_are_handled_before_calls_are() {
    let mut test = TestDaemon::start("");
    let tasks: Vec<(u32, u32)> = (0..10)
        .map(|index| {
            let (thread, user) = (20 + index, 1_100 + index);
            test.thread(thread, user);
            (
                test.admit_with(user, thread, reservation(2, 100)).unwrap(),
                thread,
            )
        })
        .collect();
    for (task, thread) in &tasks {
        test.request(*task, *thread, "3");
    }
    let served = |test: &TestDaemon| {
        let is_served = |(task, _): &&(u32, u32)| test.is_served(*task);
        tasks.iter().filter(is_served).count()
    };
    let mut progress = vec![served(&test)];
    while test.daemon.has_more_work() {
        test.poll();
        progress.push(served(&test));
        if progress.len() == 3 {
            // A change of a task settles its request.
            for (task, thread) in &tasks[8..] {
                let change = reservation(1, 100);
                test.change(thread + 1_080, *task, change).unwrap();
            }
        }
        assert!(progress.len() < 10, "work without end: {progress:?}");
    }
    assert_eq!(progress, [0, 4, 8, 10]);
}
