//! A client that has an address: it signs for itself, and servers check it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use nacre_atproto::testing::{ALICE, Net, PUSH, REVOKE, TOKEN, verify};
use nacre_atproto::{App, Callback, Client, Network, Query, Reach, SigningKey};

const ID: &str = "https://pc.example.net/auth/client-metadata.json";

fn client(net: &Net) -> (tempfile::TempDir, Client) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("client.key");
    let origin = "https://pc.example.net".parse().unwrap();
    let app = App::at(&origin, || SigningKey::load_or_make(&path).map(Arc::new)).unwrap().unwrap();
    // The servers of the test are on this machine; a real one of this kind may not talk to it.
    let network = Network::new(Reach::Loopback).unwrap();
    (dir, Client::new(app, network, Some(net.origin().parse().unwrap())).unwrap())
}

async fn sign_in(net: &Net, client: &Client) -> Result<String, nacre_atproto::Error> {
    let started = client.begin(&ALICE.parse().unwrap()).await?;
    let back = net.consent(&started.address).await.unwrap();
    let query = Query::parse(back.split_once('?').unwrap().1).unwrap();
    assert_eq!(query.get("state"), Some(started.flow.state()));
    let callback = Callback::read(&query).unwrap();
    client.finish(started.flow, &callback).await.map(|who| who.did.to_string())
}

#[tokio::test]
async fn it_signs_every_request_for_one_server_and_once() {
    let net = Net::start().await.unwrap();
    let (_dir, client) = client(&net);
    let jwks = client.app().jwks().unwrap();
    net.knows_client(jwks.clone());
    assert_eq!(sign_in(&net, &client).await.unwrap(), ALICE);

    let mut ids = Vec::new();
    for path in [PUSH, TOKEN, REVOKE] {
        for asked in net.seen_at(path) {
            let assertion = asked.assertion.unwrap();
            assert!(verify(&assertion, &jwks["keys"][0]), "{path}");
            assert_eq!(assertion.header["kid"], jwks["keys"][0]["kid"]);
            assert_eq!(assertion.header["alg"], "ES256");
            assert_eq!(assertion.claims["iss"], ID);
            assert_eq!(assertion.claims["sub"], ID);
            assert_eq!(assertion.claims["aud"], net.origin());
            let (iat, exp) = (
                assertion.claims["iat"].as_u64().unwrap(),
                assertion.claims["exp"].as_u64().unwrap(),
            );
            assert!(exp > iat && exp - iat <= 60);
            assert_eq!(asked.form["client_id"], ID);
            let proof = asked.proof.unwrap();
            assert_ne!(
                proof.header["jwk"]["x"], jwks["keys"][0]["x"],
                "proofs have a key of their own"
            );
            ids.push(assertion.claims["jti"].to_string());
        }
    }
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert!(count >= 4 && ids.len() == count, "no statement is used twice");
}

#[tokio::test]
async fn a_server_that_knows_another_key_refuses_it() {
    let net = Net::start().await.unwrap();
    let (_dir, client) = client(&net);
    let (_other_dir, other) = self::client(&net);
    net.knows_client(other.app().jwks().unwrap());
    let error = sign_in(&net, &client).await.unwrap_err();
    assert!(error.to_string().contains("invalid_client"), "{error}");
}
