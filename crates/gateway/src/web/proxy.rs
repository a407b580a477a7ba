//! One request through the door: streamed both ways, upgrades as raw bytes.

use axum::body::Body;
use axum::response::Response;
use http::uri::PathAndQuery;
use http::{Request, StatusCode, Uri};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use nacre_wire::{ApiError, ErrorKind};

use super::headers::{self, Forwarded};
use super::reply;
use crate::sandboxes::Sandbox;
use crate::sandboxes::errors;

/// Each direction of an upgraded connection.
const COPY_BUFFER: usize = 64 * 1024;

/// `path` is what the sandbox sees, with the query.
pub(crate) async fn forward(
    sandbox: &Sandbox,
    path: String,
    forwarded: Forwarded,
    mut request: Request<Body>,
) -> Response {
    let navigation = reply::is_navigation(request.method(), request.headers());
    if let Err(error) = sandbox.require_running() {
        return reply::unavailable_as(navigation, &error);
    }
    *request.uri_mut() = match path.parse::<PathAndQuery>() {
        Ok(path) => Uri::from(path),
        Err(_) => {
            return reply::error(&ApiError::new(
                ErrorKind::InvalidRequest,
                "the path is malformed",
            ));
        }
    };
    *request.version_mut() = http::Version::HTTP_11;
    let client = request
        .headers()
        .contains_key(http::header::UPGRADE)
        .then(|| hyper::upgrade::on(&mut request));
    headers::inward(request.headers_mut(), forwarded);
    match sandbox.door.send(request).await {
        Ok(mut response) => {
            let switching = response.status() == StatusCode::SWITCHING_PROTOCOLS;
            if let (true, Some(client)) = (switching, client) {
                join(client, hyper::upgrade::on(&mut response));
            }
            headers::outward(response.headers_mut(), switching, forwarded.jar);
            response.map(Body::new)
        }
        Err(error) => {
            tracing::warn!(sandbox = %sandbox.name, %error, "a proxied request failed");
            reply::unavailable_as(navigation, &errors::from_door(&sandbox.name, &error))
        }
    }
}

/// Joins the two ends in the background, until both are done.
fn join(client: OnUpgrade, sandbox: OnUpgrade) {
    tokio::spawn(async move {
        let (client, sandbox) = match tokio::try_join!(client, sandbox) {
            Ok(ends) => ends,
            Err(error) => {
                tracing::debug!(%error, "an upgrade was not completed");
                return;
            }
        };
        let (mut client, mut sandbox) = (TokioIo::new(client), TokioIo::new(sandbox));
        // Either end may simply go away; that is how most terminals are closed.
        let _ = tokio::io::copy_bidirectional_with_sizes(
            &mut client,
            &mut sandbox,
            COPY_BUFFER,
            COPY_BUFFER,
        )
        .await;
    });
}
