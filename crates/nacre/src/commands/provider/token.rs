//! `nacre provider token`: policy tokens by hand.

use std::time::Duration;

use clap::{Args, Subcommand};
use nacre_wire::models::{
    CreatePolicyToken, MadePolicyToken, PolicyScope, PolicyTokenInfo, PolicyTokenList,
};
use nacre_wire::path::text_to_query;
use serde_json::json;

use super::say;
use crate::commands::Context;
use crate::commands::token::{in_how_long, parse_time};
use crate::failure::Result;
use crate::output;

const TOKENS: &str = "/admin/sandboxes/policy-tokens";

#[derive(Debug, Args)]
pub(super) struct TokenCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make one; it is shown once
    Create(Box<Create>),
    /// Show all of them, without what opens anything
    List,
    /// End one; calls under way end too
    Revoke(Revoke),
}

#[derive(Debug, Args)]
struct Create {
    /// What it is for
    #[arg(long, default_value = "by hand")]
    name: String,
    /// It works in this sandbox only, by name or id
    #[arg(long)]
    sandbox: Option<String>,
    /// The run that its calls count for
    #[arg(long)]
    run: Option<String>,
    /// The conversation that its calls count for
    #[arg(long)]
    conversation: Option<String>,
    /// A provider that may be asked; several times for more [default: all]
    #[arg(long = "provider", value_name = "NAME")]
    providers: Vec<String>,
    /// A model that may be asked for, with * for anything; several times for more [default: all]
    #[arg(long = "model", value_name = "MODEL")]
    models: Vec<String>,
    /// A call that may be made, such as "POST chat/completions" [default: those of the provider]
    #[arg(long = "path", value_name = "CALL")]
    paths: Vec<String>,
    /// How many tokens it may use
    #[arg(long, value_name = "N")]
    tokens: Option<u64>,
    /// How much it may cost
    #[arg(long, value_name = "DOLLARS")]
    dollars: Option<f64>,
    /// How many calls it may make in a minute
    #[arg(long, value_name = "N")]
    requests_per_minute: Option<u32>,
    /// How long it works, such as 12h, 30d or 1y [default: until it is revoked]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    expires: Option<Duration>,
}

#[derive(Debug, Args)]
struct Revoke {
    /// The token, by id or name
    token: String,
}

pub(super) async fn run(command: TokenCommand, context: &Context) -> Result<()> {
    let client = context.gateway().await?.client;
    match command.action {
        Action::Create(create) => {
            let made: MadePolicyToken = client.post_json(TOKENS, &wanted(*create)).await?;
            say(context, &made, &format!("{}\n", made.token))
        }
        Action::List => {
            let list: PolicyTokenList = client.get_json(TOKENS).await?;
            say(context, &list, &table(&list.tokens))
        }
        Action::Revoke(revoke) => {
            client.delete(&format!("{TOKENS}/{}", text_to_query(&revoke.token))).await?;
            let text = format!("Revoked {}.\n", output::one_line(&revoke.token));
            say(context, &json!({ "revoked": revoke.token }), &text)
        }
    }
}

fn wanted(create: Create) -> CreatePolicyToken {
    CreatePolicyToken {
        name: create.name,
        scope: PolicyScope {
            sandbox: create.sandbox,
            run: create.run,
            conversation: create.conversation,
            providers: create.providers,
            models: create.models,
            paths: create.paths,
            tokens: create.tokens,
            dollars: create.dollars,
            requests_per_minute: create.requests_per_minute,
        },
        expires_in_s: create.expires.map(|span| span.as_secs()),
    }
}

fn table(tokens: &[PolicyTokenInfo]) -> String {
    if tokens.is_empty() {
        return "There are no policy tokens.\n".to_owned();
    }
    let rows: Vec<_> = tokens
        .iter()
        .map(|token| {
            let scope = &token.scope;
            let budget = |used: String, most: Option<String>| match most {
                Some(most) => format!("{used} of {most}"),
                None => used,
            };
            vec![
                token.id.clone(),
                output::one_line(&token.name),
                output::one_line(scope.sandbox.as_deref().unwrap_or("-")),
                output::one_line(
                    scope.run.as_deref().or(scope.conversation.as_deref()).unwrap_or("-"),
                ),
                budget(token.used_tokens.to_string(), scope.tokens.map(|most| most.to_string())),
                budget(
                    format!("${:.4}", token.used_dollars),
                    scope.dollars.map(|most| format!("${most}")),
                ),
                token.expires_at.map_or("never".to_owned(), in_how_long),
            ]
        })
        .collect();
    output::table(&["ID", "NAME", "SANDBOX", "FOR", "TOKENS", "DOLLARS", "EXPIRES IN"], &rows)
}
