//! The two kinds of signed statements we make: proofs of possession and who we are as a client.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::error::Error;
use crate::keys::SigningKey;
use crate::place::Place;
use crate::random;

const ASSERTION_SECONDS: u64 = 60;

/// A DPoP proof (RFC 9449) for one request.
pub(crate) fn proof(
    key: &SigningKey,
    method: &str,
    place: &Place,
    nonce: Option<&str>,
) -> Result<String, Error> {
    let header = json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": key.jwk() });
    let mut claims = json!({
        "jti": random::word()?,
        "htm": method,
        "htu": place.without_query(),
        "iat": now(),
    });
    if let Some(nonce) = nonce {
        claims["nonce"] = json!(nonce);
    }
    sign(key, &header, &claims)
}

/// Says which client asks (RFC 7523), for one server.
pub(crate) fn assertion(key: &SigningKey, client_id: &str, issuer: &str) -> Result<String, Error> {
    let header = json!({ "typ": "JWT", "alg": "ES256", "kid": key.thumbprint() });
    let claims = json!({
        "iss": client_id,
        "sub": client_id,
        "aud": issuer,
        "jti": random::word()?,
        "iat": now(),
        "exp": now() + ASSERTION_SECONDS,
    });
    sign(key, &header, &claims)
}

fn sign(key: &SigningKey, header: &Value, claims: &Value) -> Result<String, Error> {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(header), part(claims));
    let signature = key.sign(message.as_bytes());
    let signature = signature.ok_or_else(|| Error::Local("nothing can be signed".to_owned()))?;
    Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
