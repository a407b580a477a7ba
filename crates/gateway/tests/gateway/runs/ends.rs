//! The ways in which a run ends before it is done.

use nacre_wire::models::PolicyTokenList;
use nacre_wire::runs::{RunEnd, RunUpdate, StartRun};

use super::agent::{follow, run, same_models, stage, task, until_said};
use crate::raw::within;

#[tokio::test]
async fn the_agent_says_how_it_ended_or_its_exit_does() {
    let (stage, _) = stage(|_| ()).await;
    let (info, _) = run(&stage, task("steps")).await;
    assert_eq!(info.outcome.unwrap().how, RunEnd::MaxSteps);
    assert_eq!(info.used.steps, 1);
    let (info, _) = run(&stage, task("crash")).await;
    let outcome = info.outcome.unwrap();
    let expected = (RunEnd::Agent, Some("nacre ended with code 3: boom"));
    assert_eq!((outcome.how, outcome.message.as_deref()), expected);
    let command = Some("./agent".to_owned());
    let (info, _) = run(&stage, StartRun { agent: command, ..task("say hi") }).await;
    assert_eq!(info.outcome.unwrap().how, RunEnd::Done);
    assert_eq!(stage.host.states().await, ["live Running"]);
}

#[tokio::test]
async fn one_that_is_cancelled_has_no_sandbox_when_that_is_answered() {
    let (stage, _) = stage(|_| ()).await;
    let admin = stage.host.admin();
    for (spec, agent) in [("wait", "nacre"), ("stubborn", "nacre"), ("wait", "./own")] {
        let wanted = StartRun { agent: Some(agent.to_owned()), ..task(spec) };
        let begun = admin.start_run(&wanted).await.unwrap();
        let mut events = admin.follow_run(&begun.id).await.unwrap();
        let word = if spec == "wait" { "waiting" } else { "never" };
        until_said(&mut events, word).await;
        within("it is cancelled", admin.cancel_run(&begun.id)).await.unwrap();
        assert_eq!(stage.host.states().await, ["live Running"], "{spec}");
        let outcome = admin.run_info(&begun.id).await.unwrap().outcome.unwrap();
        assert_eq!((outcome.how, outcome.exit_code), (RunEnd::Cancelled, 130), "{spec}");
        // Asked again, it is forgotten.
        admin.cancel_run(&begun.id).await.unwrap();
        assert!(admin.run_info(&begun.id).await.is_err());
    }
}

#[tokio::test]
async fn who_goes_away_takes_the_run_along_unless_it_is_detached() {
    let (stage, script) = stage(|_| ()).await;
    let admin = stage.host.admin();
    let begun = admin.start_run(&task("wait")).await.unwrap();
    let mut events = admin.follow_run(&begun.id).await.unwrap();
    until_said(&mut events, "waiting").await;
    drop(events);
    let how = ended(&stage, &begun.id).await;
    assert_eq!(how, RunEnd::Cancelled);

    let begun = admin.start_run(&StartRun { detach: true, ..task("gate") }).await.unwrap();
    let mut events = admin.follow_run(&begun.id).await.unwrap();
    until_said(&mut events, "at the gate").await;
    drop(events);
    script.gate.add_permits(1);
    assert_eq!(ended(&stage, &begun.id).await, RunEnd::Done);
}

/// From a look now and then, as one that follows would change what happens.
async fn ended(stage: &crate::models::stage::Stage, id: &str) -> RunEnd {
    for _ in 0..2000 {
        let info = stage.host.admin().run_info(id).await.unwrap();
        if let Some(outcome) = info.outcome {
            return outcome.how;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("{id} never ended");
}

#[tokio::test]
async fn time_is_kept_for_agents_that_do_not_keep_it() {
    let (stage, _) = stage(|_| ()).await;
    for spec in ["wait", "stubborn"] {
        let agent = Some("./own".to_owned());
        let wanted = StartRun { agent, timeout_ms: Some(300), ..task(spec) };
        let (info, _) = run(&stage, wanted).await;
        assert_eq!(info.outcome.unwrap().how, RunEnd::TimeOut, "{spec}");
    }
    assert_eq!(stage.host.states().await, ["live Running"]);
}

#[tokio::test]
async fn a_killed_gateway_leaves_no_orphan() {
    let (mut stage, _) = stage(|_| ()).await;
    let admin = stage.host.admin();
    let waiting = admin.start_run(&StartRun { input: true, ..task("say hi") }).await.unwrap();
    let running = admin.start_run(&task("wait")).await.unwrap();
    let mut events = admin.follow_run(&running.id).await.unwrap();
    until_said(&mut events, "waiting").await;
    assert_eq!(stage.host.states().await.len(), 2);
    stage.host.kill().await;
    stage.host.config.models = same_models(&stage);
    stage.host.start_again().await;
    assert_eq!(stage.host.states().await, ["live Running"]);
    let admin = stage.host.admin();
    for id in [&waiting.id, &running.id] {
        let info = admin.run_info(id).await.unwrap();
        assert_eq!(info.outcome.unwrap().how, RunEnd::Interrupted);
        let events = follow(&stage, id).await;
        assert!(matches!(events.last().unwrap().update, RunUpdate::Ended { .. }));
    }
    let tokens: PolicyTokenList = admin.get_json("/admin/sandboxes/policy-tokens").await.unwrap();
    assert!(tokens.tokens.iter().all(|token| token.scope.run.is_none()), "{tokens:?}");
}

#[tokio::test]
async fn a_gateway_that_stops_ends_its_runs() {
    let (mut stage, _) = stage(|_| ()).await;
    let admin = stage.host.admin();
    let begun = admin.start_run(&StartRun { detach: true, ..task("wait") }).await.unwrap();
    let mut events = admin.follow_run(&begun.id).await.unwrap();
    until_said(&mut events, "waiting").await;
    stage.host.stop(false).await;
    stage.host.config.models = same_models(&stage);
    stage.host.start_again().await;
    let info = stage.host.admin().run_info(&begun.id).await.unwrap();
    assert_eq!(info.outcome.unwrap().how, RunEnd::Interrupted);
    assert_eq!(stage.host.states().await, ["live Running"]);
}
