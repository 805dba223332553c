//! The agent's configuration file, by default `/etc/shiftwork/agent.toml`. Every key may be left out.

use std::fmt;
use std::path::{Path, PathBuf};

use shiftwork_analysis::admission::{Guarantee, Order, Placement, Terms};
use shiftwork_model::{CpuSet, Share, Span, nearest_name};
use shiftwork_taskset::daemon::{self, Limit};
use shiftwork_taskset::{Environment, TasksetError};

use crate::quotas::{Quota, Quotas};
use crate::socket::{CGROUP_CALLS_PER_SECOND, RateLimit, USER_CALLS_PER_SECOND};

/// Where it is unless the command line says something else.
pub const DEFAULT_PATH: &str = "/etc/shiftwork/agent.toml";

/// What the agent is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The CPUs to schedule, in the machine's numbers; `None`: all that are online when it starts.
    pub cpus: Option<CpuSet>,
    /// The policy's name and terms.
    pub policy: String,
    /// What it means for admission.
    pub terms: Terms,
    /// What everybody is promised.
    pub guarantee: Guarantee,
    /// What the agent reserves for itself, of one CPU; none: it is ordinary work.
    pub own_share: Share,
    /// The group whose members may ask for reservations; `None`: only root may.
    pub group: Option<String>,
    /// What each user and each control group may have.
    pub quotas: Quotas,
    /// How many calls and connections a user may make.
    pub user_rate: RateLimit,
    /// How many those of a control group may make together.
    pub cgroup_rate: RateLimit,
    /// How far back the agent remembers, in seconds.
    pub record_seconds: u32,
    /// Where what led to a miss is kept; `None`: beside the state.
    pub record_folder: Option<PathBuf>,
    /// In how many files, the newest; zero: nothing is kept.
    pub record_files: usize,
    /// The least time between two of them.
    pub record_gap: Span,
    /// Where metrics are written for Prometheus' node exporter; `None`: nowhere.
    pub metrics: Option<PathBuf>,
}

/// Why there is no configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The file cannot be read.
    Unread {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// The file says something wrong.
    Refused {
        /// The file.
        path: PathBuf,
        /// What it says.
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

/// The policies by which the core in the kernel decides, for tasks that bring affinities of their own.
const POLICIES: [&str; 4] = ["strong-edf", "strong-fp", "hpa-edf", "hpa-fp"];

/// As Linux keeps for ordinary work beside real-time threads.
const RESERVE: Share = Share::DEFAULT_RESERVE;
/// Some thousand calls a second, or the facts of ten thousand jobs.
const OWN_SHARE: Share = Share::DEFAULT_RESERVE;
/// Enough for an audio or control program with all its threads.
const TASKS: u32 = 64;
/// One CPU: no user takes all CPUs by default, unless there is but one.
const SHARE_PPM: u64 = 1_000_000;
const RECORD_SECONDS: u32 = 10;
const RECORD_FILES: u32 = 20;
const RECORD_GAP_SECONDS: u32 = 60;

impl Config {
    /// Reads the file; without one at the default path, everything is as by default.
    ///
    /// # Errors
    /// If it cannot be read, or everything that is wrong in it.
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
    /// Everything that is wrong in it, each mistake with its place.
    pub fn parse(text: &str) -> Result<Self, TasksetError> {
        let environment = Environment {
            policy: &known_policy,
            ..Environment::default()
        };
        let file = daemon::read_in(text, &environment)?;
        let policy = file.policy.as_deref().unwrap_or(POLICIES[0]);
        let policy = policy.to_ascii_lowercase();
        let reserve = file.reserve.unwrap_or(RESERVE);
        let terms = Terms::of_policy(&policy, reserve)
            .expect("admission has terms for each of the policies that are accepted");
        let gap = file.record_gap_seconds.unwrap_or(RECORD_GAP_SECONDS);
        Ok(Self {
            cpus: file.cpus,
            guarantee: guarantee(file.guarantee, terms),
            policy,
            terms,
            own_share: file.own_share.unwrap_or(OWN_SHARE),
            group: file.group,
            quotas: Quotas {
                user: quota(&file.user),
                cgroup: quota(&file.cgroup),
            },
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

/// Whether the daemon schedules by this policy.
fn known_policy(name: &str) -> Result<(), String> {
    if POLICIES
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name))
    {
        return Ok(());
    }
    let meant = nearest_name(name, POLICIES);
    let meant = meant.map_or_else(String::new, |meant| format!("did you mean `{meant}`? "));
    Err(format!(
        "the agent does not schedule by `{name}`; {meant}it does by {}",
        POLICIES.join(", ")
    ))
}

/// What every reservation guarantees; by default what the policy does at best.
fn guarantee(name: Option<&str>, terms: Terms) -> Guarantee {
    let named = name.and_then(Guarantee::named);
    named.unwrap_or(match (terms.order, terms.placement) {
        (Order::Edf, Placement::Strong | Placement::Hierarchical) => Guarantee::BoundedTardiness,
        _ => Guarantee::Hard,
    })
}

fn quota(limit: &Limit) -> Quota {
    Quota {
        tasks: limit.tasks.unwrap_or(TASKS) as usize,
        share_ppm: limit.share_ppm.unwrap_or(SHARE_PPM),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_as_by_default() {
        let config = Config::parse("").unwrap();
        assert_eq!(config.policy, "strong-edf");
        assert_eq!(config.guarantee, Guarantee::BoundedTardiness);
        assert_eq!((config.cpus, config.group), (None, None));
        assert_eq!(config.quotas.user.share_ppm, 1_000_000);
        assert_eq!(config.terms.reserve.billionths(), 50_000_000);
        assert_eq!(config.own_share.billionths(), 50_000_000);
    }

    #[test]
    fn every_key_says_what_it_says() {
        let config = Config::parse(
            "cpus = '1-3'\npolicy = 'Strong-FP'\nreserve = 0.1\nguarantee = 'share'\ngroup = 'audio'\n\
             own-share = 0\nrecord-seconds = 3\nrecord-folder = '/r'\nrecord-files = 4\nrecord-gap-seconds = 5\nmetrics = '/m'\n\
             [limits.user]\ntasks = 2\nshare = 0.25\n[limits.cgroup]\ntasks = 3\ncalls = 10",
        )
        .unwrap();
        assert_eq!(config.cpus, Some("1-3".parse().unwrap()));
        assert_eq!(config.policy, "strong-fp");
        assert_eq!(config.terms.order, Order::FixedPriority);
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
        let quota = |tasks, share_ppm| Quota { tasks, share_ppm };
        assert_eq!(config.quotas.user, quota(2, 250_000));
        assert_eq!(config.quotas.cgroup, quota(3, 1_000_000));
        assert_eq!(config.user_rate, RateLimit::per_second(1_000));
        assert_eq!(config.cgroup_rate, RateLimit::per_second(10));
    }

    #[test]
    fn mistake_is_shown_with_what_would_be_accepted() {
        let cases = [
            ("cpu = '1'", "has no key `cpu`; did you mean `cpus`?"),
            ("\n\ncpus = 1", "line 3, column 8"),
            ("cpus = ''", "has no CPU"),
            ("cpus = '3-1'", "`3-1` is no range of CPUs"),
            (
                "policy = 'pd2'",
                "line 1, column 10: the agent does not schedule by `pd2`; it does by strong-edf, strong-fp, \
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
            ("[platform]\ncpus = 4", "this is a task-set file"),
        ];
        for (text, wanted) in cases {
            let said = Config::parse(text).unwrap_err().to_string();
            assert!(said.contains(wanted), "{text:?}: {said}");
        }
    }

    #[test]
    fn guarantee_of_every_name_is_known_to_admission() {
        let terms = Terms::of_policy("strong-edf", RESERVE).unwrap();
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
