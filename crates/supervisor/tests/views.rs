//! `/files/` and `/logs/`: what people look at in a browser.

#![allow(clippy::unwrap_used, reason = "the helpers here are tests too")]

mod support;

use std::os::unix::fs::symlink;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{HeaderMap, Request, Response, StatusCode};
use nacre_wire::error::ErrorBody;
use nacre_wire::{ErrorKind, path};
use support::Supervisor;
use support::story::Story;

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    async fn of(response: Response<Incoming>) -> Self {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Self { status: parts.status, headers: parts.headers, body }
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn error(&self) -> ErrorKind {
        serde_json::from_slice::<ErrorBody>(&self.body).unwrap().error.kind
    }
}

async fn ask(supervisor: &Supervisor, method: &str, uri: &str, with: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder().method(method).uri(uri).header("host", "door");
    for (name, value) in with {
        request = request.header(*name, *value);
    }
    Answer::of(supervisor.send(request.body(Full::default()).unwrap()).await).await
}

async fn get(supervisor: &Supervisor, uri: &str) -> Answer {
    ask(supervisor, "GET", uri, &[]).await
}

fn put(supervisor: &Supervisor, name: &str, content: &str) {
    let path = supervisor.workspace().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

#[tokio::test]
async fn a_file_comes_with_its_type_its_ranges_and_its_version() {
    let pc = Supervisor::start().await;
    put(&pc, "pictures/a b.png", "0123456789");
    let uri = "/files/pictures/a%20b.png";
    let whole = get(&pc, uri).await;
    assert_eq!((whole.status, &whole.body[..]), (StatusCode::OK, &b"0123456789"[..]));
    assert_eq!(whole.header("content-type"), "image/png");
    assert_eq!(whole.header("x-content-type-options"), "nosniff");
    assert_eq!(whole.header("accept-ranges"), "bytes");
    assert_eq!(whole.header("content-disposition"), "");

    let part = ask(&pc, "GET", uri, &[("range", "bytes=2-4")]).await;
    assert_eq!((part.status, &part.body[..]), (StatusCode::PARTIAL_CONTENT, &b"234"[..]));
    assert_eq!(part.header("content-range"), "bytes 2-4/10");
    let beyond = ask(&pc, "GET", uri, &[("range", "bytes=99-")]).await;
    assert_eq!(beyond.status, StatusCode::RANGE_NOT_SATISFIABLE);

    let head = ask(&pc, "HEAD", uri, &[]).await;
    assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
    assert_eq!((head.header("content-length"), head.header("content-type")), ("10", "image/png"));
    let known = ask(&pc, "GET", uri, &[("if-none-match", whole.header("etag"))]).await;
    assert_eq!(known.status, StatusCode::NOT_MODIFIED);

    let kept = get(&pc, &format!("{uri}?download")).await;
    assert_eq!(kept.header("content-disposition"), "attachment; filename*=UTF-8''a%20b.png");
    let (status, _) = pc.call("PUT", uri, "x").await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn what_could_run_script_is_shown_in_a_sandbox() {
    let pc = Supervisor::start().await;
    for (name, media_type, sandboxed) in [
        ("a.html", "text/html; charset=utf-8", true),
        ("a.SVG", "image/svg+xml", true),
        ("a.xml", "application/xml", true),
        ("a.pdf", "application/pdf", false),
        ("a.md", "text/markdown; charset=utf-8", false),
        ("a.whatever", "application/octet-stream", false),
    ] {
        put(&pc, name, "<script>alert(1)</script>");
        let answer = get(&pc, &format!("/files/{name}")).await;
        assert_eq!(answer.header("content-type"), media_type, "{name}");
        let policy = answer.header("content-security-policy");
        assert_eq!(policy.starts_with("sandbox; default-src 'none'"), sandboxed, "{name} {policy}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{name}");
    }
}

#[tokio::test]
async fn no_path_and_no_link_leads_out_of_the_workspace() {
    let pc = Supervisor::start().await;
    let workspace = pc.workspace();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("canary"), "outside").unwrap();
    put(&pc, "in.txt", "inside");
    symlink("in.txt", workspace.join("relative.txt")).unwrap();
    symlink(workspace.join("in.txt"), workspace.join("absolute.txt")).unwrap();
    symlink(outside.path().join("canary"), workspace.join("out.txt")).unwrap();
    symlink(outside.path(), workspace.join("folder")).unwrap();
    symlink("loop.txt", workspace.join("loop.txt")).unwrap();
    for fine in ["in.txt", "relative.txt", "absolute.txt"] {
        assert_eq!(get(&pc, &format!("/files/{fine}")).await.body, "inside", "{fine}");
    }
    let escaped = path::to_query(outside.path().join("canary")).replace('/', "%2F");
    for (hostile, kind) in [
        ("out.txt", ErrorKind::InvalidPath),
        ("folder/canary", ErrorKind::InvalidPath),
        ("loop.txt", ErrorKind::InvalidPath),
        ("../door", ErrorKind::InvalidPath),
        ("%2e%2e/door", ErrorKind::InvalidPath),
        ("/etc/passwd", ErrorKind::InvalidPath),
        (&escaped, ErrorKind::InvalidPath),
        ("in.txt%00", ErrorKind::InvalidPath),
        ("missing.txt", ErrorKind::NotFound),
        ("in.txt/x", ErrorKind::NotDirectory),
        ("folder/", ErrorKind::IsDirectory),
    ] {
        let answer = get(&pc, &format!("/files/{hostile}")).await;
        assert_eq!(answer.error(), kind, "{hostile}");
    }
}

#[tokio::test]
async fn logs_are_text_and_can_be_followed() {
    let mut story =
        Story::with("[process.a]\ncommand = \"echo '<b>hello</b>'; exec sleep 1000\"\n").await;
    story.ready("a").await;
    story.log_until("a", 0, "hello").await;
    let pc = &story.supervisor;
    for uri in ["/logs", "/logs/"] {
        assert_eq!(get(pc, uri).await.body, "a\tready\n");
    }
    let log = get(pc, "/logs/a").await;
    assert_eq!(log.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(log.header("x-content-type-options"), "nosniff");
    assert!(log.body.ends_with(b"<b>hello</b>\n"), "{:?}", log.body);
    let same = get(pc, "/supervisor/processes/a/log?format=text").await;
    assert_eq!(log.body, same.body);
    assert_eq!(get(pc, "/logs/b").await.error(), ErrorKind::NotFound);

    let request = Request::get("/logs/a?follow=true").header("host", "door");
    let response = pc.send(request.body(Full::default()).unwrap()).await;
    let mut body = response.into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(first.ends_with(b"<b>hello</b>\n"), "{first:?}");
    pc.call("POST", "/supervisor/processes/a/restart", "").await;
    let next = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(!next.is_empty());
}

#[tokio::test]
async fn an_app_has_neither_of_these_paths() {
    let mut story = Story::begin().await;
    std::fs::write(story.supervisor.workspace().join("app.py"), include_str!("support/app.py"))
        .unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    story.configure(&format!(
        "[runtime]\ncommand = [\"python3\", \"app.py\"]\nport = {port}\nready = \"/up\"\n"
    ));
    story.ready("runtime").await;
    for (uri, app) in [
        ("/logs/", false),
        ("/files/app.py", false),
        ("/filesx", true),
        ("/supervisor/rescue", false),
    ] {
        let answer = get(&story.supervisor, uri).await;
        assert_eq!(answer.header("x-app") == "yes", app, "{uri}");
    }
}
