//! Limits of a user's and a control group's use of the daemon.

use std::os::unix::net::UnixStream;

use rustix::process::{Uid, geteuid};
use rustix::thread::set_thread_res_uid;
use serde_json::json;
use shiftwork_daemon::socket::{RateLimit, SocketLimits};
use shiftwork_model::Span;

use crate::test_server::{TestClient, TestServer};

/// A connection made and used by another user, which takes root.
fn connect_as(test: &TestServer, user: u32) -> TestClient {
    let path = test.path();
    let stream = std::thread::spawn(move || {
        // In the kernel each thread has its own credentials.
        let user = Uid::from_raw(user);
        set_thread_res_uid(user, user, user).unwrap();
        UnixStream::connect(path).unwrap()
    })
    .join()
    .unwrap();
    let mut client = TestClient::new(stream);
    client.sender = Some(user);
    client
}

#[test]
fn connection_answers_only_processes_of_its_user() {
    if !geteuid().is_root() {
        return;
    }
    let mut test = TestServer::new(SocketLimits::default());
    // A process of root gives up its privileges, or passes its connection to another user.
    let mut of_root = test.connect();
    of_root.call("Observe", json!({}));
    test.serve();
    assert_eq!(of_root.replies().len(), 1);
    of_root.sender = Some(7_001);
    of_root.call("Observe", json!({}));
    test.serve();
    let replies = of_root.replies();
    assert_eq!(replies[0]["error"], "org.shiftwork.Agent.Forbidden");
    assert!(of_root.is_closed());
    // Not even root acts as another user.
    let mut of_user = connect_as(&test, 7_001);
    of_user.call("Observe", json!({}));
    of_user.sender = None;
    of_user.call("Observe", json!({}));
    test.serve();
    let replies = of_user.replies();
    assert_eq!(replies.len(), 2, "{replies:?}");
    assert!(replies[0].get("error").is_none());
    assert_eq!(replies[1]["error"], "org.shiftwork.Agent.Forbidden");
    assert_eq!(test.server.connections(), 0);
}

#[test]
fn connection_beyond_rate_is_paused() {
    let limits = SocketLimits {
        user_rate: RateLimit {
            interval: Span::from_ms(1),
            burst: 5,
        },
        ..SocketLimits::default()
    };
    let mut test = TestServer::new(limits);
    let mut peer = test.connect();
    for _ in 0..20 {
        peer.call("Observe", json!({}));
    }
    test.serve();
    let replies = peer.replies();
    assert_eq!(replies.len(), 5, "connecting counts too");
    assert!(
        replies[..4]
            .iter()
            .all(|reply| reply.get("error").is_none())
    );
    assert_eq!(
        replies[4],
        json!({
            "error": "org.shiftwork.Agent.Exhausted",
            "parameters": {
                "limit": format!(
                    "user {} exceeds the rate limit: a burst of 5 calls, then one each 1000 µs; make fewer",
                    geteuid().as_raw()
                ),
            },
        })
    );
    test.advance(Span::from_ms(100).saturating_sub(Span::from_ns(1)));
    assert_eq!(peer.replies().len(), 0);
    test.advance(Span::from_ns(1));
    assert_eq!(peer.replies().len(), 6, "five, and another refusal");
    assert_eq!(test.server.counters().exhausted, 2);
    drop(peer);
    test.serve();
    assert_eq!(
        test.server.wake_at(),
        test.now + Span::from_ms(100),
        "the pause ends first"
    );
    test.advance(Span::from_ms(100));
    test.advance(Span::from_ms(100));
    assert_eq!(test.server.connections(), 0);
}

/// A call with several steps counts as so many calls.
#[test]
fn each_step_of_a_call_counts_as_a_call() {
    let limits = SocketLimits {
        user_rate: RateLimit {
            interval: Span::from_ms(1),
            burst: 10,
        },
        ..SocketLimits::default()
    };
    let mut test = TestServer::new(limits);
    let mut peer = test.connect();
    let steps = |count| json!({ "steps": vec![json!({ "task": 1 }); count] });
    for count in [8, 2] {
        peer.call("Apply", steps(count));
        test.serve();
    }
    let replies = peer.replies();
    assert_eq!(replies[0]["parameters"]["later"], true, "{replies:?}");
    assert_eq!(replies[1]["error"], "org.shiftwork.Agent.Exhausted");
    assert_eq!(test.server.counters().exhausted, 1);
    // The connection is not heard for a while.
    peer.call("Apply", steps(0));
    test.advance(Span::from_ms(99));
    assert_eq!(peer.replies().len(), 0);
    test.advance(Span::from_ms(1));
    assert_eq!(peer.replies()[0]["parameters"]["later"], false);
}

#[test]
fn connection_beyond_limit_is_refused_with_error() {
    let limits = SocketLimits {
        connections: 6,
        root_connections: 0,
        ..SocketLimits::default()
    };
    let mut test = TestServer::new(limits);
    let mut peers: Vec<_> = (0..8).map(|_| test.connect()).collect();
    test.serve();
    let may = if geteuid().is_root() { 6 } else { 3 };
    assert_eq!(test.server.connections(), may);
    for (number, peer) in peers.iter_mut().enumerate() {
        let replies = peer.replies();
        assert_eq!(peer.is_closed(), number >= may, "{replies:?}");
        if number >= may {
            assert_eq!(replies[0]["error"], "org.shiftwork.Agent.Exhausted");
        }
    }
    peers.clear();
    test.serve();
    let mut peer = test.connect();
    peer.call("Observe", json!({}));
    test.serve();
    assert_eq!(peer.replies().len(), 1, "connections are free again");
}

#[test]
fn users_share_connections_and_are_served_round_robin() {
    if !geteuid().is_root() {
        // The rule itself has unit tests.
        return;
    }
    let limits = SocketLimits {
        connections: 10,
        root_connections: 2,
        batch: 1,
        calls: 1,
        ..SocketLimits::default()
    };
    let mut test = TestServer::new(limits);
    let mut peers = Vec::new();
    for (user, may) in [
        (4_001, 4),
        (4_002, 2),
        (4_003, 1),
        (4_004, 1),
        (4_005, 0),
        (0, 2),
    ] {
        let before = test.server.connections();
        for _ in 0..5 {
            peers.push(connect_as(&test, user));
        }
        test.serve();
        assert_eq!(test.server.connections() - before, may, "user {user}");
    }
    // A user with one connection is served as often as a user with four.
    let mut order = Vec::new();
    peers.retain_mut(|peer| !peer.is_closed());
    for peer in &mut peers {
        for _ in 0..3 {
            peer.call("Explain", json!({}));
        }
    }
    while test.has_work() {
        test.server.serve(test.now, &mut test.echo).unwrap();
        for peer in &mut peers {
            for reply in peer.replies() {
                order.push(
                    reply["parameters"]["explanations"][0]
                        .as_str()
                        .unwrap()
                        .to_owned(),
                );
            }
        }
    }
    assert_eq!(order.len(), 30);
    let place = |user: &str| order.iter().rposition(|one| one == user).unwrap();
    assert!(place("4003") < place("4001"), "{order:?}");
    assert!(place("4003") < 22, "{order:?}");
}

#[test]
fn unread_replies_are_shared_among_users() {
    let limits = SocketLimits {
        unread: 4_000_000,
        ..SocketLimits::default()
    };
    let mut test = TestServer::new(limits);
    let mut peers: Vec<_> = (0..5).map(|_| test.connect()).collect();
    for peer in &mut peers {
        peer.call("GetRecord", json!({ "seconds": 1_500_000 }));
    }
    test.serve();
    assert_eq!(
        test.server.counters().exhausted,
        3,
        "two of them already exceed one half"
    );
    if geteuid().is_root() {
        let mut other = connect_as(&test, 4_001);
        other.call("GetRecord", json!({ "seconds": 10 }));
        test.serve();
        assert!(other.replies()[0].get("error").is_none());
    }
    drop(peers);
    test.serve();
    let mut peer = test.connect();
    peer.call("GetRecord", json!({ "seconds": 10 }));
    test.serve();
    assert!(peer.replies()[0].get("error").is_none());
}

#[test]
fn rate_of_cgroup_limits_all_its_connections_and_users() {
    if !geteuid().is_root() {
        // The rule itself has unit tests.
        return;
    }
    let limits = SocketLimits {
        cgroup_rate: RateLimit {
            interval: Span::from_ms(1),
            burst: 20,
        },
        ..SocketLimits::default()
    };
    let mut test = TestServer::new(limits);
    // All peers are in one control group; connecting counts too.
    let users = [4_001, 4_001, 4_001, 4_002, 4_003];
    let mut peers: Vec<_> = users.map(|user| connect_as(&test, user)).into();
    for peer in &mut peers {
        for _ in 0..10 {
            peer.call("Observe", json!({}));
        }
    }
    let mut root = test.connect();
    for _ in 0..10 {
        root.call("Observe", json!({}));
    }
    test.serve();
    let is_good = |reply: &serde_json::Value| reply.get("error").is_none();
    let served = |peer: &mut TestClient| peer.replies().iter().filter(|it| is_good(it)).count();
    assert_eq!(peers.iter_mut().map(served).sum::<usize>(), 20 - 5);
    assert_eq!(served(&mut root), 10);
    test.advance(Span::from_ms(100));
    assert_eq!(
        peers.iter_mut().map(served).sum::<usize>(),
        20,
        "the tokens added meanwhile"
    );
}
