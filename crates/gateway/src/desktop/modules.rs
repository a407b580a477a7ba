//! Unpacking what the desktop runs on, once for every version of it.
//!
//! `shared/desktop-ID/` is whole or not there: it is made under another name, and gets its own when
//! everything in it is on disk. It is never changed afterwards, and never removed: a workspace may lead
//! to it. All sandboxes see the folder, so everything in it is open to every id.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use rustix::mm::Advice;
use tar::{Archive, Entry, EntryType};
use tokio_util::sync::CancellationToken;

use super::config::Modules;

/// How the name of one begins that is not whole.
const NEW: &str = ".new-";

/// Blocks for a second or so when it is missing. A full disk leaves nothing behind.
pub(super) fn unpack(modules: &Modules, shared: &Path, stop: &CancellationToken) -> io::Result<()> {
    let place = shared.join(format!("desktop-{}", modules.id));
    if place.is_dir() {
        return Ok(());
    }
    make_directory(shared)?;
    remove_leftovers(shared)?;
    let new = shared.join(format!("{NEW}{}", modules.id));
    let unpacked = make_directory(&new)
        .and_then(|()| Unpacking::below(&new).run(modules.archive, stop))
        .and_then(|()| publish(&new, &place));
    if unpacked.is_err() {
        // Reported first: what failed the unpacking may well fail the removal too.
        let _ = fs::remove_dir_all(&new);
    }
    let_go_of(modules.archive);
    unpacked
}

/// One `syncfs` for thousands of files, and then the name.
fn publish(new: &Path, place: &Path) -> io::Result<()> {
    let directory = fs::File::open(new)?;
    rustix::fs::syncfs(&directory)?;
    fs::rename(new, place)?;
    fs::File::open(place.parent().unwrap_or(place))?.sync_all()
}

fn remove_leftovers(shared: &Path) -> io::Result<()> {
    for entry in fs::read_dir(shared)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(NEW) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Says that the archive is not needed soon. It is a part of the program's file, and would otherwise stay
/// in memory for as long as the program runs.
fn let_go_of(archive: &'static [u8]) {
    let page = rustix::param::page_size();
    let skip = archive.as_ptr().align_offset(page).min(archive.len());
    let whole = &archive[skip..];
    let length = whole.len() / page * page;
    if length > 0 {
        let start = whole.as_ptr().cast_mut().cast();
        // SAFETY: the range is within memory that lives for ever, and this advice changes no content.
        let _ = unsafe { rustix::mm::madvise(start, length, Advice::LinuxPageOut) };
    }
}

struct Unpacking<'a> {
    root: &'a Path,
    made: HashSet<PathBuf>,
}

impl<'a> Unpacking<'a> {
    fn below(root: &'a Path) -> Self {
        Self { root, made: HashSet::from([PathBuf::new()]) }
    }

    fn run(mut self, archive: &[u8], stop: &CancellationToken) -> io::Result<()> {
        for entry in Archive::new(GzDecoder::new(archive)).entries()? {
            if stop.is_cancelled() {
                return Err(io::Error::new(io::ErrorKind::Interrupted, "the gateway stops"));
            }
            self.entry(entry?)?;
        }
        Ok(())
    }

    fn entry(&mut self, mut entry: Entry<'_, impl io::Read>) -> io::Result<()> {
        let path = plain(&entry.path()?)?;
        let parent = path.parent().unwrap_or(Path::new("")).to_owned();
        match entry.header().entry_type() {
            EntryType::Directory => self.directory(&path),
            EntryType::Regular => {
                self.directory(&parent)?;
                let mode = if entry.header().mode()? & 0o100 == 0 { 0o644 } else { 0o755 };
                let target = self.root.join(&path);
                let mut file =
                    fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(target)?;
                // Whatever the umask is.
                file.set_permissions(fs::Permissions::from_mode(mode))?;
                io::copy(&mut entry, &mut file).map(|_| ())
            }
            EntryType::Symlink => {
                self.directory(&parent)?;
                match entry.link_name()? {
                    Some(to) if to.is_relative() => symlink(to, self.root.join(&path)),
                    _ => Err(refused(&path, "leads elsewhere")),
                }
            }
            EntryType::XGlobalHeader => Ok(()),
            _ => Err(refused(&path, "is neither a file, a folder nor a link")),
        }
    }

    /// With those above it.
    fn directory(&mut self, path: &Path) -> io::Result<()> {
        if self.made.contains(path) {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.directory(parent)?;
        }
        make_directory(&self.root.join(path))?;
        self.made.insert(path.to_owned());
        Ok(())
    }
}

/// Open to every id, whatever the umask is.
fn make_directory(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
        other => other?,
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

/// The path without `.`; one that leads out of the folder is refused.
fn plain(path: &Path) -> io::Result<PathBuf> {
    path.components()
        .filter(|part| *part != Component::CurDir)
        .map(|part| match part {
            Component::Normal(name) => Ok(name),
            _ => Err(refused(path, "leads elsewhere")),
        })
        .collect()
}

fn refused(path: &Path, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} in the archive {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tar::{Builder, Header};

    use super::*;

    /// Names are written as they are, which a library would not do for bad ones.
    fn header(name: &str, kind: EntryType, mode: u32, size: u64) -> Header {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(size);
        header.set_cksum();
        header
    }

    fn modules(fill: impl FnOnce(&mut Builder<&mut Vec<u8>>)) -> Modules {
        let mut plain = Vec::new();
        let mut builder = Builder::new(&mut plain);
        fill(&mut builder);
        builder.finish().unwrap();
        drop(builder);
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&plain).unwrap();
        Modules { id: "0123456789abcdef", archive: packed.finish().unwrap().leak() }
    }

    fn file(builder: &mut Builder<&mut Vec<u8>>, name: &str, mode: u32, content: &[u8]) {
        let header = header(name, EntryType::Regular, mode, content.len() as u64);
        builder.append(&header, content).unwrap();
    }

    fn link(builder: &mut Builder<&mut Vec<u8>>, name: &str, to: &str) {
        let mut header = header(name, EntryType::Symlink, 0o777, 0);
        header.as_old_mut().linkname[..to.len()].copy_from_slice(to.as_bytes());
        header.set_cksum();
        builder.append(&header, io::empty()).unwrap();
    }

    fn run(modules: &Modules, shared: &Path) -> io::Result<()> {
        unpack(modules, shared, &CancellationToken::new())
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Puts something into an archive.
    type Fill<'a> = &'a dyn Fn(&mut Builder<&mut Vec<u8>>);

    #[test]
    fn what_was_packed_is_there_open_to_all_and_left_alone_afterwards() {
        let data = tempfile::tempdir().unwrap();
        let shared = data.path().join("shared");
        let modules = modules(|builder| {
            let folder = header("node_modules/", EntryType::Directory, 0o700, 0);
            builder.append(&folder, io::empty()).unwrap();
            file(builder, "./node_modules/vite/bin/vite.js", 0o700, b"#!/usr/bin/env node\n");
            file(builder, "node_modules/vite/package.json", 0o600, b"{}");
            link(builder, "node_modules/.bin/vite", "../vite/bin/vite.js");
        });
        // Of a process that was killed.
        fs::create_dir_all(shared.join(".new-ffff/node_modules")).unwrap();
        run(&modules, &shared).unwrap();
        assert_eq!(names(&shared), ["desktop-0123456789abcdef"]);
        let folder = shared.join("desktop-0123456789abcdef/node_modules");
        let mode =
            |name: &str| fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(""), 0o755);
        assert_eq!(mode("vite/bin"), 0o755);
        assert_eq!(mode(".bin/vite"), 0o755, "the link leads to the program");
        assert_eq!(mode("vite/package.json"), 0o644);
        assert_eq!(modules.archive[0], 0x1f, "the archive is what it was");

        fs::remove_file(folder.join("vite/package.json")).unwrap();
        run(&modules, &shared).unwrap();
        assert!(!folder.join("vite/package.json").exists(), "it is made once");
    }

    #[test]
    fn what_leads_out_of_the_folder_is_refused_and_nothing_is_left() {
        let data = tempfile::tempdir().unwrap();
        let cases: [(&str, Fill<'_>); 4] = [
            ("absolute", &|builder| file(builder, "/escaped", 0o644, b"x")),
            ("above", &|builder| file(builder, "node_modules/../../escaped", 0o644, b"x")),
            ("link", &|builder| link(builder, "node_modules/a", "/etc/passwd")),
            ("device", &|builder| {
                let header = header("node_modules/null", EntryType::Char, 0o666, 0);
                builder.append(&header, io::empty()).unwrap();
            }),
        ];
        for (case, fill) in cases {
            let shared = data.path().join(case);
            let refused = run(&modules(fill), &shared).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidData, "{case}: {refused}");
            assert_eq!(names(&shared), Vec::<String>::new(), "{case}");
        }
        assert!(!data.path().join("escaped").exists());
    }

    #[test]
    fn an_archive_that_is_cut_off_and_a_stop_leave_nothing() {
        let data = tempfile::tempdir().unwrap();
        let whole = modules(|builder| file(builder, "node_modules/a", 0o644, &[7; 100_000]));
        let half = Modules { archive: &whole.archive[..whole.archive.len() / 2], ..whole.clone() };
        run(&half, data.path()).unwrap_err();
        assert_eq!(names(data.path()), Vec::<String>::new());
        let stop = CancellationToken::new();
        stop.cancel();
        let stopped = unpack(&whole, data.path(), &stop).unwrap_err();
        assert_eq!(stopped.kind(), io::ErrorKind::Interrupted);
        assert_eq!(names(data.path()), Vec::<String>::new());
        run(&whole, data.path()).unwrap();
        assert_eq!(names(data.path()), ["desktop-0123456789abcdef"]);
    }
}
