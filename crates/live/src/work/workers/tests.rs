use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use shiftwork_model::{
    Action, Affinity, Change, CpuId, Phase, ResourceId, Share, Span, TaskSet, Work,
};
use shiftwork_policy::registry::traits::STRONG;

use super::*;
use crate::sys::clock::thread_cpu_ns;
use crate::sys::thread::{affinity, own_id};
use crate::sys::word::Word;
use crate::work::Effects;

const MS: fn(u64) -> Span = Span::from_ms;

/// A call of the barrier: the task, the next release (`None`: no more jobs) and the CPU time of the thread.
type BarrierCall = (TaskId, Option<u64>, u64);

/// Lets a job run at its release, and logs the calls.
struct TimedBarrier {
    calls: Mutex<Vec<BarrierCall>>,
}

impl TimedBarrier {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            calls: Mutex::new(Vec::new()),
        })
    }

    fn log(&self, task: TaskId, release_ns: Option<u64>) {
        let calls = (task, release_ns, thread_cpu_ns());
        self.calls.lock().unwrap().push(calls);
    }

    fn calls_of(&self, task: usize) -> Vec<(Option<u64>, u64)> {
        let calls = self.calls.lock().unwrap();
        let own = calls.iter().filter(|(id, ..)| id.index() == task);
        own.map(|&(_, release, cpu)| (release, cpu)).collect()
    }
}

impl JobBarrier for TimedBarrier {
    fn next_job(&self, task: TaskId, release_ns: u64, _: Effects<'_>) {
        self.log(task, Some(release_ns));
        sleep_until(release_ns).unwrap();
    }

    fn last_job(&self, task: TaskId, _: Effects<'_>) {
        self.log(task, None);
    }

    fn affect(&self, _: TaskId, _: Effects<'_>) {}

    fn lock(&self, _: TaskId, _: ResourceId) {}
}

/// A CPU that this test may use; CPU 0 of every file.
fn some_cpu() -> CpuId {
    affinity(None).unwrap().lowest().unwrap()
}

fn task(name: &str, cost: Span, period: Span) -> Task {
    Task::periodic(name, cost, period, Affinity::pinned(CpuId::from_index(0)))
}

fn program(name: &str, command: &[&str]) -> Task {
    let mut task = task(name, MS(1), MS(10));
    task.command = command.iter().map(|word| (*word).to_owned()).collect();
    task
}

fn spawn(set: &TaskSet, horizon: Span, barrier: Arc<dyn JobBarrier>) -> Result<Workers, LiveError> {
    let plan = Plan {
        set,
        traits: STRONG,
        bound: set.tasks.iter().map(|task| task.affinity).collect(),
        cpus: vec![some_cpu()],
    };
    let options = Options {
        horizon,
        seed: 1,
        reserve: Share::DEFAULT_RESERVE,
        trace_bytes: Options::TRACE_BYTES,
        pin: None,
    };
    Workers::spawn(&plan, &options, &barrier)
}

/// Waits until all workers have ended.
fn all_ended(workers: &mut Workers) -> Vec<(TaskId, Ending)> {
    let mut ended = Vec::new();
    while !workers.is_empty() {
        ended.extend(workers.ended());
        sleep_until(monotonic_ns() + POLL_NS).unwrap();
    }
    ended
}

fn scratch(name: &str) -> PathBuf {
    let path =
        std::env::temp_dir().join(format!("shiftwork-workers-{name}-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

#[test]
fn threads_do_every_job_for_its_execution_time() {
    let mut varied = task("varied", MS(1), MS(5));
    let runs = [300, 900, 10, 500].map(Span::from_us);
    varied.work = Work::Trace(runs.to_vec());
    let set = TaskSet::new(
        "s",
        1,
        vec![task("plain", Span::from_us(200), MS(4)), varied],
    );
    let barrier = TimedBarrier::new();
    let mut workers = spawn(&set, MS(20), barrier.clone()).unwrap();
    let origin_ns = monotonic_ns();
    workers.start(origin_ns);
    for (_, ending) in all_ended(&mut workers) {
        assert!(matches!(ending, Ending::Done), "{ending:?}");
    }
    for (index, period_ns, jobs) in [(0, 4_000_000, 5), (1, 5_000_000, 4)] {
        let calls = barrier.calls_of(index);
        let releases: Vec<_> = calls.iter().map(|&(release, _)| release).collect();
        let mut expected: Vec<_> = (1..jobs)
            .map(|job| Some(origin_ns + job * period_ns))
            .collect();
        expected.push(None);
        assert_eq!(releases, expected, "task {index}");
    }
    // The CPU time between two calls of the barrier is that of the whole job, with the calls themselves.
    let times: Vec<u64> = barrier.calls_of(1).iter().map(|&(_, cpu)| cpu).collect();
    for (job, (pair, run)) in times.windows(2).zip(&runs[1..]).enumerate() {
        let measured_ns = pair[1] - pair[0];
        // The barrier reads the clock a little later than the job, by a different amount each time.
        assert!(
            measured_ns + 50_000 >= run.as_ns(),
            "job {}: {measured_ns} ns",
            job + 2
        );
    }
    let whole: u64 = runs.iter().map(|run| run.as_ns()).sum();
    assert!(times[3] >= whole, "{times:?}");
}

#[test]
fn threads_have_the_name_and_the_cpus_of_their_task() {
    let set = TaskSet::new("s", 1, vec![task("motor\0-control-loop", MS(1), MS(10))]);
    let workers = spawn(&set, MS(10), TimedBarrier::new()).unwrap();
    let [worker] = workers.as_slice() else {
        panic!("one task, one worker: {:?}", workers.as_slice());
    };
    assert_ne!(worker.thread, own_id());
    assert!(!worker.is_program);
    let number = worker.thread.as_raw_nonzero();
    let name = fs::read_to_string(format!("/proc/self/task/{number}/comm")).unwrap();
    assert_eq!(name.trim(), "motor-control-l");
    let cpus = affinity(Some(worker.thread)).unwrap();
    assert_eq!(cpus, CpuSet::single(some_cpu()));
}

#[test]
fn task_without_releases_has_no_worker() {
    let mut late = task("late", MS(1), MS(10));
    late.offset = MS(50);
    let set = TaskSet::new("s", 1, vec![late, task("on-time", MS(1), MS(10))]);
    let workers = spawn(&set, MS(50), TimedBarrier::new()).unwrap();
    let tasks: Vec<usize> = workers
        .as_slice()
        .iter()
        .map(|worker| worker.task.index())
        .collect();
    assert_eq!(tasks, [1]);
}

#[test]
fn job_is_dropped_when_its_task_leaves() {
    let id = TaskId::from_index(0);
    let mut set = TaskSet::new("s", 1, vec![task("t", Span::from_s(100), MS(2))]);
    let action = |at, change| Action {
        at: Instant::ZERO + MS(at),
        change,
    };
    let cheap = Change::SetAttributes {
        task: id,
        cost: Some(Span::from_us(1)),
        period: Some(Span::from_s(1)),
        deadline: None,
    };
    set.actions = vec![
        action(5, Change::Leave(id)),
        action(8, cheap),
        action(9, Change::Enter(id)),
    ];
    let barrier = TimedBarrier::new();
    let mut workers = spawn(&set, MS(20), barrier.clone()).unwrap();
    let origin_ns = monotonic_ns();
    workers.start(origin_ns);
    all_ended(&mut workers);
    let releases: Vec<_> = barrier
        .calls_of(0)
        .iter()
        .map(|&(release, _)| release)
        .collect();
    assert_eq!(releases, [Some(origin_ns + 9_000_000), None]);
}

#[test]
fn stop_ends_all_workers_in_any_state() {
    let mut asleep = task("asleep", MS(1), MS(10));
    asleep.work = Work::Phases(vec![
        Phase::Run(Span::from_us(1)),
        Phase::Sleep(Span::from_s(1_000)),
        Phase::Run(Span::from_us(1)),
    ]);
    let set = TaskSet::new(
        "s",
        1,
        vec![
            task("busy", Span::from_s(1_000), Span::from_s(2_000)),
            asleep,
            program("kind", &["sleep", "1000"]),
            program("held", &["sleep", "1000"]),
            program(
                "rude",
                &["sh", "-c", "trap '' TERM; while :; do sleep 1; done"],
            ),
        ],
    );
    for started in [true, false] {
        let mut workers = spawn(&set, MS(10), TimedBarrier::new()).unwrap();
        assert_eq!(workers.as_slice().len(), 5);
        if started {
            workers.start(monotonic_ns());
        }
        assert_eq!(workers.stop(), [], "started: {started}");
        assert!(workers.is_empty());
    }
}

/// Lets no thread continue before it is opened.
struct ClosedBarrier {
    state: Word,
    entered: AtomicBool,
}

impl JobBarrier for ClosedBarrier {
    fn next_job(&self, _: TaskId, _: u64, _: Effects<'_>) {
        self.entered.store(true, Ordering::Release);
        self.state.wait_while(0);
    }

    fn last_job(&self, _: TaskId, _: Effects<'_>) {}

    fn affect(&self, _: TaskId, _: Effects<'_>) {}

    fn lock(&self, _: TaskId, _: ResourceId) {}
}

#[test]
fn thread_that_cannot_be_stopped_is_named_and_left() {
    let set = TaskSet::new("s", 1, vec![task("t", Span::from_us(1), MS(1))]);
    let barrier = Arc::new(ClosedBarrier {
        state: Word::new(0),
        entered: AtomicBool::new(false),
    });
    let mut workers = spawn(&set, MS(10), barrier.clone()).unwrap();
    workers.start(monotonic_ns());
    while !barrier.entered.load(Ordering::Acquire) {
        sleep_until(monotonic_ns() + POLL_NS).unwrap();
    }
    assert_eq!(workers.stop(), [TaskId::from_index(0)]);
    barrier.state.set(1);
}

#[test]
fn programs_start_at_first_release_and_report_their_end() {
    let file = scratch("begun");
    let path = file.to_str().unwrap();
    let mut late = program("late", &["touch", path]);
    late.offset = MS(20);
    let set = TaskSet::new("s", 1, vec![late, program("no", &["sh", "-c", "exit 3"])]);
    let mut workers = spawn(&set, MS(100), TimedBarrier::new()).unwrap();
    assert!(workers.as_slice().iter().all(|worker| worker.is_program));
    assert!(!file.exists());
    let origin_ns = monotonic_ns();
    workers.start(origin_ns);
    while !file.exists() {
        sleep_until(monotonic_ns() + POLL_NS).unwrap();
    }
    assert!(monotonic_ns() >= origin_ns + 20_000_000);
    let mut codes: Vec<_> = all_ended(&mut workers)
        .into_iter()
        .map(|(id, ending)| match ending {
            Ending::Exited(status) => (id.index(), status.code()),
            other => panic!("{id:?}: {other:?}"),
        })
        .collect();
    codes.sort_unstable();
    assert_eq!(codes, [(0, Some(0)), (1, Some(3))]);
    fs::remove_file(file).unwrap();
}

#[test]
fn missing_program_is_found_before_the_run() {
    let file = scratch("plain");
    fs::write(&file, "no program").unwrap();
    let path = file.to_str().unwrap();
    for (word, expected) in [
        (
            "no-such-program",
            "could not start `no-such-program` of task t: entity not found".to_owned(),
        ),
        (
            path,
            format!("could not start `{path}` of task t: permission denied"),
        ),
    ] {
        let set = TaskSet::new("s", 1, vec![program("t", &[word])]);
        let error = spawn(&set, MS(10), TimedBarrier::new()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    fs::remove_file(file).unwrap();
}

#[test]
fn program_that_cannot_be_executed_is_reported_at_its_start() {
    use std::os::unix::fs::PermissionsExt as _;
    let file = scratch("unreadable");
    fs::write(&file, "#!/nonexistent/interpreter\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let set = TaskSet::new("s", 1, vec![program("t", &[file.to_str().unwrap()])]);
    let mut workers = spawn(&set, MS(10), TimedBarrier::new()).unwrap();
    workers.start(monotonic_ns());
    let ended = all_ended(&mut workers);
    assert!(
        matches!(&ended[..], [(_, Ending::NotStarted(_))]),
        "{ended:?}"
    );
    fs::remove_file(file).unwrap();
}
