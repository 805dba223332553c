//! The system's package client with a state of its own: it never sees what is installed here, and
//! never changes it. Works for root and for any other user.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{Suite, find_mirror};
use crate::Unavailable;
use crate::cache::{Locked, unwritable};

/// Signs the packages. Of the package debian-archive-keyring, which Ubuntu has too.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A view on one suite, up to date since it was opened.
#[derive(Debug)]
pub struct Apt {
    suite: &'static str,
    config: PathBuf,
}

impl Apt {
    /// Fetches the list of packages of `suite` (10 MB, some seconds; nothing if it is still current).
    ///
    /// # Errors
    /// There is no mirror, no keyring, no apt or no network; the text says which.
    pub fn open(locked: &Locked<'_>, suite: &Suite) -> Result<Self, Unavailable> {
        if !Path::new(KEYRING).exists() {
            return Err(Unavailable::new(
                format!("{KEYRING} is missing, so packages could not be verified"),
                "install debian-archive-keyring",
            ));
        }
        let mirror = find_mirror()?;
        let folder = locked.cache().path("apt").join(suite.name);
        let config =
            write_state(&folder, suite, &mirror).map_err(|error| unwritable(&folder, &error))?;
        let apt = Self {
            suite: suite.name,
            config,
        };
        apt.run("apt-get", &["-q", "update"], None)?;
        Ok(apt)
    }

    /// The names of all packages that begin so, in no particular order.
    ///
    /// # Errors
    /// The package client failed.
    pub fn names(&self, prefix: &str) -> Result<Vec<String>, Unavailable> {
        let output = self.run("apt-cache", &["pkgnames", prefix], None)?;
        Ok(lines(&output).map(str::to_owned).collect())
    }

    /// These packages and everything that they need to run, down to the C library, as `name=version`:
    /// what the package client would install on a machine without any package. It understands patterns, too,
    /// as `?essential`.
    ///
    /// # Errors
    /// There is no such package, or it needs something that the suite lacks.
    pub fn closure(&self, packages: &[&str]) -> Result<Vec<String>, Unavailable> {
        let mut arguments = vec!["-q", "--simulate", "--no-install-recommends"];
        let release = format!("--target-release={}", self.suite);
        arguments.extend([release.as_str(), "install"]);
        arguments.extend(packages);
        let output = self.run("apt-get", &arguments, None)?;
        Ok(lines(&output).filter_map(planned).collect())
    }

    /// Downloads packages, verified, into `folder`. Each is `name` or `name=version`.
    ///
    /// # Errors
    /// One is not there, or the download failed.
    pub fn download(&self, packages: &[String], folder: &Path) -> Result<(), Unavailable> {
        let mut arguments = vec!["-q", "download"];
        arguments.extend(packages.iter().map(String::as_str));
        self.run("apt-get", &arguments, Some(folder)).map(drop)
    }

    /// Downloads packages and unpacks them all into `folder`, without running any of their scripts.
    ///
    /// # Errors
    /// As [`download`](Self::download), or one cannot be unpacked.
    pub fn unpack(&self, packages: &[String], folder: &Path) -> Result<(), Unavailable> {
        let archives = folder.join("archives");
        fs::create_dir_all(&archives).map_err(|error| unwritable(&archives, &error))?;
        self.download(packages, &archives)?;
        let entries = fs::read_dir(&archives).map_err(|error| unwritable(&archives, &error))?;
        for entry in entries.flatten() {
            let mut command = Command::new("dpkg-deb");
            command.arg("--extract").arg(entry.path()).arg(folder);
            finish(&mut command)?;
        }
        fs::remove_dir_all(&archives).map_err(|error| unwritable(&archives, &error))
    }

    fn run(
        &self,
        program: &str,
        arguments: &[&str],
        folder: Option<&Path>,
    ) -> Result<Output, Unavailable> {
        let mut command = Command::new(program);
        // The machine's own configuration is read first: its proxies hold.
        command.arg("-c").arg(&self.config).args(arguments);
        if let Some(folder) = folder {
            command.current_dir(folder);
        }
        finish(&mut command)
    }
}

/// `Inst libc6 (2.41-12 Debian:13/stable [amd64])`: what would be installed.
fn planned(line: &str) -> Option<String> {
    let mut words = line.strip_prefix("Inst ")?.split_whitespace();
    let name = words.next()?;
    let version = words.find_map(|word| word.strip_prefix('('))?;
    Some(format!("{name}={version}"))
}

fn lines(output: &Output) -> impl Iterator<Item = &str> {
    std::str::from_utf8(&output.stdout).unwrap_or("").lines()
}

fn finish(command: &mut Command) -> Result<Output, Unavailable> {
    // Messages are shown as they are: in one language, without questions.
    command
        .env("LC_ALL", "C")
        .env("DEBIAN_FRONTEND", "noninteractive");
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| {
        Unavailable::new(
            format!("{program} cannot be run: {error}"),
            "the emulator is fetched on Debian and Ubuntu only",
        )
    })?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("E: "))
        .collect();
    let errors = if errors.is_empty() {
        said.trim().to_owned()
    } else {
        errors.join(" ")
    };
    let arguments: Vec<_> = command
        .get_args()
        .map(|text| text.to_string_lossy())
        .collect();
    Err(Unavailable::new(
        format!("`{program} {}` failed: {errors}", arguments.join(" ")),
        format!(
            "see that the network and the mirror can be reached; {} names another mirror",
            super::MIRROR_VARIABLE
        ),
    ))
}

/// Makes the folders and files of a private state; answers with its configuration.
fn write_state(folder: &Path, suite: &Suite, mirror: &str) -> std::io::Result<PathBuf> {
    fs::create_dir_all(folder.join("lists/partial"))?;
    fs::create_dir_all(folder.join("cache/archives/partial"))?;
    // Empty: nothing is installed, so nothing is taken from the machine.
    fs::write(folder.join("status"), "")?;
    let sources: String = std::iter::once(suite.name)
        .chain(suite.base())
        .map(|name| format!("deb [signed-by={KEYRING}] {mirror} {name} main\n"))
        .collect();
    fs::write(folder.join("sources.list"), sources)?;
    let config = folder.join("apt.conf");
    fs::write(&config, configuration(folder))?;
    Ok(config)
}

/// The host may be any Debian or Ubuntu with hooks and sources of its own: none of them may run or be
/// read here.
fn configuration(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        r#"Dir::State "{folder}";
Dir::State::lists "{folder}/lists";
Dir::State::status "{folder}/status";
Dir::State::extended_states "{folder}/extended_states";
Dir::Cache "{folder}/cache";
Dir::Cache::archives "{folder}/cache/archives";
Dir::Log "{folder}";
Dir::Etc::sourcelist "{folder}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
#clear APT::Default-Release;
#clear APT::Architectures;
APT::Architecture "amd64";
APT::Architectures {{ "amd64"; }};
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::CNF::DefaultEnabled "false";
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planned_installations_are_read_with_their_versions() {
        let line = "Inst libc6 (2.41-12+deb13u4 Debian:13.2/stable [amd64]) []";
        assert_eq!(planned(line).as_deref(), Some("libc6=2.41-12+deb13u4"));
        let upgrade = "Inst seabios [1.0] (1.16.3-2~bpo12+1 Debian:12 [all])";
        assert_eq!(
            planned(upgrade).as_deref(),
            Some("seabios=1.16.3-2~bpo12+1")
        );
        assert_eq!(planned("Conf libc6 (2.41-12 Debian [amd64])"), None);
    }

    #[test]
    fn the_state_of_the_system_is_never_named() {
        let text = configuration(Path::new("/home/user/.cache/x"));
        for line in text.lines().filter(|line| line.starts_with("Dir::")) {
            let value = line.split('"').nth(1).unwrap();
            let private = value.starts_with("/home/user/.cache/x") || value == "/dev/null";
            assert!(private, "{line}");
        }
    }

    #[test]
    fn a_failure_shows_what_the_package_client_said() {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "echo 'W: odd' >&2; echo 'E: no such package' >&2; exit 100",
        ]);
        let reason = finish(&mut command).unwrap_err().reason;
        assert!(reason.ends_with("failed: E: no such package"), "{reason}");
    }
}
