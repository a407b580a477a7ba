//! Connections to one provider, kept for the next call.
//!
//! Where it is was decided by the configuration. As at a sandbox's door, a request goes out again on
//! a fresh connection only when surely no byte of it was sent.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use nacre_sandbox::BoxStream;
use nacre_wire::relay::{Answer, Link, Pool, Upload};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::base::Base;
use crate::web::lanes::{self, PLACES};

const CONNECTING: Duration = Duration::from_secs(10);
const HTTP1: &[u8] = b"http/1.1";

pub(crate) struct Upstream {
    base: Base,
    tls: Option<TlsConnector>,
    /// For each lane, those that it opened.
    idle: [Arc<Pool<Body>>; PLACES],
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) error: io::Error,
    /// Whether the provider may have got the request.
    pub(crate) sent: bool,
}

impl Upstream {
    pub(crate) fn new(base: &Base, ca_file: Option<&Path>) -> Result<Self, String> {
        let tls = base.secure.then(|| connector(ca_file)).transpose()?;
        Ok(Self { base: base.clone(), tls, idle: Default::default() })
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Answer<Body>, Broken> {
        let idle = &self.idle[lanes::here()];
        let mut request = Upload::of(request);
        while let Some(link) = idle.take() {
            match link.exchange(request).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => match failed.unsent {
                    Some(unsent) => request = *unsent,
                    None => return Err(Broken { error: failed.error, sent: true }),
                },
            }
        }
        let unsent = |error| Broken { error, sent: false };
        let slow =
            |_| unsent(io::Error::new(io::ErrorKind::TimedOut, "it takes too long to connect"));
        let stream = tokio::time::timeout(CONNECTING, self.connect())
            .await
            .map_err(slow)?
            .map_err(unsent)?;
        let link = Link::open(stream, Some(idle.clone())).await.map_err(unsent)?;
        link.exchange(request)
            .await
            .map_err(|failed| Broken { error: failed.error, sent: failed.unsent.is_none() })
    }

    async fn connect(&self) -> io::Result<BoxStream> {
        let Base { host, port, .. } = &self.base;
        let stream = TcpStream::connect((host.as_str(), *port)).await?;
        // What comes piece by piece is passed on piece by piece.
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
        Ok(Box::new(tls.connect(name, stream).await?))
    }
}

fn connector(ca_file: Option<&Path>) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(path) = ca_file {
        let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let certificates = CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))?;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| wrong(&error))?;
            roots.add(certificate).map_err(|error| wrong(&error))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![HTTP1.to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
