//! What the gateway counts, notices and writes down.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex};

use futures_util::{SinkExt, StreamExt};
use http::StatusCode;
use nacre_wire::access::Scope;
use nacre_wire::control::{Alert, AlertKind, AlertList};
use tokio_tungstenite::tungstenite::Message;
use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber, span};

use crate::host::Host;
use crate::raw::{Stage, within};
use crate::swap::{FORWARD, open, open_with, twins};
use crate::tokens;

/// Reads the page as Prometheus' own client library does, and prints one `name labels value` each.
const PARSER: &str = r#"
import sys
from prometheus_client.parser import text_string_to_metric_families
for family in text_string_to_metric_families(sys.stdin.read()):
    for sample in family.samples:
        labels = ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items()))
        print(family.type, sample.name, labels or "-", float(sample.value))
"#;

async fn metrics(host: &Host) -> String {
    let cookie = host.sign_in().await;
    let answer = host.get("/admin/sandboxes/metrics", &[("cookie", &cookie)]).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    answer.text().to_owned()
}

/// Waits until the page has the line: a request is counted when its last byte has passed.
pub(crate) async fn until_counted(host: &Host, line: &str) -> String {
    within(line, async {
        loop {
            let page = metrics(host).await;
            if page.lines().any(|counted| counted == line) {
                return page;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

#[tokio::test]
async fn prometheus_reads_what_is_counted() {
    let host = Host::start().await;
    let (cookie, origin) = (host.sign_in().await, host.origin());
    let headers = [("cookie", cookie.as_str()), ("origin", origin.as_str())];
    for _ in 0..3 {
        host.get("/page?secret=1", &headers).await;
    }
    let request = host.build("POST", "/stream", &headers, "12345".into());
    let body = http_body_util::BodyExt::collect(host.send(request).await.into_body()).await;
    assert_eq!(body.unwrap().to_bytes(), "12345");
    let line = r#"nacre_requests_total{role="live",method="POST",status="2xx"} 1"#;
    let page = until_counted(&host, line).await;
    assert!(!page.contains("secret"), "{page}");

    let parsed = parse(&page);
    let has = |line: &str| assert!(parsed.iter().any(|got| got == line), "{line}: {parsed:#?}");
    has("counter nacre_requests_total method=GET,role=live,status=2xx 3.0");
    has("counter nacre_received_bytes_total role=live 5.0");
    has("histogram nacre_request_duration_seconds_count role=live 4.0");
    has("histogram nacre_request_duration_seconds_bucket le=+Inf,role=live 4.0");
    has("gauge nacre_requests_under_way role=live 0.0");
    has("gauge nacre_sandboxes state=running 1.0");
    has("counter nacre_upgrades_total outcome=accepted,role=live 0.0");
    has("counter nacre_log_lines_dropped_total - 0.0");
    has("counter nacre_egress_connections_total verdict=refused 0.0");
    has("gauge nacre_egress_open - 0.0");
}

/// `NACRE_PYTHON` names the one that has the parser; `cargo xtask test` makes it.
fn parse(page: &str) -> Vec<String> {
    let python = std::env::var_os("NACRE_PYTHON").unwrap_or_else(|| "python3".into());
    let mut child = Command::new(python)
        .args(["-c", PARSER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "the page was not understood, or prometheus_client is missing"
    );
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn upgrades_are_counted_by_how_they_ended() {
    const ASK: &str = "connection: upgrade\r\nupgrade: chat\r\n";
    let stage = Stage::set().await;
    let counted = async |outcome: &str, count: u32| {
        let line = format!("nacre_upgrades_total{{role=\"live\",outcome=\"{outcome}\"}} {count}");
        until_counted(&stage.host, &line).await;
    };
    let address = stage.host.address;

    let mut stranger = stage.client().await;
    stranger.send(format!("GET /ws HTTP/1.1\r\nhost: {address}\r\n{ASK}\r\n")).await;
    assert!(stranger.head().await.starts_with("HTTP/1.1 401 "));
    counted("unauthenticated", 1).await;

    let mut foreign = stage.client().await;
    let head = stage.head("GET /ws", ASK);
    let origin = format!("origin: http://{address}");
    foreign.send(head.replace(&origin, "origin: http://evil.example")).await;
    assert!(foreign.head().await.starts_with("HTTP/1.1 403 "));
    counted("origin", 1).await;

    let mut refused = stage.asks("GET /ws", ASK).await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n").await;
    assert!(refused.head().await.starts_with("HTTP/1.1 403 "));
    counted("app_refused", 1).await;
    drop(app);

    let broken = stage.asks("GET /ws", ASK).await;
    drop(stage.arrives().await);
    counted("upstream_broke", 1).await;
    drop(broken);

    let gone = stage.asks("GET /ws", ASK).await;
    let (_, app) = stage.arrives().await;
    drop(gone);
    counted("client_went", 1).await;
    drop(app);

    let mut client = stage.asks("GET /ws", ASK).await;
    let (_, mut app) = stage.arrives().await;
    app.send("HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: chat\r\n\r\n").await;
    client.head().await;
    until_counted(&stage.host, "nacre_sockets_open{role=\"live\"} 1").await;
    counted("accepted", 1).await;
    drop((client, app));
    until_counted(&stage.host, "nacre_sockets_open{role=\"live\"} 0").await;

    stage.host.operate("live", "stop").await.unwrap();
    let mut client = stage.asks("GET /ws", ASK).await;
    assert!(client.head().await.starts_with("HTTP/1.1 503 "));
    counted("sandbox_unavailable", 1).await;
}

#[tokio::test]
async fn a_page_that_reconnects_in_a_storm_is_one_alert() {
    let host = Host::start().await;
    let (cookie, origin) = (host.sign_in().await, host.origin());
    host.operate("live", "stop").await.unwrap();
    let headers = [
        ("cookie", cookie.as_str()),
        ("origin", origin.as_str()),
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
    ];
    for _ in 0..15 {
        assert_eq!(host.get("/ws", &headers).await.status, StatusCode::SERVICE_UNAVAILABLE);
    }
    let alerts = alerts(&host).await;
    let [alert] = &alerts[..] else { panic!("{alerts:?}") };
    assert_eq!((alert.kind, alert.sandbox.as_str()), (AlertKind::ReconnectStorm, "live"));
    assert_eq!(alert.user.as_deref(), Some("owner"));
    assert_eq!(alert.count, 14, "every one after the first");
    until_counted(&host, "nacre_alerts_total{kind=\"reconnect_storm\"} 1").await;
    until_counted(&host, "nacre_socket_reconnects_total 14").await;
    let page = [("cookie", cookie.as_str()), ("accept", "text/html")];
    let page = host.get("/admin/sandboxes", &page).await;
    assert!(page.text().contains("again and again (14 times"), "{}", page.text());
}

async fn alerts(host: &Host) -> Vec<Alert> {
    host.admin().get_json::<AlertList>("/admin/sandboxes/alerts").await.unwrap().alerts
}

/// Each has a socket of its own, through the door.
#[tokio::test]
async fn commands_in_a_row_are_no_storm() {
    let host = Host::start().await;
    let token = tokens::make(&host, "admin", &[Scope::Admin]).await;
    for _ in 0..12 {
        let shown = ("authorization", token.as_str());
        drop(open_with(&host, shown, "/admin/sandboxes/live/door/ws").await);
        until_counted(&host, "nacre_sockets_open{role=\"door\"} 0").await;
    }
    until_counted(&host, "nacre_upgrades_total{role=\"door\",outcome=\"accepted\"} 12").await;
    until_counted(&host, "nacre_socket_reconnects_total 0").await;
    assert_eq!(alerts(&host).await, []);
}

/// All of them are told to come again, and do.
#[tokio::test]
async fn a_swap_of_many_sockets_is_no_storm() {
    let (host, cookie) = twins().await;
    let all = async || {
        let mut sockets = Vec::new();
        for path in ["/ws", "/dev/ws"].repeat(12) {
            let mut socket = open(&host, &cookie, path).await;
            socket.send(Message::text("there")).await.unwrap();
            assert_eq!(socket.next().await.unwrap().unwrap(), Message::text("there"));
            sockets.push(socket);
        }
        sockets
    };
    let sockets = all().await;
    host.swap(FORWARD).await.unwrap();
    for mut socket in sockets {
        assert!(socket.next().await.unwrap().unwrap().is_close());
    }
    for role in ["live", "dev"] {
        until_counted(&host, &format!("nacre_sockets_open{{role=\"{role}\"}} 0")).await;
    }
    let _again = all().await;
    until_counted(&host, "nacre_socket_reconnects_total 0").await;
    assert_eq!(alerts(&host).await, []);
}

#[tokio::test]
async fn a_page_built_for_another_runtime_is_an_alert() {
    let stage = Stage::set().await;
    let mut client = stage.asks("GET /_dioxus/hot_reload?v=0", "").await;
    let (_, mut app) = stage.arrives().await;
    for _ in 0..9 {
        app.send("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await;
        let head = client.head().await;
        assert!(head.contains("\r\nx-nacre-role: live\r\n"), "who has it not: {head}");
        client.send(stage.head("GET /_dioxus/hot_reload?v=1", "")).await;
        app.head().await;
    }
    app.send("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await;
    client.head().await;
    until_counted(&stage.host, "nacre_alerts_total{kind=\"missing_runtime_path\"} 1").await;
    let alerts = alerts(&stage.host).await;
    assert_eq!(alerts[0].path.as_deref(), Some("/_dioxus"));
    assert_eq!(alerts[0].count, 10);
}

/// Keeps the fields of every event for `access`.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Subscriber for Lines {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "access"
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Fields(String);
        impl Visit for Fields {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                if field.name() != "duration_us" {
                    self.0 += &format!("{field}={value:?} ");
                }
            }
        }
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }
}

/// Those of every test of this process, which under nextest is one.
fn lines() -> &'static Lines {
    static LINES: LazyLock<Lines> = LazyLock::new(|| {
        let lines = Lines::default();
        tracing::subscriber::set_global_default(lines.clone()).unwrap();
        lines
    });
    &LINES
}

impl Lines {
    async fn until(&self, expected: &str) {
        within(expected, async {
            while !self.0.lock().unwrap().iter().any(|line| line == expected) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn every_request_is_one_line_without_its_query() {
    let lines = lines();
    let (host, cookie) = twins().await;
    let origin = host.origin();
    let headers = [("cookie", cookie.as_str()), ("origin", origin.as_str())];
    let (one, two) = (host.info("live").await.id, host.info("dev").await.id);
    // The role is the same, and the log says which sandbox it was.
    for id in [one, two] {
        let request = host.build("POST", "/stream?token=secret", &headers, "12345".into());
        let answer = host.send(request).await;
        http_body_util::BodyExt::collect(answer.into_body()).await.unwrap();
        let expected = format!(
            "message=request path=\"/stream\" method=\"POST\" role=\"live\" \
             proxy_target=\"{id}\" status=200 bytes_in=5 bytes_out=5 user=\"owner\" cut=false "
        );
        lines.until(&expected).await;
        host.swap(FORWARD).await.unwrap();
    }
    assert!(!lines.0.lock().unwrap().concat().contains("secret"));
}

#[tokio::test]
async fn seed_001_a_failed_websocket_upgrade_is_told_with_role_and_path() {
    let lines = lines();
    let (host, cookie) = twins().await;
    let origin = host.origin();
    let headers = [
        ("cookie", cookie.as_str()),
        ("origin", origin.as_str()),
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
    ];
    host.put("dev", "/sock", "broken").await;
    let dev = host.info("dev").await.id;
    assert_eq!(host.get("/dev/sock", &headers).await.status, StatusCode::BAD_GATEWAY);
    lines
        .until(&format!(
            "message=upgrade path=\"/dev/sock\" role=\"dev\" proxy_target=\"{dev}\" \
             outcome=\"app_refused\" status=502 "
        ))
        .await;
    host.operate("dev", "stop").await.unwrap();
    assert_eq!(host.get("/dev/ws", &headers).await.status, StatusCode::SERVICE_UNAVAILABLE);
    lines
        .until(&format!(
            "message=upgrade path=\"/dev/ws\" role=\"dev\" proxy_target=\"{dev}\" \
             outcome=\"sandbox_unavailable\" status=503 "
        ))
        .await;
}

#[tokio::test]
async fn seed_001_a_refused_upgrade_is_told_with_role_and_path() {
    let lines = lines();
    let host = Host::start().await;
    let (cookie, origin) = (host.sign_in().await, host.origin());
    let socket = [("connection", "upgrade"), ("upgrade", "websocket")];
    let ours = [socket[0], socket[1], ("cookie", &cookie), ("origin", &origin)];
    let told = async |path: &str, headers: &[(&str, &str)], expected: &str| {
        host.get(&format!("{path}?token=secret"), headers).await;
        lines.until(&format!("message=upgrade path=\"{path}\" {expected} ")).await;
    };
    told("/_dioxus", &socket, r#"role="live" outcome="unauthenticated""#).await;
    told("/dev/_dioxus", &socket, r#"role="dev" outcome="unauthenticated""#).await;
    let token = [socket[0], socket[1], ("authorization", "Bearer nacre_0000")];
    told("/dev/ws/a", &token, r#"role="dev" outcome="unauthenticated""#).await;
    let evil = [ours[0], ours[1], ours[2], ("origin", "http://evil.example")];
    told("/ws/room", &evil, r#"role="live" outcome="origin""#).await;
    told("/dev/ws", &ours, r#"role="dev" outcome="sandbox_unavailable""#).await;
    assert!(!lines.0.lock().unwrap().concat().contains("secret"));

    let long = format!("/{}", "x".repeat(5000));
    host.get(&long, &socket).await;
    let cut = &long[..256];
    let line = format!("message=upgrade path=\"{cut}\" role=\"live\" outcome=\"unauthenticated\" ");
    lines.until(&line).await;
}
