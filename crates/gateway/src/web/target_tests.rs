use proptest::prelude::*;

use super::*;
use crate::routes::Role;

fn ask(path: &str) -> Result<Target, Refusal> {
    read(&Method::GET, Version::HTTP_11, &path.parse().unwrap(), &HeaderMap::new())
}

/// The row and what its owner sees.
fn check(path: &str, expected: Result<(&str, &str), Refusal>) {
    let target = ask(path);
    let seen = target.as_ref().map(|target| (target.row.pattern, target.path.as_str()));
    assert_eq!(seen.map_err(|refusal| *refusal), expected, "{path}");
}

#[test]
fn a_path_with_one_reading_reaches_its_owner_as_it_is() {
    check("/", Ok(("/", "/")));
    check("/?a=%2e%2e//\\", Ok(("/", "/?a=%2e%2e//\\")));
    check("/dev", Ok(("/dev", "/dev")));
    check("/dev?a", Ok(("/dev", "/dev?a")));
    check("/dev/", Ok(("/dev/*", "/")));
    check("/dev/a%20b?c=/dev/", Ok(("/dev/*", "/a%20b?c=/dev/")));
    check("/dev/dev/x", Ok(("/dev/*", "/dev/x")));
    check("/dev/login", Ok(("/dev/*", "/login")));
    check("/@id/__x00__virtual", Ok(("/*", "/@id/__x00__virtual")));
    check("/@fs/workspace/a.ts", Ok(("/*", "/@fs/workspace/a.ts")));
    check("/npm/@scope%2Fname", Ok(("/*", "/npm/@scope%2Fname")));
    check("/dev/npm/@scope%2fname", Ok(("/dev/*", "/npm/@scope%2fname")));
    check("/get/https://example.org/", Ok(("/*", "/get/https://example.org/")));
    check("/Assets/Logo.PNG", Ok(("/*", "/Assets/Logo.PNG")));
    check("/a/.well-known/...", Ok(("/*", "/a/.well-known/...")));
    check("/caf%C3%A9", Ok(("/*", "/caf%C3%A9")));
}

#[test]
fn a_path_with_two_readings_reaches_nobody() {
    let cases = [
        ("/dev/../admin", Refusal::Dots),
        ("/dev/%2e%2e/admin", Refusal::Dots),
        ("/dev/%2E./admin", Refusal::Dots),
        ("/dev/.%2e/admin", Refusal::Dots),
        ("/dev/%2e%2E%2fadmin", Refusal::Dots),
        ("/./login", Refusal::Dots),
        ("/a/..", Refusal::Dots),
        ("//admin", Refusal::DoubleSlash),
        ("/dev//admin", Refusal::DoubleSlash),
        ("/admin//sandboxes", Refusal::Ambiguous),
        ("/dev%2fadmin", Refusal::Ambiguous),
        ("/dev%2F", Refusal::Ambiguous),
        ("/%64ev/", Refusal::Ambiguous),
        ("/DEV/", Refusal::Ambiguous),
        ("/Dev", Refusal::Ambiguous),
        ("/Login", Refusal::Ambiguous),
        ("/admin%2Fsandboxes", Refusal::Ambiguous),
        ("/admin/%73andboxes/live/stop", Refusal::Ambiguous),
        ("/%2flogin", Refusal::Ambiguous),
        ("/dev\\admin", Refusal::Backslash),
        ("/dev/..%5cadmin", Refusal::Backslash),
        ("/%5C%5Cevil", Refusal::Backslash),
        ("/a%00b", Refusal::Control),
        ("/dev/%0d%0aSet-Cookie:x", Refusal::Control),
        ("/%7f", Refusal::Control),
        ("/100%", Refusal::Encoding),
        ("/%2", Refusal::Encoding),
        ("/%zz", Refusal::Encoding),
        ("/%%32e", Refusal::Encoding),
    ];
    for (path, refusal) in cases {
        check(path, Err(refusal));
    }
}

#[test]
fn only_paths_are_targets() {
    let ask = |method: &str, version, uri: &str| {
        let method = method.parse().unwrap();
        read(&method, version, &uri.parse().unwrap(), &HeaderMap::new()).map(|target| target.path)
    };
    let (one, two) = (Version::HTTP_11, Version::HTTP_2);
    assert_eq!(ask("CONNECT", one, "evil.example:443"), Err(Refusal::NotAPath));
    assert_eq!(ask("GET", one, "http://127.0.0.1/dev/"), Err(Refusal::NotAPath));
    assert_eq!(ask("GET", one, "evil.example:443"), Err(Refusal::NotAPath));
    assert_eq!(ask("OPTIONS", one, "*"), Err(Refusal::NotAPath));
    assert_eq!(ask("GET", two, "https://127.0.0.1/dev/a"), Ok(PathAndQuery::from_static("/a")));
    assert_eq!(ask("CONNECT", two, "https://127.0.0.1/ws"), Err(Refusal::NotAPath));
}

fn with(
    version: Version,
    uri: &str,
    headers: &[(&'static str, &'static str)],
) -> Result<Target, Refusal> {
    let headers = headers
        .iter()
        .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect();
    read(&Method::POST, version, &uri.parse().unwrap(), &headers)
}

#[test]
fn a_request_names_one_host() {
    let host = |version, uri, headers: &[_]| with(version, uri, headers).map(|target| target.host);
    let (one, two) = (Version::HTTP_11, Version::HTTP_2);
    let a = Ok(Some(HeaderValue::from_static("a")));
    assert_eq!(host(one, "/", &[("host", "a")]), a);
    assert_eq!(host(one, "/", &[]), Ok(None));
    assert_eq!(host(one, "/", &[("host", "a"), ("host", "b")]), Err(Refusal::Hosts));
    assert_eq!(host(one, "/", &[("host", "a"), ("host", "a")]), Err(Refusal::Hosts));
    assert_eq!(host(two, "https://a/", &[]), a);
    assert_eq!(host(two, "https://a/", &[("host", "a")]), a);
    assert_eq!(host(two, "https://a/", &[("host", "b")]), Err(Refusal::Hosts));
}

#[test]
fn a_body_has_one_length() {
    let ask = |headers: &[_]| with(Version::HTTP_11, "/", headers).map(|_| ());
    assert_eq!(ask(&[("transfer-encoding", "Chunked")]), Ok(()));
    assert_eq!(ask(&[("content-length", "1")]), Ok(()));
    for bad in [
        &[("transfer-encoding", "gzip, chunked")][..],
        &[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")],
        &[("transfer-encoding", "chunked"), ("content-length", "1")],
        &[("content-length", "1"), ("content-length", "1")],
    ] {
        assert_eq!(ask(bad), Err(Refusal::Framing), "{bad:?}");
    }
}

/// Pieces that paths which mean harm are made of.
fn path() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/",
        "//",
        "dev",
        "DEV",
        "admin",
        "sandboxes",
        "login",
        "ws",
        "a",
        ".",
        "..",
        "%2e",
        "%2E",
        "%2f",
        "%2F",
        "%5c",
        "\\",
        "%00",
        "%0a",
        "%25",
        "%",
        "%64",
        "?",
        "é",
        ";",
        "@",
        "%c3%a9",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| format!("/{}", pieces.concat()))
}

proptest! {
    #[test]
    fn what_is_decided_on_is_what_the_owner_sees(text in path()) {
        let Ok(uri) = text.parse::<Uri>() else { return Ok(()) };
        let Ok(target) = read(&Method::GET, Version::HTTP_11, &uri, &HeaderMap::new()) else {
            return Ok(());
        };
        let role = match target.row.owner {
            Owner::Role(role) => Some(role),
            Owner::Gateway(_) => None,
        };
        // The prefix and what the sandbox sees are what came in, byte by byte.
        let prefix = role.map_or("", Role::prefix);
        prop_assert_eq!(format!("{prefix}{}", target.path), uri.to_string());
        let seen = target.path.as_str();
        prop_assert!(seen.starts_with('/') && !seen.starts_with("//"));
        // Nobody who decodes it finds another place in it.
        let path = target.path.path();
        let decoded = percent_decode_str(path).decode_utf8_lossy().into_owned();
        for segment in decoded.split('/') {
            prop_assert!(!matches!(segment, "." | ".."), "{}", decoded);
            prop_assert!(!segment.contains('\\') && !segment.contains(char::is_control));
        }
        let whole = format!("{prefix}{decoded}").to_lowercase();
        prop_assert_eq!(routes::decide(&whole).owner, target.row.owner);
    }
}
