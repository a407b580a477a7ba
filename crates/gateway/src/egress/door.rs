//! `GET /host/egress` on the way up.

use axum::body::Body;
use axum::extract::{Extension, Query};
use axum::response::Response;
use http::Request;
use nacre_wire::egress::PROTOCOL;
use serde::Deserialize;

use super::passage::From;
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
    let from = From { id: guest.id(), name: &guest.name(), run: guest.run() };
    match guest.egress().reach(from, &host, port).await {
        Ok(passage) => host::switch(request, PROTOCOL, |stream| passage.run(stream)),
        Err(error) => reply::error(&error),
    }
}
