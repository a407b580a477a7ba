//! Everything that lets somebody in, made for real by one computer, and remembered to be looked for.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use nacre_atproto::testing::{Net, PUSH, TOKEN};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::json;

use crate::browser::{Answer, Browser};
use crate::computer::TestComputer;

/// By name, in every form that somebody might write them down in.
pub(crate) struct Secrets(BTreeMap<String, Vec<u8>>);

impl Secrets {
    pub(crate) fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(crate) fn add(&mut self, name: &str, secret: &str) {
        assert!(secret.len() >= 12, "{name} is too short to be found by accident");
        self.0.insert(name.to_owned(), secret.as_bytes().to_vec());
        // What the database keeps of it.
        let hash = digest(&SHA256, secret.as_bytes());
        self.add_bytes(&format!("{name}:hash"), hash.as_ref());
    }

    pub(crate) fn add_bytes(&mut self, name: &str, secret: &[u8]) {
        let forms = [
            ("", secret.to_vec()),
            (":hex", hex(secret).into_bytes()),
            (":base64", URL_SAFE_NO_PAD.encode(secret).into_bytes()),
        ];
        for (form, bytes) in forms {
            self.0.insert(format!("{name}{form}"), bytes);
        }
    }

    /// A fresh one, which nobody made but this test.
    pub(crate) fn random(&mut self, name: &str) -> String {
        let secret = format!("canary-{}", hex(&random()));
        self.add(name, &secret);
        secret
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// One a line, in hex.
    pub(crate) fn lines(&self) -> String {
        self.0.iter().map(|(name, secret)| format!("{name} {}\n", hex(secret))).collect()
    }

    pub(crate) fn found_in(&self, text: &[u8]) -> Vec<&str> {
        let holds = |secret: &[u8]| text.windows(secret.len()).any(|window| window == secret);
        self.0.iter().filter(|(_, secret)| holds(secret)).map(|(name, _)| name.as_str()).collect()
    }
}

/// Signs in with the account, and notes what travels on the way.
pub(crate) async fn sign_in(browser: &mut Browser, net: &Net, secrets: &mut Secrets) {
    let started = browser.post("/auth/start", "next=/").await;
    assert_eq!(started.status, StatusCode::SEE_OTHER);
    secrets.add("browser", browser.take_cookie(&started, "nacre_browser"));
    let address = started.headers["location"].to_str().unwrap();
    let back = net.consent(address).await.unwrap();
    let callback = back.strip_prefix(&browser.origin()).unwrap();
    let landed = browser.get(callback, &[]).await;
    assert_eq!(landed.headers["location"], "/", "{:?}", landed.body);
    secrets.add("session", browser.take_cookie(&landed, "nacre_session"));
    let pushed = net.seen_at(PUSH).pop().unwrap();
    let asked = net.seen_at(TOKEN).pop().unwrap();
    secrets.add("state", &pushed.form["state"]);
    secrets.add("verifier", &asked.form["code_verifier"]);
    secrets.add("access-token", "access-canary");
    secrets.add("refresh-token", "refresh-canary");
}

/// Ten codes, one of which is used.
pub(crate) async fn recover(computer: &TestComputer, owner: &Browser, secrets: &mut Secrets) {
    let token = field(&owner.get("/auth/me", &[]).await, "token");
    let page = owner.post("/auth/me", &format!("token={token}&action=new-codes")).await;
    let page = String::from_utf8(page.body.to_vec()).unwrap();
    let codes = page.split("<li>").skip(1).map(|line| line.split('<').next().unwrap());
    let codes: Vec<_> = codes.collect();
    assert_eq!(codes.len(), 10, "{page}");
    for (index, code) in codes.iter().enumerate() {
        secrets.add(&format!("recovery-{index}"), code);
        secrets.add(&format!("recovery-{index}:bare"), &code.replace('-', ""));
    }
    let mut lost = Browser::stranger(computer);
    let landed = lost.post("/recovery", &format!("code={}", codes[0])).await;
    assert_eq!(landed.headers["location"], "/auth/me");
    secrets.add("recovered-session", lost.take_cookie(&landed, "nacre_session"));
}

/// A passkey, added and then used to sign in.
pub(crate) async fn add_passkey(computer: &TestComputer, owner: &Browser, secrets: &mut Secrets) {
    let (algorithm, source) = (&ECDSA_P256_SHA256_ASN1_SIGNING, SystemRandom::new());
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &source).unwrap();
    let key = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &source).unwrap();
    let (id, point) = (random(), key.public_key().as_ref());
    secrets.add_bytes("passkey-id", &id);
    secrets.add_bytes("passkey-key", point);
    secrets.add_bytes("passkey-x", &point[1..33]);

    // Browsers have passkeys for names, and this one is the same computer.
    let owner = owner.as_localhost();
    let page = owner.get("/auth/me", &[]).await;
    let (token, challenge) = (field(&page, "token"), field(&page, "challenge"));
    secrets.add("passkey-challenge", &challenge);
    let cose = [
        &[0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 0x20][..],
        &point[1..33],
        &[0x22, 0x58, 0x20],
        &point[33..],
    ]
    .concat();
    let data = [&head(0x45, 0)[..], &[0; 16], &[0, 32], &id, &cose].concat();
    let client = client_data("webauthn.create", &challenge, &owner.origin());
    let form = format!(
        "token={token}&action=add-passkey&name=Phone&{}",
        answer(&challenge, &id, &client, &data)
    );
    let page = owner.post("/auth/me", &form).await;
    let page = String::from_utf8_lossy(&page.body).into_owned();
    assert!(page.contains("The passkey is added"), "{page}");

    let mut lost = Browser::stranger(computer).as_localhost();
    let page = lost.get("/auth/passkey", &[]).await;
    let challenge = field(&page, "challenge");
    lost.take_cookie(&page, "nacre_browser");
    let (client, data) = (client_data("webauthn.get", &challenge, &lost.origin()), head(0x05, 1));
    let message = [&data[..], digest(&SHA256, client.as_bytes()).as_ref()].concat();
    let signature = key.sign(&source, &message).unwrap();
    let form = answer(&challenge, &id, &client, &data);
    let form = format!("{form}&signature={}", URL_SAFE_NO_PAD.encode(signature));
    let landed = lost.post("/auth/passkey", &form).await;
    assert_eq!(landed.status, StatusCode::SEE_OTHER, "{:?}", landed.body);
    secrets.add("passkey-session", lost.take_cookie(&landed, "nacre_session"));
}

fn answer(challenge: &str, id: &[u8], client: &str, data: &[u8]) -> String {
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let (id, client, data) = (encode(id), encode(client.as_bytes()), encode(data));
    format!("challenge={challenge}&id={id}&client_data={client}&authenticator_data={data}")
}

fn client_data(kind: &str, challenge: &str, origin: &str) -> String {
    json!({ "type": kind, "challenge": challenge, "origin": origin, "crossOrigin": false })
        .to_string()
}

fn head(flags: u8, counter: u32) -> Vec<u8> {
    [digest(&SHA256, b"localhost").as_ref(), &[flags], &counter.to_be_bytes()].concat()
}

/// The value of a hidden field.
fn field(page: &Answer, name: &str) -> String {
    let text = String::from_utf8_lossy(&page.body).into_owned();
    let after = text.split(&format!("name=\"{name}\" value=\"")).nth(1);
    after.unwrap_or_else(|| panic!("no {name}: {text}")).split('"').next().unwrap().to_owned()
}

fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).unwrap();
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
