//! Who asks, and by which name: the client's address, scheme and host as far as they can be
//! believed. Pure.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use http::{HeaderMap, HeaderValue, Uri};
use nacre_wire::{ApiError, ErrorKind};

use crate::routes::Role;

/// How browsers reach this gateway.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Front {
    /// We speak TLS ourselves.
    pub tls: bool,
    /// The address people use, when it is not the one we listen on.
    pub public: Option<PublicUrl>,
    /// A host name that browsers may use besides loopback names.
    pub host: Option<String>,
    /// Whose `X-Forwarded-*` is believed.
    pub proxies: Vec<Network>,
    /// Below this name, ports of sandboxes have hosts of their own.
    pub wildcard: Option<String>,
}

/// Scheme, host and port; nothing below the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    secure: bool,
    /// In lower case, without the port that the scheme implies.
    authority: String,
}

/// An address, or all that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// A port of a role's sandbox, as the host name that it has to itself begins: `3000--dev`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortHost {
    pub(crate) port: u16,
    pub(crate) role: Role,
}

impl fmt::Display for PortHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}--{}", self.port, self.role.as_str())
    }
}

impl FromStr for PortHost {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (port, role) = text.split_once("--").ok_or(())?;
        let port = nacre_wire::ports::parse(port).ok_or(())?;
        Ok(Self { port, role: Role::parse(role).ok_or(())? })
    }
}

/// The client of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Visitor {
    pub(crate) ip: IpAddr,
    /// The browser speaks https, with us or with a proxy before us.
    pub(crate) secure: bool,
    /// What the browser has in its address bar.
    pub(crate) host: HeaderValue,
}

impl Visitor {
    pub(crate) fn origin(&self) -> String {
        origin(self.secure, self.host.to_str().unwrap_or_default())
    }

    /// The host without its port.
    pub(crate) fn name(&self) -> &str {
        host_name(self.host.to_str().unwrap_or_default())
    }

    /// As it stands in `Host`.
    fn bracketed_name(&self) -> Cow<'_, str> {
        let name = self.name();
        if name.contains(':') { format!("[{name}]").into() } else { name.into() }
    }
}

impl Front {
    /// What to open in a browser, when we listen there.
    pub(crate) fn url(&self, address: SocketAddr) -> String {
        match &self.public {
            Some(public) => public.origin(),
            None => origin(self.tls, &address.to_string()),
        }
    }

    /// A name that others know this computer by. Where we listen says nothing about it: before a loopback
    /// address stands a proxy or a tunnel, or nobody would have named it.
    pub(crate) fn public_name(&self) -> Option<&str> {
        let public = self.public.as_ref().map(PublicUrl::name);
        let names = [public, self.host.as_deref(), self.wildcard.as_deref()];
        names.into_iter().flatten().find(|name| !is_loopback_name(name))
    }

    /// Fails when the request is for another computer: a page on another name that resolves to
    /// this machine (DNS rebinding) is no page of ours.
    pub(crate) fn visitor(
        &self,
        peer: IpAddr,
        host: Option<&HeaderValue>,
        headers: &HeaderMap,
    ) -> Result<Visitor, ApiError> {
        let proxied = self.trusts(peer);
        let told = |name: &str| if proxied { last(headers, name) } else { None };
        let sent = host;
        let host = told("x-forwarded-host")
            .or_else(|| sent.and_then(|host| host.to_str().ok()))
            .unwrap_or("");
        let name = lower(host_name(host));
        let ip = if proxied { self.client(peer, headers) } else { peer };
        let value = |text: &str| HeaderValue::from_str(text).map_err(|_| not_this_computer(host));
        if let Some(public) = self.public.as_ref().filter(|public| public.name() == name) {
            return Ok(Visitor { ip, secure: public.secure, host: value(&public.authority)? });
        }
        let loopback =
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        if !loopback && self.host.as_deref() != Some(&*name) {
            return Err(not_this_computer(host));
        }
        let secure = match told("x-forwarded-proto") {
            Some(scheme) => scheme.eq_ignore_ascii_case("https"),
            None => self.tls,
        };
        let bare = bare_authority(secure, host);
        let host = match sent.filter(|sent| sent.as_bytes() == bare.as_bytes()) {
            Some(sent) => sent.clone(),
            None => value(&bare)?,
        };
        Ok(Visitor { ip, secure, host })
    }

    /// The client of a request for a host that a port has to itself. Such a host is no name of this
    /// computer's own: nothing of the gateway is there.
    pub(crate) fn port_visitor(
        &self,
        peer: IpAddr,
        host: Option<&HeaderValue>,
        headers: &HeaderMap,
    ) -> Option<(Visitor, PortHost)> {
        let wildcard = self.wildcard.as_deref()?;
        let proxied = self.trusts(peer);
        let told = |name: &str| if proxied { last(headers, name) } else { None };
        let host = told("x-forwarded-host").or_else(|| host?.to_str().ok())?;
        let name = lower(host_name(host));
        let place = name.strip_suffix(wildcard)?.strip_suffix('.')?.parse().ok()?;
        let secure = match told("x-forwarded-proto") {
            Some(scheme) => scheme.eq_ignore_ascii_case("https"),
            None => self.public.as_ref().map_or(self.tls, |public| public.secure),
        };
        let host = HeaderValue::from_str(&bare_authority(secure, host)).ok()?;
        let ip = if proxied { self.client(peer, headers) } else { peer };
        Some((Visitor { ip, secure, host }, place))
    }

    /// Where a browser that sees us as `visitor` does finds a port.
    pub(crate) fn port_origin(&self, visitor: &Visitor, place: PortHost) -> Option<String> {
        let wildcard = self.wildcard.as_deref()?;
        let host = visitor.host.to_str().ok()?;
        let port = host.strip_prefix(visitor.bracketed_name().as_ref())?;
        Some(origin(visitor.secure, &format!("{place}.{wildcard}{port}")))
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.proxies.iter().any(|network| network.holds(address))
    }

    /// The nearest address that is not one of our proxies. What stands before it, anybody may
    /// have written.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut nearest = peer;
        let lists = headers.get_all("x-forwarded-for").iter().filter_map(|list| list.to_str().ok());
        let addresses: Vec<&str> = lists.flat_map(|list| list.split(',')).map(str::trim).collect();
        for address in addresses.into_iter().rev() {
            let Ok(address) = address.parse::<IpAddr>() else { return nearest };
            nearest = address;
            if !self.trusts(address) {
                return nearest;
            }
        }
        nearest
    }
}

impl PublicUrl {
    pub(crate) fn origin(&self) -> String {
        origin(self.secure, &self.authority)
    }

    fn name(&self) -> &str {
        host_name(&self.authority)
    }
}

impl FromStr for PublicUrl {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let uri: Uri = text.parse().map_err(drop)?;
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(()),
        };
        let authority = uri.authority().ok_or(())?.as_str();
        let rest = uri.path_and_query().map_or("", |path| path.as_str());
        if authority.contains('@') || !matches!(rest, "" | "/") || text.contains('#') {
            return Err(());
        }
        Ok(Self { secure, authority: bare_authority(secure, authority).into_owned() })
    }
}

impl Network {
    pub(crate) fn holds(self, address: IpAddr) -> bool {
        let (ours, theirs, width) = match (self.address, address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                (u128::from(ours.to_bits()), u128::from(theirs.to_bits()), 32)
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => (ours.to_bits(), theirs.to_bits(), 128),
            _ => return false,
        };
        let ignored = width - u32::from(self.bits);
        // A shift by the whole width is no shift at all.
        (ours ^ theirs).checked_shr(ignored).unwrap_or(0) == 0
    }
}

impl FromStr for Network {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().map_err(drop)?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(width), str::parse).map_err(drop)?;
        if bits <= width { Ok(Self { address, bits }) } else { Err(()) }
    }
}

/// Each proxy appends, so the last is what ours said.
fn last<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let value = headers.get_all(name).iter().next_back()?.to_str().ok()?;
    value.rsplit(',').next().map(str::trim)
}

fn origin(secure: bool, authority: &str) -> String {
    format!("{}://{authority}", if secure { "https" } else { "http" })
}

/// As browsers write it: in lower case, without the port that goes without saying.
fn bare_authority(secure: bool, authority: &str) -> Cow<'_, str> {
    let usual = if secure { ":443" } else { ":80" };
    lower(authority.strip_suffix(usual).unwrap_or(authority))
}

fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        text.to_ascii_lowercase().into()
    } else {
        text.into()
    }
}

/// `Host` without the port and the brackets of an IPv6 address.
fn host_name(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(""),
        None => host.split(':').next().unwrap_or(""),
    }
}

/// Names that mean this machine wherever they are used: RFC 6761 keeps `localhost` and what is below it.
fn is_loopback_name(name: &str) -> bool {
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn not_this_computer(host: &str) -> ApiError {
    let message = format!("\"{}\" is not this computer", host.escape_debug());
    ApiError::new(ErrorKind::Permission, message).hint(
        "open it as http://127.0.0.1, or tell nacre up the address that people use: --public-url",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (http::HeaderName::from_static(name), HeaderValue::from_static(value))
            })
            .collect()
    }

    fn front(public: Option<&str>, proxies: &[&str]) -> Front {
        Front {
            public: public.map(|url| url.parse().unwrap()),
            proxies: proxies.iter().map(|network| network.parse().unwrap()).collect(),
            ..Default::default()
        }
    }

    /// Address and origin.
    fn seen(
        front: &Front,
        peer: &str,
        host: &'static str,
        more: &[(&'static str, &'static str)],
    ) -> Option<String> {
        let host = HeaderValue::from_static(host);
        let visitor = front.visitor(peer.parse().unwrap(), Some(&host), &headers(more)).ok()?;
        Some(format!("{} {}", visitor.ip, visitor.origin()))
    }

    #[test]
    fn only_loopback_names_and_our_own_are_this_computer() {
        let front = Front { host: Some("box.example".to_owned()), ..Default::default() };
        for good in [
            "localhost",
            "localhost:8080",
            "127.0.0.1:1",
            "127.1.2.3",
            "[::1]:8080",
            "BOX.example:443",
        ] {
            assert!(seen(&front, "127.0.0.1", good, &[]).is_some(), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]",
            "evil@localhost",
        ] {
            assert!(seen(&front, "127.0.0.1", bad, &[]).is_none(), "{bad}");
        }
        let nobody = front.visitor([127, 0, 0, 1].into(), None, &HeaderMap::new());
        assert!(nobody.is_err());
    }

    const CLAIMS: &[(&str, &str)] = &[
        ("x-forwarded-for", "6.6.6.6, 9.9.9.9, 10.0.0.2"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "localhost"),
    ];

    #[test]
    fn what_is_forwarded_is_believed_from_our_proxies_alone() {
        let ours = front(None, &["10.0.0.0/8"]);
        let check = |front: &Front, peer, expected: &str| {
            assert_eq!(seen(front, peer, "127.0.0.1:80", CLAIMS).as_deref(), Some(expected));
        };
        check(&ours, "10.0.0.1", "9.9.9.9 https://localhost");
        check(&ours, "::ffff:10.0.0.1", "9.9.9.9 https://localhost");
        check(&ours, "11.0.0.1", "11.0.0.1 http://127.0.0.1");
        check(&front(None, &[]), "127.0.0.1", "127.0.0.1 http://127.0.0.1");
        let evil = [("x-forwarded-host", "evil.example")];
        assert_eq!(seen(&ours, "10.0.0.1", "localhost", &evil), None);
        let garbage = [("x-forwarded-for", "9.9.9.9, what")];
        let nearest = seen(&ours, "10.0.0.1", "localhost", &garbage);
        assert_eq!(nearest.as_deref(), Some("10.0.0.1 http://localhost"));
    }

    #[test]
    fn the_public_address_is_what_the_browser_sees() {
        let ours = front(Some("https://Pc.example:8443/"), &[]);
        for host in ["pc.example", "PC.example:8443", "pc.example:80"] {
            let origin = seen(&ours, "127.0.0.1", host, &[]);
            assert_eq!(origin.as_deref(), Some("127.0.0.1 https://pc.example:8443"), "{host}");
        }
        let inside = seen(&ours, "127.0.0.1", "localhost:8080", &[]);
        assert_eq!(inside.as_deref(), Some("127.0.0.1 http://localhost:8080"));
        assert_eq!(seen(&ours, "127.0.0.1", "www.pc.example", &[]), None);
    }

    #[test]
    fn a_name_that_others_know_is_told_from_one_of_this_machine() {
        let check = |public: Option<&str>, host: Option<&str>, expected: Option<&str>| {
            let host = host.map(str::to_owned);
            let front = Front { host, ..front(public, &[]) };
            assert_eq!(front.public_name(), expected, "{public:?} {host:?}", host = front.host);
        };
        check(None, None, None);
        check(Some("https://pc.example:8443"), None, Some("pc.example"));
        check(Some("http://10.0.0.1"), None, Some("10.0.0.1"));
        check(Some("https://localhost.example"), None, Some("localhost.example"));
        check(Some("http://127.0.0.1:8080"), Some("box.lan"), Some("box.lan"));
        for here in
            ["http://localhost", "https://127.1.2.3:1", "http://[::1]:80", "http://a.localhost"]
        {
            check(Some(here), Some("pc.localhost"), None);
        }
    }

    #[test]
    fn a_host_of_a_port_is_read_and_is_no_name_of_ours() {
        let ports =
            Front { wildcard: Some("pc.example".to_owned()), tls: true, ..Default::default() };
        let seen = |host: &'static str| {
            let host = HeaderValue::from_static(host);
            let none = HeaderMap::new();
            assert!(ports.visitor([127, 0, 0, 1].into(), Some(&host), &none).is_err(), "{host:?}");
            let (visitor, place) = ports.port_visitor([127, 0, 0, 1].into(), Some(&host), &none)?;
            Some(format!("{} {place}", visitor.origin()))
        };
        assert_eq!(
            seen("3000--dev.PC.example:8443").as_deref(),
            Some("https://3000--dev.pc.example:8443 3000--dev")
        );
        assert_eq!(
            seen("1--live.pc.example:443").as_deref(),
            Some("https://1--live.pc.example 1--live")
        );
        for other in [
            "pc.example",
            "3000--dev.pc.example.evil.example",
            "3000--dev.evil-pc.example",
            "3000--devpc.example",
            "3000--other.pc.example",
            "03000--dev.pc.example",
            "0--dev.pc.example",
            "3000-dev.pc.example",
            "a.3000--dev.pc.example",
            "3000--dev--live.pc.example",
            "",
        ] {
            assert_eq!(seen(other), None, "{other}");
        }
        let place = "3000--dev".parse().unwrap();
        for (host, expected) in [
            ("pc.example", "https://3000--dev.pc.example"),
            ("127.0.0.1:8080", "https://3000--dev.pc.example:8080"),
            ("[::1]:80", "https://3000--dev.pc.example:80"),
        ] {
            let visitor =
                Visitor { ip: [1; 4].into(), secure: true, host: HeaderValue::from_static(host) };
            assert_eq!(ports.port_origin(&visitor, place).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_public_address_has_nothing_below_its_root() {
        let parse = |text: &str| text.parse::<PublicUrl>().ok().map(|url| url.origin());
        assert_eq!(parse("https://pc.example:443").as_deref(), Some("https://pc.example"));
        assert_eq!(parse("http://[::1]:80/").as_deref(), Some("http://[::1]"));
        for bad in [
            "pc.example",
            "ftp://x",
            "https://x/y",
            "https://x/?y",
            "https://a@x",
            "https://x#y",
            "",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn networks_are_read_and_hold_what_they_name() {
        let holds = |network: &str, address: &str| {
            network.parse::<Network>().unwrap().holds(address.parse().unwrap())
        };
        assert!(holds("127.0.0.1", "127.0.0.1") && !holds("127.0.0.1", "127.0.0.2"));
        assert!(holds("10.1.0.0/16", "10.1.255.1") && !holds("10.1.0.0/16", "10.2.0.1"));
        assert!(holds("0.0.0.0/0", "8.8.8.8") && !holds("0.0.0.0/0", "::1"));
        assert!(holds("fd00::/8", "fd12::1") && !holds("fd00::/8", "fe80::1"));
        assert!(holds("::/0", "fe80::1"));
        for bad in ["", "10.0.0.0/33", "::1/129", "10.0.0.0/", "10.0.0.0/-1", "proxy"] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
    }
}
