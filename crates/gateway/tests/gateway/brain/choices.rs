//! What may be chosen for a conversation, and the page with the switch of those who answer.

use http::StatusCode;
use nacre_wire::conductor::{ModelChoice, ModelChoices, PlanList, PlanSource};
use nacre_wire::models::ProviderList;

use super::stage::Talk;
use crate::models::stage::REAL_KEY;
use crate::pages::{NAVIGATES, send, token, visit};

const MODELS: &str = "/admin/sandboxes/models";

#[tokio::test]
async fn models_and_plans_are_named_without_keys() {
    let talk = Talk::set().await;
    let admin = talk.host.admin();
    let choices: ModelChoices = admin.get_json("/admin/sandboxes/conductor/models").await.unwrap();
    let default = ModelChoice { model: "local/m".to_owned(), default: true, problem: None };
    assert_eq!(choices.models, [default]);
    assert_eq!((choices.providers[0].name.as_str(), choices.providers.len()), ("local", 1));
    let plans = "/admin/sandboxes/conductor/plans";
    let list: PlanList = admin.get_json(plans).await.unwrap();
    assert!(list.plans.iter().all(|plan| plan.source == PlanSource::Builtin));
    assert!(list.plans.iter().any(|plan| plan.name == "Fix a bug" && plan.steps.len() >= 5));
    for wrong in ["dev", "prod"] {
        let error = admin.get_json::<PlanList>(&format!("{plans}?role={wrong}")).await;
        assert!(error.is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn the_switch_is_on_a_page() {
    let talk = Talk::set().await;
    let host = &talk.host;
    let cookie = host.sign_in().await;
    let page = visit(host, &cookie, MODELS).await;
    assert!(page.text().contains("<section id=\"local\">"), "{}", page.text());
    assert!(!page.text().contains(REAL_KEY) && page.text().contains("Nobody was asked today"));
    let token = token(page.text());
    let stopped = async || {
        let list: ProviderList = host.admin().get_json("/admin/sandboxes/providers").await.unwrap();
        (list.stopped, list.providers[0].stopped)
    };
    let act = async |fields: &str, extra: &[(&str, &str)]| {
        let form = format!("token={token}&from=models&{fields}");
        let sent = send(host, &cookie, form, extra).await;
        assert_eq!(
            (sent.status, &sent.headers["location"]),
            (StatusCode::SEE_OTHER, &MODELS.parse().unwrap())
        );
        stopped().await
    };
    let sure = &NAVIGATES[1..];
    assert_eq!(act("action=provider-stop&name=local", sure).await, (false, true));
    assert_eq!(act("action=provider-start&name=local", &[]).await, (false, true), "not by a guess");
    assert_eq!(act("action=provider-start&name=local", sure).await, (false, false));
    assert_eq!(act("action=provider-stop", sure).await, (true, true));
    assert!(visit(host, &cookie, MODELS).await.text().contains("Let models be asked again"));
    assert_eq!(act("action=provider-start", sure).await, (false, false));
}
