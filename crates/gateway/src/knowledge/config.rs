//! `[knowledge]` in `nacre.toml`, as written and as resolved.

use serde::Deserialize;

/// The `[knowledge]` table, before defaults.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct RawKnowledgeConfig {
    /// Whether the documents of live and dev are indexed as they change.
    pub index: Option<bool>,
    /// Source code too, not only text.
    pub code: Option<bool>,
    /// `provider/model` that makes vectors; the table in the program when absent.
    pub embeddings: Option<String>,
    /// Names of files and folders, or paths from the workspace, that are left out.
    pub exclude: Vec<String>,
    /// Whether what `.gitignore` files name is left out too.
    pub gitignore: Option<bool>,
}

/// What a gateway does that was told nothing: it keeps facts and editions, and looks at no workspace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KnowledgeConfig {
    pub index: bool,
    pub code: bool,
    pub embeddings: Option<EmbeddingModel>,
    pub exclude: Vec<String>,
    pub gitignore: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingModel {
    pub provider: String,
    pub model: String,
}

impl EmbeddingModel {
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }
}

impl RawKnowledgeConfig {
    /// Or what cannot be meant.
    pub fn resolve(self) -> Result<KnowledgeConfig, String> {
        let embeddings = self.embeddings.map(|text| match text.split_once('/') {
            Some((provider, model)) if !provider.is_empty() && !model.is_empty() => {
                Ok(EmbeddingModel { provider: provider.to_owned(), model: model.to_owned() })
            }
            Some(_) | None => Err(format!(
                "[knowledge] embeddings = \"{text}\": expected something like \
                 openai/text-embedding-3-small"
            )),
        });
        let exclude = self.exclude.iter().map(|path| path.trim_matches('/').to_owned());
        Ok(KnowledgeConfig {
            index: self.index.unwrap_or(true),
            code: self.code.unwrap_or(false),
            embeddings: embeddings.transpose()?,
            exclude: exclude.filter(|path| !path.is_empty()).collect(),
            gitignore: self.gitignore.unwrap_or(true),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_named_with_its_provider() {
        let resolve = |text: &str| {
            let embeddings = Some(text.to_owned());
            RawKnowledgeConfig { embeddings, ..Default::default() }.resolve()
        };
        let named = resolve("router/openai/text-embedding-3-small").unwrap().embeddings.unwrap();
        assert_eq!(named.provider, "router");
        assert_eq!(named.name(), "router/openai/text-embedding-3-small");
        for bad in ["", "model", "/model", "provider/"] {
            assert!(resolve(bad).is_err(), "{bad}");
        }
        let usual = RawKnowledgeConfig::default().resolve().unwrap();
        assert_eq!((usual.index, usual.code, usual.embeddings), (true, false, None));
    }
}
