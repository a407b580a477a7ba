//! What people see at `/`: the app, the built copy in its place, and the guard in between.

#![allow(clippy::unwrap_used, reason = "the helpers here are tests too")]

mod support;

use nacre_wire::desktop::{DesktopHealth, DesktopMode, SeedRequest, Seeded};
use nacre_wire::events::Event;
use nacre_wire::history::UndoRequest;
use nacre_wire::processes::{ProcessInfo, ProcessState};
use rustix::process::{Pid, Signal, kill_process};
use support::Supervisor;
use support::desktop::{ask, desktop, free_port, look};
use support::story::Story;

const KEYS: &str = "guard = true\nper_mount = true";
const GUARD: &str = "<head><script src=\"/supervisor/guard.js\" data-nacre-guard></script>";

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

fn mode(story: &Story, mode: &str) {
    std::fs::write(story.supervisor.workspace().join("mode"), mode).unwrap();
}

async fn health(story: &Story, prefix: &str) -> DesktopHealth {
    let answer = ask(&story.supervisor, prefix, "/supervisor/desktop/health").await;
    serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{}", answer.body))
}

/// Names of the checks, those that failed with a mark.
fn names(health: &DesktopHealth) -> Vec<String> {
    assert_eq!(health.ok, health.checks.iter().all(|check| check.ok));
    let marked = |ok| if ok { "" } else { "!" };
    health.checks.iter().map(|check| format!("{}{}", marked(check.ok), check.name)).collect()
}

fn built(reason: &str) -> String {
    format!("data-nacre=\"built\" data-reason=\"{reason}\"")
}

#[tokio::test]
async fn without_an_app_the_built_copy_is_at_the_root() {
    let mut story = Story::begin().await;
    let supervisor = &story.supervisor;
    for (path, guarded) in [("/", true), ("/supervisor/desktop/", false)] {
        for prefix in ["", "/dev"] {
            let page = look(supervisor, prefix, path).await;
            assert_eq!(page.status, 200);
            assert_eq!(page.headers["cache-control"], "no-store");
            assert!(page.body.contains(&built("none")), "{path}: {}", page.body);
            assert!(!page.body.contains("\"./"), "{}", page.body);
            assert_eq!(page.body.contains("guard.js"), guarded, "{path}");
            assert!(page.body.contains(&format!("\"{prefix}/supervisor/")), "{}", page.body);
        }
    }
    let slash = look(supervisor, "/dev", "/supervisor/desktop").await;
    assert_eq!(slash.status, 307);
    assert_eq!(slash.headers["location"], "desktop/");
    assert_eq!(ask(supervisor, "", "/supervisor/desktop/assets/none.js").await.status, 404);
    assert_eq!(ask(supervisor, "", "/elsewhere").await.status, 404);
    assert!(look(supervisor, "", "/supervisor/").await.body.contains("id=\"state\""));
    let found = health(&story, "").await;
    assert_eq!(found, DesktopHealth { ok: true, mode: DesktopMode::Built, checks: vec![] });

    story.configure("runtime = \"built\"\n[process.a]\ncommand = \"exec sleep 1000\"\n");
    story.ready("a").await;
    assert!(look(&story.supervisor, "", "/").await.body.contains(&built("chosen")));
}

#[tokio::test]
async fn a_file_that_was_never_in_order_is_no_choice() {
    let story = Story::with("[runtime\n").await;
    while story.supervisor.client().processes().await.unwrap().config_error.is_none() {}
    let page = look(&story.supervisor, "", "/").await;
    assert!(page.body.contains(&built("failed")) && page.body.contains(GUARD), "{}", page.body);
    assert_eq!(names(&health(&story, "").await), ["!process"]);
}

#[tokio::test]
async fn pages_get_the_guard_and_nothing_else_does() {
    let mut story = desktop(KEYS).await;
    let page = look(&story.supervisor, "", "/").await;
    assert_eq!(page.status, 200);
    assert!(page.body.contains(&format!("{GUARD}<title>app</title>")), "{}", page.body);
    assert!(!page.headers.contains_key("etag"));
    assert_eq!(page.headers["content-length"], page.body.len().to_string());
    let fetched = ask(&story.supervisor, "", "/").await;
    assert!(fetched.headers.contains_key("etag") && !fetched.body.contains("guard.js"));
    let data = look(&story.supervisor, "", "/data").await.json();
    assert_eq!(data["headers"]["accept-encoding"], "identity");
    assert_eq!(names(&health(&story, "").await), ["process", "page", "entry"]);

    // Below a prefix: the built copy until its instance is there.
    let first = look(&story.supervisor, "/dev", "/").await;
    assert_eq!(first.status, 200);
    let guard = GUARD.replace("/supervisor", "/dev/supervisor");
    assert!(
        first.body.contains(&built("starting")) && first.body.contains(&guard),
        "{}",
        first.body
    );
    assert_eq!(ask(&story.supervisor, "/dev", "/main.js").await.status, 503);
    story.ready("runtime@dev").await;
    assert!(look(&story.supervisor, "/dev", "/").await.body.contains("src=\"/dev/main.js\""));
    assert_eq!(names(&health(&story, "/dev").await), ["process", "page", "entry"]);
}

#[tokio::test]
async fn what_breaks_leads_to_the_rescue_page_and_health_says_why() {
    let story = desktop(KEYS).await;
    for broken in ["404", "500", "hang"] {
        mode(&story, broken);
        let page = look(&story.supervisor, "", "/").await;
        assert_eq!(page.status, 503, "{broken}");
        assert!(page.body.contains("/supervisor/rescue"), "{broken}: {}", page.body);
        let found = health(&story, "").await;
        assert_eq!(names(&found), ["process", "!page"], "{broken}: {found:?}");
    }
    assert_eq!(look(&story.supervisor, "", "/missing").await.status, 200, "only the root");
    mode(&story, "syntax");
    let found = health(&story, "").await;
    assert_eq!(names(&found), ["process", "page", "!entry"]);
    assert_eq!(
        found.checks[2].detail.as_deref(),
        Some("/main.js answers with 500 Internal Server Error")
    );

    mode(&story, "");
    std::fs::write(story.supervisor.workspace().join("package.json"), "{}").unwrap();
    let found = health(&story, "").await;
    assert_eq!(names(&found), ["process", "page", "entry", "!modules"]);
    std::os::unix::fs::symlink("/usr", story.supervisor.workspace().join("node_modules")).unwrap();
    assert!(health(&story, "").await.ok);
}

#[tokio::test]
async fn an_app_without_a_guard_is_left_alone() {
    let story = desktop("").await;
    mode(&story, "500");
    let page = look(&story.supervisor, "", "/").await;
    assert_eq!((page.status.as_u16(), page.body.as_str()), (500, "<h1>broken</h1>"));
    assert_eq!(health(&story, "").await.mode, DesktopMode::App);
}

#[tokio::test]
async fn the_built_copy_says_why_it_is_shown() {
    let port = free_port();
    let keys = format!("port = {port}\nguard = true\nready = \"/\"\n");
    let mut story = Story::with(&format!("[runtime]\ncommand = \"exec sleep 1000\"\n{keys}")).await;
    story.until_state("runtime", ProcessState::Starting).await;
    assert!(look(&story.supervisor, "", "/").await.body.contains(&built("starting")));
    let elsewhere = look(&story.supervisor, "", "/elsewhere").await;
    assert!(elsewhere.body.contains("The app is not ready"), "{}", elsewhere.body);
    assert!(elsewhere.body.contains("/supervisor/rescue"));
    assert_eq!(ask(&story.supervisor, "", "/").await.status, 503);

    story.configure(&format!("[runtime]\ncommand = \"exit 1\"\n{keys}"));
    story.until_state("runtime", ProcessState::BackingOff).await;
    // Between two tries it is starting again.
    let client = story.supervisor.client();
    client.stop_process("runtime").await.unwrap();
    assert!(look(&story.supervisor, "", "/").await.body.contains(&built("failed")));

    story.configure(&format!(
        "[runtime]\ncommand = \"echo sh: 1: npm: not found; exit 127\"\nrestart = \"never\"\n{keys}"
    ));
    client.start_process("runtime").await.unwrap();
    story.until_state("runtime", ProcessState::Failed).await;
    let page = look(&story.supervisor, "", "/").await;
    assert!(page.body.contains(&built("no-node")), "{}", page.body);
}

async fn until_responding(story: &mut Story, wanted: Option<bool>) -> ProcessInfo {
    story
        .until(|event| match event {
            Event::Process { process } if process.responding == wanted => Some(process),
            _ => None,
        })
        .await
}

#[tokio::test]
async fn one_that_hangs_is_noticed_and_so_is_that_it_goes_on() {
    let mut story = desktop(KEYS).await;
    let pid = story.now("runtime").await.pid.unwrap();
    signal(pid, Signal::STOP);
    let deaf = until_responding(&mut story, Some(false)).await;
    assert_eq!(deaf.state, ProcessState::Ready);
    assert_eq!(deaf.reason.as_deref(), Some("/up no longer answers"));
    let page = look(&story.supervisor, "", "/").await;
    assert_eq!(page.status, 503);
    assert!(page.body.contains("/supervisor/rescue"), "{}", page.body);
    assert_eq!(names(&health(&story, "").await), ["!process", "!page"]);
    signal(pid, Signal::CONT);
    until_responding(&mut story, None).await;
    assert!(health(&story, "").await.ok);
}

/// With a history, and one that is told of.
async fn with_history() -> (Supervisor, tempfile::TempDir) {
    let store = tempfile::tempdir().unwrap();
    let folder = store.path().join("history");
    let supervisor = Supervisor::start_with(|command| {
        command.arg("--history").arg(&folder);
    })
    .await;
    (supervisor, store)
}

#[tokio::test]
async fn the_source_is_seeded_as_one_change_that_can_be_taken_back() {
    let (supervisor, _store) = with_history().await;
    let client = supervisor.client();
    let workspace = supervisor.workspace();
    std::fs::write(workspace.join("mine.txt"), "mine").unwrap();
    let seed = async |replace| {
        let request = SeedRequest { replace };
        let seeded: Seeded = client.post_json("/supervisor/desktop/seed", &request).await.unwrap();
        seeded
    };
    let seeded = seed(false).await;
    if option_env!("NACRE_DESKTOP").is_none() {
        assert!(!seeded.seeded && seeded.why.unwrap().contains("built without a desktop"));
        return;
    }
    assert!(seeded.seeded, "{seeded:?}");
    assert!(workspace.join("shell/package.json").exists());
    assert!(workspace.join("shell/node_modules").is_symlink());
    let again = seed(false).await;
    assert!(!again.seeded && again.why.is_some());

    let newest = async || {
        let page = client.history(&Default::default()).await.unwrap();
        page.checkpoints[0].clone()
    };
    let change = newest().await;
    let author = nacre_wire::history::Author::Api { call: "seed desktop".into() };
    assert_eq!(change.authors, [author], "{change:?}");
    std::fs::write(workspace.join("shell/package.json"), "broken").unwrap();
    assert!(seed(true).await.seeded);
    assert_ne!(std::fs::read_to_string(workspace.join("shell/package.json")).unwrap(), "broken");
    client.undo(&UndoRequest { last: Some(1), ..UndoRequest::default() }).await.unwrap();
    assert_eq!(std::fs::read_to_string(workspace.join("shell/package.json")).unwrap(), "broken");
}

#[tokio::test]
async fn a_desktop_that_is_put_there_anew_has_a_new_server() {
    let mut story = Story::begin().await;
    let shell = story.supervisor.workspace().join("shell");
    std::fs::create_dir(&shell).unwrap();
    // It would work on in the folder that is gone.
    story.configure("[runtime]\ncommand = \"exec sleep 1000\"\ndirectory = \"shell\"\n");
    let before = story.ready("runtime").await;
    let client = story.supervisor.client();
    let request = SeedRequest { replace: true };
    let seeded: Seeded = client.post_json("/supervisor/desktop/seed", &request).await.unwrap();
    if option_env!("NACRE_DESKTOP").is_none() {
        assert!(!seeded.seeded);
        return;
    }
    let after = story.ready("runtime").await;
    assert_eq!(after.run, before.run + 1);
    let stands = std::fs::read_link(format!("/proc/{}/cwd", after.pid.unwrap())).unwrap();
    assert_eq!(stands, shell);
}
