//! The tables that say where every content lies. What they do not name does not exist.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::entry::ContentId;
use crate::error::{Error, Result};

pub(super) const SCHEMA: &str = "
create table if not exists pack (
    number integer primary key,
    -- Bytes of the file that count; whatever follows was never recorded.
    length integer not null,
    -- Bytes of all contents ever put in it, before compression.
    raw integer not null,
    frames integer not null,
    -- Written in idle time to stay as it is, or found to be as small as it gets.
    pressed integer not null default 0
);
create table if not exists object (
    id blob primary key,
    pack integer not null,
    frame integer not null,
    start integer not null,
    length integer not null
) without rowid;
-- Large contents: which objects they are made of, in order.
create table if not exists recipe (
    id blob primary key,
    length integer not null,
    parts blob not null
) without rowid;
";

/// Where a content lies: in the frame at an offset of a pack, from a byte of what the frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) pack: u32,
    pub(super) frame: u64,
    pub(super) start: u32,
    pub(super) length: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PackRow {
    pub(super) number: u32,
    pub(super) length: u64,
    pub(super) raw: u64,
    pub(super) frames: u64,
    pub(super) pressed: bool,
}

#[derive(Debug)]
pub(super) enum Found {
    Whole(Place),
    Recipe(Vec<u8>),
}

/// Stores of before there was anything to press have no column for it.
pub(super) fn prepare(db: &Connection) -> Result<()> {
    let sql = "select exists (select 1 from pragma_table_info('pack') where name = 'pressed')";
    if !db.query_row(sql, [], |row| row.get::<_, bool>(0))? {
        db.execute_batch("alter table pack add column pressed integer not null default 0")?;
    }
    Ok(())
}

fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    value.try_into().map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
}

fn place(row: &Row<'_>, first: usize) -> rusqlite::Result<Place> {
    Ok(Place {
        pack: row.get(first)?,
        frame: unsigned(row, first + 1)?,
        start: row.get(first + 2)?,
        length: row.get(first + 3)?,
    })
}

pub(super) fn is_empty(db: &Connection) -> Result<bool> {
    let sql = "select not exists (select 1 from object)";
    Ok(db.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

pub(super) fn object(db: &Connection, id: &ContentId) -> Result<Option<Place>> {
    let sql = "select pack, frame, start, length from object where id = ?1";
    Ok(db.prepare_cached(sql)?.query_row([&id.0], |row| place(row, 0)).optional()?)
}

pub(super) fn recipe(db: &Connection, id: &ContentId) -> Result<Option<Vec<u8>>> {
    let sql = "select parts from recipe where id = ?1";
    Ok(db.prepare_cached(sql)?.query_row([&id.0], |row| row.get(0)).optional()?)
}

pub(super) fn find(db: &Connection, id: &ContentId) -> Result<Found> {
    if let Some(place) = object(db, id)? {
        return Ok(Found::Whole(place));
    }
    recipe(db, id)?.map(Found::Recipe).ok_or(Error::Missing(*id))
}

/// In the order of their numbers.
pub(super) fn packs(db: &Connection) -> Result<Vec<PackRow>> {
    let sql = "select number, length, raw, frames, pressed from pack order by number";
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        Ok(PackRow {
            number: row.get(0)?,
            length: unsigned(row, 1)?,
            raw: unsigned(row, 2)?,
            frames: unsigned(row, 3)?,
            pressed: row.get(4)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Every object of the packs from `first` to `last`, in no order worth naming.
pub(super) fn each_object(
    db: &Connection,
    first: u32,
    last: u32,
    mut each: impl FnMut(ContentId, Place),
) -> Result<()> {
    let sql = "select id, pack, frame, start, length from object where pack >= ?1 and pack <= ?2";
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query([first, last])?;
    while let Some(row) = rows.next()? {
        each(ContentId(row.get(0)?), place(row, 1)?);
    }
    Ok(())
}

/// How many recipes there are, and how many bytes they stand for.
pub(super) fn recipes(db: &Connection) -> Result<(u64, u64)> {
    let sql = "select count(*), coalesce(sum(length), 0) from recipe";
    let totals = |row: &Row<'_>| Ok((unsigned(row, 0)?, unsigned(row, 1)?));
    Ok(db.prepare_cached(sql)?.query_row([], totals)?)
}

pub(super) fn each_recipe(
    db: &Connection,
    mut each: impl FnMut(ContentId, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut statement = db.prepare_cached("select id, parts from recipe")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        each(ContentId(row.get(0)?), row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?)?;
    }
    Ok(())
}

pub(super) fn insert_objects(tx: &Transaction<'_>, objects: &[(ContentId, Place)]) -> Result<()> {
    let sql = "insert into object (id, pack, frame, start, length) values (?1, ?2, ?3, ?4, ?5)";
    let mut statement = tx.prepare_cached(sql)?;
    for (id, place) in objects {
        let Place { pack, frame, start, length } = place;
        statement.execute(params![&id.0, pack, frame.cast_signed(), start, length])?;
    }
    Ok(())
}

pub(super) fn move_objects(tx: &Transaction<'_>, objects: &[(ContentId, Place)]) -> Result<()> {
    let sql = "update object set pack = ?2, frame = ?3, start = ?4 where id = ?1";
    let mut statement = tx.prepare_cached(sql)?;
    for (id, place) in objects {
        statement.execute(params![&id.0, place.pack, place.frame.cast_signed(), place.start])?;
    }
    Ok(())
}

pub(super) fn insert_recipe(
    tx: &Transaction<'_>,
    id: &ContentId,
    length: u64,
    parts: &[u8],
) -> Result<()> {
    let sql = "insert into recipe (id, length, parts) values (?1, ?2, ?3)";
    tx.prepare_cached(sql)?.execute(params![&id.0, length.cast_signed(), parts])?;
    Ok(())
}

pub(super) fn insert_pack(tx: &Transaction<'_>, pack: PackRow) -> Result<()> {
    let sql = "insert into pack (number, length, raw, frames, pressed) values (?1, ?2, ?3, ?4, ?5)";
    let [length, raw, frames] = [pack.length, pack.raw, pack.frames].map(u64::cast_signed);
    tx.prepare_cached(sql)?.execute(params![pack.number, length, raw, frames, pack.pressed])?;
    Ok(())
}

/// Lengthens a pack that ended at `from`. Bytes written there for a batch that another one has
/// overtaken are no longer its own.
pub(super) fn extend_pack(tx: &Transaction<'_>, from: u64, to: PackRow) -> Result<()> {
    let sql = "update pack set length = ?1, raw = raw + ?2, frames = frames + ?3
        where number = ?4 and length = ?5";
    let number = to.number;
    let [length, raw, frames, from] = [to.length, to.raw, to.frames, from].map(u64::cast_signed);
    if tx.prepare_cached(sql)?.execute(params![length, raw, frames, number, from])? == 1 {
        return Ok(());
    }
    Err(Error::Invalid(format!("pack {number} has grown since this batch was written")))
}

pub(super) fn set_pressed(db: &Connection, number: u32) -> Result<()> {
    db.prepare_cached("update pack set pressed = 1 where number = ?1")?.execute([number])?;
    Ok(())
}

pub(super) fn delete_pack(tx: &Transaction<'_>, number: u32) -> Result<()> {
    tx.prepare_cached("delete from pack where number = ?1")?.execute([number])?;
    Ok(())
}

pub(super) fn delete_objects(tx: &Transaction<'_>, ids: &[ContentId]) -> Result<()> {
    let mut statement = tx.prepare_cached("delete from object where id = ?1")?;
    for id in ids {
        statement.execute([&id.0])?;
    }
    Ok(())
}

pub(super) fn delete_recipes(tx: &Transaction<'_>, ids: &[ContentId]) -> Result<()> {
    let mut statement = tx.prepare_cached("delete from recipe where id = ?1")?;
    for id in ids {
        statement.execute([&id.0])?;
    }
    Ok(())
}
