//! `nacre knowledge`: what can be found in documents and publications.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use nacre_wire::knowledge::{KnowledgeStatus, SearchAnswer};
use nacre_wire::path::text_to_query;

use super::Context;
use crate::failure::Result;
use crate::output;

const KNOWLEDGE: &str = "/admin/sandboxes/knowledge";

#[derive(Debug, Args)]
#[command(after_help = "\
Documents of live and dev are indexed as they change, and every edition that is published.

Examples:
  nacre knowledge search 'how do we make backups'
  nacre knowledge search release --in publications
  nacre knowledge status")]
pub(crate) struct Knowledge {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Find passages by word and by meaning
    Search(Search),
    /// Show what is indexed
    Status,
}

#[derive(Debug, Args)]
struct Search {
    /// Words, or a question
    query: String,
    /// Only in this sandbox, or in "publications"
    #[arg(long = "in", value_name = "NAME")]
    within: Option<String>,
    /// How many passages
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    limit: u32,
}

pub(crate) async fn run(command: Knowledge, context: &Context) -> Result<ExitCode> {
    let client = context.gateway().await?.client;
    match command.action {
        Action::Search(search) => {
            let found: SearchAnswer = client.get_json(&search.path()).await?;
            match context.json {
                true => output::print_json(&found)?,
                false => output::print(&passages(&found))?,
            }
        }
        Action::Status => {
            let status: KnowledgeStatus = client.get_json(KNOWLEDGE).await?;
            match context.json {
                true => output::print_json(&status)?,
                false => output::print(&shown(&status))?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Search {
    fn path(&self) -> String {
        let query = text_to_query(&self.query);
        let within = self.within.as_ref().map(|name| format!("&in={}", text_to_query(name)));
        format!("{KNOWLEDGE}/search?q={query}&limit={}{}", self.limit, within.unwrap_or_default())
    }
}

pub(super) fn found_by(by_word: bool, by_meaning: bool) -> &'static str {
    match (by_word, by_meaning) {
        (true, true) => "both",
        (false, true) => "meaning",
        (true | false, false) => "word",
    }
}

fn passages(found: &SearchAnswer) -> String {
    let note = found.note.as_ref().map_or(String::new(), |note| format!("({note})\n"));
    if found.hits.is_empty() {
        return format!("Nothing was found.\n{note}");
    }
    let mut text = String::new();
    for hit in &found.hits {
        let place = match hit.source.as_str() {
            "publications" => format!("{}#L{}-L{}", hit.path, hit.first_line, hit.last_line),
            source => format!("{source}:{}:{}-{}", hit.path, hit.first_line, hit.last_line),
        };
        let by = found_by(hit.by_word, hit.by_meaning);
        let snippet = output::one_line(&hit.snippet);
        text.push_str(&format!("{}  ({by})\n    {snippet}\n", output::one_line(&place)));
    }
    text + &note
}

fn shown(status: &KnowledgeStatus) -> String {
    let mut text = format!(
        "{} documents in {} passages, {} facts, {} editions\nvectors by {}\n",
        status.documents, status.chunks, status.facts, status.editions, status.model
    );
    if status.waiting > 0 {
        text.push_str(&format!("{} passages are found by word only, for now\n", status.waiting));
    }
    let row = |source: &nacre_wire::knowledge::KnowledgeSource| {
        let state = match (&source.problem, source.current) {
            (Some(problem), _) => output::one_line(problem),
            (None, Some(false)) => "not followed now".to_owned(),
            (None, Some(true) | None) => "current".to_owned(),
        };
        vec![output::one_line(&source.name), source.documents.to_string(), state]
    };
    let rows: Vec<_> = status.sources.iter().map(row).collect();
    if !rows.is_empty() {
        text.push('\n');
        text.push_str(&output::table(&["SOURCE", "DOCUMENTS", "STATE"], &rows));
    }
    text
}
