//! Programs in C, compiled with the library that these tests were built with.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::daemon::TestDaemon;

/// Warning options of C compilers, as errors.
pub const STRICT: [&str; 5] = ["-std=gnu11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder where cargo has built the library.
pub fn library_folder() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().to_owned()
}

/// Whether the tool is installed. If not, prints what was not tested.
pub fn has(tool: &str, what: &str) -> bool {
    let is_installed = Command::new(tool).arg("--version").output().is_ok();
    if !is_installed {
        println!("SKIPPED: {what}: there is no `{tool}`");
    }
    is_installed
}

/// The library installed below a temporary folder, and programs linked with it.
pub struct Installed {
    folder: TempDir,
}

impl Installed {
    /// Installs it by the script of `make install-c`.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new(root().join(".ci/install-c"))
            .arg(library_folder())
            .arg(folder.path())
            .env_remove("DESTDIR")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        Self { folder }
    }

    pub fn prefix(&self) -> &Path {
        self.folder.path()
    }

    /// Compiles a program with these additional options, and returns its path.
    pub fn compile<I: AsRef<OsStr>>(
        &self,
        compiler: &str,
        source: &Path,
        options: impl IntoIterator<Item = I>,
    ) -> PathBuf {
        let program = self.folder.path().join("program");
        let output = Command::new(compiler)
            .arg("-o")
            .arg(&program)
            .arg("-I")
            .arg(self.prefix().join("include"))
            .arg(source)
            .args(options)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        program
    }

    /// Compiles a program and links it with the shared library.
    pub fn link(&self, source: &Path) -> PathBuf {
        let libraries = format!("-L{}", self.prefix().join("lib").display());
        let options = STRICT
            .into_iter()
            .chain([libraries.as_str(), "-lshiftwork", "-pthread"]);
        self.compile("cc", source, options)
    }

    /// Runs a program with this library and this daemon.
    pub fn run(&self, program: &Path, daemon: Option<&TestDaemon>) -> Output {
        self.run_by(Command::new(program), daemon)
    }

    /// As [`run`](Self::run), by a command that runs the program.
    pub fn run_by(&self, mut command: Command, daemon: Option<&TestDaemon>) -> Output {
        let nowhere = self.prefix().join("no-daemon.sock");
        command
            .env("LD_LIBRARY_PATH", self.prefix().join("lib"))
            .env(
                "SHIFTWORK_SOCKET",
                daemon.map_or(nowhere.as_path(), TestDaemon::socket),
            )
            .output()
            .unwrap()
    }
}

/// The output and error output of a program.
pub fn said(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{out}{err}")
}
