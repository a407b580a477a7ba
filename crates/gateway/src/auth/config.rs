//! What signing in needs to know, and why it may not begin.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use nacre_atproto::{App, Client, Did, KeyError, Network, Origin, Reach, SigningKey};

use super::SessionLimits;
use crate::store::StoreError;

/// In the data folder: what we sign with as a client that has an address.
pub(crate) const KEY_FILE: &str = "client.key";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuthConfig {
    /// Whose computer it is; otherwise whoever claimed it.
    pub owner: Option<Did>,
    /// The directory of `did:plc`, when it is not the public one.
    pub plc: Option<Origin>,
    pub sessions: SessionLimits,
}

#[derive(Debug, thiserror::Error)]
pub enum AuthStartError {
    #[error("{0} is not a loopback address, and nobody is named as the owner")]
    NoOwner(SocketAddr),
    #[error("an owner cannot sign in at {0}")]
    NoClient(String),
    #[error("the directory {0} cannot be asked: plain http is for this machine alone")]
    PlainDirectory(Origin),
    #[error("control.db names \"{0}\" as the owner, which is not a DID")]
    OwnerUnreadable(String),
    #[error("the key of this client: {0}")]
    Key(#[from] KeyError),
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
                 people use, or listen on 127.0.0.1",
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
        let network =
            Network::new(reach).map_err(|error| AuthStartError::Network(error.to_string()))?;
        let client = Client::new(app, network, self.plc.clone());
        client.map(Some).map_err(AuthStartError::PlainDirectory)
    }

    /// Nobody but the owner may be let near by an address that others reach.
    pub(crate) fn check(
        &self,
        listen: SocketAddr,
        owned: bool,
        client: Option<&Client>,
        url: &str,
    ) -> Result<(), AuthStartError> {
        let public = !listen.ip().is_loopback();
        if public && !owned {
            return Err(AuthStartError::NoOwner(listen));
        }
        if (public || self.owner.is_some()) && client.is_none() {
            return Err(AuthStartError::NoClient(url.to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(listen: &str, url: &str, owner: bool, plc: Option<&str>) -> Result<(), String> {
        let dir = tempfile::tempdir().unwrap();
        let did = owner.then(|| "did:web:alice.net".parse().unwrap());
        let plc = plc.map(|plc| plc.parse().unwrap());
        let config = AuthConfig { owner: did, plc, ..Default::default() };
        let client = config.client(url, dir.path()).map_err(|error| error.to_string())?;
        config
            .check(listen.parse().unwrap(), owner, client.as_ref(), url)
            .map_err(|error| format!("{error}: {}", error.hint().unwrap_or_default()))
    }

    #[test]
    fn a_public_address_has_an_owner_who_can_sign_in() {
        let here = "127.0.0.1:8080";
        assert_eq!(check(here, "http://127.0.0.1:8080", false, None), Ok(()));
        assert_eq!(check(here, "http://127.0.0.1:8080", true, None), Ok(()));
        assert_eq!(check(here, "https://127.0.0.1:8080", false, None), Ok(()));
        assert_eq!(check("0.0.0.0:80", "https://pc.example", true, None), Ok(()));

        let nobody = check("0.0.0.0:80", "https://pc.example", false, None).unwrap_err();
        assert!(
            nobody.contains("nobody is named as the owner") && nobody.contains("OWNER_DID"),
            "{nobody}"
        );
        for url in [
            "http://0.0.0.0:80",
            "https://pc.example:8443",
            "http://pc.example",
            "https://10.0.0.1",
        ] {
            let nowhere = check("0.0.0.0:80", url, true, None).unwrap_err();
            assert!(
                nowhere.contains("cannot sign in") && nowhere.contains("PUBLIC_URL"),
                "{nowhere}"
            );
        }
    }

    #[test]
    fn plain_http_is_for_a_computer_on_this_machine_and_a_directory_there() {
        let (here, there) = ("http://127.0.0.1:8080", "https://pc.example");
        assert_eq!(check("127.0.0.1:80", here, true, Some("http://localhost:2582")), Ok(()));
        assert!(check("127.0.0.1:80", there, true, Some("http://localhost:2582")).is_err());
        assert!(check("127.0.0.1:80", here, true, Some("http://plc.example")).is_err());
        assert_eq!(check("127.0.0.1:80", there, true, Some("https://plc.example")), Ok(()));
    }
}
