//! What a gateway needs to know, as written (`[gateway]` in `nacre.toml`) and as resolved.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use nacre_atproto::{Did, Origin};

use crate::auth::AuthConfig;
use crate::brain::config::ConversationsConfig;
use crate::desktop::config::DesktopConfig;
use crate::egress::config::EgressConfig;
use crate::egress::rule::BadPattern;
use crate::knowledge::KnowledgeConfig;
use crate::observe::{ObserveConfig, RawObserveConfig};
use crate::provider::{ModelsConfig, Reload};
use crate::runs::config::RunsConfig;
use crate::sandboxes::policy::RestartPolicy;
use crate::sandboxes::watching::RolesConfig;
use crate::tls::TlsFiles;
use crate::web::visitor::Front;

pub(crate) const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
const LOOK_AT_TLS_FILES: Duration = Duration::from_secs(5);
const DEFAULT_STOP_GRACE: Duration = Duration::from_secs(5);

/// The `[gateway]` table, before defaults.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct RawGatewayConfig {
    /// Address and port for browsers.
    pub listen: Option<String>,
    /// A host name that browsers may use besides loopback names.
    pub host: Option<String>,
    /// A name below which ports of sandboxes have hosts of their own: `3000--dev.NAME`.
    pub wildcard_host: Option<String>,
    /// Certificate chain and key, as PEM files: we speak TLS ourselves.
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    /// The address people use, when a proxy stands before us.
    pub public_url: Option<String>,
    /// Addresses and networks whose `X-Forwarded-*` is believed.
    pub trusted_proxies: Option<Vec<String>>,
    /// Whose computer it is: the DID of an Atmosphere account.
    pub owner_did: Option<String>,
    /// The directory of `did:plc`, when it is not the public one.
    pub plc_url: Option<String>,
    /// A PEM file of authorities that account servers may have their certificates from, besides the
    /// public ones.
    pub account_ca: Option<PathBuf>,
    /// How long commands have to end when a sandbox stops.
    pub stop_grace_seconds: Option<u64>,
    pub observe: RawObserveConfig,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayConfig {
    pub data_dir: PathBuf,
    pub listen: SocketAddr,
    pub front: Front,
    pub tls: Option<TlsFiles>,
    pub auth: AuthConfig,
    pub stop_grace: Duration,
    pub restart: RestartPolicy,
    pub observe: ObserveConfig,
    pub roles: RolesConfig,
    pub egress: EgressConfig,
    pub conversations: ConversationsConfig,
    pub models: ModelsConfig,
    pub knowledge: KnowledgeConfig,
    /// Absent when there is nothing to read again.
    pub reload_models: Option<Reload>,
    pub runs: RunsConfig,
    pub desktop: DesktopConfig,
    /// Plain requests pass without hyper. Tests compare both ways.
    pub lean: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("\"{0}\" is not an address to listen on: expected something like 127.0.0.1:8080")]
    BadAddress(String),
    #[error("\"{0}\" is not a DID: expected something like did:plc:z72i7hdynkq6kh7aaaaaaaaa")]
    BadOwner(String),
    #[error("\"{0}\" is not a directory of DIDs: expected something like https://plc.directory")]
    BadDirectory(String),
    #[error("\"{0}\" is not a public address: expected something like https://pc.example")]
    BadPublicUrl(String),
    #[error(
        "\"{0}\" is not a host name that ports can be below: expected something like pc.example"
    )]
    BadWildcard(String),
    #[error("TLS needs a certificate and its key, and only one of them is named")]
    HalfTls,
    #[error("\"{0}\" is neither an address nor a network")]
    BadProxy(String),
    #[error("[egress] mode = \"{0}\": there are open, allow-list and none")]
    BadEgressMode(String),
    #[error("[egress] \"{0}\" is not a name, a network or *")]
    BadEgressRule(String),
}

impl ConfigError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::BadAddress(_) => "use an IP address and a port; port 0 picks a free one",
            Self::BadOwner(_) => {
                "OWNER_DID is the DID of your Atmosphere account, not its handle; your account's \
                 settings or its profile page show it"
            }
            Self::BadDirectory(_) => "write ATPROTO_PLC_URL as scheme and host, without a path",
            Self::BadPublicUrl(_) => "write scheme and host, with a port if there is one; no path",
            Self::BadWildcard(_) => {
                "write gateway.wildcard_host as a name alone, without the star, a scheme or a port"
            }
            Self::HalfTls => "use --tls-cert FILE and --tls-key FILE together",
            Self::BadEgressMode(_) => "see docs/network.md for what each of them opens",
            Self::BadEgressRule(_) => BadPattern::HINT,
            Self::BadProxy(_) => "write them like 127.0.0.1 or 10.0.0.0/8",
        }
    }
}

impl RawGatewayConfig {
    pub fn resolve(self, data_dir: PathBuf) -> Result<GatewayConfig, ConfigError> {
        let listen = match self.listen {
            None => DEFAULT_LISTEN,
            Some(text) => parse_address(&text)?,
        };
        let tls = match (self.tls_cert, self.tls_key) {
            (Some(cert), Some(key)) => Some(TlsFiles { cert, key, look_every: LOOK_AT_TLS_FILES }),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return Err(ConfigError::HalfTls),
        };
        let public =
            self.public_url.map(|url| url.parse().map_err(|()| ConfigError::BadPublicUrl(url)));
        let proxies = self.trusted_proxies.unwrap_or_default().into_iter();
        let front = Front {
            tls: tls.is_some(),
            public: public.transpose()?,
            host: self.host.map(|host| host.to_ascii_lowercase()),
            wildcard: self.wildcard_host.map(parse_wildcard).transpose()?,
            proxies: proxies
                .map(|proxy| proxy.parse().map_err(|()| ConfigError::BadProxy(proxy)))
                .collect::<Result<_, _>>()?,
        };
        let auth = AuthConfig {
            authorities: self.account_ca,
            ..resolve_auth(self.owner_did, self.plc_url)?
        };
        Ok(GatewayConfig {
            data_dir,
            listen,
            front,
            tls,
            auth,
            stop_grace: self.stop_grace_seconds.map_or(DEFAULT_STOP_GRACE, Duration::from_secs),
            restart: RestartPolicy::default(),
            observe: self.observe.resolve(),
            roles: RolesConfig::default(),
            egress: EgressConfig::default(),
            conversations: ConversationsConfig::default(),
            models: ModelsConfig::default(),
            knowledge: KnowledgeConfig::default(),
            reload_models: None,
            runs: RunsConfig::default(),
            desktop: DesktopConfig::default(),
            lean: true,
        })
    }
}

/// An owner that is named and cannot be read, also an empty one, is never taken for none.
fn resolve_auth(owner: Option<String>, plc: Option<String>) -> Result<AuthConfig, ConfigError> {
    let owner = owner.map(|did| did.parse::<Did>().map_err(|()| ConfigError::BadOwner(did)));
    let plc = plc.map(|url| {
        let origin = url.strip_suffix('/').unwrap_or(&url).parse::<Origin>();
        origin.map_err(|()| ConfigError::BadDirectory(url))
    });
    Ok(AuthConfig { owner: owner.transpose()?, plc: plc.transpose()?, ..Default::default() })
}

/// A name, in lower case. An address has nothing below it.
fn parse_wildcard(text: String) -> Result<String, ConfigError> {
    let label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && label.bytes().all(inner) && !label.starts_with('-')
    };
    let last_is_a_name =
        text.rsplit('.').next().is_some_and(|last| !last.starts_with(|c: char| c.is_ascii_digit()));
    if !text.split('.').all(label) || !last_is_a_name {
        return Err(ConfigError::BadWildcard(text));
    }
    Ok(text.to_ascii_lowercase())
}

/// `ADDRESS:PORT`, `localhost:PORT` or a bare port on loopback.
fn parse_address(text: &str) -> Result<SocketAddr, ConfigError> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::new(DEFAULT_LISTEN.ip(), port));
    }
    let numeric = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    numeric.parse().map_err(|_| ConfigError::BadAddress(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(listen: &str, expected: Result<&str, ConfigError>) {
        let raw = RawGatewayConfig { listen: Some(listen.to_owned()), ..Default::default() };
        let resolved = raw.resolve(PathBuf::from("/data")).map(|config| config.listen.to_string());
        assert_eq!(resolved, expected.map(str::to_owned), "{listen}");
    }

    #[test]
    fn addresses_are_read() {
        check("127.0.0.1:0", Ok("127.0.0.1:0"));
        check("[::1]:8080", Ok("[::1]:8080"));
        check("localhost:9000", Ok("127.0.0.1:9000"));
        check("9000", Ok("127.0.0.1:9000"));
        check("0.0.0.0:80", Ok("0.0.0.0:80"));
        check("example.org:80", Err(ConfigError::BadAddress("example.org:80".to_owned())));
        check("", Err(ConfigError::BadAddress(String::new())));
    }

    #[test]
    fn what_cannot_be_meant_is_named() {
        let check = |raw: RawGatewayConfig, expected: ConfigError| {
            assert_eq!(raw.resolve(PathBuf::from("/data")), Err(expected));
        };
        let raw = RawGatewayConfig::default;
        check(RawGatewayConfig { tls_cert: Some("a".into()), ..raw() }, ConfigError::HalfTls);
        check(RawGatewayConfig { tls_key: Some("a".into()), ..raw() }, ConfigError::HalfTls);
        let url = Some("pc.example".to_owned());
        let bad = ConfigError::BadPublicUrl("pc.example".to_owned());
        check(RawGatewayConfig { public_url: url, ..raw() }, bad);
        for bad in ["", "*.pc.example", "https://pc.example", "pc.example:80", "127.0.0.1", "a..b"]
        {
            let wildcard_host = Some(bad.to_owned());
            let expected = ConfigError::BadWildcard(bad.to_owned());
            check(RawGatewayConfig { wildcard_host, ..raw() }, expected);
        }
        let proxies = Some(vec!["10.0.0.1".to_owned(), "nginx".to_owned()]);
        let bad = ConfigError::BadProxy("nginx".to_owned());
        check(RawGatewayConfig { trusted_proxies: proxies, ..raw() }, bad);
    }

    #[test]
    fn an_owner_that_cannot_be_read_is_not_taken_for_none() {
        let resolve = |owner: &str| {
            let raw = RawGatewayConfig { owner_did: Some(owner.to_owned()), ..Default::default() };
            raw.resolve(PathBuf::from("/data")).map(|config| config.auth.owner.unwrap().to_string())
        };
        let good = "did:plc:z72i7hdynkq6kh7aaaaaaaaa";
        assert_eq!(resolve(good).as_deref(), Ok(good));
        for bad in ["", " ", "alice.bsky.social", "did:plc:x", "did:plc:z72i7hdynkq6kh7aaaaaaaaa "]
        {
            assert_eq!(resolve(bad), Err(ConfigError::BadOwner(bad.to_owned())), "{bad:?}");
        }
    }

    #[test]
    fn nothing_said_means_the_documented_defaults() {
        let config = RawGatewayConfig::default().resolve(PathBuf::from("/data")).unwrap();
        assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
        assert_eq!(config.stop_grace, Duration::from_secs(5));
    }
}
