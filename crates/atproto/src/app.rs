//! What kind of client we are: one on this machine, for development, or one that has an address.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::keys::{KeyError, SigningKey};
use crate::place::{Origin, encode_form};

pub(crate) const SCOPE: &str = "atproto";
const CALLBACK: &str = "/auth/callback";

/// The client as authorization servers know it.
#[derive(Debug, Clone)]
pub struct App {
    client_id: String,
    redirect_uri: String,
    /// Signs for a client that has an address. One on this machine has no secret to show.
    key: Option<Arc<SigningKey>>,
    origin: Origin,
}

impl App {
    /// `None` when this origin can be no client: servers want a loopback address over http, or https
    /// with a name and the usual port.
    pub fn at(
        origin: &Origin,
        key: impl FnOnce() -> Result<Arc<SigningKey>, KeyError>,
    ) -> Result<Option<Self>, KeyError> {
        let redirect_uri = format!("{origin}{CALLBACK}");
        if !origin.is_secure() {
            // By address: servers take a redirect to `localhost` for a name like any other.
            let here = origin.is_loopback() && origin.address().is_some();
            let query = [("redirect_uri", redirect_uri.as_str()), ("scope", SCOPE)];
            let client_id = format!("http://localhost?{}", encode_form(&query));
            let app = Self { client_id, redirect_uri, key: None, origin: origin.clone() };
            return Ok(here.then_some(app));
        }
        if !origin.bare_name().is_some_and(|name| name.contains('.')) {
            return Ok(None);
        }
        let client_id = format!("{origin}/auth/client-metadata.json");
        let key = Some(key()?);
        Ok(Some(Self { client_id, redirect_uri, key, origin: origin.clone() }))
    }

    pub fn client_id(&self) -> &str {
        &self.client_id
    }

    pub(crate) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    pub(crate) fn key(&self) -> Option<&SigningKey> {
        self.key.as_deref()
    }

    /// The document at the client id; a client on this machine has none.
    pub fn metadata(&self) -> Option<Value> {
        self.key.as_ref()?;
        Some(json!({
            "client_id": self.client_id,
            "client_name": "Nacre",
            "client_uri": self.origin.to_string(),
            "application_type": "web",
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "redirect_uris": [self.redirect_uri],
            "scope": SCOPE,
            "dpop_bound_access_tokens": true,
            "token_endpoint_auth_method": "private_key_jwt",
            "token_endpoint_auth_signing_alg": "ES256",
            "jwks_uri": format!("{}/auth/jwks.json", self.origin),
        }))
    }

    /// The public half of the key that the document refers to.
    pub fn jwks(&self) -> Option<Value> {
        let key = self.key.as_ref()?;
        let mut jwk = key.jwk();
        jwk["kid"] = json!(key.thumbprint());
        jwk["use"] = json!("sig");
        jwk["alg"] = json!("ES256");
        Some(json!({ "keys": [jwk] }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(origin: &str) -> Option<App> {
        App::at(&origin.parse().unwrap(), || SigningKey::generate().map(Arc::new)).unwrap()
    }

    #[test]
    fn a_client_on_this_machine_is_named_by_its_way_back() {
        let here = app("http://127.0.0.1:8080").unwrap();
        assert_eq!(
            here.client_id(),
            "http://localhost?redirect_uri=http%3A%2F%2F127.0.0.1%3A8080%2Fauth%2Fcallback&scope=atproto"
        );
        assert_eq!((here.metadata(), here.jwks()), (None, None));
        assert!(app("http://[::1]:8080").is_some());
        for bad in [
            "http://localhost:8080",
            "http://10.0.0.1",
            "http://pc.lan",
            "https://127.0.0.1",
            "https://pc.net:8443",
            "https://pc",
        ] {
            assert!(app(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_client_with_an_address_describes_itself() {
        let app = app("https://pc.net").unwrap();
        let document = app.metadata().unwrap();
        assert_eq!(document["client_id"], "https://pc.net/auth/client-metadata.json");
        assert_eq!(document["redirect_uris"], json!(["https://pc.net/auth/callback"]));
        assert_eq!(document["jwks_uri"], "https://pc.net/auth/jwks.json");
        assert!(document.get("jwks").is_none());
        let jwks = app.jwks().unwrap();
        assert!(jwks["keys"][0].get("d").is_none());
        assert_eq!(jwks["keys"][0]["kid"], app.key().unwrap().thumbprint());
    }
}
