//! The agent as systemd starts it when somebody connects: with a socket that listens already. In a
//! process of its own, since the environment says which process is meant.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "socket/echo_service.rs"]
mod echo_service;

use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use shiftwork_client::Client;
use shiftwork_daemon::socket::{Server, SocketLimits};
use shiftwork_model::Instant;

/// What systemd does, done by a shell: the socket becomes descriptor 3, and the number of the process
/// is known before the program begins.
const AS_SYSTEMD: &str = "exec 3<&0 0</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"";

/// Serves whoever comes until they have left.
fn serve_as_agent() {
    let mut server = Server::inherited(SocketLimits::default()).unwrap().unwrap();
    let mut echo = echo_service::EchoService::default();
    let patience = Timespec {
        tv_sec: 60,
        tv_nsec: 0,
    };
    while server.counters().calls == 0 || server.connections() > 0 {
        let mut polled = [PollFd::new(&server, PollFlags::IN)];
        let woken = poll(&mut polled, Some(&patience)).unwrap();
        assert!(woken > 0, "nobody comes");
        server.serve(Instant::ZERO, &mut echo).unwrap();
        while server.wake_at() == Instant::ZERO {
            server.serve(Instant::ZERO, &mut echo).unwrap();
        }
    }
}

#[test]
fn whoever_connected_before_the_agent_began_is_served() {
    if std::env::var_os("LISTEN_FDS").is_some() {
        return serve_as_agent();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let mut client = Client::connect(&path).unwrap();
    let agent = Command::new("sh")
        .args(["-c", AS_SYSTEMD, "sh"])
        .arg(std::env::current_exe().unwrap())
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(listener)))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let process = agent.id();
    assert_eq!(client.explain(None).unwrap().len(), 1);
    assert_eq!(client.observe(None).unwrap(), std::process::id());
    drop(client);
    let output = agent.wait_with_output().unwrap();
    assert!(output.status.success(), "{process}: {output:?}");
    assert!(path.exists(), "the file is systemd's");
}
