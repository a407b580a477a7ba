//! Calls about entries: list, stat, mkdir, symlink, chmod.

use std::collections::BinaryHeap;
use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use axum::Json;
use nacre_wire::files::{Chmod, FileKind, Listing, Mkdir, Stat, Symlink};
use nacre_wire::{ApiError, WirePath};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, chmodat, fstat, mkdirat, statat, symlinkat};
use rustix::io::Errno;

use super::directory::for_each_name;
use super::fault::{at, bad_request, invalid};
use super::root::Root;
use super::session::{Call, checked_mode};
use super::version::{describe, kind, link_target};
use crate::failure::Failure;

const PAGE: usize = 1000;
const LARGEST_PAGE: usize = 10_000;

pub(crate) async fn list(call: Call) -> Result<Json<Listing>, Failure> {
    let path = call.path()?;
    let limit = call.query.number("limit", 10)?.map_or(PAGE, |limit| limit as usize);
    if limit == 0 {
        return Err(bad_request("a page holds at least one entry").into());
    }
    let after = call.query.path("after").map(|after| after.as_os_str().as_bytes().to_vec());
    let page = move |root: &_| page(root, &path, limit.min(LARGEST_PAGE), after.as_deref());
    Ok(Json(call.session.run(page).await?))
}

fn page(root: &Root, path: &Path, limit: usize, after: Option<&[u8]>) -> Result<Listing, ApiError> {
    let directory = root.directory(path)?;
    // The smallest names so far; one more than asked for says whether another page follows.
    let mut smallest: BinaryHeap<CString> = BinaryHeap::with_capacity(limit + 2);
    for_each_name(&directory, |name, _| {
        let wanted = after.is_none_or(|after| name.to_bytes() > after)
            && (smallest.len() <= limit
                || smallest.peek().is_some_and(|largest| name < largest.as_c_str()));
        if wanted {
            smallest.push(name.to_owned());
            if smallest.len() > limit + 1 {
                smallest.pop();
            }
        }
    })
    .map_err(at(path))?;
    let mut names = smallest.into_sorted_vec();
    let more = names.len() > limit;
    names.truncate(limit);
    let next = names.last().filter(|_| more).map(|last| OsStr::from_bytes(last.to_bytes()));
    let next = next.map(WirePath::from);
    // An entry that vanished since the directory was read is no longer one.
    let entries = names.iter().filter_map(|name| entry(&directory, name)).collect();
    Ok(Listing { entries, next })
}

fn entry(directory: impl AsFd, name: &CString) -> Option<Stat> {
    let stat = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let target = match kind(&stat) {
        FileKind::Symlink => link_target(&directory, name),
        _ => None,
    };
    Some(describe(Path::new(OsStr::from_bytes(name.as_bytes())), &stat, target))
}

pub(crate) async fn stat(call: Call) -> Result<Json<Stat>, Failure> {
    let path = call.path()?;
    let follow = call.query.flag("follow")?;
    Ok(Json(call.session.run(move |root| look(root, &path, follow)).await?))
}

fn look(root: &Root, path: &Path, follow: bool) -> Result<Stat, ApiError> {
    let follow = if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
    let fd = root.descend(path, OFlags::PATH | follow, Mode::empty()).map_err(at(path))?;
    let stat = fstat(&fd).map_err(at(path))?;
    Ok(describe(path, &stat, link_target(&fd, c"").filter(|_| kind(&stat) == FileKind::Symlink)))
}

pub(crate) async fn mkdir(call: Call) -> Result<Json<Stat>, Failure> {
    let (session, request) = call.json::<Mkdir>().await?;
    Ok(Json(session.run(move |root| make_directory(root, &request)).await?))
}

fn make_directory(root: &Root, request: &Mkdir) -> Result<Stat, ApiError> {
    let path = root.absolute(request.path.as_path())?;
    let mode = request.mode.map(checked_mode).transpose()?;
    let place = if request.parents { root.place_with_parents(&path)? } else { root.place(&path)? };
    match mkdirat(place.fd(), &place.name, Mode::from_raw_mode(mode.unwrap_or(0o777) & 0o777)) {
        Ok(()) => {}
        Err(Errno::EXIST) if request.parents => {
            // Also when it is a symlink to one, as `mkdir -p` has it.
            root.descend(&path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())
                .map_err(|_| at(&path)(Errno::EXIST))?;
            return look(root, &path, true);
        }
        Err(error) => return Err(at(&path)(error)),
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made =
        rustix::fs::openat(place.fd(), &place.name, flags, Mode::empty()).map_err(at(&path))?;
    if let Some(mode) = mode {
        // The umask does not apply to a mode that was asked for.
        set_mode(&made, mode).map_err(at(&path))?;
    }
    let stat = fstat(&made).map_err(at(&path))?;
    Ok(describe(&path, &stat, None))
}

pub(crate) async fn symlink(call: Call) -> Result<Json<Stat>, Failure> {
    let (session, request) = call.json::<Symlink>().await?;
    Ok(Json(session.run(move |root| make_symlink(root, &request)).await?))
}

fn make_symlink(root: &Root, request: &Symlink) -> Result<Stat, ApiError> {
    let path = root.absolute(request.path.as_path())?;
    let target = request.target.as_path();
    if target.as_os_str().is_empty() || target.as_os_str().as_bytes().contains(&0) {
        return Err(invalid(target, "a symlink cannot point there"));
    }
    let place = root.place(&path)?;
    symlinkat(target, place.fd(), &place.name).map_err(at(&path))?;
    let stat = place.stat().map_err(at(&path))?;
    Ok(describe(&path, &stat, Some(target.to_owned())))
}

pub(crate) async fn chmod(call: Call) -> Result<Json<Stat>, Failure> {
    let (session, request) = call.json::<Chmod>().await?;
    Ok(Json(session.run(move |root| change_mode(root, &request)).await?))
}

fn change_mode(root: &Root, request: &Chmod) -> Result<Stat, ApiError> {
    let path = root.absolute(request.path.as_path())?;
    let mode = checked_mode(request.mode)?;
    let fd = root.descend(&path, OFlags::PATH, Mode::empty()).map_err(at(&path))?;
    set_mode(&fd, mode).map_err(at(&path))?;
    let stat = fstat(&fd).map_err(at(&path))?;
    Ok(describe(&path, &stat, None))
}

/// Changes the mode of what an O_PATH descriptor stands for. `fchmodat2` could take the
/// descriptor itself but is younger than the kernels we run on.
pub(crate) fn set_mode(fd: &impl AsRawFd, mode: u32) -> Result<(), Errno> {
    let by_descriptor = format!("/proc/self/fd/{}", fd.as_raw_fd());
    chmodat(CWD, by_descriptor, Mode::from_raw_mode(mode), AtFlags::empty())
}
