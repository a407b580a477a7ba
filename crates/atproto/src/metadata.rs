//! The two documents between a PDS and its authorization server.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::app::SCOPE;
use crate::client::Client;
use crate::error::Error;
use crate::identity::expect_ok;
use crate::network::{Ask, Network};
use crate::place::{Origin, Place};

/// An authorization server that does what the profile wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) issuer: Origin,
    pub(crate) authorization: Place,
    pub(crate) token: Place,
    pub(crate) push: Place,
    pub(crate) revocation: Option<Place>,
}

#[derive(Deserialize)]
struct Resource {
    resource: String,
    authorization_servers: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    pushed_authorization_request_endpoint: String,
    revocation_endpoint: Option<String>,
    response_types_supported: Vec<String>,
    grant_types_supported: Vec<String>,
    code_challenge_methods_supported: Vec<String>,
    token_endpoint_auth_methods_supported: Vec<String>,
    token_endpoint_auth_signing_alg_values_supported: Vec<String>,
    dpop_signing_alg_values_supported: Vec<String>,
    scopes_supported: Vec<String>,
    authorization_response_iss_parameter_supported: bool,
    require_pushed_authorization_requests: bool,
    client_id_metadata_document_supported: bool,
}

impl Client {
    /// From a PDS to the one server that signs people in for it.
    pub(crate) async fn server_of(&self, pds: &Origin) -> Result<Server, Error> {
        let place = pds.at("/.well-known/oauth-protected-resource");
        let resource: Resource = self.json(&place).await?;
        if resource.resource != pds.to_string() {
            return Err(Error::untrusted(&place, "it describes another PDS"));
        }
        let [issuer] = &resource.authorization_servers[..] else {
            return Err(Error::untrusted(
                &place,
                "it does not name exactly one authorization server",
            ));
        };
        let issuer: Origin = issuer.parse().map_err(|()| {
            Error::untrusted(&place, "the authorization server is not at an origin")
        })?;
        self.network.allows(&issuer)?;
        let place = issuer.at("/.well-known/oauth-authorization-server");
        let metadata: Metadata = self.json(&place).await?;
        check(metadata, issuer, &self.network).map_err(|why| Error::untrusted(&place, why))
    }

    async fn json<T: DeserializeOwned>(&self, place: &Place) -> Result<T, Error> {
        let reply =
            expect_ok(place, self.network.send(place, Ask::get("application/json")).await?)?;
        if reply.media_type() != "application/json" {
            return Err(Error::untrusted(place, "the answer is not JSON"));
        }
        serde_json::from_slice(&reply.body)
            .map_err(|error| Error::untrusted(place, format!("the answer is malformed: {error}")))
    }
}

fn check(metadata: Metadata, issuer: Origin, network: &Network) -> Result<Server, String> {
    if metadata.issuer != issuer.to_string() {
        return Err("it calls itself something else".to_owned());
    }
    let wanted: [(&str, &[String], &[&str]); 7] = [
        ("response type", &metadata.response_types_supported, &["code"]),
        ("grant type", &metadata.grant_types_supported, &["authorization_code", "refresh_token"]),
        ("challenge method", &metadata.code_challenge_methods_supported, &["S256"]),
        (
            "client authentication",
            &metadata.token_endpoint_auth_methods_supported,
            &["none", "private_key_jwt"],
        ),
        (
            "client signature",
            &metadata.token_endpoint_auth_signing_alg_values_supported,
            &["ES256"],
        ),
        ("DPoP signature", &metadata.dpop_signing_alg_values_supported, &["ES256"]),
        ("scope", &metadata.scopes_supported, &[SCOPE]),
    ];
    for (what, offered, required) in wanted {
        if let Some(missing) = required.iter().find(|one| !offered.iter().any(|has| has == *one)) {
            return Err(format!("it lacks the {what} {missing}"));
        }
    }
    // Servers of clients with secrets must not take unsigned statements for signed ones.
    if metadata.token_endpoint_auth_signing_alg_values_supported.iter().any(|alg| alg == "none") {
        return Err("it takes unsigned statements".to_owned());
    }
    let promised = [
        ("names itself in its answers", metadata.authorization_response_iss_parameter_supported),
        ("insists on pushed requests", metadata.require_pushed_authorization_requests),
        ("reads client documents", metadata.client_id_metadata_document_supported),
    ];
    if let Some((what, _)) = promised.iter().find(|(_, kept)| !kept) {
        return Err(format!("it does not say that it {what}"));
    }
    let place = |text: &str, what: &str| {
        let place: Place = text.parse().map_err(|()| format!("its {what} is no address"))?;
        network
            .allows(&place.origin)
            .map_err(|_| format!("its {what} is not at an https address"))?;
        Ok::<_, String>(place)
    };
    Ok(Server {
        authorization: place(&metadata.authorization_endpoint, "authorization endpoint")?,
        token: place(&metadata.token_endpoint, "token endpoint")?,
        push: place(
            &metadata.pushed_authorization_request_endpoint,
            "endpoint for pushed requests",
        )?,
        revocation: match &metadata.revocation_endpoint {
            Some(text) => Some(place(text, "revocation endpoint")?),
            None => None,
        },
        issuer,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Reach;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn good() -> Value {
        json!({
            "issuer": "https://as.example",
            "authorization_endpoint": "https://as.example/authorize",
            "token_endpoint": "https://as.example/token",
            "pushed_authorization_request_endpoint": "https://as.example/par",
            "revocation_endpoint": "https://as.example/revoke",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
            "token_endpoint_auth_signing_alg_values_supported": ["ES256"],
            "dpop_signing_alg_values_supported": ["ES256"],
            "scopes_supported": ["atproto"],
            "authorization_response_iss_parameter_supported": true,
            "require_pushed_authorization_requests": true,
            "client_id_metadata_document_supported": true,
        })
    }

    fn judge(document: &Value) -> Result<Server, String> {
        let metadata =
            serde_json::from_value(document.clone()).map_err(|error| error.to_string())?;
        let network = Network::new(Reach::Public).map_err(|error| error.to_string())?;
        check(metadata, Origin::https("as.example"), &network)
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,20}".prop_map(Value::from),
            "https?://[a-z.@:/#?\\\\]{0,20}".prop_map(Value::from),
        ];
        leaf.prop_recursive(2, 8, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{0,5}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Whatever stands in the place of one line, it is refused or an https address.
        #[test]
        fn no_other_value_of_a_line_is_good_enough(
            line in 0..15_usize,
            value in any_json(),
        ) {
            let mut document = good();
            let name = document.as_object().unwrap().keys().nth(line).unwrap().clone();
            prop_assume!(document[&name] != value);
            document[&name] = value.clone();
            match judge(&document) {
                Err(_) => {}
                Ok(_) if name.ends_with("_endpoint") => {
                    let optional = name == "revocation_endpoint" && value.is_null();
                    let text = value.as_str().unwrap_or("");
                    prop_assert!(optional || text.starts_with("https://"), "{name}: {value}");
                }
                Ok(_) => prop_assert!(false, "{name}: {value}"),
            }
        }

        #[test]
        fn no_document_makes_it_panic(document in any_json()) {
            prop_assert!(judge(&document).is_err());
        }
    }

    #[test]
    fn a_good_server_is_good() {
        let server = judge(&good()).unwrap();
        assert_eq!(server.push.to_string(), "https://as.example/par");
        assert!(server.revocation.is_some());
    }
}
