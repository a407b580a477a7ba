//! Whom the client talks to, and how long.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nacre_atproto::testing::{ALICE, DOCUMENT, HANDLE, Net, RESOURCE};
use nacre_atproto::{Answer, App, Client, Did, Error, Network, Reach, Resolve};
use rustls::RootCertStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Answers what the test says, and counts.
#[derive(Default)]
struct Names {
    known: HashMap<&'static str, Vec<IpAddr>>,
    texts: Vec<&'static str>,
    asked: Mutex<Vec<String>>,
}

impl Resolve for Names {
    fn addresses(&self, host: &str) -> Answer<Vec<IpAddr>> {
        self.asked.lock().unwrap().push(host.to_owned());
        let found = self.known.get(host).cloned();
        Box::pin(async move { found.ok_or_else(|| std::io::Error::other("no such name")) })
    }

    fn texts(&self, name: &str) -> Answer<Vec<String>> {
        let texts = if name == "_atproto.alice.net" { self.texts.clone() } else { vec![] };
        Box::pin(async move { Ok(texts.into_iter().map(str::to_owned).collect()) })
    }
}

fn client(reach: Reach, names: Names, plc: &str) -> Client {
    let app = App::at(&"http://127.0.0.1:1".parse().unwrap(), || unreachable!()).unwrap().unwrap();
    let network = Network::with(reach, Arc::new(names), RootCertStore::empty()).unwrap();
    Client::new(app, network.patient(Duration::from_millis(600)), Some(plc.parse().unwrap()))
        .unwrap()
}

fn alice() -> Did {
    ALICE.parse().unwrap()
}

async fn refused(client: &Client, why: &str) {
    let error = client.resolve(&alice()).await.unwrap_err();
    assert!(error.to_string().contains(why), "{error}");
}

#[tokio::test]
async fn a_name_that_leads_inside_is_not_connected_to() {
    for inside in [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "192.168.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "fd00::1",
        "0.0.0.0",
    ] {
        let known = HashMap::from([("plc.example", vec![inside.parse().unwrap()])]);
        let names = Names { known, ..Default::default() };
        refused(&client(Reach::Public, names, "https://plc.example"), "not on the public internet")
            .await;
    }
    // One good address beside a bad one is a name that is being rebound.
    let both = vec!["1.1.1.1".parse().unwrap(), "127.0.0.1".parse().unwrap()];
    let names = Names { known: HashMap::from([("plc.example", both)]), ..Default::default() };
    refused(&client(Reach::Public, names, "https://plc.example"), "not on the public internet")
        .await;
}

#[tokio::test]
async fn an_address_inside_is_not_connected_to() {
    for place in [
        "https://127.0.0.1",
        "https://10.0.0.1:8443",
        "https://[::1]",
        "https://[::ffff:127.0.0.1]",
    ] {
        let client = client(Reach::Public, Names::default(), place);
        refused(&client, "not on the public internet").await;
    }
}

#[tokio::test]
async fn in_development_only_this_machine_is_an_exception() {
    let known = HashMap::from([("plc.example", vec!["10.0.0.1".parse().unwrap()])]);
    let names = Names { known, ..Default::default() };
    refused(&client(Reach::Loopback, names, "https://plc.example"), "not on the public internet")
        .await;
}

#[tokio::test]
async fn plain_http_is_not_spoken_with_others() {
    let app =
        || App::at(&"http://127.0.0.1:1".parse().unwrap(), || unreachable!()).unwrap().unwrap();
    for (reach, plc, good) in [
        (Reach::Public, "http://127.0.0.1:2582", false),
        (Reach::Public, "http://plc.example", false),
        (Reach::Loopback, "http://plc.example", false),
        (Reach::Loopback, "http://10.0.0.1", false),
        (Reach::Loopback, "http://localhost:2582", true),
        (Reach::Public, "https://plc.example", true),
    ] {
        let network = Network::new(reach).unwrap();
        assert_eq!(Client::new(app(), network, Some(plc.parse().unwrap())).is_ok(), good, "{plc}");
    }
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = format!("https://127.0.0.1:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        while let Ok((stream, _)) = listener.accept().await {
            let _ = acceptor.accept(stream).await;
        }
    });
    refused(&client(Reach::Loopback, Names::default(), &place), "certificate").await;
}

/// A server that says this to whoever comes, then nothing more.
async fn says(words: &'static [u8], then: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 4096]).await;
                for word in words.chunks(1) {
                    let _ = stream.write_all(word).await;
                    tokio::time::sleep(then).await;
                }
                std::future::pending::<()>().await;
            });
        }
    });
    place
}

#[tokio::test]
async fn a_server_that_is_slow_is_not_waited_for() {
    let began = Instant::now();
    let silent = says(b"", Duration::ZERO).await;
    refused(&client(Reach::Loopback, Names::default(), &silent), "takes too long").await;
    let slow = says(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{",
        Duration::from_millis(20),
    )
    .await;
    refused(&client(Reach::Loopback, Names::default(), &slow), "takes too long").await;
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn what_is_not_http_is_an_error_and_nothing_else() {
    for words in [
        &b"nonsense\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
        b"\0\xff\0\r\n\r\n",
    ] {
        let place = says(words, Duration::ZERO).await;
        let error =
            client(Reach::Loopback, Names::default(), &place).resolve(&alice()).await.unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let net = Net::start().await.unwrap();
    let client = client(Reach::Loopback, Names::default(), &net.origin());
    let elsewhere = format!("{}/elsewhere", net.origin());
    net.tweak(&format!("/{ALICE}"), move |reply, _| {
        reply.status = 302;
        reply.set_header("location", &elsewhere);
    });
    refused(&client, "it answers 302").await;
    assert_eq!(net.seen().len(), 1);
}

#[tokio::test]
async fn a_handle_is_asked_at_its_own_host() {
    let net = Net::start().await.unwrap();
    let client = client(Reach::Loopback, Names::default(), &net.origin());
    let identity = client.resolve(&alice()).await.unwrap();
    let handle = client.verified_handle(&identity).await;
    assert_eq!(handle.unwrap().as_str(), "alice.test");
    assert_eq!(net.seen_at(HANDLE)[0].host, "alice.test");

    net.tweak(HANDLE, |reply, _| reply.body = vec![b'x'; 5000]);
    assert_eq!(client.verified_handle(&identity).await, None);
    assert!(client.resolve_handle(&"alice.example.net".parse().unwrap()).await.is_err());
    assert!(net.seen_at(RESOURCE).is_empty() && net.seen_at(DOCUMENT).is_empty());
}

#[tokio::test]
async fn a_handle_is_found_by_its_text_record() {
    let find = async |handle: &str, texts: &[&'static str]| {
        let names = Names { texts: texts.to_vec(), ..Default::default() };
        let client = client(Reach::Public, names, "https://plc.example");
        client.resolve_handle(&handle.parse().unwrap()).await.map(|did| did.to_string())
    };
    let alice = "did=did:plc:aaaaaaaaaaaaaaaaaaaaaaaa";
    assert_eq!(find("alice.net", &["v=spf1", alice, alice]).await.as_deref(), Ok(ALICE));
    let two = find("alice.net", &[alice, "did=did:web:other.net"]).await.unwrap_err();
    assert!(two.to_string().contains("more than one"), "{two}");
    // Then the host itself is asked, and nobody knows its address here.
    for none in [&["did=nonsense", "DID=did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"][..], &[]] {
        assert!(find("alice.net", none).await.unwrap_err().to_string().contains("no such name"));
    }
    assert!(find("other.net", &[alice]).await.is_err());
}
