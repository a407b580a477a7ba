//! Forms that our own pages send. Pure, but for reading.

use axum::body::Body;
use nacre_wire::{ApiError, ErrorKind};
use percent_encoding::percent_decode_str;

const LARGEST: usize = 32 * 1024;

/// `application/x-www-form-urlencoded`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    pub(super) async fn read(body: Body) -> Result<Self, ApiError> {
        match axum::body::to_bytes(body, LARGEST).await {
            Ok(bytes) => Ok(Self::parse(&bytes)),
            Err(_) => Err(ApiError::new(ErrorKind::TooLarge, "the form is too large")),
        }
    }

    /// What is not text reads as empty.
    pub(super) fn parse(body: &[u8]) -> Self {
        let text = std::str::from_utf8(body).unwrap_or("");
        let decode = |text: &str| {
            percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
        };
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        Self(pairs.map(|(name, value)| (decode(name), decode(value))).collect())
    }

    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// Empty when it is not there.
    pub(super) fn text(&self, name: &str) -> &str {
        self.field(name).unwrap_or("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded() {
        let form = Form::parse(b"a=1&b=x+y%2Bz%C3%A9&c=&a=2&nothing");
        assert_eq!(form.field("a"), Some("1"));
        assert_eq!(form.text("b"), "x y+z\u{e9}");
        assert_eq!((form.field("c"), form.field("nothing")), (Some(""), None));
        assert_eq!(Form::parse(b"\xff=1").field("\u{fffd}"), None);
    }
}
