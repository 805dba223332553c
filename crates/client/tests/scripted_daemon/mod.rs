//! A daemon that sends prepared replies.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

/// Makes calls to a listener that sends these replies, one for each message, until the client closes; returns the
/// received messages.
pub fn with_replies(replies: &[&[u8]], calls: impl FnOnce(&Path)) -> String {
    with_connections(&[replies], calls)
}

/// As [`with_replies`] over several connections, each of which is closed once its replies are sent.
pub fn with_connections(connections: &[&[&[u8]]], calls: impl FnOnce(&Path)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("daemon.sock");
    let listener = UnixListener::bind(&path).unwrap();
    thread::scope(|scope| {
        let received = scope.spawn(move || {
            let mut received = Vec::new();
            for replies in connections {
                let (stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(&stream);
                for reply in *replies {
                    if reader.read_until(0, &mut received).unwrap() == 0 {
                        break;
                    }
                    (&stream).write_all(reply).unwrap();
                }
            }
            String::from_utf8(received).unwrap()
        });
        calls(&path);
        received.join().unwrap()
    })
}
