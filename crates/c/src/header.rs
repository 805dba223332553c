//! Checks that the header agrees with the Rust code: the same functions, numbers and layout.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::mem::offset_of;
use std::process::Command;

use crate::failure::Code;
use crate::reservation::{OnOverrunName, RawReservation};

const HEADER: &str = include_str!("../include/shiftwork.h");
const BOUNDARY: &str = include_str!("boundary.rs");

/// Types of Rust and the corresponding types of C.
const TYPES: &[(&str, &str)] = &[
    ("*mut *mut CTask", "struct shiftwork_task **"),
    ("*mut CTask", "struct shiftwork_task *"),
    ("*const CTask", "const struct shiftwork_task *"),
    (
        "*const RawReservation",
        "const struct shiftwork_reservation *",
    ),
    ("*const c_char", "const char *"),
    ("c_int", "int"),
    ("i64", "int64_t"),
];

fn in_c(rust: &str) -> &'static str {
    let found = TYPES.iter().find(|(name, _)| *name == rust);
    found
        .unwrap_or_else(|| panic!("no type of C is known for `{rust}`"))
        .1
}

/// Each function with the types of its parameters and, last, of its result; in C, without names of parameters.
type Functions = BTreeMap<String, Vec<String>>;

fn of_rust() -> Functions {
    let mut found = Functions::new();
    for part in BOUNDARY.split("#[unsafe(no_mangle)]\n").skip(1) {
        let (name, rest) = part.split_once("fn ").unwrap().1.split_once('(').unwrap();
        let (parameters, rest) = rest.split_once(')').unwrap();
        let returned = rest.split('{').next().unwrap().trim();
        let types = parameters
            .split(',')
            .filter_map(|parameter| parameter.split_once(':'))
            .map(|(_, rust)| rust.trim())
            .chain([returned.strip_prefix("-> ").unwrap()]);
        found.insert(
            name.to_owned(),
            types.map(|it| in_c(it).to_owned()).collect(),
        );
    }
    found
}

fn of_header() -> Functions {
    let mut found = Functions::new();
    let is_code = |line: &&str| !line.starts_with([' ', '\t', '/']);
    for line in HEADER.lines().filter(is_code) {
        let Some(declared) = line.strip_suffix(");") else {
            continue;
        };
        let (before, parameters) = declared.split_once('(').unwrap();
        let at = before.find("shiftwork_").unwrap();
        let (returned, name) = before.split_at(at);
        let parameters = parameters.split(", ").filter(|it| *it != "void");
        let mut types: Vec<String> = parameters
            .map(|parameter| {
                let end = parameter.rfind([' ', '*']).unwrap() + 1;
                parameter[..end].trim().to_owned()
            })
            .collect();
        types.push(returned.trim().to_owned());
        found.insert(name.to_owned(), types);
    }
    found
}

#[test]
fn header_declares_exported_functions() {
    let functions = of_rust();
    assert_eq!(functions.len(), 8);
    assert_eq!(functions, of_header());
}

/// A program that compiles only if the header agrees.
fn assertions() -> String {
    let mut program =
        String::from("#include \"shiftwork.h\"\n#define HOLDS(it) _Static_assert(it, #it)\n");
    let mut holds = |what: String| writeln!(program, "HOLDS({what});").unwrap();
    holds(format!(
        "sizeof(struct shiftwork_reservation) == {}",
        size_of::<RawReservation>()
    ));
    macro_rules! fields {
        ($($field:ident: $type:ty),*) => {$(
            holds(format!(
                "offsetof(struct shiftwork_reservation, {}) == {}",
                stringify!($field),
                offset_of!(RawReservation, $field)
            ));
            holds(format!(
                "sizeof(((struct shiftwork_reservation *)0)->{}) == {}",
                stringify!($field),
                size_of::<$type>()
            ));
            let _: fn(RawReservation) -> $type = |it| it.$field;
        )*};
    }
    fields! {
        size: usize, cost_ns: u64, period_ns: u64, deadline_ns: u64, cpus: *const std::ffi::c_char,
        priority: u32, on_overrun: u32
    }
    let codes = [
        ("REFUSED", Code::Refused as i32),
        ("FORBIDDEN", Code::Forbidden as i32),
        ("INVALID", Code::Invalid as i32),
        ("MISSING", Code::Missing as i32),
        ("EXHAUSTED", Code::Exhausted as i32),
        ("BROKEN", Code::Broken as i32),
        ("NO_AGENT", Code::NoAgent as i32),
        ("NOT_PERMITTED", Code::NotPermitted as i32),
        ("SILENT", Code::Silent as i32),
        ("LOST", Code::Lost as i32),
        ("GARBLED", Code::Garbled as i32),
        ("OTHER_THREAD", Code::OtherThread as i32),
        ("INTERNAL", Code::Internal as i32),
        ("THROTTLE", OnOverrunName::Throttle as i32),
        ("SIGNAL", OnOverrunName::Signal as i32),
        ("CONTINUE", OnOverrunName::Continue as i32),
    ];
    for (name, value) in codes {
        holds(format!("SHIFTWORK_{name} == {value}"));
    }
    // Each constant is defined in the header once.
    let named = HEADER.matches("\tSHIFTWORK_").count();
    assert_eq!(named, codes.len());
    program
}

#[test]
fn header_has_same_numbers_and_layout() {
    let program = assertions();
    if Command::new("cc").arg("--version").output().is_err() {
        println!("SKIPPED: comparing the header with the library requires a C compiler `cc`");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("assertions.c");
    std::fs::write(&path, program).unwrap();
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
    let options = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];
    let checked = Command::new("cc")
        .args(options)
        .args(["-fsyntax-only", "-I", include])
        .arg(&path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{said}");
}
