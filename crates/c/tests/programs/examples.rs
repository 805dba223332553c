//! The programs in `examples/programs`: let in, refused, and without an agent.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use shiftwork_client::{Call, Reservation};
use shiftwork_model::Span;

use crate::built::{Installed, has, root, said};
use crate::daemon::{ReceivedCall, TestDaemon, methods, with_daemon};

fn source(name: &str) -> PathBuf {
    root().join("examples/programs").join(name)
}

/// What programs are expected to do, whichever language they are in.
fn check(run: &dyn Fn(Option<&TestDaemon>) -> Output) {
    it_does_its_jobs(run);
    it_goes_on_where_a_change_is_refused(run);
    it_says_why_it_is_refused(run);

    let output = run(None);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("no agent listens at"),
        "{}",
        said(&output)
    );
}

fn it_does_its_jobs(run: &dyn Fn(Option<&TestDaemon>) -> Output) {
    let (calls, output) = with_daemon(|daemon| run(Some(daemon)));
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).starts_with("guarantee: bounded-tardiness\nskipped releases: "));
    assert_eq!(methods(&calls), ["Admit", "Change", "Dismiss"]);
    let [admit, change, _] = &calls[..] else {
        unreachable!("these are three");
    };
    assert_eq!(costs(admit), Span::from_ms(2));
    assert_eq!(costs(change), Span::from_ms(4));
    let Call::Admit(admit) = &admit.call else {
        unreachable!("it is the first");
    };
    assert_eq!(admit.name, "control");
    assert!(admit.thread.is_some());
    assert_eq!(admit.reservation.period, Span::from_ms(10));
}

fn costs(asked: &ReceivedCall) -> Span {
    let reservation: &Reservation = match &asked.call {
        Call::Admit(admit) => &admit.reservation,
        Call::Change(change) => &change.reservation,
        other => panic!("{other:?}"),
    };
    reservation.cost
}

fn it_goes_on_where_a_change_is_refused(run: &dyn Fn(Option<&TestDaemon>) -> Output) {
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

fn it_says_why_it_is_refused(run: &dyn Fn(Option<&TestDaemon>) -> Output) {
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
fn in_c() {
    if !has("cc", "the example in C was not tested") {
        return;
    }
    let library = Installed::new();
    let program = library.link(&source("control.c"));
    check(&|daemon| library.run(&program, daemon));
}

#[path = "../../../../examples/programs/control.rs"]
mod control;

/// Says to this test that it is to be the example.
const PLAYS: &str = "SHIFTWORK_TEST_PLAYS";

#[test]
fn in_rust() {
    if std::env::var_os(PLAYS).is_some() {
        control::main();
        std::process::exit(0);
    }
    let test = std::env::current_exe().unwrap();
    check(&|daemon| {
        let nowhere = Path::new("/nowhere/agent.sock");
        let mut output = Command::new(&test)
            .args(["--exact", "examples::in_rust", "--nocapture", "--quiet"])
            .env(PLAYS, "control.rs")
            .env(
                "SHIFTWORK_SOCKET",
                daemon.map_or(nowhere, TestDaemon::socket),
            )
            .output()
            .unwrap();
        // What the test says of itself comes first.
        let text = String::from_utf8(output.stdout).unwrap();
        let own = text.find("guarantee: ").unwrap_or(text.len());
        output.stdout = text[own..].into();
        output
    });
}
