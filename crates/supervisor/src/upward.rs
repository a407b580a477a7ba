//! Paths of this sandbox that its host answers: what came through the door for them goes up again.
//!
//! The host let the request in, said whose it is and gave it a ticket; without these two nothing is
//! passed on, and without a ticket of its own the host takes nothing. So a process in here gets no further
//! by asking the host itself, whoever it runs as: tickets are seen by the supervisor alone.

use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::uri::PathAndQuery;
use http::{Request, Uri, header};
use nacre_wire::conductor::TICKET;
use nacre_wire::{ApiError, ErrorKind};
use tokio::net::UnixStream;

use crate::failure::Failure;
use crate::host;
use crate::runtime::{Broken, Hold, exchange_over, keep_end_to_end};

const USER: &str = "x-nacre-user";

/// The way to the host, when there is one. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Upward(Option<Arc<PathBuf>>);

impl Upward {
    pub fn new(socket: Option<PathBuf>) -> Self {
        Self(socket.map(Arc::new))
    }

    /// Streamed both ways, upgrades as raw bytes.
    pub(crate) async fn pass(&self, request: Request<Body>) -> Response {
        self.try_pass(request).await.unwrap_or_else(|error| Failure(error).into_response())
    }

    async fn try_pass(&self, mut request: Request<Body>) -> Result<Response, ApiError> {
        let headers = request.headers();
        if !headers.contains_key(USER) || !headers.contains_key(TICKET) {
            let message = format!("{} is only for who comes by the gateway", request.uri().path());
            return Err(ApiError::new(ErrorKind::Permission, message)
                .hint("a gateway that is too old gives no tickets; update it"));
        }
        let Some(socket) = &self.0 else { return Err(host::unreachable("it listens nowhere")) };
        let stream = UnixStream::connect(&**socket).await.map_err(host::unreachable)?;
        upward(&mut request)?;
        exchange_over(Box::new(stream), request, Hold::of_nothing()).await.map_err(|broken| {
            match broken {
                Broken::Unreachable => host::unreachable("it does not answer"),
                Broken::Off(error) => host::unreachable(error),
            }
        })
    }
}

/// The head as the host should see it.
fn upward(request: &mut Request<Body>) -> Result<(), ApiError> {
    let asked = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    let path: PathAndQuery = format!("/host{asked}")
        .parse()
        .map_err(|_| ApiError::new(ErrorKind::InvalidRequest, "the path is malformed"))?;
    *request.uri_mut() = Uri::from(path);
    *request.version_mut() = http::Version::HTTP_11;
    let headers = request.headers_mut();
    let upgrading = headers.contains_key(header::UPGRADE);
    keep_end_to_end(headers, upgrading);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;

    #[tokio::test]
    async fn nothing_goes_up_that_did_not_come_down() {
        let upward = Upward::new(Some("/nowhere/host.sock".into()));
        for (user, ticket, expected) in [
            (None, None, StatusCode::FORBIDDEN),
            (Some("me"), None, StatusCode::FORBIDDEN),
            (None, Some("t"), StatusCode::FORBIDDEN),
            (Some("me"), Some("t"), StatusCode::SERVICE_UNAVAILABLE),
        ] {
            let mut request = Request::get("/conductor/conversations");
            for (name, value) in [(USER, user), (TICKET, ticket)] {
                if let Some(value) = value {
                    request = request.header(name, value);
                }
            }
            let response = upward.pass(request.body(Body::empty()).unwrap()).await;
            assert_eq!(response.status(), expected, "{user:?} {ticket:?}");
        }
    }

    #[test]
    fn the_host_sees_the_path_as_it_was_sent() {
        let mut request = Request::get("/conductor/a%2Fb?after=1").body(Body::empty()).unwrap();
        upward(&mut request).unwrap();
        assert_eq!(request.uri(), "/host/conductor/a%2Fb?after=1");
    }
}
