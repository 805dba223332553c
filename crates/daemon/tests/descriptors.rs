//! Many connections at once, and the descriptors that remain: in a process of its own, since descriptors are shared by all
//! threads of a process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "socket/echo_service.rs"]
mod echo_service;
#[path = "socket/test_server.rs"]
mod test_server;

use std::io::IoSlice;
use std::mem::MaybeUninit;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use shiftwork_daemon::socket::SocketLimits;
use shiftwork_model::{Instant, RandomStream, Span};

use test_server::{TestClient, TestServer, message};

/// Number of simultaneous clients.
const CROWD: usize = 1_000;

/// Number of open descriptors of this process.
fn descriptors() -> usize {
    // The folder has one itself while it is read.
    std::fs::read_dir("/proc/self/fd").unwrap().count() - 1
}

/// Sets the limit of descriptors, at most to the hard limit; returns the new limit.
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
fn closed_connections_leave_no_descriptors() {
    // Both ends of each connection are in this process.
    let allowed = allow(2 * CROWD as u64 + 100);
    assert!(
        allowed > 2 * CROWD as u64,
        "only {allowed} descriptors are allowed here"
    );
    let mut test = TestServer::new(SocketLimits::default());
    let before = descriptors();
    serve_many_clients(&mut test);
    assert_eq!(descriptors(), before);
    receive_passed_descriptors(&mut test);
    assert_eq!(descriptors(), before);
    open_and_close_connections(&mut test);
    assert_eq!(descriptors(), before);
    run_out_of_descriptors(&mut test);
    assert_eq!(descriptors(), before);
    drop(test);
    assert_eq!(
        descriptors(),
        before - 3,
        "the listener, its lock and epoll"
    );
}

fn serve_many_clients(test: &mut TestServer) {
    let mut crowd: Vec<TestClient> = (0..CROWD).map(|_| test.connect()).collect();
    for (number, peer) in crowd.iter_mut().enumerate() {
        peer.call("Dismiss", json!({ "task": number }));
    }
    test.serve();
    assert_eq!(test.server.connections(), CROWD);
    for round in 0..2 {
        for (number, peer) in crowd.iter_mut().enumerate() {
            assert_eq!(
                peer.replies(),
                [json!({ "parameters": {} })],
                "round {round}, {number}"
            );
            peer.call("Dismiss", json!({ "task": number }));
        }
        test.serve();
    }
    assert_eq!(test.echo.dismissed.len(), 3 * CROWD);
    drop(crowd);
    test.serve();
    assert_eq!(test.server.connections(), 0);
    test.advance(Span::from_s(100));
}

/// Descriptors passed by a client are closed.
fn receive_passed_descriptors(test: &mut TestServer) {
    let mut peer = test.connect();
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
    test.serve();
    assert_eq!(peer.replies().len(), 20);
    assert_eq!(descriptors(), before + 1, "the connection");
    drop(peer);
    test.serve();
}

/// Connections that end in every way.
fn open_and_close_connections(test: &mut TestServer) {
    let seed = 1;
    let mut stream = RandomStream::new(seed, 4, 0);
    for step in 0..1_000 {
        let mut peer = test.connect();
        match stream.below(6) {
            0 => {}
            1 => peer.send(b"nonsense\0"),
            2 => peer.send(&message("GetRecord", json!({ "seconds": 400_000 }))),
            3 => peer.send(&message("Observe", json!({}))),
            4 => peer.send(&message("Observe", json!({})).repeat(3)[..100]),
            _ => peer.stream.shutdown(std::net::Shutdown::Both).unwrap(),
        }
        if stream.below(2) == 0 {
            test.serve();
        }
        if stream.below(2) == 0 {
            peer.replies();
        }
        drop(peer);
        if stream.below(10) == 0 {
            test.advance(Span::from_s(1));
            assert_eq!(test.server.connections(), 0, "seed {seed}, step {step}");
        }
    }
    test.advance(Span::from_s(100));
    assert_eq!(test.server.connections(), 0);
    assert_eq!(test.server.wake_at(), Instant::NEVER);
}

/// Without free descriptors new connections wait, and the server retries after a pause.
fn run_out_of_descriptors(test: &mut TestServer) {
    let mut first = test.connect();
    test.serve();
    let mut peers: Vec<TestClient> = (0..10).map(|_| test.connect()).collect();
    // The limit applies to the numbers of descriptors: all free numbers below it but four are used up.
    allow(descriptors() as u64 + 50);
    let null = || std::fs::File::open("/dev/null").ok();
    let mut used_up: Vec<_> = std::iter::from_fn(null).collect();
    used_up.truncate(used_up.len() - 4);
    test.serve();
    assert_eq!(test.server.connections(), 5);
    assert_eq!(test.server.counters().accept_failures, 1);
    assert!(!test.has_work(), "although connections wait");
    first.call("Observe", json!({}));
    test.serve();
    assert_eq!(first.replies().len(), 1, "accepted connections are served");
    test.advance(Span::from_ms(100));
    assert_eq!(test.server.counters().accept_failures, 2);
    drop(used_up);
    assert!(!test.has_work());
    test.advance(Span::from_ms(100));
    assert_eq!(test.server.connections(), 11);
    for peer in &mut peers {
        peer.call("Observe", json!({}));
    }
    test.serve();
    for peer in &mut peers {
        assert_eq!(peer.replies().len(), 1);
    }
    assert!(!first.is_closed());
    drop((first, peers));
    test.serve();
}
