//! How the command behaves as a program among others: pipes, signals, files, exit status, and that
//! the same input always gives the same bytes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod admission;
mod daemon_config;
mod files;
mod generate;
mod init;
mod json;
mod process;
mod verbs;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shiftwork"));
    command
        .env_remove("NO_COLOR")
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

fn shiftwork(arguments: &[&str]) -> Output {
    command().args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// An empty folder of this test, under the build folder.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

const GOOD: &str = "tests/command/files/good.toml";
const SERVER: &str = "../../examples/server/server.toml";
