//! `nacre egress`: what a sandbox may reach, and what it did.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use http_body_util::BodyExt;
use nacre_wire::client::{Client, empty};
use nacre_wire::egress::{
    EgressEffect, EgressLog, EgressMode, EgressRecord, EgressRule, EgressView, SetEgressMode,
};
use nacre_wire::path::text_to_query;

use super::Context;
use crate::cli::Which;
use crate::failure::{Failure, Result};
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
Unless told otherwise a sandbox reaches the public internet and nothing of this machine or its
network. A target is a name, *.name, a network such as 10.1.0.0/16, or * for everything, each with
:PORT or :FIRST-LAST if only those are meant. Changes hold at once, also for what is open.

Examples:
  nacre egress show
  nacre egress allow 192.168.1.20:5432
  nacre egress allow git.corp.example --private
  nacre egress deny '*.example.com'
  nacre egress mode allow-list
  nacre egress log -f")]
pub(crate) struct Egress {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show the mode, the rules and what is open
    Show(Show),
    /// Allow a target
    Allow(Allow),
    /// Deny a target; stronger than every rule that allows
    Deny(Target),
    /// Take a rule away
    Forget(Target),
    /// Choose what is open when no rule says otherwise
    Mode(Mode),
    /// Show the connections there were and are
    Log(Log),
}

#[derive(Debug, Args)]
struct Show {
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
struct Target {
    #[command(flatten)]
    which: Which,
    /// A name, *.name, a network, or *, with :PORT if only that is meant
    target: String,
}

#[derive(Debug, Args)]
struct Allow {
    #[command(flatten)]
    target: Target,
    /// Also when the name leads to an address of this machine or its network
    #[arg(long)]
    private: bool,
}

#[derive(Debug, Args)]
struct Mode {
    #[command(flatten)]
    which: Which,
    mode: ModeName,
}

/// As it is written on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModeName {
    /// The public internet
    Open,
    /// Nothing but what a rule allows
    AllowList,
    /// Nothing at all
    None,
    /// As nacre.toml has it
    Default,
}

impl From<ModeName> for SetEgressMode {
    fn from(name: ModeName) -> Self {
        let mode = match name {
            ModeName::Open => Some(EgressMode::Open),
            ModeName::AllowList => Some(EgressMode::AllowList),
            ModeName::None => Some(EgressMode::None),
            ModeName::Default => None,
        };
        Self { mode }
    }
}

#[derive(Debug, Args)]
struct Log {
    /// Only of this sandbox, by name or id
    #[arg(short, long, value_name = "NAME")]
    sandbox: Option<String>,
    /// How many, newest last
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Only what is older than this record
    #[arg(long, value_name = "ID", conflicts_with = "follow")]
    before: Option<i64>,
    /// Only what was refused or cut
    #[arg(long)]
    refused: bool,
    /// Go on with what ends
    #[arg(short, long)]
    follow: bool,
}

pub(crate) async fn run(command: Egress, context: &Context) -> Result<ExitCode> {
    let gateway = context.gateway().await?;
    let client = &gateway.client;
    let view = match command.action {
        Action::Show(Show { which }) => client.egress(&which.sandbox).await?,
        Action::Allow(Allow { target: Target { which, target }, private }) => {
            let rule = EgressRule { effect: EgressEffect::Allow, target, private, default: false };
            client.add_egress_rule(&which.sandbox, &rule).await?
        }
        Action::Deny(Target { which, target }) => {
            let effect = EgressEffect::Deny;
            let rule = EgressRule { effect, target, private: false, default: false };
            client.add_egress_rule(&which.sandbox, &rule).await?
        }
        Action::Forget(Target { which, target }) => {
            client.remove_egress_rule(&which.sandbox, &target).await?
        }
        Action::Mode(Mode { which, mode }) => {
            client.set_egress_mode(&which.sandbox, mode.into()).await?
        }
        Action::Log(log) => return show_log(client, &log, context.json).await,
    };
    match context.json {
        true => output::print_json(&view)?,
        false => output::print(&show(&view))?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn show_log(client: &Client, log: &Log, json: bool) -> Result<ExitCode> {
    let sandbox = log
        .sandbox
        .as_deref()
        .map_or_else(String::new, |name| format!("&sandbox={}", text_to_query(name)));
    let before = log.before.map_or_else(String::new, |id| format!("&before={id}"));
    let path = format!(
        "/admin/sandboxes/egress/log?limit={}&refused={}{sandbox}{before}",
        log.limit, log.refused
    );
    if log.follow {
        follow(client, &path, json).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let page: EgressLog = client.get_json(&path).await?;
    if json {
        output::print_json(&page)?;
    } else if page.records.is_empty() {
        output::print("Nothing has gone out yet.\n")?;
    } else {
        let lines: String = page.records.iter().rev().map(line).collect();
        output::print(&lines)?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn follow(client: &Client, path: &str, json: bool) -> Result<()> {
    const LONGEST: usize = 64 * 1024;
    let request = client.request(http::Method::GET, &format!("{path}&follow=true"), empty())?;
    let mut body = client.send(request).await?.into_body();
    let mut rest = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Failure::new(format!("the log broke off: {error}")))?;
        rest.extend(frame.into_data().unwrap_or_default());
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let whole: Vec<u8> = rest.drain(..=end).collect();
            if json {
                output::print(&String::from_utf8_lossy(&whole))?;
            } else if let Ok(record) = serde_json::from_slice::<EgressRecord>(&whole) {
                output::print(&line(&record))?;
            }
        }
        if rest.len() > LONGEST {
            return Err(Failure::new("the log makes no sense"));
        }
    }
    Ok(())
}

/// One record: when, whose, how it ended, where to, how much, and why.
fn line(record: &EgressRecord) -> String {
    let host = output::one_line(&record.host);
    let address = match &record.address {
        Some(address) if *address != record.host => format!(" ({address})"),
        _ => String::new(),
    };
    let took = Duration::from_millis(record.duration_ms);
    let reason = match &record.reason {
        Some(reason) => format!("  {}", output::one_line(reason)),
        None => String::new(),
    };
    let times = match record.times {
        1 => String::new(),
        times => format!("  {times} times within a minute"),
    };
    format!(
        "{:>8} ago  {}  {:<7}  {host}:{}{address}  sent {}, received {}, {:.1} s{reason}{times}\n",
        output::ago(record.at),
        output::one_line(&record.sandbox),
        record.verdict.as_str(),
        record.port,
        output::bytes(record.sent),
        output::bytes(record.received),
        took.as_secs_f32(),
    )
}

fn show(view: &EgressView) -> String {
    let means = match view.mode {
        EgressMode::Open => "the public internet is open",
        EgressMode::AllowList => "nothing but what is allowed is open",
        EgressMode::None => "nothing is open",
    };
    let whose = if view.default_mode { ", as configured" } else { "" };
    let mut text = format!("{}: mode {}{whose}: {means}.\n", view.sandbox, view.mode.as_str());
    if !view.rules.is_empty() {
        let rows: Vec<_> = view
            .rules
            .iter()
            .map(|rule| {
                let private = if rule.private { "private too" } else { "" };
                let from = if rule.default { "nacre.toml" } else { "" };
                [rule.effect.as_str(), &rule.target, private, from].map(str::to_owned).to_vec()
            })
            .collect();
        text.push('\n');
        text.push_str(&output::table(&["RULE", "TARGET", "", "FROM"], &rows));
    }
    if !view.open.is_empty() {
        let rows: Vec<_> = view
            .open
            .iter()
            .map(|open| {
                vec![
                    format!("{}:{}", output::one_line(&open.host), open.port),
                    open.address.clone(),
                    output::ago(open.since),
                    output::bytes(open.sent),
                    output::bytes(open.received),
                ]
            })
            .collect();
        text.push('\n');
        text.push_str(&output::table(&["OPEN", "ADDRESS", "SINCE", "SENT", "RECEIVED"], &rows));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_wire::egress::{EgressConnection, EgressLimits, EgressVerdict};

    #[test]
    fn rules_and_connections_for_people() {
        let rule = |effect, target: &str, private, default| EgressRule {
            effect,
            target: target.to_owned(),
            private,
            default,
        };
        let view = EgressView {
            sandbox: "live".to_owned(),
            mode: EgressMode::AllowList,
            default_mode: false,
            rules: vec![
                rule(EgressEffect::Allow, "*.example.com:443", false, true),
                rule(EgressEffect::Allow, "db:5432", true, false),
                rule(EgressEffect::Deny, "10.0.0.0/8", false, false),
            ],
            open: vec![EgressConnection {
                host: "a.example.com".to_owned(),
                port: 443,
                address: "93.184.216.34".to_owned(),
                since: u64::MAX,
                sent: 517,
                received: 1_048_576,
            }],
            limits: EgressLimits { connections: 1, connects_per_second: 1 },
        };
        insta::assert_snapshot!(show(&view));
    }

    #[test]
    fn a_record_is_a_line_and_cannot_write_on_the_terminal() {
        let record = EgressRecord {
            id: 1,
            at: u64::MAX,
            sandbox: "live".to_owned(),
            sandbox_id: "sb-1".to_owned(),
            run: None,
            host: "a\x1b[2Jb".to_owned(),
            port: 80,
            address: Some("10.0.0.1".to_owned()),
            verdict: EgressVerdict::Refused,
            reason: Some("its address 10.0.0.1 is not on the public internet".to_owned()),
            sent: 0,
            received: 0,
            duration_ms: 1500,
            times: 1,
        };
        let expected = "     0 s ago  live  refused  a\\u{1b}[2Jb:80 (10.0.0.1)  sent 0 B, received 0 B, 1.5 s  \
             its address 10.0.0.1 is not on the public internet";
        assert_eq!(line(&record), format!("{expected}\n"));
        let again = EgressRecord { times: 7, ..record };
        assert_eq!(line(&again), format!("{expected}  7 times within a minute\n"));
    }
}
