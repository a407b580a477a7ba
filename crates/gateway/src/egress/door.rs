//! `GET /host/egress` on the way up.

use axum::body::Body;
use axum::extract::{Extension, Query};
use axum::response::Response;
use http::Request;
use nacre_wire::egress::PROTOCOL;
use serde::Deserialize;

use crate::host::{self, Guest};
use crate::web::reply;

#[derive(Deserialize)]
pub(crate) struct Where {
    host: String,
    port: u16,
}

/// Connects first and answers then, so that a refusal can say why.
pub(crate) async fn open(
    Extension(guest): Extension<Guest>,
    Query(Where { host, port }): Query<Where>,
    request: Request<Body>,
) -> Response {
    if let Err(error) = host::asks_for(&request, PROTOCOL) {
        return reply::error(&error);
    }
    match guest.egress().reach(guest.id(), &guest.name(), &host, port).await {
        Ok(passage) => host::switch(request, PROTOCOL, |stream| passage.run(stream)),
        Err(error) => reply::error(&error),
    }
}
