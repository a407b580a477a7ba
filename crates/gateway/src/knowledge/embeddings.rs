//! Meaning, by the table in the program or by a provider's model.
//!
//! The table answers at once. A provider is asked in the background for what has no vector yet, a
//! batch at a time, through the same way that every model call takes: with a key that stays there, a
//! budget and a record. While it does not answer, words alone find things.

use std::sync::Arc;
use std::time::Duration;

use nacre_knowledge::embed::Table;
use nacre_knowledge::{Pending, Quantised};
use nacre_wire::{ApiError, ErrorKind};

use super::{EmbeddingModel, Knowledge};

const BATCH: usize = 64;
/// A text for a provider, in bytes: well below what any model takes.
const LONGEST: usize = 8 * 1024;
/// What models with the smallest windows take of a text, in bytes.
const SHORT: usize = 1024;
/// What no model refuses.
const HARMLESS: &str = "word";
/// How long a question waits for its vector.
const QUESTION: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

impl Knowledge {
    /// The vector of a question; without one, why.
    pub(super) async fn meaning(&self, text: &str) -> (Option<Vec<f32>>, Option<String>) {
        let text = beginning(text, LONGEST);
        let Some(model) = &self.config.embeddings else {
            return (Some(Table::builtin().embed(&text).to_vec()), None);
        };
        if text.trim().is_empty() {
            return (None, None);
        }
        let asked = self.ask(model, vec![text]);
        let failed = match tokio::time::timeout(QUESTION, asked).await {
            Ok(Ok(mut vectors)) => return (vectors.pop(), None),
            Ok(Err(error)) => error.message,
            Err(_) => "no answer in time".to_owned(),
        };
        (None, Some(format!("found by word only: {}: {failed}", model.name())))
    }

    async fn ask(
        &self,
        model: &EmbeddingModel,
        texts: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, ApiError> {
        self.models.embeddings(&model.provider, &model.model, &texts).await
    }

    /// One for each text, none for what the model will not have. A batch that is refused is asked for in
    /// halves, so that one text holds up nobody else.
    async fn vectors(
        &self,
        model: &EmbeddingModel,
        texts: &[String],
    ) -> Result<Vec<Option<Quantised>>, ApiError> {
        let mut made = vec![None; texts.len()];
        let whole = 0..texts.len();
        let mut parts = vec![whole];
        while let Some(part) = parts.pop() {
            match self.ask(model, texts[part.clone()].to_vec()).await {
                Ok(vectors) => {
                    for (at, vector) in part.zip(vectors) {
                        made[at] = Quantised::of(&vector);
                    }
                }
                Err(error) if error.kind != ErrorKind::InvalidRequest => return Err(error),
                Err(error) if part.len() < 2 => {
                    for at in part {
                        made[at] = self.refused(model, &texts[at], &error).await?;
                    }
                }
                Err(_) => {
                    let middle = part.start + part.len() / 2;
                    parts.extend([middle..part.end, part.start..middle]);
                }
            }
        }
        Ok(made)
    }

    /// The beginning of a text says most of what it is about. When that is refused too, it is found by its
    /// words only; but when a word is, it is not the text that is refused.
    async fn refused(
        &self,
        model: &EmbeddingModel,
        text: &str,
        error: &ApiError,
    ) -> Result<Option<Quantised>, ApiError> {
        self.ask(model, vec![HARMLESS.to_owned()]).await?;
        if text.len() > SHORT {
            match self.ask(model, vec![beginning(text, SHORT)]).await {
                Ok(vectors) => return Ok(vectors.first().and_then(|one| Quantised::of(one))),
                Err(error) if error.kind != ErrorKind::InvalidRequest => return Err(error),
                Err(_) => {}
            }
        }
        tracing::warn!(%error, model = model.name(), "a text is found by its words only");
        Ok(None)
    }

    /// Gives a batch of what waits its vectors. False when nothing does.
    async fn fill(&self) -> Result<bool, ApiError> {
        let pending = self.with(|library| library.pending(BATCH)).await?;
        if pending.is_empty() {
            return Ok(false);
        }
        let texts = pending.iter().map(|pending| beginning(pending.text(), LONGEST));
        let made: Vec<(Pending, Option<Quantised>)> = match &self.config.embeddings {
            Some(model) => {
                let vectors = self.vectors(model, &texts.collect::<Vec<_>>()).await?;
                pending.iter().cloned().zip(vectors).collect()
            }
            None => {
                let embed = |text: String| Quantised::of(&Table::builtin().embed(&text));
                pending.iter().cloned().zip(texts.map(embed)).collect()
            }
        };
        self.with(move |library| library.fill(&made)).await?;
        Ok(true)
    }
}

/// Runs until it is dropped.
pub(super) async fn keep(knowledge: Arc<Knowledge>) {
    let mut pause = FIRST_PAUSE;
    loop {
        // The table makes vectors as documents come; only a change of the model leaves some over, and
        // whoever puts a document in says so.
        knowledge.waiting.notified().await;
        loop {
            match knowledge.fill().await {
                Ok(true) => pause = FIRST_PAUSE,
                Ok(false) => break,
                Err(error) => {
                    tracing::warn!(%error, "no embeddings; trying again in {} s", pause.as_secs());
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}

fn beginning(text: &str, at_most: usize) -> String {
    let mut end = at_most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
