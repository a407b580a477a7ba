//! Signed statements, verified as a server does it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub struct Jwt {
    pub header: Value,
    pub claims: Value,
    message: Vec<u8>,
    signature: Vec<u8>,
}

impl Jwt {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (message, signature) = text.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let part = |part: &str| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok();
        Some(Self {
            header: part(header)?,
            claims: part(claims)?,
            message: message.as_bytes().to_vec(),
            signature: URL_SAFE_NO_PAD.decode(signature).ok()?,
        })
    }
}

/// Whether this public key made the signature.
pub fn verify(jwt: &Jwt, jwk: &Value) -> bool {
    let coordinate = |name: &str| URL_SAFE_NO_PAD.decode(jwk.get(name)?.as_str()?).ok();
    let (Some(x), Some(y)) = (coordinate("x"), coordinate("y")) else { return false };
    let point = [&[4], &x[..], &y[..]].concat();
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
    key.verify(&jwt.message, &jwt.signature).is_ok()
}
