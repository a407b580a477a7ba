//! Nothing that lets anybody in ever enters a sandbox. Secrets of every kind are made and used, and
//! then everything that a sandbox can see is searched for them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nacre_atproto::testing::{ALICE, Net};

use crate::browser::Browser;
use crate::computer::TestComputer;
use crate::ownership::{run_app_as, until_ready};
use crate::secrets::{Secrets, add_passkey, recover, sign_in};

/// Writes down all of every request, and answers with it.
const APP: &str = r#"
import http.server

class Show(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        seen = f"{self.requestline}\n{self.headers}".encode()
        with open("/workspace/seen", "ab") as log:
            log.write(seen)
        print(seen.decode("latin-1"), flush=True)
        self.send_response(200)
        self.send_header("content-length", str(len(seen)))
        self.end_headers()
        self.wfile.write(seen)

http.server.ThreadingHTTPServer(("127.0.0.1", 5173), Show).serve_forever()
"#;

pub(crate) const SEARCH: &str = include_str!("search.py");

const PLANTED: [&str; 2] = ["/tmp/planted", "/usr/share/planted"];

/// The clock of a file's times may be behind a little; nothing was secret this long before.
const MARGIN: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_enters_a_sandbox() {
    let began = SystemTime::now() - MARGIN;
    let net = Net::start().await.unwrap();
    let computer = TestComputer::switched_off();
    let mut secrets = Secrets::new();
    let canary = secrets.random("environment");
    let key = secrets.random("key");
    std::fs::write(computer.data().join("client.key.new"), &key).unwrap();
    let mut up = computer.command(&["up", "--detach", "--listen", "127.0.0.1:0"]);
    up.env("OWNER_DID", ALICE).env("ATPROTO_PLC_URL", net.origin());
    let up = up.env("NACRE_CANARY", canary).output().unwrap();
    assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
    let said = String::from_utf8(up.stdout).unwrap();
    assert!(said.contains(ALICE) && !said.contains("token="), "{said}");

    let mut browser = Browser::stranger(&computer);
    sign_in(&mut browser, &net, &mut secrets).await;
    run_app_as(&computer, "live", APP);
    until_ready(&browser, "/up").await;
    recover(&computer, &browser, &mut secrets).await;
    add_passkey(&computer, &browser, &mut secrets).await;
    let token = computer.json(&["token", "create", "--name", "a", "--scope", "admin", "--json"]);
    let token = token["token"].as_str().unwrap();
    secrets.add("token", token);
    let link = computer.json(&["login", "--json"])["url"].as_str().unwrap().to_owned();
    secrets.add("link", link.split_once("token=").unwrap().1);

    let bearer = format!("Bearer {token}");
    let authorization = [("authorization", bearer.as_str())];
    for path in ["/app", "/supervisor/health", "/ws", "/admin/sandboxes/live/door/app"] {
        browser.get(path, &[]).await;
        Browser::stranger(&computer).get(path, &authorization).await;
    }
    let shown = browser.get("/app", &[("cookie", "other=1")]).await;
    let shown = String::from_utf8_lossy(&shown.body).to_lowercase();
    assert!(shown.contains(&format!("x-nacre-user: {ALICE}")), "{shown}");
    for kind in ["session", "token", "recovery-9", "passkey-id:base64", "passkey-key", "key:hash"] {
        assert!(secrets.names().any(|name| name == kind), "{kind} is looked for");
    }

    // What the search finds when there is something to find, also when its time says otherwise.
    let planted = secrets.random("planted");
    let plant = format!(
        "for place in {}; do printf {planted} > $place && touch -d 2001-01-01 $place || exit 1; done",
        PLANTED.join(" ")
    );
    computer.ok(&["exec", "--user", "root", "--", "sh", "-c", &plant]);
    for user in ["root", "nacre"] {
        search(&computer, user, &secrets, began);
    }
    for log in [computer.ok(&["logs"]), computer.exec("env; set")] {
        assert_eq!(secrets.found_in(log.as_bytes()), <[&str; 0]>::default());
    }
}

/// Finds what was planted and nothing else.
fn search(computer: &TestComputer, user: &str, secrets: &Secrets, began: SystemTime) {
    let began = began.duration_since(UNIX_EPOCH).unwrap().as_secs_f64().to_string();
    let args = ["exec", "-i", "--user", user, "--", "/usr/bin/python3", "-c", SEARCH, &began];
    let output = computer.pipe(&args, secrets.lines().into());
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "as {user}: {complaint}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (found, rest): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with("found "));
    let mut found: Vec<_> =
        found.into_iter().map(|line| line.rsplit(' ').next().unwrap()).collect();
    found.sort_unstable();
    assert_eq!(found, PLANTED, "as {user}: {text}");
    let count = |what: &str| -> u32 {
        let line = rest.iter().find_map(|line| line.strip_prefix(what));
        line.unwrap_or_else(|| panic!("no {what}in {text}")).parse().unwrap()
    };
    // Most of what is there is the host's own system, as it was before any of these secrets.
    assert!(count("looked ") > 100 && count("older ") > 1000, "as {user}: {rest:?}");
    // The app of the sandbox runs as one of the two, and has seen every request.
    assert!(user == "root" || count("memory ") > 0, "as {user}: {rest:?}");
}
