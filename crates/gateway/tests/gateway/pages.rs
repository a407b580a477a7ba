//! The other pages of the control plane: what they show, what their forms do, and who gets neither.

use http::StatusCode;
use nacre_wire::access::{CreateToken, Scope, TokenList};
use nacre_wire::egress::{EgressEffect, EgressMode};

use crate::host::{Answer, Host};

pub(crate) const NAVIGATES: [(&str, &str); 3] =
    [("accept", "text/html"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
pub(crate) const SCRIPT: [(&str, &str); 3] =
    [("accept", "text/html"), ("sec-fetch-mode", "cors"), ("sec-fetch-dest", "empty")];
const NETWORK: &str = "/admin/sandboxes/network";

/// The token on a page.
pub(crate) fn token(page: &str) -> String {
    let after = page.split("name=\"token\" value=\"").nth(1).expect("a form with a token");
    after.split('"').next().unwrap().to_owned()
}

/// What comes of a form.
pub(crate) async fn send(
    host: &Host,
    cookie: &str,
    form: String,
    extra: &[(&str, &str)],
) -> Answer {
    send_to(host, "/admin/sandboxes/page", cookie, form, extra).await
}

async fn send_to(
    host: &Host,
    path: &str,
    cookie: &str,
    form: String,
    extra: &[(&str, &str)],
) -> Answer {
    let origin = host.origin();
    let mut headers = vec![
        ("cookie", cookie),
        ("origin", origin.as_str()),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    headers.extend(extra);
    Answer::read(host.send(host.build("POST", path, &headers, form.into())).await).await
}

pub(crate) async fn visit(host: &Host, cookie: &str, path: &str) -> Answer {
    let mut headers = NAVIGATES.to_vec();
    headers.push(("cookie", cookie));
    host.get(path, &headers).await
}

#[tokio::test]
async fn a_script_and_a_program_are_given_no_page() {
    let host = Host::start().await;
    let cookie = host.sign_in().await;
    let wanted =
        CreateToken { name: "admin".to_owned(), scopes: vec![Scope::Admin], expires_in_s: None };
    let made: nacre_wire::access::MadeToken =
        host.admin().post_json("/admin/sandboxes/tokens", &wanted).await.unwrap();
    let bearer = format!("Bearer {}", made.token);
    for page in ["promote", "network", "models", "runs/new"] {
        let path = format!("/admin/sandboxes/{page}");
        let mut headers = SCRIPT.to_vec();
        headers.push(("cookie", &cookie));
        for headers in [headers, vec![("accept", "text/html"), ("authorization", bearer.as_str())]]
        {
            let refused = host.get(&path, &headers).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{page}");
            assert!(refused.text().starts_with("{\"error\""), "{}", refused.text());
        }
        let shown = visit(&host, &cookie, &path).await;
        assert_eq!(shown.status, StatusCode::OK, "{page}");
        assert_eq!(shown.headers["x-frame-options"], "DENY");
        assert_eq!(shown.headers["cross-origin-opener-policy"], "same-origin");
        assert!(!shown.text().contains("<script"));
    }
}

#[tokio::test]
async fn the_way_out_is_ruled_with_forms_that_somebody_surely_sent() {
    let host = Host::start().await;
    let cookie = host.sign_in().await;
    let page = visit(&host, &cookie, NETWORK).await;
    assert!(page.text().contains("<section id=\"live\">"), "{}", page.text());
    let token = token(page.text());
    let act = async |fields: &str| {
        let form = format!("token={token}&from=network&name=live&{fields}");
        let sent = send(&host, &cookie, form, &NAVIGATES[1..]).await;
        assert_eq!(sent.headers["location"], NETWORK);
        let page = visit(&host, &cookie, NETWORK).await;
        let note = page.text().split("role=\"status\">").nth(1).unwrap();
        note.split('<').next().unwrap().to_owned()
    };
    assert_eq!(
        act("action=egress-mode&mode=allow-list").await,
        "the way out of live is allow-list"
    );
    let rule = "action=egress-rule&effect=allow&target=Example.com%3A443";
    assert_eq!(act(rule).await, "live: allow Example.com:443");
    let view = host.admin().egress("live").await.unwrap();
    assert_eq!((view.mode, view.rules.len()), (EgressMode::AllowList, 1));
    assert_eq!(view.rules[0].effect, EgressEffect::Allow);
    assert!(
        host.audit().await[0].starts_with("egress_changed live: allow"),
        "{:?}",
        host.audit().await
    );
    let page = visit(&host, &cookie, NETWORK).await;
    assert!(page.text().contains("allow example.com:443"), "{}", page.text());
    assert!(act("action=egress-rule&effect=allow&target=127.1").await.contains("127.1"));
    assert_eq!(
        act("action=egress-remove&target=example.com%3A443").await,
        "live: no rule about example.com:443"
    );
    assert_eq!(act("action=egress-mode&mode=").await, "the way out of live is as configured");

    // As over plain http, where a script could have read the token.
    let form = format!("token={token}&from=network&name=live&action=egress-mode&mode=none");
    send(&host, &cookie, form, &[]).await;
    assert_eq!(host.admin().egress("live").await.unwrap().mode, EgressMode::Open);
    let page = host.get(NETWORK, &[("cookie", &cookie), NAVIGATES[0]]).await;
    assert!(page.text().contains("over plain http nobody can tell"), "{}", page.text());
    assert!(!page.text().contains("<form"), "{}", page.text());
}

#[tokio::test]
async fn a_token_is_revoked_where_the_sessions_are() {
    let host = Host::start().await;
    let cookie = host.sign_in().await;
    let wanted =
        CreateToken { name: "laptop".to_owned(), scopes: vec![Scope::Read], expires_in_s: None };
    let made: nacre_wire::access::MadeToken =
        host.admin().post_json("/admin/sandboxes/tokens", &wanted).await.unwrap();
    let page = visit(&host, &cookie, "/auth/me").await;
    assert!(page.text().contains("<section id=\"sessions\">"));
    assert!(page.text().contains("laptop"), "{}", page.text());
    let form = format!("token={}&action=revoke-token&id={}", token(page.text()), made.info.id);
    let sent = send_to(&host, "/auth/me", &cookie, form, &NAVIGATES[1..]).await;
    assert_eq!(sent.status, StatusCode::OK, "{}", sent.text());
    let left: TokenList = host.admin().get_json("/admin/sandboxes/tokens").await.unwrap();
    assert!(left.tokens.is_empty());
    assert_eq!(host.audit().await[0], "token_revoked laptop");
}

#[tokio::test]
async fn the_board_leads_straight_to_what_the_desktop_names() {
    let host = Host::start().await;
    host.put_app("live", "one").await;
    host.make_dev().await;
    let cookie = host.sign_in().await;
    let page = visit(&host, &cookie, "/admin/sandboxes").await;
    for id in ["live", "dev", "swap", "roll-back", "reset-dev"] {
        assert!(page.text().contains(&format!("id=\"{id}\"")), "{id}: {}", page.text());
    }
    for to in ["promote", "network", "models", "runs/new"] {
        assert!(page.text().contains(&format!("href=\"/admin/sandboxes/{to}\"")), "{to}");
    }
}
