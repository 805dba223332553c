//! Bad input: every file below `broken` is refused with the message beside it, and no mutation of
//! any file of the tests makes a reader panic.
//!
//! With `BLESS=1` in the environment the messages are written instead of compared; read them
//! before committing.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};

use shiftwork_model::RandomStream;
use shiftwork_taskset::import::{rt_app, schedcat, simso};
use shiftwork_taskset::{
    Environment, TasksetError, daemon, overheads, read, read_in, scenario, study, write,
};

/// Reads the text as a file of this kind. What it means does not matter here, but a task set must
/// survive being written.
fn read_as(kind: &str, text: &str) -> Result<(), TasksetError> {
    let environment = Environment {
        sysfs: Path::new("no-such-machine"),
        ..Environment::default()
    };
    let set = match kind {
        "task-set" => read_in(text, &environment)?,
        "scenario" => return scenario::read(text).map(drop),
        "overheads" => return overheads::read(text).map(drop),
        "study" => return study::read(text).map(drop),
        "daemon" => return daemon::read_in(text, &environment).map(drop),
        "rt-app" => rt_app::read(text)?.set,
        "simso" => simso::read(text)?.set,
        "schedcat" => schedcat::read(text)?.set,
        other => panic!("no kind of file is called {other}"),
    };
    assert_eq!(read(&write(&set)), Ok(set), "in\n{text}");
    Ok(())
}

const KINDS: [&str; 8] = [
    "task-set",
    "scenario",
    "overheads",
    "study",
    "daemon",
    "rt-app",
    "simso",
    "schedcat",
];

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// The broken files of a kind, by name.
fn broken(kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(tests().join("broken").join(kind)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension != "expected")
    });
    files.sort();
    files
}

/// The good file of a kind.
fn good(kind: &str) -> String {
    let name = match kind {
        "task-set" => "drone.toml".to_string(),
        "scenario" | "overheads" | "study" | "daemon" => format!("{kind}.toml"),
        "rt-app" => "rt-app.json".to_string(),
        _ => format!("{kind}.xml"),
    };
    fs::read_to_string(tests().join("good").join(name)).unwrap()
}

#[test]
fn every_broken_file_is_refused_with_its_message() {
    let mut differ = Vec::new();
    for (kind, path) in KINDS
        .iter()
        .flat_map(|kind| broken(kind).into_iter().map(|p| (*kind, p)))
    {
        let text = fs::read_to_string(&path).unwrap();
        let Err(error) = read_as(kind, &text) else {
            differ.push(format!("{}: is accepted", path.display()));
            continue;
        };
        let message = format!("{error}\n");
        let expected = path.with_extension("expected");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&expected, &message).unwrap();
        }
        let wanted = fs::read_to_string(&expected).unwrap_or_default();
        if message != wanted {
            differ.push(format!(
                "{}:\n  is:       {message}  expected: {wanted}",
                path.display()
            ));
        }
        assert!(error.place().is_some(), "{}: {error}", path.display());
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

#[test]
fn good_files_are_accepted() {
    for kind in KINDS {
        assert_eq!(read_as(kind, &good(kind)), Ok(()), "{kind}");
    }
}

/// What is spliced into texts: what readers have reason to trip over.
const SPLICES: [&str; 26] = [
    "",
    "0",
    "-1",
    "99999999999999999999",
    "1e999",
    "nan",
    "\"",
    "'",
    "\\",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    "=",
    ",",
    "\n",
    "\0",
    "µ",
    "\u{1f980}",
    "\"\"",
    "\"0ns\"",
    "&lt;",
    "]]>",
    "/*",
];

/// The text with one to four random changes, made at characters.
fn mutate(text: &str, others: &[String], stream: &mut RandomStream) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..1 + stream.below(4) {
        let length = characters.len() as u64;
        let at = stream.below(length + 1) as usize;
        let end = (at + stream.below(12) as usize).min(characters.len());
        match stream.below(5) {
            0 => drop(characters.drain(at..end)),
            1 => {
                let copy: Vec<char> = characters[at..end].to_vec();
                let to = stream.below(length + 1) as usize;
                characters.splice(to..to, copy);
            }
            2 => {
                let splice = SPLICES[stream.below(SPLICES.len() as u64) as usize];
                characters.splice(at..end, splice.chars());
            }
            3 => {
                let other = &others[stream.below(others.len() as u64) as usize];
                let lines: Vec<&str> = other.lines().collect();
                if !lines.is_empty() {
                    let line = lines[stream.below(lines.len() as u64) as usize];
                    characters.splice(at..at, line.chars().chain(['\n']));
                }
            }
            _ => characters.truncate(at.max(characters.len() / 2)),
        }
    }
    characters.into_iter().collect()
}

#[test]
fn no_mutation_makes_a_reader_panic() {
    let rounds = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 100_000,
        None => 1_500,
    };
    for (number, kind) in KINDS.into_iter().enumerate() {
        let mut texts: Vec<String> = broken(kind)
            .iter()
            .map(|path| fs::read_to_string(path).unwrap())
            .filter(|text| text.len() < 4_000)
            .collect();
        // The good file is the most fruitful one to break.
        texts.extend([good(kind), good(kind), good(kind), good(kind)]);
        let mut accepted = 0;
        for round in 0..rounds {
            let mut stream = RandomStream::new(0x6261_6421, number as u64, round);
            let chosen = &texts[stream.below(texts.len() as u64) as usize];
            let text = mutate(chosen, &texts, &mut stream);
            let outcome = std::panic::catch_unwind(|| read_as(kind, &text));
            match outcome {
                Ok(Ok(())) => accepted += 1,
                Ok(Err(error)) => assert!(!error.to_string().is_empty()),
                Err(_) => panic!("{kind}, round {round} panics on\n{text}"),
            }
        }
        assert!(accepted < rounds, "{kind}: the mutations break nothing");
    }
}

#[test]
fn huge_and_deep_inputs_neither_overflow_the_stack_nor_fill_a_message() {
    let repeated = |text: &str, bytes: usize| text.repeat(bytes / text.len());
    // One reader of each format, and nothing here is a file of any.
    for (kind, texts) in [
        (
            "task-set",
            [
                repeated("[", 10_000_000),
                repeated("a={", 1_000_000),
                repeated("a.", 1_000_000),
                format!("platform.cpus = {}", repeated("9", 1_000_000)),
                format!("platform.cpus = 1\n{} = 1", repeated("k", 1_000_000)),
                format!(
                    "platform = {{ cpus = 1, caches = [\"{}\"] }}",
                    repeated("9", 1_000_000)
                ),
            ],
        ),
        (
            "rt-app",
            [
                repeated("[", 10_000_000),
                repeated("{\"a\":", 10_000_000),
                repeated("\"", 1_000_000),
                repeated("/*", 1_000_000),
                format!("{{\"tasks\": {}}}", repeated("9", 1_000_000)),
                format!("{{\"tasks\": \"{}\"}}", repeated("\\n", 1_000_000)),
            ],
        ),
        (
            "schedcat",
            [
                repeated("<", 10_000_000),
                repeated("<a>", 1_000_000),
                repeated("<a>", 300_000) + &repeated("</a>", 400_000),
                format!("<a b='{}'/>", repeated("9", 1_000_000)),
                format!("<{}/>", repeated("a", 1_000_000)),
                format!(
                    "<taskset><task period='1' wcet='{}'/></taskset>",
                    repeated("9", 1_000_000)
                ),
            ],
        ),
    ] {
        for text in texts {
            let message = read_as(kind, &text).unwrap_err().to_string();
            assert!(message.len() < 500, "{kind}: {message}");
        }
    }
}
