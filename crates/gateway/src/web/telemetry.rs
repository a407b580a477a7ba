//! What the gateway has counted and noticed, `/admin/sandboxes/{metrics,alerts}`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use nacre_wire::control::AlertList;

use super::App;

pub(super) async fn metrics(State(app): State<Arc<App>>) -> Response {
    let egress = app.sandboxes.egress();
    let text = app.observer.prometheus(&app.sandboxes.list(), egress) + &app.models.prometheus();
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-store")], text).into_response()
}

pub(super) async fn alerts(State(app): State<Arc<App>>) -> Response {
    let alerts = AlertList { alerts: app.observer.alerts() };
    ([(CACHE_CONTROL, "no-store")], Json(alerts)).into_response()
}
