//! `nacre provider`: who answers model calls.

mod add;
mod token;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use nacre_wire::models::{
    ProviderInfo, ProviderList, ProviderTested, Switch, Switched, TestProvider,
};
use nacre_wire::path::text_to_query;
use serde_json::json;

use super::Context;
use crate::failure::{Failure, Result};
use crate::{output, providers};

const PROVIDERS: &str = "/admin/sandboxes/providers";

#[derive(Debug, Args)]
#[command(after_help = "\
Keys stay on the host. A program in a sandbox finds models by the usual variables, such as
OPENAI_BASE_URL and OPENAI_API_KEY, and what it gets there is no key.

Examples:
  nacre provider add openai < key.txt
  nacre provider add anthropic --key-env ANTHROPIC_API_KEY
  nacre provider add ollama --kind openai-compatible --url http://127.0.0.1:11434/v1 --no-key
  nacre provider test openai --model gpt-4o-mini
  nacre provider stop                    no more model calls, and those under way end
  nacre provider token create --name ci --tokens 100000 --dollars 1 --expires 1h")]
pub(crate) struct ProviderCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Add one, or change it; its key is read from standard input
    Add(add::Add),
    /// Remove one that was added, and its key
    Remove(Named),
    /// Show all of them
    List,
    /// Read nacre.toml again, and use what it says of models
    Reload,
    /// Make one small call and say what came back
    Test(Test),
    /// Stop calls, also those under way
    Stop(Maybe),
    /// Let calls go on
    Start(Maybe),
    /// Make and revoke policy tokens
    Token(token::TokenCommand),
}

#[derive(Debug, Args)]
struct Named {
    /// The provider
    name: String,
}

#[derive(Debug, Args)]
struct Maybe {
    /// The provider [default: all of them]
    name: Option<String>,
}

#[derive(Debug, Args)]
struct Test {
    /// The provider
    name: String,
    /// A model to say one word; without one, the list of models is asked for
    #[arg(long)]
    model: Option<String>,
}

pub(crate) async fn run(command: ProviderCommand, context: &Context) -> Result<ExitCode> {
    match command.action {
        Action::Add(add) => add::run(add, context).await?,
        Action::Remove(named) => remove(&named.name, context).await?,
        Action::List => list(context).await?,
        Action::Reload => run_reload(context).await?,
        Action::Test(test) => return run_test(test, context).await,
        Action::Stop(which) => switch("stop", which.name, context).await?,
        Action::Start(which) => switch("start", which.name, context).await?,
        Action::Token(command) => token::run(command, context).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn remove(name: &str, context: &Context) -> Result<()> {
    local_only(context)?;
    if !providers::remove(&context.data_dir, name)? {
        return Err(Failure::new(format!("no provider \"{}\" was added", name.escape_debug()))
            .hint("one that nacre.toml names is removed there"));
    }
    reload(context).await?;
    say(context, &json!({ "removed": name }), &format!("Removed {}.\n", output::one_line(name)))
}

/// The files of the data directory are changed here, not over there.
fn local_only(context: &Context) -> Result<()> {
    match context.remote {
        None => Ok(()),
        Some(_) => Err(Failure::new("providers are added and removed on the machine itself")),
    }
}

/// Tells a gateway that runs. Without one, the next start reads the files.
async fn reload(context: &Context) -> Result<Option<ProviderList>> {
    match context.find_gateway().await? {
        Some((gateway, _)) => {
            let list = gateway.client.post_json(&format!("{PROVIDERS}/reload"), &()).await?;
            Ok(Some(list))
        }
        None => Ok(None),
    }
}

async fn run_reload(context: &Context) -> Result<()> {
    // Without a gateway there is nobody to use it.
    context.gateway().await?;
    reload(context).await?;
    list(context).await
}

async fn list(context: &Context) -> Result<()> {
    let list: ProviderList = context.gateway().await?.client.get_json(PROVIDERS).await?;
    if context.json {
        return output::print_json(&list);
    }
    if list.providers.is_empty() {
        return output::print("There are no providers. Add one with: nacre provider add NAME\n");
    }
    let rows: Vec<_> = list.providers.iter().map(row).collect();
    let mut text = output::table(&["NAME", "KIND", "STATE", "TODAY", "KEY", "ADDRESS"], &rows);
    for provider in &list.providers {
        if let Some(problem) = &provider.problem {
            text.push_str(&format!("{}: {}\n", provider.name, output::one_line(problem)));
        }
    }
    output::print(&text)
}

fn row(provider: &ProviderInfo) -> Vec<String> {
    let state = match (provider.stopped, &provider.problem) {
        (true, _) => "stopped".to_owned(),
        (false, Some(_)) => "unusable".to_owned(),
        (false, None) if provider.under_way > 0 => format!("{} under way", provider.under_way),
        (false, None) => "ready".to_owned(),
    };
    vec![
        provider.name.clone(),
        provider.kind.clone(),
        state,
        format!("${:.4}", provider.dollars_today),
        output::one_line(&provider.key),
        output::one_line(&provider.base_url),
    ]
}

async fn run_test(test: Test, context: &Context) -> Result<ExitCode> {
    let path = format!("{PROVIDERS}/{}/test", text_to_query(&test.name));
    let wanted = TestProvider { model: test.model };
    let tested: ProviderTested = context.gateway().await?.client.post_json(&path, &wanted).await?;
    let words = match tested.works {
        true => "It works",
        false => "It does not work",
    };
    let text = format!(
        "{words} (status {}, {} ms): {}\n",
        tested.status,
        tested.took_ms,
        output::one_line(&tested.said)
    );
    say(context, &tested, &text)?;
    Ok(if tested.works { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn switch(how: &str, provider: Option<String>, context: &Context) -> Result<()> {
    let path = format!("{PROVIDERS}/{how}");
    let which =
        provider.as_deref().map_or("model calls".to_owned(), |name| format!("calls to {name}"));
    let switched: Switched =
        context.gateway().await?.client.post_json(&path, &Switch { provider }).await?;
    let text = match switched.stopped {
        true => format!(
            "Stopped {}; {} under way were ended.\n",
            output::one_line(&which),
            switched.ended
        ),
        false => format!("Started {}.\n", output::one_line(&which)),
    };
    say(context, &switched, &text)
}

fn say(context: &Context, json: &impl serde::Serialize, text: &str) -> Result<()> {
    if context.json { output::print_json(json) } else { output::print(text) }
}
