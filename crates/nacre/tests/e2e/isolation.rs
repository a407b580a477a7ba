//! Nothing that lets anybody in ever enters a sandbox. Secrets of every kind are made and used, and
//! then everything that a sandbox can see is searched for them.

use std::collections::BTreeMap;

use http::StatusCode;
use nacre_atproto::testing::{ALICE, Net, PUSH, TOKEN};

use crate::browser::Browser;
use crate::computer::TestComputer;
use crate::ownership::{run_app_as, until_ready};

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

/// Reads names and secrets from standard input, which nobody else sees, and prints where each was
/// found: files, and what the kernel tells of processes. Of `/usr`, which is the host's and read-only,
/// only what is new is read.
const SEARCH: &str = r#"
import os, sys, time
secrets = [line.split(" ", 1) for line in sys.stdin.read().splitlines()]
now = time.time()
looked = 0

def look(path):
    global looked
    try:
        with open(path, "rb") as file:
            content = file.read(1 << 26)
    except OSError:
        return
    looked += 1
    for name, secret in secrets:
        if secret.encode() in content:
            print("found", name, path)

for folder, folders, files in os.walk("/"):
    if folder == "/":
        folders[:] = [name for name in folders if name not in ("proc", "sys", "dev")]
    for name in files:
        path = os.path.join(folder, name)
        try:
            there = os.lstat(path)
        except OSError:
            continue
        if path.startswith("/usr/") and now - there.st_mtime > 3600:
            continue
        look(path) if os.path.isfile(path) else None
for process in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline", "mountinfo", "status", "net/unix"):
        look(f"/proc/{process}/{name}")
print("looked", looked)
"#;

struct Secrets(BTreeMap<&'static str, String>);

impl Secrets {
    fn add(&mut self, name: &'static str, secret: &str) {
        assert!(secret.len() >= 12, "{name} is too short to be found by accident");
        self.0.insert(name, secret.to_owned());
    }

    fn lines(&self) -> String {
        self.0.iter().map(|(name, secret)| format!("{name} {secret}\n")).collect()
    }
}

/// Signs in with the account, and notes what travels on the way.
async fn sign_in(browser: &mut Browser, net: &Net, secrets: &mut Secrets) {
    let started = browser.post("/auth/start", "next=/").await;
    assert_eq!(started.status, StatusCode::SEE_OTHER);
    secrets.add("browser", browser.take_cookie(&started, "nacre_browser"));
    let address = started.headers["location"].to_str().unwrap();
    let back = net.consent(address).await.unwrap();
    let callback = back.strip_prefix(&browser.origin()).unwrap();
    let landed = browser.get(callback, &[]).await;
    assert_eq!(landed.headers["location"], "/", "{:?}", landed.body);
    secrets.add("session", browser.take_cookie(&landed, "nacre_session"));
    let pushed = net.seen_at(PUSH).pop().unwrap();
    let asked = net.seen_at(TOKEN).pop().unwrap();
    secrets.add("state", &pushed.form["state"]);
    secrets.add("verifier", &asked.form["code_verifier"]);
    secrets.add("access-token", "access-canary");
    secrets.add("refresh-token", "refresh-canary");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_enters_a_sandbox() {
    let net = Net::start().await.unwrap();
    let computer = TestComputer::switched_off();
    let mut secrets = Secrets(BTreeMap::new());
    secrets.add("environment", "canary-of-the-environment");
    secrets.add("key", "canary-in-the-place-of-a-key");
    std::fs::write(computer.data().join("client.key.new"), "canary-in-the-place-of-a-key").unwrap();
    let mut up = computer.command(&["up", "--detach", "--listen", "127.0.0.1:0"]);
    up.env("OWNER_DID", ALICE).env("ATPROTO_PLC_URL", net.origin());
    let up = up.env("NACRE_CANARY", "canary-of-the-environment").output().unwrap();
    assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
    let said = String::from_utf8(up.stdout).unwrap();
    assert!(said.contains(ALICE) && !said.contains("token="), "{said}");

    let mut browser = Browser::stranger(&computer);
    sign_in(&mut browser, &net, &mut secrets).await;
    run_app_as(&computer, "live", APP);
    until_ready(&browser, "/up").await;
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
    // What the search finds when there is something to find.
    secrets.add("planted", "planted-to-be-found");
    computer.exec("printf planted-to-be-found > /tmp/planted");

    for user in ["root", "nacre"] {
        let args = ["exec", "-i", "--user", user, "--", "/usr/bin/python3", "-c", SEARCH];
        let output = computer.pipe(&args, secrets.lines().into());
        let text = String::from_utf8(output.stdout).unwrap();
        let (found, rest): (Vec<_>, Vec<_>) =
            text.lines().partition(|line| line.starts_with("found "));
        assert_eq!(found, ["found planted /tmp/planted"], "as {user}");
        let looked: u32 = rest[0].strip_prefix("looked ").unwrap().parse().unwrap();
        assert!(looked > 100, "as {user}: {looked}");
    }
    for log in [computer.ok(&["logs"]), computer.exec("env; set")] {
        for (name, secret) in &secrets.0 {
            assert!(!log.contains(secret.as_str()), "{name} is in a log");
        }
    }
}
