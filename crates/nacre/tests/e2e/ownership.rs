//! Who answers each path of the contract, with a real app in each sandbox that says whose it is.
//!
//! Seed 001 asks for this; its acceptance scenarios about paths and sign-in are tests of their own.

use std::time::{Duration, Instant};

use futures_util::SinkExt;
use http::StatusCode;
use nacre_gateway::routes::{Auth, Owner, Part, Role, Row, TABLE};
use nacre_wire::conductor::relayed;
use tokio_tungstenite::tungstenite::Message;

use crate::browser::{Answer, Browser, Socket, next};
use crate::computer::TestComputer;

const APP: &str = include_str!("app.py");
const CONFIG: &str =
    "[runtime]\ncommand = [\"/usr/bin/python3\", \"app.py\"]\nport = 5173\nready = \"/up\"\n";
const HTML: (&str, &str) = ("accept", "text/html");

/// Which app, by the name it was given, each role points to.
struct Owners {
    live: &'static str,
    dev: &'static str,
}

impl Owners {
    fn of(&self, role: Role) -> &'static str {
        match role {
            Role::Live => self.live,
            Role::Dev => self.dev,
        }
    }
}

struct Askers {
    browser: Browser,
    /// Who may ask for a sandbox by its name.
    program: Browser,
}

const AT_FIRST: Owners = Owners { live: "live", dev: "dev" };
const SWAPPED: Owners = Owners { live: "dev", dev: "live" };

/// Both roles run an app, and the owner is signed in.
async fn both_roles() -> (TestComputer, Browser) {
    let computer = TestComputer::start();
    computer.ok(&["sandbox", "create", "dev", "--start"]);
    for sandbox in ["live", "dev"] {
        run_app(&computer, sandbox);
    }
    let browser = Browser::of_the_owner(&computer).await;
    for path in ["/up", "/dev/up"] {
        until_ready(&browser, path).await;
    }
    (computer, browser)
}

fn run_app(computer: &TestComputer, sandbox: &str) {
    run_app_as(computer, sandbox, APP);
}

/// The configuration comes last: the app starts when it is there.
pub(crate) fn run_app_as(computer: &TestComputer, sandbox: &str, app: &str) {
    for (file, content) in [("name", sandbox), ("app.py", app), ("nacre.toml", CONFIG)] {
        let script = format!("cat > {file}.new && mv {file}.new {file}");
        let args = ["exec", "-s", sandbox, "-i", "--", "sh", "-c", &script];
        let output = computer.pipe(&args, content.into());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

pub(crate) async fn until_ready(browser: &Browser, path: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = browser.get(path, &[]).await;
        if answer.status == StatusCode::OK {
            return;
        }
        assert!(Instant::now() < deadline, "{path} is never answered: {:?}", answer.body);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Every row of the contract, over HTTP and over WebSocket. Paths of `live` are asked for below
/// `/dev` as well, where they are the same paths of `dev`.
async fn every_row_has_its_owner(by: &Askers, owners: &Owners) {
    for row in TABLE {
        for path in row.examples {
            match row.owner {
                Owner::Gateway(part) => the_gateway_answers(&by.browser, part, path).await,
                Owner::Role(Role::Live) => {
                    the_sandbox_answers(by, owners, Role::Live, path).await;
                    let below = format!("{}{path}", Role::Dev.prefix());
                    the_sandbox_answers(by, owners, Role::Dev, &below).await;
                }
                Owner::Role(Role::Dev) => {
                    the_sandbox_answers(by, owners, Role::Dev, path).await;
                }
            }
        }
    }
}

async fn the_gateway_answers(browser: &Browser, part: Part, path: &str) {
    let answer = browser.get(path, &[]).await;
    assert!(!answer.headers.contains_key("x-app"), "an app answered {path}");
    let expected = match part {
        // Who is signed in is led on; the rest are pages, and paths below /auth that nobody has.
        Part::SignIn if ["/login", "/auth/callback"].contains(&path) => StatusCode::SEE_OTHER,
        Part::SignIn if path.starts_with("/auth") => StatusCode::NOT_FOUND,
        Part::SignIn => StatusCode::OK,
        Part::Slash => StatusCode::SEE_OTHER,
        Part::Control => StatusCode::OK,
        Part::Provider => StatusCode::UNAUTHORIZED,
    };
    assert_eq!(answer.status, expected, "{path}");
    assert!(browser.socket(path).await.is_err(), "somebody opened a socket at {path}");
}

async fn the_sandbox_answers(by: &Askers, owners: &Owners, role: Role, path: &str) {
    let Askers { browser, program } = by;
    let owner = owners.of(role);
    let seen = path.strip_prefix(role.prefix()).unwrap();
    if seen.starts_with("/supervisor/") {
        assert_eq!(browser.get(path, &[]).await.status, StatusCode::OK, "{path}");
        assert_eq!(supervisor_at(browser, role.prefix()).await, owner, "{path}");
        return;
    }
    if ["/ports/", "/files/", "/logs/"].iter().any(|own| seen.starts_with(own)) {
        // There is nothing of the kind, and the supervisor says so in the place of the app.
        let answer = browser.get(path, &[]).await;
        assert!(!answer.headers.contains_key("x-app"), "an app answered {path}");
        assert_eq!(answer.headers["x-nacre-role"], role.as_str(), "{path}");
        return;
    }
    if relayed(seen) {
        // The host's, by way of the supervisor: there is no such call.
        let answer = browser.get(path, &[]).await;
        assert!(!answer.headers.contains_key("x-app"), "an app answered {path}");
        assert_eq!(answer.headers["x-nacre-role"], role.as_str(), "{path}");
        assert_eq!(answer.json()["error"]["kind"], "not_found", "{path}");
        return;
    }
    if seen == "/ws" {
        // The supervisor's own; a run of it has an id.
        let mut by_path = browser.socket(path).await.unwrap();
        let by_name = format!("/admin/sandboxes/{}/door/ws", role.as_str());
        let mut by_name = program.socket(&by_name).await.unwrap();
        assert_eq!(next(&mut by_path).await["run"], next(&mut by_name).await["run"], "{path}");
        return;
    }
    let answer = browser.get(path, &[]).await;
    assert_eq!(answer.status, StatusCode::OK, "{path}");
    is_of(&answer.json(), owner, role, seen);
    let mut socket = browser.socket(path).await.unwrap();
    is_of(&next(&mut socket).await, owner, role, seen);
    echoes(&mut socket).await;
}

/// What an app says of itself and of what it was told.
fn is_of(said: &serde_json::Value, owner: &str, role: Role, seen: &str) {
    let prefix = Some(role.prefix()).filter(|prefix| !prefix.is_empty());
    let expected = serde_json::json!({
        "app": owner, "method": "GET", "path": seen, "cookie": null, "authorization": null,
        "x-nacre-user": "owner", "x-forwarded-prefix": prefix,
    });
    assert_eq!(*said, expected);
}

async fn echoes(socket: &mut Socket) {
    socket.send(Message::text("{\"there\":\"and back\"}")).await.unwrap();
    assert_eq!(next(socket).await["there"], "and back");
}

/// The name in the workspace of the supervisor that answers below this prefix.
async fn supervisor_at(browser: &Browser, prefix: &str) -> String {
    let path = format!("{prefix}/supervisor/files/content?path=/workspace/name");
    let answer = browser.get(&path, &[]).await;
    assert_eq!(answer.status, StatusCode::OK, "{path}");
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// No row lets a stranger as far as a sandbox.
async fn every_row_asks_strangers_for_what_it_needs(computer: &TestComputer) {
    let stranger = Browser::stranger(computer);
    let rows = TABLE.iter().flat_map(|row| row.examples.iter().map(move |path| (row, *path)));
    for (row, path) in rows {
        let (call, page) = (stranger.get(path, &[]).await, stranger.get(path, &[HTML]).await);
        for answer in [&call, &page] {
            assert!(!answer.headers.contains_key("x-app"), "an app answered {path}");
        }
        let socket = stranger.socket(path).await.map(drop);
        strangers_get(row, path, &call, &page, socket);
    }
}

fn strangers_get(
    row: &Row,
    path: &str,
    call: &Answer,
    page: &Answer,
    socket: Result<(), StatusCode>,
) {
    match row.auth {
        Auth::Session => {
            assert_eq!(call.status, StatusCode::UNAUTHORIZED, "{path}");
            assert_eq!(call.json()["error"]["kind"], "unauthorized", "{path}");
            assert_eq!(page.status, StatusCode::SEE_OTHER, "{path}");
            assert!(page.headers["location"].to_str().unwrap().starts_with("/login"), "{path}");
            assert_eq!(socket, Err(StatusCode::UNAUTHORIZED), "{path}");
        }
        Auth::PolicyToken => {
            assert_eq!(call.status, StatusCode::UNAUTHORIZED, "{path}");
            assert_eq!(socket, Err(StatusCode::UNAUTHORIZED), "{path}");
        }
        Auth::Nothing => assert!(socket.is_err(), "{path}"),
    }
}

#[tokio::test]
async fn every_path_of_the_contract_has_its_owner() {
    let (computer, browser) = both_roles().await;
    let by = Askers { browser, program: Browser::program(&computer) };
    every_row_has_its_owner(&by, &AT_FIRST).await;
    every_row_asks_strangers_for_what_it_needs(&computer).await;
    computer.ok(&["swap"]);
    every_row_has_its_owner(&by, &SWAPPED).await;
    every_row_asks_strangers_for_what_it_needs(&computer).await;
    computer.ok(&["swap", "--rollback"]);
    every_row_has_its_owner(&by, &AT_FIRST).await;
}

#[tokio::test]
async fn seed_001_authenticated_root_is_served_by_the_sandbox_alone() {
    let (computer, browser) = both_roles().await;
    for path in ["/", "/index.html", "/wasm/app.wasm", "/assets/app.css"] {
        let answer = browser.get(path, &[HTML]).await;
        assert_eq!(answer.json()["app"], "live", "{path}");
    }
    // With the sandbox gone, nothing of the app is left anywhere else.
    computer.ok(&["sandbox", "stop", "live"]);
    for path in ["/", "/wasm/app.wasm", "/assets/app.css"] {
        let answer = browser.get(path, &[]).await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
    }
    assert_eq!(browser.get("/dev/", &[]).await.json()["app"], "dev", "a role stands alone");
}

#[tokio::test]
async fn seed_001_dioxus_paths_are_the_apps_own_and_do_not_loop() {
    let (_computer, browser) = both_roles().await;
    for (path, owner) in [("/_dioxus", "live"), ("/dev/_dioxus", "dev")] {
        let mut socket = browser.socket(path).await.unwrap();
        assert_eq!(next(&mut socket).await["app"], owner);
        echoes(&mut socket).await;
    }
    let missing = browser.get("/missing.js", &[]).await;
    assert_eq!(
        (missing.status, missing.json()["app"].as_str()),
        (StatusCode::NOT_FOUND, Some("live"))
    );
    assert!(!missing.headers.contains_key("location") && !missing.headers.contains_key("refresh"));
}

#[tokio::test]
async fn seed_001_the_desktop_websocket_is_stable_after_it_subscribed() {
    let (computer, browser) = both_roles().await;
    let mut socket = browser.socket("/ws").await.unwrap();
    assert_eq!(next(&mut socket).await["type"], "hello");
    while next(&mut socket).await["type"] != "watching" {}
    for round in 0..3 {
        computer.exec(&format!("echo {round} > noted-{round}"));
        let told = async |socket: &mut Socket| {
            let event = next(socket).await.to_string();
            event.contains("\"files\"") && event.contains(&format!("noted-{round}"))
        };
        while !told(&mut socket).await {}
    }
}

#[tokio::test]
async fn seed_001_dev_serves_its_own_role_below_a_prefix_that_is_stripped() {
    let (_computer, browser) = both_roles().await;
    let slash = browser.get("/dev?x=1", &[HTML]).await;
    assert_eq!(
        (slash.status, slash.headers["location"].to_str().unwrap()),
        (StatusCode::SEE_OTHER, "/dev/?x=1")
    );
    let page = browser.get("/dev/?x=1", &[HTML]).await;
    is_of(&page.json(), "dev", Role::Dev, "/?x=1");
    let cookies = [("cookie", "nacre_app_dev_seen=dev; nacre_app_live_seen=live")];
    for (path, seen) in [("/dev/a%2Fb", "seen=dev"), ("/a%2Fb", "seen=live")] {
        let answer = browser.get(path, &cookies).await;
        assert_eq!(answer.json()["cookie"], seen, "{path}");
    }
    let set = page.headers["set-cookie"].to_str().unwrap();
    assert_eq!(set, "nacre_app_dev_seen=yes; Path=/dev/; HttpOnly; SameSite=Lax");
}

#[tokio::test]
async fn seed_001_unauthenticated_protected_paths_lead_to_login() {
    let (computer, _) = both_roles().await;
    let stranger = Browser::stranger(&computer);
    for (path, login) in [
        ("/", "/login"),
        ("/desktop/windows?a=b", "/login?next=/desktop/windows%3Fa%3Db"),
        ("/dev/", "/login?next=/dev/"),
        ("/assets/app.js", "/login?next=/assets/app.js"),
        ("/admin/sandboxes", "/login?next=/admin/sandboxes"),
    ] {
        let page = stranger.get(path, &[HTML]).await;
        let to = page.headers["location"].to_str().unwrap();
        assert_eq!((page.status, to), (StatusCode::SEE_OTHER, login), "{path}");
        assert_eq!(stranger.get(to, &[HTML]).await.status, StatusCode::OK);
    }
}
