//! Where something is: origins, and addresses below them, read in one way only.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::handle::is_host_name;

const LONGEST: usize = 2048;

/// Scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    pub(crate) secure: bool,
    /// In lower case; an IPv6 address without brackets.
    pub(crate) host: String,
    /// Absent when it is the one that goes without saying.
    pub(crate) port: Option<u16>,
}

/// An address with a path, perhaps a query, and never a fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) origin: Origin,
    /// Begins with a slash.
    pub(crate) path: String,
}

impl Origin {
    pub(crate) fn https(host: &str) -> Self {
        Self { secure: true, host: host.to_owned(), port: None }
    }

    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// `localhost` and loopback addresses, which are this machine and nothing else.
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.address().is_some_and(|ip| ip.is_loopback())
    }

    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// The host when it is a name and the port goes without saying.
    pub fn bare_name(&self) -> Option<&str> {
        (self.port.is_none() && self.address().is_none()).then_some(self.host.as_str())
    }

    pub(crate) fn port_or_usual(&self) -> u16 {
        self.port.unwrap_or(if self.secure { 443 } else { 80 })
    }

    /// Host and port as `Host` carries them.
    pub(crate) fn authority(&self) -> String {
        let host = match self.address() {
            Some(IpAddr::V6(ip)) => format!("[{ip}]"),
            _ => self.host.clone(),
        };
        self.port.map_or(host.clone(), |port| format!("{host}:{port}"))
    }

    pub(crate) fn at(&self, path: &str) -> Place {
        Place { origin: self.clone(), path: path.to_owned() }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.secure { "https" } else { "http" }, self.authority())
    }
}

impl FromStr for Origin {
    type Err = ();

    /// `https://host`, with a port if it is not the usual one; nothing behind it, and written as we
    /// would write it, so that two that are equal are equal as text.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (secure, rest) = split_scheme(text)?;
        let origin = parse_authority(secure, rest)?;
        if origin.to_string() == text { Ok(origin) } else { Err(()) }
    }
}

impl Place {
    /// Without the query, as `htu` wants it.
    pub(crate) fn without_query(&self) -> String {
        let path = self.path.split('?').next().unwrap_or("/");
        format!("{}{path}", self.origin)
    }

    /// The same with these added to the query.
    pub(crate) fn with_query(&self, pairs: &[(&str, &str)]) -> String {
        let joint = if self.path.contains('?') { '&' } else { '?' };
        format!("{self}{joint}{}", encode_form(pairs))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path)
    }
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let plain =
            text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\\"<>^`{|}#".contains(&byte));
        if !plain || text.len() > LONGEST {
            return Err(());
        }
        let (secure, rest) = split_scheme(text)?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { origin: parse_authority(secure, authority)?, path })
    }
}

fn split_scheme(text: &str) -> Result<(bool, &str), ()> {
    match text.split_once("://") {
        Some(("https", rest)) => Ok((true, rest)),
        Some(("http", rest)) => Ok((false, rest)),
        _ => Err(()),
    }
}

fn parse_authority(secure: bool, text: &str) -> Result<Origin, ()> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or(())?;
        let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or(())?) };
        (host.parse::<Ipv6Addr>().map_err(drop)?.to_string(), port)
    } else {
        let (host, port) =
            text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
        if !is_host_name(host) && host.parse::<Ipv4Addr>().is_err() {
            return Err(());
        }
        (host.to_owned(), port)
    };
    let port = port.map(|port| match port.bytes().all(|b| b.is_ascii_digit()) {
        true => port.parse::<u16>().map_err(drop),
        false => Err(()),
    });
    let usual = if secure { 443 } else { 80 };
    Ok(Origin { secure, host, port: port.transpose()?.filter(|port| *port != usual) })
}

/// `application/x-www-form-urlencoded`, with everything encoded that could mean something.
pub(crate) fn encode_form(pairs: &[(&str, &str)]) -> String {
    const KEPT: &percent_encoding::AsciiSet =
        &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    let encode = |text| percent_encoding::utf8_percent_encode(text, KEPT);
    let pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_written_in_one_way() {
        for good in [
            "https://a.example",
            "https://a.example:8443",
            "http://localhost:2583",
            "http://127.0.0.1",
            "http://[::1]:80000".trim_end_matches('0'),
        ] {
            assert_eq!(
                good.parse::<Origin>().map(|origin| origin.to_string()).as_deref(),
                Ok(good)
            );
        }
        for bad in [
            "https://a.example/",
            "https://a.example:443",
            "https://A.example",
            "a.example",
            "https://",
            "https://a@b.example",
            "https://a.example?x",
            "https://a.example#x",
            "https://a.example:+1",
            "https://a.example:99999",
            "ftp://a.example",
            "https://a_b.example",
            "https://[::1",
            "https://[::1]x",
            "https://a.example\n",
            "https://0x7f.1",
        ] {
            assert_eq!(bad.parse::<Origin>(), Err(()), "{bad}");
        }
    }

    #[test]
    fn an_address_keeps_its_path_and_has_no_fragment() {
        let check = |text: &str, shown: &str, htu: &str| {
            let place: Place = text.parse().unwrap();
            assert_eq!((place.to_string().as_str(), place.without_query().as_str()), (shown, htu));
        };
        check("https://a.example", "https://a.example/", "https://a.example/");
        check("https://a.example/p?q=1", "https://a.example/p?q=1", "https://a.example/p");
        check("https://a.example?q=1", "https://a.example/?q=1", "https://a.example/");
        for bad in
            ["https://a.example/#x", "https://a.example/ x", "https://a\\@b/", "//a.example/", ""]
        {
            assert_eq!(bad.parse::<Place>(), Err(()), "{bad}");
        }
        let place: Place = "https://a.example/p?q=1".parse().unwrap();
        assert_eq!(place.with_query(&[("a", "b c&d")]), "https://a.example/p?q=1&a=b%20c%26d");
    }
}
