//! Calls and replies.

use std::net::Shutdown;

use serde_json::{Value, json};
use shiftwork_daemon::socket::SocketLimits;

use crate::test_server::{TestServer, message};

#[test]
fn calls_are_answered_in_order() {
    let mut test = TestServer::new(SocketLimits::default());
    let mut peer = test.connect();
    for thread in 0..100 {
        peer.call(
            "Admit",
            json!({ "name": "a", "thread": thread, "reservation": { "cost": 1, "period": 2 } }),
        );
    }
    test.serve();
    let tasks: Vec<_> = peer
        .replies()
        .iter()
        .map(|reply| reply["parameters"]["task"].clone())
        .collect();
    assert_eq!(tasks, (0..100).map(Value::from).collect::<Vec<_>>());
    assert!(!peer.is_closed());
    assert_eq!(test.server.counters().calls, 100);
}

#[test]
fn message_sent_byte_by_byte_is_answered() {
    let mut test = TestServer::new(SocketLimits::default());
    let mut peer = test.connect();
    let bytes = [
        message("Observe", json!({})),
        message("GetStatus", json!({})),
        message("GetRecord", json!({ "seconds": 3.0 })),
    ]
    .concat();
    for byte in bytes {
        peer.send(&[byte]);
        test.serve();
    }
    let replies = peer.replies();
    assert_eq!(
        replies[0],
        json!({ "parameters": { "task": std::process::id() } })
    );
    assert_eq!(replies[1]["error"], "org.shiftwork.Agent.Missing");
    assert_eq!(replies[2], json!({ "parameters": { "record": "eHh4" } }));
    assert_eq!(replies.len(), 3);
}

#[test]
fn half_closed_connection_gets_all_replies() {
    let mut test = TestServer::new(SocketLimits::default());
    let mut peer = test.connect();
    for _ in 0..3 {
        peer.call("GetRecord", json!({ "seconds": 300_000 }));
    }
    peer.send(b"{\"method\":");
    peer.stream.shutdown(Shutdown::Write).unwrap();
    let mut replies = 0;
    while !peer.is_closed() {
        test.serve();
        replies += peer.replies().len();
    }
    assert_eq!(replies, 3, "the incomplete message is dropped");
    assert_eq!(test.server.connections(), 0);
    assert!(!test.has_work());
}

#[test]
fn calls_sent_before_close_are_carried_out() {
    let mut test = TestServer::new(SocketLimits::default());
    let mut peer = test.connect();
    for task in 0..50 {
        peer.send(
            format!(
                "{{\"method\":\"org.shiftwork.Agent.Dismiss\",\"oneway\":true,\"parameters\":{{\"task\":{task}}}}}\0"
            )
            .as_bytes(),
        );
    }
    drop(peer);
    test.serve();
    assert_eq!(test.echo.dismissed, (0..50).collect::<Vec<_>>());
    assert_eq!(test.server.connections(), 0);
    assert!(!test.has_work());
}

#[test]
fn connection_closed_in_the_middle_is_removed() {
    let mut test = TestServer::new(SocketLimits::default());
    let mut in_a_message = test.connect();
    in_a_message.send(b"{\"method\":\"org.shift");
    let mut in_an_answer = test.connect();
    in_an_answer.call("GetRecord", json!({ "seconds": 5_000_000 }));
    let mut silent = test.connect();
    test.serve();
    assert!(in_an_answer.read(100_000) > 0);
    assert_eq!(test.server.connections(), 3);
    drop((in_a_message, in_an_answer));
    test.serve();
    assert_eq!(test.server.connections(), 1);
    silent.call("Observe", json!({}));
    test.serve();
    assert_eq!(silent.replies().len(), 1);
}

#[test]
fn work_per_serve_is_bounded() {
    let limits = SocketLimits {
        batch: 3,
        calls: 2,
        ..SocketLimits::default()
    };
    let mut test = TestServer::new(limits);
    let mut peers: Vec<_> = (0..10).map(|_| test.connect()).collect();
    for peer in &mut peers {
        peer.call("Observe", json!({}));
    }
    let mut rounds = 0;
    while test.has_work() {
        let before = *test.server.counters();
        test.server.serve(test.now, &mut test.echo).unwrap();
        let after = *test.server.counters();
        assert!(after.calls <= before.calls + 2);
        assert!(after.accepted <= before.accepted + 3);
        rounds += 1;
    }
    assert!((4..=20).contains(&rounds), "{rounds} rounds");
    for peer in &mut peers {
        assert_eq!(peer.replies().len(), 1);
    }
}
