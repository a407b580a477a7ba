//! An app with an instance for each place that it is mounted at.

#![allow(clippy::unwrap_used, reason = "the helpers here are tests too")]

mod support;

use nacre_wire::events::Event;
use nacre_wire::processes::ProcessState;
use support::desktop::{ask, config, desktop, free_port, look, socket};
use support::gone;

const KEYS: &str = "per_mount = true";

#[tokio::test]
async fn each_place_has_an_instance_that_knows_where_it_is() {
    let mut story = desktop(KEYS).await;
    let root = ask(&story.supervisor, "", "/a?b").await.json();
    assert_eq!((&root["path"], &root["base"]), (&"/a?b".into(), &"/".into()));

    // The first to ask is told to come again, and starts it.
    let early = ask(&story.supervisor, "/dev", "/a").await;
    assert_eq!(early.status, 503, "{}", early.body);
    assert!(early.body.contains("processes/runtime@dev/log"), "{}", early.body);
    let page = look(&story.supervisor, "/dev", "/page").await;
    assert!(page.body.contains("\"runtime@dev\"") || page.status == 200, "{}", page.body);
    let dev = story.ready("runtime@dev").await;
    let said = ask(&story.supervisor, "/dev", "/a?b").await.json();
    assert_eq!((&said["path"], &said["base"]), (&"/dev/a?b".into(), &"/dev/".into()));
    assert_eq!(said["port"], dev.port.unwrap().to_string());
    assert_ne!(said["port"], root["port"]);
    assert!(said["headers"].get("x-forwarded-prefix").is_none(), "{said}");
    assert_eq!(socket(&story.supervisor, "/dev", "/?token=1").await, "/dev/?token=1");
    assert_eq!(socket(&story.supervisor, "", "/?token=1").await, "/?token=1");

    // What is no simple place is served by the one at the root, as before.
    let other = ask(&story.supervisor, "/a/b/c", "/a").await.json();
    assert_eq!((&other["path"], &other["base"]), (&"/a".into(), &"/".into()));
    assert_eq!(other["headers"]["x-forwarded-prefix"], "/a/b/c");
}

#[tokio::test]
async fn an_instance_is_a_process_like_any_other() {
    let mut story = desktop(KEYS).await;
    ask(&story.supervisor, "/dev", "/").await;
    let first = story.ready("runtime@dev").await;
    let client = story.supervisor.client();
    let names: Vec<_> =
        client.processes().await.unwrap().processes.into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["runtime", "runtime@dev"]);
    story.log_until("runtime@dev", 0, "listening below /dev/").await;

    client.restart_process("runtime@dev").await.unwrap();
    let second = story.ready("runtime@dev").await;
    assert_eq!(second.run, 2);
    gone(first.pid.unwrap()).await;
    client.stop_process("runtime@dev").await.unwrap();
    let stopped = ask(&story.supervisor, "/dev", "/a").await;
    assert_eq!(stopped.status, 503, "who stopped it did so for a reason: {}", stopped.body);
    client.start_process("runtime@dev").await.unwrap();
    story.ready("runtime@dev").await;
    assert_eq!(story.now("runtime").await.run, 1);
}

#[tokio::test]
async fn an_instance_changes_with_the_app_and_goes_with_it() {
    let mut story = desktop(KEYS).await;
    ask(&story.supervisor, "/dev", "/").await;
    story.ready("runtime@dev").await;
    let port = free_port();
    story.configure(&config(
        port,
        "per_mount = true\n[runtime.environment]\nPORT = \"none\"\nA = \"1\"",
    ));
    let ready = ProcessState::Ready;
    // The file has its way with the first, which is no port, and not with the other.
    story.until_state("runtime", ProcessState::BackingOff).await;
    story.configure(&config(port, "per_mount = true\n[runtime.environment]\nA = \"1\""));
    let [app, dev] = story.all([("runtime", ready), ("runtime@dev", ready)]).await;
    assert_eq!(app.port, Some(port));
    assert!(dev.run > 1 && dev.port != Some(port));

    story.configure(&config(port, ""));
    let gone_name = |event| match event {
        Event::ProcessGone { name } => Some(name),
        _ => None,
    };
    assert_eq!(story.until(gone_name).await, "runtime@dev");
    gone(dev.pid.unwrap()).await;
    // No longer one for each place: the prefix is in a header again.
    let deadline = tokio::time::Instant::now() + support::PATIENCE;
    let said = loop {
        let answer = ask(&story.supervisor, "/dev", "/a").await;
        if answer.status == 200 {
            break answer.json();
        }
        assert!(tokio::time::Instant::now() < deadline, "{}", answer.body);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert_eq!((&said["path"], &said["base"]), (&"/a".into(), &serde_json::Value::Null));
    assert_eq!(said["headers"]["x-forwarded-prefix"], "/dev");
}

#[tokio::test]
async fn there_are_only_so_many_places() {
    let story = desktop(KEYS).await;
    for place in ["/a", "/b", "/c/d"] {
        assert!(ask(&story.supervisor, place, "/").await.body.contains("the app is not ready"));
    }
    let refused = ask(&story.supervisor, "/e", "/").await;
    assert_eq!(refused.status, 503);
    assert!(refused.body.contains("3 other places"), "{}", refused.body);
    let names = story.supervisor.client().processes().await.unwrap().processes;
    let names: Vec<_> = names.iter().map(|process| process.name.as_str()).collect();
    assert_eq!(names, ["runtime", "runtime@a", "runtime@b", "runtime@c.d"]);
}
