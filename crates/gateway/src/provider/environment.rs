//! The variables by which SDKs and agents in a sandbox find models. Pure.

use std::collections::BTreeMap;

use nacre_wire::models::PORT;

use super::call::PREFIX;
use super::config::Kind;

/// For a sandbox with these providers and this token.
pub(super) fn variables(providers: &[(&str, Kind)], token: &str) -> BTreeMap<String, String> {
    let root = format!("http://127.0.0.1:{PORT}{}", PREFIX.trim_end_matches('/'));
    let url = |name: &str| format!("{root}/{name}");
    let mut variables = BTreeMap::new();
    let mut set = |name: &str, value: String| drop(variables.insert(name.to_owned(), value));
    if providers.is_empty() {
        return variables;
    }
    set("NACRE_PROVIDER_URL", root.clone());
    set("NACRE_PROVIDER_TOKEN", token.to_owned());
    // A server of one's own stands in for OpenAI's where there is no other.
    let openai = first(providers, Kind::Openai).or(first(providers, Kind::OpenaiCompatible));
    if let Some(name) = openai {
        set("OPENAI_BASE_URL", url(name));
        set("OPENAI_API_BASE", url(name));
        set("OPENAI_API_KEY", token.to_owned());
    }
    if let Some(name) = first(providers, Kind::Anthropic) {
        set("ANTHROPIC_BASE_URL", url(name));
        // The official SDKs and Claude Code read the first, most other programs only the second.
        set("ANTHROPIC_AUTH_TOKEN", token.to_owned());
        set("ANTHROPIC_API_KEY", token.to_owned());
    }
    if let Some(name) = first(providers, Kind::Google) {
        set("GOOGLE_GEMINI_BASE_URL", url(name));
        set("GEMINI_API_KEY", token.to_owned());
    }
    if let Some(name) = first(providers, Kind::Openrouter) {
        set("OPENROUTER_BASE_URL", url(name));
        set("OPENROUTER_API_KEY", token.to_owned());
    }
    variables
}

/// The one that is called like its kind, or else the first of it.
fn first<'a>(providers: &[(&'a str, Kind)], kind: Kind) -> Option<&'a str> {
    let of_kind = || providers.iter().filter(|(_, its)| *its == kind).map(|(name, _)| *name);
    of_kind().find(|name| *name == kind.as_str()).or(of_kind().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_there_is_named() {
        assert_eq!(variables(&[], "t"), BTreeMap::new());
        let found =
            variables(&[("claude", Kind::Anthropic), ("ollama", Kind::OpenaiCompatible)], "t");
        let pairs: Vec<_> = found.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            pairs,
            [
                "ANTHROPIC_API_KEY=t",
                "ANTHROPIC_AUTH_TOKEN=t",
                "ANTHROPIC_BASE_URL=http://127.0.0.1:8002/provider/v1/claude",
                "NACRE_PROVIDER_TOKEN=t",
                "NACRE_PROVIDER_URL=http://127.0.0.1:8002/provider/v1",
                "OPENAI_API_BASE=http://127.0.0.1:8002/provider/v1/ollama",
                "OPENAI_API_KEY=t",
                "OPENAI_BASE_URL=http://127.0.0.1:8002/provider/v1/ollama",
            ]
        );
    }

    #[test]
    fn one_that_is_called_like_its_kind_comes_first() {
        let several =
            [("a", Kind::Openai), ("openai", Kind::Openai), ("own", Kind::OpenaiCompatible)];
        assert_eq!(
            variables(&several, "t")["OPENAI_BASE_URL"],
            "http://127.0.0.1:8002/provider/v1/openai"
        );
    }
}
