//! What is refused before anything begins.

use nacre_wire::client::{Error, full};
use nacre_wire::runs::{RunEnd, StartRun};
use nacre_wire::{ApiError, ErrorKind};

use super::agent::{stage, task};

fn api(error: Error) -> ApiError {
    match error {
        Error::Api(error) => error,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn what_cannot_work_is_said_with_what_to_do() {
    let (stage, script) = stage(|_| ()).await;
    let admin = stage.host.admin();
    let steps = StartRun { max_steps: Some(3), ..task("x") };
    let cases: [(StartRun, &str, &str); 10] = [
        (task(" \n"), "the task is empty", ""),
        (StartRun { model: None, ..task("x") }, "no model is named", "below [agent] in nacre.toml"),
        (
            StartRun { model: Some("gpt-4o".to_owned()), ..task("x") },
            "is no model",
            "PROVIDER/MODEL",
        ),
        (
            StartRun { model: Some("nobody/m".to_owned()), ..task("x") },
            "no provider \"nobody\"",
            "nacre provider list",
        ),
        (
            StartRun { agent: Some("claude".to_owned()), ..task("x") },
            "claude speaks the API of Anthropic",
            "another",
        ),
        (
            StartRun { agent: Some("codex".to_owned()), ..steps.clone() },
            "how often codex asks its model cannot be limited",
            "--budget and --timeout",
        ),
        (
            StartRun { agent: Some("./own".to_owned()), ..steps },
            "how often ./own asks its model",
            "--budget",
        ),
        (StartRun { max_steps: Some(0), ..task("x") }, "between 1 and", ""),
        (StartRun { timeout_ms: Some(0), ..task("x") }, "more than no time", ""),
        (StartRun { dollars: Some(-1.0), ..task("x") }, "not an amount of dollars", ""),
    ];
    for (wanted, message, hint) in cases {
        let error = api(admin.start_run(&wanted).await.unwrap_err());
        assert_eq!(error.kind, ErrorKind::InvalidRequest, "{error:?}");
        assert!(error.message.contains(message), "{error:?}");
        assert!(error.hint.unwrap_or_default().contains(hint), "{message}");
    }
    assert!(admin.runs().await.unwrap().runs.is_empty(), "nothing is kept of what never began");
    assert!(script.started.lock().unwrap().is_empty());
    let error = api(admin.run_info("run-none").await.unwrap_err());
    assert_eq!(error.kind, ErrorKind::NotFound);
    let taken = serde_json::json!({"name": "runs"});
    let error = admin.post_json::<serde_json::Value>("/admin/sandboxes", &taken).await.unwrap_err();
    assert!(error.to_string().contains("reserved"), "{error}");
}

#[tokio::test]
async fn too_many_files_end_the_run() {
    let (stage, _) = stage(|config| config.runs.largest_input = 10).await;
    let admin = stage.host.admin();
    let begun = admin.start_run(&StartRun { input: true, ..task("say hi") }).await.unwrap();
    let error = api(admin.put_run_input(&begun.id, full("more than ten bytes")).await.unwrap_err());
    assert_eq!(error.kind, ErrorKind::TooLarge);
    assert!(error.hint.unwrap().contains("largest_input_bytes"));
    let events = super::agent::follow(&stage, &begun.id).await;
    assert_eq!(events.len(), 1);
    let outcome = admin.run_info(&begun.id).await.unwrap().outcome.unwrap();
    assert_eq!(outcome.how, RunEnd::Cancelled);
}
