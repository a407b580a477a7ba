//! Passkeys: what an authenticator says, verified. Pure.
//!
//! Only what we need of WebAuthn, and strictly: no attestation (it would say who made the authenticator,
//! which is the owner's business), the signature algorithms that authenticators have, keys in the
//! one encoding that CTAP2 allows, and a person who was verified. See decision 14.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::Deserialize;

const PRESENT: u8 = 0x01;
const VERIFIED: u8 = 0x04;
const MAY_BE_COPIED: u8 = 0x08;
const IS_COPIED: u8 = 0x10;
const HAS_KEY: u8 = 0x40;
const HAS_MORE: u8 = 0x80;
/// Hash of the host, flags, counter.
const HEAD: usize = 37;
const LONGEST_ID: usize = 1023;

/// COSE_Key in canonical CBOR: kty EC2, alg ES256, crv P-256, then x, and y after three more bytes.
const ES256: &[u8] = &[0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 0x20];
const ES256_Y: &[u8] = &[0x22, 0x58, 0x20];
/// kty OKP, alg EdDSA, crv Ed25519, then x.
const EDDSA: &[u8] = &[0xa4, 1, 1, 3, 0x27, 0x20, 6, 0x21, 0x58, 0x20];

/// kty RSA, alg RS256, then n of 2048 bits; e is 65537. Authenticators of Windows have no other.
const RS256: &[u8] = &[0xa4, 1, 3, 3, 0x39, 1, 0, 0x20, 0x59, 1, 0];
const RS256_E: &[u8] = &[0x21, 0x43, 1, 0, 1];

/// What the answer must be about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected<'a> {
    /// As it was given to the browser.
    pub(crate) challenge: &'a str,
    pub(crate) origin: &'a str,
    pub(crate) host: &'a str,
}

/// A new passkey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Enrolled {
    pub(crate) id: Vec<u8>,
    pub(crate) key: Key,
    pub(crate) counter: u32,
}

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    /// The point, uncompressed.
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
    /// The modulus.
    Rsa(Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the answer is malformed")]
    Malformed,
    #[error("the answer is to something else")]
    OtherQuestion,
    #[error("the answer is for another address")]
    OtherPlace,
    #[error("nobody was verified")]
    Unverified,
    #[error("the key is of a kind that is not supported")]
    OtherKey,
    #[error("the signature does not fit")]
    BadSignature,
    #[error("the passkey seems to be a copy: its counter went back")]
    Copied,
}

#[derive(Deserialize)]
struct ClientData {
    #[serde(rename = "type")]
    kind: String,
    challenge: String,
    origin: String,
    #[serde(default, rename = "crossOrigin")]
    cross_origin: bool,
}

impl Key {
    /// As the database keeps it: a letter for the kind, then the bytes.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let (kind, bytes) = match self {
            Self::P256(point) => (b'p', point),
            Self::Ed25519(bytes) => (b'e', bytes),
            Self::Rsa(modulus) => (b'r', modulus),
        };
        [&[kind], &bytes[..]].concat()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first()? {
            (b'p', point) => Some(Self::P256(point.to_vec())),
            (b'e', bytes) => Some(Self::Ed25519(bytes.to_vec())),
            (b'r', modulus) => Some(Self::Rsa(modulus.to_vec())),
            _ => None,
        }
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::P256(point) => {
                let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point);
                key.verify(message, signature).is_ok()
            }
            Self::Ed25519(bytes) => {
                UnparsedPublicKey::new(&ED25519, bytes).verify(message, signature).is_ok()
            }
            Self::Rsa(n) => {
                let key = RsaPublicKeyComponents { n: &n[..], e: &[1, 0, 1][..] };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok()
            }
        }
    }
}

/// The answer to `navigator.credentials.create`.
pub(crate) fn enrol(
    expected: Expected<'_>,
    client_data: &[u8],
    authenticator_data: &[u8],
) -> Result<Enrolled, Refusal> {
    check_client(expected, client_data, "webauthn.create")?;
    let (flags, counter, rest) = read_head(expected, authenticator_data)?;
    if flags & HAS_KEY == 0 {
        return Err(Refusal::Malformed);
    }
    // The model of the authenticator, then the length of its name for the key.
    let (length, rest) =
        rest.get(16..).and_then(|rest| rest.split_first_chunk::<2>()).ok_or(Refusal::Malformed)?;
    let length = usize::from(u16::from_be_bytes(*length));
    if length == 0 || length > LONGEST_ID || length > rest.len() {
        return Err(Refusal::Malformed);
    }
    let (id, key) = rest.split_at(length);
    let (key, more) = read_key(key).ok_or(Refusal::OtherKey)?;
    if !more.is_empty() && flags & HAS_MORE == 0 {
        return Err(Refusal::Malformed);
    }
    Ok(Enrolled { id: id.to_vec(), key, counter })
}

/// The answer to `navigator.credentials.get`; the new count when it is good.
pub(crate) fn verify(
    expected: Expected<'_>,
    key: &Key,
    counter_before: u32,
    client_data: &[u8],
    authenticator_data: &[u8],
    signature: &[u8],
) -> Result<u32, Refusal> {
    check_client(expected, client_data, "webauthn.get")?;
    let (_, counter, _) = read_head(expected, authenticator_data)?;
    let message = [authenticator_data, digest(&SHA256, client_data).as_ref()].concat();
    if !key.verify(&message, signature) {
        return Err(Refusal::BadSignature);
    }
    // Passkeys that are kept in several places do not count.
    let counts = counter > 0 || counter_before > 0;
    if counts && counter <= counter_before {
        return Err(Refusal::Copied);
    }
    Ok(counter)
}

fn check_client(expected: Expected<'_>, client_data: &[u8], kind: &str) -> Result<(), Refusal> {
    let data: ClientData = serde_json::from_slice(client_data).map_err(|_| Refusal::Malformed)?;
    if data.kind != kind || data.challenge != expected.challenge {
        return Err(Refusal::OtherQuestion);
    }
    if data.origin != expected.origin || data.cross_origin {
        return Err(Refusal::OtherPlace);
    }
    Ok(())
}

fn read_head<'d>(expected: Expected<'_>, data: &'d [u8]) -> Result<(u8, u32, &'d [u8]), Refusal> {
    let (head, rest) = data.split_first_chunk::<HEAD>().ok_or(Refusal::Malformed)?;
    if head[..32] != *digest(&SHA256, expected.host.as_bytes()).as_ref() {
        return Err(Refusal::OtherPlace);
    }
    let flags = head[32];
    if flags & PRESENT == 0 || flags & VERIFIED == 0 {
        return Err(Refusal::Unverified);
    }
    if flags & IS_COPIED != 0 && flags & MAY_BE_COPIED == 0 {
        return Err(Refusal::Malformed);
    }
    let counter = u32::from_be_bytes([head[33], head[34], head[35], head[36]]);
    Ok((flags, counter, rest))
}

fn read_key(bytes: &[u8]) -> Option<(Key, &[u8])> {
    if let Some(rest) = bytes.strip_prefix(ES256) {
        let (x, rest) = rest.split_first_chunk::<32>()?;
        let (y, rest) = rest.strip_prefix(ES256_Y)?.split_first_chunk::<32>()?;
        return Some((Key::P256([&[4], &x[..], &y[..]].concat()), rest));
    }
    if let Some(rest) = bytes.strip_prefix(RS256) {
        let (n, rest) = rest.split_first_chunk::<256>()?;
        return Some((Key::Rsa(n.to_vec()), rest.strip_prefix(RS256_E)?));
    }
    let (x, rest) = bytes.strip_prefix(EDDSA)?.split_first_chunk::<32>()?;
    Some((Key::Ed25519(x.to_vec()), rest))
}

pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ring::rand::SystemRandom;
    use ring::signature::{
        ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
        RsaKeyPair,
    };

    const GOOD: Expected<'static> =
        Expected { challenge: "abc", origin: "https://pc.example", host: "pc.example" };

    enum Maker {
        P256(EcdsaKeyPair),
        Ed25519(Ed25519KeyPair),
        Rsa(RsaKeyPair),
    }

    impl Maker {
        /// Made for this test: ring makes no such keys.
        fn rsa() -> Self {
            Self::Rsa(RsaKeyPair::from_pkcs8(include_bytes!("testdata/rs256.pk8")).unwrap())
        }

        fn p256() -> Self {
            let random = SystemRandom::new();
            let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
            let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            Self::P256(EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap())
        }

        fn ed25519() -> Self {
            let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
            Self::Ed25519(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap())
        }

        fn cose(&self) -> Vec<u8> {
            match self {
                Self::P256(pair) => {
                    let point = pair.public_key().as_ref();
                    [ES256, &point[1..33], ES256_Y, &point[33..]].concat()
                }
                Self::Ed25519(pair) => [EDDSA, pair.public_key().as_ref()].concat(),
                Self::Rsa(pair) => {
                    let parts = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
                    [RS256, &parts.n, RS256_E].concat()
                }
            }
        }

        fn sign(&self, message: &[u8]) -> Vec<u8> {
            match self {
                Self::P256(pair) => {
                    pair.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec()
                }
                Self::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
                Self::Rsa(pair) => {
                    let mut signature = vec![0; pair.public().modulus_len()];
                    let random = SystemRandom::new();
                    pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                    signature
                }
            }
        }
    }

    fn client(kind: &str, challenge: &str, origin: &str) -> Vec<u8> {
        serde_json::json!({ "type": kind, "challenge": challenge, "origin": origin, "crossOrigin": false })
            .to_string()
            .into_bytes()
    }

    fn head(host: &str, flags: u8, counter: u32) -> Vec<u8> {
        [digest(&SHA256, host.as_bytes()).as_ref(), &[flags], &counter.to_be_bytes()].concat()
    }

    fn made(maker: &Maker, flags: u8) -> Vec<u8> {
        [&head("pc.example", flags, 0)[..], &[7; 16], &[0, 2], b"id", &maker.cose()].concat()
    }

    fn enrolled(maker: &Maker) -> Enrolled {
        let data = made(maker, PRESENT | VERIFIED | HAS_KEY);
        enrol(GOOD, &client("webauthn.create", "abc", "https://pc.example"), &data).unwrap()
    }

    #[test]
    fn a_passkey_is_enrolled_and_then_opens() {
        for maker in [Maker::p256(), Maker::ed25519(), Maker::rsa()] {
            let passkey = enrolled(&maker);
            assert_eq!((passkey.id.as_slice(), passkey.counter), (&b"id"[..], 0));
            let key = Key::from_bytes(&passkey.key.to_bytes()).unwrap();
            assert_eq!(key, passkey.key);
            let client = client("webauthn.get", "abc", "https://pc.example");
            let data = head("pc.example", PRESENT | VERIFIED, 5);
            let message = [&data[..], digest(&SHA256, &client).as_ref()].concat();
            let signature = maker.sign(&message);
            assert_eq!(verify(GOOD, &key, 0, &client, &data, &signature), Ok(5));
            assert_eq!(verify(GOOD, &key, 5, &client, &data, &signature), Err(Refusal::Copied));
            let other = enrolled(&Maker::p256()).key;
            assert_eq!(
                verify(GOOD, &other, 0, &client, &data, &signature),
                Err(Refusal::BadSignature)
            );
            let mut forged = data.clone();
            forged[36] ^= 1;
            assert_eq!(
                verify(GOOD, &key, 0, &client, &forged, &signature),
                Err(Refusal::BadSignature)
            );
        }
    }

    #[test]
    fn an_answer_is_to_this_question_at_this_place() {
        let maker = Maker::p256();
        let data = made(&maker, PRESENT | VERIFIED | HAS_KEY);
        let check = |client: &[u8], data: &[u8], expected: Refusal| {
            assert_eq!(enrol(GOOD, client, data), Err(expected));
        };
        let good = client("webauthn.create", "abc", "https://pc.example");
        check(&client("webauthn.get", "abc", "https://pc.example"), &data, Refusal::OtherQuestion);
        check(
            &client("webauthn.create", "abd", "https://pc.example"),
            &data,
            Refusal::OtherQuestion,
        );
        check(
            &client("webauthn.create", "abc", "https://evil.example"),
            &data,
            Refusal::OtherPlace,
        );
        check(&client("webauthn.create", "abc", "http://pc.example"), &data, Refusal::OtherPlace);
        let framed = String::from_utf8(good.clone()).unwrap().replace("false", "true");
        check(framed.as_bytes(), &data, Refusal::OtherPlace);
        check(b"{}", &data, Refusal::Malformed);
        check(&good, &made(&maker, PRESENT | HAS_KEY), Refusal::Unverified);
        check(&good, &made(&maker, VERIFIED | HAS_KEY), Refusal::Unverified);
        check(&good, &made(&maker, PRESENT | VERIFIED), Refusal::Malformed);
        check(&good, &made(&maker, PRESENT | VERIFIED | HAS_KEY | IS_COPIED), Refusal::Malformed);
        let elsewhere = [&head("evil.example", 0x45, 0)[..], &data[HEAD..]].concat();
        check(&good, &elsewhere, Refusal::OtherPlace);
        check(&good, &[&data[..], &[0]].concat(), Refusal::Malformed);
        check(&good, &data[..data.len() - 1], Refusal::OtherKey);
        let mut rsa = data.clone();
        rsa[HEAD + 20 + 2] = 3;
        check(&good, &rsa, Refusal::OtherKey);
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(
            client in prop::collection::vec(any::<u8>(), 0..100),
            data in prop::collection::vec(any::<u8>(), 0..200),
            signature in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let good = super::tests::client("webauthn.create", "abc", "https://pc.example");
            let headed = [&head("pc.example", 0x45, 0)[..], &data].concat();
            let key = Key::P256(data.clone());
            prop_assert!(enrol(GOOD, &client, &data).is_err());
            let _ = enrol(GOOD, &good, &headed);
            prop_assert!(verify(GOOD, &key, 0, &client, &headed, &signature).is_err());
        }
    }
}
