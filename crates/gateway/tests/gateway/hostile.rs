//! Servers that lie, callbacks that were not asked for, and everything else that must not let anybody
//! in. Each line of the checklist in `docs/decisions/0012` is a test, and each attack.

use http::StatusCode;
use nacre_atproto::testing::{
    ALICE, Asked, DOCUMENT, HANDLE, MALLORY, Net, PUSH, RESOURCE, REVOKE, Reply, TOKEN,
};
use nacre_gateway::RawGatewayConfig;
use nacre_wire::control::SetupCode;
use serde_json::{Value, json};

use crate::browser::{Browser, sent};
use crate::host::{Answer, Host};

async fn stage() -> (Net, Host) {
    let net = Net::start().await.unwrap();
    let host = Host::owned(&net).await;
    (net, host)
}

async fn nobody_got_in(host: &Host, browser: &Browser<'_>, page: &Answer) {
    assert!(page.status.is_client_error() || page.status.is_server_error(), "{}", page.status);
    assert_eq!(browser.session(), None);
    assert_eq!(host.sessions().await.sessions, []);
    assert!(!host.audit().await.iter().any(|line| line.starts_with("sign_in ")));
}

/// One answer is changed, nobody gets in, and the page says why.
async fn check(path: &str, tweak: impl FnMut(&mut Reply, &Asked) + Send + 'static, why: &str) {
    let (net, host) = stage().await;
    net.tweak(path, tweak);
    let mut browser = Browser::new(&host);
    let page = browser.sign_in(&net, "").await;
    nobody_got_in(&host, &browser, &page).await;
    let text = page.text().replace("&quot;", "\"").replace("&#39;", "'");
    assert!(text.contains(why), "{path}: {why}: {text}");
}

async fn check_edit(path: &str, edit: impl Fn(&mut Value) + Send + 'static, why: &str) {
    check(path, move |reply, _| reply.edit(&edit), why).await;
}

fn alice() -> String {
    format!("/{ALICE}")
}

// Discovery

#[tokio::test]
async fn a_did_document_of_somebody_else_is_refused() {
    check_edit(&alice(), |document| document["id"] = json!(MALLORY), "somebody else's").await;
}

#[tokio::test]
async fn a_did_document_without_a_pds_is_refused() {
    check_edit(&alice(), |document| document["service"] = json!([]), "names no PDS").await;
}

#[tokio::test]
async fn a_pds_that_is_not_at_an_origin_is_refused() {
    for pds in ["https://pds.example/x", "https://a@pds.example", "ftp://pds.example", ""] {
        let edit =
            move |document: &mut Value| document["service"][0]["serviceEndpoint"] = json!(pds);
        check_edit(&alice(), edit, "not at an origin").await;
    }
}

#[tokio::test]
async fn a_pds_over_plain_http_elsewhere_is_refused() {
    let edit = |document: &mut Value| {
        document["service"][0]["serviceEndpoint"] = json!("http://pds.example");
    };
    check_edit(&alice(), edit, "not at an https origin").await;
}

#[tokio::test]
async fn a_pds_inside_the_network_is_not_connected_to() {
    for pds in
        ["https://10.0.0.1", "https://169.254.169.254", "https://192.168.1.1", "https://[fd00::1]"]
    {
        let edit =
            move |document: &mut Value| document["service"][0]["serviceEndpoint"] = json!(pds);
        check_edit(&alice(), edit, "not on the public internet").await;
    }
}

#[tokio::test]
async fn documents_are_200_exactly_and_never_redirects() {
    for path in [&alice(), RESOURCE, DOCUMENT] {
        for status in [201, 204, 301, 302, 307, 404] {
            let tweak = move |reply: &mut Reply, asked: &Asked| {
                reply.status = status;
                reply.set_header("location", &format!("http://{}/elsewhere", asked.host));
            };
            check(path, tweak, &format!("it answers {status}")).await;
        }
    }
}

#[tokio::test]
async fn documents_are_json_and_say_so() {
    for path in [RESOURCE, DOCUMENT] {
        check(path, |reply, _| reply.set_header("content-type", "text/html"), "is not JSON").await;
        check(path, |reply, _| reply.body = b"{".to_vec(), "malformed").await;
    }
    check(&alice(), |reply, _| reply.set_header("content-type", "text/plain"), "is not JSON").await;
    check(&alice(), |reply, _| reply.body = b"[]".to_vec(), "malformed").await;
}

#[tokio::test]
async fn huge_documents_are_not_read_to_their_end() {
    for path in [&alice(), RESOURCE, DOCUMENT, PUSH, TOKEN] {
        check(path, |reply, _| reply.body = vec![b' '; 1 << 20], "too large").await;
    }
}

#[tokio::test]
async fn exactly_one_authorization_server_at_a_bare_origin() {
    let edit = |servers: Value| {
        move |document: &mut Value| document["authorization_servers"] = servers.clone()
    };
    check_edit(RESOURCE, edit(json!([])), "exactly one").await;
    check_edit(RESOURCE, edit(json!(["https://a.example", "https://b.example"])), "exactly one")
        .await;
    for server in ["https://a.example/", "https://a.example/x", "https://a.example?x", "a.example"]
    {
        check_edit(RESOURCE, edit(json!([server])), "not at an origin").await;
    }
    check_edit(RESOURCE, edit(json!(["http://a.example"])), "plain http").await;
}

#[tokio::test]
async fn the_pds_describes_itself() {
    check_edit(RESOURCE, |d| d["resource"] = json!("https://other.example"), "another PDS").await;
}

#[tokio::test]
async fn the_issuer_is_where_it_was_asked() {
    check_edit(DOCUMENT, |d| d["issuer"] = json!("https://as.example"), "calls itself").await;
}

#[tokio::test]
async fn weak_metadata_is_refused_line_by_line() {
    let lists = [
        ("response_types_supported", "code"),
        ("grant_types_supported", "authorization_code"),
        ("grant_types_supported", "refresh_token"),
        ("code_challenge_methods_supported", "S256"),
        ("token_endpoint_auth_methods_supported", "none"),
        ("token_endpoint_auth_methods_supported", "private_key_jwt"),
        ("token_endpoint_auth_signing_alg_values_supported", "ES256"),
        ("dpop_signing_alg_values_supported", "ES256"),
        ("scopes_supported", "atproto"),
    ];
    for (name, missing) in lists {
        let edit = move |document: &mut Value| {
            document[name].as_array_mut().unwrap().retain(|value| *value != missing);
        };
        check_edit(DOCUMENT, edit, missing).await;
    }
    for (name, why) in [
        ("authorization_response_iss_parameter_supported", "names itself"),
        ("require_pushed_authorization_requests", "pushed requests"),
        ("client_id_metadata_document_supported", "client documents"),
    ] {
        check_edit(DOCUMENT, move |document| document[name] = json!(false), why).await;
        let remove =
            move |document: &mut Value| drop(document.as_object_mut().unwrap().remove(name));
        check_edit(DOCUMENT, remove, "malformed").await;
    }
    let unsigned = |document: &mut Value| {
        document["token_endpoint_auth_signing_alg_values_supported"] = json!(["ES256", "none"]);
    };
    check_edit(DOCUMENT, unsigned, "unsigned").await;
    for name in [
        "authorization_endpoint",
        "token_endpoint",
        "pushed_authorization_request_endpoint",
        "revocation_endpoint",
    ] {
        let plain = move |document: &mut Value| document[name] = json!("http://as.example/x");
        check_edit(DOCUMENT, plain, "https address").await;
        check_edit(
            DOCUMENT,
            move |document| document[name] = json!("javascript:alert(1)"),
            "no address",
        )
        .await;
    }
}

// The request

#[tokio::test]
async fn a_server_that_always_wants_another_nonce_is_asked_twice() {
    let (net, host) = stage().await;
    let mut count = 0;
    net.tweak(PUSH, move |reply, _| {
        count += 1;
        *reply = Reply::error(400, "use_dpop_nonce");
        reply.set_header("dpop-nonce", &format!("other-{count}"));
    });
    let mut browser = Browser::new(&host);
    let page = browser.sign_in(&net, "").await;
    nobody_got_in(&host, &browser, &page).await;
    assert_eq!(net.seen_at(PUSH).len(), 2);
}

#[tokio::test]
async fn a_pushed_request_that_is_refused_goes_no_further() {
    check(PUSH, |reply, _| *reply = Reply::error(400, "invalid_client"), "invalid_client").await;
    let pushed = |change: fn(&mut Reply)| {
        move |reply: &mut Reply, _: &Asked| {
            if reply.status == 201 {
                change(reply);
            }
        }
    };
    check(PUSH, pushed(|reply| reply.edit(|answer| *answer = json!({}))), "malformed").await;
    check(PUSH, pushed(|reply| reply.status = 302), "it answers 302").await;
}

#[tokio::test]
async fn where_the_browser_is_sent_cannot_be_broken_out_of() {
    let (net, host) = stage().await;
    let uri = "x\r\nset-cookie: a=b&client_id=evil#";
    net.tweak(PUSH, move |reply, _| {
        if reply.status == 201 {
            reply.edit(|answer| answer["request_uri"] = json!(uri));
        }
    });
    let address = Browser::new(&host).start("").await.unwrap_or_default();
    assert!(
        address.ends_with("request_uri=x%0D%0Aset-cookie%3A%20a%3Db%26client_id%3Devil%23"),
        "{address}"
    );
}

// The callback

#[tokio::test]
async fn a_state_is_used_once() {
    let (net, host) = stage().await;
    let mut browser = Browser::new(&host);
    let address = browser.start("").await.unwrap_or_default();
    let bound = browser.cookies.clone();
    let back = net.consent(&address).await.unwrap();
    let path = back.strip_prefix(&host.origin()).unwrap();
    assert_eq!(sent(browser.get(path).await).unwrap_or_default(), "/");

    let mut again = Browser::new(&host);
    again.cookies = bound;
    let page = again.get(path).await;
    assert_eq!((page.status, again.session()), (StatusCode::BAD_REQUEST, None));
    assert!(page.text().contains("This sign-in is over"));
    assert_eq!(net.seen_at(TOKEN).len(), 1, "the code is not even tried");
}

#[tokio::test]
async fn a_callback_in_another_browser_is_refused() {
    let (net, host) = stage().await;
    let mut began = Browser::new(&host);
    let address = began.start("").await.unwrap_or_default();
    let mut other = Browser::new(&host);
    let page = other.come_back(&net, &address).await;
    nobody_got_in(&host, &other, &page).await;

    // With a sign-in of its own it has a cookie, and that is another one.
    let address = began.start("").await.unwrap_or_default();
    other.start("").await.unwrap_or_default();
    let page = other.come_back(&net, &address).await;
    nobody_got_in(&host, &other, &page).await;
    assert!(net.seen_at(TOKEN).is_empty());
}

#[tokio::test]
async fn a_callback_that_nobody_waits_for_is_refused() {
    let (net, host) = stage().await;
    let iss = net.origin();
    for query in [
        String::new(),
        format!("code=a&iss={iss}"),
        format!("code=a&state=unknown&iss={iss}"),
        format!("code=a&state=&iss={iss}"),
        format!("code=a&state=a&state=b&iss={iss}"),
    ] {
        let mut browser = Browser::new(&host);
        let page = browser.get(&format!("/auth/callback?{query}")).await;
        nobody_got_in(&host, &browser, &page).await;
    }
    assert!(net.seen().is_empty());
}

/// Changes the address that the browser comes back to.
async fn check_callback(change: impl Fn(&str, &Net) -> String) {
    let (net, host) = stage().await;
    let mut browser = Browser::new(&host);
    let address = browser.start("").await.unwrap_or_default();
    let back = net.consent(&address).await.unwrap();
    let path = change(back.strip_prefix(&host.origin()).unwrap(), &net);
    let page = browser.get(&path).await;
    nobody_got_in(&host, &browser, &page).await;
    assert!(net.seen_at(TOKEN).is_empty(), "{path}");
}

#[tokio::test]
async fn a_mixed_up_issuer_is_refused() {
    check_callback(|path, net| path.replace(&net.origin(), "https://evil.example")).await;
    check_callback(|path, net| path.replace(&net.origin(), &format!("{}/", net.origin()))).await;
    check_callback(|path, net| path.replace(&format!("&iss={}", net.origin()), "")).await;
    check_callback(|path, net| format!("{path}&iss={}", net.origin())).await;
    check_callback(|path, _| path.replace("code=", "error=access_denied&code=")).await;
    check_callback(|path, _| path.replace("code=", "kode=")).await;
}

#[tokio::test]
async fn a_code_of_another_sign_in_is_worth_nothing() {
    let (net, host) = stage().await;
    let (mut victim, mut attacker) = (Browser::new(&host), Browser::new(&host));
    let theirs = victim.start("").await.unwrap_or_default();
    let stolen = net.consent(&theirs).await.unwrap();
    let code =
        |back: &str| back.split("code=").nth(1).unwrap().split('&').next().unwrap().to_owned();
    let own = attacker.start("").await.unwrap_or_default();
    let back = net.consent(&own).await.unwrap();
    let injected = back.replace(&code(&back), &code(&stolen));
    let page = attacker.get(injected.strip_prefix(&host.origin()).unwrap()).await;
    nobody_got_in(&host, &attacker, &page).await;
    assert!(page.text().contains("invalid_grant"), "{}", page.text());
}

#[tokio::test]
async fn a_way_back_leads_nowhere_else() {
    let (net, host) = stage().await;
    for next in [
        "//evil.example",
        "/%5Cevil.example",
        "%2F%2Fevil.example",
        "https://evil.example",
        "/a%0d%0aset-cookie:x",
        "/login",
        "/auth/callback",
        "%00",
        "javascript:alert(1)",
    ] {
        let landed = Browser::new(&host).sign_in(&net, &format!("next={next}")).await;
        assert_eq!(sent(landed).unwrap_or_default(), "/", "{next}");
    }
}

// The token

async fn check_token(edit: impl Fn(&mut Value) + Send + 'static, why: &str) {
    let edit = move |reply: &mut Reply, _: &Asked| {
        if reply.status == 200 {
            reply.edit(&edit);
        }
    };
    check(TOKEN, edit, why).await;
}

#[tokio::test]
async fn a_bearer_token_is_refused() {
    check_token(|answer| answer["token_type"] = json!("Bearer"), "not bound to our key").await;
}

#[tokio::test]
async fn a_token_without_the_scope_is_refused() {
    check_token(|answer| drop(answer.as_object_mut().unwrap().remove("scope")), "malformed").await;
    for scope in [
        json!(""),
        json!("transition:generic"),
        json!("atprotox"),
        json!("ATPROTO"),
        json!("\u{0}\u{fffd} ((( %%% "),
    ] {
        check_token(move |answer| answer["scope"] = scope.clone(), "was not granted").await;
    }
    check_token(|answer| answer["scope"] = json!(["atproto"]), "malformed").await;
}

#[tokio::test]
async fn a_subject_that_is_nobody_is_refused() {
    check_token(|answer| drop(answer.as_object_mut().unwrap().remove("sub")), "malformed").await;
    for sub in ["", "alice.test", "did:plc:short", "did:key:z6Mk"] {
        check_token(move |answer| answer["sub"] = json!(sub), "not a DID").await;
    }
    let unknown = "did:plc:zzzzzzzzzzzzzzzzzzzzzzzz";
    check_token(move |answer| answer["sub"] = json!(unknown), "it answers 404").await;
}

#[tokio::test]
async fn a_token_answer_that_is_not_json_is_refused() {
    let tweak = |reply: &mut Reply, _: &Asked| {
        if reply.status == 200 {
            reply.set_header("content-type", "text/html");
        }
    };
    check(TOKEN, tweak, "is not JSON").await;
}

#[tokio::test]
async fn tokens_of_a_refused_answer_are_given_back_too() {
    let (net, host) = stage().await;
    net.tweak(TOKEN, |reply, _| {
        reply.edit(|answer| {
            if answer.get("scope").is_some() {
                answer["scope"] = json!("other");
            }
        })
    });
    Browser::new(&host).sign_in(&net, "").await;
    assert_eq!(net.seen_at(REVOKE).len(), 2);
}

#[tokio::test]
async fn an_owner_who_moved_during_the_sign_in_is_refused() {
    let (net, host) = stage().await;
    let elsewhere = Net::start().await.unwrap();
    let mut browser = Browser::new(&host);
    let address = browser.start("").await.unwrap_or_default();
    net.moves(ALICE, &elsewhere.origin());
    let page = browser.come_back(&net, &address).await;
    nobody_got_in(&host, &browser, &page).await;
    assert!(page.text().contains("does not speak for"), "{}", page.text());
}

/// Mallory runs a server of her own, signs in there, and it says that she is Alice.
#[tokio::test]
async fn a_hostile_server_cannot_speak_for_the_owner() {
    let net = Net::start().await.unwrap();
    let evil = Net::start().await.unwrap();
    net.moves(MALLORY, &evil.origin());
    let raw = RawGatewayConfig { plc_url: Some(net.origin()), ..Default::default() };
    let host = Host::start_as(raw, |_| ()).await;
    let path = "/admin/sandboxes/gateway/setup-code";
    let setup: SetupCode = host.admin().post_json(path, &()).await.unwrap();
    let mut mallory = Browser::new(&host);
    let form = format!("code={}&account={MALLORY}", setup.code);
    let address = sent(mallory.post("/register", &form).await).unwrap_or_default();
    assert!(address.starts_with(&evil.origin()));
    evil.signs_in(ALICE);
    let page = mallory.come_back(&evil, &address).await;
    nobody_got_in(&host, &mallory, &page).await;
    assert!(page.text().contains(&format!("does not speak for {ALICE}")), "{}", page.text());
}

#[tokio::test]
async fn a_handle_that_names_somebody_else_is_not_repeated() {
    let (net, host) = stage().await;
    net.signs_in(MALLORY);
    net.tweak(HANDLE, |reply, _| reply.body = ALICE.as_bytes().to_vec());
    let page = Browser::new(&host).sign_in(&net, "").await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    assert!(page.text().contains(MALLORY) && !page.text().contains("mallory.test"));
}

#[tokio::test]
async fn what_a_server_says_is_shown_as_text() {
    let (net, host) = stage().await;
    net.tweak(PUSH, |reply, _| *reply = Reply::error(400, "<script>alert(1)</script>"));
    let page = Browser::new(&host).sign_in(&net, "").await;
    assert!(!page.text().contains("<script>"), "{}", page.text());
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("script-src"), "{policy}");
}
