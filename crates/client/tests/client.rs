//! The client's results for valid replies, invalid replies and no reply.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scripted_daemon;

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use shiftwork_client::{Client, Error, Failure, Reservation, ServiceError};
use shiftwork_model::Span;

use scripted_daemon::with_replies;

#[test]
fn calls_are_sent_and_results_returned() {
    let received = with_replies(
        &[
            b"{\"parameters\":{\"task\":3,\"guarantee\":\"hard\"}}\0",
            b"{\"parameters\":{\"guarantee\":\"none\"}}\0",
            b"{\"parameters\":{}}\0",
            b"{}\0",
            b"{\"parameters\":{\"explanations\":[\"one\"]}}\0",
        ],
        |path| {
            let mut client = Client::connect(path).unwrap();
            let reservation = Reservation::new(Span::from_ms(1), Span::from_ms(10));
            let admitted = client.admit("imu", None, &reservation).unwrap();
            assert_eq!((admitted.task, admitted.guarantee.as_str()), (3, "hard"));
            assert_eq!(client.change(3, &reservation).unwrap(), "none");
            client.dismiss(3).unwrap();
            client.dismiss(4).unwrap();
            assert_eq!(client.explain(Some(1)).unwrap(), ["one"]);
        },
    );
    assert_eq!(
        received,
        concat!(
            r#"{"method":"org.shiftwork.Agent.Admit","parameters":{"name":"imu","#,
            r#""reservation":{"cost":1000000,"period":10000000}}}"#,
            "\0",
            r#"{"method":"org.shiftwork.Agent.Change","parameters":{"task":3,"#,
            r#""reservation":{"cost":1000000,"period":10000000}}}"#,
            "\0",
            r#"{"method":"org.shiftwork.Agent.Dismiss","parameters":{"task":3}}"#,
            "\0",
            r#"{"method":"org.shiftwork.Agent.Dismiss","parameters":{"task":4}}"#,
            "\0",
            r#"{"method":"org.shiftwork.Agent.Explain","parameters":{"count":1}}"#,
            "\0",
        )
    );
}

#[test]
fn errors_and_invalid_replies_are_distinguished() {
    with_replies(
        &[
            b"{\"error\":\"org.shiftwork.Agent.Refused\",\"parameters\":{\"reason\":\"full\"}}\0",
            b"{\"error\":\"org.varlink.service.MethodNotFound\",\"parameters\":{\"method\":\"m\"}}\0",
            b"{\"error\":\"org.example.Odd\"}\0",
            b"{\"parameters\":{\"explanations\":7}}\0",
            b"[1\0",
        ],
        |path| {
            let mut client = Client::connect(path).unwrap();
            let mut answer = || client.explain(None).unwrap_err();
            assert!(
                matches!(answer(), Failure::Agent(Error::Refused { reason }) if reason == "full")
            );
            assert!(matches!(
                answer(),
                Failure::Service(ServiceError::MethodNotFound { method }) if method == "m"
            ));
            for _ in 0..3 {
                assert!(matches!(answer(), Failure::Garbled { .. }));
            }
        },
    );
}

#[test]
fn broken_connection_is_not_used_again() {
    with_replies(&[b"{\"parameters\":"], |path| {
        let mut client = Client::connect(path).unwrap();
        for _ in 0..2 {
            let failure = client.status().unwrap_err();
            assert!(matches!(failure, Failure::Lost { .. }), "{failure}");
        }
    });
}

#[test]
fn error_sent_before_close_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("daemon.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let mut client = Client::connect(&path).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream
        .write_all(
            b"{\"error\":\"org.shiftwork.Agent.Exhausted\",\"parameters\":{\"limit\":\"7\"}}\0",
        )
        .unwrap();
    drop(stream);
    let failure = client.status().unwrap_err();
    assert!(
        matches!(&failure, Failure::Agent(Error::Exhausted { limit }) if limit == "7"),
        "{failure}"
    );
}

#[test]
fn missing_daemon_and_missing_permission_are_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("daemon.sock");
    let has_no_daemon = |path: &Path| {
        let failure = Client::connect(path).unwrap_err();
        matches!(failure, Failure::NoAgent { socket } if socket == path)
    };
    assert!(has_no_daemon(&path), "no file");
    drop(UnixListener::bind(&path).unwrap());
    assert!(has_no_daemon(&path), "the file of a dead daemon");

    let _listener = UnixListener::bind(folder.path().join("other.sock")).unwrap();
    fs::set_permissions(
        folder.path().join("other.sock"),
        Permissions::from_mode(0o0),
    )
    .unwrap();
    if rustix::process::geteuid().is_root() {
        // Root may connect to any socket; the message for other users has a test in `failure.rs`.
        assert!(Client::connect(folder.path().join("other.sock")).is_ok());
        return;
    }
    let failure = Client::connect(folder.path().join("other.sock")).unwrap_err();
    assert!(
        matches!(failure, Failure::NotPermitted { group: Some(_), .. }),
        "{failure}"
    );
}
