//! Where a provider is: read once from the configuration, and decided by nothing else.

use std::fmt;

use http::HeaderValue;
use http::uri::{Authority, Uri};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Base {
    pub(crate) secure: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// As `Host` tells it.
    pub(crate) authority: HeaderValue,
    /// What stands before every path: empty, or a slash and segments.
    pub(crate) prefix: String,
}

impl Base {
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("base_url \"{}\" {why}", url.escape_debug());
        let uri: Uri = url.parse().map_err(|_| wrong("is no address"))?;
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong("begins with neither https:// nor http://")),
        };
        let authority = uri.authority().map(Authority::as_str).unwrap_or_default();
        if authority.contains('@') {
            return Err(wrong("has a user in it; keys go into key_env or key_file"));
        }
        if url.contains(['?', '#']) {
            return Err(wrong("has more than a path behind the host"));
        }
        let host =
            uri.host().filter(|host| !host.is_empty()).ok_or_else(|| wrong("has no host"))?;
        let prefix = uri.path().trim_end_matches('/');
        if !prefix.is_empty() && !super::paths::is_plain(prefix.trim_start_matches('/')) {
            return Err(wrong("has a path that can be read in two ways"));
        }
        Ok(Self {
            secure,
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: uri.port_u16().unwrap_or(if secure { 443 } else { 80 }),
            authority: HeaderValue::try_from(authority).map_err(|_| wrong("is no address"))?,
            prefix: prefix.to_owned(),
        })
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        let authority = String::from_utf8_lossy(self.authority.as_bytes());
        write!(f, "{scheme}://{authority}{}", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_path() {
        let base = Base::parse("https://api.example/v1/").unwrap();
        assert_eq!((base.secure, base.host.as_str(), base.port), (true, "api.example", 443));
        assert_eq!(base.to_string(), "https://api.example/v1");
        let base = Base::parse("http://[::1]:11434").unwrap();
        assert_eq!((base.secure, base.host.as_str(), base.port), (false, "::1", 11434));
        assert_eq!(base.prefix, "");
        for bad in
            ["", "api.example", "file:///etc", "https://u:p@x/", "https://x/?a", "https://x/../y"]
        {
            assert!(Base::parse(bad).is_err(), "{bad}");
        }
    }
}
