//! The way up: calls from the sandbox to its host.
//!
//! The host listens on a socket that only root of the sandbox can reach. `GET /supervisor/host`
//! asks it for its version, which shows that the way is open and that both sides understand each
//! other.

use std::path::PathBuf;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use nacre_wire::client::Client;
use nacre_wire::status::Version;
use nacre_wire::{ApiError, ErrorKind};

use crate::failure::Failure;

pub fn router(socket: Option<PathBuf>) -> Router {
    let client = socket.map(Client::unix);
    Router::new().route("/supervisor/host", get(version)).with_state(client)
}

async fn version(State(client): State<Option<Client>>) -> Result<Json<Version>, Failure> {
    let unreachable = |why: String| {
        ApiError::new(ErrorKind::Unavailable, format!("the host cannot be reached: {why}"))
            .hint("the gateway may be stopped; start it with `nacre up`")
    };
    let Some(client) = client else {
        return Err(unreachable("it listens nowhere".to_owned()).into());
    };
    match client.get_json("/host/version").await {
        Ok(version) => Ok(Json(version)),
        Err(error) => Err(unreachable(error.to_string()).into()),
    }
}
