//! What a server's tool gave, as an answer to the model: text as it is, anything else as a file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use crate::body::{Body, Expected, Write};
use crate::tools::Answer;

/// What is longer is cut; the loop puts what is still long into a file.
const LONGEST: usize = 1 << 20;
const MOST_FILES: usize = 20;

/// Where files go, and what their names begin with.
pub(super) struct Files<'a> {
    pub(super) body: &'a dyn Body,
    pub(super) prefix: String,
}

pub(super) async fn answer(result: CallToolResult, files: &Files<'_>) -> Answer {
    let mut text = String::new();
    let (mut count, mut lost) = (0, 0);
    let structured = result.structured_content.filter(|_| result.content.is_empty());
    for block in result.content {
        let part = match block {
            ContentBlock::Text(said) => said.text,
            ContentBlock::Image(image) => {
                files.keep("an image", &image.mime_type, &image.data, &mut count).await
            }
            ContentBlock::Audio(audio) => {
                files.keep("a sound", &audio.mime_type, &audio.data, &mut count).await
            }
            ContentBlock::Resource(embedded) => match embedded.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    format!("[{uri}]\n{text}")
                }
                ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                    let kind = mime_type.unwrap_or_default();
                    let told = files.keep("a file", &kind, &blob, &mut count).await;
                    format!("[{uri}] {told}")
                }
                _ => "[something that is not known here]".to_owned(),
            },
            ContentBlock::ResourceLink(link) => format!("[see {}: {}]", link.uri, link.name),
            _ => "[something that is not known here]".to_owned(),
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&part);
        if text.len() > LONGEST {
            let kept = text.floor_char_boundary(LONGEST);
            lost = (text.len() - kept) as u64;
            text.truncate(kept);
            text.push_str("\n[it said more, which is left out]");
            break;
        }
    }
    if let Some(value) = structured {
        text = format!("{value:#}");
    }
    if text.is_empty() {
        text.push_str("(it said nothing)");
    }
    Answer { failed: result.is_error == Some(true), lost, ..Answer::ok(text) }
}

impl Files<'_> {
    async fn keep(&self, what: &str, kind: &str, data: &str, count: &mut usize) -> String {
        *count += 1;
        if *count > MOST_FILES {
            return format!("[{what} more, which is left out]");
        }
        let Ok(bytes) = STANDARD.decode(data) else {
            return format!("[{what} that cannot be read]");
        };
        let path = format!("{}-{count}.{}", self.prefix, ending(kind));
        let size = bytes.len();
        let write = Write { bytes, expected: Expected::Anything, call: None };
        match self.body.write_file(&path, &write).await {
            Ok(()) => format!("[{what} of {size} bytes is in {path}]"),
            Err(error) => format!("[{what} of {size} bytes could not be kept: {error}]"),
        }
    }
}

/// `image/svg+xml` is an `svg`.
fn ending(kind: &str) -> String {
    let kind = kind.rsplit('/').next().unwrap_or_default();
    let kind = kind.split(['+', ';']).next().unwrap_or_default();
    let plain: String = kind.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    match plain.as_str() {
        "" => "bin".to_owned(),
        "plain" => "txt".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Local;
    use serde_json::json;

    #[tokio::test]
    async fn text_stays_and_the_rest_becomes_files() {
        let dir = tempfile::tempdir().unwrap();
        let body = Local::new(dir.path());
        let files = Files { body: &body, prefix: "out/x".to_owned() };
        let result = json!({"isError": true, "content": [
            {"type": "text", "text": "see:"},
            {"type": "image", "mimeType": "image/svg+xml", "data": "PHN2Zz4="},
            {"type": "image", "mimeType": "image/png", "data": "?"},
            {"type": "resource", "resource": {"uri": "a://b", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "a://c", "blob": "AAA="}},
            {"type": "resource_link", "uri": "a://d", "name": "more"}
        ]});
        let told = answer(serde_json::from_value(result).unwrap(), &files).await;
        let expected = "see:\n[an image of 5 bytes is in out/x-1.svg]\n[an image that cannot be read]\n\
                        [a://b]\ninside\n[a://c] [a file of 2 bytes is in out/x-3.bin]\n\
                        [see a://d: more]";
        assert_eq!((told.text.as_str(), told.failed), (expected, true));
        assert_eq!(std::fs::read(dir.path().join("out/x-1.svg")).unwrap(), b"<svg>");
        let only = json!({"content": [], "structuredContent": {"a": 1}});
        let told = answer(serde_json::from_value(only).unwrap(), &files).await;
        assert_eq!((told.text.as_str(), told.failed), ("{\n  \"a\": 1\n}", false));
        let long = json!({"content": [{"type": "text", "text": "ä".repeat(LONGEST)}]});
        let told = answer(serde_json::from_value(long).unwrap(), &files).await;
        assert!(told.text.len() < LONGEST + 100 && told.text.ends_with("left out]"));
    }
}
