//! The honest answers.

use std::collections::HashMap;
use std::convert::Infallible;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use ring::digest::{SHA256, digest};
use serde_json::json;
use tokio::net::TcpListener;

use super::{
    AUTHORIZE, Asked, DOCUMENT, HANDLE, Jwt, Net, PUSH, RESOURCE, REVOKE, Reply, TOKEN, verify,
};

pub(super) async fn serve(net: Net, listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let net = net.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let net = net.clone();
                async move { Ok::<_, Infallible>(net.answer(request).await) }
            });
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

pub(super) fn parse_form(text: &str) -> HashMap<String, String> {
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decode(name), decode(value))).collect()
}

impl Net {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let text = |name: &str| {
            parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("").to_owned()
        };
        let form = match parts.uri.query() {
            Some(query) => parse_form(query),
            None => parse_form(&String::from_utf8_lossy(&body)),
        };
        let asked = Asked {
            path: parts.uri.path().to_owned(),
            host: text("host"),
            proof: Jwt::parse(&text("dpop")),
            assertion: form.get("client_assertion").and_then(|text| Jwt::parse(text)),
            form,
        };
        let mut reply = self.honest(&asked);
        {
            let mut state = self.lock();
            state.seen.push(asked.clone());
            if let Some(tweak) = state.tweaks.get_mut(&asked.path) {
                tweak(&mut reply, &asked);
            }
        }
        tokio::time::sleep(reply.delay).await;
        let mut response = Response::builder().status(reply.status);
        for (name, value) in reply.headers {
            response = response.header(name, value);
        }
        response.body(Full::new(Bytes::from(reply.body))).unwrap_or_default()
    }

    fn honest(&self, asked: &Asked) -> Reply {
        match asked.path.as_str() {
            DOCUMENT => self.document(),
            RESOURCE => {
                let origin = self.origin();
                Reply::json(&json!({ "resource": origin, "authorization_servers": [origin] }))
            }
            HANDLE => self.handle(&asked.host),
            PUSH => self.with_proof(asked, PUSH, |net| net.push(asked)),
            AUTHORIZE => self.authorize(&asked.form),
            TOKEN => self.with_proof(asked, TOKEN, |net| net.token(asked)),
            REVOKE => self.with_proof(asked, REVOKE, |_| Reply::json(&json!({}))),
            path => self.did_document(path),
        }
    }

    fn did_document(&self, path: &str) -> Reply {
        let did = path.trim_start_matches('/').to_owned();
        let Some((pds, handle)) = self.lock().accounts.get(&did).cloned() else {
            return Reply::error(404, "not_found");
        };
        let mut reply = Reply::json(&json!({
            "id": did,
            "alsoKnownAs": [format!("at://{handle}")],
            "verificationMethod": [{ "id": "#atproto", "type": "Multikey", "controller": did }],
            "service": [{ "id": "#atproto_pds", "type": "AtprotoPersonalDataServer", "serviceEndpoint": pds }],
        }));
        reply.set_header("content-type", "application/did+ld+json; charset=utf-8");
        reply
    }

    fn handle(&self, host: &str) -> Reply {
        let state = self.lock();
        let found = state.accounts.iter().find(|(_, (_, handle))| handle == host);
        let mut reply = match found {
            Some((did, _)) => Reply { body: did.clone().into_bytes(), ..Reply::json(&json!(null)) },
            None => Reply::error(404, "not_found"),
        };
        reply.set_header("content-type", "text/plain");
        reply
    }

    fn document(&self) -> Reply {
        let origin = self.origin();
        Reply::json(&json!({
            "issuer": origin,
            "authorization_endpoint": format!("{origin}{AUTHORIZE}"),
            "token_endpoint": format!("{origin}{TOKEN}"),
            "pushed_authorization_request_endpoint": format!("{origin}{PUSH}"),
            "revocation_endpoint": format!("{origin}{REVOKE}"),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
            "token_endpoint_auth_signing_alg_values_supported": ["ES256", "ES256K"],
            "dpop_signing_alg_values_supported": ["ES256"],
            "scopes_supported": ["atproto", "transition:generic"],
            "authorization_response_iss_parameter_supported": true,
            "require_pushed_authorization_requests": true,
            "client_id_metadata_document_supported": true,
        }))
    }

    /// Refuses what has no proof with the nonce of today, and what a client with a key did not sign.
    fn with_proof(&self, asked: &Asked, path: &str, go_on: impl FnOnce(&Self) -> Reply) -> Reply {
        let nonce = format!("nonce-{}", self.lock().nonce);
        let mut reply = match &asked.proof {
            None => Reply::error(400, "invalid_dpop_proof"),
            Some(proof) => {
                let good = verify(proof, &proof.header["jwk"])
                    && proof.header["typ"] == "dpop+jwt"
                    && proof.header["alg"] == "ES256"
                    && proof.claims["htm"] == "POST"
                    && proof.claims["htu"] == format!("{}{path}", self.origin())
                    && proof.claims["jti"].is_string();
                match (good, proof.claims["nonce"] == nonce) {
                    (false, _) => Reply::error(400, "invalid_dpop_proof"),
                    (true, false) => Reply::error(400, "use_dpop_nonce"),
                    (true, true) if !self.is_signed(asked) => Reply::error(401, "invalid_client"),
                    (true, true) => go_on(self),
                }
            }
        };
        reply.set_header("dpop-nonce", &nonce);
        reply
    }

    fn is_signed(&self, asked: &Asked) -> bool {
        let Some(jwks) = self.lock().jwks.clone() else { return asked.assertion.is_none() };
        let Some(assertion) = &asked.assertion else { return false };
        let client = asked.form.get("client_id").cloned().unwrap_or_default();
        let jwk = &jwks["keys"][0];
        verify(assertion, jwk)
            && assertion.header["kid"] == jwk["kid"]
            && assertion.claims["iss"] == client
            && assertion.claims["sub"] == client
            && assertion.claims["aud"] == self.origin()
            && assertion.claims["iat"].is_u64()
            && assertion.claims["jti"].is_string()
    }

    fn push(&self, asked: &Asked) -> Reply {
        let mut state = self.lock();
        state.counter += 1;
        let uri = format!("urn:ietf:params:oauth:request_uri:{}", state.counter);
        state.requests.insert(uri.clone(), asked.form.clone());
        let answer = json!({ "request_uri": uri, "expires_in": 300 });
        Reply { status: 201, ..Reply::json(&answer) }
    }

    /// Whoever is to sign in says yes, or not. As the reference does, it does not mind whom the client
    /// asked for.
    pub(super) fn authorize(&self, form: &HashMap<String, String>) -> Reply {
        let mut state = self.lock();
        let uri = form.get("request_uri").cloned().unwrap_or_default();
        let Some(request) = state.requests.remove(&uri) else {
            return Reply::error(400, "invalid_request");
        };
        let field = |name: &str| request.get(name).cloned().unwrap_or_default();
        let (back, sent) = (field("redirect_uri"), field("state"));
        let outcome = match state.denies.clone() {
            Some(error) => format!("error={error}"),
            None => {
                state.counter += 1;
                let code = format!("code-{}", state.counter);
                let subject = state.signs_in.clone();
                state.codes.insert(code.clone(), (request, subject));
                format!("code={code}")
            }
        };
        let iss = self.origin();
        let location = format!("{back}?{outcome}&state={sent}&iss={iss}");
        Reply {
            status: 303,
            headers: vec![("location".to_owned(), location)],
            ..Reply::json(&json!({}))
        }
    }

    fn token(&self, asked: &Asked) -> Reply {
        let field = |name: &str| asked.form.get(name).cloned().unwrap_or_default();
        let Some((request, subject)) = self.lock().codes.remove(&field("code")) else {
            return Reply::error(400, "invalid_grant");
        };
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, field("code_verifier").as_bytes()));
        let same = |name: &str| request.get(name) == Some(&field(name));
        if request.get("code_challenge") != Some(&challenge)
            || !same("redirect_uri")
            || !same("client_id")
        {
            return Reply::error(400, "invalid_grant");
        }
        Reply::json(&json!({
            "access_token": "access-canary",
            "refresh_token": "refresh-canary",
            "token_type": "DPoP",
            "expires_in": 300,
            "scope": "atproto",
            "sub": subject,
        }))
    }
}
