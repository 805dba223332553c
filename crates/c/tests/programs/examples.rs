//! The programs in `examples/programs`: admitted, refused, and without a daemon.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use shiftwork_client::{Call, Reservation};
use shiftwork_model::Span;

use crate::built::{Installed, has, root, said};
use crate::daemon::{ReceivedCall, TestDaemon, methods, with_daemon};

fn source(name: &str) -> PathBuf {
    root().join("examples/programs").join(name)
}

/// The expected behaviour of a program in any language.
fn check(run: &dyn Fn(Option<&TestDaemon>) -> Output) {
    admitted_program_runs_its_jobs(run);
    refused_change_keeps_reservation(run);
    refused_program_prints_reason(run);

    let output = run(None);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("no daemon listens at"),
        "{}",
        said(&output)
    );
}

fn admitted_program_runs_its_jobs(run: &dyn Fn(Option<&TestDaemon>) -> Output) {
    let (calls, output) = with_daemon(|daemon| run(Some(daemon)));
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).starts_with("guarantee: bounded-tardiness\nskipped releases: "));
    assert_eq!(methods(&calls), ["Admit", "Change", "Dismiss"]);
    let [admit, change, _] = &calls[..] else {
        unreachable!("there are three calls");
    };
    assert_eq!(cost_of(admit), Span::from_ms(2));
    assert_eq!(cost_of(change), Span::from_ms(4));
    let Call::Admit(admit) = &admit.call else {
        unreachable!("the first call is Admit");
    };
    assert_eq!(admit.name, "control");
    assert!(admit.thread.is_some());
    assert_eq!(admit.reservation.period, Span::from_ms(10));
}

fn cost_of(received: &ReceivedCall) -> Span {
    let reservation: &Reservation = match &received.call {
        Call::Admit(admit) => &admit.reservation,
        Call::Change(change) => &change.reservation,
        other => panic!("{other:?}"),
    };
    reservation.cost
}

fn refused_change_keeps_reservation(run: &dyn Fn(Option<&TestDaemon>) -> Output) {
    let (calls, output) = with_daemon(|daemon| {
        let _other = daemon.occupy(Span::from_ms(7));
        run(Some(daemon))
    });
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains(
            "it goes on with 2 ms: refused: tasks `other` and `control` may run only on CPU 0"
        ),
        "{}",
        said(&output)
    );
    assert_eq!(
        methods(&calls),
        ["Admit", "Admit", "Change!", "Dismiss", "Dismiss"]
    );
}

fn refused_program_prints_reason(run: &dyn Fn(Option<&TestDaemon>) -> Output) {
    let (calls, output) = with_daemon(|daemon| {
        let _other = daemon.occupy(Span::from_ms(9));
        run(Some(daemon))
    });
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains(
            "refused: tasks `other` and `control` may run only on CPU 0 and need 1.10 CPUs there"
        ),
        "{}",
        said(&output)
    );
    assert_eq!(methods(&calls), ["Admit", "Admit!", "Dismiss"]);
}

#[test]
fn example_in_c_behaves_as_expected() {
    if !has("cc", "the example in C was not tested") {
        return;
    }
    let library = Installed::new();
    let program = library.link(&source("control.c"));
    check(&|daemon| library.run(&program, daemon));
}

#[path = "../../../../examples/programs/control.rs"]
mod control;

/// Environment variable that makes this test run the example.
const RUNS_EXAMPLE: &str = "SHIFTWORK_TEST_RUNS_EXAMPLE";

#[test]
fn example_in_rust_behaves_as_expected() {
    if std::env::var_os(RUNS_EXAMPLE).is_some() {
        control::main();
        std::process::exit(0);
    }
    let test = std::env::current_exe().unwrap();
    check(&|daemon| {
        let nowhere = Path::new("/nowhere/daemon.sock");
        let mut output = Command::new(&test)
            .args([
                "--exact",
                "examples::example_in_rust_behaves_as_expected",
                "--nocapture",
                "--quiet",
            ])
            .env(RUNS_EXAMPLE, "control.rs")
            .env(
                "SHIFTWORK_SOCKET",
                daemon.map_or(nowhere, TestDaemon::socket),
            )
            .output()
            .unwrap();
        // Skips the output of the test harness.
        let text = String::from_utf8(output.stdout).unwrap();
        let own = text.find("guarantee: ").unwrap_or(text.len());
        output.stdout = text[own..].into();
        output
    });
}
