//! Runs are begun and ended on a page, by somebody and by no script.

use http::StatusCode;
use nacre_wire::runs::{RunEnd, RunState};

use super::agent::{MODEL, follow, stage, task, until_said};
use crate::models::stage::Stage;
use crate::pages::{NAVIGATES, SCRIPT, send, token, visit};

const PAGE: &str = "/admin/sandboxes/runs/new";

/// The page and its token.
async fn page(stage: &Stage, cookie: &str) -> (String, String) {
    let shown = visit(&stage.host, cookie, PAGE).await;
    assert_eq!(shown.status, StatusCode::OK);
    assert!(!shown.text().contains("<script"));
    (shown.text().to_owned(), token(shown.text()))
}

#[tokio::test]
async fn a_run_is_begun_and_ended_with_forms_alone() {
    let (stage, _) = stage(|config| config.runs.model = Some(MODEL.to_owned())).await;
    let host = &stage.host;
    let cookie = host.sign_in().await;
    let (shown, token) = page(&stage, &cookie).await;
    assert!(shown.contains("<textarea name=\"spec\" required>"), "{shown}");

    let form = format!("token={token}&from=runs&action=start-run&spec=wait+here&max_steps=3");
    let begun = send(host, &cookie, form, &NAVIGATES[1..]).await;
    let watched = begun.headers["location"].to_str().unwrap().to_owned();
    let id = watched.strip_prefix("/#/runs/").expect("it is watched in the desktop").to_owned();
    let info = host.admin().run_info(&id).await.unwrap();
    assert_eq!((info.detached, info.limits.max_steps, info.title.as_str()), (true, 3, "wait here"));
    let mut events = host.admin().follow_run(&id).await.unwrap();
    until_said(&mut events, "waiting").await;
    let (shown, _) = page(&stage, &cookie).await;
    assert!(shown.contains(&format!("<section id=\"{id}\">")), "{shown}");

    let form = format!("token={token}&from=runs&action=cancel-run&name={id}");
    let sent = send(host, &cookie, form, &NAVIGATES[1..]).await;
    assert_eq!(sent.headers["location"], PAGE);
    let (shown, _) = page(&stage, &cookie).await;
    assert!(shown.contains(&format!("{id} is cancelled")), "{shown}");
    let outcome = host.admin().run_info(&id).await.unwrap().outcome.unwrap();
    assert_eq!(outcome.how, RunEnd::Cancelled);
}

#[tokio::test]
async fn a_run_that_ended_before_the_button_was_pressed_is_kept() {
    let (stage, _) = stage(|_| ()).await;
    let host = &stage.host;
    let cookie = host.sign_in().await;
    let id = host.admin().start_run(&task("say done")).await.unwrap().id;
    follow(&stage, &id).await;
    let (_, token) = page(&stage, &cookie).await;
    let form = format!("token={token}&from=runs&action=cancel-run&name={id}");
    send(host, &cookie, form, &NAVIGATES[1..]).await;
    let (shown, _) = page(&stage, &cookie).await;
    assert!(shown.contains(&format!("{id} had ended already")), "{shown}");
    assert_eq!(host.admin().run_info(&id).await.unwrap().state, RunState::Ended);
}

#[tokio::test]
async fn no_script_begins_a_run_and_nothing_typed_is_lost() {
    let (stage, script) = stage(|_| ()).await;
    let host = &stage.host;
    let cookie = host.sign_in().await;
    let (_, token) = page(&stage, &cookie).await;
    let form = format!("token={token}&from=runs&action=start-run&spec=say+hi&model={MODEL}");
    let refused = send(host, &cookie, form.clone(), &SCRIPT[1..]).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    // As over plain http, where a script could have read the token.
    let refused = send(host, &cookie, form.clone(), &[]).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(refused.text().contains("over plain http nobody can tell"), "{}", refused.text());

    let refused = send(host, &cookie, form.replace("openai", "nobody"), &NAVIGATES[1..]).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let shown = refused.text();
    assert!(shown.contains("no provider") && shown.contains(">say hi</textarea>"), "{shown}");
    let other = host.sign_in().await;
    let refused = send(host, &other, form, &NAVIGATES[1..]).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "a token is good for one session");
    assert!(host.admin().runs().await.unwrap().runs.is_empty());
    assert!(script.started.lock().unwrap().is_empty());
}
