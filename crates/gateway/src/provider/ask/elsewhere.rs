//! Whether a body names what is not in it: files and pages that the provider keeps or fetches. How many
//! tokens those are, no length tells. Pure.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// What the value of a key, where it is a text, says about where something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It names something that is kept.
    Name,
    /// It, or the `url` in it, is an address.
    Address,
    /// `url`, of which the object around it says what it is for.
    Url,
    Type,
    None,
}

impl Role {
    fn of(key: &str) -> Self {
        match key {
            "file_id" | "fileUri" | "file_uri" => Self::Name,
            "file_data" => Self::Address,
            "url" => Self::Url,
            "type" => Self::Type,
            key if key.ends_with("_url") => Self::Address,
            _ => Self::None,
        }
    }
}

/// What a value was.
enum Told {
    Address,
    /// The text `url`.
    Url,
    Text,
    Other,
}

impl Told {
    fn of(text: &str) -> Self {
        match text {
            "url" => Self::Url,
            text if text.starts_with("http://") || text.starts_with("https://") => Self::Address,
            _ => Self::Text,
        }
    }
}

/// Goes through one value, and says whether it found something.
pub(super) struct Search<'f>(pub(super) &'f mut bool);

impl<'a> DeserializeSeed<'a> for Search<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, value: D) -> Result<(), D::Error> {
        Walk { found: self.0, address: false }.deserialize(value).map(drop)
    }
}

struct Walk<'f> {
    found: &'f mut bool,
    /// Whether the `url` of an object is one to fetch.
    address: bool,
}

impl<'a> DeserializeSeed<'a> for Walk<'_> {
    type Value = Told;

    fn deserialize<D: Deserializer<'a>>(self, value: D) -> Result<Told, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Walk<'_> {
    type Value = Told;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Told, A::Error> {
        let (mut address, mut fetched) = (false, self.address);
        while let Some(role) = map.next_key_seed(Key)? {
            let inside = Walk { found: &mut *self.found, address: role == Role::Address };
            let told = map.next_value_seed(inside)?;
            match (role, told) {
                (Role::Name, Told::Address | Told::Text | Told::Url)
                | (Role::Address, Told::Address) => *self.found = true,
                (Role::Url, Told::Address) => address = true,
                (Role::Type, Told::Url) => fetched = true,
                (
                    Role::Name | Role::Address | Role::Url | Role::Type | Role::None,
                    Told::Address | Told::Url | Told::Text | Told::Other,
                ) => {}
            }
        }
        *self.found |= address && fetched;
        Ok(Told::Other)
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<Told, A::Error> {
        while seq.next_element_seed(Walk { found: &mut *self.found, address: false })?.is_some() {}
        Ok(Told::Other)
    }

    fn visit_str<E>(self, text: &str) -> Result<Told, E> {
        Ok(Told::of(text))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Told, E> {
        Ok(Told::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Told, E> {
        Ok(Told::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Told, E> {
        Ok(Told::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Told, E> {
        Ok(Told::Other)
    }

    fn visit_unit<E>(self) -> Result<Told, E> {
        Ok(Told::Other)
    }
}

struct Key;

impl<'a> DeserializeSeed<'a> for Key {
    type Value = Role;

    fn deserialize<D: Deserializer<'a>>(self, key: D) -> Result<Role, D::Error> {
        key.deserialize_str(self)
    }
}

impl Visitor<'_> for Key {
    type Value = Role;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Role, E> {
        Ok(Role::of(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_or_fetched_is_seen_wherever_it_is() {
        let check = |expected: bool, bodies: &[&str]| {
            for body in bodies {
                let mut found = false;
                let mut reader = serde_json::Deserializer::from_str(body);
                Search(&mut found).deserialize(&mut reader).unwrap();
                assert_eq!(found, expected, "{body}");
            }
        };
        check(
            true,
            &[
                r#"[{"content":[{"type":"document","source":{"type":"url","url":"https://a/b.pdf"}}]}]"#,
                r#"[{"content":[{"source":{"url":"http://a","type":"url"}}]}]"#,
                r#"[{"content":[{"image_url":{"detail":"low","url":"https://a"}}]}]"#,
                r#"[{"content":[{"type":"input_file","file_url":"https://a"}]}]"#,
                r#"[{"content":[{"type":"input_file","\u0066ile_id":"f-1"}]}]"#,
                r#"[{"content":[{"type":"file","file":{"file_data":"https://a"}}]}]"#,
                r#"[{"parts":[{"fileData":{"fileUri":"gs://a"}}]}]"#,
            ],
        );
        check(
            false,
            &[
                r#""https://a""#,
                r#"[{"content":[{"image_url":{"url":"data:image/png;base64,x"}}]}]"#,
                r#"[{"content":[{"type":"input_image","image_url":"data:x","file_id":null}]}]"#,
                r#"[{"type":"tool_use","name":"fetch","input":{"url":"https://a"}}]"#,
                r#"[{"properties":{"url":{"type":"string"},"file_id":{"type":"string"}}}]"#,
                r#"[{"content":"{\"file_id\":\"f-1\"}"},1,-1,1.5,true,null]"#,
            ],
        );
    }
}
