//! `nacre memory`: what the agent was told to remember.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use http_body_util::BodyExt;
use nacre_wire::client::{Client, full};
use nacre_wire::knowledge::{AddFact, ChangeFact, FactInfo, FactList, Recall};
use nacre_wire::path::text_to_query;
use serde_json::json;

use super::Context;
use crate::failure::{Failure, Result};
use crate::output;

const FACTS: &str = "/admin/sandboxes/memory";

#[derive(Debug, Args)]
#[command(after_help = "\
Facts stay until you remove them, with who told them and when. Removed means gone: from the list,
from what is recalled, and from the disk.

Examples:
  nacre memory
  nacre memory add 'The staging server is called otter.' --tag servers
  nacre memory search 'which machine do we test on'
  nacre memory edit 3 'The staging server is called heron.'
  nacre memory rm 3")]
pub(crate) struct Memory {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List facts, newest first
    List(List),
    /// Remember a fact
    Add(Add),
    /// Change a fact
    Edit(Edit),
    /// Remove facts, for good
    Rm(Rm),
    /// Recall by word and by meaning
    Search(Search),
}

#[derive(Debug, Args)]
struct List {
    /// Only with this tag
    #[arg(short, long)]
    tag: Option<String>,
    /// How many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Only what is older than this fact
    #[arg(long, value_name = "ID")]
    before: Option<i64>,
}

#[derive(Debug, Args)]
struct Add {
    /// One sentence that can be understood alone
    text: String,
    /// A word to find it by; may be given several times
    #[arg(short, long = "tag", value_name = "TAG")]
    tags: Vec<String>,
}

#[derive(Debug, Args)]
struct Edit {
    id: i64,
    /// What it is to say; unchanged when absent
    #[arg(required_unless_present_any = ["tags", "no_tags"])]
    text: Option<String>,
    /// The tags that it is to have instead of those it has
    #[arg(short, long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Take its tags away
    #[arg(long, conflicts_with = "tags")]
    no_tags: bool,
}

#[derive(Debug, Args)]
struct Rm {
    #[arg(required = true, value_name = "ID")]
    ids: Vec<i64>,
}

#[derive(Debug, Args)]
struct Search {
    /// Words, or a question
    query: String,
    /// How many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    limit: u32,
}

pub(crate) async fn run(command: Memory, context: &Context) -> Result<ExitCode> {
    let client = context.gateway().await?.client;
    let usual = Action::List(List { tag: None, limit: 50, before: None });
    match command.action.unwrap_or(usual) {
        Action::List(list) => {
            let list: FactList = client.get_json(&list.path()).await?;
            match context.json {
                true => output::print_json(&list)?,
                false => output::print(&table(&list.facts))?,
            }
        }
        Action::Add(Add { text, tags }) => {
            let fact = client.post_json(FACTS, &AddFact { text, tags }).await?;
            told(&fact, "Remembered as", context)?;
        }
        Action::Edit(edit) => {
            let fact = change(&client, edit).await?;
            told(&fact, "Changed", context)?;
        }
        Action::Rm(Rm { ids }) => {
            for id in &ids {
                client.delete(&format!("{FACTS}/{id}")).await?;
            }
            match context.json {
                true => output::print_json(&json!({ "removed": ids }))?,
                false => output::print("Removed.\n")?,
            }
        }
        Action::Search(Search { query, limit }) => {
            let path = format!("{FACTS}/search?q={}&limit={limit}", text_to_query(&query));
            let found: Recall = client.get_json(&path).await?;
            match context.json {
                true => output::print_json(&found)?,
                false => output::print(&recalled(&found))?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl List {
    fn path(&self) -> String {
        let mut path = format!("{FACTS}?limit={}", self.limit);
        if let Some(tag) = &self.tag {
            path.push_str(&format!("&tag={}", text_to_query(tag)));
        }
        if let Some(before) = self.before {
            path.push_str(&format!("&before={before}"));
        }
        path
    }
}

async fn change(client: &Client, edit: Edit) -> Result<FactInfo> {
    let tags = (edit.no_tags || !edit.tags.is_empty()).then_some(edit.tags);
    let odd = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
    let change = serde_json::to_vec(&ChangeFact { text: edit.text, tags });
    let body = full(change.map_err(|error| odd(&error))?);
    let path = format!("{FACTS}/{}", edit.id);
    let answer = client.send(client.request(http::Method::PUT, &path, body)?).await?;
    let answer = answer.into_body().collect().await.map_err(|error| odd(&error))?;
    serde_json::from_slice(&answer.to_bytes()).map_err(|error| odd(&error))
}

fn told(fact: &FactInfo, what: &str, context: &Context) -> Result<()> {
    match context.json {
        true => output::print_json(fact),
        false => output::print(&format!("{what} {}.\n", fact.id)),
    }
}

fn table(facts: &[FactInfo]) -> String {
    if facts.is_empty() {
        return "Nothing is remembered yet.\n".to_owned();
    }
    let row = |fact: &FactInfo| {
        vec![
            fact.id.to_string(),
            output::ago(fact.changed_at),
            output::one_line(&fact.source),
            output::one_line(&fact.tags.join(" ")),
            output::one_line(&fact.text),
        ]
    };
    let rows: Vec<_> = facts.iter().map(row).collect();
    output::table(&["ID", "AGE", "TOLD BY", "TAGS", "FACT"], &rows)
}

fn recalled(found: &Recall) -> String {
    let note = found.note.as_ref().map_or(String::new(), |note| format!("({note})\n"));
    if found.facts.is_empty() {
        return format!("Nothing like that is remembered.\n{note}");
    }
    let row = |found: &nacre_wire::knowledge::RecalledFact| {
        let by = super::knowledge::found_by(found.by_word, found.by_meaning);
        vec![found.fact.id.to_string(), by.to_owned(), output::one_line(&found.fact.text)]
    };
    let rows: Vec<_> = found.facts.iter().map(row).collect();
    output::table(&["ID", "FOUND BY", "FACT"], &rows) + &note
}
