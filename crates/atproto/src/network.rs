//! One request to somebody who is not trusted: bounded, never redirected, and only to an address that
//! may be connected to.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::address::is_public;
use crate::error::Error;
use crate::place::{Origin, Place};
use crate::resolver::{Resolve, System};

const PATIENCE: Duration = Duration::from_secs(10);
const CONNECTING: Duration = Duration::from_secs(4);
const LARGEST: usize = 64 * 1024;
const MOST_HEADERS: usize = 64;

/// Who may be talked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The public internet, over https.
    Public,
    /// That, and this machine itself over plain http: for development, and only when the computer
    /// itself is reached there.
    Loopback,
}

#[derive(Clone)]
pub struct Network {
    reach: Reach,
    resolver: Arc<dyn Resolve>,
    tls: TlsConnector,
    patience: Duration,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").field("reach", &self.reach).finish_non_exhaustive()
    }
}

/// What is asked, without the place.
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    pub(crate) headers: Vec<(HeaderName, String)>,
    pub(crate) body: String,
    /// Another name for the host, of which the place is in charge.
    pub(crate) host: Option<&'a str>,
}

impl Ask<'_> {
    pub(crate) fn get(accept: &str) -> Self {
        let headers = vec![(ACCEPT, accept.to_owned())];
        Self { method: Method::GET, headers, body: String::new(), host: None }
    }

    pub(crate) fn form(body: String) -> Self {
        let kind = "application/x-www-form-urlencoded".to_owned();
        let headers = vec![(CONTENT_TYPE, kind), (ACCEPT, "application/json".to_owned())];
        Self { method: Method::POST, headers, body, host: None }
    }
}

/// An answer, whole.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Without its parameters.
    pub(crate) fn media_type(&self) -> &str {
        self.header("content-type").unwrap_or("").split(';').next().unwrap_or("").trim()
    }
}

impl Network {
    pub fn new(reach: Reach) -> Result<Self, Error> {
        Self::with(reach, Arc::new(System), public_authorities())
    }

    /// Trusts the authorities in these PEM certificates besides the public ones, for servers whose
    /// operator has an authority of their own. Which addresses may be connected to stays as it is.
    pub fn trusting(reach: Reach, authorities: &[u8]) -> Result<Self, Error> {
        let unusable = |error: &dyn std::fmt::Display| Error::Local(error.to_string());
        let (mut roots, public) = (public_authorities(), webpki_roots::TLS_SERVER_ROOTS.len());
        for certificate in CertificateDer::pem_slice_iter(authorities) {
            let certificate = certificate.map_err(|error| unusable(&error))?;
            roots.add(certificate).map_err(|error| unusable(&error))?;
        }
        if roots.len() == public {
            return Err(Error::Local("no certificate is in it".to_owned()));
        }
        Self::with(reach, Arc::new(System), roots)
    }

    /// With another resolver and other authorities.
    pub fn with(
        reach: Reach,
        resolver: Arc<dyn Resolve>,
        roots: RootCertStore,
    ) -> Result<Self, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Local(format!("TLS: {error}")))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { reach, resolver, tls: TlsConnector::from(Arc::new(config)), patience: PATIENCE })
    }

    /// How long a whole exchange may take.
    pub fn patient(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    pub(crate) fn reach(&self) -> Reach {
        self.reach
    }

    /// The text records of a name; none when they cannot be had.
    pub(crate) async fn texts(&self, name: &str) -> Vec<String> {
        match tokio::time::timeout(self.patience, self.resolver.texts(name)).await {
            Ok(Ok(texts)) => texts,
            Ok(Err(error)) => {
                tracing::debug!(name, %error, "text records were not found");
                Vec::new()
            }
            Err(_) => Vec::new(),
        }
    }

    /// Whether something may be asked there at all. Plain http is for this machine alone.
    pub(crate) fn allows(&self, origin: &Origin) -> Result<(), Error> {
        if origin.is_secure() || (self.reach == Reach::Loopback && origin.is_loopback()) {
            return Ok(());
        }
        Err(Error::untrusted(origin, "plain http"))
    }

    pub(crate) async fn send(&self, place: &Place, ask: Ask<'_>) -> Result<Reply, Error> {
        self.allows(&place.origin)?;
        match tokio::time::timeout(self.patience, self.exchange(place, ask)).await {
            Ok(reply) => reply,
            Err(_) => Err(Error::unreachable(place, "it takes too long")),
        }
    }

    async fn exchange(&self, place: &Place, ask: Ask<'_>) -> Result<Reply, Error> {
        let stream = self.connect(&place.origin).await?;
        if !place.origin.is_secure() {
            return talk(stream, place, ask).await;
        }
        let name = ServerName::try_from(place.origin.host.clone())
            .map_err(|_| Error::untrusted(place, "no certificate can name this host"))?;
        let stream = self.tls.connect(name, stream).await;
        talk(stream.map_err(|error| Error::unreachable(place, error))?, place, ask).await
    }

    /// Connects to exactly an address that was checked: resolving again could give another.
    async fn connect(&self, origin: &Origin) -> Result<TcpStream, Error> {
        let addresses = self.addresses(origin).await?;
        let mut last = Error::untrusted(origin, "it has no address on the public internet");
        for address in addresses {
            let address = SocketAddr::new(address, origin.port_or_usual());
            match tokio::time::timeout(CONNECTING, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = Error::unreachable(origin, error),
                Err(_) => last = Error::unreachable(origin, "it takes too long to connect"),
            }
        }
        Err(last)
    }

    async fn addresses(&self, origin: &Origin) -> Result<Vec<IpAddr>, Error> {
        if self.reach == Reach::Loopback && origin.is_loopback() {
            return Ok(vec![origin.address().unwrap_or(Ipv4Addr::LOCALHOST.into())]);
        }
        let found = match origin.address() {
            Some(address) => vec![address],
            None => {
                let found = self.resolver.addresses(&origin.host).await;
                found.map_err(|error| Error::unreachable(origin, error))?
            }
        };
        // One address inside is no mistake of a resolver that is to be worked around.
        let inside = found.iter().any(|address| !is_public(*address));
        if inside {
            return Err(Error::untrusted(origin, "its address is not on the public internet"));
        }
        Ok(found)
    }
}

fn public_authorities() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

async fn talk<S>(stream: S, place: &Place, ask: Ask<'_>) -> Result<Reply, Error>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let failed = |error: hyper::Error| Error::unreachable(place, error);
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_headers(MOST_HEADERS)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(failed)?;
    let request = build(place, ask)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(failed)?;
        read(response, place).await
    };
    // Whoever waits drives the connection, so that nothing goes on after we stopped caring.
    tokio::pin!(connection);
    tokio::select! {
        biased;
        reply = exchange => reply,
        ended = &mut connection => {
            let why = ended.err().map_or("the connection was closed".to_owned(), |error| error.to_string());
            Err(Error::unreachable(place, why))
        }
    }
}

fn build(place: &Place, ask: Ask<'_>) -> Result<Request<Full<Bytes>>, Error> {
    let malformed = |_| Error::untrusted(place, "the request cannot be written");
    let host = ask.host.map_or_else(|| place.origin.authority(), str::to_owned);
    let mut request = Request::builder()
        .method(ask.method)
        .uri(place.path.as_str())
        .header(HOST, host)
        .header(USER_AGENT, concat!("nacre/", env!("CARGO_PKG_VERSION")));
    for (name, value) in ask.headers {
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| Error::untrusted(place, "a header cannot be written"))?;
        value.set_sensitive(true);
        request = request.header(name, value);
    }
    request.body(Full::new(Bytes::from(ask.body))).map_err(malformed)
}

async fn read(
    response: http::Response<hyper::body::Incoming>,
    place: &Place,
) -> Result<Reply, Error> {
    let (parts, mut body) = response.into_parts();
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Error::unreachable(place, error))?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > LARGEST {
            return Err(Error::untrusted(place, "the answer is too large"));
        }
        whole.extend_from_slice(&data);
    }
    Ok(Reply { status: parts.status, headers: parts.headers, body: whole.freeze() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_added_to_the_public_ones_and_must_be_there() {
        let made = rcgen::generate_simple_self_signed(["pds.example".to_owned()]).unwrap();
        let trusting = |pem: &str| Network::trusting(Reach::Public, pem.as_bytes()).map(drop);
        assert_eq!(trusting(&made.cert.pem()), Ok(()));
        for bad in [String::new(), "no PEM".to_owned(), made.signing_key.serialize_pem()] {
            assert!(trusting(&bad).is_err(), "{bad}");
        }
    }
}
