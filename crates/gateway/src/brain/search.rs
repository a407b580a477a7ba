//! What was said in conversations, found by its words: their journals are read from disk, the one that was
//! used last first. Nothing is kept of a search, so nothing has to be kept current.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use nacre_wire::conductor::{Said, SaidList};
use nacre_wire::{ApiError, ErrorKind};
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::{Brain, blocking, memory};

/// Whoever types asks again with each letter; one search after the other is fast enough.
static ONE_AT_A_TIME: Semaphore = Semaphore::const_new(1);
const LONGEST: usize = 200;
const MOST_FOUND: usize = 50;
/// Of all journals together.
const MOST_READ: u64 = 256 << 20;
/// Characters of an excerpt before and behind what was found.
const BEFORE: usize = 30;
const BEHIND: usize = 110;

impl Brain {
    pub(super) async fn search(&self, words: &str) -> Result<SaidList, ApiError> {
        if words.len() > LONGEST {
            let message = format!("a search has at most {LONGEST} bytes");
            return Err(ApiError::new(ErrorKind::InvalidRequest, message));
        }
        let words = Words::of(words);
        if words.0.is_empty() {
            return Ok(SaidList { found: Vec::new(), incomplete: false });
        }
        let alone = ONE_AT_A_TIME.acquire().await;
        let alone = alone.map_err(|error| ApiError::new(ErrorKind::Internal, error.to_string()))?;
        let journals: Vec<_> =
            self.list().into_iter().map(|info| (self.0.index.journal(&info.id), info.id)).collect();
        let searching = tokio::task::spawn_blocking(move || {
            // Until it has ended, also when nobody waits for it any more.
            let _alone = alone;
            Ok(all(journals, &words, MOST_READ))
        });
        blocking("conversations", searching).await
    }
}

fn all(journals: Vec<(PathBuf, String)>, words: &Words, most_read: u64) -> SaidList {
    let mut list = SaidList { found: Vec::new(), incomplete: false };
    let mut left = most_read;
    for (path, id) in journals {
        let size = path.metadata().map_or(0, |meta| meta.len());
        if size > left || list.found.len() == MOST_FOUND {
            list.incomplete = true;
            break;
        }
        left -= size;
        match last(&path, words) {
            Ok(found) => list.found.extend(found.map(|(line, excerpt)| Said {
                id,
                seq: line.seq,
                at: line.at,
                excerpt,
            })),
            // Nothing was said yet, or it was removed just now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "a conversation cannot be searched");
                list.incomplete = true;
            }
        }
    }
    list
}

/// The last message of a journal that has them all.
fn last(path: &Path, words: &Words) -> io::Result<Option<(Line, String)>> {
    let mut file = BufReader::new(File::open(path)?);
    let mut found = None;
    let mut bytes = Vec::new();
    while file.read_until(b'\n', &mut bytes)? > 0 {
        // What tools did is most of a journal, and is not parsed.
        if matches!(memory::kind(&bytes), Some("user_message_chunk" | "reply"))
            && let Ok(line) = serde_json::from_slice::<Line>(&bytes)
            && let Some(excerpt) = words.excerpt(line.said())
        {
            found = Some((line, excerpt));
        }
        bytes.clear();
    }
    Ok(found)
}

/// Of an event, what a search needs.
#[derive(Debug, Deserialize)]
struct Line {
    seq: u64,
    at: u64,
    content: Option<Text>,
    reply: Option<Text>,
}

#[derive(Debug, Deserialize)]
struct Text {
    #[serde(default)]
    text: String,
}

impl Line {
    fn said(&self) -> &str {
        self.content.as_ref().or(self.reply.as_ref()).map_or("", |text| &text.text)
    }
}

/// In small letters.
#[derive(Debug)]
struct Words(Vec<String>);

impl Words {
    fn of(text: &str) -> Self {
        Self(text.split_whitespace().map(str::to_lowercase).collect())
    }

    /// Around the first of them, when all of them are there.
    fn excerpt(&self, text: &str) -> Option<String> {
        let small = text.to_lowercase();
        if !self.0.iter().all(|word| small.contains(word)) {
            return None;
        }
        // By characters: a letter may have another length when it is small.
        let place = small.find(self.0.first()?).map_or(0, |at| small[..at].chars().count());
        let from = place.saturating_sub(BEFORE);
        let cut: String = text.chars().skip(from).take(BEFORE + BEHIND).collect();
        let line = cut.split_whitespace().collect::<Vec<_>>().join(" ");
        let more = from + BEFORE + BEHIND < text.chars().count();
        Some(format!(
            "{}{line}{}",
            if from > 0 { "\u{2026}" } else { "" },
            if more { "\u{2026}" } else { "" }
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOURNAL: &str = concat!(
        r#"{"seq":1,"at":10,"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"Where does the Sea begin?"}}"#,
        "\n",
        r#"{"seq":2,"at":20,"sessionUpdate":"tool_call","toolCallId":"a","title":"the secret sea","kind":"edit","status":"pending","rawInput":{}}"#,
        "\n",
        r#"{"seq":3,"at":30,"sessionUpdate":"reply","reply":{"text":"At the\nshore, where the SEA ends.","usage":{}}}"#,
        "\n",
        r#"{"seq":4,"at":40,"sessionUpdate":"reply","reply":{"calls":[]}}"#,
        "\n{\"seq\":5,\"at\":50,\"sess",
    );

    fn search(words: &str) -> Vec<(u64, String)> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c-1.jsonl");
        std::fs::write(&path, JOURNAL).unwrap();
        let journals = vec![(dir.path().join("none"), "c-0".to_owned()), (path, "c-1".to_owned())];
        let list = all(journals, &Words::of(words), MOST_READ);
        assert!(!list.incomplete);
        list.found.into_iter().map(|said| (said.seq, said.excerpt)).collect()
    }

    #[test]
    fn the_last_message_with_all_words_is_found_and_nothing_of_a_tool() {
        let shore = "At the shore, where the SEA ends.".to_owned();
        assert_eq!(search("sea"), [(3, shore.clone())]);
        assert_eq!(search("ENDS sea"), [(3, shore)]);
        assert_eq!(search("begin"), [(1, "Where does the Sea begin?".to_owned())]);
        assert_eq!(search("begin shore"), [], "they are in two messages");
        assert_eq!(search("secret"), []);
    }

    #[test]
    fn an_excerpt_is_of_what_surrounds_the_word() {
        let text = format!("{} \u{130}stanbul {}", "a ".repeat(40), "b ".repeat(200));
        let excerpt = Words::of("stanbul").excerpt(&text).unwrap();
        assert!(excerpt.starts_with("\u{2026}") && excerpt.ends_with("\u{2026}"), "{excerpt}");
        assert!(excerpt.contains("\u{130}stanbul b"), "{excerpt}");
        assert!(excerpt.chars().count() <= BEFORE + BEHIND + 2);
    }

    #[test]
    fn too_much_is_said_to_be_incomplete() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c-1.jsonl");
        std::fs::write(&path, JOURNAL).unwrap();
        let list = all(vec![(path, "c-1".to_owned())], &Words::of("sea"), 10);
        assert_eq!(list, SaidList { found: Vec::new(), incomplete: true });
    }
}
