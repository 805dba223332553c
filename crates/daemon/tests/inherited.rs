//! Socket activation: the daemon inherits a listening socket when a client connects. In a process of its own, since the
//! environment names the process that inherits it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "socket/echo_service.rs"]
mod echo_service;

use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use shiftwork_client::Client;
use shiftwork_daemon::socket::{Server, SocketLimits};
use shiftwork_model::Instant;

/// Does what systemd does, by a shell: the socket becomes descriptor 3, and LISTEN_PID is set before the program is
/// executed.
const AS_SYSTEMD: &str = "exec 3<&0 0</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"";

/// Serves until all clients have disconnected.
fn serve_as_daemon() {
    let mut server = Server::inherited(SocketLimits::default()).unwrap().unwrap();
    let mut echo = echo_service::EchoService::default();
    let timeout = Timespec {
        tv_sec: 60,
        tv_nsec: 0,
    };
    while server.counters().calls == 0 || server.connections() > 0 {
        let mut polled = [PollFd::new(&server, PollFlags::IN)];
        let woken = poll(&mut polled, Some(&timeout)).unwrap();
        assert!(woken > 0, "no client connects");
        server.serve(Instant::ZERO, &mut echo).unwrap();
        while server.wake_at() == Instant::ZERO {
            server.serve(Instant::ZERO, &mut echo).unwrap();
        }
    }
}

#[test]
fn client_that_connects_before_activation_is_served() {
    if std::env::var_os("LISTEN_FDS").is_some() {
        return serve_as_daemon();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("daemon.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let mut client = Client::connect(&path).unwrap();
    let daemon = Command::new("sh")
        .args(["-c", AS_SYSTEMD, "sh"])
        .arg(std::env::current_exe().unwrap())
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(listener)))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let process = daemon.id();
    assert_eq!(client.explain(None).unwrap().len(), 1);
    assert_eq!(client.observe(None).unwrap(), std::process::id());
    drop(client);
    let output = daemon.wait_with_output().unwrap();
    assert!(output.status.success(), "{process}: {output:?}");
    assert!(path.exists(), "the file belongs to systemd");
}
