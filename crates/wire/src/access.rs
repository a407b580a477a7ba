//! Who may come in: sessions, tokens and the record of who tried, below `/admin/sandboxes`.
//!
//! | Call | What it does |
//! |---|---|
//! | `GET /admin/sandboxes/sessions` | [`SessionList`] |
//! | `DELETE /admin/sandboxes/sessions/{id}` | ends one; what hangs on it is closed |
//! | `GET /admin/sandboxes/tokens` | [`TokenList`] |
//! | `POST /admin/sandboxes/tokens` | [`CreateToken`] -> [`MadeToken`], on the unix socket only |
//! | `DELETE /admin/sandboxes/tokens/{id}` | ends one |
//! | `GET /admin/sandboxes/audit` | [`AuditPage`] |

use serde::{Deserialize, Serialize};

/// Closes a WebSocket whose session or token was revoked or has expired: signing in again helps,
/// connecting again does not.
pub const SESSION_ENDED: u16 = 4002;
/// The reason that comes with [`SESSION_ENDED`].
pub const SESSION_ENDED_REASON: &str = "session ended";

/// How somebody signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SignInMethod {
    /// A one-time link from the terminal.
    Link,
    /// An Atmosphere account.
    Account,
    RecoveryCode,
    Passkey,
    /// One that this version does not know.
    #[serde(other)]
    Unknown,
}

impl SignInMethod {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Account => "account",
            Self::RecoveryCode => "recovery_code",
            Self::Passkey => "passkey",
            Self::Unknown => "unknown",
        }
    }

    pub fn parse(text: &str) -> Self {
        let known = [Self::Link, Self::Account, Self::RecoveryCode, Self::Passkey];
        known.into_iter().find(|method| method.as_str() == text).unwrap_or(Self::Unknown)
    }
}

/// A browser that is signed in. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SessionInfo {
    /// Names it, and opens nothing.
    pub id: String,
    pub method: SignInMethod,
    pub created_at: u64,
    /// When it last asked for something.
    pub seen_at: u64,
    /// When it ends, unless it is used before; never later than thirty days after it began.
    pub expires_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// What the browser calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The one that asks.
    #[serde(default)]
    pub current: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SessionList {
    /// Last used first.
    pub sessions: Vec<SessionInfo>,
}

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Reading: `GET` and `HEAD` everywhere, and no sockets.
    Read,
    /// Everything of the live sandbox.
    Live,
    /// Everything of the dev sandbox.
    Dev,
    /// Everything that a signed-in browser may do.
    Admin,
}

impl Scope {
    pub const ALL: [Self; 4] = [Self::Read, Self::Live, Self::Dev, Self::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Live => "live",
            Self::Dev => "dev",
            Self::Admin => "admin",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateToken {
    /// What it is for.
    pub name: String,
    pub scopes: Vec<Scope>,
    /// How long it works; for ever when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_s: Option<u64>,
}

/// A token for programs, without what opens anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenInfo {
    pub id: String,
    pub name: String,
    pub scopes: Vec<Scope>,
    pub created_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenList {
    pub tokens: Vec<TokenInfo>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MadeToken {
    #[serde(flatten)]
    pub info: TokenInfo,
    /// Shown this once.
    pub token: String,
}

/// Something that happened at the door of the computer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditEvent {
    pub id: i64,
    /// Unix milliseconds.
    pub at: u64,
    /// `sign_in`, `sign_in_refused`, `session_ended`, `token_created`, ...
    pub event: String,
    /// The DID that it is about, if one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditPage {
    /// Newest first.
    pub events: Vec<AuditEvent>,
    /// Pass it as `before` for what is older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
}
