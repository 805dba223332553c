//! Peers that send malformed messages, and well-behaved peers that are served all the same.

use serde_json::{Value, json};
use shiftwork_daemon::socket::{RateLimit, SocketLimits};
use shiftwork_model::{RandomStream, Span};

use crate::test_server::{TestClient, TestServer, message};

/// Number of messages; far more in the long selection.
fn rounds() -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 200_000,
        None => 10_000,
    }
}

/// The default limits except for the rates: all peers are of the same user.
fn limits() -> SocketLimits {
    SocketLimits {
        user_rate: RateLimit {
            interval: Span::from_ns(1),
            burst: 1_000_000,
        },
        cgroup_rate: RateLimit {
            interval: Span::from_ns(1),
            burst: 1_000_000,
        },
        ..SocketLimits::default()
    }
}

/// A well-formed call.
fn good(stream: &mut RandomStream) -> Vec<u8> {
    match stream.below(4) {
        0 => message("Observe", json!({ "thread": stream.below(100) })),
        1 => message("GetRecord", json!({ "seconds": stream.below(3_000) })),
        2 => message("Dismiss", json!({ "task": stream.below(10) })),
        _ => message(
            "Admit",
            json!({ "name": "a", "reservation": { "cost": 1, "period": 2, "cpus": "0-3" } }),
        ),
    }
}

/// A malformed or meaningless message, with or without NUL at its end.
fn bad(stream: &mut RandomStream) -> Vec<u8> {
    let mut bytes = good(stream);
    let place = stream.below(bytes.len() as u64) as usize;
    match stream.below(12) {
        0 => bytes.truncate(place),
        1 => bytes[place] = stream.bits() as u8,
        2 => bytes.insert(place, 0),
        3 => bytes
            .splice(place..place, [0xff, 0xfe, 0xc0])
            .for_each(drop),
        4 => bytes = [b"[".repeat(1_000), b"]".repeat(1_000), vec![0]].concat(),
        5 => {
            let deep = format!("{}1{}", "{\"a\":".repeat(90), "}".repeat(90));
            bytes = message("Observe", serde_json::from_str(&deep).unwrap());
        }
        6 => {
            let numbers = [
                "1e999",
                "-1e999",
                "123456789012345678901234567890",
                "-0.0",
                "1e-999",
            ];
            let number = numbers[stream.below(numbers.len() as u64) as usize];
            let text = format!(
                "{{\"method\":\"org.shiftwork.Agent.Dismiss\",\"parameters\":{{\"task\":{number}}}}}\0"
            );
            bytes = text.into_bytes();
        }
        7 => {
            let values = [
                json!(null),
                json!([]),
                json!({}),
                json!("7"),
                json!(true),
                json!(-7),
                json!(0.5),
            ];
            let value = values[stream.below(values.len() as u64) as usize].clone();
            let methods = [
                "Admit",
                "Change",
                "Dismiss",
                "Observe",
                "EndObservation",
                "Explain",
                "GetMisses",
            ];
            let method = methods[stream.below(methods.len() as u64) as usize];
            let name = ["task", "reservation", "name", "thread", "count"][stream.below(5) as usize];
            bytes = message(
                method,
                if stream.below(2) == 0 {
                    value
                } else {
                    json!({ name: value })
                },
            );
        }
        8 if stream.below(20) == 0 => bytes = vec![b'a'; 1 << 20],
        8 => bytes = vec![0; 1 + stream.below(100) as usize],
        9 => {
            bytes = message(
                "Observe",
                json!({ "x": "y".repeat(stream.below(70_000) as usize) }),
            )
        }
        10 => {
            bytes = (0..stream.below(300))
                .map(|_| stream.bits() as u8)
                .collect()
        }
        _ => {
            let method = [
                "",
                ".",
                "..",
                "a",
                "org.varlink.service.",
                "org.shiftwork.Agent",
                "\u{0}",
            ];
            let method = method[stream.below(method.len() as u64) as usize];
            bytes = serde_json::to_vec(&json!({ "method": method })).unwrap();
            bytes.push(0);
        }
    }
    bytes
}

/// Sends the bytes in parts, until the other end closes.
fn send_in_pieces(
    test: &mut TestServer,
    peer: &mut TestClient,
    bytes: &[u8],
    stream: &mut RandomStream,
) {
    let mut rest = bytes;
    // Most as a whole, some in parts.
    let piece = if stream.below(4) == 0 {
        1 + bytes.len() / 3
    } else {
        bytes.len().max(1)
    };
    while !rest.is_empty() {
        let Some(sent) = peer.try_send(&rest[..piece.min(rest.len())]) else {
            return;
        };
        rest = &rest[sent..];
        test.serve();
        if sent == 0 && peer.is_closed() {
            return;
        }
    }
}

#[test]
fn malformed_messages_do_not_disturb_other_peers() {
    let seed = 1;
    let mut stream = RandomStream::new(seed, 3, 0);
    let mut test = TestServer::new(limits());
    let mut well_behaved = test.connect();
    let mut peers: Vec<TestClient> = (0..20).map(|_| test.connect()).collect();
    test.serve();
    for step in 0..rounds() {
        let place = stream.below(peers.len() as u64) as usize;
        let bytes = if stream.below(5) == 0 {
            good(&mut stream)
        } else {
            bad(&mut stream)
        };
        send_in_pieces(&mut test, &mut peers[place], &bytes, &mut stream);
        if stream.below(3) == 0 {
            for reply in peers[place].replies() {
                assert!(
                    reply.get("parameters").is_some_and(Value::is_object),
                    "seed {seed}, step {step}: {reply}"
                );
            }
        }
        if peers[place].is_closed() || stream.below(10) == 0 {
            peers[place] = test.connect();
        }
        if stream.below(50) == 0 {
            test.advance(Span::from_s(stream.below(12)));
        }
        let number = (step % 1_000) as u32;
        well_behaved.call("Dismiss", json!({ "task": number }));
        test.serve();
        assert_eq!(
            well_behaved.replies(),
            [json!({ "parameters": {} })],
            "seed {seed}, step {step}, after {:?}",
            String::from_utf8_lossy(&bytes[..bytes.len().min(200)])
        );
        assert_eq!(test.echo.dismissed.last(), Some(&number));
        test.echo.dismissed.clear();
        assert!(test.server.connections() <= 21, "seed {seed}, step {step}");
    }
    drop(peers);
    test.serve();
    assert_eq!(test.server.connections(), 1);
    let counters = test.server.counters();
    assert!(counters.closed > rounds() / 10, "{counters:?}");
    assert!(counters.calls > rounds(), "{counters:?}");
}

#[test]
fn message_beyond_maximum_length_closes_connection() {
    for (length, fits) in [(65_536, true), (65_537, false), (1 << 20, false)] {
        let mut test = TestServer::new(limits());
        let mut peer = test.connect();
        let frame = message("Observe", json!({ "x": "" })).len() - 1;
        let bytes = message("Observe", json!({ "x": "y".repeat(length - frame) }));
        let mut rest = bytes.as_slice();
        while let Some(sent) = peer.try_send(rest).filter(|_| !rest.is_empty()) {
            rest = &rest[sent..];
            test.serve();
        }
        let replies = peer.replies();
        let reason = replies[0]["parameters"]["reason"].as_str().unwrap();
        let expected = if fits {
            "is unknown; "
        } else {
            "is longer than 65536 bytes"
        };
        assert!(reason.starts_with(expected), "{length}: {reason}");
        assert_eq!(peer.is_closed(), !fits, "{length}");
    }
}
