//! Where a sandbox wants to go, read strictly. Pure.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

const LONGEST_NAME: usize = 253;
const LONGEST_LABEL: usize = 63;

/// A name in lower case without the last dot, or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Host {
    Name(String),
    Address(IpAddr),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub(crate) host: Host,
    pub(crate) port: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadHost {
    #[error("it is neither a name nor an address")]
    Malformed,
    /// `0x7f.1`, `2130706433`, `127.1`: some read these as an address, and we do not guess.
    #[error("an address is written as four numbers, or as IPv6")]
    OddAddress,
}

impl Host {
    /// Whether it names something that only this machine or its network knows.
    pub(super) fn is_local_name(&self) -> bool {
        // RFC 6761, RFC 6762, RFC 8375, and what routers and clouds use.
        const LOCAL: [&str; 6] =
            ["localhost", "local", "internal", "home.arpa", "lan", "localdomain"];
        let Self::Name(name) = self else { return false };
        !name.contains('.') || LOCAL.iter().any(|suffix| is_or_below(name, suffix))
    }
}

pub(super) fn is_or_below(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

impl FromStr for Host {
    type Err = BadHost;

    fn from_str(text: &str) -> Result<Self, BadHost> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Ok(address) = bare.unwrap_or(text).parse::<IpAddr>() {
            return Ok(Self::Address(address));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let label = |label: &str| {
            (1..=LONGEST_LABEL).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        if name.len() > LONGEST_NAME || !name.split('.').all(label) {
            return Err(BadHost::Malformed);
        }
        if name.rsplit('.').next().is_some_and(is_number) {
            return Err(BadHost::OddAddress);
        }
        Ok(Self::Name(name))
    }
}

/// No domain ends like this, and whatever does is taken for an address by the C library.
fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x");
    label.bytes().all(|byte| byte.is_ascii_digit())
        || hex.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The IPv4 addresses that an IPv6 address leads to, by one translation or another.
pub(super) fn embedded(address: IpAddr) -> Vec<IpAddr> {
    let IpAddr::V6(address) = address else { return Vec::new() };
    let segments = address.segments();
    let v4 =
        |high: u16, low: u16| IpAddr::V4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match segments {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => vec![v4(high, low)],
        [0x64, 0xff9b, .., high, low] => vec![v4(high, low)],
        [0x2002, high, low, ..] => vec![v4(high, low)],
        // Teredo: the server, and the client with its bits turned over.
        [0x2001, 0, high, low, _, _, a, b] => vec![v4(high, low), v4(!a, !b)],
        _ => Vec::new(),
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
            host => write!(f, "{host}:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hosts_are_names_or_plain_addresses() {
        let shown = |text: &str| text.parse::<Host>().map(|host| host.to_string());
        assert_eq!(shown("Example.COM.").unwrap(), "example.com");
        assert_eq!(shown("[::1]").unwrap(), "::1");
        assert_eq!(shown("::ffff:127.0.0.1").unwrap(), "::ffff:127.0.0.1");
        assert_eq!(shown("_dmarc.a-b.example").unwrap(), "_dmarc.a-b.example");
        for odd in [
            "2130706433",
            "0x7f.1",
            "0x7f000001",
            "127.1",
            "017700000001",
            "0177.0.0.1",
            "127.0.0.1.",
            "1.2.3.4.5",
            "256.1.1.1",
            "a.0x1F",
            "a.1",
        ] {
            assert_eq!(shown(odd), Err(BadHost::OddAddress), "{odd}");
        }
        for bad in [
            "",
            ".",
            "a..b",
            "a b",
            "a/b",
            "a:1",
            "a\r\nb",
            "a@b",
            "%31",
            "ⓔxample.com",
            "fe80::1%eth0",
            &"a".repeat(64),
            &format!("{}b", "a.".repeat(127)),
        ] {
            assert_eq!(shown(bad), Err(BadHost::Malformed), "{bad}");
        }
    }

    #[test]
    fn some_names_are_known_only_nearby() {
        let local = |text: &str| text.parse::<Host>().unwrap().is_local_name();
        for name in [
            "localhost",
            "a.localhost",
            "printer",
            "printer.local",
            "x.internal",
            "metadata.google.internal",
            "router.lan",
            "nas.home.arpa",
        ] {
            assert!(local(name), "{name}");
        }
        for name in ["example.com", "local.example.com", "mylocal.net", "notlocalhost.com"] {
            assert!(!local(name), "{name}");
        }
    }

    #[test]
    fn what_an_address_carries_is_found() {
        let found = |text: &str| {
            embedded(text.parse().unwrap()).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(found("::ffff:10.0.0.1"), ["10.0.0.1"]);
        assert_eq!(found("64:ff9b::a00:1"), ["10.0.0.1"]);
        assert_eq!(found("64:ff9b:1::a00:1"), ["10.0.0.1"]);
        assert_eq!(found("2002:a00:1::"), ["10.0.0.1"]);
        assert_eq!(found("2001:0:a00:1::f5ff:fffe"), ["10.0.0.1", "10.0.0.1"]);
        assert_eq!(found("2606:4700::1"), [""; 0]);
    }

    proptest! {
        #[test]
        fn a_host_that_is_read_reads_the_same_again(text in "\\PC{0,40}") {
            if let Ok(host) = text.parse::<Host>() {
                prop_assert_eq!(host.to_string().parse::<Host>(), Ok(host));
            }
        }
    }
}
