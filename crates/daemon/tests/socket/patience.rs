//! What takes too long, and what may take as long as it likes.

use serde_json::json;
use shiftwork_daemon::socket::Limits;
use shiftwork_model::Span;

use crate::bench::{Bench, message};

const INSTANT: Span = Span::from_ns(1);

#[test]
fn a_message_has_to_end_in_time() {
    let mut bench = Bench::new(Limits::default());
    let mut peer = bench.connect();
    peer.say(b"{\"meth");
    bench.serve();
    bench.pass(Span::from_s(9));
    // A byte now and then makes no difference.
    peer.say(b"od");
    bench.serve();
    bench.pass(Span::from_s(1).saturating_sub(INSTANT));
    assert_eq!(peer.hear(), Vec::<serde_json::Value>::new());
    assert!(!peer.is_closed());
    bench.pass(INSTANT);
    let replies = peer.hear();
    assert_eq!(replies[0]["error"], "org.shiftwork.Agent.Invalid");
    assert_eq!(
        replies[0]["parameters"]["reason"],
        "does not end within 10s"
    );
    assert!(peer.is_closed());
    assert_eq!(bench.server.counters().ended, 1);
    assert!(!bench.has_work());
}

#[test]
fn each_message_has_its_own_time() {
    let mut bench = Bench::new(Limits::default());
    let mut peer = bench.connect();
    let bytes = message("Observe", json!({}));
    let (first, rest) = bytes.split_at(5);
    peer.say(first);
    for round in 0..5 {
        bench.serve();
        bench.pass(Span::from_s(9));
        peer.say(&[rest, first].concat());
        bench.serve();
        assert_eq!(peer.hear().len(), 1, "round {round}");
    }
    assert!(!peer.is_closed());
}

#[test]
fn whoever_says_nothing_may_stay() {
    let mut bench = Bench::new(Limits::default());
    let mut peer = bench.connect();
    peer.call("Observe", json!({}));
    bench.serve();
    for _ in 0..100 {
        bench.pass(Span::from_s(86_400));
    }
    assert_eq!(bench.server.wake_at(), shiftwork_model::Instant::NEVER);
    peer.call("Observe", json!({}));
    bench.serve();
    assert_eq!(peer.hear().len(), 2);
}

#[test]
fn a_slow_reader_gets_everything_and_delays_nobody() {
    let mut bench = Bench::new(Limits::default());
    let mut slow = bench.connect();
    let mut quick = bench.connect();
    for _ in 0..3 {
        slow.call("GetRecord", json!({ "seconds": 1_000_000 }));
    }
    // Its next message waits half-way for longer than messages may take: that is not its fault.
    let next = message("Observe", json!({}));
    slow.say(&next[..7]);
    bench.serve();
    assert_eq!(
        bench.server.counters().calls,
        1,
        "one long answer at a time"
    );
    let mut taken = 0;
    for round in 0.. {
        bench.pass(Span::from_s(14));
        quick.call("Observe", json!({}));
        bench.serve();
        assert_eq!(quick.hear().len(), 1, "round {round}");
        let before = taken;
        taken += slow.take(50_000);
        if before <= 2_000_000 && taken > 2_000_000 {
            slow.say(&next[7..]);
        }
        if taken > 3_000_000 {
            break;
        }
        assert!(round < 100, "{taken} bytes in {round} rounds");
    }
    bench.serve();
    let heard = slow.hear();
    assert_eq!(heard.len(), 4);
    assert!(
        heard.iter().all(|reply| reply.get("error").is_none()),
        "{:?}",
        heard[3]
    );
    assert_eq!(bench.server.counters().cut, 0);
    assert_eq!(bench.server.counters().ended, 0);
}

#[test]
fn whoever_does_not_read_is_cut() {
    let mut bench = Bench::new(Limits::default());
    let mut peer = bench.connect();
    let mut other = bench.connect();
    peer.call("GetRecord", json!({ "seconds": 3_000_000 }));
    bench.serve();
    bench.pass(Span::from_s(29));
    assert!(peer.take(100_000) > 0);
    bench.serve();
    bench.pass(Span::from_s(29));
    assert_eq!(bench.server.connections(), 2, "some of it went");
    bench.pass(Span::from_s(30));
    assert_eq!(bench.server.connections(), 1);
    assert_eq!(bench.server.counters().cut, 1);
    assert!(!bench.has_work());
    other.call("Observe", json!({}));
    bench.serve();
    assert_eq!(other.hear().len(), 1);
}
