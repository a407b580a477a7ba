//! `nacre token`: tokens for programs that are not on this machine.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use nacre_wire::access::{CreateToken, MadeToken, Scope, TokenInfo, TokenList};
use nacre_wire::path::text_to_query;
use serde_json::json;

use super::Context;
use crate::failure::Result;
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
A program sends it as `Authorization: Bearer TOKEN`. On this machine no token is needed: the command
line comes in through a socket that knows who you are.

Examples:
  nacre token create --name ci --scope read --expires 30d
  nacre token create --name laptop --scope live --scope dev
  nacre token list
  nacre token revoke ci")]
pub(crate) struct Token {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make one; it is shown once
    Create(Create),
    /// Show all of them, without what opens anything
    List,
    /// End one; what it has open is closed
    Revoke(Revoke),
}

#[derive(Debug, Args)]
struct Create {
    /// What it is for
    #[arg(long)]
    name: String,
    /// What it may do; several times for more
    #[arg(long, required = true, value_name = "SCOPE")]
    scope: Vec<ScopeName>,
    /// How long it works, such as 12h, 30d or 1y [default: until it is revoked]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    expires: Option<Duration>,
}

/// As it is written on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScopeName {
    /// Reading: GET and HEAD everywhere, and no sockets
    Read,
    /// Everything of the live sandbox
    Live,
    /// Everything of the dev sandbox
    Dev,
    /// Everything that a signed-in browser may do
    Admin,
}

impl From<ScopeName> for Scope {
    fn from(name: ScopeName) -> Self {
        match name {
            ScopeName::Read => Self::Read,
            ScopeName::Live => Self::Live,
            ScopeName::Dev => Self::Dev,
            ScopeName::Admin => Self::Admin,
        }
    }
}

#[derive(Debug, Args)]
struct Revoke {
    /// The token, by name or id
    token: String,
}

const TOKENS: &str = "/admin/sandboxes/tokens";

pub(crate) async fn run(command: Token, context: &Context) -> Result<ExitCode> {
    let gateway = context.gateway().await?;
    match command.action {
        Action::Create(create) => {
            let wanted = CreateToken {
                name: create.name,
                scopes: create.scope.into_iter().map(Scope::from).collect(),
                expires_in_s: create.expires.map(|span| span.as_secs()),
            };
            let made: MadeToken = gateway.client.post_json(TOKENS, &wanted).await?;
            if context.json {
                output::print_json(&made)?;
            } else {
                output::print(&format!("{}\n", made.token))?;
            }
        }
        Action::List => {
            let list: TokenList = gateway.client.get_json(TOKENS).await?;
            if context.json {
                output::print_json(&list)?;
            } else {
                output::print(&table(&list.tokens))?;
            }
        }
        Action::Revoke(revoke) => {
            let path = format!("{TOKENS}/{}", text_to_query(&revoke.token));
            gateway.client.delete(&path).await?;
            if context.json {
                output::print_json(&json!({ "revoked": revoke.token }))?;
            } else {
                output::print(&format!("Revoked {}.\n", output::one_line(&revoke.token)))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn table(tokens: &[TokenInfo]) -> String {
    if tokens.is_empty() {
        return "There are no tokens.\n".to_owned();
    }
    let rows: Vec<_> = tokens
        .iter()
        .map(|token| {
            let scopes: Vec<_> = token.scopes.iter().map(|scope| scope.as_str()).collect();
            vec![
                token.id.clone(),
                output::one_line(&token.name),
                scopes.join(" "),
                output::ago(token.created_at),
                token.used_at.map_or("never".to_owned(), output::ago),
                token.expires_at.map_or("never".to_owned(), in_how_long),
            ]
        })
        .collect();
    output::table(&["ID", "NAME", "SCOPES", "MADE", "LAST USED", "EXPIRES IN"], &rows)
}

pub(super) fn in_how_long(ms: u64) -> String {
    let at = std::time::UNIX_EPOCH + Duration::from_millis(ms);
    output::duration(at.duration_since(std::time::SystemTime::now()).unwrap_or_default())
}

/// A number and a unit: minutes, hours, days or years.
pub(super) fn parse_time(text: &str) -> std::result::Result<Duration, String> {
    let wrong = || format!("\"{text}\" is not a time: write something like 12h, 30d or 1y");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds: u64 = match unit {
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        'y' => 365 * 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let count: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    let seconds = count.checked_mul(seconds).filter(|seconds| *seconds > 0).ok_or_else(wrong)?;
    Ok(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short_to_write() {
        for (text, seconds) in
            [("5m", 300), ("12h", 43_200), ("30d", 2_592_000), ("1y", 31_536_000)]
        {
            assert_eq!(parse_time(text), Ok(Duration::from_secs(seconds)));
        }
        for bad in ["", "d", "0d", "5", "-1d", "1.5d", "5é", "99999999999999999999d"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }
}
