//! How this crate reaches others over HTTP: one way to trust certificates, and no waiting for ever.

use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConfig, RootCertStore};

const CONNECT: Duration = Duration::from_secs(10);

/// Trusts the public authorities. Redirects are not followed and what the environment says of proxies
/// is not heard: what was named is what is meant.
pub(crate) fn builder() -> Result<reqwest::ClientBuilder, rustls::Error> {
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .connect_timeout(CONNECT)
        .tcp_nodelay(true)
        .redirect(reqwest::redirect::Policy::none()))
}
