//! The tutorial and the guides: their commands print what the pages say. What they only show is understood, and what they
//! run for real is admitted, as the simulated machine says; the live tests run such commands.

use clap::Parser as _;
use shiftwork_cli::args::Cli;

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
fn commands_that_guides_only_show_are_understood() {
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
            if ELSEWHERE.iter().any(|(begins, _)| line.starts_with(begins)) {
                continue;
            }
            // What the shell would put there is a number.
            let line = line.replace("$(pgrep -o rover)", "4711");
            let words = line.trim_start_matches("sudo ").split_whitespace();
            if let Err(error) = Cli::try_parse_from(words) {
                panic!("{page}: {line}: {error}");
            }
        }
    }
    assert!(shown >= 20, "{shown}");
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
