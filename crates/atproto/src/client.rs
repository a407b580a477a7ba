//! The client as a whole: who we are, whom we may talk to, and whom we ask about `did:plc`.

use crate::app::App;
use crate::network::Network;
use crate::place::Origin;

const PLC: &str = "plc.directory";

/// Holds no state of its own.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) app: App,
    pub(crate) network: Network,
    pub(crate) plc: Origin,
}

impl Client {
    /// `plc` is the directory of `did:plc`; the public one unless told otherwise.
    /// Fails with it when it must not be asked.
    pub fn new(app: App, network: Network, plc: Option<Origin>) -> Result<Self, Origin> {
        let plc = plc.unwrap_or_else(|| Origin::https(PLC));
        match network.allows(&plc) {
            Ok(()) => Ok(Self { app, network, plc }),
            Err(_) => Err(plc),
        }
    }

    pub fn app(&self) -> &App {
        &self.app
    }
}
