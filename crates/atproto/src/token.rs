//! The answer of a token endpoint, judged. Pure.

use serde::Deserialize;

use crate::app::SCOPE;
use crate::did::Did;

/// Whom the server says that it signed in. Only its own word, until their document confirms it.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) sub: Did,
}

/// What is given back, whatever else is wrong with the answer. It has no `Debug` that shows it.
#[derive(Default)]
pub(crate) struct Tokens(Vec<String>);

impl Tokens {
    /// Whatever of it could be a token.
    pub(crate) fn find(body: &[u8]) -> Self {
        let answer: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        let text =
            |name: &str| answer.get(name).and_then(|token| token.as_str()).map(str::to_owned);
        Self(["refresh_token", "access_token"].iter().filter_map(|name| text(name)).collect())
    }

    pub(crate) fn into_inner(self) -> Vec<String> {
        self.0
    }
}

#[derive(Deserialize)]
struct Answer {
    access_token: String,
    token_type: String,
    scope: String,
    sub: String,
}

pub(crate) fn judge(body: &[u8]) -> Result<Granted, String> {
    let answer: Answer = serde_json::from_slice(body)
        .map_err(|error| format!("the answer is malformed: {error}"))?;
    if answer.access_token.is_empty() {
        return Err("the answer has no token".to_owned());
    }
    if !answer.token_type.eq_ignore_ascii_case("DPoP") {
        return Err("the token is not bound to our key".to_owned());
    }
    if !answer.scope.split(' ').any(|scope| scope == SCOPE) {
        return Err(format!("the scope {SCOPE} was not granted"));
    }
    let sub = answer.sub.parse().map_err(|()| "the subject is not a DID".to_owned())?;
    Ok(Granted { sub })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const DID: &str = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa";

    #[test]
    fn only_a_bound_token_with_the_scope_names_somebody() {
        let good =
            json!({ "access_token": "t", "token_type": "DPoP", "scope": "x atproto", "sub": DID });
        assert_eq!(judge(good.to_string().as_bytes()).unwrap().sub.as_str(), DID);
        let without = |name: &str| {
            let mut answer = good.clone();
            answer.as_object_mut().unwrap().remove(name);
            answer
        };
        let with = |name: &str, value: serde_json::Value| {
            let mut answer = good.clone();
            answer[name] = value;
            answer
        };
        for bad in [
            without("access_token"),
            without("token_type"),
            without("scope"),
            without("sub"),
            with("access_token", json!("")),
            with("token_type", json!("Bearer")),
            with("scope", json!("")),
            with("scope", json!("atprotox transition:generic")),
            with("scope", json!(["atproto"])),
            with("scope", json!("atproto\u{0}")),
            with("sub", json!("alice.test")),
            with("sub", json!(7)),
            with("sub", json!(format!("{DID} "))),
            json!([]),
            json!(null),
            json!("atproto"),
        ] {
            assert!(judge(bad.to_string().as_bytes()).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = (judge(&body), Tokens::find(&body).into_inner());
        }

        #[test]
        fn only_the_scope_itself_grants_it(scope in "[ a-z:\\\\\"\u{0}-\u{1f}]{0,40}") {
            let answer = json!({ "access_token": "t", "token_type": "DPoP", "scope": scope, "sub": DID });
            let granted = judge(answer.to_string().as_bytes()).is_ok();
            prop_assert_eq!(granted, scope.split(' ').any(|one| one == "atproto"));
        }
    }
}
