//! The installed library: exported names, links, and `pkg-config`.

use std::fs;
use std::process::Command;

use crate::built::{Installed, STRICT, has, library_folder, root, said};
use crate::daemon::{methods, with_daemon};

#[test]
fn library_exports_only_its_own_names() {
    if !has("nm", "the exported names of the library were not tested") {
        return;
    }
    let output = Command::new("nm")
        .args(["--dynamic", "--defined-only", "--format=just-symbols"])
        .arg(library_folder().join("libshiftwork.so"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut names: Vec<&str> = text.lines().collect();
    names.sort_unstable();
    let own = [
        "admit",
        "change",
        "dismiss",
        "error",
        "guarantee",
        "release",
        "version",
        "wait_next",
    ];
    assert_eq!(names, own.map(|name| format!("shiftwork_{name}")));
}

#[test]
fn program_linked_by_pkg_config_requires_soname() {
    if !has("cc", "linking by pkg-config was not tested")
        || !has("pkg-config", "linking by pkg-config was not tested")
    {
        return;
    }
    let library = Installed::new();
    let folder = library.prefix().join("lib");
    let output = Command::new("pkg-config")
        .args(["--cflags", "--libs", "shiftwork"])
        .env("PKG_CONFIG_PATH", folder.join("pkgconfig"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let flags = String::from_utf8(output.stdout).unwrap();
    let program = library.compile(
        "cc",
        &root().join("examples/programs/control.c"),
        STRICT.into_iter().chain(flags.split_whitespace()),
    );
    // Only the linker needs the name without a version.
    fs::remove_file(folder.join("libshiftwork.so")).unwrap();
    let (calls, output) = with_daemon(|daemon| library.run(&program, Some(daemon)));
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(methods(&calls), ["Admit", "Change", "Dismiss"]);
    fs::remove_file(folder.join("libshiftwork.so.0")).unwrap();
    let output = library.run(&program, None);
    assert!(
        said(&output).contains("libshiftwork.so.0"),
        "{}",
        said(&output)
    );
}

#[test]
fn valgrind_finds_no_errors() {
    if !has("cc", "the library was not run by valgrind")
        || !has("valgrind", "the library was not run by valgrind")
    {
        return;
    }
    let library = Installed::new();
    let program = library.link(&root().join("examples/programs/control.c"));
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--quiet", "--error-exitcode=9", "--leak-check=full"])
        .arg(program);
    let (calls, output) = with_daemon(|daemon| library.run_by(valgrind, Some(daemon)));
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(methods(&calls), ["Admit", "Change", "Dismiss"]);
}

#[test]
fn static_library_links_into_program() {
    if !has("cc", "linking with libshiftwork.a was not tested") {
        return;
    }
    let library = Installed::new();
    let archive = library.prefix().join("lib/libshiftwork.a");
    let archive = archive.to_str().unwrap();
    let program = library.compile(
        "cc",
        &root().join("examples/programs/control.c"),
        [archive, "-lpthread", "-ldl", "-lm"],
    );
    fs::remove_dir_all(library.prefix().join("lib")).unwrap();
    let (calls, output) = with_daemon(|daemon| library.run(&program, Some(daemon)));
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(methods(&calls), ["Admit", "Change", "Dismiss"]);
}

#[test]
fn header_compiles_as_cpp() {
    if !has("c++", "the header was not compiled as C++") {
        return;
    }
    let library = Installed::new();
    let source = library.prefix().join("program.cc");
    fs::write(
        &source,
        "#include <shiftwork.h>\n#include <cstdio>\n\
         int main() { std::puts(shiftwork_version()); return shiftwork_dismiss(nullptr); }\n",
    )
    .unwrap();
    let libraries = format!("-L{}", library.prefix().join("lib").display());
    let options = [
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
        &libraries,
        "-lshiftwork",
    ];
    let program = library.compile("c++", &source, options);
    let output = library.run(&program, None);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(said(&output), concat!(env!("CARGO_PKG_VERSION"), "\n"));
}
