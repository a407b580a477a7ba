//! What the browser brings back from the authorization server. Pure.

use percent_encoding::percent_decode_str;

const LONGEST: usize = 4096;

/// Pairs of a query, each name at most once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// `None` when it is too long, not text, or says something twice.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > LONGEST {
            return None;
        }
        let mut pairs: Vec<(String, String)> = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if pairs.iter().any(|(seen, _)| *seen == name) {
                return None;
            }
            pairs.push((name, value));
        }
        Some(Self(pairs))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.iter().find(|(found, _)| found == name)?.1.as_str();
        (!value.is_empty()).then_some(value)
    }
}

fn decode(text: &str) -> Option<String> {
    let spaced = text.replace('+', " ");
    Some(percent_decode_str(&spaced).decode_utf8().ok()?.into_owned())
}

/// The answer to one flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Callback {
    Code {
        iss: String,
        code: String,
    },
    /// Somebody said no, or the server did.
    Error {
        iss: String,
        error: String,
    },
}

impl Callback {
    /// `None` when there is no `iss`, or neither a code nor an error, or both.
    pub fn read(query: &Query) -> Option<Self> {
        let iss = query.get("iss")?.to_owned();
        match (query.get("code"), query.get("error")) {
            (Some(code), None) => Some(Self::Code { iss, code: code.to_owned() }),
            (None, Some(error)) => Some(Self::Error { iss, error: error.to_owned() }),
            (Some(_), Some(_)) | (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_code_or_an_error_and_says_from_whom() {
        let read = |text: &str| Callback::read(&Query::parse(text)?);
        let iss = "https://as.example".to_owned();
        assert_eq!(
            read("iss=https%3A%2F%2Fas.example&state=s&code=a%20b+c"),
            Some(Callback::Code { iss: iss.clone(), code: "a b c".to_owned() })
        );
        assert_eq!(
            read("error=access_denied&iss=https://as.example&state=s"),
            Some(Callback::Error { iss, error: "access_denied".to_owned() })
        );
        for bad in [
            "",
            "code=a&state=s",
            "iss=&code=a",
            "iss=x&state=s",
            "iss=x&code=a&error=b",
            "iss=x&iss=y&code=a",
            "iss=x&code=a&code=b",
            "iss=x&code=%ff",
            "iss=x&code=",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert_eq!(Query::parse(&"a".repeat(5000)), None);
    }
}
