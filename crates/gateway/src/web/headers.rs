//! What crosses from a client to a sandbox and back, header by header.

use std::cell::RefCell;
use std::net::IpAddr;

use http::header::{
    ALT_SVC, AUTHORIZATION, CONNECTION, COOKIE, FORWARDED, HOST, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, SET_COOKIE, STRICT_TRANSPORT_SECURITY, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use nacre_wire::conductor::TICKET;

use super::cookies::Jar;

static USER: HeaderName = HeaderName::from_static("x-nacre-user");
static FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
static FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");
static FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
static OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const CLAIMED_PREFIXES: &[&str] = &["x-nacre-", "x-forwarded-"];

thread_local! {
    /// Whoever asks mostly asks again.
    static LAST_ADDRESS: RefCell<Option<(IpAddr, HeaderValue)>> = const { RefCell::new(None) };
}

/// What the gateway vouches for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Forwarded {
    /// Whose computer it is.
    pub(crate) user: HeaderValue,
    /// Its address. Absent when the client came over the unix socket.
    pub(crate) peer: Option<HeaderValue>,
    pub(crate) prefix: &'static str,
    /// The browser speaks https.
    pub(crate) secure: bool,
    /// Whose cookies cross; none do when no role is asked.
    pub(crate) jar: Option<Jar>,
    /// For what the supervisor passes up to us again.
    pub(crate) ticket: Option<HeaderValue>,
}

impl Forwarded {
    /// To a sandbox by its name, for programs: no role, and so no cookies.
    pub(crate) fn by_name(user: HeaderValue, peer: Option<IpAddr>) -> Self {
        let peer = peer.and_then(address);
        Self { user, peer, prefix: "", secure: false, jar: None, ticket: None }
    }
}

/// As a header tells it.
pub(crate) fn address(ip: IpAddr) -> Option<HeaderValue> {
    LAST_ADDRESS.with_borrow_mut(|last| match last {
        Some((known, value)) if *known == ip => Some(value.clone()),
        _ => {
            let value = HeaderValue::try_from(ip.to_string()).ok()?;
            *last = Some((ip, value.clone()));
            Some(value)
        }
    })
}

/// Leaves what a sandbox may see and adds what the gateway vouches for.
pub(crate) fn inward(headers: &mut HeaderMap, forwarded: &Forwarded) {
    let upgrade = headers.get(UPGRADE).cloned().filter(|wanted| !is_http(wanted));
    let trailers = takes_trailers(headers);
    remove_named(headers);
    remove(headers, |name| is_hop_by_hop(name) || is_of_client(name));
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
        headers.insert(CONNECTION, HeaderValue::from_static("te"));
    }
    match forwarded.jar {
        Some(jar) => jar.inward(headers),
        None => drop(headers.remove(COOKIE)),
    }
    let host = headers.get(HOST).cloned().unwrap_or(HeaderValue::from_static("localhost"));
    headers.insert(USER.clone(), forwarded.user.clone());
    headers.insert(FORWARDED_HOST.clone(), host.clone());
    let scheme = if forwarded.secure { "https" } else { "http" };
    headers.insert(FORWARDED_PROTO.clone(), HeaderValue::from_static(scheme));
    headers.insert(HOST, host);
    if let Some(peer) = &forwarded.peer {
        headers.insert(FORWARDED_FOR.clone(), peer.clone());
    }
    if !forwarded.prefix.is_empty() {
        headers.insert(FORWARDED_PREFIX.clone(), HeaderValue::from_static(forwarded.prefix));
    }
    if let Some(ticket) = &forwarded.ticket {
        headers.insert(TICKET, ticket.clone());
    }
    restore_upgrade(headers, upgrade);
}

/// Another HTTP inside an upgrade would carry requests that nobody checked.
fn is_http(upgrade: &HeaderValue) -> bool {
    upgrade.to_str().is_ok_and(|wanted| {
        wanted.split(',').any(|name| name.trim().to_ascii_lowercase().starts_with("h2"))
    })
}

/// Leaves what a client may see.
pub(crate) fn outward(headers: &mut HeaderMap, switching: bool, jar: Option<Jar>) {
    let upgrade = headers.get(UPGRADE).cloned().filter(|_| switching);
    remove_named(headers);
    remove(headers, |name| is_hop_by_hop(name) || speaks_for_origin(name) || speaks_to_proxy(name));
    match jar {
        Some(jar) => jar.outward(headers),
        None => drop(headers.remove(SET_COOKIE)),
    }
    loosen_opener(headers);
    restore_upgrade(headers, upgrade);
}

/// A page with the policy of our own pages would keep hold of one that it opens in a window, and read
/// it. This one keeps others away as well, and lets go of ours.
fn loosen_opener(headers: &mut HeaderMap) {
    let Some(policy) = headers.get_mut(&OPENER_POLICY) else { return };
    let named = policy.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    if named.trim_ascii() == b"same-origin" {
        *policy = HeaderValue::from_static("same-origin-allow-popups");
    }
}

fn restore_upgrade(headers: &mut HeaderMap, upgrade: Option<HeaderValue>) {
    if let Some(upgrade) = upgrade {
        headers.insert(UPGRADE, upgrade);
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
}

/// The one thing about a client's connection that the sandbox may know: trailers are passed on.
fn takes_trailers(headers: &HeaderMap) -> bool {
    headers.get_all(TE).iter().any(|te| {
        let mut offers = te.as_bytes().split(|byte| *byte == b',');
        offers.any(|offer| offer.trim_ascii().eq_ignore_ascii_case(b"trailers"))
    })
}

/// Those that `Connection` names.
fn remove_named(headers: &mut HeaderMap) {
    if !headers.contains_key(CONNECTION) {
        return;
    }
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // Naming these would take away the message's own framing.
        .filter(|name| *name != HOST && *name != http::header::CONTENT_LENGTH)
        .collect();
    for name in named {
        headers.remove(name);
    }
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    match *name {
        CONNECTION | PROXY_AUTHENTICATE | PROXY_AUTHORIZATION | TE | TRANSFER_ENCODING
        | UPGRADE => true,
        _ => matches!(name.as_str(), "keep-alive" | "proxy-connection"),
    }
}

/// What a client shows to us, and what it claims that only we may say.
fn is_of_client(name: &HeaderName) -> bool {
    match *name {
        AUTHORIZATION | FORWARDED => true,
        _ => CLAIMED_PREFIXES.iter().any(|prefix| name.as_str().starts_with(prefix)),
    }
}

/// A sandbox shares its origin with the gateway and the other roles, and browsers keep what these say for
/// all of it. `Reporting-Endpoints` and `Activate-Storage-Access` stay: they are about one answer alone.
fn speaks_for_origin(name: &HeaderName) -> bool {
    match *name {
        ALT_SVC | STRICT_TRANSPORT_SECURITY => true,
        _ => matches!(
            name.as_str(),
            "clear-site-data"
                | "service-worker-allowed"
                // Failed requests of every path would be told to whoever the app names.
                | "nel"
                | "report-to"
                | "expect-ct"
                | "public-key-pins"
                | "public-key-pins-report-only"
                | "origin-agent-cluster"
                | "set-login"
                // Requests to the origin wait until a session of the app's is renewed.
                | "secure-session-registration"
                | "sec-session-registration"
        ),
    }
}

/// Orders to a proxy before us, such as to answer with a file of its own. Only whether it gathers an
/// answer before it passes it on is an app's to say.
fn speaks_to_proxy(name: &HeaderName) -> bool {
    match name.as_str() {
        "x-accel-buffering" => false,
        "x-sendfile" | "x-lighttpd-send-file" | "x-reproxy-url" => true,
        name => name.starts_with("x-accel-"),
    }
}

/// In one pass: mostly there is nothing to remove.
fn remove(headers: &mut HeaderMap, unwanted: impl Fn(&HeaderName) -> bool) {
    let names: Vec<HeaderName> = headers.keys().filter(|name| unwanted(name)).cloned().collect();
    for name in names {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::Role;

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn secrets_claims_and_connection_details_stay_outside() {
        let mut headers = map(&[
            ("host", "127.0.0.1:8080"),
            ("cookie", "nacre_session=secret; nacre_app_dev_a=1"),
            ("authorization", "Bearer secret"),
            ("connection", "close, x-private"),
            ("x-private", "1"),
            ("x-nacre-user", "mallory"),
            ("x-nacre-admin", "yes"),
            ("x-nacre-ticket", "forged"),
            ("x-forwarded-for", "8.8.8.8"),
            ("forwarded", "for=8.8.8.8"),
            ("te", "gzip;q=0.5, Trailers"),
            ("accept", "text/html"),
        ]);
        inward(
            &mut headers,
            &Forwarded {
                user: HeaderValue::from_static("did:web:alice.net"),
                peer: address([127, 0, 0, 1].into()),
                prefix: "/dev",
                secure: true,
                jar: Some(Jar { role: Role::Dev, secure: true, own_host: false }),
                ticket: Some(HeaderValue::from_static("t")),
            },
        );
        let expected = map(&[
            ("host", "127.0.0.1:8080"),
            ("accept", "text/html"),
            ("te", "trailers"),
            ("connection", "te"),
            ("x-nacre-user", "did:web:alice.net"),
            ("x-nacre-ticket", "t"),
            ("x-forwarded-host", "127.0.0.1:8080"),
            ("cookie", "a=1"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-for", "127.0.0.1"),
            ("x-forwarded-prefix", "/dev"),
        ]);
        assert_eq!(headers, expected);
    }

    #[test]
    fn an_upgrade_survives_as_one() {
        let mut headers = map(&[
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-key", "k"),
        ]);
        inward(&mut headers, &Forwarded::by_name(HeaderValue::from_static("owner"), None));
        assert_eq!(headers["upgrade"], "websocket");
        assert_eq!(headers["connection"], "upgrade");
        assert_eq!(headers["sec-websocket-key"], "k");
    }

    #[test]
    fn an_upgrade_to_another_http_is_an_ordinary_request() {
        for upgrade in ["h2c", "H2C", "websocket, h2c"] {
            let mut headers =
                map(&[("connection", "upgrade, http2-settings"), ("http2-settings", "x")]);
            headers.insert(UPGRADE, HeaderValue::from_static(upgrade));
            inward(&mut headers, &Forwarded::by_name(HeaderValue::from_static("owner"), None));
            for name in ["upgrade", "connection", "http2-settings"] {
                assert!(!headers.contains_key(name), "{upgrade}: {name}");
            }
        }
    }

    #[test]
    fn a_sandbox_cannot_touch_the_session() {
        let mut headers = map(&[
            ("set-cookie", "nacre_session=evil"),
            ("clear-site-data", "\"cookies\""),
            ("strict-transport-security", "max-age=1"),
            ("alt-svc", "h2=\"evil.example:443\""),
            ("service-worker-allowed", "/"),
            ("upgrade", "h2c"),
            ("etag", "x"),
        ]);
        outward(&mut headers, false, None);
        assert_eq!(headers, map(&[("etag", "x")]));
    }

    #[test]
    fn a_sandbox_speaks_neither_for_the_origin_nor_to_the_proxy_before_it() {
        let kept = [
            ("x-accel-buffering", "no"),
            ("reporting-endpoints", "own=\"/reports\""),
            ("activate-storage-access", "load"),
        ];
        let mut headers = map(&kept);
        for name in [
            "nel",
            "report-to",
            "expect-ct",
            "public-key-pins",
            "public-key-pins-report-only",
            "origin-agent-cluster",
            "set-login",
            "secure-session-registration",
            "sec-session-registration",
            "x-accel-redirect",
            "x-accel-expires",
            "x-accel-limit-rate",
            "x-sendfile",
            "x-lighttpd-send-file",
            "x-reproxy-url",
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static("x"));
        }
        outward(&mut headers, false, None);
        assert_eq!(headers, map(&kept));
    }

    #[test]
    fn a_page_of_a_sandbox_lets_go_of_ours() {
        let mut headers = map(&[("cross-origin-opener-policy", "same-origin; report-to=\"x\"")]);
        outward(&mut headers, false, None);
        assert_eq!(headers[&OPENER_POLICY], "same-origin-allow-popups");
    }
}
