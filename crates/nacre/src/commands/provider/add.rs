//! `nacre provider add`: a table in `providers.toml`, a key in a file of its own.

use std::io::{BufRead, IsTerminal, Read};

use clap::Args;
use nacre_gateway::{Kind, RawProvider, check_provider_name};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde_json::json;
use toml::{Table, Value};

use super::{local_only, reload, say};
use crate::commands::Context;
use crate::config::{RawConfig, prepare_data_dir};
use crate::failure::{Failure, Result};
use crate::{output, providers};

const LONGEST_KEY: u64 = 16 * 1024;

#[derive(Debug, Args)]
pub(super) struct Add {
    /// What it is called in addresses
    name: String,
    /// Which API it speaks: openai, anthropic, google, openrouter or openai-compatible
    /// [default: the one that NAME says]
    #[arg(long, value_parser = parse_kind)]
    kind: Option<Kind>,
    /// Where it is [default: where the usual ones are]
    #[arg(long)]
    url: Option<String>,
    /// Take the key from this environment variable of `nacre up` instead of standard input
    #[arg(long, value_name = "NAME", conflicts_with = "no_key")]
    key_env: Option<String>,
    /// It needs no key
    #[arg(long)]
    no_key: bool,
    /// A model that may be asked for, with * for anything; several times for more [default: all]
    #[arg(long = "model", value_name = "MODEL")]
    models: Vec<String>,
    /// A call that may be made, such as "POST chat/completions" [default: those that ask models]
    #[arg(long = "path", value_name = "CALL")]
    paths: Vec<String>,
    /// What it may cost in a day
    #[arg(long, value_name = "DOLLARS")]
    dollars_per_day: Option<f64>,
}

fn parse_kind(text: &str) -> std::result::Result<Kind, String> {
    let names: Vec<_> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
    Kind::parse(text).ok_or_else(|| format!("one of {}", names.join(", ")))
}

pub(super) async fn run(add: Add, context: &Context) -> Result<()> {
    local_only(context)?;
    check_provider_name(&add.name).map_err(Failure::new)?;
    prepare_data_dir(&context.data_dir)?;
    let written = RawConfig::load(&context.data_dir, context.config.as_deref())?;
    if written.names_provider(&add.name) {
        return Err(Failure::new(format!("nacre.toml names a provider \"{}\" already", add.name))
            .hint("change it there, or choose another name"));
    }
    let table = table(&add);
    // Before a key is asked for, and before anything is written.
    let raw: RawProvider = Value::Table(table.clone())
        .try_into()
        .map_err(|error: toml::de::Error| Failure::new(error.message().to_owned()))?;
    let trial = RawProvider { key_file: None, key_env: Some("KEY".to_owned()), ..raw };
    trial.resolve(&add.name, |_| Some("trial".to_owned())).map_err(Failure::new)?;
    if add.key_env.is_none() && !add.no_key {
        providers::write_key(&context.data_dir, &add.name, &read_key(&add.name)?)?;
    }
    providers::put(&context.data_dir, &add.name, table)?;
    let list = reload(context).await?;
    let found =
        list.and_then(|list| list.providers.into_iter().find(|found| found.name == add.name));
    let text = match &found {
        Some(found) => match &found.problem {
            Some(problem) => {
                format!("Added {}, which cannot be used: {}\n", add.name, output::one_line(problem))
            }
            None => format!("Added {}. Try it with: nacre provider test {}\n", add.name, add.name),
        },
        None => format!("Added {}. It is there when nacre up runs.\n", add.name),
    };
    say(context, &json!({ "added": add.name, "provider": found }), &text)
}

fn table(add: &Add) -> Table {
    let mut table = Table::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            table.insert(name.to_owned(), value);
        }
    };
    let list = |items: &[String]| (!items.is_empty()).then(|| Value::from(items.to_vec()));
    set("kind", add.kind.or(Kind::parse(&add.name)).map(|kind| kind.as_str().into()));
    set("base_url", add.url.clone().map(Value::from));
    set("key_env", add.key_env.clone().map(Value::from));
    let in_file = add.key_env.is_none() && !add.no_key;
    set("key_file", in_file.then(|| providers::key_name(&add.name).display().to_string().into()));
    set("models", list(&add.models));
    set("paths", list(&add.paths));
    set("dollars_per_day", add.dollars_per_day.map(Value::from));
    table
}

/// From standard input: arguments are seen by everybody on the machine. What is typed is not shown.
fn read_key(name: &str) -> Result<String> {
    let stdin = std::io::stdin();
    let failed = |error: std::io::Error| Failure::io("standard input", &error);
    let mut key = String::new();
    if stdin.is_terminal() {
        eprint!("Key for {name} (it is not shown): ");
        let before = tcgetattr(&stdin).map_err(|errno| failed(errno.into()))?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&stdin, OptionalActions::Now, &silent).map_err(|errno| failed(errno.into()))?;
        let read = stdin.lock().read_line(&mut key);
        let _ = tcsetattr(&stdin, OptionalActions::Now, &before);
        eprintln!();
        read.map_err(failed)?;
    } else {
        stdin.lock().take(LONGEST_KEY).read_to_string(&mut key).map_err(failed)?;
    }
    let key = key.trim().to_owned();
    match key.is_empty() {
        true => Err(Failure::new("no key came on standard input")
            .hint(format!("nacre provider add {name} < FILE, or --key-env NAME, or --no-key"))),
        false => Ok(key),
    }
}
