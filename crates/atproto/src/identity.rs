//! From a DID to its document, and between handles and DIDs, both ways.

use serde::Deserialize;

use crate::client::Client;
use crate::did::Did;
use crate::error::Error;
use crate::handle::Handle;
use crate::network::{Ask, Network, Reach, Reply};
use crate::place::{Origin, Place};

const DOCUMENT_TYPES: [&str; 3] =
    ["application/json", "application/did+json", "application/did+ld+json"];
const LONGEST_ANSWER: usize = 256;

/// What a DID's document says, as far as we use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub did: Did,
    /// What the document claims; see [`Client::verified_handle`].
    pub claimed: Option<Handle>,
    pub(crate) pds: Origin,
}

#[derive(Deserialize)]
struct Document {
    id: String,
    #[serde(default, rename = "alsoKnownAs")]
    also_known_as: Vec<String>,
    #[serde(default)]
    service: Vec<Service>,
}

#[derive(Deserialize)]
struct Service {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    /// A string where it matters; elsewhere anything.
    #[serde(default, rename = "serviceEndpoint")]
    endpoint: serde_json::Value,
}

impl Client {
    /// Asks for the document every time.
    pub async fn resolve(&self, did: &Did) -> Result<Identity, Error> {
        let place = match did.web_host() {
            Some(host) => Origin::https(host).at("/.well-known/did.json"),
            None => self.plc.at(&format!("/{did}")),
        };
        let reply =
            self.network.send(&place, Ask::get("application/did+ld+json, application/json"));
        let reply = expect_ok(&place, reply.await?)?;
        if !DOCUMENT_TYPES.contains(&reply.media_type()) {
            return Err(Error::untrusted(&place, "the document is not JSON"));
        }
        read_document(did, &reply.body, &self.network).map_err(|why| Error::untrusted(&place, why))
    }

    /// The handle that the document claims, if the handle's own host names this DID in return.
    pub async fn verified_handle(&self, identity: &Identity) -> Option<Handle> {
        let handle = identity.claimed.clone()?;
        match self.resolve_handle_of(&handle, Some(&identity.pds)).await {
            Ok(did) if did == identity.did => Some(handle),
            Ok(_) => None,
            Err(error) => {
                tracing::debug!(%handle, %error, "a handle was not verified");
                None
            }
        }
    }

    /// Whom a handle belongs to: by a text record of its name, or by what its own host says.
    pub async fn resolve_handle(&self, handle: &Handle) -> Result<Did, Error> {
        self.resolve_handle_of(handle, None).await
    }

    async fn resolve_handle_of(&self, handle: &Handle, pds: Option<&Origin>) -> Result<Did, Error> {
        let path = "/.well-known/atproto-did";
        let mut ask = Ask::get("text/plain");
        let place: Place = match pds {
            // No resolver knows names that end in .test. In development their PDS answers for them.
            Some(pds) if handle.is_for_tests() && self.network.reach() == Reach::Loopback => {
                ask.host = Some(handle.as_str());
                pds.at(path)
            }
            _ => {
                let texts = self.network.texts(&format!("_atproto.{handle}")).await;
                if let Some(named) = did_in(&texts) {
                    let why =
                        || Error::untrusted(handle, "its text records name more than one DID");
                    return named.ok_or_else(why);
                }
                Origin::https(handle.as_str()).at(path)
            }
        };
        let reply = expect_ok(&place, self.network.send(&place, ask).await?)?;
        let text = std::str::from_utf8(&reply.body).unwrap_or("").trim();
        let did = if text.len() <= LONGEST_ANSWER { text.parse().ok() } else { None };
        did.ok_or_else(|| Error::untrusted(&place, "the answer is not a DID"))
    }
}

/// `None` when no text names a DID, and none inside when they name several.
fn did_in(texts: &[String]) -> Option<Option<Did>> {
    let mut named = texts.iter().filter_map(|text| text.strip_prefix("did=")?.parse::<Did>().ok());
    let first = named.next()?;
    Some(named.all(|other| other == first).then_some(first))
}

/// 200 exactly; a redirect is no answer.
pub(crate) fn expect_ok(place: &Place, reply: Reply) -> Result<Reply, Error> {
    match reply.status {
        http::StatusCode::OK => Ok(reply),
        status if status.is_server_error() => Err(Error::unreachable(place, status)),
        status => Err(Error::untrusted(place, format!("it answers {status}"))),
    }
}

fn read_document(did: &Did, body: &[u8], network: &Network) -> Result<Identity, String> {
    let document: Document = serde_json::from_slice(body)
        .map_err(|error| format!("the document is malformed: {error}"))?;
    if document.id != did.as_str() {
        return Err("the document is somebody else's".to_owned());
    }
    let ours = [format!("{did}#atproto_pds"), "#atproto_pds".to_owned()];
    let service = document.service.iter().find(|service| ours.contains(&service.id));
    let service = service.ok_or("the document names no PDS")?;
    if service.kind != "AtprotoPersonalDataServer" {
        return Err("what the document names as PDS is something else".to_owned());
    }
    let text = service.endpoint.as_str().unwrap_or("");
    let pds: Origin = text
        .strip_suffix('/')
        .unwrap_or(text)
        .parse()
        .map_err(|()| "the PDS is not at an origin".to_owned())?;
    network.allows(&pds).map_err(|_| "the PDS is not at an https origin".to_owned())?;
    let first = document.also_known_as.iter().find_map(|name| name.strip_prefix("at://"));
    Ok(Identity { did: did.clone(), claimed: first.and_then(|name| name.parse().ok()), pds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DID: &str = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa";

    fn check(document: &serde_json::Value, expected: Result<(&str, Option<&str>), &str>) {
        let network = Network::new(Reach::Public).unwrap();
        let read = read_document(&DID.parse().unwrap(), document.to_string().as_bytes(), &network);
        let seen = read.map(|identity| {
            (identity.pds.to_string(), identity.claimed.map(|handle| handle.to_string()))
        });
        let expected = expected.map(|(pds, handle)| (pds.to_owned(), handle.map(str::to_owned)));
        assert_eq!(seen, expected.map_err(str::to_owned), "{document}");
    }

    fn document() -> serde_json::Value {
        json!({
            "id": DID,
            "alsoKnownAs": ["at://alice.test", "at://old.test"],
            "verificationMethod": [{ "id": "#atproto" }, 7],
            "service": [
                { "id": "#other", "type": "Other", "serviceEndpoint": { "a": 1 } },
                { "id": "#atproto_pds", "type": "AtprotoPersonalDataServer",
                  "serviceEndpoint": "https://pds.example" },
            ],
        })
    }

    #[test]
    fn a_document_names_its_subject_and_one_pds() {
        check(&document(), Ok(("https://pds.example", Some("alice.test"))));
        let changed = |pointer: &str, value: serde_json::Value| {
            let mut document = document();
            *document.pointer_mut(pointer).unwrap() = value;
            document
        };
        let endpoint = "/service/1/serviceEndpoint";
        check(
            &changed(endpoint, json!("https://pds.example/")),
            Ok(("https://pds.example", Some("alice.test"))),
        );
        check(
            &changed("/service/1/id", json!(format!("{DID}#atproto_pds"))),
            Ok(("https://pds.example", Some("alice.test"))),
        );
        check(
            &changed("/alsoKnownAs", json!(["https://x", "at://not a handle"])),
            Ok(("https://pds.example", None)),
        );
        check(
            &changed("/id", json!("did:plc:bbbbbbbbbbbbbbbbbbbbbbbb")),
            Err("the document is somebody else's"),
        );
        check(&changed("/service/1/id", json!("#pds")), Err("the document names no PDS"));
        check(
            &changed("/service/1/type", json!("X")),
            Err("what the document names as PDS is something else"),
        );
        for bad in [
            json!("https://pds.example/path"),
            json!("pds.example"),
            json!(null),
            json!(["https://a.example"]),
            json!("https://user@pds.example"),
        ] {
            check(&changed(endpoint, bad), Err("the PDS is not at an origin"));
        }
        for bad in ["http://pds.example", "http://127.0.0.1", "http://localhost:2583"] {
            check(&changed(endpoint, json!(bad)), Err("the PDS is not at an https origin"));
        }
    }

    proptest::proptest! {
        #[test]
        fn no_document_makes_it_panic(body in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let network = Network::new(Reach::Public).unwrap();
            proptest::prop_assert!(read_document(&DID.parse().unwrap(), &body, &network).is_err());
        }
    }
}
