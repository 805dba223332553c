//! The core compiles as BPF, calls nothing that the kernel does not have, and stays within the eight
//! frames that the verifier allows. On request the running kernel verifies and runs it, in lockstep with
//! the native build.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A clang that knows BPF: `BPF_CLANG`, else the usual names.
fn clang() -> Option<String> {
    let named = std::env::var("BPF_CLANG").ok();
    let usual = ["clang-19", "clang"].map(String::from);
    named.into_iter().chain(usual).find(|clang| {
        let targets = Command::new(clang).arg("--print-targets").output();
        targets.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains("bpf"))
    })
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bpf")
}

const VARIANTS: [(&str, &[&str]); 3] = [
    ("static", &[]),
    ("global", &["-DSW_GLOBAL"]),
    ("v3", &["-mcpu=v3"]),
];

fn compile(clang: &str, options: &[&str], name: &str) -> PathBuf {
    let source = folder().join("probe.bpf.c");
    let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let common = [
        "-target", "bpf", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-c", "-o",
    ];
    let out = Command::new(clang)
        .args(common)
        .arg(&object)
        .args(options)
        .arg("-I")
        .arg(shiftwork_kernel_core::SOURCES)
        .arg(source)
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    object
}

struct Section {
    kind: u32,
    offset: usize,
    size: usize,
    link: usize,
    info: usize,
}

struct Symbol {
    name: String,
    is_function: bool,
    section: usize,
    value: u64,
}

/// As much of a 64-bit little-endian ELF object as it takes.
struct Object {
    bytes: Vec<u8>,
    sections: Vec<Section>,
    symbols: Vec<Symbol>,
}

impl Object {
    fn read(path: &Path) -> Self {
        let mut object = Self {
            bytes: std::fs::read(path).unwrap(),
            sections: Vec::new(),
            symbols: Vec::new(),
        };
        let (table, count) = (object.word(40, 8) as usize, object.word(60, 2) as usize);
        object.sections = (0..count)
            .map(|index| table + 64 * index)
            .map(|at| Section {
                kind: object.word(at + 4, 4) as u32,
                offset: object.word(at + 24, 8) as usize,
                size: object.word(at + 32, 8) as usize,
                link: object.word(at + 40, 4) as usize,
                info: object.word(at + 44, 4) as usize,
            })
            .collect();
        let table = object
            .sections
            .iter()
            .find(|section| section.kind == 2)
            .unwrap();
        let names = object.sections[table.link].offset;
        object.symbols = (0..table.size / 24)
            .map(|index| table.offset + 24 * index)
            .map(|at| Symbol {
                name: object.text(names + object.word(at, 4) as usize),
                is_function: object.bytes[at + 4] & 0xf == 2,
                section: object.word(at + 6, 2) as usize,
                value: object.word(at + 8, 8),
            })
            .collect();
        object
    }

    fn word(&self, at: usize, size: usize) -> u64 {
        let bytes = self.bytes[at..at + size].iter().rev();
        bytes.fold(0, |word, &byte| word << 8 | u64::from(byte))
    }

    fn text(&self, at: usize) -> String {
        let bytes = self.bytes[at..].iter().take_while(|&&byte| byte != 0);
        bytes.map(|&byte| char::from(byte)).collect()
    }

    fn undefined(&self) -> Vec<&str> {
        let missing = |symbol: &&Symbol| symbol.section == 0 && !symbol.name.is_empty();
        self.symbols
            .iter()
            .filter(missing)
            .map(|symbol| symbol.name.as_str())
            .collect()
    }

    /// The function at this place of a section.
    fn function_at(&self, section: usize, place: u64) -> &Symbol {
        let before = |symbol: &&Symbol| {
            symbol.is_function && symbol.section == section && symbol.value <= place
        };
        self.symbols
            .iter()
            .filter(before)
            .max_by_key(|symbol| symbol.value)
            .unwrap()
    }

    /// Who calls whom.
    fn calls(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut calls: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let code = self.symbols.iter().filter(|symbol| symbol.is_function);
        let mut code: Vec<usize> = code.map(|symbol| symbol.section).collect();
        code.sort_unstable();
        code.dedup();
        for section in code {
            let Section { offset, size, .. } = self.sections[section];
            for place in (0..size as u64).step_by(8) {
                let at = offset + place as usize;
                // BPF_JMP | BPF_CALL with the source register BPF_PSEUDO_CALL.
                if self.bytes[at] != 0x85 || self.bytes[at + 1] >> 4 != 1 {
                    continue;
                }
                let distance = 8 * (self.word(at + 4, 4) as u32 as i32 as i64 + 1);
                let called = match self.relocated(section, place) {
                    Some(symbol) if symbol.is_function => symbol,
                    Some(symbol) => self.function_at(symbol.section, distance as u64),
                    None => self.function_at(section, place.wrapping_add_signed(distance)),
                };
                let caller = &self.function_at(section, place).name;
                calls.entry(caller).or_default().push(&called.name);
            }
        }
        calls
    }

    fn relocated(&self, section: usize, place: u64) -> Option<&Symbol> {
        let tables = self
            .sections
            .iter()
            .filter(|table| table.kind == 9 && table.info == section);
        let mut entries = tables
            .flat_map(|table| (0..table.size / 16).map(move |index| table.offset + 16 * index));
        let entry = entries.find(|&at| self.word(at, 8) == place)?;
        Some(&self.symbols[self.word(entry + 12, 4) as usize])
    }
}

/// Frames from this function on.
fn depth(calls: &BTreeMap<&str, Vec<&str>>, function: &str, path: &mut Vec<String>) -> usize {
    assert!(
        !path.iter().any(|caller| caller == function),
        "{path:?} recurses"
    );
    path.push(function.into());
    let called = calls.get(function).into_iter().flatten();
    let deepest = called
        .map(|called| depth(calls, called, path))
        .max()
        .unwrap_or(0);
    path.pop();
    1 + deepest
}

#[test]
fn the_core_compiles_as_bpf_within_what_the_verifier_allows() {
    let Some(clang) = clang() else {
        eprintln!(
            "SKIPPED: the core as BPF: there is no clang that knows the target; install clang-19"
        );
        return;
    };
    for (name, options) in VARIANTS {
        let object = Object::read(&compile(&clang, options, &format!("{name}.o")));
        assert_eq!(object.undefined(), [""; 0], "{name}");
        let calls = object.calls();
        assert!(calls.values().flatten().count() > 20, "{name}: {calls:?}");
        let frames = depth(&calls, "step", &mut Vec::new());
        // The program, and six of the core; a caller may have one function of its own.
        assert_eq!(frames, 7, "{name}: frames of the longest chain of calls");
    }
}

/// Compiles the driver, which needs libbpf.
fn driver() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lockstep");
    let compiler = std::env::var("CC").unwrap_or_else(|_| String::from("cc"));
    let out = Command::new(compiler)
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(shiftwork_kernel_core::SOURCES)
        .arg(folder().join("lockstep.c"))
        .arg("-o")
        .arg(&program)
        .arg("-lbpf")
        .output();
    out.is_ok_and(|out| out.status.success()).then_some(program)
}

#[test]
fn the_kernel_and_the_native_build_decide_the_same() {
    const REQUEST: &str = "SHIFTWORK_LOAD_BPF";
    if std::env::var_os(REQUEST).is_none() {
        eprintln!("SKIPPED: the core inside this kernel: set {REQUEST}=1, as root, to load it");
        return;
    }
    let clang = clang().expect("loading BPF was asked for: install clang-19");
    let driver = driver().expect("loading BPF was asked for: install libbpf-dev");
    for (name, options) in VARIANTS {
        let object = compile(&clang, options, &format!("run-{name}.o"));
        let out = Command::new(&driver)
            .arg(object)
            .args(["12", "12000"])
            .output()
            .unwrap();
        let told = [out.stdout, out.stderr].concat();
        assert!(
            out.status.success(),
            "{name}: {}",
            String::from_utf8_lossy(&told)
        );
    }
}
