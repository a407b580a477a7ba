//! The owner signs in with their account, and nobody else does.

use http::StatusCode;
use nacre_atproto::testing::{ALICE, AUTHORIZE, HANDLE, MALLORY, Net, PUSH, REVOKE, TOKEN};
use nacre_gateway::RawGatewayConfig;
use nacre_wire::control::SetupCode;

use crate::browser::{Browser, HTML, sent};
use crate::host::Host;

async fn stage() -> (Net, Host) {
    let net = Net::start().await.unwrap();
    let host = Host::owned(&net).await;
    (net, host)
}

#[tokio::test]
async fn the_owner_signs_in_and_lands_where_they_were_going() {
    let (net, host) = stage().await;
    let mut owner = Browser::new(&host);
    let asked = sent(owner.get("/desktop?a=1").await).unwrap_or_default();
    let page = owner.get(&asked).await;
    assert!(page.text().contains("Sign in as @alice.test"), "{}", page.text());
    let next = Browser::field(&page, "next");
    let landed = owner.sign_in(&net, &format!("next={next}")).await;
    assert_eq!(sent(landed).unwrap_or_default(), "/desktop?a=1");

    let seen = owner.get("/x").await;
    assert!(seen.text().contains(&format!("x-nacre-user: {ALICE}")), "{}", seen.text());
    let sessions = host.sessions().await.sessions;
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].method.as_str(), "account");
    assert_eq!(host.audit().await[0], "sign_in account");
    assert!(!owner.cookies.contains_key("nacre_browser"), "what it was bound to is gone");
}

#[tokio::test]
async fn mallory_of_the_same_server_is_refused_and_named() {
    let (net, host) = stage().await;
    net.signs_in(MALLORY);
    let mut mallory = Browser::new(&host);
    let page = mallory.sign_in(&net, "").await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    for words in ["@mallory.test", MALLORY, "Try another account", "Nothing was kept"] {
        assert!(page.text().contains(words), "{words}: {}", page.text());
    }
    assert_eq!(mallory.session(), None);
    assert_eq!(host.sessions().await.sessions, []);
    assert_eq!(host.audit().await[0], "sign_in_refused not the owner");
    assert_eq!(net.seen_at(REVOKE).len(), 2, "both tokens were given back");

    net.signs_in(ALICE);
    let landed = mallory.sign_in(&net, "").await;
    assert_eq!(sent(landed).unwrap_or_default(), "/", "another try is open");
}

#[tokio::test]
async fn consent_that_is_denied_says_so() {
    let (net, host) = stage().await;
    net.denies("access_denied");
    let mut owner = Browser::new(&host);
    let page = owner.sign_in(&net, "").await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    assert!(page.text().contains("You said no"), "{}", page.text());
    assert_eq!(host.sessions().await.sessions, []);
}

#[tokio::test]
async fn a_server_that_is_down_says_so_and_leads_to_recovery() {
    let (net, host) = stage().await;
    net.tweak(&format!("/{ALICE}"), |reply, _| reply.status = 503);
    let mut owner = Browser::new(&host);
    let page = owner.get("/login").await;
    assert!(page.text().contains("Sign in with your Atmosphere account"), "{}", page.text());
    let page = owner.sign_in(&net, "").await;
    assert_eq!(page.status, StatusCode::BAD_GATEWAY);
    assert!(page.text().contains("does not answer") && page.text().contains("/recovery"));

    let host = Host::start_as(
        RawGatewayConfig {
            owner_did: Some(ALICE.to_owned()),
            plc_url: Some("http://127.0.0.1:1".to_owned()),
            ..Default::default()
        },
        |_| (),
    )
    .await;
    let page = Browser::new(&host).sign_in(&net, "").await;
    assert!(page.status == StatusCode::BAD_GATEWAY && page.text().contains("does not answer"));
}

#[tokio::test]
async fn a_handle_is_shown_only_when_it_is_verified_both_ways() {
    let (net, host) = stage().await;
    net.tweak(HANDLE, |reply, _| reply.body = MALLORY.as_bytes().to_vec());
    let page = host.get("/login", &[HTML]).await;
    assert!(!page.text().contains("alice.test"), "{}", page.text());
    assert!(page.text().contains(ALICE));
}

#[tokio::test]
async fn a_handle_is_not_asked_for_at_every_visit() {
    let (net, host) = stage().await;
    for _ in 0..5 {
        assert!(host.get("/login", &[HTML]).await.text().contains("@alice.test"));
    }
    assert_eq!(net.seen_at(HANDLE).len(), 1);
}

#[tokio::test]
async fn every_sign_in_has_its_own_state_verifier_and_key() {
    let (net, host) = stage().await;
    for _ in 0..2 {
        Browser::new(&host).sign_in(&net, "").await;
    }
    let pushes: Vec<_> = net.seen_at(PUSH);
    // Each asked twice: without the server's nonce, then with it.
    assert_eq!(pushes.len(), 4);
    let proof = |index: usize| pushes[index].proof.as_ref().unwrap();
    assert_ne!(pushes[1].form["state"], pushes[3].form["state"]);
    assert_ne!(pushes[1].form["code_challenge"], pushes[3].form["code_challenge"]);
    assert_ne!(proof(1).header["jwk"], proof(3).header["jwk"]);
    assert_eq!(proof(0).header["jwk"], proof(1).header["jwk"]);
    assert_eq!(
        (proof(0).claims.get("nonce"), &proof(1).claims["nonce"]),
        (None, &"nonce-1".into())
    );
    assert_eq!(pushes[1].form["scope"], "atproto");
    assert_eq!(pushes[1].form["login_hint"], ALICE);

    let all = net.seen();
    let mut ids: Vec<_> = all
        .iter()
        .filter_map(|asked| Some(asked.proof.as_ref()?.claims["jti"].to_string()))
        .collect();
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert!(count >= 8 && ids.len() == count, "no proof is used twice");
}

#[tokio::test]
async fn the_browser_carries_nothing_but_who_asks_and_for_what() {
    let (net, host) = stage().await;
    let address = Browser::new(&host).start("").await.unwrap_or_default();
    let query = address.strip_prefix(&format!("{}{AUTHORIZE}?", net.origin())).unwrap();
    let names: Vec<_> = query.split('&').map(|pair| pair.split_once('=').unwrap().0).collect();
    assert_eq!(names, ["client_id", "request_uri"]);
}

#[tokio::test]
async fn a_nonce_that_changes_in_between_is_taken_over() {
    let (net, host) = stage().await;
    let mut owner = Browser::new(&host);
    let address = owner.start("").await.unwrap_or_default();
    net.new_nonce();
    let landed = owner.come_back(&net, &address).await;
    assert_eq!(sent(landed).unwrap_or_default(), "/");
    assert_eq!(net.seen_at(TOKEN).len(), 2);
}

#[tokio::test]
async fn tokens_are_given_back_and_kept_nowhere() {
    let (net, host) = stage().await;
    Browser::new(&host).sign_in(&net, "").await;
    let given: Vec<_> =
        net.seen_at(REVOKE).iter().map(|asked| asked.form["token"].clone()).collect();
    assert_eq!(given, ["refresh-canary", "access-canary"]);
    for entry in std::fs::read_dir(host.data.path()).unwrap().flatten() {
        let content = std::fs::read(entry.path()).unwrap_or_default();
        let found = content.windows(6).any(|window| window == b"canary");
        assert!(!found, "{}", entry.path().display());
    }
}

#[tokio::test]
async fn signing_in_changes_the_session_and_ends_the_one_before() {
    let (net, host) = stage().await;
    let mut owner = Browser::new(&host);
    owner.sign_in(&net, "").await;
    let first = owner.session().unwrap().to_owned();
    owner.cookies.insert("nacre_session".to_owned(), first.clone());
    owner.sign_in(&net, "").await;
    assert_ne!(owner.session(), Some(first.as_str()));
    assert_eq!(host.sessions().await.sessions.len(), 1);
    let old = format!("nacre_session={first}");
    assert_eq!(host.get("/x", &[("cookie", &old)]).await.status, StatusCode::UNAUTHORIZED);

    // A session that somebody else chose never becomes one.
    let mut fixed = Browser::new(&host);
    fixed.cookies.insert("nacre_session".to_owned(), "0".repeat(64));
    fixed.sign_in(&net, "").await;
    assert_ne!(fixed.session(), Some("0".repeat(64).as_str()));
}

#[tokio::test]
async fn another_owner_ends_every_session_and_the_same_one_none() {
    let net = Net::start().await.unwrap();
    let mut host = Host::owned(&net).await;
    let mut owner = Browser::new(&host);
    owner.sign_in(&net, "").await;
    let cookie = format!("nacre_session={}", owner.session().unwrap());
    drop(owner);
    host.stop(false).await;
    host.start_again().await;
    assert_eq!(host.get("/x", &[("cookie", &cookie)]).await.status, StatusCode::OK);
    host.stop(false).await;
    host.config.auth.owner = None;
    host.start_again().await;
    let page = host.get("/x", &[("cookie", &cookie)]).await;
    assert_eq!(page.status, StatusCode::OK, "an owner that is no longer named stays");

    host.stop(false).await;
    host.config.auth.owner = Some(MALLORY.parse().unwrap());
    host.start_again().await;
    assert_eq!(host.get("/x", &[("cookie", &cookie)]).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(host.sessions().await.sessions, []);
}

async fn unowned() -> (Net, Host, String) {
    let net = Net::start().await.unwrap();
    let raw = RawGatewayConfig { plc_url: Some(net.origin()), ..Default::default() };
    let host = Host::start_as(raw, |_| ()).await;
    let path = "/admin/sandboxes/gateway/setup-code";
    let setup: SetupCode = host.admin().post_json(path, &()).await.unwrap();
    assert_eq!(setup.url, format!("{}/register", host.origin()));
    (net, host, setup.code)
}

#[tokio::test]
async fn whoever_has_the_setup_code_claims_the_computer_once() {
    let (net, host, code) = unowned().await;
    let before = host.sign_in().await;
    let mut owner = Browser::new(&host);
    let page = owner.get("/register").await;
    assert!(page.text().contains("Make this computer yours"), "{}", page.text());
    let form = format!("code={}&account={ALICE}", code.to_lowercase());
    let address = sent(owner.post("/register", &form).await).unwrap_or_default();
    let page = owner.come_back(&net, &address).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text().contains("This computer is yours now, @alice.test"), "{}", page.text());
    assert_eq!(page.text().matches("<li>").count(), 10, "ten recovery codes");
    assert!(owner.get("/x").await.text().contains(&format!("x-nacre-user: {ALICE}")));
    let old = host.get("/x", &[("cookie", &before)]).await;
    assert_eq!(old.status, StatusCode::UNAUTHORIZED, "sessions of before end");

    let again = Browser::new(&host).post("/register", &form).await;
    assert_eq!(again.status, StatusCode::FORBIDDEN);
    assert!(again.text().contains("has an owner"));
    let path = "/admin/sandboxes/gateway/setup-code";
    assert!(host.admin().post_json::<SetupCode>(path, &()).await.is_err());
}

#[tokio::test]
async fn without_the_setup_code_nobody_is_even_asked() {
    let (net, host, code) = unowned().await;
    let mut stranger = Browser::new(&host);
    for wrong in ["", "00000-00000-00000-00000", &code[1..]] {
        let page = stranger.post("/register", &format!("code={wrong}&account={ALICE}")).await;
        assert_eq!(page.status, StatusCode::FORBIDDEN);
        assert!(page.text().contains("not the setup code"), "{}", page.text());
    }
    assert!(net.seen().is_empty());
    let page = stranger.post("/register", &format!("code={code}&account=not a handle")).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
    assert!(host.audit().await.contains(&"claim_refused a wrong setup code".to_owned()));
}

#[tokio::test]
async fn a_computer_is_claimed_by_the_account_that_was_named() {
    let (net, host, code) = unowned().await;
    net.signs_in(MALLORY);
    let mut owner = Browser::new(&host);
    let form = format!("code={code}&account={ALICE}");
    let address = sent(owner.post("/register", &form).await).unwrap_or_default();
    let page = owner.come_back(&net, &address).await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    assert!(page.text().contains("@mallory.test"), "{}", page.text());
    assert_eq!(host.sessions().await.sessions, []);
    assert!(host.get("/login", &[HTML]).await.text().contains("nacre login"), "still nobody's");
}

#[tokio::test]
async fn a_computer_on_loopback_has_no_client_document() {
    let (_net, host) = stage().await;
    for path in ["/auth/client-metadata.json", "/auth/jwks.json", "/auth/nothing", "/auth"] {
        assert_eq!(host.get(path, &[]).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(
        host.request("PUT", "/auth/callback", &[("origin", &host.origin())]).await.status,
        405
    );
}

#[tokio::test]
async fn a_computer_with_an_address_describes_itself_to_account_servers() {
    let raw = RawGatewayConfig {
        owner_did: Some("did:web:alice.example.net".to_owned()),
        public_url: Some("https://pc.example.net".to_owned()),
        ..Default::default()
    };
    let mut host = Host::start_as(raw, |_| ()).await;
    let document = async |host: &Host, path: &str| {
        let answer = host.get(path, &[("host", "pc.example.net")]).await;
        assert_eq!(answer.headers["content-type"], "application/json", "{path}");
        serde_json::from_slice::<serde_json::Value>(&answer.body).unwrap()
    };
    let client = document(&host, "/auth/client-metadata.json").await;
    assert_eq!(client["client_id"], "https://pc.example.net/auth/client-metadata.json");
    assert_eq!(
        client["redirect_uris"],
        serde_json::json!(["https://pc.example.net/auth/callback"])
    );
    assert_eq!(client["token_endpoint_auth_method"], "private_key_jwt");
    assert_eq!(client["dpop_bound_access_tokens"], true);
    let keys = document(&host, "/auth/jwks.json").await;
    assert!(keys["keys"][0]["kid"].is_string() && keys["keys"][0].get("d").is_none(), "{keys}");
    assert_eq!(crate::host::mode(&host.data.path().join("client.key")), 0o600);
    host.stop(false).await;
    host.start_again().await;
    assert_eq!(document(&host, "/auth/jwks.json").await, keys, "the key stays");

    let page = host.get("/login", &[HTML, ("host", "pc.example.net")]).await;
    assert!(
        page.text().contains("action=\"https://pc.example.net/auth/start\""),
        "{}",
        page.text()
    );
}

#[tokio::test]
async fn a_public_computer_asks_nobody_on_its_own_machine() {
    let net = Net::start().await.unwrap();
    let raw = |public: Option<&str>| RawGatewayConfig {
        owner_did: Some(ALICE.to_owned()),
        public_url: public.map(str::to_owned),
        plc_url: Some(net.origin()),
        ..Default::default()
    };
    let error = Host::refuses(raw(Some("https://pc.example.net"))).await;
    assert!(error.contains("plain http is for this machine alone"), "{error}");
    for nowhere in ["https://pc.example.net:8443", "http://pc.example.net", "https://10.0.0.1"] {
        let error = Host::refuses(raw(Some(nowhere))).await;
        assert!(error.contains(&format!("an owner cannot sign in at {nowhere}")), "{error}");
    }
    assert!(net.seen().is_empty());
}
