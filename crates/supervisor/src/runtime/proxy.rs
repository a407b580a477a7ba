//! The way from the door to the app: every path that is neither the supervisor's own, nor the host's, nor
//! that of another port goes to the port of `[runtime]`, streamed both ways, upgrades as raw bytes. How
//! an app is visited, and what people see when it is not at home, is in [`visit`].

use std::io;

use axum::body::Body;
use axum::extract::State;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use nacre_wire::client::BoxStream;
use nacre_wire::conductor;
use nacre_wire::relay::{Answer, Link, Upload, join};

use super::mount::Mount;
use super::usage::Hold;
use super::{Pages, Runtime, probe, visit};
use crate::failure::Failure;
use crate::ports::{self, Mounted};
use crate::rescue::Rescue;
use crate::upward::Upward;

static FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
static HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Stands before all routes: decides whose the request is.
pub async fn front(
    State((runtime, upward, rescue)): State<(Runtime, Upward, Rescue)>,
    request: Request<Body>,
    next: Next,
) -> Response {
    if is_ours(request.uri().path()) {
        return next.run(request).await;
    }
    if conductor::relayed(request.uri().path()) {
        return upward.pass(request).await;
    }
    if let Some(mounted) = Mounted::read(&request) {
        return ports::answer(mounted, request).await;
    }
    match runtime.pages(&Mount::of(request.headers())).await {
        Ok(Pages::App(app)) => visit::answer(&app, &rescue, request).await,
        Ok(Pages::Built | Pages::Nobody | Pages::Unknown) => next.run(request).await,
        Err(error) => Failure(error).into_response(),
    }
}

/// `/ws` is the events; below it, and an upgrade at `/`, everything is the app's.
fn is_ours(path: &str) -> bool {
    let below = |top: &str| {
        path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    path == "/ws" || ["/supervisor", "/files", "/logs"].into_iter().any(below)
}

/// Why there is no answer.
pub(crate) enum Broken {
    Unreachable,
    Off(io::Error),
}

/// One request to a port of this sandbox, which is asked by its own name.
pub(crate) async fn exchange(port: u16, request: Request<Body>) -> Result<Response, Broken> {
    exchange_holding(port, request, Hold::of_nothing()).await
}

/// The same, with something held until the answer, or the connection that it becomes, is over.
pub(crate) async fn exchange_holding(
    port: u16,
    mut request: Request<Body>,
    hold: Hold,
) -> Result<Response, Broken> {
    let stream = probe::connect(port).await.map_err(|_| Broken::Unreachable)?;
    // A socket answers with small messages that should not wait for each other.
    let _ = stream.set_nodelay(true);
    inward(&mut request, port);
    exchange_over(Box::new(stream), request, hold).await
}

/// One request over a connection of its own, whose head is as the other side should see it.
pub(crate) async fn exchange_over(
    stream: BoxStream,
    mut request: Request<Body>,
    hold: Hold,
) -> Result<Response, Broken> {
    let link = Link::open(stream, None).await.map_err(Broken::Off)?;
    let client =
        request.headers().contains_key(header::UPGRADE).then(|| hyper::upgrade::on(&mut request));
    match link.exchange(Upload::of(request)).await.map_err(|failed| Broken::Off(failed.error))? {
        Answer::Response(mut response) => {
            keep_end_to_end(response.headers_mut(), false);
            Ok(response.map(|body| hold.during(Body::new(body))))
        }
        Answer::Switched(mut response, raw) => {
            let unasked = || io::Error::other("it switched protocols without being asked to");
            let client = client.ok_or_else(|| Broken::Off(unasked()))?;
            keep_end_to_end(response.headers_mut(), true);
            tokio::spawn(async move {
                let _hold = hold;
                if let Ok(client) = client.await {
                    join(TokioIo::new(client), raw.stream, raw.early).await;
                }
            });
            Ok(response.map(|()| Body::empty()))
        }
    }
}

/// Dev servers answer only to names they know, so the app is asked by a name of its own and is
/// told what the browser asked for.
fn inward(request: &mut Request<Body>, port: u16) {
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = Uri::from(path.unwrap_or(PathAndQuery::from_static("/")));
    *request.version_mut() = http::Version::HTTP_11;
    let headers = request.headers_mut();
    let upgrading = headers.contains_key(header::UPGRADE);
    // The gateway says this and nothing else there, for clients that take trailers.
    let trailers = headers.get(header::TE).is_some_and(|te| te == "trailers");
    keep_end_to_end(headers, upgrading);
    if trailers && !upgrading {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
    }
    headers.remove(nacre_wire::generation::HEADER);
    let own = HeaderValue::from_str(&format!("localhost:{port}"));
    let own = own.unwrap_or(HeaderValue::from_static("localhost"));
    if let Some(asked) = headers.insert(header::HOST, own)
        && !headers.contains_key(&FORWARDED_HOST)
    {
        headers.insert(FORWARDED_HOST.clone(), asked);
    }
}

/// Takes off what is about one connection only, but for an upgrade.
pub(crate) fn keep_end_to_end(headers: &mut HeaderMap, upgrading: bool) {
    let upgrade = headers.get(header::UPGRADE).cloned().filter(|_| upgrading);
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // Naming these would take away the message's own framing.
        .filter(|name| *name != header::HOST && *name != header::CONTENT_LENGTH)
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
    if let Some(upgrade) = upgrade {
        headers.insert(header::UPGRADE, upgrade);
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    }
}

/// Whether somebody looks at what comes back.
pub(crate) fn is_navigation(method: &Method, headers: &HeaderMap) -> bool {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let asks_for_page = header("accept").is_some_and(|accept| accept.contains("text/html"));
    let is_subresource = header("sec-fetch-mode").is_some_and(|mode| mode != "navigate");
    matches!(*method, Method::GET | Method::HEAD)
        && asks_for_page
        && !is_subresource
        && !headers.contains_key(header::UPGRADE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_supervisors_own_paths_are_kept() {
        let deep =
            ["/supervisor", "/supervisor/", "/supervisor/health", "/files", "/files/a/b", "/logs/"];
        for ours in ["/ws"].iter().chain(&deep) {
            assert!(is_ours(ours), "{ours}");
        }
        let others = ["/filesystem", "/a/files/", "/logs.txt", "/FILES/a"];
        for theirs in ["/", "/ws/", "/ws/room", "/supervisors", "/a/supervisor/", "/wsx"]
            .iter()
            .chain(&others)
        {
            assert!(!is_ours(theirs), "{theirs}");
        }
    }

    #[test]
    fn the_app_is_asked_by_its_own_name_and_learns_the_other() {
        let mut request = Request::get("/a?b=c")
            .header("host", "example.org")
            .header("connection", "keep-alive, x-secret, host")
            .header("x-secret", "1")
            .header("nacre-protocol", "1")
            .body(Body::empty())
            .unwrap();
        inward(&mut request, 5173);
        let headers = request.headers();
        assert_eq!(headers["host"], "localhost:5173");
        assert_eq!(headers["x-forwarded-host"], "example.org");
        assert_eq!(headers.len(), 2, "{headers:?}");
        assert_eq!(request.uri(), "/a?b=c");
    }

    #[test]
    fn an_upgrade_survives_as_one() {
        let mut request = Request::get("/")
            .header("connection", "keep-alive, Upgrade")
            .header("upgrade", "websocket")
            .body(Body::empty())
            .unwrap();
        inward(&mut request, 1);
        assert_eq!(request.headers()["connection"], "upgrade");
        assert_eq!(request.headers()["upgrade"], "websocket");
    }
}
