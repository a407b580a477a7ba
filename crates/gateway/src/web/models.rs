//! The calls about models: providers, policy tokens and usage.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Extension, Path, Query, State};
use http::StatusCode;
use nacre_wire::ApiError;
use nacre_wire::models::{
    CallPage, CreatePolicyToken, MadePolicyToken, PolicyTokenList, ProviderList, ProviderTested,
    Switch, Switched, TestProvider, UsageBy, UsageReport,
};
use serde::Deserialize;

use super::access::event;
use super::control::{Answer, Shared, parse, require_unix};
use super::{App, Entrance};

pub(super) async fn providers(State(app): Shared) -> Json<ProviderList> {
    Json(app.models.providers())
}

pub(super) async fn reload(
    State(app): Shared,
    Extension(entrance): Extension<Entrance>,
) -> Answer<Json<ProviderList>> {
    require_unix(entrance)?;
    Ok(Json(app.models.reload().await?))
}

pub(super) async fn stop(
    State(app): Shared,
    Extension(entrance): Extension<Entrance>,
    body: Bytes,
) -> Answer<Json<Switched>> {
    let Switch { provider } = parse(&body)?;
    Ok(Json(switch_off(&app, entrance, provider).await?))
}

pub(super) async fn switch_off(
    app: &App,
    entrance: Entrance,
    provider: Option<String>,
) -> Result<Switched, ApiError> {
    let switched = app.models.stop_calls(provider.as_deref()).await?;
    let which = provider.unwrap_or_else(|| "all of them".to_owned());
    app.auth.note(event("provider_stopped", entrance).saying(which)).await;
    Ok(switched)
}

/// Pages of a sandbox share the owner's origin: they may stop spending, not start it.
pub(super) async fn start(
    State(app): Shared,
    Extension(entrance): Extension<Entrance>,
    body: Bytes,
) -> Answer<Json<Switched>> {
    require_unix(entrance)?;
    let Switch { provider } = parse(&body)?;
    Ok(Json(switch_on(&app, entrance, provider).await?))
}

pub(super) async fn switch_on(
    app: &App,
    entrance: Entrance,
    provider: Option<String>,
) -> Result<Switched, ApiError> {
    let switched = app.models.start_calls(provider.as_deref()).await?;
    let which = provider.unwrap_or_else(|| "all of them".to_owned());
    app.auth.note(event("provider_started", entrance).saying(which)).await;
    Ok(switched)
}

pub(super) async fn test(
    State(app): Shared,
    Extension(entrance): Extension<Entrance>,
    Path(name): Path<String>,
    body: Bytes,
) -> Answer<Json<ProviderTested>> {
    require_unix(entrance)?;
    let wanted: TestProvider = parse(&body)?;
    Ok(Json(app.models.test(&name, wanted).await?))
}

pub(super) async fn tokens(State(app): Shared) -> Json<PolicyTokenList> {
    Json(PolicyTokenList { tokens: app.models.policy_tokens() })
}

pub(super) async fn create_token(
    State(app): Shared,
    Extension(entrance): Extension<Entrance>,
    body: Bytes,
) -> Answer<(StatusCode, Json<MadePolicyToken>)> {
    require_unix(entrance)?;
    let mut wanted: CreatePolicyToken = parse(&body)?;
    if let Some(name) = &wanted.scope.sandbox {
        wanted.scope.sandbox = Some(app.sandboxes.find(name)?.id.to_string());
    }
    let made = app.models.create_policy_token(wanted).await?;
    let detail = format!("{} ({})", made.info.name, made.info.id);
    app.auth.note(event("policy_token_created", entrance).saying(detail)).await;
    Ok((StatusCode::CREATED, Json(made)))
}

pub(super) async fn revoke_token(
    State(app): Shared,
    Extension(entrance): Extension<Entrance>,
    Path(which): Path<String>,
) -> Answer<StatusCode> {
    app.models.revoke_policy_token(&which).await?;
    app.auth.note(event("policy_token_revoked", entrance).saying(which)).await;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
pub(super) struct UsageQuery {
    #[serde(default)]
    by: UsageBy,
    /// Unix milliseconds.
    #[serde(default)]
    since: u64,
}

pub(super) async fn usage(
    State(app): Shared,
    Query(UsageQuery { by, since }): Query<UsageQuery>,
) -> Answer<Json<UsageReport>> {
    Ok(Json(app.models.usage(by, since).await?))
}

#[derive(Deserialize)]
pub(super) struct CallsQuery {
    before: Option<i64>,
    limit: Option<u32>,
}

pub(super) async fn calls(
    State(app): Shared,
    Query(CallsQuery { before, limit }): Query<CallsQuery>,
) -> Answer<Json<CallPage>> {
    Ok(Json(app.models.calls(before, limit).await?))
}
