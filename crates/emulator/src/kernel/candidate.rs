//! One kernel package of the archive: its name, its place in the order, and how it is fetched and
//! judged.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Kernel, image};
use crate::Unavailable;
use crate::cache::{Locked, unwritable};
use crate::debian::{Apt, SUITES, Suite};

/// The verdict on a kernel into which a scheduler can be loaded.
pub const USABLE: &str = "usable";
/// A kernel's files in the cache.
pub const IMAGE: &str = "vmlinux";
/// See [`IMAGE`].
pub const CONFIG: &str = "config";
/// Packages that carry an image; what follows is the release.
const IMAGE_PACKAGE: &str = "linux-binary-";
/// The same in suites with older kernels; these carry the configuration as well.
const OLDER_IMAGE_PACKAGE: &str = "linux-image-";
/// Packages that carry the configuration, where the image's does not.
const CONFIG_PACKAGE: &str = "linux-base-";
/// The only architecture there are commands for.
const ARCHITECTURE: &str = "-amd64";

/// A kernel that the archive has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// As `uname -r` shows it.
    pub release: String,
    /// Where it is.
    suite: Suite,
}

impl Candidate {
    /// `cloud`, `rt`, or empty for the ordinary one.
    pub fn flavour(&self) -> &str {
        flavour(&self.release)
    }
}

/// The suites with kernels that have `sched_ext`, in the order of preference.
pub fn suites() -> impl Iterator<Item = &'static Suite> {
    SUITES.iter().filter(|suite| suite.kernels)
}

/// What the names of packages with an image begin with in this suite.
fn image_package(suite: &Suite) -> &'static str {
    match suite.kernels {
        true => IMAGE_PACKAGE,
        false => OLDER_IMAGE_PACKAGE,
    }
}

/// All kernels of a suite, the newest first.
///
/// # Errors
/// The suite cannot be looked into.
pub fn list(locked: &Locked<'_>, suite: &Suite) -> Result<Vec<Candidate>, Unavailable> {
    let prefix = image_package(suite);
    let names = Apt::open(locked, suite)?.names(prefix)?;
    let mut found: Vec<Candidate> = names
        .iter()
        .filter_map(|name| name.strip_prefix(prefix))
        // Without a number it is the name for whichever is the newest.
        .filter(|release| release.starts_with(|c: char| c.is_ascii_digit()))
        .filter(|release| release.ends_with(ARCHITECTURE))
        .map(|release| Candidate {
            release: release.to_owned(),
            suite: *suite,
        })
        .collect();
    newest_first(&mut found);
    Ok(found)
}

/// All kernels of these suites, the newest first.
///
/// # Errors
/// No suite can be looked into.
pub fn list_all<'a>(
    locked: &Locked<'_>,
    suites: impl IntoIterator<Item = &'a Suite>,
) -> Result<Vec<Candidate>, Unavailable> {
    let mut found = Vec::new();
    let mut obstacle = None;
    for suite in suites {
        match list(locked, suite) {
            Ok(candidates) => found.extend(candidates),
            Err(error) => obstacle = Some(error),
        }
    }
    match obstacle {
        Some(error) if found.is_empty() => Err(error),
        _ => {
            newest_first(&mut found);
            Ok(found)
        }
    }
}

fn newest_first(candidates: &mut [Candidate]) {
    candidates.sort_by_key(|one| std::cmp::Reverse(version(&one.release)));
}

/// Whether the release begins with this text and no number of it goes on: 6.1 does not begin 6.12.1.
pub fn begins(release: &str, text: &str) -> bool {
    let rest = release.strip_prefix(text);
    let number = |text: &str| text.ends_with(|c: char| c.is_ascii_digit());
    rest.is_some_and(|rest| !(number(text) && rest.starts_with(|c: char| c.is_ascii_digit())))
}

/// `7.2.13+deb14-cloud-amd64` is (7, 2).
pub fn series(release: &str) -> (u64, u64) {
    match version(release)[..] {
        [major, minor, ..] => (major, minor),
        [major] => (major, 0),
        [] => (0, 0),
    }
}

/// The numbers before the flavour, in their order: they rank releases.
fn version(release: &str) -> Vec<u64> {
    let version = release.split('-').next().unwrap_or(release);
    let numbers = version.split(|c: char| !c.is_ascii_digit());
    numbers.filter_map(|number| number.parse().ok()).collect()
}

fn flavour(release: &str) -> &str {
    let stem = release.strip_suffix(ARCHITECTURE).unwrap_or(release);
    stem.split_once('-').map_or("", |(_, flavour)| flavour)
}

/// The kernel of a candidate: from the cache, else fetched (14 MB) and judged.
///
/// # Errors
/// It cannot be downloaded or kept. That it is unusable is no error.
pub fn fetch(locked: &Locked<'_>, candidate: &Candidate) -> Result<Kernel, Unavailable> {
    let release = &candidate.release;
    if let Some(kernel) = Kernel::cached(locked.cache(), release) {
        return Ok(kernel);
    }
    let apt = Apt::open(locked, &candidate.suite)?;
    let (packages, config_release) = packages(&apt, candidate)?;
    locked.install(Path::new("kernels").join(release), |folder| {
        let unpacked = folder.join("packages");
        fs::create_dir(&unpacked).map_err(|error| unwritable(&unpacked, &error))?;
        apt.unpack(&packages, &unpacked)?;
        let packed = find(&unpacked, "vmlinuz", release)?;
        let kernel = image::kernel(&packed).map_err(|why| strange(release, &why))?;
        let verdict = judge(&kernel);
        let verdict = verdict.err().unwrap_or_else(|| USABLE.to_owned());
        let place = folder.join(IMAGE);
        fs::write(&place, kernel).map_err(|error| unwritable(&place, &error))?;
        let (config, place) = (
            find(&unpacked, "config", &config_release)?,
            folder.join(CONFIG),
        );
        fs::rename(config, &place).map_err(|error| unwritable(&place, &error))?;
        fs::remove_dir_all(&unpacked).map_err(|error| unwritable(&unpacked, &error))?;
        let note = folder.join("verdict");
        fs::write(&note, verdict).map_err(|error| unwritable(&note, &error))
    })?;
    Kernel::cached(locked.cache(), release).ok_or_else(|| {
        Unavailable::new(
            format!("the kernel {release} vanished from the cache"),
            "try again",
        )
    })
}

/// The packages to fetch, and the release that they have the configuration of.
fn packages(apt: &Apt, candidate: &Candidate) -> Result<(Vec<String>, String), Unavailable> {
    let (release, suite) = (&candidate.release, &candidate.suite);
    let image = format!("{}{release}", image_package(suite));
    if !suite.kernels {
        return Ok((vec![image], release.clone()));
    }
    let configs = apt.names(CONFIG_PACKAGE)?;
    let configs: Vec<&str> = configs
        .iter()
        .filter_map(|name| name.strip_prefix(CONFIG_PACKAGE))
        .collect();
    let config = nearest(release, &configs).ok_or_else(|| {
        Unavailable::new(
            format!("{} has no configuration for {release}", suite.name),
            "name another kernel",
        )
    })?;
    let packages = vec![image, format!("{CONFIG_PACKAGE}{config}")];
    Ok((packages, config.to_owned()))
}

/// The archive drops the configuration of superseded kernels before their images. BPF loaders read but
/// a few stable values of it, so that of the nearest release of the same flavour stands in.
fn nearest<'a>(release: &str, configs: &[&'a str]) -> Option<&'a str> {
    let mut same: Vec<&str> = configs
        .iter()
        .copied()
        .filter(|other| other.ends_with(ARCHITECTURE) && flavour(other) == flavour(release))
        .collect();
    same.sort_by_key(|other| version(other));
    let later = same.iter().find(|other| version(other) >= version(release));
    later.or(same.last()).copied()
}

/// Where a file of the unpacked packages is. Up to 7.1 they put theirs into `boot`, later ones beside
/// the modules.
fn find(unpacked: &Path, what: &str, release: &str) -> Result<PathBuf, Unavailable> {
    let places = [
        unpacked.join(format!("usr/lib/modules/{release}/{what}")),
        unpacked.join(format!("boot/{what}-{release}")),
    ];
    let found = places.into_iter().find(|place| place.exists());
    found.ok_or_else(|| strange(release, &format!("its packages have no {what}")))
}

fn strange(release: &str, why: &str) -> Unavailable {
    Unavailable::new(
        format!("the kernel {release} is not made as expected: {why}"),
        "name another kernel",
    )
}

/// Whether a scheduler can be loaded; if not, why.
fn judge(kernel: &[u8]) -> Result<(), String> {
    let types = image::types(kernel)?;
    let functions = shiftwork_btf::kfuncs(types).map_err(|error| error.to_string())?;
    if functions.all.is_empty() {
        return Err("it was built without sched_ext".to_owned());
    }
    match functions.malformed.as_slice() {
        [] => Ok(()),
        [first, ..] => Err(format!(
            "its type information of {} of {} functions of sched_ext is malformed ({first} among them)",
            functions.malformed.len(),
            functions.all.len(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_begins_with_whole_numbers() {
        let release = "6.12.57+deb13-cloud-amd64";
        for (text, wanted) in [
            ("6.12", true),
            ("6.1", false),
            ("6.", true),
            ("6.12.5", false),
        ] {
            assert_eq!(begins(release, text), wanted, "{text}");
        }
    }

    #[test]
    fn releases_rank_by_their_numbers() {
        let mut releases = [
            "7.2.9+deb13",
            "7.2.12+deb13",
            "6.19.14+deb13",
            "7.2.12+deb14",
            "7.10.1",
        ];
        releases.sort_by_key(|release| version(release));
        let expected = [
            "6.19.14+deb13",
            "7.2.9+deb13",
            "7.2.12+deb13",
            "7.2.12+deb14",
            "7.10.1",
        ];
        assert_eq!(releases, expected);
        assert_eq!(series("6.19.14+deb13-rt-amd64"), (6, 19));
        assert_eq!(series("nonsense"), (0, 0));
    }

    #[test]
    fn flavours_are_distinguished() {
        assert_eq!(flavour("7.2.13+deb14-amd64"), "");
        assert_eq!(flavour("7.2.13+deb14-cloud-amd64"), "cloud");
        assert_eq!(flavour("7.2.13+deb14-rt-amd64"), "rt");
    }

    #[test]
    fn a_lost_configuration_is_replaced_by_the_nearest() {
        let configs = [
            "7.2.6+deb13-cloud-amd64",
            "7.2.9+deb13-cloud-amd64",
            "7.2.6+deb13-rt-amd64",
        ];
        let of = |release| nearest(release, &configs);
        assert_eq!(
            of("7.2.9+deb13-cloud-amd64"),
            Some("7.2.9+deb13-cloud-amd64")
        );
        assert_eq!(
            of("6.19.14+deb13-cloud-amd64"),
            Some("7.2.6+deb13-cloud-amd64")
        );
        assert_eq!(
            of("7.3.4+deb13-cloud-amd64"),
            Some("7.2.9+deb13-cloud-amd64")
        );
        assert_eq!(of("7.0.1+deb13-amd64"), None);
    }
}
