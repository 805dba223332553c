//! Many connections at once, and what is left of them: in a process of its own, since all threads of a
//! process share its descriptors.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "socket/bench.rs"]
mod bench;
#[path = "socket/echo.rs"]
mod echo;

use std::io::IoSlice;
use std::mem::MaybeUninit;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use shiftwork_daemon::socket::Limits;
use shiftwork_model::{Instant, RandomStream, Span};

use bench::{Bench, Talker, message};

/// How many there are at once.
const CROWD: usize = 1_000;

/// How many descriptors this process has.
fn descriptors() -> usize {
    // The folder itself is one more while it is read.
    std::fs::read_dir("/proc/self/fd").unwrap().count() - 1
}

/// Allows so many descriptors, or as many as may be; returns how many these are.
fn allow(descriptors: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let allowed = limit
        .maximum
        .map_or(descriptors, |most| most.min(descriptors));
    let limit = Rlimit {
        current: Some(allowed),
        ..limit
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    allowed
}

#[test]
fn many_are_served_and_nothing_is_left_of_them() {
    // Both ends of each connection are here.
    let allowed = allow(2 * CROWD as u64 + 100);
    assert!(
        allowed > 2 * CROWD as u64,
        "only {allowed} descriptors are allowed here"
    );
    let mut bench = Bench::new(Limits::default());
    let before = descriptors();
    a_crowd_is_served(&mut bench);
    assert_eq!(descriptors(), before);
    descriptors_that_are_sent_are_closed(&mut bench);
    assert_eq!(descriptors(), before);
    coming_and_going_leaves_nothing(&mut bench);
    assert_eq!(descriptors(), before);
    without_descriptors_the_server_waits(&mut bench);
    assert_eq!(descriptors(), before);
    drop(bench);
    assert_eq!(
        descriptors(),
        before - 3,
        "the listener, its lock and what watches it"
    );
}

fn a_crowd_is_served(bench: &mut Bench) {
    let mut crowd: Vec<Talker> = (0..CROWD).map(|_| bench.connect()).collect();
    for (number, peer) in crowd.iter_mut().enumerate() {
        peer.call("Dismiss", json!({ "task": number }));
    }
    bench.serve();
    assert_eq!(bench.server.connections(), CROWD);
    for round in 0..2 {
        for (number, peer) in crowd.iter_mut().enumerate() {
            assert_eq!(
                peer.hear(),
                [json!({ "parameters": {} })],
                "round {round}, {number}"
            );
            peer.call("Dismiss", json!({ "task": number }));
        }
        bench.serve();
    }
    assert_eq!(bench.echo.dismissed.len(), 3 * CROWD);
    drop(crowd);
    bench.serve();
    assert_eq!(bench.server.connections(), 0);
    bench.pass(Span::from_s(100));
}

/// Whoever sends descriptors along does not use up ours.
fn descriptors_that_are_sent_are_closed(bench: &mut Bench) {
    let mut peer = bench.connect();
    let file = std::fs::File::open("/dev/null").unwrap();
    for _ in 0..20 {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut along = SendAncillaryBuffer::new(&mut space);
        let sent = [std::os::fd::AsFd::as_fd(&file)];
        assert!(along.push(SendAncillaryMessage::ScmRights(&sent)));
        let bytes = message("Observe", json!({}));
        let said = sendmsg(
            &peer.stream,
            &[IoSlice::new(&bytes)],
            &mut along,
            SendFlags::empty(),
        );
        assert_eq!(said, Ok(bytes.len()));
    }
    let before = descriptors();
    bench.serve();
    assert_eq!(peer.hear().len(), 20);
    assert_eq!(descriptors(), before + 1, "the connection");
    drop(peer);
    bench.serve();
}

/// Peers that end in every way.
fn coming_and_going_leaves_nothing(bench: &mut Bench) {
    let seed = 1;
    let mut stream = RandomStream::new(seed, 4, 0);
    for step in 0..1_000 {
        let mut peer = bench.connect();
        match stream.below(6) {
            0 => {}
            1 => peer.say(b"nonsense\0"),
            2 => peer.say(&message("GetRecord", json!({ "seconds": 400_000 }))),
            3 => peer.say(&message("Observe", json!({}))),
            4 => peer.say(&message("Observe", json!({})).repeat(3)[..100]),
            _ => peer.stream.shutdown(std::net::Shutdown::Both).unwrap(),
        }
        if stream.below(2) == 0 {
            bench.serve();
        }
        if stream.below(2) == 0 {
            peer.hear();
        }
        drop(peer);
        if stream.below(10) == 0 {
            bench.pass(Span::from_s(1));
            assert_eq!(bench.server.connections(), 0, "seed {seed}, step {step}");
        }
    }
    bench.pass(Span::from_s(100));
    assert_eq!(bench.server.connections(), 0);
    assert_eq!(bench.server.wake_at(), Instant::NEVER);
}

/// Whoever comes while there are no descriptors waits, and the server does not try all the time.
fn without_descriptors_the_server_waits(bench: &mut Bench) {
    let mut first = bench.connect();
    bench.serve();
    let mut peers: Vec<Talker> = (0..10).map(|_| bench.connect()).collect();
    // The limit is on their numbers: whatever is free below it is used up but for four.
    allow(descriptors() as u64 + 50);
    let null = || std::fs::File::open("/dev/null").ok();
    let mut used_up: Vec<_> = std::iter::from_fn(null).collect();
    used_up.truncate(used_up.len() - 4);
    bench.serve();
    assert_eq!(bench.server.connections(), 5);
    assert_eq!(bench.server.counters().shut, 1);
    assert!(!bench.has_work(), "although somebody waits");
    first.call("Observe", json!({}));
    bench.serve();
    assert_eq!(first.hear().len(), 1, "whoever is in is served");
    bench.pass(Span::from_ms(100));
    assert_eq!(bench.server.counters().shut, 2);
    drop(used_up);
    assert!(!bench.has_work());
    bench.pass(Span::from_ms(100));
    assert_eq!(bench.server.connections(), 11);
    for peer in &mut peers {
        peer.call("Observe", json!({}));
    }
    bench.serve();
    for peer in &mut peers {
        assert_eq!(peer.hear().len(), 1);
    }
    assert!(!first.is_closed());
    drop((first, peers));
    bench.serve();
}
