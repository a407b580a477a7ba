//! What crosses from a client to a provider and back, header by header. Pure.

use http::header::{
    ACCEPT_ENCODING, ALT_SVC, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, FORWARDED,
    HOST, ORIGIN, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, REFERER, SET_COOKIE,
    STRICT_TRANSPORT_SECURITY, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::config::{Kind, Provider};

static API_KEY: HeaderName = HeaderName::from_static("x-api-key");
static GOOGLE_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");

/// About the connection, about who asks, or ours to decide.
static NOT_INWARD: [HeaderName; 22] = [
    CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
    HeaderName::from_static("api-key"),
    COOKIE,
    FORWARDED,
    VIA,
    HeaderName::from_static("x-real-ip"),
    HOST,
    CONTENT_LENGTH,
    EXPECT,
    ORIGIN,
    REFERER,
];
/// These speak for the whole origin, or about the connection.
static NOT_OUTWARD: [HeaderName; 13] = [
    CONNECTION,
    PROXY_AUTHENTICATE,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    SET_COOKIE,
    ALT_SVC,
    STRICT_TRANSPORT_SECURITY,
    HeaderName::from_static("clear-site-data"),
    HeaderName::from_static("service-worker-allowed"),
];
const CLAIMS: &[&str] = &["x-nacre-", "x-forwarded-", "cf-", "sec-fetch-"];

/// What may be a policy token, in the order in which it is tried.
pub(crate) fn presented(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let bearers = headers.get_all(AUTHORIZATION).iter().filter_map(|value| {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let keys = [&API_KEY, &GOOGLE_KEY].into_iter().flat_map(|name| headers.get_all(name));
    bearers.chain(keys.filter_map(|value| value.to_str().ok().map(str::trim)))
}

/// Leaves what a provider may see, and adds the key in the provider's own way.
pub(crate) fn inward(headers: &mut HeaderMap, provider: &Provider) {
    remove_named(headers);
    remove(headers, &NOT_INWARD);
    let claims: Vec<HeaderName> = headers
        .keys()
        .filter(|name| CLAIMS.iter().any(|claim| name.as_str().starts_with(claim)))
        .cloned()
        .collect();
    remove(headers, &claims);
    headers.insert(HOST, provider.base.authority.clone());
    // Usage is read off the answer, which nobody can when it is compressed.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let Ok(Some(key)) = &provider.key else { return };
    let (name, scheme) = match provider.kind {
        Kind::Anthropic => (API_KEY.clone(), ""),
        Kind::Google => (GOOGLE_KEY.clone(), ""),
        Kind::Openai | Kind::Openrouter | Kind::OpenaiCompatible => (AUTHORIZATION, "Bearer "),
    };
    if let Some(value) = key.header(scheme) {
        headers.insert(name, value);
    }
}

/// Leaves what a client may see.
pub(crate) fn outward(headers: &mut HeaderMap) {
    remove_named(headers);
    remove(headers, &NOT_OUTWARD);
}

/// Those that `Connection` names.
fn remove_named(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .filter(|name| *name != CONTENT_LENGTH)
        .collect();
    remove(headers, &named);
}

fn remove(headers: &mut HeaderMap, names: &[HeaderName]) {
    for name in names {
        headers.remove(name);
    }
}

/// The query without `key`, which is how Google's API takes keys too, and what that was.
pub(crate) fn take_key(query: &str) -> (String, Option<&str>) {
    let mut key = None;
    let rest: Vec<_> = query
        .split('&')
        .filter(|pair| match pair.strip_prefix("key=") {
            Some(value) => {
                key = key.or(Some(value));
                false
            }
            None => true,
        })
        .collect();
    (rest.join("&"), key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::config::RawProvider;

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    fn provider(name: &str) -> Provider {
        let raw = RawProvider { key_env: Some("KEY".to_owned()), ..RawProvider::default() };
        raw.resolve(name, |_| Some("sk-real".to_owned())).unwrap()
    }

    #[test]
    fn what_is_said_about_the_client_and_its_secrets_stay_here() {
        let given = map(&[
            ("host", "127.0.0.1:8002"),
            ("authorization", "Bearer nacre_model_x"),
            ("x-api-key", "nacre_model_x"),
            ("x-goog-api-key", "nacre_model_x"),
            ("api-key", "nacre_model_x"),
            ("cookie", "nacre_session=1"),
            ("connection", "close, x-private, authorization"),
            ("x-private", "1"),
            ("transfer-encoding", "chunked"),
            ("x-forwarded-for", "1.2.3.4"),
            ("x-nacre-user", "mallory"),
            ("via", "1.1 x"),
            ("accept-encoding", "gzip"),
            ("anthropic-version", "2023-06-01"),
            ("anthropic-beta", "a,b"),
            ("openai-organization", "org"),
            ("x-stainless-lang", "python"),
            ("content-type", "application/json"),
        ]);
        let kept = [
            ("accept-encoding", "identity"),
            ("anthropic-version", "2023-06-01"),
            ("anthropic-beta", "a,b"),
            ("openai-organization", "org"),
            ("x-stainless-lang", "python"),
            ("content-type", "application/json"),
        ];
        let cases = [
            ("openai", "api.openai.com", "authorization", "Bearer sk-real"),
            ("openrouter", "openrouter.ai", "authorization", "Bearer sk-real"),
            ("anthropic", "api.anthropic.com", "x-api-key", "sk-real"),
            ("google", "generativelanguage.googleapis.com", "x-goog-api-key", "sk-real"),
        ];
        for (name, host, header, key) in cases {
            let mut headers = given.clone();
            inward(&mut headers, &provider(name));
            let mut expected = map(&kept);
            expected.insert(HOST, HeaderValue::from_static(host));
            expected.insert(HeaderName::from_static(header), HeaderValue::from_static(key));
            assert_eq!(headers, expected, "{name}");
        }
    }

    #[test]
    fn a_provider_sets_nothing_for_our_origin() {
        let mut headers = map(&[
            ("set-cookie", "__cf=1"),
            ("strict-transport-security", "max-age=1"),
            ("alt-svc", "h3"),
            ("connection", "keep-alive"),
            ("keep-alive", "timeout=5"),
            ("x-request-id", "r"),
            ("content-type", "text/event-stream"),
        ]);
        outward(&mut headers);
        assert_eq!(headers, map(&[("x-request-id", "r"), ("content-type", "text/event-stream")]));
    }

    #[test]
    fn a_token_is_taken_wherever_the_sdks_put_it() {
        let find = |pairs: &[(&'static str, &'static str)]| {
            presented(&map(pairs)).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(find(&[("authorization", "bearer  a")]), ["a"]);
        assert_eq!(find(&[("x-api-key", "a"), ("authorization", "Bearer b")]), ["b", "a"]);
        assert_eq!(find(&[("x-goog-api-key", "a")]), ["a"]);
        assert_eq!(find(&[("authorization", "Basic a")]), [""; 0]);
        assert_eq!(take_key("key=a&alt=sse"), ("alt=sse".to_owned(), Some("a")));
        assert_eq!(take_key("alt=sse&monkey=1"), ("alt=sse&monkey=1".to_owned(), None));
        assert_eq!(take_key("a=%20&key=x&b"), ("a=%20&b".to_owned(), Some("x")));
    }
}
