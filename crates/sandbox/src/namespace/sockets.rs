//! Unix sockets in a directory, however long its path is.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::UnixStream;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;
const SEND_BUFFER: usize = 2 << 20;

/// A socket's path may have 107 bytes; one that starts at a descriptor always fits.
struct Short {
    path: PathBuf,
    _directory: std::os::fd::OwnedFd,
}

impl Short {
    fn new(directory: &Path, name: &str) -> io::Result<Self> {
        let directory = super::open_directory(directory)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()));
        Ok(Self { path, _directory: directory })
    }
}

/// Listens at `name`, in place of whatever is there.
pub(super) fn listen(directory: &Path, name: &str) -> io::Result<UnixListener> {
    let short = Short::new(directory, name)?;
    match std::fs::remove_file(&short.path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&short.path)?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// Listens for a supervisor, whose ids are not ours.
pub(super) fn listen_for_guest(directory: &Path) -> io::Result<UnixListener> {
    let listener = listen(directory, "host.sock")?;
    std::fs::set_permissions(directory.join("host.sock"), std::fs::Permissions::from_mode(0o666))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

pub(super) async fn connect(directory: &Path, name: &str) -> io::Result<UnixStream> {
    let short = Short::new(directory, name)?;
    loop {
        match UnixStream::connect(&short.path).await {
            // So many are waiting that the queue is full; it moves on.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            Ok(stream) => {
                // Capped by the kernel for all but root; more is fewer system calls for large files.
                let _ =
                    rustix::net::sockopt::set_socket_send_buffer_size_force(&stream, SEND_BUFFER)
                        .or_else(|_| {
                            rustix::net::sockopt::set_socket_send_buffer_size(&stream, SEND_BUFFER)
                        });
                return Ok(stream);
            }
            Err(error) => return Err(error),
        }
    }
}
