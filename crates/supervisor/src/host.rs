//! The way up: calls from the sandbox to its host.
//!
//! The host listens on a socket that only root of the sandbox can reach. `GET /supervisor/host`
//! asks it for its version, which shows that the way is open and that both sides understand each
//! other.

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use nacre_wire::client::Client;
use nacre_wire::status::Version;
use nacre_wire::{ApiError, ErrorKind};

use crate::failure::Failure;

/// The host as the supervisor sees it; `None` when it listens nowhere.
pub type Host = Option<Client>;

pub fn router(host: Host) -> Router {
    Router::new().route("/supervisor/host", get(version)).with_state(host)
}

async fn version(State(host): State<Host>) -> Result<Json<Version>, Failure> {
    let Some(client) = host else {
        return Err(unreachable("it listens nowhere").into());
    };
    match client.get_json("/host/version").await {
        Ok(version) => Ok(Json(version)),
        Err(error) => Err(unreachable(error).into()),
    }
}

pub(crate) fn unreachable(why: impl std::fmt::Display) -> ApiError {
    ApiError::new(ErrorKind::Unavailable, format!("the host cannot be reached: {why}"))
        .hint("the gateway may be stopped; start it with `nacre up`")
}
