use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, Statement, params};

use crate::code::{Decoder, Encoder};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::path::TreePath;
use crate::tree::{self, Signature};

/// Bytes behind each entry that tell whether it is what was written.
const SEAL: usize = 8;

/// The recorded present.
pub(crate) struct State<'a>(pub(crate) &'a Connection);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) path: TreePath,
    pub(crate) entry: Entry,
    pub(crate) signature: Signature,
}

impl Recorded {
    pub(crate) fn for_scan(&self) -> tree::Recorded {
        let Entry { mode, uid, gid, .. } = self.entry;
        let (path, signature) = (self.path.clone(), self.signature);
        tree::Recorded { path, signature, mode, uid, gid, directory: self.entry.is_directory() }
    }
}

macro_rules! select {
    ($condition:literal) => {
        concat!("select path, entry, inode, size, mtime, ctime from state where ", $condition)
    };
}

impl State<'_> {
    pub(crate) fn get(&self, path: &TreePath) -> Result<Option<Recorded>> {
        let mut statement = self.0.prepare_cached(select!("path = ?"))?;
        statement.query_row([path.key()], |row| Ok(recorded(row))).optional()?.transpose()
    }

    /// What is below `path`, in the order of a walk.
    pub(crate) fn each_below(
        &self,
        path: &TreePath,
        mut each: impl FnMut(Recorded) -> Result<()>,
    ) -> Result<()> {
        let (from, to) = range(path);
        let mut statement =
            self.0.prepare_cached(select!("path > ? and path < ? order by path"))?;
        let mut rows = statement.query(params![from, to])?;
        while let Some(row) = rows.next()? {
            each(recorded(row)?)?;
        }
        Ok(())
    }

    /// Every name of the file that is known by this number.
    pub(crate) fn names_of(&self, link: u64) -> Result<Vec<Recorded>> {
        let mut statement = self.0.prepare_cached(select!("link = ? order by path"))?;
        let mut rows = statement.query([link.cast_signed()])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(recorded(row)?);
        }
        Ok(found)
    }

    /// Names that were seen with one of these inodes. Looks at every row: meant for the rare new
    /// hard link.
    pub(crate) fn with_inodes(&self, inodes: &[u64]) -> Result<Vec<TreePath>> {
        let mut found = Vec::new();
        let mut statement = self.0.prepare_cached("select path, inode from state")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let inode: i64 = row.get(1)?;
            if inodes.contains(&inode.cast_unsigned()) {
                found.push(path(row)?);
            }
        }
        Ok(found)
    }

    pub(crate) fn select_all(&self) -> Result<CachedStatement<'_>> {
        Ok(self.0.prepare_cached(select!("true order by path"))?)
    }

    /// Every name for a scan, in the order of a walk.
    pub(crate) fn scan<'s>(
        statement: &'s mut Statement<'_>,
    ) -> Result<impl Iterator<Item = Result<tree::Recorded>> + use<'s>> {
        let rows = statement.query_map([], |row| Ok(recorded(row)))?;
        Ok(rows.map(|row| Ok(row??.for_scan())))
    }

    /// Never one that was used before: the past still means another file by that.
    pub(crate) fn next_link(&self) -> Result<u64> {
        let last: Option<i64> =
            self.0.query_row("select max(link) from last_link", [], |row| row.get(0))?;
        Ok(last.unwrap_or(0).cast_unsigned() + 1)
    }

    pub(crate) fn put(&self, path: &TreePath, entry: &Entry, signature: &Signature) -> Result<()> {
        let mut encoder = Encoder::default();
        entry.encode(&mut encoder);
        let mut entry_bytes = encoder.finish();
        entry_bytes.extend_from_slice(&seal(path.key(), &entry_bytes));
        let mut statement = self.0.prepare_cached(
            "insert or replace into state (path, inode, size, mtime, ctime, link, entry) \
             values (?, ?, ?, ?, ?, ?, ?)",
        )?;
        statement.execute(params![
            path.key(),
            signature.inode.cast_signed(),
            signature.size.cast_signed(),
            signature.mtime,
            signature.ctime,
            entry.link.map(u64::cast_signed),
            entry_bytes,
        ])?;
        if let Some(link) = entry.link {
            let mut statement = self.0.prepare_cached(
                "insert into last_link (id, link) values (1, ?) \
                 on conflict (id) do update set link = max(link, excluded.link)",
            )?;
            statement.execute([link.cast_signed()])?;
        }
        Ok(())
    }

    pub(crate) fn remove(&self, path: &TreePath) -> Result<()> {
        self.0.prepare_cached("delete from state where path = ?")?.execute([path.key()])?;
        Ok(())
    }

    pub(crate) fn count(&self) -> Result<u64> {
        let count: i64 = self.0.query_row("select count(*) from state", [], |row| row.get(0))?;
        Ok(count.cast_unsigned())
    }
}

/// Keys strictly between these belong to what is below. No name has 256 bytes.
fn range(path: &TreePath) -> (Vec<u8>, Vec<u8>) {
    if path.is_root() {
        return (Vec::new(), vec![0xff; 256]);
    }
    let ends = |end: u8| [path.key(), &[end]].concat();
    (ends(0), ends(1))
}

fn path(row: &Row<'_>) -> Result<TreePath> {
    let key = row.get_ref(0)?.as_blob().unwrap_or(b"\0");
    TreePath::from_key(key).ok_or_else(|| Error::damaged("a name in the recorded state"))
}

/// Ties an entry to its name: a name that a fault of the disk has turned into another must not be
/// taken for it.
fn seal(key: &[u8], entry: &[u8]) -> [u8; SEAL] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(key.len() as u64).to_le_bytes()).update(key).update(entry);
    let mut seal = [0; SEAL];
    hasher.finalize_xof().fill(&mut seal);
    seal
}

fn recorded(row: &Row<'_>) -> Result<Recorded> {
    let path = path(row)?;
    let bytes = row.get_ref(1)?.as_blob().unwrap_or_default();
    let damaged = || Error::damaged(format!("the recorded state of {path}"));
    let mut decoder = Decoder::new(bytes);
    let entry = Entry::decode(&mut decoder).map_err(|_| damaged())?;
    let (whole, rest) = bytes.split_at(bytes.len() - decoder.rest().len());
    // Rows of an older version have none.
    if !rest.is_empty() && rest != seal(path.key(), whole) {
        return Err(damaged());
    }
    let number = |column| row.get::<_, i64>(column);
    let signature = Signature {
        inode: number(2)?.cast_unsigned(),
        size: number(3)?.cast_unsigned(),
        mtime: number(4)?,
        ctime: number(5)?,
    };
    Ok(Recorded { path, entry, signature })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Kind;
    use crate::log::open;

    fn directory() -> Entry {
        Entry {
            mode: 0o755,
            uid: 0,
            gid: 0,
            mtime: 0,
            kind: Kind::Directory,
            link: None,
            xattrs: Vec::new(),
        }
    }

    #[test]
    fn an_entry_belongs_to_its_name() {
        let home = tempfile::tempdir().unwrap();
        let db = open(&home.path().join("log.db"), "").unwrap();
        let name = |text: &str| TreePath::root().join(text.as_ref());
        State(&db).put(&name("stile"), &directory(), &Signature::UNKNOWN).unwrap();
        assert_eq!(State(&db).get(&name("stile")).unwrap().unwrap().entry, directory());
        let key = name("still").key().to_vec();
        db.execute("update state set path = ?", [&key]).unwrap();
        assert!(State(&db).get(&name("still")).is_err());
        // One that an older version has written.
        let mut encoder = Encoder::default();
        directory().encode(&mut encoder);
        db.execute("update state set entry = ?", [encoder.finish()]).unwrap();
        assert_eq!(State(&db).get(&name("still")).unwrap().unwrap().entry, directory());
    }
}
