//! The desktop of a sandbox.
//!
//! `GET /supervisor/desktop/health` says whether the page at `/` works, and `POST
//! /supervisor/desktop/seed` puts its source into the workspace.

use serde::{Deserialize, Serialize};

/// Whether what a sandbox shows at `/` works, as of now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DesktopHealth {
    /// Every check is.
    pub ok: bool,
    pub mode: DesktopMode,
    pub checks: Vec<DesktopCheck>,
}

/// Whose the page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DesktopMode {
    /// The desktop that is in the workspace: a `[runtime]` with `guard`.
    Source,
    /// The copy that came with Nacre.
    Built,
    /// Some other app.
    App,
    /// One this version does not know.
    #[serde(other)]
    Unknown,
}

/// One of `process`, `page`, `entry`, `modules`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DesktopCheck {
    pub name: String,
    pub ok: bool,
    /// What is wrong, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct SeedRequest {
    /// Put the source in the place of the one that is there.
    pub replace: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Seeded {
    pub seeded: bool,
    /// Why it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}
