//! Makes the package, on this machine, of the command that was built for the tests.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packs this command as `make deb` packs that of a release; returns where the package is.
///
/// # Errors
/// What the script complains about.
pub fn make(command: &str) -> io::Result<PathBuf> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("deb");
    let output = Command::new(".ci/deb")
        .arg(command)
        .arg(folder)
        .current_dir(root)
        // Quick rather than small: it is unpacked once.
        .env("DPKG_DEB_COMPRESSOR_LEVEL", "1")
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!(".ci/deb failed: {said}")));
    }
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(PathBuf::from(said.trim_end()))
}
