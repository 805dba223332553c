//! Which kernel boots: the candidates of the archive, which of them are usable, and the choice among
//! them, remembered.

mod candidate;
mod image;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::Unavailable;
use crate::cache::{Cache, Locked};
use crate::debian::SUITES;
use candidate::Candidate;

/// Which kernel to boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KernelChoice {
    /// The newest usable one of the flavour for virtual machines.
    #[default]
    Newest,
    /// The newest usable one with `PREEMPT_RT`.
    Rt,
    /// The newest usable one of an older series than the newest: 1 for the next older, and so on.
    Older(u8),
    /// The one with a release that begins so, usable or not: how an unusable kernel is refused can
    /// be tested only on one.
    Release(String),
}

impl FromStr for KernelChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "newest" => Ok(Self::Newest),
            "rt" => Ok(Self::Rt),
            _ => {
                if let Some(steps) = text.strip_prefix("older-") {
                    return match steps.parse() {
                        Ok(steps @ 1..) => Ok(Self::Older(steps)),
                        _ => Err(format!(
                            "`{text}` is no kernel; older-1 is the next older one"
                        )),
                    };
                }
                if text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(in_release) {
                    return Ok(Self::Release(text.to_owned()));
                }
                Err(format!(
                    "`{text}` is no kernel; accepted are newest, rt, older-1, older-2, or the beginning \
                     of a release such as 7.0.13"
                ))
            }
        }
    }
}

/// What releases consist of: a choice becomes the name of a file.
fn in_release(c: char) -> bool {
    c.is_ascii_alphanumeric() || ".+-~".contains(c)
}

impl fmt::Display for KernelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newest => write!(f, "newest"),
            Self::Rt => write!(f, "rt"),
            Self::Older(steps) => write!(f, "older-{steps}"),
            Self::Release(text) => write!(f, "{text}"),
        }
    }
}

/// A kernel that is here and can be booted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// As `uname -r` shows it.
    pub release: String,
    /// The kernel, unpacked.
    pub image: PathBuf,
    /// Its configuration. If the archive keeps it no longer, that of the nearest release.
    pub config: PathBuf,
    /// Why no scheduler can be loaded into it; `None` if one can.
    pub unusable: Option<String>,
}

impl Kernel {
    /// A kernel that was fetched before.
    fn cached(cache: &Cache, release: &str) -> Option<Self> {
        let folder = cache.path("kernels").join(release);
        let verdict = cache.note(folder.join("verdict"))?;
        Some(Self {
            release: release.to_owned(),
            image: folder.join(candidate::IMAGE),
            config: folder.join(candidate::CONFIG),
            unusable: Some(verdict).filter(|verdict| verdict != candidate::USABLE),
        })
    }

    /// The kernel of a choice: from the cache, else fetched.
    ///
    /// # Errors
    /// There is no such kernel, no network, or no Debian mirror.
    pub fn find_or_fetch(cache: &Cache, choice: &KernelChoice) -> Result<Self, Unavailable> {
        if let Some(kernel) = Self::chosen(cache, choice) {
            return Ok(kernel);
        }
        let locked = cache.lock()?;
        // Perhaps another process fetched it meanwhile.
        match Self::chosen(cache, choice) {
            Some(kernel) => Ok(kernel),
            None => choose(&locked, choice),
        }
    }

    fn chosen(cache: &Cache, choice: &KernelChoice) -> Option<Self> {
        let release = cache.note(format!("choice/{choice}"))?;
        // An earlier version of this took 6.19 for a release that begins with 6.1.
        let fits = match choice {
            KernelChoice::Release(text) => candidate::begins(&release, text),
            _ => true,
        };
        Self::cached(cache, &release).filter(|_| fits)
    }
}

/// How many unusable kernels of one suite and series are fetched before the search goes elsewhere.
const TRIES: usize = 2;

fn choose(locked: &Locked<'_>, choice: &KernelChoice) -> Result<Kernel, Unavailable> {
    let kernel = match choice {
        KernelChoice::Newest => newest(locked, "cloud")?,
        KernelChoice::Rt => newest(locked, "rt")?,
        KernelChoice::Older(steps) => older(locked, *steps)?,
        KernelChoice::Release(text) => named(locked, text)?,
    };
    locked.remember(format!("choice/{choice}"), &kernel.release)?;
    Ok(kernel)
}

/// Suite by suite, the newest first.
fn newest(locked: &Locked<'_>, flavour: &str) -> Result<Kernel, Unavailable> {
    let mut obstacle = None;
    for suite in candidate::suites() {
        let candidates = match candidate::list(locked, suite) {
            Ok(candidates) => candidates,
            Err(error) => {
                // One suite may be out of order while the next is not; but without a mirror or a
                // network each would only wait and say the same.
                obstacle.get_or_insert(error);
                continue;
            }
        };
        let of_flavour = candidates.iter().filter(|one| one.flavour() == flavour);
        match first_usable(locked, of_flavour.take(TRIES))? {
            Ok(kernel) => return Ok(kernel),
            Err(refusals) => obstacle = obstacle.or(none_usable(flavour, &refusals)),
        }
    }
    Err(obstacle.unwrap_or_else(|| nothing_found(flavour)))
}

/// Series by series, going back from the newest.
fn older(locked: &Locked<'_>, steps: u8) -> Result<Kernel, Unavailable> {
    let newest = match Kernel::chosen(locked.cache(), &KernelChoice::Newest) {
        Some(kernel) => kernel,
        None => choose(locked, &KernelChoice::Newest)?,
    };
    let mut all = candidate::list_all(locked, candidate::suites())?;
    all.retain(|one| one.flavour() == "cloud");
    let mut series = candidate::series(&newest.release);
    let mut found = 0;
    let mut refusals = Vec::new();
    while let Some(next) = all
        .iter()
        .map(|one| candidate::series(&one.release))
        .filter(|one| *one < series)
        .max()
    {
        series = next;
        let members = all
            .iter()
            .filter(|one| candidate::series(&one.release) == next);
        match first_usable(locked, members.take(TRIES))? {
            Ok(kernel) => {
                found += 1;
                if found == steps {
                    return Ok(kernel);
                }
            }
            Err(more) => refusals.extend(more),
        }
    }
    Err(none_usable("cloud", &refusals).unwrap_or_else(|| nothing_found("older")))
}

/// By the beginning of its release; usable or not.
fn named(locked: &Locked<'_>, text: &str) -> Result<Kernel, Unavailable> {
    let mut all = candidate::list_all(locked, SUITES)?;
    // The flavour for virtual machines has built in what the emulator needs, and is the smallest.
    all.sort_by_key(|one| one.flavour() != "cloud");
    match all.iter().find(|one| candidate::begins(&one.release, text)) {
        Some(candidate) => candidate::fetch(locked, candidate),
        None => {
            let some: Vec<_> = all.iter().take(8).map(|one| one.release.as_str()).collect();
            Err(Unavailable::new(
                format!("the archive has no kernel with a release that begins with {text}"),
                format!("it has, among others: {}", some.join(", ")),
            ))
        }
    }
}

/// The first that is usable, else why each is not. Fetches those that are not here.
fn first_usable<'a>(
    locked: &Locked<'_>,
    candidates: impl Iterator<Item = &'a Candidate>,
) -> Result<Result<Kernel, Vec<String>>, Unavailable> {
    let mut refusals = Vec::new();
    for candidate in candidates {
        let kernel = candidate::fetch(locked, candidate)?;
        match &kernel.unusable {
            None => return Ok(Ok(kernel)),
            Some(why) => refusals.push(format!("{}: {why}", kernel.release)),
        }
    }
    Ok(Err(refusals))
}

fn none_usable(flavour: &str, refusals: &[String]) -> Option<Unavailable> {
    (!refusals.is_empty()).then(|| {
        Unavailable::new(
            format!("no {flavour} kernel is usable: {}", refusals.join("; ")),
            "name another mirror, or a suite in crates/emulator/src/debian/mod.rs",
        )
    })
}

fn nothing_found(flavour: &str) -> Unavailable {
    Unavailable::new(
        format!("the archive has no {flavour} kernel"),
        "name another mirror, or a suite in crates/emulator/src/debian/mod.rs",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_reads_as_it_is_written() {
        for text in [
            "newest",
            "rt",
            "older-1",
            "older-2",
            "7.0.13",
            "7.2.13+deb14-rt-amd64",
        ] {
            let choice: KernelChoice = text.parse().unwrap();
            assert_eq!(choice.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_choice_is_refused_with_what_would_be() {
        for text in [
            "", "oldest", "older-0", "older-x", "../7.0", "7/0", "older-",
        ] {
            let message = text.parse::<KernelChoice>().unwrap_err();
            assert!(message.contains("older-1"), "{text}: {message}");
        }
    }

    #[test]
    fn a_kernel_without_a_verdict_was_never_finished() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().to_owned()).unwrap();
        let locked = cache.lock().unwrap();
        locked.remember("choice/rt", "7.2.13-rt").unwrap();
        assert_eq!(Kernel::chosen(&cache, &KernelChoice::Rt), None);
        locked
            .remember("kernels/7.2.13-rt/verdict", "usable")
            .unwrap();
        let kernel = Kernel::chosen(&cache, &KernelChoice::Rt).unwrap();
        assert_eq!(kernel.unusable, None);
        locked
            .remember("kernels/7.2.13-rt/verdict", "its types are bad")
            .unwrap();
        let kernel = Kernel::chosen(&cache, &KernelChoice::Rt).unwrap();
        assert_eq!(kernel.unusable.as_deref(), Some("its types are bad"));
    }
}
