//! For the day the account's server is gone: recovery codes and passkeys, and what limits guessing.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use nacre_atproto::testing::Net;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::json;

use crate::browser::{Browser, sent};
use crate::host::{Answer, Host};

async fn signed_in<'h>(host: &'h Host, net: &Net) -> Browser<'h> {
    let mut owner = Browser::new(host);
    owner.sign_in(net, "").await;
    owner
}

async fn stage() -> (Net, Host) {
    let net = Net::start().await.unwrap();
    let host = Host::owned(&net).await;
    (net, host)
}

async fn codes(owner: &mut Browser<'_>) -> Vec<String> {
    let token = Browser::field(&owner.get("/auth/me").await, "token");
    let page = owner.post("/auth/me", &format!("token={token}&action=new-codes")).await;
    let lines = page.text().split("<li>").skip(1);
    lines.map(|line| line.split('<').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_recovery_code_lets_the_owner_in_once() {
    let (net, host) = stage().await;
    let codes = codes(&mut signed_in(&host, &net).await).await;
    assert_eq!(codes.len(), 10);
    let mut lost = Browser::new(&host);
    assert!(lost.get("/recovery").await.text().contains("One of the ten codes"));
    let landed = lost.post("/recovery", &format!("code={}", codes[3].to_lowercase())).await;
    assert_eq!(sent(landed).unwrap_or_default(), "/auth/me");
    assert!(lost.get("/auth/me").await.text().contains("9 of ten are left"));
    assert_eq!(host.audit().await[0], "sign_in recovery_code");

    let mut again = Browser::new(&host);
    let page = again.post("/recovery", &format!("code={}", codes[3])).await;
    assert_eq!((page.status, again.session()), (StatusCode::FORBIDDEN, None));
    assert_eq!(host.audit().await[0], "recovery_refused a wrong recovery code");

    for entry in std::fs::read_dir(host.data.path()).unwrap().flatten() {
        let content =
            String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap_or_default()).into_owned();
        for code in &codes {
            assert!(!content.contains(code.as_str()) && !content.contains(&code.replace('-', "")));
        }
    }
}

#[tokio::test]
async fn new_codes_end_the_old_ones() {
    let (net, host) = stage().await;
    let mut owner = signed_in(&host, &net).await;
    let old = codes(&mut owner).await;
    let new = codes(&mut owner).await;
    let mut lost = Browser::new(&host);
    assert_eq!(lost.post("/recovery", &format!("code={}", old[0])).await.status, 403);
    assert_eq!(lost.post("/recovery", &format!("code={}", new[0])).await.status, 303);
}

#[tokio::test]
async fn guessing_is_slowed_down_and_recorded() {
    let (net, host) = stage().await;
    let codes = codes(&mut signed_in(&host, &net).await).await;
    let mut stranger = Browser::new(&host);
    for _ in 0..5 {
        let page = stranger.post("/recovery", "code=00000-00000-00000-00000").await;
        assert_eq!(page.status, StatusCode::FORBIDDEN);
    }
    for (path, form) in [
        ("/recovery", format!("code={}", codes[0])),
        ("/auth/passkey", String::new()),
        ("/auth/start", String::new()),
    ] {
        let page = stranger.post(path, &form).await;
        assert_eq!(page.status, StatusCode::TOO_MANY_REQUESTS, "{path}");
        let wait: u64 = page.headers["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=3).contains(&wait) && page.text().contains("Not so fast"), "{path}: {wait}");
    }
    let refusals =
        host.audit().await.iter().filter(|line| line.starts_with("recovery_refused")).count();
    assert_eq!(refusals, 5);
}

/// An authenticator in software.
struct Authenticator(EcdsaKeyPair);

impl Authenticator {
    fn new() -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_ASN1_SIGNING, SystemRandom::new());
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self(EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap())
    }

    fn client_data(kind: &str, challenge: &str, origin: &str) -> String {
        json!({ "type": kind, "challenge": challenge, "origin": origin, "crossOrigin": false })
            .to_string()
    }

    fn head(flags: u8, counter: u32) -> Vec<u8> {
        [digest(&SHA256, b"localhost").as_ref(), &[flags], &counter.to_be_bytes()].concat()
    }

    fn enrols(&self, challenge: &str, origin: &str) -> String {
        let point = self.0.public_key().as_ref();
        let cose = [
            &[0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 0x20][..],
            &point[1..33],
            &[0x22, 0x58, 0x20],
            &point[33..],
        ]
        .concat();
        let data = [&Self::head(0x45, 0)[..], &[0; 16], &[0, 3], b"key", &cose].concat();
        let client = Self::client_data("webauthn.create", challenge, origin);
        format!(
            "id={}&client_data={}&authenticator_data={}",
            encode(b"key"),
            encode(client.as_bytes()),
            encode(&data)
        )
    }

    fn signs_in(&self, challenge: &str, origin: &str, counter: u32) -> String {
        let data = Self::head(0x05, counter);
        let client = Self::client_data("webauthn.get", challenge, origin);
        let message = [&data[..], digest(&SHA256, client.as_bytes()).as_ref()].concat();
        let signature = self.0.sign(&SystemRandom::new(), &message).unwrap();
        format!(
            "id={}&client_data={}&authenticator_data={}&signature={}",
            encode(b"key"),
            encode(client.as_bytes()),
            encode(&data),
            encode(signature.as_ref())
        )
    }
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Under the name that browsers have passkeys for.
async fn ask(
    browser: &mut Browser<'_>,
    host: &Host,
    method: &str,
    path: &str,
    form: &str,
) -> Answer {
    let (name, origin) = local(host);
    let headers = [("host", name.as_str()), ("origin", origin.as_str()), ("accept", "text/html")];
    browser.ask(method, path, &headers, form).await
}

fn local(host: &Host) -> (String, String) {
    let name = format!("localhost:{}", host.address.port());
    (name.clone(), format!("http://{name}"))
}

#[tokio::test]
async fn a_passkey_is_enrolled_and_then_lets_the_owner_in() {
    let (net, host) = stage().await;
    let mut owner = signed_in(&host, &net).await;
    let (_, origin) = local(&host);
    let key = Authenticator::new();
    let page = ask(&mut owner, &host, "GET", "/auth/me", "").await;
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(
        policy.contains("script-src 'sha256-") && !policy.contains("unsafe-inline' 's"),
        "{policy}"
    );
    let (token, challenge) = (Browser::field(&page, "token"), Browser::field(&page, "challenge"));
    let form = |answer: String| {
        format!("token={token}&action=add-passkey&challenge={challenge}&name=Phone&{answer}")
    };
    let elsewhere = form(key.enrols(&challenge, "http://evil.example"));
    let page = ask(&mut owner, &host, "POST", "/auth/me", &elsewhere).await;
    assert!(page.text().contains("was not added"), "{}", page.text());

    let challenge = Browser::field(&page, "challenge");
    let form = format!(
        "token={token}&action=add-passkey&challenge={challenge}&name=Phone&{}",
        key.enrols(&challenge, &origin)
    );
    let page = ask(&mut owner, &host, "POST", "/auth/me", &form).await;
    assert!(page.text().contains("The passkey is added"), "{}", page.text());
    let again = ask(&mut owner, &host, "POST", "/auth/me", &form).await;
    assert!(again.text().contains("took too long"), "a question is answered once");
    assert!(host.audit().await.contains(&"passkey_added Phone".to_owned()));

    let mut lost = Browser::new(&host);
    let page = ask(&mut lost, &host, "GET", "/login", "").await;
    assert!(page.text().contains("/auth/passkey"), "{}", page.text());
    let page = ask(&mut lost, &host, "GET", "/auth/passkey", "").await;
    let challenge = Browser::field(&page, "challenge");
    let answer = format!("challenge={challenge}&{}", key.signs_in(&challenge, &origin, 7));
    let landed = ask(&mut lost, &host, "POST", "/auth/passkey", &answer).await;
    assert_eq!(sent(landed).unwrap_or_default(), "/");
    assert_eq!(host.audit().await[0], "sign_in passkey");

    // The same answer again, a copy of the authenticator, and one that was never enrolled.
    let mut thief = Browser::new(&host);
    let refused = async |thief: &mut Browser<'_>, answer: String| {
        let page = ask(thief, &host, "POST", "/auth/passkey", &answer).await;
        assert_eq!((page.status, thief.session()), (StatusCode::FORBIDDEN, None), "{answer}");
    };
    refused(&mut thief, answer).await;
    for (key, counter) in [(&key, 7), (&Authenticator::new(), 9)] {
        let page = ask(&mut thief, &host, "GET", "/auth/passkey", "").await;
        let challenge = Browser::field(&page, "challenge");
        let answer =
            format!("challenge={challenge}&{}", key.signs_in(&challenge, &origin, counter));
        refused(&mut thief, answer).await;
    }
    let page = ask(&mut thief, &host, "GET", "/auth/passkey", "").await;
    let challenge = Browser::field(&page, "challenge");
    let answer = format!("challenge={challenge}&{}", key.signs_in(&challenge, &origin, 9));
    refused(&mut Browser::new(&host), answer).await;
}

#[tokio::test]
async fn a_passkey_works_where_it_was_made_and_is_removed() {
    let (net, host) = stage().await;
    let mut owner = signed_in(&host, &net).await;
    let page = owner.get("/auth/me").await;
    assert!(page.text().contains("not for addresses"), "{}", page.text());
    let (_, origin) = local(&host);
    let page = ask(&mut owner, &host, "GET", "/auth/me", "").await;
    let (token, challenge) = (Browser::field(&page, "token"), Browser::field(&page, "challenge"));
    let answer = Authenticator::new().enrols(&challenge, &origin);
    let form = format!("token={token}&action=add-passkey&challenge={challenge}&{answer}");
    ask(&mut owner, &host, "POST", "/auth/me", &form).await;
    assert!(!Browser::new(&host).get("/login").await.text().contains("/auth/passkey"));

    let form = format!("token={token}&action=remove-passkey&id={}", encode(b"key"));
    let page = ask(&mut owner, &host, "POST", "/auth/me", &form).await;
    assert!(page.text().contains("The passkey is removed"), "{}", page.text());
    let page = ask(&mut Browser::new(&host), &host, "GET", "/login", "").await;
    assert!(!page.text().contains("/auth/passkey"));
}

#[tokio::test]
async fn beginning_again_and_again_is_slowed_down() {
    let (net, host) = stage().await;
    let mut stranger = Browser::new(&host);
    for _ in 0..5 {
        stranger.start("").await.unwrap_or_default();
    }
    let asked = net.seen().len();
    let page = stranger.post("/auth/start", "").await;
    assert_eq!(page.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(net.seen().len(), asked, "nobody else is asked anything");
}
