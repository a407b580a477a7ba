//! What a run does, and what it leaves.

use http_body_util::BodyExt;
use nacre_wire::client::full;
use nacre_wire::models::PolicyTokenList;
use nacre_wire::runs::{RunChangeKind, RunEnd, RunState, RunUpdate, StartRun};

use super::agent::{follow, run, said, same_models, stage, task, until_said};
use crate::raw::within;

async fn text(body: hyper::body::Incoming) -> Vec<u8> {
    body.collect().await.unwrap().to_bytes().to_vec()
}

#[tokio::test]
async fn a_run_is_streamed_and_leaves_its_changes_and_nothing_else() {
    let (stage, script) = stage(|_| ()).await;
    let (info, events) = run(&stage, task("say hello")).await;
    let outcome = info.outcome.clone().unwrap();
    assert_eq!((info.state, outcome.how, outcome.exit_code), (RunState::Ended, RunEnd::Done, 0));
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), {
        (1..=events.len() as u64).collect::<Vec<_>>()
    });
    assert!(events.iter().any(|event| said(event).as_deref() == Some("say hello")), "{events:?}");
    let states: Vec<_> = events
        .iter()
        .filter_map(|event| match event.update {
            RunUpdate::State { state } => Some(state),
            _ => None,
        })
        .collect();
    assert_eq!(states, [RunState::Starting, RunState::Running, RunState::Finishing]);
    let Some(RunUpdate::Ended { run: last }) = events.last().map(|event| &event.update) else {
        panic!("{events:?}")
    };
    assert_eq!(**last, info);
    // Who comes late hears the same.
    assert_eq!(follow(&stage, &info.id).await, events);

    assert_eq!(script.put("/run/nacre-run/nacre-agent").unwrap(), b"the agent itself");
    assert_eq!(script.put("/run/nacre-run/spec.txt").unwrap(), b"say hello");
    assert_eq!(stage.host.states().await, ["live Running"]);
    assert_eq!(info.sandbox, None);

    let changes = info.changes.unwrap();
    assert_eq!((changes.added, changes.changed, changes.removed), (1, 1, 1));
    let kinds: Vec<_> = changes.paths.iter().map(|change| change.change).collect();
    assert_eq!(kinds, [RunChangeKind::Added, RunChangeKind::Removed, RunChangeKind::Changed]);
    assert!(changes.paths[2].left_out.is_some(), "{changes:?}");
    let admin = stage.host.admin();
    let archive = text(admin.run_files(&info.id).await.unwrap()).await;
    let mut archive = tar::Archive::new(&archive[..]);
    let mut entries = archive.entries().unwrap();
    let mut entry = entries.next().unwrap().unwrap();
    assert_eq!(entry.path().unwrap().to_str(), Some("from-1"));
    let mut content = String::new();
    std::io::Read::read_to_string(&mut entry, &mut content).unwrap();
    assert_eq!(content, "content of from-1\n");
    assert!(entries.next().is_none(), "what is gone or too large is not in it");
    let patch = String::from_utf8(text(admin.run_patch(&info.id).await.unwrap()).await).unwrap();
    assert!(patch.starts_with("--- /dev/null\n+++ b/from-1\n"), "{patch}");
    assert!(patch.contains("# too large for a patch, see the files: huge\n"), "{patch}");
}

#[tokio::test]
async fn files_are_there_before_it_begins_and_what_they_were_is_no_change() {
    let (stage, script) = stage(|_| ()).await;
    let admin = stage.host.admin();
    let begun = admin.start_run(&StartRun { input: true, ..task("say hello") }).await.unwrap();
    assert_eq!(begun.state, RunState::Waiting);
    admin.put_run_input(&begun.id, full("a tar")).await.unwrap();
    let twice = admin.put_run_input(&begun.id, full("again")).await.unwrap_err();
    assert!(twice.to_string().contains("does not wait for files"), "{twice}");
    let events = follow(&stage, &begun.id).await;
    assert!(matches!(events.last().unwrap().update, RunUpdate::Ended { .. }));
    assert_eq!(script.put("input").unwrap(), b"a tar");
    let info = admin.run_info(&begun.id).await.unwrap();
    // Compared with what was newest when they were there.
    assert_eq!(info.changes.unwrap().paths[0].path.to_string(), "from-7");
    assert!(!stage.host.data.path().join("runs").join(&begun.id).join("input.tar").exists());
}

#[tokio::test]
async fn its_calls_are_its_own_and_its_token_ends_with_it() {
    let (stage, _) = stage(|_| ()).await;
    let admin = stage.host.admin();
    let wanted = StartRun { dollars: Some(0.25), tokens: Some(50_000), ..task("call it") };
    let begun = admin.start_run(&wanted).await.unwrap();
    assert_eq!((begun.limits.dollars, begun.limits.tokens), (Some(0.25), Some(50_000)));
    let answering = async {
        let mut arrived = stage.arrives().await;
        let tokens: PolicyTokenList =
            admin.get_json("/admin/sandboxes/policy-tokens").await.unwrap();
        let own = tokens.tokens.iter().find(|token| token.name == begun.id).unwrap().clone();
        let usage = r#"{"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":5}}"#;
        arrived.answer(usage).await;
        own
    };
    let (token, events) = tokio::join!(answering, follow(&stage, &begun.id));
    assert_eq!(token.scope.run.as_deref(), Some(begun.id.as_str()));
    assert_eq!((token.scope.dollars, token.scope.tokens), (Some(0.25), Some(50_000)));
    assert_eq!(
        (&token.scope.providers[..], &token.scope.models[..]),
        (&["openai".to_owned()][..], &["gpt-4o".to_owned()][..])
    );
    assert!(token.scope.sandbox.is_some() && token.expires_at.is_some());
    assert!(
        events.iter().any(|event| said(event).is_some_and(|said| said.starts_with("HTTP/1.1 200"))),
        "{events:?}"
    );
    let call = stage.until_call("settled").await;
    assert_eq!((call.run.as_deref(), call.sandbox), (Some(begun.id.as_str()), token.scope.sandbox));
    let info = admin.run_info(&begun.id).await.unwrap();
    assert_eq!(info.used.tokens, 15, "{:?}", info.used);
    let left: PolicyTokenList = admin.get_json("/admin/sandboxes/policy-tokens").await.unwrap();
    assert!(left.tokens.iter().all(|token| token.scope.run.is_none()), "{left:?}");
}

/// Where a model has no price, a number of tokens is what bounds a run.
#[tokio::test]
async fn a_run_ends_with_its_tokens() {
    let (stage, _) = stage(|config| config.runs.tokens = Some(20)).await;
    let (info, events) = run(&stage, StartRun { dollars: Some(0.0), ..task("call it") }).await;
    assert_eq!((info.limits.dollars, info.limits.tokens), (None, Some(20)));
    assert!(
        events.iter().any(|event| said(event).is_some_and(|said| said.starts_with("HTTP/1.1 429"))),
        "{events:?}"
    );
    let refused = stage.until_call("refused").await;
    assert_eq!((refused.verdict.as_deref(), refused.run), (Some("budget"), Some(info.id)));
    let none = StartRun {
        tokens: Some(0),
        model: Some("openai/gpt-4o".to_owned()),
        ..task("look around")
    };
    assert_eq!(run(&stage, none).await.0.limits.tokens, None, "0 means no limit");
}

#[tokio::test]
async fn its_commands_find_its_token_and_no_other() {
    let (stage, _) = stage(|_| ()).await;
    let (_, events) = run(&stage, task("look around")).await;
    let said: Vec<_> = events.iter().filter_map(said).collect();
    assert_eq!(said, ["own token: true, others: false"]);
}

#[tokio::test]
async fn as_many_run_as_may_and_the_rest_wait_their_turn() {
    let (stage, script) = stage(|config| config.runs.most_waiting = 18).await;
    let admin = stage.host.admin();
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(admin.start_run(&task("gate")).await.unwrap().id);
    }
    let full = admin.start_run(&task("gate")).await.unwrap_err();
    assert!(full.to_string().contains("18 runs wait already"), "{full}");
    for id in &ids[..2] {
        until_said(&mut admin.follow_run(id).await.unwrap(), "at the gate").await;
    }
    assert_eq!(stage.host.states().await.len(), 3, "live, and two that run");
    let following = futures_util::future::join_all(ids.iter().map(|id| follow(&stage, id)));
    script.gate.add_permits(20);
    let all = within("all end", following).await;
    for events in &all {
        let Some(RunUpdate::Ended { run }) = events.last().map(|event| &event.update) else {
            panic!("{events:?}")
        };
        assert_eq!(run.outcome.as_ref().unwrap().how, RunEnd::Done);
    }
    let waited = |events: &[nacre_wire::runs::RunEvent]| {
        events.iter().any(|event| matches!(event.update, RunUpdate::Queued { .. }))
    };
    assert_eq!(all.iter().filter(|events| waited(events)).count(), 18);
    assert_eq!(stage.host.states().await, ["live Running"]);
}

#[tokio::test]
async fn a_kept_sandbox_stays_also_after_a_restart() {
    let (mut stage, _) = stage(|_| ()).await;
    let (info, _) = run(&stage, StartRun { keep: true, ..task("say hello") }).await;
    assert_eq!(info.sandbox.as_deref(), Some(info.id.as_str()));
    let kept = stage.host.info(&info.id).await;
    assert_eq!(kept.run.as_deref(), Some(info.id.as_str()));
    stage.host.kill().await;
    stage.host.config.models = same_models(&stage);
    stage.host.start_again().await;
    assert_eq!(stage.host.info(&info.id).await.id, kept.id);
}
