//! Files, as the owner of `/workspace` or another named user sees them.
//!
//! | Call | What it does |
//! |---|---|
//! | `GET /supervisor/files/content?path=` | the bytes, with `ETag`; honours `Range`, `If-None-Match` |
//! | `PUT /supervisor/files/content?path=` | replace atomically; honours `If-Match`, `If-None-Match: *` |
//! | `POST /supervisor/files/append?path=` | add to the end |
//! | `GET /supervisor/files/list?path=&limit=&after=` | one page of a directory, sorted by name |
//! | `GET /supervisor/files/stat?path=&follow=` | one entry |
//! | `POST /supervisor/files/{mkdir,move,copy,remove,symlink,chmod}` | the JSON bodies below |
//! | `GET /supervisor/files/archive?path=` | a folder or file as a tar stream |
//! | `PUT /supervisor/files/archive?path=` | unpack a tar stream into a folder |
//!
//! Every call takes `user=` (a name or number). Relative paths start at `/workspace`.

use serde::{Deserialize, Serialize};

use crate::WirePath;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    File,
    Directory,
    Symlink,
    Fifo,
    Socket,
    BlockDevice,
    CharDevice,
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Stat {
    /// The full path for `stat`, the bare name in a listing.
    pub path: WirePath,
    pub kind: FileKind,
    pub size: u64,
    /// Permission bits, `0o7777`.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub links: u64,
    /// Nanoseconds since 1970.
    pub modified_ns: i64,
    /// Changes whenever content or metadata does; what `If-Match` takes.
    pub etag: String,
    /// Where a symlink points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<WirePath>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Listing {
    pub entries: Vec<Stat>,
    /// Pass as `after` for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<WirePath>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Mkdir {
    pub path: WirePath,
    /// Create missing parents and accept a directory that is already there.
    #[serde(default)]
    pub parents: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

/// Body of `move` and `copy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Transfer {
    pub from: WirePath,
    pub to: WirePath,
    /// Replace a file that is in the way; without it that is a conflict.
    #[serde(default)]
    pub overwrite: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Remove {
    pub path: WirePath,
    /// Remove a directory with what is in it.
    #[serde(default)]
    pub recursive: bool,
    /// Only this version; see [`Stat::etag`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_match: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Symlink {
    pub path: WirePath,
    pub target: WirePath,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Chmod {
    pub path: WirePath,
    pub mode: u32,
}

/// What an unpacked archive came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Unpacked {
    pub entries: u64,
    pub bytes: u64,
}
