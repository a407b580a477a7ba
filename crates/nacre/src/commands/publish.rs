//! `nacre publish`: a file as an edition that never changes.

use std::process::ExitCode;

use clap::Args;
use nacre_wire::knowledge::{EditionInfo, PublishRequest};

use super::Context;
use crate::copy::place::Place;
use crate::failure::{Failure, Result};
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
The edition is named by what it is: its address holds the hash of its content, title, author, date
and citations. Published again, unchanged, it is the same edition; changed, it is the next one.
What the text cites (nacre:edition:...) must exist and say what is quoted.

Examples:
  nacre publish paper.md --title 'On shells'
  nacre publish dev:paper.md --title 'On shells'
  nacre publications")]
pub(crate) struct Publish {
    /// PATH in the live sandbox, or NAME:PATH
    file: String,
    /// What it is called
    #[arg(long)]
    title: String,
    /// What it is made of [default: by its ending]
    #[arg(long, value_name = "TYPE")]
    media_type: Option<String>,
}

pub(crate) async fn run(command: Publish, context: &Context) -> Result<ExitCode> {
    let place = Place::parse_remote(&command.file);
    let path = place.path.to_str().map(str::to_owned);
    let path = path.ok_or_else(|| Failure::new(format!("{} is not text", command.file)))?;
    let request = PublishRequest {
        path,
        title: command.title,
        sandbox: Some(place.sandbox),
        text: None,
        media_type: command.media_type,
    };
    let client = context.gateway().await?.client;
    let edition: EditionInfo = client.post_json(super::publications::ALL, &request).await?;
    if context.json {
        output::print_json(&edition)?;
    } else {
        if edition.new == Some(false) {
            eprintln!("It is published already, unchanged.");
        }
        output::print(&format!("{}\n", edition.address))?;
    }
    Ok(ExitCode::SUCCESS)
}
