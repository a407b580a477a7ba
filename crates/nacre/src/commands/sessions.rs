//! `nacre sessions`: the browsers that are signed in.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use nacre_wire::access::{SessionInfo, SessionList};
use nacre_wire::path::text_to_query;
use serde_json::json;

use super::Context;
use crate::failure::{Failure, Result};
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
What a browser has open is closed when its session is revoked. A session ends by itself after seven
days without a request, and after thirty days in any case.

Examples:
  nacre sessions list
  nacre sessions revoke s-0123456789
  nacre sessions revoke --all")]
pub(crate) struct Sessions {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show all of them, last used first
    List,
    /// Sign a browser out
    Revoke(Revoke),
}

#[derive(Debug, Args)]
struct Revoke {
    /// The session, by its id
    #[arg(required_unless_present = "all")]
    id: Option<String>,
    /// Sign every browser out
    #[arg(long, conflicts_with = "id")]
    all: bool,
}

pub(crate) async fn run(command: Sessions, context: &Context) -> Result<ExitCode> {
    let gateway = context.gateway().await?;
    let list: SessionList = gateway.client.get_json("/admin/sandboxes/sessions").await?;
    match command.action {
        Action::List if context.json => output::print_json(&list)?,
        Action::List => output::print(&table(&list.sessions))?,
        Action::Revoke(revoke) => {
            let ids = match revoke.id {
                Some(id) => vec![id],
                None => list.sessions.into_iter().map(|session| session.id).collect(),
            };
            for id in &ids {
                let path = format!("/admin/sandboxes/sessions/{}", text_to_query(id));
                gateway.client.delete(&path).await.map_err(Failure::from)?;
            }
            if context.json {
                output::print_json(&json!({ "revoked": ids }))?;
            } else {
                output::print(&format!("Signed out: {}.\n", ids.len()))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn table(sessions: &[SessionInfo]) -> String {
    if sessions.is_empty() {
        return "No browser is signed in.\n".to_owned();
    }
    let rows: Vec<_> = sessions
        .iter()
        .map(|session| {
            vec![
                session.id.clone(),
                session.method.as_str().replace('_', " "),
                output::ago(session.created_at),
                output::ago(session.seen_at),
                session.address.clone().unwrap_or_default(),
                output::one_line(session.agent.as_deref().unwrap_or("")),
            ]
        })
        .collect();
    output::table(&["ID", "SIGNED IN BY", "SINCE", "LAST USED", "ADDRESS", "BROWSER"], &rows)
}
