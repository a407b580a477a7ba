//! The checks of a swap as they are made, for programs and as a page that ends with the swap.

use axum::body::Bytes;
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use nacre_wire::roles::{SwapCheck, SwapVerdict};

use crate::host::{Answer, Host};
use crate::pages::{NAVIGATES, SCRIPT, send, token};
use crate::raw::within;
use crate::world::HELD;

const CHECKS: &str = "/admin/sandboxes/swap/checks";
const PROMOTE: &str = "/admin/sandboxes/promote";

async fn twins() -> (Host, String) {
    let host = Host::start().await;
    host.put_app("live", "one").await;
    host.make_dev().await;
    host.put_app("dev", "two").await;
    let cookie = host.sign_in().await;
    (host, cookie)
}

/// An answer that comes piece by piece.
struct Pieces {
    body: Incoming,
    text: String,
}

impl Pieces {
    fn of(response: Response<Incoming>) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        Self { body: response.into_body(), text: String::new() }
    }

    /// Whether there was another.
    async fn more(&mut self) -> bool {
        let frame = within("the answer goes on", self.body.frame()).await;
        let data = frame.map(|frame| frame.unwrap().into_data().unwrap_or_default());
        let came: Bytes = data.clone().unwrap_or_default();
        self.text.push_str(std::str::from_utf8(&came).unwrap());
        data.is_some()
    }

    async fn until(&mut self, good: impl Fn(&str) -> bool) {
        while !good(&self.text) {
            assert!(self.more().await, "it ended: {}", self.text);
        }
    }

    async fn whole(mut self) -> String {
        while self.more().await {}
        self.text
    }

    fn names(&self) -> Vec<String> {
        let checks = self.text.lines().filter_map(|line| serde_json::from_str(line).ok());
        checks.map(|check: SwapCheck| check.name).collect()
    }
}

async fn look(host: &Host, cookie: &str) -> Response<Incoming> {
    let mut headers = vec![("cookie", cookie)];
    headers.extend(SCRIPT);
    host.send(host.build("GET", CHECKS, &headers, axum::body::Body::empty())).await
}

async fn open(host: &Host, cookie: &str) -> Response<Incoming> {
    let mut headers = vec![("cookie", cookie)];
    headers.extend(NAVIGATES);
    host.send(host.build("GET", PROMOTE, &headers, axum::body::Body::empty())).await
}

#[tokio::test]
async fn each_check_is_told_when_it_ends() {
    let (host, cookie) = twins().await;
    let before = host.info("live").await.id;
    host.put("dev", "/supervisor/processes", HELD).await;
    let mut seen = Pieces::of(look(&host, &cookie).await);
    seen.until(|text| text.lines().count() == 2).await;
    assert_eq!(seen.names(), ["process", "websocket"], "one that is slow holds back nothing");
    host.put("dev", "/", HELD).await;
    host.put("dev", "/supervisor/processes", r#"{"processes":[]}"#).await;
    seen.until(|text| text.lines().count() == 3).await;
    assert_eq!(seen.names()[2], "runtime");
    host.put_app("dev", "two").await;
    let text = seen.whole().await;
    let lines: Vec<_> = text.lines().collect();
    let verdict: SwapVerdict = serde_json::from_str(lines[5]).unwrap();
    let fit = SwapVerdict { ok: true, verdict: "dev is fit to be live".to_owned() };
    assert_eq!((verdict, lines.len()), (fit, 6));
    let roles = host.roles().await;
    assert_eq!((roles.last_swap, roles.checks), (None, Vec::new()));
    assert_eq!(host.info("live").await.id, before, "looking moves nothing");

    host.put("dev", "/", "broken").await;
    let text = Pieces::of(look(&host, &cookie).await).whole().await;
    let verdict: SwapVerdict = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert!(!verdict.ok && verdict.verdict.contains("the page does not load"), "{verdict:?}");
}

#[tokio::test]
async fn only_so_many_look_at_once_and_a_page_is_not_kept_out() {
    let (host, cookie) = twins().await;
    host.put("dev", "/", HELD).await;
    let first = look(&host, &cookie).await;
    let _second = look(&host, &cookie).await;
    let third = Answer::read(look(&host, &cookie).await).await;
    assert_eq!(third.status, StatusCode::SERVICE_UNAVAILABLE, "{}", third.text());
    assert_eq!(open(&host, &cookie).await.status(), StatusCode::OK);
    // Who goes away makes room, and what was asked for them ends.
    drop(first);
    let again = async {
        while look(&host, &cookie).await.status() != StatusCode::OK {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    within("there is room again", again).await;
    host.admin().delete("/admin/sandboxes/dev").await.unwrap();
    let none = Answer::read(look(&host, &cookie).await).await;
    assert_eq!(none.status, StatusCode::NOT_FOUND);
    assert!(none.text().contains("there is no dev sandbox"), "{}", none.text());
}

#[tokio::test]
async fn the_page_shows_the_checks_as_they_come_and_ends_with_the_swap() {
    let (host, cookie) = twins().await;
    let dev = host.info("dev").await.id;
    host.put("dev", "/", HELD).await;
    let response = open(&host, &cookie).await;
    for (header, expected) in [
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cache-control", "no-store"),
        ("referrer-policy", "same-origin"),
        ("content-type", "text/html; charset=utf-8"),
    ] {
        assert_eq!(response.headers()[header], expected);
    }
    let mut page = Pieces::of(response);
    page.until(|text| text.contains("websocket: /ws opens") && text.contains("runtime: ")).await;
    assert!(!page.text.contains("page: ") && !page.text.contains("<form"), "{}", page.text);
    host.put_app("dev", "two").await;
    let page = page.whole().await;
    assert!(page.contains("assets: all 3 files that the page needs load"), "{page}");
    assert!(page.contains("Promote dev to live") && page.contains("Back to the desktop"));
    assert!(!page.contains("<script"));

    let refused =
        send(&host, &cookie, "action=swap&from=promote".to_owned(), &NAVIGATES[1..]).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_ne!(host.info("live").await.id, dev);
    let form = format!("token={}&action=swap&from=promote", token(&page));
    let mut script = form.clone();
    script.push_str("&x=1");
    let refused = send(&host, &cookie, script, &SCRIPT).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text());
    let sent = send(&host, &cookie, form, &NAVIGATES[1..]).await;
    assert_eq!(
        (sent.status, &sent.headers["location"]),
        (StatusCode::SEE_OTHER, &"/".parse().unwrap())
    );
    assert_eq!(host.info("live").await.id, dev);
}

#[tokio::test]
async fn what_is_not_fit_is_shown_with_evidence_and_without_a_way_on() {
    let (host, cookie) = twins().await;
    host.put("dev", "/", "<!doctype html><script src=/missing.js></script>").await;
    let page = Pieces::of(open(&host, &cookie).await).whole().await;
    assert!(page.contains("<pre>/missing.js: not 200 404"), "{page}");
    assert!(page.contains("dev is not fit to be live"), "{page}");
    assert!(page.contains("href=\"/dev/supervisor/rescue\"") && page.contains("href=\"/dev/\""));
    assert!(!page.contains("<form"), "{page}");
    // A form that is sent all the same leads back here, where the reason is said.
    let board = host.get("/admin/sandboxes", &[("cookie", &cookie), NAVIGATES[0]]).await;
    let form = format!("token={}&action=swap&from=promote", token(board.text()));
    let sent = send(&host, &cookie, form, &NAVIGATES[1..]).await;
    assert_eq!(sent.headers["location"], PROMOTE);
    let page = Pieces::of(open(&host, &cookie).await).whole().await;
    assert!(page.contains("live is as it was; mend dev and try again"), "{page}");
}

#[tokio::test]
async fn without_dev_the_page_offers_to_make_it() {
    let host = Host::start().await;
    host.put_app("live", "one").await;
    let cookie = host.sign_in().await;
    let page = Pieces::of(open(&host, &cookie).await).whole().await;
    assert!(page.contains("There is no dev to promote"), "{page}");
    let form = format!("token={}&action=create-dev&from=promote", token(&page));
    let sent = send(&host, &cookie, form, &NAVIGATES[1..]).await;
    assert_eq!(sent.headers["location"], PROMOTE);
    let page = Pieces::of(open(&host, &cookie).await).whole().await;
    assert!(
        page.contains("dev is a copy of live") && page.contains("Promote dev to live"),
        "{page}"
    );
}
