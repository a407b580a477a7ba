//! `nacre audit`: who came in, who was turned away, and what was given out.

use std::process::ExitCode;

use clap::Args;
use nacre_wire::access::{AuditEvent, AuditPage};

use super::Context;
use crate::failure::Result;
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nacre audit
  nacre audit --limit 200
  nacre audit --before 1234 --json")]
pub(crate) struct Audit {
    /// How many events, newest first
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Only what is older than this event
    #[arg(long, value_name = "ID")]
    before: Option<i64>,
}

pub(crate) async fn run(command: Audit, context: &Context) -> Result<ExitCode> {
    let gateway = context.gateway().await?;
    let before = command.before.map_or_else(String::new, |id| format!("&before={id}"));
    let path = format!("/admin/sandboxes/audit?limit={}{before}", command.limit);
    let page: AuditPage = gateway.client.get_json(&path).await?;
    if context.json {
        output::print_json(&page)?;
    } else {
        output::print(&table(&page.events))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn table(events: &[AuditEvent]) -> String {
    if events.is_empty() {
        return "Nothing has happened yet.\n".to_owned();
    }
    let text = |text: &Option<String>| output::one_line(text.as_deref().unwrap_or(""));
    let rows: Vec<_> = events
        .iter()
        .map(|event| {
            vec![
                event.id.to_string(),
                output::ago(event.at),
                event.event.replace('_', " "),
                text(&event.who),
                text(&event.address),
                text(&event.detail),
            ]
        })
        .collect();
    output::table(&["ID", "AGO", "WHAT", "WHO", "ADDRESS", "DETAIL"], &rows)
}
