//! The calls about sessions, tokens and the record, and what the CLI needs to let somebody in.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Extension, Path, Query, State};
use http::StatusCode;
use nacre_wire::access::{AuditPage, CreateToken, MadeToken, SessionList, TokenList};
use nacre_wire::control::{SetupCode, SignInLink};
use nacre_wire::{ApiError, ErrorKind};
use serde::Deserialize;

use super::control::{Answer, Shared, require_unix};
use super::{App, Entrance};
use crate::auth::{Event, Pass};

/// What let the request in; absent on the unix socket.
pub(super) type LetIn = Option<Extension<Pass>>;

pub(super) async fn sessions(State(app): Shared, pass: LetIn) -> Json<SessionList> {
    let current = pass.as_ref().and_then(|Extension(pass)| pass.session()).map(|s| s.id());
    Json(SessionList { sessions: app.auth.sessions.list(current) })
}

pub(super) async fn end_session(
    State(app): Shared,
    Extension(entrance): Extension<Entrance>,
    Path(id): Path<String>,
) -> Answer<StatusCode> {
    app.end_session(&id, event("session_ended", entrance)).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn tokens(State(app): Shared) -> Json<TokenList> {
    Json(TokenList { tokens: app.auth.tokens.list() })
}

/// Who can make tokens can make more of them: only somebody on the machine may.
pub(super) async fn create_token(
    State(app): Shared,
    Extension(entrance): Extension<Entrance>,
    body: Bytes,
) -> Answer<(StatusCode, Json<MadeToken>)> {
    require_unix(entrance)?;
    let wanted: CreateToken = serde_json::from_slice(&body)
        .map_err(|error| ApiError::new(ErrorKind::InvalidRequest, format!("body: {error}")))?;
    let made = app.auth.tokens.create(wanted).await?;
    let scopes: Vec<_> = made.info.scopes.iter().map(|scope| scope.as_str()).collect();
    let detail = format!("{} ({})", made.info.name, scopes.join(" "));
    app.auth.note(Event::of("token_created").saying(detail)).await;
    Ok((StatusCode::CREATED, Json(made)))
}

pub(super) async fn revoke_token(
    State(app): Shared,
    Extension(entrance): Extension<Entrance>,
    Path(which): Path<String>,
) -> Answer<StatusCode> {
    let revoked = app.auth.tokens.revoke(&which).await?;
    app.auth.note(event("token_revoked", entrance).saying(revoked.name)).await;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
pub(super) struct AuditQuery {
    before: Option<i64>,
    limit: Option<u32>,
}

pub(super) async fn audit(
    State(app): Shared,
    Query(AuditQuery { before, limit }): Query<AuditQuery>,
) -> Answer<Json<AuditPage>> {
    Ok(Json(app.auth.audit(before, limit).await?))
}

pub(super) async fn sign_in_link(
    State(app): Shared,
    Extension(entrance): Extension<Entrance>,
) -> Answer<Json<SignInLink>> {
    require_unix(entrance)?;
    Ok(Json(app.auth.link(&app.url()).await?))
}

pub(super) async fn setup_code(
    State(app): Shared,
    Extension(entrance): Extension<Entrance>,
) -> Answer<Json<SetupCode>> {
    require_unix(entrance)?;
    Ok(Json(app.setup_code()?.ok_or_else(|| {
        match app.auth.owner() {
            Some(owner) => ApiError::new(
                ErrorKind::Exists,
                format!("this computer belongs to {owner} already"),
            )
            .hint("nacre login prints a link to it"),
            None => {
                ApiError::new(ErrorKind::Unsupported, "accounts cannot be asked from its address")
                    .hint("set PUBLIC_URL to an https address, or listen on loopback without TLS")
            }
        }
    })?))
}

pub(super) fn event(name: &'static str, entrance: Entrance) -> Event {
    match entrance {
        Entrance::Tcp(address) => Event::of(name).from(address.ip()),
        Entrance::Unix => Event::of(name).saying("from the terminal"),
    }
}

impl App {
    pub(super) async fn end_session(&self, id: &str, event: Event) -> Result<(), ApiError> {
        let ended =
            self.auth.sessions.end(id).await.map_err(crate::sandboxes::errors::from_store)?;
        if !ended {
            let message = format!("there is no session \"{}\"", id.escape_debug());
            return Err(ApiError::new(ErrorKind::NotFound, message).hint("see nacre sessions list"));
        }
        self.auth.note(event).await;
        Ok(())
    }

    /// `None` when somebody owns it, or accounts cannot be asked.
    pub(crate) fn setup_code(&self) -> Result<Option<SetupCode>, ApiError> {
        let code = self.auth.setup_code();
        let code = code.map_err(|error| ApiError::io("random numbers", &error))?;
        Ok(code.map(|code| SetupCode {
            url: format!("{}/register", self.url()),
            code: code.reveal(),
            expires_in_s: self.auth.setup_lifetime().as_secs(),
        }))
    }
}
