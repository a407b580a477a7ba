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

/// As every program on this machine does it, but that a name with a dot is the whole name: what the
/// machine would add to it leads to another name than the one that was asked for and judged.
#[derive(Debug)]
pub struct System;

const HOSTS: &str = "/etc/hosts";

impl Resolve for System {
    fn addresses(&self, host: &str) -> Answer<Vec<IpAddr>> {
        let host = host.to_owned();
        Box::pin(async move {
            let hosts = tokio::fs::read_to_string(HOSTS).await.unwrap_or_default();
            let name = whole(host, &hosts);
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }

    fn texts(&self, name: &str) -> Answer<Vec<String>> {
        let name = name.to_owned();
        Box::pin(async move { dns::texts(&name).await })
    }
}

/// With the dot at its end that says so. The file of hosts knows names as they are written there.
fn whole(mut host: String, hosts: &str) -> String {
    let is_name = host.contains('.') && host.parse::<IpAddr>().is_err();
    let says = |line: &str| {
        let mut names = line.split('#').next().unwrap_or_default().split_whitespace().skip(1);
        names.any(|name| name.eq_ignore_ascii_case(&host))
    };
    if is_name && !host.ends_with('.') && !hosts.lines().any(says) {
        host.push('.');
    }
    host
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_added_to_a_name_with_a_dot() {
        let hosts =
            "127.0.0.1 localhost\n# 1.1.1.1 c.example\n10.0.0.1\tdb A.example # b.example\n";
        let whole = |host: &str| whole(host.to_owned(), hosts);
        for (asked, looked_up) in [
            ("git.corp", "git.corp."),
            ("b.example", "b.example."),
            ("c.example", "c.example."),
            ("a.example", "a.example"),
            ("printer", "printer"),
            ("d.example.", "d.example."),
            ("1.2.3.4", "1.2.3.4"),
            ("::1", "::1"),
        ] {
            assert_eq!(whole(asked), looked_up);
        }
    }

    #[tokio::test]
    async fn the_machine_knows_itself() {
        let found = System.addresses("localhost").await.unwrap();
        assert!(found.iter().all(IpAddr::is_loopback) && !found.is_empty(), "{found:?}");
    }
}
