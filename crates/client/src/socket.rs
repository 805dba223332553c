//! Where the daemon of this machine listens, and how long it may take to answer.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

/// Default path of the daemon's socket.
pub const DEFAULT_SOCKET: &str = "/run/shiftwork/daemon.sock";

/// The environment variable for another path of the socket.
pub const SOCKET_VARIABLE: &str = "SHIFTWORK_SOCKET";

/// Path of the socket of this machine's daemon: the value of [`SOCKET_VARIABLE`], by default [`DEFAULT_SOCKET`].
pub fn socket_path() -> PathBuf {
    env::var_os(SOCKET_VARIABLE)
        .filter(|path| !path.is_empty())
        .map_or_else(|| DEFAULT_SOCKET.into(), PathBuf::from)
}

/// Timeout of a call.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);
