//! Names to addresses, and the text records that name the owner of a handle.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;

use crate::dns;

/// Boxed, so that a [`Network`](crate::Network) need not know who resolves.
pub type Answer<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

/// The system's, or a test's.
pub trait Resolve: Send + Sync {
    fn addresses(&self, host: &str) -> Answer<Vec<IpAddr>>;
    /// The text records of a name.
    fn texts(&self, name: &str) -> Answer<Vec<String>>;
}

/// As every program on this machine does it.
#[derive(Debug)]
pub struct System;

impl Resolve for System {
    fn addresses(&self, host: &str) -> Answer<Vec<IpAddr>> {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }

    fn texts(&self, name: &str) -> Answer<Vec<String>> {
        let name = name.to_owned();
        Box::pin(async move { dns::texts(&name).await })
    }
}
