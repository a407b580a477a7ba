//! What listens in a sandbox, and connections to it.

use super::{Client, Result};
use crate::ports::{PROTOCOL, PortList};
use crate::relay::Raw;

impl Client {
    pub async fn ports(&self) -> Result<PortList> {
        self.get_json("/supervisor/ports").await
    }

    /// Connects to what listens there: bytes as they are, and each direction ends by itself.
    pub async fn open_port(&self, port: u16) -> Result<Raw> {
        self.switch(&format!("/supervisor/ports/{port}"), PROTOCOL).await
    }
}
