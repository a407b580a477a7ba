use std::ffi::{CStr, c_char, c_int};
use std::path::Path;
use std::sync::OnceLock;

use rusqlite::{Connection, OpenFlags, ffi};

use crate::error::{Error, Result};
use crate::planted::{Fault, is_planted};

const SCHEMA: &str = "
    create table if not exists state (
        path blob primary key,
        inode integer not null,
        size integer not null,
        mtime integer not null,
        ctime integer not null,
        link integer,
        entry blob not null
    ) without rowid;
    create index if not exists state_by_link on state (link) where link is not null;
    create table if not exists last_link (
        id integer primary key check (id = 1),
        link integer not null
    );
    create table if not exists checkpoint (
        id integer primary key autoincrement,
        time integer not null,
        cause text not null,
        authors text not null,
        label text,
        added integer not null,
        changed integer not null,
        removed integer not null,
        notes text not null,
        delta blob not null
    );
    create table if not exists journal (
        id integer primary key check (id = 1),
        restoring text not null,
        steps blob not null
    );
";

/// Bytes of the write-ahead log that are worth cutting off: what a small checkpoint writes stays far
/// below, and then the room is used again.
const LARGE_LOG: u64 = 4 << 20;

/// Copies a write-ahead log that large transactions made long into the database, and gives its room
/// back. For idle time: what is committed is on disk before, and a log of [`LONGEST_LOG`] is copied by
/// whoever commits next. That it cannot be done now harms nothing.
pub(crate) fn shorten(db: &Connection, path: &Path) {
    let log = path.with_extension("db-wal");
    if std::fs::metadata(log).is_ok_and(|log| log.len() > LARGE_LOG) {
        let _ = db.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()));
    }
}

/// In pages of 4 KB: what some changes of thousands of files write.
const LONGEST_LOG: u32 = 16_384;

/// Raised when an older version could not read what this one writes.
const VERSION: i64 = 1;

/// Opens or creates the database. Nobody else may have it open.
pub(crate) fn open(path: &Path, more_schema: &str) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags_and_vfs(path, flags, plain_vfs()?)?;
    // Exclusive, so that there is no shared-memory file; full, so that what is acknowledged stays.
    db.execute_batch(
        "pragma locking_mode = exclusive;
         pragma journal_mode = wal;
         pragma synchronous = full;
         pragma temp_store = memory;
         pragma cache_size = -8192;
         pragma journal_size_limit = 16777216;
         pragma cell_size_check = on;
         pragma trusted_schema = off;",
    )?;
    db.pragma_update(None, "wal_autocheckpoint", LONGEST_LOG)?;
    if is_planted(Fault::LogNotSynced) {
        db.execute_batch("pragma synchronous = off")?;
    }
    let version: i64 = db.query_row("pragma user_version", [], |row| row.get(0))?;
    if version > VERSION {
        let why = format!("the history was written by a newer version (format {version})");
        return Err(Error::Invalid(why));
    }
    db.execute_batch(&format!(
        "begin immediate; {SCHEMA} {more_schema} pragma user_version = {VERSION}; commit"
    ))?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(db)
}

/// SQLite's own way to files, but without making the path absolute and resolving its links first:
/// the store may be a directory that is only reachable through a descriptor.
fn plain_vfs() -> Result<&'static CStr> {
    const NAME: &CStr = c"nacre-plain";
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let registered = REGISTERED.get_or_init(|| {
        // SAFETY: called after SQLite has initialised itself (find does so); the copy is leaked, so
        // it outlives every use, and shares the original's methods and data, which are static.
        unsafe {
            let default = ffi::sqlite3_vfs_find(std::ptr::null());
            if default.is_null() {
                return false;
            }
            let mut vfs = *default;
            vfs.zName = NAME.as_ptr();
            vfs.pNext = std::ptr::null_mut();
            vfs.xFullPathname = Some(as_it_is);
            ffi::sqlite3_vfs_register(Box::leak(Box::new(vfs)), 0) == ffi::SQLITE_OK
        }
    });
    if *registered { Ok(NAME) } else { Err(Error::Invalid("cannot set up SQLite".to_owned())) }
}

/// # Safety
/// As SQLite calls it: `path` is a C string, `out` has room for `room` bytes.
unsafe extern "C" fn as_it_is(
    _: *mut ffi::sqlite3_vfs,
    path: *const c_char,
    room: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: a C string by contract.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes_with_nul();
    if bytes.len() > usize::try_from(room).unwrap_or(0) {
        return ffi::SQLITE_CANTOPEN;
    }
    // SAFETY: `out` has room for at least as many bytes, and does not overlap the path.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), out, bytes.len()) };
    ffi::SQLITE_OK
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_store_behind_a_descriptor_can_be_opened() {
        let home = tempfile::tempdir().unwrap();
        let (old, new) = (home.path().join("old"), home.path().join("new"));
        std::fs::create_dir(&old).unwrap();
        let directory = std::fs::File::open(&old).unwrap();
        // The name that the link of the descriptor shows is one that cannot be opened.
        std::fs::rename(&old, &new).unwrap();
        std::fs::write(&old, "in the way").unwrap();
        let path = format!("/proc/self/fd/{}/log.db", directory.as_raw_fd());
        let db = open(Path::new(&path), "").unwrap();
        db.execute("insert into checkpoint values (1, 0, '', '', null, 0, 0, 0, '', x'')", [])
            .unwrap();
        drop(db);
        assert!(new.join("log.db").exists());
        let db = open(&new.join("log.db"), "").unwrap();
        let count: i64 = db.query_row("select count(*) from checkpoint", [], |r| r.get(0)).unwrap();
        assert_eq!(count, 1);
    }

    #[test]
    fn a_newer_format_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("log.db");
        open(&path, "").unwrap().execute_batch("pragma user_version = 99").unwrap();
        assert!(matches!(open(&path, ""), Err(Error::Invalid(why)) if why.contains("newer")));
    }
}
