//! What the agent may do with all this: `remember`, `recall`, `knowledge_search`, `publish`, `cite`.

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use nacre_agent::body::Body;
use nacre_agent::events::{Location, ToolKind};
use nacre_agent::model::{Call, Tool};
use nacre_agent::tools::{Answer, Context, Intent, Ready, Toolbox, arguments, tool};
use nacre_knowledge::NewFact;
use nacre_wire::ApiError;
use nacre_wire::knowledge::CiteRequest;
use schemars::JsonSchema;
use serde::Deserialize;

use super::publish::LARGEST;
use super::{Knowledge, PUBLICATIONS};
use crate::routes::Role;

const USUAL: usize = 8;
const MOST: usize = 50;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Remember {
    /// One fact, in a sentence that can be understood without this conversation.
    text: String,
    /// A few words to find it by.
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Recall {
    /// What to recall, as words or as a question.
    query: String,
    /// How many; 8 when not said.
    #[serde(default)]
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KnowledgeSearch {
    /// What to find, as words or as a question.
    query: String,
    /// Where: the documents of this workspace, what was published, or both when not said.
    #[serde(default, rename = "in")]
    within: Option<Within>,
    /// How many passages; 8 when not said.
    #[serde(default)]
    limit: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Within {
    Documents,
    Publications,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PublishFile {
    /// The file, from the workspace.
    path: String,
    title: String,
    /// By the ending of the path when not said.
    #[serde(default)]
    media_type: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Cite {
    /// The address of an edition, nacre:edition:HASH, with #L3-L5 for lines.
    edition: String,
    /// The words that are cited, exactly as they stand there; only white space may differ.
    #[serde(default)]
    quote: Option<String>,
}

/// Whose tools they are.
#[derive(Clone)]
struct Conversation {
    knowledge: Arc<Knowledge>,
    role: Role,
    body: Arc<dyn Body>,
    id: String,
}

struct Memory(Conversation);
struct Library(Conversation);

/// The tools of one conversation, which acts on the sandbox of a role through a body.
pub(crate) fn toolboxes(
    knowledge: &Arc<Knowledge>,
    role: Role,
    body: &Arc<dyn Body>,
    conversation: &str,
) -> Vec<Arc<dyn Toolbox>> {
    let talk = Conversation {
        knowledge: knowledge.clone(),
        role,
        body: body.clone(),
        id: conversation.to_owned(),
    };
    vec![Arc::new(Memory(talk.clone())), Arc::new(Library(talk))]
}

impl Toolbox for Memory {
    fn tools(&self) -> Vec<Tool> {
        let remember = "Remember a fact for later conversations: what the owner prefers, decided or \
                        told, and what was hard to find out. The owner sees and may change it.";
        let recall = "Recall what was remembered, by word and by meaning.";
        vec![tool::<Remember>("remember", remember), tool::<Recall>("recall", recall)]
    }

    fn prepare(&self, call: &Call) -> Option<Result<Box<dyn Ready>, String>> {
        let asked = match call.name.as_str() {
            "remember" => arguments(call).map(Asked::Remember),
            "recall" => arguments(call).map(Asked::Recall),
            _ => return None,
        };
        Some(ready(&self.0, asked))
    }
}

impl Toolbox for Library {
    fn tools(&self) -> Vec<Tool> {
        let search = "Find passages in the documents of the workspace and in what was published, by \
                      word and by meaning. They come with path and lines.";
        let publish = "Publish a file as an edition that never changes, under the owner's name. What \
                       it cites by address must exist and say what is quoted.";
        let cite =
            "Check that an edition exists and says what you quote, and get the footnote for it.";
        vec![
            tool::<KnowledgeSearch>("knowledge_search", search),
            tool::<PublishFile>("publish", publish),
            tool::<Cite>("cite", cite),
        ]
    }

    fn prepare(&self, call: &Call) -> Option<Result<Box<dyn Ready>, String>> {
        let asked = match call.name.as_str() {
            "knowledge_search" => arguments(call).map(Asked::Search),
            "publish" => arguments(call).map(Asked::Publish),
            "cite" => arguments(call).map(Asked::Cite),
            _ => return None,
        };
        Some(ready(&self.0, asked))
    }
}

enum Asked {
    Remember(Remember),
    Recall(Recall),
    Search(KnowledgeSearch),
    Publish(PublishFile),
    Cite(Cite),
}

struct KnowledgeCall {
    talk: Conversation,
    asked: Asked,
}

fn ready(talk: &Conversation, asked: Result<Asked, String>) -> Result<Box<dyn Ready>, String> {
    let talk = talk.clone();
    asked.map(|asked| Box::new(KnowledgeCall { talk, asked }) as Box<dyn Ready>)
}

#[async_trait]
impl Ready for KnowledgeCall {
    fn intent(&self) -> Intent {
        let (title, kind, path, changes) = match &self.asked {
            Asked::Remember(asked) => {
                (format!("remember: {}", short(&asked.text)), ToolKind::Think, None, false)
            }
            Asked::Recall(asked) => {
                (format!("recall: {}", short(&asked.query)), ToolKind::Search, None, false)
            }
            Asked::Search(asked) => {
                (format!("search: {}", short(&asked.query)), ToolKind::Search, None, false)
            }
            Asked::Publish(asked) => {
                let title = format!("publish {} as \"{}\"", asked.path, short(&asked.title));
                (title, ToolKind::Other, Some(asked.path.clone()), true)
            }
            Asked::Cite(asked) => {
                (format!("cite {}", short(&asked.edition)), ToolKind::Read, None, false)
            }
        };
        let locations = path.map(|path| Location { path, line: None }).into_iter().collect();
        // What others see under the owner's name is theirs to allow, in every mode.
        let asks = matches!(self.asked, Asked::Publish(_));
        Intent { title, kind, locations, changes, asks }
    }

    async fn run(self: Box<Self>, context: &mut Context<'_>) -> Answer {
        let Self { talk, asked } = *self;
        let done = match asked {
            Asked::Remember(asked) => talk.remember(asked, context.call).await,
            Asked::Recall(asked) => talk.recall(asked).await,
            Asked::Search(asked) => talk.search(asked).await,
            Asked::Publish(asked) => talk.publish(asked).await,
            Asked::Cite(asked) => talk.cite(asked).await,
        };
        done.map_or_else(|error| Answer::error(&error), Answer::ok)
    }
}

impl Conversation {
    async fn remember(&self, asked: Remember, call: &str) -> Result<String, ApiError> {
        let source = format!("conversation {} call {call}", self.id);
        let fact = NewFact { text: asked.text, source, tags: asked.tags };
        let fact = self.knowledge.remember(fact).await?;
        Ok(format!("remembered as {}", fact.id))
    }

    async fn recall(&self, asked: Recall) -> Result<String, ApiError> {
        let found = self.knowledge.recall(asked.query, many(asked.limit)).await?;
        let mut text = String::new();
        for found in &found.facts {
            let fact = &found.fact;
            let day = nacre_knowledge::date_of_ms(fact.changed_at);
            let day = day.get(..10).unwrap_or(&day);
            let tags = match fact.tags.as_slice() {
                [] => String::new(),
                tags => format!(" [{}]", tags.join(", ")),
            };
            let _ = writeln!(text, "{}. {}{tags} ({}, {day})", fact.id, fact.text, fact.source);
        }
        Ok(or_nothing(text, found.note))
    }

    async fn search(&self, asked: KnowledgeSearch) -> Result<String, ApiError> {
        let here = self.knowledge.source_of(self.role.as_str())?;
        let sources = match asked.within {
            None => vec![here, PUBLICATIONS.to_owned()],
            Some(Within::Documents) => vec![here],
            Some(Within::Publications) => vec![PUBLICATIONS.to_owned()],
        };
        let found = self.knowledge.search(asked.query, sources, many(asked.limit)).await?;
        let mut text = String::new();
        for hit in &found.hits {
            let under = match hit.headings.as_str() {
                "" => String::new(),
                headings => format!(" ({headings})"),
            };
            // As an address of lines, where it can be cited.
            let place = match hit.source.as_str() {
                PUBLICATIONS => format!("{}#L{}-L{}", hit.path, hit.first_line, hit.last_line),
                _ => format!("{}:{}-{}", hit.path, hit.first_line, hit.last_line),
            };
            let _ = writeln!(text, "{place}{under}\n  {}", hit.snippet);
        }
        Ok(or_nothing(text, found.note))
    }

    async fn publish(&self, asked: PublishFile) -> Result<String, ApiError> {
        let file = self.body.read_file(&asked.path, LARGEST).await?;
        let publish =
            self.knowledge.publish_bytes(&asked.path, asked.title, asked.media_type, file.bytes);
        let edition = publish.await?;
        let how = match edition.new {
            Some(false) => "was published already, unchanged",
            Some(true) | None => "published",
        };
        let cited = edition.citations.len();
        Ok(format!(
            "{how}: {} (edition of {}, {cited} citations)",
            edition.address, edition.document
        ))
    }

    async fn cite(&self, asked: Cite) -> Result<String, ApiError> {
        let Cite { edition, quote } = asked;
        let cited = self.knowledge.cite(CiteRequest { edition, quote }).await?;
        Ok(format!(
            "it holds; put {} where you cite it, and this line at the end of the text:\n{}",
            cited.mark, cited.note
        ))
    }
}

fn many(limit: Option<u32>) -> usize {
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(USUAL).clamp(1, MOST)
}

fn or_nothing(mut text: String, note: Option<String>) -> String {
    if text.is_empty() {
        text.push_str("(nothing found)\n");
    }
    if let Some(note) = note {
        let _ = writeln!(text, "({note})");
    }
    text
}

fn short(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
