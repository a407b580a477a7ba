//! `[desktop]` in `nacre.toml`, as written and as resolved, and what the desktop runs on.

use std::fmt;

use serde::Deserialize;

/// The `[desktop]` table, before defaults.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct RawDesktopConfig {
    /// Whether the source of the desktop is put into the workspace of a new computer.
    pub seed: Option<bool>,
}

/// What a gateway does that was told nothing: it leaves workspaces as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DesktopConfig {
    pub seed: bool,
    /// Absent when the program was built without a desktop.
    pub modules: Option<Modules>,
}

/// The packages that the desktop is served with, which all sandboxes share.
#[derive(Clone, PartialEq, Eq)]
pub struct Modules {
    /// Changes with what is in it.
    pub id: &'static str,
    /// A compressed archive of `node_modules/`.
    pub archive: &'static [u8],
}

impl fmt::Debug for Modules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Modules({}, {} bytes)", self.id, self.archive.len())
    }
}

impl RawDesktopConfig {
    pub fn resolve(self, modules: Option<Modules>) -> DesktopConfig {
        DesktopConfig { seed: self.seed.unwrap_or(true), modules }
    }
}
