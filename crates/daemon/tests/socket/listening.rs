//! The file of the socket: its lifetime, replacement and errors.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::Path;

use shiftwork_daemon::socket::{Access, BindError, Server, SocketLimits};

const ACCESS: Access = Access {
    mode: 0o660,
    group: None,
};

fn bind(path: &Path) -> Result<Server, BindError> {
    Server::bind(path, ACCESS, SocketLimits::default())
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn file_exists_while_server_lives() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("daemon.sock");
    let group = rustix::process::getegid().as_raw();
    let access = Access {
        mode: 0o620,
        group: Some(group),
    };
    for _ in 0..3 {
        let server = Server::bind(&path, access, SocketLimits::default()).unwrap();
        let file = fs::metadata(&path).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o620);
        assert_eq!(file.gid(), group);
        assert_eq!(names_in(folder.path()), ["daemon.sock", "daemon.sock.lock"]);
        drop(server);
        assert_eq!(names_in(folder.path()), ["daemon.sock.lock"]);
    }
}

#[test]
fn file_of_dead_daemon_is_replaced_and_of_living_one_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("daemon.sock");
    drop(UnixListener::bind(&path).unwrap());
    fs::write(folder.path().join("daemon.sock.new"), "left behind").unwrap();
    let server = bind(&path).unwrap();
    let error = bind(&path).unwrap_err();
    assert!(matches!(error, BindError::InUse { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        format!(
            "another daemon listens at {}; `shiftwork status` shows it, and `systemctl stop shiftwork` or \
             Ctrl-C stops it",
            path.display()
        )
    );
    drop(server);
    bind(&path).unwrap();

    let other = UnixListener::bind(&path).unwrap();
    let error = bind(&path).unwrap_err();
    assert!(
        matches!(error, BindError::InUse { .. }),
        "a process without the lock: {error}"
    );
    drop(other);
    bind(&path).unwrap();
}

#[test]
fn file_that_is_not_a_socket_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("daemon.sock");
    fs::write(&path, "precious").unwrap();
    let error = bind(&path).unwrap_err();
    assert!(matches!(error, BindError::NotASocket { .. }), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    let nowhere = folder.path().join("no").join("daemon.sock");
    let error = bind(&nowhere).unwrap_err();
    assert!(
        matches!(error, BindError::System { what: "make", .. }),
        "{error}"
    );
    for length in [103, 104, 300] {
        let own = folder.path().as_os_str().len() + 1;
        let long = folder.path().join("a".repeat(length - own));
        let too_long = matches!(bind(&long), Err(BindError::PathTooLong { .. }));
        assert_eq!(too_long, length > 103, "{length}");
    }
}

#[test]
fn file_of_another_process_is_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("daemon.sock");
    let server = bind(&path).unwrap();
    fs::rename(&path, folder.path().join("elsewhere")).unwrap();
    let _other = UnixListener::bind(&path).unwrap();
    drop(server);
    assert!(path.exists());
}

#[test]
fn no_socket_is_inherited_without_systemd() {
    assert!(
        Server::inherited(SocketLimits::default())
            .unwrap()
            .is_none()
    );
}
