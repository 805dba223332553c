//! A server that is driven step by step, and clients that send arbitrary bytes.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Uid;
use rustix::thread::set_thread_res_uid;
use serde_json::Value;
use shiftwork_client::MessageBuffer;
use shiftwork_daemon::socket::{Access, Server, SocketLimits};
use shiftwork_model::{Instant, Span};

use crate::echo_service::EchoService;

/// A server in a folder of its own, with a simulated clock.
pub struct TestServer {
    pub server: Server,
    pub echo: EchoService,
    pub now: Instant,
    folder: tempfile::TempDir,
}

impl TestServer {
    pub fn new(limits: SocketLimits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let access = Access {
            mode: 0o666,
            group: None,
        };
        let server = Server::bind(&folder.path().join("daemon.sock"), access, limits).unwrap();
        // Other users may search the folder.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).unwrap();
        Self {
            server,
            echo: EchoService::default(),
            now: Instant::from_ns(1_000_000_000),
            folder,
        }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("daemon.sock")
    }

    pub fn connect(&self) -> TestClient {
        TestClient::new(UnixStream::connect(self.path()).unwrap())
    }

    /// Serves until no work is left at this instant.
    pub fn serve(&mut self) {
        // The number of rounds is bounded by the numbers of bytes and calls; more means that the server spins.
        for _ in 0..100_000 {
            self.server.serve(self.now, &mut self.echo).unwrap();
            if !self.has_work() {
                return;
            }
        }
        panic!("the server never becomes idle");
    }

    /// Whether the server has work at this instant.
    pub fn has_work(&self) -> bool {
        self.server.wake_at() <= self.now || is_readable(&self.server)
    }

    /// Advances the clock, then serves.
    pub fn advance(&mut self, span: Span) {
        self.now += span;
        self.serve();
    }
}

/// Whether poll(2) would return at once.
pub fn is_readable(server: &Server) -> bool {
    let mut polled = [PollFd::new(server, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).unwrap() > 0
}

/// The client's end of a connection; never blocks.
pub struct TestClient {
    pub stream: UnixStream,
    /// The user that sends; `None`: that of this process.
    pub sender: Option<u32>,
    piece: Vec<u8>,
    inbox: MessageBuffer,
    closed: bool,
}

impl TestClient {
    pub fn new(stream: UnixStream) -> Self {
        stream.set_nonblocking(true).unwrap();
        Self {
            stream,
            sender: None,
            piece: vec![0; 16 << 10],
            inbox: MessageBuffer::new(100 << 20),
            closed: false,
        }
    }

    /// Sends as much as the kernel accepts; returns the number of bytes, `None` if the other end is closed.
    pub fn try_send(&mut self, bytes: &[u8]) -> Option<usize> {
        match self.write(bytes) {
            Ok(length) => Some(length),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Some(0),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let (stream, sender) = (&mut self.stream, self.sender);
        let Some(user) = sender.map(Uid::from_raw) else {
            return stream.write(bytes);
        };
        let write = || {
            // In the kernel each thread has its own credentials.
            set_thread_res_uid(user, user, user).unwrap();
            stream.write(bytes)
        };
        std::thread::scope(|scope| scope.spawn(write).join().unwrap())
    }

    /// Sends all of it.
    pub fn send(&mut self, bytes: &[u8]) {
        assert_eq!(self.try_send(bytes), Some(bytes.len()));
    }

    /// Calls a method of the daemon.
    pub fn call(&mut self, method: &str, parameters: Value) {
        self.send(&message(method, parameters));
    }

    /// Reads at most this many bytes.
    pub fn read(&mut self, most: usize) -> usize {
        let mut taken = 0;
        while taken < most {
            let part = self.piece.len().min(most - taken);
            match self.stream.read(&mut self.piece[..part]) {
                Ok(0) => self.closed = true,
                Ok(length) => {
                    self.inbox.push(&self.piece[..length]);
                    taken += length;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => self.closed = true,
                Err(error) => panic!("{error}"),
            }
            break;
        }
        taken
    }

    /// All replies received so far.
    pub fn replies(&mut self) -> Vec<Value> {
        self.read(usize::MAX);
        let mut replies = Vec::new();
        while let Some(message) = self.inbox.next_message().unwrap() {
            replies.push(serde_json::from_slice(message).unwrap());
        }
        replies
    }

    /// Whether the server has closed the connection, as far as was read.
    pub fn is_closed(&mut self) -> bool {
        self.read(usize::MAX);
        self.closed
    }
}

/// The message that calls a method of the daemon.
pub fn message(method: &str, parameters: Value) -> Vec<u8> {
    let method = format!("org.shiftwork.Agent.{method}");
    let mut bytes =
        serde_json::to_vec(&serde_json::json!({ "method": method, "parameters": parameters }))
            .unwrap();
    bytes.push(0);
    bytes
}
