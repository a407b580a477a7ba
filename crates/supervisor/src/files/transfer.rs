//! Move, copy and remove.

use std::path::Path;

use axum::Json;
use http::StatusCode;
use nacre_wire::files::{FileKind, Remove, Stat, Transfer};
use nacre_wire::{ApiError, ErrorKind};
use rustix::fs::{AtFlags, RenameFlags, renameat_with, unlinkat};
use rustix::io::Errno;

use super::draft::{conflict, temporary_name};
use super::fault::{at, bad_request};
use super::root::{Place, Root};
use super::session::{Call, Files};
use super::tree::{self, Copier, Scratch};
use super::version::{Version, describe, kind, link_target};
use crate::failure::Failure;

pub(crate) async fn rename(call: Call) -> Result<Json<Stat>, Failure> {
    let (session, request) = call.json::<Transfer>().await?;
    Ok(Json(session.run(move |root| move_entry(root, &request)).await?))
}

fn move_entry(root: &Root, request: &Transfer) -> Result<Stat, ApiError> {
    let (from, to) = places(root, request)?;
    match put(&from, &to, request.overwrite) {
        // Another filesystem is on the other side, as with `mv` from /tmp.
        Err(Errno::XDEV) => {
            copy_into_place(&from, &to, request.overwrite)?;
            tree::remove(from.fd(), &from.name, &from.path)?;
        }
        result => result.map_err(|error| named(&from, &to, error))?,
    }
    seen(&to)
}

pub(crate) async fn copy(call: Call) -> Result<Json<Stat>, Failure> {
    let (session, request) = call.json::<Transfer>().await?;
    Ok(Json(session.run(move |root| copy_entry(root, &request)).await?))
}

fn copy_entry(root: &Root, request: &Transfer) -> Result<Stat, ApiError> {
    let (from, to) = places(root, request)?;
    if !request.overwrite && to.stat().is_ok() {
        return Err(at(&to.path)(Errno::EXIST));
    }
    copy_into_place(&from, &to, request.overwrite)?;
    seen(&to)
}

fn places(root: &Root, request: &Transfer) -> Result<(Place, Place), ApiError> {
    let from = root.place(&root.absolute(request.from.as_path())?)?;
    let to = root.place(&root.absolute(request.to.as_path())?)?;
    from.stat().map_err(at(&from.path))?;
    Ok((from, to))
}

/// Copies beside the destination first, so that it appears whole or not at all.
fn copy_into_place(from: &Place, to: &Place, overwrite: bool) -> Result<(), ApiError> {
    let scratch = Scratch { parent: to.fd(), name: temporary_name()? };
    Copier::default().copy((from.fd(), &from.name), (scratch.parent, &scratch.name), &from.path)?;
    let copied = to.beside(scratch.name.clone())?;
    if copied.stat().is_err() {
        return Err(bad_request(format!("{}: a socket cannot be copied", from.path.display())));
    }
    put(&copied, to, overwrite).map_err(|error| named(from, to, error))
}

fn put(from: &Place, to: &Place, overwrite: bool) -> Result<(), Errno> {
    let flags = if overwrite { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
    renameat_with(from.fd(), &from.name, to.fd(), &to.name, flags)
}

/// The kernel does not say which of two paths it means.
fn named(from: &Place, to: &Place, error: Errno) -> ApiError {
    match error {
        Errno::INVAL => bad_request(format!(
            "{}: cannot be moved into itself at {}",
            from.path.display(),
            to.path.display()
        )),
        Errno::NOENT => at(&from.path)(error),
        _ => at(&to.path)(error),
    }
}

fn seen(place: &Place) -> Result<Stat, ApiError> {
    let stat = place.stat().map_err(at(&place.path))?;
    let target = match kind(&stat) {
        FileKind::Symlink => link_target(place.fd(), &place.name),
        _ => None,
    };
    Ok(describe(&place.path, &stat, target))
}

pub(crate) async fn remove(call: Call) -> Result<StatusCode, Failure> {
    let (session, request) = call.json::<Remove>().await?;
    let files = session.files.clone();
    session.run(move |root| remove_entry(&files, root, &request)).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn remove_entry(files: &Files, root: &Root, request: &Remove) -> Result<(), ApiError> {
    let place = root.place(&root.absolute(request.path.as_path())?)?;
    match &request.if_match {
        None => take_away(&place, request.recursive, &place.path),
        Some(etag) => remove_version(files, &place, request.recursive, etag.parse().ok()),
    }
}

fn take_away(place: &Place, recursive: bool, shown: &Path) -> Result<(), ApiError> {
    if recursive {
        return tree::remove(place.fd(), &place.name, shown);
    }
    match unlinkat(place.fd(), &place.name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        result => return result.map_err(at(shown)),
    }
    unlinkat(place.fd(), &place.name, AtFlags::REMOVEDIR).map_err(|error| match error {
        Errno::NOTEMPTY => ApiError::new(
            ErrorKind::IsDirectory,
            format!("{}: is a directory that is not empty", shown.display()),
        )
        .hint("pass \"recursive\": true to remove it with what is in it"),
        error => at(shown)(error),
    })
}

/// Takes the entry aside first and looks at it there, where nobody else writes.
fn remove_version(
    files: &Files,
    place: &Place,
    recursive: bool,
    expected: Option<Version>,
) -> Result<(), ApiError> {
    let _alone = files.publishing();
    let other = || conflict(&place.path, "it is another version");
    let before = place.stat().map_err(at(&place.path))?;
    if expected != Some(Version::of(&before)) {
        return Err(other());
    }
    let aside = place.beside(temporary_name()?)?;
    put(place, &aside, false).map_err(at(&place.path))?;
    let taken = aside.stat().map_err(at(&place.path))?;
    if !Version::of(&before).same_content(Version::of(&taken)) {
        put(&aside, place, false).map_err(at(&place.path))?;
        return Err(other());
    }
    take_away(&aside, recursive, &place.path).inspect_err(|_| {
        // What could not be removed is still there, under its own name.
        let _ = put(&aside, place, false);
    })
}
