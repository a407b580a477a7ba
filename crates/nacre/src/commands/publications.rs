//! `nacre publications`: what was published, and whether it still is what it was.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use nacre_wire::knowledge::{
    CitationInfo, CiteRequest, EditionInfo, EditionList, EditionView, VerifyReport,
};
use nacre_wire::path::text_to_query;

use super::Context;
use crate::failure::Result;
use crate::output;

pub(super) const ALL: &str = "/admin/sandboxes/publications";

#[derive(Debug, Args)]
#[command(after_help = "\
An edition is named by its address, by the beginning of its hash, or by its document, whose latest
edition is meant then. verify reads everything that was published and prints a line that follows
from all of it: written down elsewhere, it tells later whether anything is missing.

Examples:
  nacre publications
  nacre publications show paper.md
  nacre publications cite 1a2b3c4d --quote 'layer by layer'
  nacre publications verify")]
pub(crate) struct Publications {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List editions, newest first
    List(List),
    /// Show an edition, what it cites and who cites it
    Show(Show),
    /// Check a citation and print its footnote
    Cite(Cite),
    /// Check that nothing that was published has changed
    Verify,
}

#[derive(Debug, Args)]
struct List {
    /// Only editions of this document
    #[arg(long, value_name = "PATH")]
    document: Option<String>,
    /// How many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Only what is older than this number
    #[arg(long, value_name = "NUMBER")]
    before: Option<u64>,
}

#[derive(Debug, Args)]
struct Show {
    /// An address, the beginning of its hash, or a document
    edition: String,
    /// Print the content alone
    #[arg(long)]
    content: bool,
}

#[derive(Debug, Args)]
struct Cite {
    /// An address, with #L3-L5 for lines
    edition: String,
    /// Words that stand there; only white space may differ
    #[arg(long)]
    quote: Option<String>,
}

pub(crate) async fn run(command: Publications, context: &Context) -> Result<ExitCode> {
    let client = context.gateway().await?.client;
    let usual = Action::List(List { document: None, limit: 50, before: None });
    match command.action.unwrap_or(usual) {
        Action::List(list) => {
            let list: EditionList = client.get_json(&list.path()).await?;
            match context.json {
                true => output::print_json(&list)?,
                false => output::print(&table(&list.editions))?,
            }
        }
        Action::Show(show) => {
            let path = format!("{ALL}/{}", text_to_query(&show.edition).replace('/', "%2F"));
            let view: EditionView = client.get_json(&path).await?;
            match (context.json, show.content) {
                (true, _) => output::print_json(&view)?,
                (false, true) => output::print(view.text.as_deref().unwrap_or_default())?,
                (false, false) => output::print(&shown(&view))?,
            }
        }
        Action::Cite(Cite { edition, quote }) => {
            let request = CiteRequest { edition, quote };
            let cited: CitationInfo = client.post_json(&format!("{ALL}/cite"), &request).await?;
            match context.json {
                true => output::print_json(&cited)?,
                false => output::print(&format!("{}\n", output::one_line(&cited.note)))?,
            }
        }
        Action::Verify => {
            let report: VerifyReport = client.get_json(&format!("{ALL}/verify")).await?;
            match context.json {
                true => output::print_json(&report)?,
                false => output::print(&verified(&report))?,
            }
            if !report.problems.is_empty() {
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl List {
    fn path(&self) -> String {
        let mut path = format!("{ALL}?limit={}", self.limit);
        if let Some(document) = &self.document {
            path.push_str(&format!("&document={}", text_to_query(document)));
        }
        if let Some(before) = self.before {
            path.push_str(&format!("&before={before}"));
        }
        path
    }
}

fn table(editions: &[EditionInfo]) -> String {
    if editions.is_empty() {
        return "Nothing is published yet.\n".to_owned();
    }
    let row = |edition: &EditionInfo| {
        vec![
            edition.number.to_string(),
            short(&edition.address).to_owned(),
            edition.date.get(..10).unwrap_or(&edition.date).to_owned(),
            output::one_line(&edition.document),
            output::one_line(&edition.title),
        ]
    };
    let rows: Vec<_> = editions.iter().map(row).collect();
    output::table(&["NO", "EDITION", "DATE", "DOCUMENT", "TITLE"], &rows)
}

/// Enough to name it by.
fn short(address: &str) -> &str {
    let hash = address.strip_prefix("nacre:edition:").unwrap_or(address);
    hash.get(..12).unwrap_or(hash)
}

fn shown(view: &EditionView) -> String {
    let edition = &view.edition;
    let mut text = format!(
        "{}\n{}\nby {}, {}\nedition of {} ({}, {})\n",
        output::one_line(&edition.title),
        edition.address,
        output::one_line(&edition.author),
        edition.date,
        output::one_line(&edition.document),
        output::one_line(&edition.media_type),
        output::bytes(edition.bytes),
    );
    if let Some(previous) = &edition.previous {
        text.push_str(&format!("after {previous}\n"));
    }
    let mut list = |title: &str, lines: &[String]| {
        if !lines.is_empty() {
            text.push_str(&format!("\n{title}\n"));
            lines.iter().for_each(|line| text.push_str(&format!("  {}\n", output::one_line(line))));
        }
    };
    list("References", &view.references);
    list("Cited by", &view.cited_by);
    text
}

fn verified(report: &VerifyReport) -> String {
    let problems: String =
        report.problems.iter().map(|line| format!("{}\n", output::one_line(line))).collect();
    let summary = match report.problems.len() {
        0 => format!("{} editions are what was published.", report.editions),
        many => format!("{many} of {} editions are not what was published.", report.editions),
    };
    format!("{problems}{summary}\nhead {}\n", report.head)
}
