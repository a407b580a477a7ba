//! Paths as JSON and as query parameters, whatever bytes they hold.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A path in a JSON body: a string when it is UTF-8, `{"base64": "..."}` when it is not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WirePath(pub PathBuf);

impl WirePath {
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl<T: AsRef<OsStr>> From<T> for WirePath {
    fn from(path: T) -> Self {
        Self(PathBuf::from(path.as_ref()))
    }
}

impl std::fmt::Display for WirePath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.display().fmt(f)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Repr {
    Text(String),
    Bytes { base64: String },
}

impl Serialize for WirePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => Repr::Bytes { base64: STANDARD.encode(self.0.as_os_str().as_bytes()) }
                .serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for WirePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Repr::deserialize(deserializer)? {
            Repr::Text(text) => Self(PathBuf::from(text)),
            Repr::Bytes { base64 } => Self(PathBuf::from(OsString::from_vec(
                STANDARD.decode(base64).map_err(de::Error::custom)?,
            ))),
        })
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for WirePath {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder};
        let bytes = ObjectBuilder::new().property("base64", String::schema()).required("base64");
        OneOfBuilder::new()
            .item(String::schema())
            .item(bytes)
            .description(Some("A path; base64 when it is not UTF-8."))
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for WirePath {}

const QUERY: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_').remove(b'~');

/// A path as the value of a query parameter.
pub fn to_query(path: impl AsRef<Path>) -> String {
    percent_encode(path.as_ref().as_os_str().as_bytes(), QUERY).to_string()
}

/// A value for a query parameter.
pub fn text_to_query(text: &str) -> String {
    percent_encode(text.as_bytes(), QUERY).to_string()
}

/// The bytes behind a query value; `+` is a plus, not a space.
pub fn from_query(value: &str) -> PathBuf {
    PathBuf::from(OsString::from_vec(percent_decode_str(value).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_survive_json_and_query(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let path = WirePath(PathBuf::from(OsString::from_vec(bytes)));
            let json = serde_json::to_string(&path).unwrap();
            prop_assert_eq!(&serde_json::from_str::<WirePath>(&json).unwrap(), &path);
            prop_assert_eq!(&from_query(&to_query(&path.0)), &path.0);
        }
    }
}
