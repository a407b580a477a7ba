//! `nacre usage`: what model calls used and cost.

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use nacre_wire::models::{CallInfo, CallPage, UsageReport, UsageRow};

use super::Context;
use super::token::parse_time;
use crate::failure::Result;
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
Dollars are counted by the prices of nacre.toml and of a table that comes with nacre; the bill of the
provider decides. Days begin at 00:00 UTC.

Examples:
  nacre usage
  nacre usage --by model --since 30d
  nacre usage --calls")]
pub(crate) struct Usage {
    /// What to put together
    #[arg(long, value_name = "WHAT", default_value = "day")]
    by: By,
    /// How far back, such as 12h, 30d or 1y [default: everything]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<Duration>,
    /// Show the last calls one by one
    #[arg(long)]
    calls: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Day,
    Model,
    Run,
    Conversation,
    Sandbox,
    Provider,
    Token,
}

impl By {
    fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Model => "model",
            Self::Run => "run",
            Self::Conversation => "conversation",
            Self::Sandbox => "sandbox",
            Self::Provider => "provider",
            Self::Token => "token",
        }
    }
}

pub(crate) async fn run(command: Usage, context: &Context) -> Result<ExitCode> {
    let client = context.gateway().await?.client;
    if command.calls {
        let page: CallPage = client.get_json("/admin/sandboxes/calls").await?;
        if context.json {
            output::print_json(&page)?
        } else {
            output::print(&calls(&page.calls))?
        }
        return Ok(ExitCode::SUCCESS);
    }
    let since = command.since.map_or(0, ago);
    let by = command.by.as_str();
    let path = format!("/admin/sandboxes/usage?by={by}&since={since}");
    let report: UsageReport = client.get_json(&path).await?;
    if context.json {
        output::print_json(&report)?;
    } else {
        output::print(&table(by, &report))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// As a Unix time in milliseconds.
fn ago(span: Duration) -> u64 {
    let then = SystemTime::now().checked_sub(span).unwrap_or(UNIX_EPOCH);
    let since = then.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(0)
}

fn table(by: &str, report: &UsageReport) -> String {
    if report.rows.is_empty() {
        return "No model was called.\n".to_owned();
    }
    let row = |row: &UsageRow| {
        let key = if row.key.is_empty() { "-" } else { &row.key };
        vec![
            output::one_line(key),
            row.calls.to_string(),
            row.input_tokens.to_string(),
            row.cached_tokens.to_string(),
            row.output_tokens.to_string(),
            format!("{:.4}", row.dollars),
        ]
    };
    let rows: Vec<_> = report.rows.iter().chain([&report.total]).map(row).collect();
    let by = by.to_uppercase();
    let mut text = output::table(&[&by, "CALLS", "INPUT", "CACHED", "OUTPUT", "DOLLARS"], &rows);
    if report.total.estimated > 0 {
        text.push_str(&format!(
            "Of {} calls only the reservation is known: nobody saw their end.\n",
            report.total.estimated
        ));
    }
    text
}

/// Also why and how often it was refused.
fn state(call: &CallInfo) -> String {
    let verdict = call.verdict.as_ref().map_or(String::new(), |why| format!(": {why}"));
    let times = call.times.map_or(String::new(), |times| format!(", {times} times"));
    output::one_line(&format!("{}{verdict}{times}", call.state))
}

fn calls(calls: &[CallInfo]) -> String {
    if calls.is_empty() {
        return "No model was called.\n".to_owned();
    }
    let rows: Vec<_> = calls
        .iter()
        .map(|call| {
            vec![
                call.id.to_string(),
                output::ago(call.at),
                output::one_line(&call.provider),
                output::one_line(&call.model),
                state(call),
                call.status.map_or("-".to_owned(), |status| status.to_string()),
                (call.input_tokens + call.cached_tokens).to_string(),
                call.output_tokens.to_string(),
                format!("{:.4}", call.dollars),
                call.took_ms.map_or("-".to_owned(), |ms| format!("{ms} ms")),
            ]
        })
        .collect();
    let header =
        ["ID", "AGO", "PROVIDER", "MODEL", "STATE", "STATUS", "INPUT", "OUTPUT", "DOLLARS", "TOOK"];
    output::table(&header, &rows)
}
