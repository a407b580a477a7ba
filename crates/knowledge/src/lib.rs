//! What is known: documents found by word and by meaning, facts that were told, and editions that
//! never change.
//!
//! ```text
//!  text ─▶ chunk ─▶ embed ─▶ Library::put ─▶ knowledge.db: chunks, their words (FTS5), their vectors
//!  query ─▶ words ──▶ FTS5 ranks ──┐
//!        └▶ embed ──▶ every vector ─┴▶ fuse ─▶ passages with path and lines
//!  content ─▶ Manifest ─▶ Library::publish ─▶ an edition, named by its hash
//! ```
//! [`Library`] owns the database and what of it is kept in memory. The crate is synchronous, knows no
//! network, no sandbox and no clock: whoever holds a library says what time it is.

pub mod chunk;
mod date;
pub mod edition;
pub mod embed;
mod error;
mod fuse;
mod library;
pub mod passage;
mod vectors;
mod words;

pub use date::of_ms as date_of_ms;
pub use error::{Error, Result};
pub use library::{
    ChangeFact, Citation, Cited, Edition, EditionInfo, Fact, Found, Hit, Known, Library, NewFact,
    Pending, Prepared, PreparedChunk, Publish, Published, Query, Recalled, Status, Verified, Way,
    hash_of, prepare,
};
pub use vectors::Quantised;
