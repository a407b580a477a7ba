//! A gateway on another machine: its address and a token, from the environment.
//!
//! The token is never an argument, which everybody on the machine could read.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use http::Uri;
use nacre_wire::client::{BoxStream, Client, Dial};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::failure::{Failure, Result};

const URL: &str = "NACRE_URL";
const TOKEN: &str = "NACRE_TOKEN";

/// Where, and what lets us in.
#[derive(Clone)]
pub(crate) struct Remote {
    pub(crate) url: String,
    client: Client,
}

impl Remote {
    /// `None` when no address is named: then the gateway is the one of the data directory.
    pub(crate) fn from_environment() -> Result<Option<Self>> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        match (variable(URL), variable(TOKEN)) {
            (None, _) => Ok(None),
            (Some(url), Some(token)) => Self::new(url, &token).map(Some),
            (Some(_), None) => Err(Failure::new(format!("{URL} is set, and {TOKEN} is not"))
                .hint("make a token on that machine: nacre token create --name ... --scope admin")),
        }
    }

    fn new(url: String, token: &str) -> Result<Self> {
        let dial = Address::parse(&url)?;
        let authority = dial.authority.clone();
        let client = Client::new(Arc::new(dial), "")
            .authorized(&authority, token)
            .map_err(|_| Failure::new(format!("{TOKEN} is no token")))?;
        Ok(Self { url, client })
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }
}

struct Address {
    authority: String,
    host: String,
    port: u16,
    tls: Option<TlsConnector>,
}

impl Address {
    fn parse(url: &str) -> Result<Self> {
        let wrong = || {
            Failure::new(format!("{URL}: \"{}\" is not an address", url.escape_debug()))
                .hint("write scheme and host, such as https://pc.example")
        };
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let (Some(authority), Some(host)) = (uri.authority(), uri.host()) else {
            return Err(wrong());
        };
        let path = uri.path_and_query().map_or("", |path| path.as_str());
        if !matches!(path, "" | "/") || authority.as_str().contains('@') {
            return Err(wrong());
        }
        let host = host.trim_matches(['[', ']']).to_owned();
        let tls = match uri.scheme_str() {
            Some("https") => Some(connector()?),
            Some("http") if is_loopback(&host) => None,
            Some("http") => {
                return Err(Failure::new(format!("{URL}: a token is not sent over plain http"))
                    .hint("use https, or an SSH tunnel to 127.0.0.1"));
            }
            _ => return Err(wrong()),
        };
        let port = uri.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
        Ok(Self { authority: authority.to_string(), host, port, tls })
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn connector() -> Result<TlsConnector> {
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::new(format!("TLS: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

#[async_trait]
impl Dial for Address {
    async fn dial(&self) -> io::Result<BoxStream> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
        Ok(Box::new(tls.connect(name, stream).await?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_over_https_or_on_this_machine() {
        for good in [
            "https://pc.example",
            "https://pc.example:8443/",
            "http://127.0.0.1:8080",
            "http://[::1]:1",
        ] {
            assert!(Remote::new(good.to_owned(), "nacre_x").is_ok(), "{good}");
        }
        for bad in [
            "http://pc.example",
            "pc.example",
            "https://a@pc.example",
            "https://pc.example/x",
            "ftp://x",
            "",
        ] {
            assert!(Remote::new(bad.to_owned(), "nacre_x").is_err(), "{bad}");
        }
        assert!(Remote::new("https://pc.example".to_owned(), "a\nb").is_err());
    }
}
