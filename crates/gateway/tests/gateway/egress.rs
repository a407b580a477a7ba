//! The rules of the way out, as the owner's programs and pages see them.

use http::StatusCode;
use nacre_wire::access::{CreateToken, MadeToken, Scope};
use nacre_wire::client::Error;
use nacre_wire::egress::{
    EgressEffect, EgressLog, EgressMode, EgressRule, EgressView, SetEgressMode,
};
use nacre_wire::{ApiError, ErrorKind};

use crate::host::Host;

fn rule(effect: EgressEffect, target: &str) -> EgressRule {
    EgressRule { effect, target: target.to_owned(), private: false, default: false }
}

fn refused(answer: Result<EgressView, Error>) -> ApiError {
    match answer {
        Err(Error::Api(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn rules_are_kept_shown_and_written_down() {
    let mut host = Host::start().await;
    let admin = host.admin();
    let view = admin.egress("live").await.unwrap();
    assert_eq!((view.mode, view.default_mode, view.rules.len()), (EgressMode::Open, true, 0));
    let allow = rule(EgressEffect::Allow, "Example.COM:443");
    admin.add_egress_rule("live", &allow).await.unwrap();
    admin.add_egress_rule("live", &rule(EgressEffect::Deny, "example.com:443")).await.unwrap();
    let mode = SetEgressMode { mode: Some(EgressMode::AllowList) };
    let view = admin.set_egress_mode("live", mode).await.unwrap();
    assert_eq!(view.rules, [rule(EgressEffect::Deny, "example.com:443")], "one for each target");
    assert_eq!((view.mode, view.default_mode), (EgressMode::AllowList, false));
    let bad = refused(admin.add_egress_rule("live", &rule(EgressEffect::Allow, "127.1")).await);
    assert_eq!(bad.kind, ErrorKind::InvalidRequest);
    assert!(bad.hint.unwrap().starts_with("write it like"));
    let none = refused(admin.remove_egress_rule("live", "other.com").await);
    assert_eq!(none.kind, ErrorKind::NotFound);
    let nobody = refused(admin.egress("nobody").await);
    assert_eq!(nobody.kind, ErrorKind::NotFound);
    assert_eq!(host.audit().await[0], "egress_changed live: mode allow-list");
    host.stop(false).await;
    host.start_again().await;
    assert_eq!(host.admin().egress("live").await.unwrap().rules, view.rules);
    let view = host.admin().remove_egress_rule("live", "EXAMPLE.com:443").await.unwrap();
    assert_eq!(view.rules, []);
}

#[tokio::test]
async fn a_copy_of_a_sandbox_may_reach_no_more_than_the_sandbox() {
    let host = Host::start().await;
    host.put_app("live", "one").await;
    let mode = SetEgressMode { mode: Some(EgressMode::None) };
    host.admin().set_egress_mode("live", mode).await.unwrap();
    host.make_dev().await;
    assert_eq!(host.admin().egress("dev").await.unwrap().mode, EgressMode::None);
}

#[tokio::test]
async fn only_somebody_on_the_machine_changes_the_rules() {
    let host = Host::start().await;
    let wanted =
        CreateToken { name: "admin".to_owned(), scopes: vec![Scope::Admin], expires_in_s: None };
    let made: MadeToken = host.admin().post_json("/admin/sandboxes/tokens", &wanted).await.unwrap();
    let token = format!("Bearer {}", made.token);
    let ask = async |method: &str, path: &str| {
        let path = format!("/admin/sandboxes/{path}");
        host.request(method, &path, &[("authorization", &token)]).await.status
    };
    assert_eq!(ask("GET", "live/egress").await, StatusCode::OK);
    assert_eq!(ask("GET", "egress/log").await, StatusCode::OK);
    assert_eq!(ask("PUT", "live/egress/mode").await, StatusCode::FORBIDDEN);
    assert_eq!(ask("POST", "live/egress/rules").await, StatusCode::FORBIDDEN);
    assert_eq!(ask("DELETE", "live/egress/rules?target=a.b").await, StatusCode::FORBIDDEN);
    let log: EgressLog = host.admin().get_json("/admin/sandboxes/egress/log").await.unwrap();
    assert_eq!(log, EgressLog { records: vec![], next: None, lost: 0 });
}
