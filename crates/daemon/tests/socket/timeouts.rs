//! Timeouts of messages and replies.

use serde_json::json;
use shiftwork_daemon::socket::SocketLimits;
use shiftwork_model::Span;

use crate::test_server::{TestServer, message};

const INSTANT: Span = Span::from_ns(1);

#[test]
fn incomplete_message_times_out() {
    let mut test = TestServer::new(SocketLimits::default());
    let mut peer = test.connect();
    peer.send(b"{\"meth");
    test.serve();
    test.advance(Span::from_s(9));
    // Further bytes do not extend the timeout.
    peer.send(b"od");
    test.serve();
    test.advance(Span::from_s(1).saturating_sub(INSTANT));
    assert_eq!(peer.replies(), Vec::<serde_json::Value>::new());
    assert!(!peer.is_closed());
    test.advance(INSTANT);
    let replies = peer.replies();
    assert_eq!(replies[0]["error"], "org.shiftwork.Agent.Invalid");
    assert_eq!(
        replies[0]["parameters"]["reason"],
        "does not end within 10s"
    );
    assert!(peer.is_closed());
    assert_eq!(test.server.counters().closed, 1);
    assert!(!test.has_work());
}

#[test]
fn timeout_restarts_with_each_message() {
    let mut test = TestServer::new(SocketLimits::default());
    let mut peer = test.connect();
    let bytes = message("Observe", json!({}));
    let (first, rest) = bytes.split_at(5);
    peer.send(first);
    for round in 0..5 {
        test.serve();
        test.advance(Span::from_s(9));
        peer.send(&[rest, first].concat());
        test.serve();
        assert_eq!(peer.replies().len(), 1, "round {round}");
    }
    assert!(!peer.is_closed());
}

#[test]
fn idle_connection_has_no_timeout() {
    let mut test = TestServer::new(SocketLimits::default());
    let mut peer = test.connect();
    peer.call("Observe", json!({}));
    test.serve();
    for _ in 0..100 {
        test.advance(Span::from_s(86_400));
    }
    assert_eq!(test.server.wake_at(), shiftwork_model::Instant::NEVER);
    peer.call("Observe", json!({}));
    test.serve();
    assert_eq!(peer.replies().len(), 2);
}

#[test]
fn slow_reader_gets_all_replies_and_delays_no_other() {
    let mut test = TestServer::new(SocketLimits::default());
    let mut slow = test.connect();
    let mut quick = test.connect();
    // A million bytes of text each.
    for _ in 0..3 {
        slow.call("GetRecord", json!({ "seconds": 750_000 }));
    }
    // Its next message stays incomplete for longer than the timeout, which does not count while reading is suspended.
    let next = message("Observe", json!({}));
    slow.send(&next[..7]);
    test.serve();
    assert_eq!(test.server.counters().calls, 1, "one long reply at a time");
    let mut taken = 0;
    for round in 0.. {
        test.advance(Span::from_s(14));
        quick.call("Observe", json!({}));
        test.serve();
        assert_eq!(quick.replies().len(), 1, "round {round}");
        let before = taken;
        taken += slow.read(50_000);
        if before <= 2_000_000 && taken > 2_000_000 {
            slow.send(&next[7..]);
        }
        if taken > 3_000_000 {
            break;
        }
        assert!(round < 100, "{taken} bytes in {round} rounds");
    }
    test.serve();
    let replies = slow.replies();
    assert_eq!(replies.len(), 4);
    assert!(
        replies.iter().all(|reply| reply.get("error").is_none()),
        "{:?}",
        replies[3]
    );
    assert_eq!(test.server.counters().aborted, 0);
    assert_eq!(test.server.counters().closed, 0);
}

#[test]
fn connection_with_peer_that_does_not_read_is_aborted() {
    let mut test = TestServer::new(SocketLimits::default());
    let mut peer = test.connect();
    let mut other = test.connect();
    peer.call("GetRecord", json!({ "seconds": 3_000_000 }));
    test.serve();
    test.advance(Span::from_s(29));
    assert!(peer.read(100_000) > 0);
    test.serve();
    test.advance(Span::from_s(29));
    assert_eq!(test.server.connections(), 2, "some bytes were sent");
    test.advance(Span::from_s(30));
    assert_eq!(test.server.connections(), 1);
    assert_eq!(test.server.counters().aborted, 1);
    assert!(!test.has_work());
    other.call("Observe", json!({}));
    test.serve();
    assert_eq!(other.replies().len(), 1);
}
