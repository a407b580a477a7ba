//! The door: accepts connections and answers requests, come what may.
//!
//! Every request goes through three steps: the protocol generation is agreed on, the routes
//! answer, and a panic on the way becomes that request's error.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{Method, Request, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use nacre_wire::generation::{self, Incompatible, Range};
use nacre_wire::{ApiError, ErrorKind};
use tokio::net::{UnixListener, UnixStream};
use tower::ServiceExt;

use crate::failure::Failure;
use crate::panics;

/// After a failed accept, such as when all descriptors are in use: others have to close first.
const PAUSE: Duration = Duration::from_millis(50);

const BUFFER: usize = 1 << 20;
const SOCKET_BUFFER: usize = 4 << 20;

/// Gives what no route answers an answer that a program understands.
pub fn app(routes: Router) -> Router {
    routes.fallback(unknown).method_not_allowed_fallback(wrong_method)
}

/// Serves for ever; each connection has a task of its own.
pub async fn accept(door: UnixListener, app: Router) -> Infallible {
    loop {
        match door.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(connection(stream, app.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn connection(stream: UnixStream, app: Router) {
    let service = service_fn(move |request: Request<Incoming>| {
        let app = app.clone();
        async move { Ok::<_, Infallible>(respond(app, request.map(Body::new)).await) }
    });
    // A stream then moves in few system calls. The kernel caps what it does not want to give.
    let _ = rustix::net::sockopt::set_socket_send_buffer_size(&stream, SOCKET_BUFFER);
    let served = http1::Builder::new()
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "connection ended");
    }
}

async fn respond(app: Router, request: Request<Body>) -> Response {
    let outcome = generation::negotiate(request.headers());
    let mut response = match &outcome {
        Ok(_) => contained(app, request).await,
        Err(error) => Failure(incompatible(error)).into_response(),
    };
    generation::announce(response.headers_mut(), &outcome);
    response
}

async fn contained(app: Router, request: Request<Body>) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    match panics::contain(app.oneshot(request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(panics::Panicked) => {
            let message = format!("the supervisor failed on {method} {path}");
            Failure::new(ErrorKind::Internal, message).into_response()
        }
    }
}

fn incompatible(Incompatible { theirs }: &Incompatible) -> ApiError {
    let message = format!("client speaks {theirs}, this supervisor speaks {}", Range::OURS);
    ApiError::new(ErrorKind::Incompatible, message).hint("restart the sandbox to update it")
}

async fn unknown(uri: Uri) -> Failure {
    Failure::new(ErrorKind::NotFound, format!("nothing at {}", uri.path()))
}

async fn wrong_method(method: Method, uri: Uri) -> Response {
    let message = format!("{} does not take {method}", uri.path());
    let mut response = Failure::new(ErrorKind::InvalidRequest, message).into_response();
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use http::HeaderMap;
    use http_body_util::BodyExt;
    use nacre_wire::error::ErrorBody;

    async fn ask(path: &str, protocol: Option<&str>) -> (StatusCode, HeaderMap, Option<ErrorKind>) {
        let routes = Router::new()
            .route("/supervisor/fine", get(|| async { "fine" }))
            .route("/supervisor/boom", get(boom));
        let mut request = Request::get(path);
        if let Some(protocol) = protocol {
            request = request.header(generation::HEADER, protocol);
        }
        let response = respond(app(routes), request.body(Body::empty()).unwrap()).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let error = serde_json::from_slice::<ErrorBody>(&body).ok().map(|body| body.error.kind);
        (parts.status, parts.headers, error)
    }

    async fn boom() -> &'static str {
        panic!("on purpose")
    }

    #[tokio::test]
    async fn a_generation_is_agreed_on_or_refused() {
        for fine in [None, Some("1"), Some("1-9")] {
            let (status, headers, _) = ask("/supervisor/fine", fine).await;
            assert_eq!(status, StatusCode::OK, "{fine:?}");
            assert_eq!(headers[generation::HEADER], "1");
        }
        for bad in ["2-9", "0", "new", ""] {
            let (status, headers, error) = ask("/supervisor/fine", Some(bad)).await;
            assert_eq!(status, StatusCode::UPGRADE_REQUIRED, "{bad}");
            assert_eq!(error, Some(ErrorKind::Incompatible));
            assert_eq!(headers[generation::HEADER], Range::OURS.to_string().as_str());
        }
    }

    #[tokio::test]
    async fn a_panic_is_one_requests_error_and_counted() {
        panics::install();
        let before = panics::seen();
        let (status, _, error) = ask("/supervisor/boom", None).await;
        assert_eq!((status, error), (StatusCode::INTERNAL_SERVER_ERROR, Some(ErrorKind::Internal)));
        assert!(panics::seen() > before);
        assert_eq!(ask("/supervisor/fine", None).await.0, StatusCode::OK);
    }

    #[tokio::test]
    async fn an_unknown_path_and_a_wrong_method_are_typed() {
        let (status, _, error) = ask("/supervisor/nope", None).await;
        assert_eq!((status, error), (StatusCode::NOT_FOUND, Some(ErrorKind::NotFound)));
        let request = Request::post("/supervisor/fine").body(Body::empty()).unwrap();
        let routes = Router::new().route("/supervisor/fine", get(|| async { "fine" }));
        let response = respond(app(routes), request).await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
}
