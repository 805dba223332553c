//! Which mirror of the Debian archive this machine uses.

use std::process::Command;

use crate::Unavailable;

/// Names a mirror; wins over what the package client is configured with.
pub const MIRROR_VARIABLE: &str = "SHIFTWORK_DEBIAN_MIRROR";

/// What Debian's own sources may call their suite, apart from the names in the table of suites.
const OTHER_NAMES: &[&str] = &[
    "bullseye",
    "oldstable",
    "stable",
    "testing",
    "unstable",
    "duke",
];

/// The address of a Debian mirror: what the variable names, else what the package client uses.
///
/// # Errors
/// There is neither: this machine runs no apt, or its sources are those of another distribution.
pub fn find() -> Result<String, Unavailable> {
    if let Some(mirror) = std::env::var_os(MIRROR_VARIABLE).filter(|value| !value.is_empty()) {
        let mirror = mirror.to_string_lossy().into_owned();
        return check(&mirror).map(|()| mirror);
    }
    let targets = Command::new("apt-get")
        .args(["indextargets", "--format", "$(RELEASE) $(REPO_URI)"])
        .output()
        .map_err(|error| {
            Unavailable::new(
                format!("apt-get cannot be run: {error}"),
                "the emulator is fetched on Debian and Ubuntu only",
            )
        })?;
    in_targets(&String::from_utf8_lossy(&targets.stdout)).ok_or_else(|| {
        Unavailable::new(
            "the package sources of this machine name no Debian mirror",
            format!(
                "set {MIRROR_VARIABLE} to the address of one and install debian-archive-keyring"
            ),
        )
    })
}

/// An address ends up in a line of a sources list: it must not be able to say more.
fn check(mirror: &str) -> Result<(), Unavailable> {
    let plain = |c: char| c.is_ascii_graphic() && !['[', ']', '#', '"'].contains(&c);
    if mirror.contains(":/") && mirror.chars().all(plain) {
        return Ok(());
    }
    Err(Unavailable::new(
        format!("{MIRROR_VARIABLE} is `{mirror}`, which is no address"),
        "name one that begins with http://, https:// or file:/",
    ))
}

/// The first source that carries a whole Debian suite. Each line is `release address`.
fn in_targets(text: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(release, address)| is_debian(release) && check(address).is_ok())
        .map(|(_, address)| address.trim().to_owned())
}

/// Security archives have suites of the same names, but only a few packages in each.
fn is_debian(release: &str) -> bool {
    let stem = release
        .strip_suffix("-updates")
        .or_else(|| release.strip_suffix("-backports"))
        .unwrap_or(release);
    OTHER_NAMES.contains(&stem) || super::SUITES.iter().any(|suite| suite.name == stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_own_mirror_is_used() {
        let text = "bookworm-security http://mirror.example/debian-security\n\
                    nodistro https://other.example/node\n\
                    bookworm http://mirror.example/debian\n";
        assert_eq!(
            in_targets(text).as_deref(),
            Some("http://mirror.example/debian")
        );
    }

    #[test]
    fn another_distribution_has_no_debian_mirror() {
        let text =
            "noble http://archive.example/ubuntu\nnoble-updates http://archive.example/ubuntu\n";
        assert_eq!(in_targets(text), None);
    }

    #[test]
    fn suites_that_move_count_as_well() {
        for release in [
            "stable",
            "testing",
            "sid",
            "trixie-updates",
            "bookworm-backports",
        ] {
            assert!(is_debian(release), "{release}");
        }
        assert!(!is_debian("stable-security"));
    }

    #[test]
    fn an_address_cannot_smuggle_a_second_source() {
        assert!(check("http://mirror.example/debian").is_ok());
        assert!(check("file:/srv/mirror/debian").is_ok());
        let message = check("http://x [trusted=yes]").unwrap_err().to_string();
        assert!(message.contains("is no address"), "{message}");
        assert!(check("mirror").is_err());
        assert!(check("http://x\ndeb").is_err());
    }
}
