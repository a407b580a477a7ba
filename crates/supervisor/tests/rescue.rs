//! The rescue page as a browser without scripts uses it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers here are tests too")]

mod support;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Request, StatusCode};
use nacre_wire::client::ListHistory;
use nacre_wire::processes::ProcessState;
use support::{PATIENCE, Supervisor};
use tempfile::TempDir;

/// A supervisor with a history, and a browser in front of it.
struct Desk {
    supervisor: Supervisor,
    prefix: &'static str,
    _history: TempDir,
}

impl Desk {
    async fn begin() -> Self {
        let history = tempfile::tempdir().unwrap();
        let supervisor = Supervisor::start_with(|command| {
            command.arg("--history").arg(history.path().join("history"));
        });
        Self { supervisor: supervisor.await, prefix: "", _history: history }
    }

    async fn sh(&self, script: &str) {
        let heard = self.supervisor.sh(script).await.finish().await;
        assert_eq!(heard.code(), Some(0), "{script}: {}", String::from_utf8_lossy(&heard.stderr));
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.supervisor.workspace().join(name)).ok()
    }

    /// As the gateway passes it on, which takes the prefix off the path.
    fn request(&self, method: &str, path: &str) -> hyper::http::request::Builder {
        let request = Request::builder().method(method).uri(path).header("host", "door");
        match self.prefix {
            "" => request,
            prefix => request.header("x-forwarded-prefix", prefix),
        }
    }

    async fn get(&self, path: &str) -> String {
        let request = self.request("GET", path).header("accept", "text/html");
        let response = self.supervisor.send(request.body(Full::default()).unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.contains("default-src 'none'"), "{policy}");
        assert!(policy.contains("form-action 'self'"), "{policy}");
        assert_eq!(response.headers()["cache-control"], "no-store");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    async fn page(&self) -> String {
        self.get("/supervisor/rescue").await
    }

    /// Sends a form and goes where it leads.
    async fn send(&self, act: &str, body: &str) -> String {
        let request = self
            .request("POST", &format!("/supervisor/rescue/{act}"))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
            .unwrap();
        let response = self.supervisor.send(request).await;
        assert_eq!(response.status(), StatusCode::SEE_OTHER, "{act} {body}");
        let to = response.headers()["location"].to_str().unwrap().to_owned();
        let to = to.strip_prefix(self.prefix).expect("below the prefix").to_owned();
        assert!(to.starts_with("/supervisor/rescue?note="), "{to}");
        self.get(&to).await
    }

    /// Presses the first button with this label, as a browser would.
    async fn press(&self, page: &str, label: &str) -> String {
        let (act, fields) = form(page, label);
        self.send(&act, &fields).await
    }

    async fn newest(&self) -> u64 {
        let page = self.supervisor.client().history(&ListHistory::default()).await.unwrap();
        page.checkpoints[0].id
    }

    async fn until(&self, name: &str, state: ProcessState) -> nacre_wire::processes::ProcessInfo {
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                let list = self.supervisor.client().processes().await.unwrap().processes;
                match list.into_iter().find(|process| process.name == name) {
                    Some(process) if process.state == state => return process,
                    _ => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
                }
            }
        });
        found.await.expect("the state in time")
    }
}

/// What the form of the first button with this label sends, and where.
fn form(page: &str, label: &str) -> (String, String) {
    let forms = page.split("<form ").skip(1).map(|form| form.split("</form>").next().unwrap());
    let found = forms.into_iter().find(|form| form.contains(&format!(">{label}<")));
    let form = found.unwrap_or_else(|| panic!("no button {label:?} in {page}"));
    let between = |text: &str, before: &str, after: &str| {
        text.split(before).nth(1).unwrap().split(after).next().unwrap().to_owned()
    };
    let act = between(form, "/supervisor/rescue/", "\"");
    let fields: Vec<String> = form
        .split("<input ")
        .skip(1)
        .map(|input| {
            format!("{}={}", between(input, "name=\"", "\""), between(input, "value=\"", "\""))
        })
        .collect();
    (act, fields.join("&"))
}

#[tokio::test]
async fn one_button_undoes_the_last_change_and_another_redoes_it() {
    let desk = Desk::begin().await;
    desk.sh("echo good > theme.css").await;
    desk.sh("echo bad > theme.css").await;
    let page = desk.page().await;
    assert!(page.contains("$ echo bad &gt; theme.css"), "{page}");
    assert!(page.contains("<bdi>theme.css</bdi>"), "{page}");
    let page = desk.press(&page, "Undo").await;
    assert_eq!(desk.read("theme.css").as_deref(), Some("good\n"));
    assert!(page.contains("Done: 1 changed back."), "{page}");
    assert!(page.contains("data-acted"), "{page}");
    // What comes next is the one before; what was undone is not offered again.
    let again = form(&page, "Undo");
    assert_ne!(again, form(&desk.send("redo", "").await, "Undo"));
    assert_eq!(desk.read("theme.css").as_deref(), Some("bad\n"));
}

#[tokio::test]
async fn everything_goes_back_to_just_before_a_change() {
    let desk = Desk::begin().await;
    desk.sh("echo 1 > a").await;
    desk.sh("echo 2 > a; echo 2 > b").await;
    let broke = desk.newest().await;
    desk.sh("echo 3 > a; echo 3 > c").await;
    let page = desk.page().await;
    let label = format!("Undo to here<span class=\"unseen\"> (#{broke})</span>");
    let page = desk.press(&page, &label).await;
    assert!(page.contains("Done:"), "{page}");
    assert_eq!(desk.read("a").as_deref(), Some("1\n"));
    assert_eq!((desk.read("b"), desk.read("c")), (None, None));
}

#[tokio::test]
async fn a_conflict_is_shown_and_asked_about() {
    let desk = Desk::begin().await;
    desk.sh("echo 1 > a").await;
    desk.sh("echo 2 > a; echo 2 > b").await;
    let broke = desk.newest().await;
    desk.sh("echo 3 > a").await;
    let asked = desk.send("undo", &format!("checkpoint={broke}")).await;
    assert!(asked.contains("<bdi class=\"name\">a</bdi> was changed later"), "{asked}");
    assert_eq!((desk.read("a").unwrap(), desk.read("b").unwrap()), ("3\n".into(), "2\n".into()));
    desk.press(&asked, "Keep mine").await;
    assert_eq!((desk.read("a").as_deref(), desk.read("b")), (Some("3\n"), None));

    desk.send("redo", "").await;
    let asked = desk.send("undo", &format!("checkpoint={broke}")).await;
    desk.press(&asked, "Undo anyway").await;
    assert_eq!((desk.read("a").as_deref(), desk.read("b")), (Some("1\n"), None));
}

#[tokio::test]
async fn a_process_is_restarted_and_an_undo_brings_a_broken_one_back() {
    let desk = Desk::begin().await;
    desk.sh("printf '[runtime]\\ncommand = \"exec sh app.sh\"\\n' > nacre.toml; \
             echo 'echo hello; exec sleep 1000' > app.sh")
        .await;
    let first = desk.until("runtime", ProcessState::Ready).await;
    let page = desk.page().await;
    assert!(page.contains("<code>exec sh app.sh</code>") && page.contains("hello"), "{page}");
    let page = desk.press(&page, "Restart").await;
    assert!(page.contains("runtime is being started again."), "{page}");
    let second = desk.until("runtime", ProcessState::Ready).await;
    assert!(second.run > first.run, "{second:?}");

    desk.sh("echo 'echo broken >&2; exit 1' > app.sh").await;
    desk.send("restart", "name=runtime").await;
    desk.until("runtime", ProcessState::CrashLooping).await;
    let page = desk.page().await;
    assert!(page.contains("keeps ending") && page.contains("broken"), "{page}");
    desk.press(&page, "Undo").await;
    desk.until("runtime", ProcessState::Ready).await;
    let refused = desk.send("restart", "name=nobody").await;
    assert!(refused.contains("data-kind=\"bad\""), "{refused}");
}

#[tokio::test]
async fn hostile_names_and_contents_are_only_text() {
    let desk = Desk::begin().await;
    let hostile = "<img src=x onerror=alert(1)>";
    let nasty = "\"'>\n<script>alert(2)<\u{202e}\u{1b}[31m";
    for name in [hostile, "a\u{7f}b"] {
        std::fs::write(desk.supervisor.workspace().join(name), hostile).unwrap();
    }
    let nasty = desk.supervisor.workspace().join(nasty);
    std::fs::write(nasty, "</pre><script>alert(3)</script>\n").unwrap();
    desk.page().await;
    let id = desk.newest().await;
    let page = desk.get(&format!("/supervisor/rescue?checkpoint={id}")).await;
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;"), "{page}");
    assert!(page.contains("&lt;/pre&gt;&lt;script&gt;alert(3)"), "{page}");
    assert!(!page.contains("<img") && !page.contains("<script>"), "{page}");
    for odd in ["/supervisor/rescue?checkpoint=999", "/supervisor/rescue?note=%3Cscript%3Ex"] {
        assert!(!desk.get(odd).await.contains("<script>"), "{odd}");
    }
}

#[tokio::test]
async fn below_a_prefix_everything_stays_there() {
    let mut desk = Desk::begin().await;
    desk.prefix = "/dev";
    desk.sh("echo 1 > a").await;
    let page = desk.page().await;
    assert!(page.contains("action=\"/dev/supervisor/rescue/undo\""), "{page}");
    assert!(!page.contains("action=\"/supervisor") && !page.contains("href=\"/supervisor"));
    desk.press(&page, "Undo").await;
    assert_eq!(desk.read("a"), None);
}

#[tokio::test]
async fn what_is_no_form_of_the_page_is_refused() {
    let desk = Desk::begin().await;
    for (method, path, body, status) in [
        ("POST", "/supervisor/rescue/format", "", StatusCode::NOT_FOUND),
        ("POST", "/supervisor/rescue/restore", "", StatusCode::BAD_REQUEST),
        ("POST", "/supervisor/rescue/undo", "choice=all", StatusCode::BAD_REQUEST),
        ("GET", "/supervisor/rescue/undo", "", StatusCode::METHOD_NOT_ALLOWED),
        ("POST", "/supervisor/rescue", "", StatusCode::METHOD_NOT_ALLOWED),
    ] {
        let (found, _) = desk.supervisor.call(method, path, body).await;
        assert_eq!(found, status, "{method} {path} {body}");
    }
    let page = desk.send("redo", "").await;
    assert!(page.contains("data-kind=\"bad\""), "{page}");
}

#[tokio::test]
async fn without_a_history_the_rest_still_works() {
    let supervisor = Supervisor::start().await;
    let (status, page) = supervisor.call("GET", "/supervisor/rescue", "").await;
    let page = String::from_utf8(page.to_vec()).unwrap();
    assert_eq!(status, StatusCode::OK);
    assert!(page.contains("This sandbox keeps no history."), "{page}");
    let (status, script) = supervisor.call("GET", "/supervisor/guard.js", "").await;
    assert_eq!(status, StatusCode::OK);
    assert!(script.starts_with(b"(() => {") && script.ends_with(b"})();\n"));
}
