//! The agent's configuration file, by default `/etc/shiftwork/agent.toml`. Every key may be left out.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use shiftwork_analysis::admission::{Guarantee, Order, Placement, Terms};
use shiftwork_model::{CpuSet, Share, Span};

use crate::limits::{Limits, Quota};
use crate::socket::{CALLS_OF_CGROUP, CALLS_OF_USER, Pace};

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
    pub promising: Guarantee,
    /// What the agent reserves for itself, of one CPU; none: it is ordinary work.
    pub own_share: Share,
    /// The group whose members may ask for reservations; `None`: only root may.
    pub group: Option<String>,
    /// What each user and each control group may have.
    pub limits: Limits,
    /// How many calls and connections a user may make.
    pub pace_of_user: Pace,
    /// How many those of a control group may make together.
    pub pace_of_cgroup: Pace,
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

/// What is wrong with a configuration, with the line where there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

/// The file as it stands there.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct File {
    cpus: Option<String>,
    policy: Option<String>,
    reserve: Option<f64>,
    guarantee: Option<String>,
    own_share: Option<f64>,
    group: Option<String>,
    record_seconds: Option<u32>,
    record_folder: Option<PathBuf>,
    record_files: Option<usize>,
    record_gap_seconds: Option<u32>,
    metrics: Option<PathBuf>,
    limits: FileLimits,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileLimits {
    user: FileQuota,
    cgroup: FileQuota,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileQuota {
    tasks: Option<usize>,
    share: Option<f64>,
    calls: Option<u32>,
}

/// As Linux keeps for ordinary work beside real-time threads.
const RESERVE: f64 = 0.05;
/// Some thousand calls a second, or the facts of ten thousand jobs.
const OWN_SHARE: f64 = 0.05;
/// Less is not enough for a call.
const OWN_SHARE_MIN: f64 = 0.005;
const OWN_SHARE_MAX: f64 = 0.5;
/// Enough for an audio or control program with all its threads.
const TASKS: usize = 64;
/// Of one CPU: nobody takes all CPUs unasked, unless there is but one.
const SHARE: f64 = 1.0;
/// More than the agent answers.
const CALLS_MAX: u32 = 100_000;
const RECORD_SECONDS: u32 = 10;
const RECORD_SECONDS_MAX: u32 = 600;
const RECORD_FILES: usize = 20;
/// What takes more room than some GB is a mistake.
const RECORD_FILES_MAX: usize = 1_000;
const RECORD_GAP_SECONDS: u32 = 60;

impl Config {
    /// Reads the file; without one at the default path, everything is as by default.
    ///
    /// # Errors
    /// If it cannot be read, or what is wrong in it.
    pub fn read(path: Option<&Path>) -> Result<Self, ConfigError> {
        let asked = path.unwrap_or(Path::new(DEFAULT_PATH));
        match std::fs::read_to_string(asked) {
            Ok(text) => Self::parse(&text)
                .map_err(|error| ConfigError(format!("{}: {error}", asked.display()))),
            Err(error) if path.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
                Self::parse("")
            }
            Err(error) => Err(ConfigError(format!(
                "{} cannot be read: {error}",
                asked.display()
            ))),
        }
    }

    /// The configuration that the text describes.
    ///
    /// # Errors
    /// What is wrong in it, with the line.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let file: File = toml::from_str(text)
            .map_err(|error| ConfigError(error.to_string().trim_end().to_owned()))?;
        let cpus = file.cpus.as_deref().map(cpus).transpose()?;
        let reserve = share("reserve", file.reserve.unwrap_or(RESERVE))?;
        let policy = file.policy.unwrap_or_else(|| "strong-edf".to_owned());
        let policy = policy.to_ascii_lowercase();
        let terms = terms(&policy, reserve)?;
        let seconds = file.record_seconds.unwrap_or(RECORD_SECONDS);
        if seconds > RECORD_SECONDS_MAX {
            return Err(ConfigError(format!(
                "record-seconds = {seconds}: at most {RECORD_SECONDS_MAX} are kept in memory"
            )));
        }
        let files = file.record_files.unwrap_or(RECORD_FILES);
        if files > RECORD_FILES_MAX {
            return Err(ConfigError(format!(
                "record-files = {files}: at most {RECORD_FILES_MAX} are kept"
            )));
        }
        let gap = file.record_gap_seconds.unwrap_or(RECORD_GAP_SECONDS);
        Ok(Self {
            cpus,
            promising: promising(file.guarantee.as_deref(), terms)?,
            policy,
            terms,
            own_share: own_share(file.own_share.unwrap_or(OWN_SHARE))?,
            group: file.group,
            limits: Limits {
                user: quota("limits.user", &file.limits.user)?,
                cgroup: quota("limits.cgroup", &file.limits.cgroup)?,
            },
            pace_of_user: pace("limits.user", &file.limits.user, CALLS_OF_USER)?,
            pace_of_cgroup: pace("limits.cgroup", &file.limits.cgroup, CALLS_OF_CGROUP)?,
            record_seconds: seconds,
            record_folder: file.record_folder,
            record_files: files,
            record_gap: Span::from_s(u64::from(gap)),
            metrics: file.metrics,
        })
    }
}

fn cpus(text: &str) -> Result<CpuSet, ConfigError> {
    let parsed = text.parse::<CpuSet>();
    let cpus = parsed.map_err(|error| ConfigError(format!("cpus = \"{text}\": {error}")))?;
    if cpus.is_empty() {
        return Err(ConfigError(format!(
            "cpus = \"{text}\" is no CPU; a list as \"0-3,7\" is"
        )));
    }
    Ok(cpus)
}

fn share(key: &str, value: f64) -> Result<Share, ConfigError> {
    let is_one = (0.0..1.0).contains(&value);
    // Below one billion, and rounded to it.
    let billionths = (value * f64::from(Share::WHOLE)).round() as u32;
    Share::from_billionths(billionths)
        .filter(|_| is_one)
        .ok_or_else(|| ConfigError(format!("{key} = {value} is not a share: 0 to below 1")))
}

fn own_share(value: f64) -> Result<Share, ConfigError> {
    if value != 0.0 && !(OWN_SHARE_MIN..=OWN_SHARE_MAX).contains(&value) {
        return Err(ConfigError(format!(
            "own-share = {value}: 0, or {OWN_SHARE_MIN} to {OWN_SHARE_MAX} of a CPU"
        )));
    }
    share("own-share", value)
}

/// Those that the core in the kernel decides by, for tasks that bring affinities of their own.
fn terms(policy: &str, reserve: Share) -> Result<Terms, ConfigError> {
    const TAKEN: [&str; 4] = ["strong-edf", "strong-fp", "hpa-edf", "hpa-fp"];
    TAKEN
        .contains(&policy)
        .then(|| Terms::of_policy(policy, reserve))
        .flatten()
        .ok_or_else(|| {
            ConfigError(format!(
                "policy = \"{policy}\": the agent schedules by {}",
                TAKEN.join(", ")
            ))
        })
}

fn promising(name: Option<&str>, terms: Terms) -> Result<Guarantee, ConfigError> {
    match name {
        Some(name) => Guarantee::named(name).ok_or_else(|| {
            ConfigError(format!(
                "guarantee = \"{name}\" is none of {}",
                Guarantee::ALL.map(Guarantee::name).join(", ")
            ))
        }),
        None => Ok(match (terms.order, terms.placement) {
            (Order::Edf, Placement::Strong | Placement::Hierarchical) => {
                Guarantee::BoundedTardiness
            }
            _ => Guarantee::Hard,
        }),
    }
}

fn quota(key: &str, file: &FileQuota) -> Result<Quota, ConfigError> {
    let share = file.share.unwrap_or(SHARE);
    /// More CPUs than there are.
    const SHARE_MAX: f64 = 1_024.0;
    if !(0.0..=SHARE_MAX).contains(&share) {
        return Err(ConfigError(format!(
            "{key}.share = {share} is not a number of CPUs: 0 to {SHARE_MAX}"
        )));
    }
    Ok(Quota {
        tasks: file.tasks.unwrap_or(TASKS),
        share_ppm: (share * 1e6).round() as u64,
    })
}

fn pace(key: &str, file: &FileQuota, otherwise: u32) -> Result<Pace, ConfigError> {
    let calls = file.calls.unwrap_or(otherwise);
    if !(1..=CALLS_MAX).contains(&calls) {
        return Err(ConfigError(format!(
            "{key}.calls = {calls}: 1 to {CALLS_MAX} in a second"
        )));
    }
    Ok(Pace::per_second(calls))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_as_by_default() {
        let config = Config::parse("").unwrap();
        assert_eq!(config.policy, "strong-edf");
        assert_eq!(config.promising, Guarantee::BoundedTardiness);
        assert_eq!((config.cpus, config.group), (None, None));
        assert_eq!(config.limits.user.share_ppm, 1_000_000);
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
        assert_eq!(config.promising, Guarantee::Share);
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
        assert_eq!(config.limits.user, quota(2, 250_000));
        assert_eq!(config.limits.cgroup, quota(3, 1_000_000));
        assert_eq!(config.pace_of_user, Pace::per_second(1_000));
        assert_eq!(config.pace_of_cgroup, Pace::per_second(10));
    }

    #[test]
    fn what_is_wrong_is_told_with_what_would_be_right() {
        let cases = [
            ("cpu = '1'", "unknown field `cpu`, expected one of `cpus`"),
            ("\n\ncpus = 1", "line 3, column 8"),
            ("cpus = ''", "a list as \"0-3,7\" is"),
            ("cpus = '3-1'", "cpus = \"3-1\": "),
            (
                "policy = 'pd2'",
                "the agent schedules by strong-edf, strong-fp, hpa-edf, hpa-fp",
            ),
            ("reserve = 1.0", "reserve = 1 is not a share: 0 to below 1"),
            ("reserve = nan", "is not a share"),
            ("own-share = 0.6", "own-share = 0.6: 0, or 0.005 to 0.5"),
            ("own-share = -0.1", "0, or 0.005 to 0.5"),
            (
                "guarantee = 'all'",
                "is none of hard, bounded-tardiness, share, none",
            ),
            ("record-seconds = 601", "at most 600"),
            ("record-files = 1001", "at most 1000 are kept"),
            (
                "[limits.user]\nshare = -1.0",
                "limits.user.share = -1 is not",
            ),
            ("[limits.user]\ncalls = 0", "1 to 100000 in a second"),
            ("[limits.group]\n", "expected `user` or `cgroup`"),
        ];
        for (text, wanted) in cases {
            let said = Config::parse(text).unwrap_err().to_string();
            assert!(said.contains(wanted), "{text:?}: {said}");
        }
    }
}
