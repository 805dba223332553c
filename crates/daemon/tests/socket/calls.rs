//! Calls and answers.

use std::net::Shutdown;

use serde_json::{Value, json};
use shiftwork_daemon::socket::Limits;

use crate::bench::{Bench, message};

#[test]
fn calls_are_answered_in_their_order() {
    let mut bench = Bench::new(Limits::default());
    let mut peer = bench.connect();
    for thread in 0..100 {
        peer.call(
            "Admit",
            json!({ "name": "a", "thread": thread, "reservation": { "cost": 1, "period": 2 } }),
        );
    }
    bench.serve();
    let tasks: Vec<_> = peer
        .hear()
        .iter()
        .map(|reply| reply["parameters"]["task"].clone())
        .collect();
    assert_eq!(tasks, (0..100).map(Value::from).collect::<Vec<_>>());
    assert!(!peer.is_closed());
    assert_eq!(bench.server.counters().calls, 100);
}

#[test]
fn messages_may_come_byte_by_byte() {
    let mut bench = Bench::new(Limits::default());
    let mut peer = bench.connect();
    let bytes = [
        message("Observe", json!({})),
        message("GetStatus", json!({})),
        message("GetRecord", json!({ "seconds": 3.0 })),
    ]
    .concat();
    for byte in bytes {
        peer.say(&[byte]);
        bench.serve();
    }
    let replies = peer.hear();
    assert_eq!(
        replies[0],
        json!({ "parameters": { "task": std::process::id() } })
    );
    assert_eq!(replies[1]["error"], "org.shiftwork.Agent.Missing");
    assert_eq!(replies[2], json!({ "parameters": { "record": "xxx" } }));
    assert_eq!(replies.len(), 3);
}

#[test]
fn whoever_has_said_all_gets_all_answers() {
    let mut bench = Bench::new(Limits::default());
    let mut peer = bench.connect();
    for _ in 0..3 {
        peer.call("GetRecord", json!({ "seconds": 300_000 }));
    }
    peer.say(b"{\"method\":");
    peer.stream.shutdown(Shutdown::Write).unwrap();
    let mut heard = 0;
    while !peer.is_closed() {
        bench.serve();
        heard += peer.hear().len();
    }
    assert_eq!(heard, 3, "and what is unfinished is forgotten");
    assert_eq!(bench.server.connections(), 0);
    assert!(!bench.has_work());
}

#[test]
fn what_was_asked_before_somebody_left_is_done() {
    let mut bench = Bench::new(Limits::default());
    let mut peer = bench.connect();
    for task in 0..50 {
        peer.say(
            format!(
                "{{\"method\":\"org.shiftwork.Agent.Dismiss\",\"oneway\":true,\"parameters\":{{\"task\":{task}}}}}\0"
            )
            .as_bytes(),
        );
    }
    drop(peer);
    bench.serve();
    assert_eq!(bench.echo.dismissed, (0..50).collect::<Vec<_>>());
    assert_eq!(bench.server.connections(), 0);
    assert!(!bench.has_work());
}

#[test]
fn whoever_leaves_in_the_middle_is_forgotten() {
    let mut bench = Bench::new(Limits::default());
    let mut in_a_message = bench.connect();
    in_a_message.say(b"{\"method\":\"org.shift");
    let mut in_an_answer = bench.connect();
    in_an_answer.call("GetRecord", json!({ "seconds": 5_000_000 }));
    let mut silent = bench.connect();
    bench.serve();
    assert!(in_an_answer.take(100_000) > 0);
    assert_eq!(bench.server.connections(), 3);
    drop((in_a_message, in_an_answer));
    bench.serve();
    assert_eq!(bench.server.connections(), 1);
    silent.call("Observe", json!({}));
    bench.serve();
    assert_eq!(silent.hear().len(), 1);
}

#[test]
fn one_turn_is_bounded() {
    let limits = Limits {
        turn: 3,
        ..Limits::default()
    };
    let mut bench = Bench::new(limits);
    let mut peers: Vec<_> = (0..10).map(|_| bench.connect()).collect();
    for peer in &mut peers {
        peer.call("Observe", json!({}));
    }
    let mut rounds = 0;
    while bench.has_work() {
        let before = *bench.server.counters();
        bench.server.serve(bench.now, &mut bench.echo).unwrap();
        let after = *bench.server.counters();
        assert!(after.calls <= before.calls + 3);
        assert!(after.entered <= before.entered + 3);
        rounds += 1;
    }
    assert!((4..=20).contains(&rounds), "{rounds} rounds");
    for peer in &mut peers {
        assert_eq!(peer.hear().len(), 1);
    }
}
