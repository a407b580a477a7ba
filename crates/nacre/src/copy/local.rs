//! This machine's side of a copy.

use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hyper::body::Incoming;
use nacre_wire::client::{Body, Client};
use nacre_wire::files::Chmod;

use super::progress::Progress;
use super::stream;
use crate::failure::{Failure, Result};

/// What was run as somebody else there does not become a way to run as us here.
const KEPT_MODE: u32 = 0o777;

pub(crate) fn mode(metadata: &Metadata) -> u32 {
    metadata.permissions().mode() & KEPT_MODE
}

pub(crate) fn read_file(path: &Path, progress: Progress) -> Result<Body> {
    let mut file = File::open(path).map_err(|error| Failure::io(path.display(), &error))?;
    Ok(stream::written(progress, move |out| io::copy(&mut file, out).map(|_| ())))
}

/// What is in a folder; symlinks as symlinks.
pub(crate) fn pack(folder: PathBuf, progress: Progress) -> Body {
    stream::written(progress, move |out| {
        let mut archive = tar::Builder::new(out);
        archive.follow_symlinks(false);
        archive.append_dir_all("", &folder)?;
        archive.finish()
    })
}

/// The unpacked folder itself; what is in it has its modes from the archive.
pub(crate) async fn copy_mode(door: &Client, place: &Path, metadata: &Metadata) -> Result<()> {
    Ok(door.chmod(&Chmod { path: place.into(), mode: mode(metadata) }).await?)
}

/// Written beside the target and renamed, so that a copy that breaks off leaves what was there.
pub(crate) async fn write_file(
    body: Incoming,
    place: &Path,
    mode: u32,
    progress: Progress,
) -> Result<()> {
    let place = place.to_owned();
    let shown = place.display().to_string();
    let written = stream::read(body, progress, move |input| {
        let folder = match place.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut draft = tempfile::Builder::new().prefix(".nacre-").tempfile_in(folder)?;
        io::copy(input, draft.as_file_mut())?;
        draft.as_file().set_permissions(Permissions::from_mode(mode & KEPT_MODE))?;
        draft.persist(&place).map(|_| ()).map_err(|error| error.error)
    });
    written.await.map_err(|error| Failure::io(shown, &error))
}

/// The `tar` crate keeps entries below `folder`, also when one is a symlink that leads elsewhere.
pub(crate) async fn unpack(
    body: Incoming,
    folder: PathBuf,
    mode: u32,
    progress: Progress,
) -> Result<()> {
    let shown = folder.display().to_string();
    let unpacked = stream::read(body, progress, move |input| {
        fs::create_dir_all(&folder)?;
        let mut archive = tar::Archive::new(&mut *input);
        archive.set_preserve_permissions(true);
        archive.set_mask(!KEPT_MODE & 0o7777);
        archive.set_preserve_ownerships(false);
        archive.set_overwrite(true);
        archive.unpack(&folder)?;
        // What follows the archive's end is read too, so that an error there is not lost.
        io::copy(input, &mut io::sink())?;
        fs::set_permissions(&folder, Permissions::from_mode(mode & KEPT_MODE))
    });
    unpacked.await.map_err(|error| Failure::io(shown, &root_cause(error)))
}

/// The `tar` crate wraps what happened in where it happened.
fn root_cause(error: io::Error) -> io::Error {
    let text = error.to_string();
    let mut cause = error.get_ref().and_then(|error| error.source());
    let mut last = None;
    while let Some(error) = cause {
        last = Some(error.to_string());
        cause = error.source();
    }
    match last {
        Some(last) => io::Error::new(error.kind(), format!("{text}: {last}")),
        None => error,
    }
}
