//! One rule: a name or a network, and ports. Pure.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use nacre_wire::egress::EgressEffect;

use super::target::{Host, Target, embedded};
use crate::web::visitor::Network;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Rule {
    pub(crate) effect: EgressEffect,
    pub(crate) pattern: Pattern,
    /// Whether a name may lead to an address that is not public.
    pub(crate) private: bool,
}

/// What [`Rule`]s are about, as people write it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Pattern {
    what: What,
    /// First and last; `None` for all.
    ports: Option<(u16, u16)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum What {
    Everything,
    Name(String),
    /// Everything below this name, and not the name itself.
    Below(String),
    Network {
        network: Network,
        text: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a name, a network or *")]
pub(crate) struct BadPattern(pub(crate) String);

impl BadPattern {
    pub(crate) const HINT: &str = "write it like example.com, *.example.com, 10.1.0.0/16 or \
                                   [fd00::]/8, with :443 or :8000-8999 behind it if only some \
                                   ports are meant";
}

impl Pattern {
    /// About the name, whatever it leads to.
    pub(super) fn names(&self, target: &Target) -> bool {
        let Host::Name(name) = &target.host else {
            return self.what == What::Everything && self.has_port(target.port);
        };
        let named = match &self.what {
            What::Everything => true,
            What::Name(wanted) => name == wanted,
            What::Below(domain) => {
                let rest = name.strip_suffix(domain.as_str());
                rest.is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            What::Network { .. } => false,
        };
        named && self.has_port(target.port)
    }

    /// About the address itself.
    pub(super) fn holds(&self, address: IpAddr, port: u16) -> bool {
        match self.what {
            // An IPv4 network does not stand for IPv6 addresses that carry one of its own.
            What::Network { network, .. } => {
                address == address.to_canonical() && network.holds(address) && self.has_port(port)
            }
            _ => false,
        }
    }

    /// As [`Self::holds`], also by what the address leads to.
    pub(super) fn reaches(&self, address: IpAddr, port: u16) -> bool {
        self.holds(address, port)
            || embedded(address).into_iter().any(|inner| self.holds(inner, port))
    }

    fn has_port(&self, port: u16) -> bool {
        self.ports.is_none_or(|(first, last)| (first..=last).contains(&port))
    }
}

impl FromStr for Pattern {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, BadPattern> {
        let bad = || BadPattern(text.to_owned());
        let (what, ports) = split_ports(text).ok_or_else(bad)?;
        let network = what.replace(['[', ']'], "");
        let what = if what == "*" {
            What::Everything
        } else if let Ok(found) = network.parse::<Network>() {
            What::Network { network: found, text: network }
        } else {
            let (below, name) = what.strip_prefix("*.").map_or((false, what), |rest| (true, rest));
            match (below, name.parse::<Host>().map_err(|_| bad())?) {
                (false, Host::Name(name)) => What::Name(name),
                (true, Host::Name(name)) => What::Below(name),
                (_, Host::Address(_)) => return Err(bad()),
            }
        };
        Ok(Self { what, ports })
    }
}

/// The part before the last colon and the ports behind it; colons of IPv6 stand in brackets.
fn split_ports(text: &str) -> Option<(&str, Option<(u16, u16)>)> {
    let many = text.bytes().filter(|byte| *byte == b':').count() > 1;
    let colon = match text.rfind(']') {
        Some(end) => text[end..].find(':').map(|at| end + at),
        None if many => None,
        None => text.find(':'),
    };
    let Some(colon) = colon else { return Some((text, None)) };
    let ports = &text[colon + 1..];
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first > 0 && first <= last).then_some((&text[..colon], Some((first, last))))
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Everything => f.write_str("*")?,
            What::Name(name) => f.write_str(name)?,
            What::Below(domain) => write!(f, "*.{domain}")?,
            What::Network { text, .. } => match (text.contains(':'), text.split_once('/')) {
                (false, _) => f.write_str(text)?,
                (true, Some((address, bits))) => write!(f, "[{address}]/{bits}")?,
                (true, None) => write!(f, "[{text}]")?,
            },
        }
        match self.ports {
            None => Ok(()),
            Some((first, last)) if first == last => write!(f, ":{first}"),
            Some((first, last)) => write!(f, ":{first}-{last}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    fn names(rule: &str, host: &str, port: u16) -> bool {
        pattern(rule).names(&Target { host: host.parse().unwrap(), port })
    }

    #[test]
    fn what_is_written_is_what_is_shown() {
        for text in [
            "*",
            "*:22",
            "example.com",
            "*.example.com:443",
            "10.0.0.0/8:8000-8999",
            "10.1.2.3",
            "10.1.2.3:80",
            "[fd00::]/8",
            "[fd00::]/8:53",
            "[::1]",
            "[::1]:80",
        ] {
            assert_eq!(pattern(text).to_string(), text);
        }
        assert_eq!(pattern("fd00::/8").to_string(), "[fd00::]/8");
        assert_eq!(pattern("EXAMPLE.com.").to_string(), "example.com");
        for bad in [
            "",
            "*.",
            "*.1.2.3.4",
            "a*.com",
            "*.*.com",
            "example.com:0",
            "a.b:9-1",
            "a.b:x",
            "10.0.0.0/33",
            "2130706433",
            "http://a.b",
            "a.b/c",
            "a.b:80:90",
        ] {
            assert!(bad.parse::<Pattern>().is_err(), "{bad}");
        }
    }

    #[test]
    fn allow_list_wildcards_mean_what_is_below_and_nothing_beside() {
        assert!(names("*.example.com", "a.example.com", 1));
        assert!(names("*.example.com", "a.b.example.com", 1));
        for other in ["example.com", "badexample.com", "example.com.evil.net", "a.example.org"] {
            assert!(!names("*.example.com", other, 1), "{other}");
        }
        assert!(names("example.com", "EXAMPLE.com.", 1));
        assert!(!names("example.com", "a.example.com", 1));
        assert!(names("*", "anything.net", 1) && names("*", "1.2.3.4", 1));
        assert!(names("a.b:80-90", "a.b", 90) && !names("a.b:80-90", "a.b", 91));
    }

    #[test]
    fn a_network_holds_addresses_and_a_denied_one_also_what_carries_them() {
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        let net = pattern("10.0.0.0/8:80");
        assert!(net.holds(at("10.9.9.9"), 80) && !net.holds(at("10.9.9.9"), 81));
        assert!(!net.holds(at("::ffff:10.0.0.1"), 80) && net.reaches(at("::ffff:10.0.0.1"), 80));
        assert!(net.reaches(at("64:ff9b::a00:1"), 80) && !net.reaches(at("64:ff9b::b00:1"), 80));
    }
}
