//! Copying between this machine and sandboxes: a file as its bytes, a folder as a tar stream.

mod local;
pub(crate) mod place;
mod progress;
mod stream;
mod target;

use std::path::{Path, PathBuf};

use hyper::body::Incoming;
use nacre_wire::client::{Body, Client, WriteOptions};
use nacre_wire::files::{FileKind, Stat};
use nacre_wire::path::to_query;
use serde::Serialize;

use crate::failure::{Failure, Result};
pub(crate) use place::{End, Place};
use progress::Progress;

/// What a copy came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
pub(crate) struct Copied {
    /// Bytes that crossed, as content or as tar.
    pub(crate) bytes: u64,
}

/// From this machine into a sandbox.
pub(crate) async fn upload(door: &Client, from: &Path, to: &Place) -> Result<Copied> {
    let failed = |error: std::io::Error| Failure::io(from.display(), &error);
    let metadata = std::fs::metadata(from).map_err(failed)?;
    let existing = stat(door, &to.path).await?;
    let source = target::Source::local(from, metadata.is_dir()).map_err(failed)?;
    let place = target::resolve(&to.path, kind(&existing), &source)?;
    let progress = Progress::start(metadata.is_file().then_some(metadata.len()));
    if metadata.is_dir() {
        let body = local::pack(from.to_owned(), progress.clone());
        door.unpack(&place, body).await?;
        local::copy_mode(door, &place, &metadata).await?;
    } else {
        let options = WriteOptions { mode: Some(local::mode(&metadata)), ..Default::default() };
        let body = local::read_file(from, progress.clone())?;
        door.write_stream(&place, body, &options).await?;
    }
    Ok(Copied { bytes: progress.finish() })
}

/// A folder as a tar stream.
pub(crate) fn packed(folder: PathBuf) -> Body {
    local::pack(folder, Progress::start(None))
}

/// A tar stream as a folder, which is made when it is missing.
pub(crate) async fn unpacked(body: Incoming, folder: PathBuf) -> Result<()> {
    const NEW: u32 = 0o755;
    let mode = std::fs::metadata(&folder).map_or(NEW, |metadata| local::mode(&metadata));
    let progress = Progress::start(None);
    local::unpack(body, folder, mode, progress.clone()).await?;
    progress.finish();
    Ok(())
}

/// From a sandbox to this machine.
pub(crate) async fn download(door: &Client, from: &Place, to: &Path) -> Result<Copied> {
    let stat = required(door, &from.path).await?;
    let source = target::Source::remote(&from.path, stat.kind == FileKind::Directory);
    let existing = match std::fs::metadata(to) {
        Ok(metadata) if metadata.is_dir() => target::Existing::Folder,
        Ok(_) => target::Existing::File,
        Err(_) => target::Existing::Nothing,
    };
    let place = target::resolve(to, existing, &source)?;
    match stat.kind {
        FileKind::Directory => {
            let progress = Progress::start(None);
            let body = door.pack(&from.path).await?;
            local::unpack(body, place, stat.mode, progress.clone()).await?;
            Ok(Copied { bytes: progress.finish() })
        }
        FileKind::File => {
            let progress = Progress::start(Some(stat.size));
            let body = door.read_stream(&from.path, None).await?;
            local::write_file(body, &place, stat.mode, progress.clone()).await?;
            Ok(Copied { bytes: progress.finish() })
        }
        FileKind::Symlink
        | FileKind::Fifo
        | FileKind::Socket
        | FileKind::BlockDevice
        | FileKind::CharDevice
        | FileKind::Unknown => {
            Err(Failure::new(format!("{}: not a file or folder", from.path.display())))
        }
    }
}

/// From one sandbox to another, through this process and not its disk.
pub(crate) async fn across(
    (from_door, from): (&Client, &Place),
    (to_door, to): (&Client, &Place),
) -> Result<Copied> {
    let info = required(from_door, &from.path).await?;
    let source = target::Source::remote(&from.path, info.kind == FileKind::Directory);
    let place = target::resolve(&to.path, kind(&stat(to_door, &to.path).await?), &source)?;
    let progress = Progress::start((info.kind == FileKind::File).then_some(info.size));
    if info.kind == FileKind::Directory {
        let body = stream::counted(from_door.pack(&from.path).await?, progress.clone());
        to_door.unpack(&place, body).await?;
    } else {
        let options = WriteOptions { mode: Some(info.mode), ..Default::default() };
        let body = from_door.read_stream(&from.path, None).await?;
        let body = stream::counted(body, progress.clone());
        to_door.write_stream(&place, body, &options).await?;
    }
    Ok(Copied { bytes: progress.finish() })
}

/// What a path leads to, symlinks followed.
async fn required(door: &Client, path: &Path) -> Result<Stat> {
    let path = format!("/supervisor/files/stat?follow=true&path={}", to_query(path));
    Ok(door.get_json(&path).await?)
}

async fn stat(door: &Client, path: &Path) -> Result<Option<Stat>> {
    let path = format!("/supervisor/files/stat?follow=true&path={}", to_query(path));
    match door.get_json(&path).await {
        Ok(stat) => Ok(Some(stat)),
        Err(error) if error.kind() == nacre_wire::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn kind(stat: &Option<Stat>) -> target::Existing {
    match stat {
        None => target::Existing::Nothing,
        Some(stat) if stat.kind == FileKind::Directory => target::Existing::Folder,
        Some(_) => target::Existing::File,
    }
}
