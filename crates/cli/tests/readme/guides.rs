//! The tutorial and the guides: their commands print what the pages say. What the tutorial runs for real is admitted, as the
//! simulated machine says; a live test runs it. Commands of all other pages are understood, options and all.

use std::fs;

use clap::Parser as _;
use shiftwork_cli::args::Cli;

use crate::links::documents;
use crate::root;
use crate::session::{Session, shown_commands};
use crate::test_daemon::TestDaemon;

#[test]
fn tutorial_is_real() {
    Session::new("tutorial").follow("docs/tutorial.md");
}

#[test]
fn gallery_is_real() {
    Session::new("gallery").follow("docs/gallery.md");
}

#[test]
fn guide_for_robotics_engineers_is_real() {
    Session::new("robotics").follow("docs/guides/robotics.md");
}

#[test]
fn guide_for_researchers_is_real() {
    Session::new("research").follow("docs/guides/research.md");
}

#[test]
fn guide_for_operators_is_real() {
    let daemon = TestDaemon::start();
    let session = Session::new("operation");
    let socket = daemon.folder.path().join("socket");
    session
        .with_daemon(socket)
        .follow("docs/guides/operation.md");
}

/// How commands of other programs begin that the guides show, and what runs them.
const ELSEWHERE: [(&str, &str); 5] = [
    ("make deb", ".ci/deb, by the live test of the package"),
    (
        "sudo apt install ./target/deb/",
        "the live test of the package",
    ),
    ("sudo apt purge shiftwork", "the live test of the package"),
    (
        "sudo adduser $USER shiftwork",
        "the live test of the package",
    ),
    ("sudo systemctl ", "the live test of the package"),
];

#[test]
fn commands_that_guides_only_show_are_run_elsewhere() {
    let mut shown = 0;
    for page in [
        "tutorial",
        "guides/robotics",
        "guides/research",
        "guides/operation",
    ] {
        let page = format!("docs/{page}.md");
        for line in shown_commands(&page) {
            shown += 1;
            let is_ours = line.trim_start_matches("sudo ").starts_with("shiftwork ");
            let is_elsewhere = ELSEWHERE.iter().any(|(begins, _)| line.starts_with(begins));
            assert!(is_ours || is_elsewhere, "{page}: {line}");
        }
    }
    assert!(shown >= 20, "{shown}");
}

/// The lines of a page, indented or in a block, that are commands of `shiftwork`: words up to the remark, pipe or file that
/// follows.
fn our_commands(text: &str) -> Vec<Vec<String>> {
    let mut is_block = false;
    let mut commands = Vec::new();
    for line in text.lines() {
        is_block ^= line.starts_with("```");
        let code = line.strip_prefix("    ");
        let Some(code) = code.or(is_block.then_some(line)) else {
            continue;
        };
        let code = code.trim_start().trim_start_matches("$ ");
        let code = code.trim_start_matches("sudo ");
        if !code.starts_with("shiftwork ") {
            continue;
        }
        // Numbers that the shell or the reader puts there.
        let code = code.replace("$(pgrep -o rover)", "4711");
        let ends = ["   ", " # ", " | ", " > ", " && "];
        let end = ends.iter().filter_map(|end| code.find(end)).min();
        let words = code[..end.unwrap_or(code.len())].split_whitespace();
        let words = words.filter(|word| *word != "&");
        let number = |word: &str| if word == "N" { "1" } else { word }.to_owned();
        commands.push(words.map(number).collect());
    }
    commands
}

#[test]
fn every_command_of_the_documents_is_understood() {
    let mut pages = documents(&root().join("docs"));
    pages.push(root().join("README.md"));
    let mut tried = 0;
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for words in our_commands(&text) {
            tried += 1;
            if let Err(error) = Cli::try_parse_from(&words) {
                panic!("{}: {}: {error}", page.display(), words.join(" "));
            }
        }
    }
    assert!(tried >= 130, "{tried}");
}

#[test]
fn run_of_the_tutorial_is_admitted() {
    let session = Session::new("tutorial-live");
    session.follow("docs/tutorial.md");
    let shown = shown_commands("docs/tutorial.md");
    let runs = shown
        .iter()
        .filter_map(|it| it.strip_prefix("sudo shiftwork run "));
    let mut count = 0;
    for run in runs {
        let simulated = format!("run {run} --machine sim");
        let words: Vec<&str> = simulated.split_whitespace().collect();
        let output = session.shiftwork(&words);
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(
            printed.contains("admitted, guarantee hard"),
            "{run}: {printed}"
        );
        count += 1;
    }
    assert_eq!(count, 1);
}
