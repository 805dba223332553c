//! The configuration of the daemon. Every key may be left out.

use std::path::PathBuf;

use shiftwork_model::{CPUS_MAX, CpuSet, OnOverrun, Platform, Share, Span};

use crate::cpus::Names;
use crate::error::TasksetError;
use crate::file::task::OVERRUNS;
use crate::keys::{Environment, Key, Takes, may, words};
use crate::kind::Kind;
use crate::tree::{Source, Table, Value};

/// What the configuration says; `None` where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DaemonFile {
    /// The CPUs of the machine to schedule.
    pub cpus: Option<CpuSet>,
    /// The name of the policy.
    pub policy: Option<String>,
    /// The share of each CPU that is kept for everything that is not real-time; below one.
    pub reserve: Option<Share>,
    /// What every reservation guarantees: one of [`GUARANTEES`].
    pub guarantee: Option<&'static str>,
    /// The share of a CPU that the daemon reserves for itself; zero: none.
    pub own_share: Option<Share>,
    /// The group whose members may reserve.
    pub group: Option<String>,
    /// How far back events are kept, in seconds.
    pub record_seconds: Option<u32>,
    /// The folder of the records of misses.
    pub record_folder: Option<PathBuf>,
    /// How many of these are kept.
    pub record_files: Option<u32>,
    /// The least time between two of them, in seconds.
    pub record_gap_seconds: Option<u32>,
    /// The file for metrics.
    pub metrics: Option<PathBuf>,
    /// What each user may have.
    pub user: Limit,
    /// What each control group may have.
    pub cgroup: Limit,
    /// What users may request.
    pub requests: Requests,
    /// What some users may request instead, by name or number.
    pub users: Vec<(String, Requests)>,
}

/// What users other than root may request; `None` where the file says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// The longest period.
    pub period_max: Option<Span>,
    /// The smallest cost.
    pub cost_min: Option<Span>,
    /// The CPUs.
    pub cpus: Option<CpuSet>,
    /// The reactions to an exhausted budget; not empty.
    pub on_overrun: Option<Vec<OnOverrun>>,
}

/// What a user or control group may have; `None` where the file says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// How many tasks.
    pub tasks: Option<u32>,
    /// How much of the CPUs, in millionths of one.
    pub share_ppm: Option<u64>,
    /// How many tasks, beside these, that have ended and still count.
    pub ended_tasks: Option<u32>,
    /// How much of the CPUs that reservations which ended or changed still use, in millionths of one.
    pub ended_share_ppm: Option<u64>,
    /// How many calls in a second.
    pub calls: Option<u32>,
}

/// The shortest period; also the default minimum of SCHED_DEADLINE (`kernel.sched_deadline_period_min_us`).
pub const PERIOD_MIN: Span = Span::from_us(100);

/// The longest period: a task that waits longer for its budget would trigger the sched_ext watchdog; with a margin.
pub const PERIOD_MAX: Span = Span::from_s(10);

/// The smallest cost: below that of a context switch a budget is of no use.
pub const COST_MIN: Span = Span::from_us(10);

/// What reservations can guarantee.
pub const GUARANTEES: [&str; 4] = ["hard", "bounded-tardiness", "share", "none"];

/// The most seconds that are kept in memory.
const RECORD_SECONDS_MAX: u32 = 600;
/// More files would take several GB.
const RECORD_FILES_MAX: u32 = 1_000;
/// More calls in a second than the daemon answers.
const CALLS_MAX: u32 = 100_000;
/// More CPUs than there are.
const SHARE_MAX: u32 = CPUS_MAX as u32;
/// Less is not enough for a call.
const OWN_SHARE_MIN: u32 = Share::WHOLE / 200;
const OWN_SHARE_MAX: u32 = Share::WHOLE / 2;

/// The keys of the configuration.
pub(crate) static KEYS: [Key; 13] = [
    may(
        "cpus",
        Takes::Cpus,
        "The CPUs that can be reserved; default all that are online.",
    ),
    may(
        "policy",
        Takes::Name,
        "strong-edf, strong-fp, hpa-edf or hpa-fp; default strong-edf.",
    ),
    may(
        "reserve",
        Takes::Number(0.0, 1.0),
        "Share of each CPU that is kept for everything that is not real-time; default 0.05.",
    ),
    may(
        "guarantee",
        Takes::Words(|| GUARANTEES.to_vec()),
        "What every reservation guarantees; default `bounded-tardiness` under EDF, `hard` otherwise.",
    ),
    may(
        "own-share",
        Takes::Number(0.0, 0.5),
        "Share of a CPU that the daemon reserves for itself; 0: none; default 0.05.",
    ),
    may(
        "group",
        Takes::Text,
        "The group whose members may reserve; default only root may.",
    ),
    may(
        "record-seconds",
        Takes::Whole(0, RECORD_SECONDS_MAX),
        "How many seconds of events are kept in memory; default 10.",
    ),
    may(
        "record-folder",
        Takes::Text,
        "The folder of the records of missed deadlines.",
    ),
    may(
        "record-files",
        Takes::Whole(0, RECORD_FILES_MAX),
        "How many records of missed deadlines are kept; default 20.",
    ),
    may(
        "record-gap-seconds",
        Takes::Whole(0, u32::MAX),
        "The least number of seconds between two of them; default 60.",
    ),
    may(
        "metrics",
        Takes::Text,
        "A file of metrics for Prometheus' node exporter; default none.",
    ),
    may(
        "limits",
        Takes::Table(&LIMITS_KEYS),
        "What users and control groups may have.",
    ),
    may(
        "requests",
        Takes::Table(&REQUESTS_KEYS),
        "What users other than root may request.",
    ),
];

static REQUESTS_KEYS: [Key; 5] = [
    REQUEST_KEYS[0],
    REQUEST_KEYS[1],
    REQUEST_KEYS[2],
    REQUEST_KEYS[3],
    may(
        "users",
        Takes::Named(&Takes::Table(&REQUEST_KEYS)),
        "What these users may request instead, by name or number.",
    ),
];

const REQUEST_KEYS: [Key; 4] = [
    may(
        "period-max",
        Takes::Duration,
        "The longest period, from 100us to 10s; default 100ms.",
    ),
    may(
        "cost-min",
        Takes::Duration,
        "The smallest cost, from 10us to 10s; default 50us.",
    ),
    may(
        "cpus",
        Takes::Cpus,
        "The CPUs; default all that can be reserved.",
    ),
    may(
        "on-overrun",
        Takes::List(&Takes::Words(|| words(&OVERRUNS)), 1),
        "What may happen when a budget is exhausted; default `throttle` and `continue`.",
    ),
];

static LIMITS_KEYS: [Key; 2] = [
    may(
        "user",
        Takes::Table(&LIMIT_KEYS),
        "What each user may have.",
    ),
    may(
        "cgroup",
        Takes::Table(&LIMIT_KEYS),
        "What each control group may have.",
    ),
];

static LIMIT_KEYS: [Key; 5] = [
    may(
        "tasks",
        Takes::Whole(0, u32::MAX),
        "How many tasks; default 64.",
    ),
    may(
        "share",
        Takes::Number(0.0, SHARE_MAX as f64),
        "How many CPUs in sum; default 1.0.",
    ),
    may(
        "ended-tasks",
        Takes::Whole(0, u32::MAX),
        "How many tasks beside these that have ended within two of their periods; default as many.",
    ),
    may(
        "ended-share",
        Takes::Number(0.0, SHARE_MAX as f64),
        "How many CPUs in sum that reservations still use which have ended or changed; default as many as `share`.",
    ),
    may(
        "calls",
        Takes::Whole(1, CALLS_MAX),
        "How many calls in a second; default 1000 for a user, 500 for a control group.",
    ),
];

/// Reads a configuration, with a policy that `environment` knows.
///
/// # Errors
/// Everything that is wrong, each mistake with its place and with what would be accepted.
pub fn read_in(text: &str, environment: &Environment<'_>) -> Result<DaemonFile, TasksetError> {
    let source = Source::parse(text)?;
    source.finish(read_file(&source, environment))
}

fn read_file<'t>(
    source: &'t Source<'t>,
    environment: &Environment<'_>,
) -> Result<DaemonFile, TasksetError> {
    let file = source.root(Kind::Daemon, &KEYS)?;
    let machine = Names::new(Ok(Platform::uniform(CPUS_MAX)));
    let cpus = file.map("cpus", |value| machine.set(value));
    let policy = file.map("policy", |value| {
        value.policy("the name of a policy, like \"strong-edf\"", environment)
    });
    let reserve = file.map("reserve", read_reserve);
    let guarantee = file.map("guarantee", |value| {
        value.word(&GUARANTEES.map(|name| (name, name)))
    });
    let own_share = file.map("own-share", read_own_share);
    let text = |key, accepted: &'static str| {
        let read = file.map(key, |value| value.name(accepted))?;
        Ok(read.map(str::to_owned))
    };
    let whole = |key, most| file.map(key, |value| value.integer(0, most));
    let (group, folder) = (
        text("group", "the name of a group"),
        text("record-folder", "a path"),
    );
    let metrics = text("metrics", "the path of a file");
    let seconds = whole("record-seconds", RECORD_SECONDS_MAX);
    let files = whole("record-files", RECORD_FILES_MAX);
    let gap = whole("record-gap-seconds", u32::MAX);
    let limits = file.map("limits", |value| {
        let table = value.table(&LIMITS_KEYS, "a table [limits]")?;
        let [user, cgroup] = ["user", "cgroup"].map(|key| table.map(key, read_limit));
        Ok((user?.unwrap_or_default(), cgroup?.unwrap_or_default()))
    });
    let requests = file.map("requests", |value| {
        let table = value.table(&REQUESTS_KEYS, "a table [requests]")?;
        let requests = read_requests(&table);
        let users = table.map("users", |value| {
            let users = value.any_table("a table per user, like [requests.users.anna]")?;
            let mut all = Vec::new();
            for entry in users.entries() {
                let read = entry
                    .table(&REQUEST_KEYS, "a table [requests.users.NAME]")
                    .and_then(|table| read_requests(&table));
                let known = match (environment.user)(&entry.key()) {
                    Ok(()) => read,
                    Err(problem) => Err(entry.refused(problem)),
                };
                all.push((entry.key(), users.source().note(known)));
            }
            let all = all.into_iter().map(|(name, read)| Ok((name, read?)));
            all.collect::<Result<Vec<_>, TasksetError>>()
        });
        Ok((requests?, users?.unwrap_or_default()))
    });
    let (user, cgroup) = limits?.unwrap_or_default();
    let (requests, users) = requests?.unwrap_or_default();
    Ok(DaemonFile {
        cpus: cpus?,
        policy: policy?.map(str::to_owned),
        reserve: reserve?,
        guarantee: guarantee?,
        own_share: own_share?,
        group: group?,
        record_seconds: seconds?,
        record_folder: folder?.map(PathBuf::from),
        record_files: files?,
        record_gap_seconds: gap?,
        metrics: metrics?.map(PathBuf::from),
        user,
        cgroup,
        requests,
        users,
    })
}

fn read_requests(table: &Table<'_>) -> Result<Requests, TasksetError> {
    let machine = Names::new(Ok(Platform::uniform(CPUS_MAX)));
    let within = |value: &Value<'_>, least: Span| {
        let span = value.span()?;
        match (least..=PERIOD_MAX).contains(&span) {
            true => Ok(span),
            false => Err(value.out_of_range(
                value.describe(),
                format!("a time from {least} to {PERIOD_MAX}"),
            )),
        }
    };
    let period_max = table.map("period-max", |value| within(value, PERIOD_MIN));
    let cost_min = table.map("cost-min", |value| within(value, COST_MIN));
    let cpus = table.map("cpus", |value| machine.set(value));
    let on_overrun = table.map("on-overrun", |value| {
        let all = value.each("a list like [\"throttle\", \"signal\"]", |item| {
            item.word(&OVERRUNS)
        })?;
        match all.is_empty() {
            true => Err(value.empty("at least one of `throttle`, `continue` and `signal`")),
            false => Ok(all),
        }
    });
    Ok(Requests {
        period_max: period_max?,
        cost_min: cost_min?,
        cpus: cpus?,
        on_overrun: on_overrun?,
    })
}

/// A share below one: something has to be left for tasks.
fn read_reserve(value: &Value<'_>) -> Result<Share, TasksetError> {
    let share = value.share()?;
    match share.billionths() < Share::WHOLE {
        true => Ok(share),
        false => Err(value.out_of_range(value.describe(), "a share from 0 to below 1".to_owned())),
    }
}

fn read_own_share(value: &Value<'_>) -> Result<Share, TasksetError> {
    let share = value.share()?;
    match share.billionths() {
        0 | OWN_SHARE_MIN..=OWN_SHARE_MAX => Ok(share),
        _ => Err(value.out_of_range(
            value.describe(),
            "0, or a share of a CPU from 0.005 to 0.5".to_owned(),
        )),
    }
}

fn read_limit(value: &Value<'_>) -> Result<Limit, TasksetError> {
    let table: Table<'_> = value.table(&LIMIT_KEYS, "a table [limits.user]")?;
    let tasks = table.map("tasks", |value| value.integer(0, u32::MAX));
    let share_ppm = table.map("share", |value| value.millionths(SHARE_MAX));
    let ended_tasks = table.map("ended-tasks", |value| value.integer(0, u32::MAX));
    let ended_share_ppm = table.map("ended-share", |value| value.millionths(SHARE_MAX));
    let calls = table.map("calls", |value| value.integer(1, CALLS_MAX));
    Ok(Limit {
        tasks: tasks?,
        share_ppm: share_ppm?,
        ended_tasks: ended_tasks?,
        ended_share_ppm: ended_share_ppm?,
        calls: calls?,
    })
}
