//! What signing in needs to know, and why it may not begin.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nacre_atproto::{App, Client, Did, KeyError, Network, Origin, Reach, SigningKey};

use super::SessionLimits;
use crate::store::StoreError;
use crate::web::visitor::Front;

/// In the data folder: what we sign with as a client that has an address.
pub(crate) const KEY_FILE: &str = "client.key";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuthConfig {
    /// Whose computer it is; otherwise whoever claimed it.
    pub owner: Option<Did>,
    /// The directory of `did:plc`, when it is not the public one.
    pub plc: Option<Origin>,
    /// A PEM file: whose certificates are believed of account servers besides those of the public
    /// authorities.
    pub authorities: Option<PathBuf>,
    pub sessions: SessionLimits,
}

#[derive(Debug, thiserror::Error)]
pub enum AuthStartError {
    #[error("{0} is an address that others reach, and nobody is named as the owner")]
    NoOwner(String),
    #[error("an owner cannot sign in at {0}")]
    NoClient(String),
    #[error("the directory {0} cannot be asked: plain http is for this machine alone")]
    PlainDirectory(Origin),
    #[error("control.db names \"{0}\" as the owner, which is not a DID")]
    OwnerUnreadable(String),
    #[error("the key of this client: {0}")]
    Key(#[from] KeyError),
    #[error("the authorities of account servers in {}: {why}", path.display())]
    Authorities { path: PathBuf, why: String },
    #[error("{0}")]
    Network(String),
    #[error("{0}")]
    Control(String),
}

impl AuthStartError {
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoOwner(_) => Some(
                "set OWNER_DID to the DID of your Atmosphere account and PUBLIC_URL to the address \
                 people use; or start once on 127.0.0.1 without PUBLIC_URL and gateway.host, and claim \
                 this computer at /register (nacre register)",
            ),
            Self::NoClient(_) => Some(
                "set PUBLIC_URL to https and a name without a port, such as https://pc.example, or open \
                 it as http://127.0.0.1 without TLS",
            ),
            Self::OwnerUnreadable(_) => Some("set OWNER_DID to the DID of your Atmosphere account"),
            Self::PlainDirectory(_) => Some("use https in ATPROTO_PLC_URL"),
            Self::Key(KeyError::Open(_)) => {
                Some("others may have read it: remove it, and a new one is made")
            }
            Self::Key(_) => Some("remove it, and a new one is made"),
            Self::Authorities { .. } => {
                Some("ATPROTO_CA_FILE names a readable PEM file with BEGIN CERTIFICATE")
            }
            Self::Network(_) | Self::Control(_) => None,
        }
    }
}

impl From<StoreError> for AuthStartError {
    fn from(error: StoreError) -> Self {
        Self::Control(error.to_string())
    }
}

impl AuthConfig {
    /// The client for the address that browsers use; `None` when accounts cannot be asked from there.
    pub(crate) fn client(
        &self,
        url: &str,
        data_dir: &Path,
    ) -> Result<Option<Client>, AuthStartError> {
        let Ok(origin) = url.parse::<Origin>() else { return Ok(None) };
        let key = || SigningKey::load_or_make(&data_dir.join(KEY_FILE)).map(Arc::new);
        let Some(app) = App::at(&origin, key)? else { return Ok(None) };
        // Only a computer that is itself reached on this machine may ask others on this machine.
        let reach = if origin.is_secure() { Reach::Public } else { Reach::Loopback };
        let network = self.network(reach)?;
        let client = Client::new(app, network, self.plc.clone());
        client.map(Some).map_err(AuthStartError::PlainDirectory)
    }

    fn network(&self, reach: Reach) -> Result<Network, AuthStartError> {
        let Some(path) = &self.authorities else {
            return Network::new(reach).map_err(|error| AuthStartError::Network(error.to_string()));
        };
        let unusable = |why: String| AuthStartError::Authorities { path: path.clone(), why };
        let authorities = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
        Network::trusting(reach, &authorities).map_err(|error| unusable(error.to_string()))
    }

    /// Nobody but the owner may be let near by an address that others reach: one that is not loopback,
    /// or a name that is not, behind which a proxy or a tunnel leads here.
    pub(crate) fn check(
        &self,
        listen: SocketAddr,
        front: &Front,
        owned: bool,
        client: Option<&Client>,
    ) -> Result<(), AuthStartError> {
        let listens = Some(listen).filter(|address| !address.ip().is_loopback());
        let public = listens.map(|address| address.to_string());
        let public = public.or_else(|| front.public_name().map(str::to_owned));
        match public {
            Some(public) if !owned => Err(AuthStartError::NoOwner(public)),
            None if self.owner.is_none() => Ok(()),
            Some(_) | None if client.is_none() => Err(AuthStartError::NoClient(front.url(listen))),
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `[gateway]` says, and whether somebody owns the computer.
    fn check(
        listen: &str,
        public: Option<&str>,
        owner: bool,
        plc: Option<&str>,
    ) -> Result<(), String> {
        let public = public.map(|url| url.parse().unwrap());
        start(listen, &Front { public, ..Default::default() }, owner, plc)
    }

    fn start(listen: &str, front: &Front, owner: bool, plc: Option<&str>) -> Result<(), String> {
        let dir = tempfile::tempdir().unwrap();
        let did = owner.then(|| "did:web:alice.net".parse().unwrap());
        let plc = plc.map(|plc| plc.parse().unwrap());
        let config = AuthConfig { owner: did, plc, ..Default::default() };
        let listen = listen.parse().unwrap();
        let client =
            config.client(&front.url(listen), dir.path()).map_err(|error| error.to_string())?;
        config
            .check(listen, front, owner, client.as_ref())
            .map_err(|error| format!("{error}: {}", error.hint().unwrap_or_default()))
    }

    const HERE: &str = "127.0.0.1:8080";

    #[test]
    fn an_address_of_this_machine_needs_no_owner() {
        assert_eq!(check(HERE, None, false, None), Ok(()));
        assert_eq!(check(HERE, None, true, None), Ok(()));
        assert_eq!(check("[::1]:8080", Some("http://localhost:8080"), false, None), Ok(()));
        assert_eq!(check(HERE, Some("https://pc.localhost"), false, None), Ok(()));
        let tls = Front { tls: true, ..Default::default() };
        assert_eq!(start(HERE, &tls, false, None), Ok(()));
    }

    #[test]
    fn a_public_address_has_an_owner_who_can_sign_in() {
        let there = Some("https://pc.example");
        assert_eq!(check("0.0.0.0:80", there, true, None), Ok(()));
        assert_eq!(check(HERE, there, true, None), Ok(()));
        let named = Front { host: Some("pc.example".to_owned()), ..Default::default() };
        assert_eq!(start(HERE, &named, true, None), Ok(()));

        let nobody = [
            (check("0.0.0.0:80", there, false, None), "0.0.0.0:80"),
            (check(HERE, there, false, None), "pc.example"),
            (check(HERE, Some("http://10.0.0.1"), false, None), "10.0.0.1"),
            (start(HERE, &named, false, None), "pc.example"),
            (start(HERE, &Front { tls: true, ..named }, false, None), "pc.example"),
        ];
        for (refused, place) in nobody {
            let said = refused.unwrap_err();
            let why = format!("{place} is an address that others reach, and nobody is named");
            assert!(said.starts_with(&why), "{said}");
            for way in ["OWNER_DID", "without PUBLIC_URL", "/register"] {
                assert!(said.contains(way), "{said}");
            }
        }
        for (listen, url) in [
            ("0.0.0.0:80", None),
            ("0.0.0.0:80", Some("https://pc.example:8443")),
            (HERE, Some("https://pc.example:8443")),
            (HERE, Some("http://pc.example")),
            (HERE, Some("https://10.0.0.1")),
        ] {
            let nowhere = check(listen, url, true, None).unwrap_err();
            assert!(
                nowhere.contains("cannot sign in") && nowhere.contains("PUBLIC_URL"),
                "{nowhere}"
            );
        }
    }

    #[test]
    fn authorities_that_cannot_be_read_stop_the_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.pem");
        let client = || {
            let config = AuthConfig { authorities: Some(path.clone()), ..Default::default() };
            config.client("https://pc.example", dir.path()).map(drop).map_err(|e| e.to_string())
        };
        assert!(client().unwrap_err().contains("ca.pem: No such file"));
        std::fs::write(&path, "nothing").unwrap();
        assert!(client().unwrap_err().contains("no certificate"));
        let made = rcgen::generate_simple_self_signed(["pds.example".to_owned()]).unwrap();
        std::fs::write(&path, made.cert.pem()).unwrap();
        assert_eq!(client(), Ok(()));
    }

    #[test]
    fn plain_http_is_for_a_computer_on_this_machine_and_a_directory_there() {
        let there = Some("https://pc.example");
        assert_eq!(check(HERE, None, true, Some("http://localhost:2582")), Ok(()));
        assert!(check(HERE, there, true, Some("http://localhost:2582")).is_err());
        assert!(check(HERE, None, true, Some("http://plc.example")).is_err());
        assert_eq!(check(HERE, there, true, Some("https://plc.example")), Ok(()));
    }
}
