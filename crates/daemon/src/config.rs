//! The daemon's configuration file, by default `/etc/shiftwork/daemon.toml`. Every key is optional.

use std::fmt;
use std::path::{Path, PathBuf};

use shiftwork_analysis::admission::{Guarantee, Terms};
use shiftwork_model::{CpuSet, Machines, Share, Span, nearest_name};
use shiftwork_policy::registry::{Entry, POLICIES};
use shiftwork_taskset::daemon::{self, Limit};
use shiftwork_taskset::{Environment, TasksetError};

use crate::accounts::user_number;
use crate::quotas::{Amount, Quota, Quotas};
use crate::requests::AllRequestRules;
use crate::socket::{CGROUP_CALLS_PER_SECOND, RateLimit, USER_CALLS_PER_SECOND};

/// Default path of the configuration file.
pub const DEFAULT_PATH: &str = "/etc/shiftwork/daemon.toml";

/// Configuration of the daemon.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The CPUs to schedule, in the machine's numbers; `None`: all that are online at the start.
    pub cpus: Option<CpuSet>,
    /// The name of the policy.
    pub policy: String,
    /// The policy and the reserve as admission has them.
    pub terms: Terms,
    /// The guarantee of every reservation.
    pub guarantee: Guarantee,
    /// The share of a CPU that the daemon reserves for itself; zero: it is ordinary work.
    pub own_share: Share,
    /// Members of this group may connect; `None`: only root may.
    pub group: Option<String>,
    /// Quotas of each user and each control group.
    pub quotas: Quotas,
    /// What users other than root may request.
    pub requests: AllRequestRules,
    /// Rate limit of calls and connections of a user.
    pub user_rate: RateLimit,
    /// Rate limit of calls and connections of a control group.
    pub cgroup_rate: RateLimit,
    /// Length of the recording in memory, in seconds.
    pub record_seconds: u32,
    /// Folder of the recordings of misses; `None`: beside the state file.
    pub record_folder: Option<PathBuf>,
    /// Maximum number of these recordings; zero: none is kept.
    pub record_files: usize,
    /// Minimum time between two of them.
    pub record_gap: Span,
    /// File of the metrics for Prometheus' node exporter; `None`: no metrics.
    pub metrics: Option<PathBuf>,
}

/// Why the configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The file cannot be read.
    Unread {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// The file has mistakes.
    Refused {
        /// The file.
        path: PathBuf,
        /// Its text.
        text: String,
        /// All mistakes in it.
        error: Box<TasksetError>,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread { path, problem } => {
                write!(f, "{} cannot be read: {problem}", path.display())
            }
            Self::Refused { path, error, .. } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for ConfigError {}

/// The same share that Linux keeps for ordinary work beside real-time threads.
const RESERVE: Share = Share::DEFAULT_RESERVE;
/// Enough for some thousand calls a second, or the scheduling events of ten thousand jobs.
const OWN_SHARE: Share = Share::DEFAULT_RESERVE;
/// Enough for an audio or control program with all its threads.
const TASKS: u32 = 64;
/// One CPU: by default no user reserves all CPUs, unless there is only one.
const SHARE_PPM: u64 = 1_000_000;
const RECORD_SECONDS: u32 = 10;
const RECORD_FILES: u32 = 20;
const RECORD_GAP_SECONDS: u32 = 60;

impl Config {
    /// Reads the file. If there is none at the default path, all keys have their defaults.
    ///
    /// # Errors
    /// If the file cannot be read, or all mistakes in it.
    pub fn read(path: Option<&Path>) -> Result<Self, ConfigError> {
        let asked = path.unwrap_or(Path::new(DEFAULT_PATH));
        let text = match std::fs::read_to_string(asked) {
            Ok(text) => text,
            Err(error) if path.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
                String::new()
            }
            Err(error) => {
                return Err(ConfigError::Unread {
                    path: asked.to_owned(),
                    problem: error.to_string(),
                });
            }
        };
        Self::parse(&text).map_err(|error| ConfigError::Refused {
            path: asked.to_owned(),
            text,
            error: Box::new(error),
        })
    }

    /// The configuration that the text describes.
    ///
    /// # Errors
    /// All mistakes in it, each with its place.
    pub fn parse(text: &str) -> Result<Self, TasksetError> {
        let environment = Environment {
            policy: &known_policy,
            user: &known_user,
            ..Environment::default()
        };
        let file = daemon::read_in(text, &environment)?;
        let named = |entry: &&Entry| {
            let name = file.policy.as_deref();
            name.is_none_or(|name| entry.name.eq_ignore_ascii_case(name))
        };
        let policy = policies().find(named);
        let policy = policy.expect("the name in the file was checked");
        let reserve = file.reserve.unwrap_or(RESERVE);
        let terms = Terms::new(&policy.traits, reserve)
            .expect("admission has terms for each of the policies that are accepted");
        let requests = AllRequestRules::of(&file);
        let gap = file.record_gap_seconds.unwrap_or(RECORD_GAP_SECONDS);
        Ok(Self {
            cpus: file.cpus,
            guarantee: guarantee(file.guarantee, terms),
            policy: policy.name.to_owned(),
            terms,
            own_share: file.own_share.unwrap_or(OWN_SHARE),
            group: file.group,
            quotas: Quotas {
                user: quota(&file.user),
                cgroup: quota(&file.cgroup),
            },
            requests,
            user_rate: RateLimit::per_second(file.user.calls.unwrap_or(USER_CALLS_PER_SECOND)),
            cgroup_rate: RateLimit::per_second(
                file.cgroup.calls.unwrap_or(CGROUP_CALLS_PER_SECOND),
            ),
            record_seconds: file.record_seconds.unwrap_or(RECORD_SECONDS),
            record_folder: file.record_folder,
            record_files: file.record_files.unwrap_or(RECORD_FILES) as usize,
            record_gap: Span::from_s(u64::from(gap)),
            metrics: file.metrics,
        })
    }
}

/// The policies of the core in the kernel that support affinities of tasks.
fn policies() -> impl Iterator<Item = &'static Entry> {
    let is_supported = |entry: &&Entry| {
        let traits = &entry.traits;
        traits.machines == Machines::KernelOrAgent && traits.placement.shifts()
    };
    let mut supported: Vec<&Entry> = POLICIES.iter().filter(is_supported).collect();
    supported.sort_by_key(|entry| entry.traits.placement);
    supported.into_iter()
}

/// Checks that the daemon supports this policy.
fn known_policy(name: &str) -> Result<(), String> {
    let known: Vec<&str> = policies().map(|entry| entry.name).collect();
    if known.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return Ok(());
    }
    let meant = nearest_name(name, known.iter().copied());
    let meant = meant.map_or_else(String::new, |meant| format!("did you mean `{meant}`? "));
    Err(format!(
        "the daemon does not support `{name}`; {meant}it supports {}",
        known.join(", ")
    ))
}

/// Checks that this machine has the user.
fn known_user(name: &str) -> Result<(), String> {
    match user_number(name) {
        Some(_) => Ok(()),
        None => Err(format!(
            "there is no user `{name}` in /etc/passwd; write the number of one that other services know"
        )),
    }
}

/// The guarantee of every reservation; by default the strongest that the policy gives.
fn guarantee(name: Option<&str>, terms: Terms) -> Guarantee {
    let named = name.and_then(Guarantee::named);
    named.unwrap_or(match terms.is_edf() {
        true => Guarantee::BoundedTardiness,
        false => Guarantee::Hard,
    })
}

fn quota(limit: &Limit) -> Quota {
    let held = Amount {
        tasks: limit.tasks.unwrap_or(TASKS) as usize,
        share_ppm: limit.share_ppm.unwrap_or(SHARE_PPM),
    };
    Quota {
        held,
        // A program that is started again gets what it had, while that still counts.
        released: Amount {
            tasks: limit.ended_tasks.map_or(held.tasks, |tasks| tasks as usize),
            share_ppm: limit.ended_share_ppm.unwrap_or(held.share_ppm),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_policy::registry;

    #[test]
    fn empty_file_has_defaults() {
        let config = Config::parse("").unwrap();
        assert_eq!(config.policy, "strong-edf");
        assert_eq!(config.guarantee, Guarantee::BoundedTardiness);
        assert_eq!((config.cpus, config.group), (None, None));
        assert_eq!(config.quotas.user.held.share_ppm, 1_000_000);
        assert_eq!(config.terms.reserve.billionths(), 50_000_000);
        assert_eq!(config.own_share.billionths(), 50_000_000);
    }

    #[test]
    fn every_key_is_read() {
        let config = Config::parse(
            "cpus = '1-3'\npolicy = 'Strong-FP'\nreserve = 0.1\nguarantee = 'share'\ngroup = 'audio'\n\
             own-share = 0\nrecord-seconds = 3\nrecord-folder = '/r'\nrecord-files = 4\nrecord-gap-seconds = 5\nmetrics = '/m'\n\
             [limits.user]\ntasks = 2\nshare = 0.25\nended-tasks = 5\nended-share = 0.5\n[limits.cgroup]\ntasks = 3\ncalls = 10",
        )
        .unwrap();
        assert_eq!(config.cpus, Some("1-3".parse().unwrap()));
        assert_eq!(config.policy, "strong-fp");
        assert!(!config.terms.is_edf());
        assert_eq!(config.terms.reserve.billionths(), 100_000_000);
        assert_eq!(config.guarantee, Guarantee::Share);
        assert_eq!(config.group.as_deref(), Some("audio"));
        assert!(config.own_share.billionths() == 0);
        assert_eq!(config.record_seconds, 3);
        assert_eq!(config.record_folder, Some("/r".into()));
        assert_eq!(
            (config.record_files, config.record_gap),
            (4, Span::from_s(5))
        );
        assert_eq!(config.metrics, Some("/m".into()));
        let amount = |tasks, share_ppm| Amount { tasks, share_ppm };
        let quota = |held, released| Quota { held, released };
        let user = quota(amount(2, 250_000), amount(5, 500_000));
        assert_eq!(config.quotas.user, user);
        let cgroup = quota(amount(3, 1_000_000), amount(3, 1_000_000));
        assert_eq!(config.quotas.cgroup, cgroup);
        assert_eq!(config.user_rate, RateLimit::per_second(1_000));
        assert_eq!(config.cgroup_rate, RateLimit::per_second(10));
    }

    #[test]
    fn mistake_is_shown_with_accepted_values() {
        let cases = [
            ("cpu = '1'", "has no key `cpu`; did you mean `cpus`?"),
            ("\n\ncpus = 1", "line 3, column 8"),
            ("cpus = ''", "has no CPU"),
            ("cpus = '3-1'", "`3-1` is no range of CPUs"),
            (
                "policy = 'pd2'",
                "line 1, column 10: the daemon does not support `pd2`; it supports strong-edf, strong-fp, \
                 hpa-edf, hpa-fp",
            ),
            ("policy = 'strong-efd'", "did you mean `strong-edf`?"),
            ("reserve = 1.0", "write a share from 0 to below 1"),
            ("reserve = nan", "write a share from 0 to 1"),
            (
                "own-share = 0.6",
                "0, or a share of a CPU from 0.005 to 0.5",
            ),
            ("own-share = -0.1", "write a share from 0 to 1"),
            (
                "guarantee = 'all'",
                "`hard`, `bounded-tardiness`, `share` or `none`",
            ),
            ("record-seconds = 601", "from 0 to 600"),
            ("record-files = 1001", "from 0 to 1000"),
            ("[limits.user]\nshare = -1.0", "a number from 0 to 1024"),
            ("[limits.user]\ncalls = 0", "from 1 to 100000"),
            ("[limits.group]\n", "accepted: user, cgroup"),
            (
                "[requests]\nperiod-max = '11s'",
                "line 2, column 14: `period-max` is the text \"11s\"; write a time from 100us to 10s",
            ),
            ("[requests]\ncost-min = '1us'", "from 10us to 10s"),
            (
                "[requests]\non-overrun = ['explode']",
                "`throttle`, `continue` or `signal`",
            ),
            ("[requests]\non-overrun = []", "at least one of"),
            (
                "[requests.users.nosuchuser]\n",
                "there is no user `nosuchuser`",
            ),
            ("[requests.users.root]\ncpu = '1'", "did you mean `cpus`?"),
            ("[platform]\ncpus = 4", "this is a task-set file"),
        ];
        for (text, wanted) in cases {
            let said = Config::parse(text).unwrap_err().to_string();
            assert!(said.contains(wanted), "{text:?}: {said}");
        }
    }

    #[test]
    fn guarantee_of_every_name_is_known_to_admission() {
        let terms = Terms::new(&registry::find("strong-edf").unwrap().traits, RESERVE).unwrap();
        for name in daemon::GUARANTEES {
            assert_eq!(guarantee(Some(name), terms).name(), name);
        }
    }

    #[test]
    fn all_mistakes_of_a_file_are_shown_in_its_order() {
        let said =
            Config::parse("polcy = 'pd2'\nreserve = 2\n[limits.user]\ncalls = 0").unwrap_err();
        let lines: Vec<u32> = said
            .mistakes()
            .iter()
            .map(|one| one.place().unwrap().line)
            .collect();
        assert_eq!(lines, [1, 2, 4], "{said}");
    }
}
