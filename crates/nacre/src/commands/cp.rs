//! `nacre cp`: files and folders, either way.

use std::process::ExitCode;

use clap::Args;

use super::Context;
use crate::copy::{self, End};
use crate::failure::{Failure, Result};
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
Folders are copied with what is in them, and modes are kept. As with cp -r, a target that is a
folder gets the copy put into it, and FOLDER/. means what is in the folder.

Examples:
  nacre cp notes.txt :                into /workspace of the live sandbox
  nacre cp :out/report.pdf .
  nacre cp ./site dev:site
  nacre cp live:data dev:data         from one sandbox to another
  nacre cp ./odd:name :               a local name with a colon")]
pub(crate) struct Cp {
    /// PATH here, :PATH in the live sandbox, or NAME:PATH in another
    #[arg(value_name = "SOURCE")]
    from: String,
    /// Likewise
    #[arg(value_name = "TARGET")]
    to: String,
}

pub(crate) async fn run(command: Cp, context: &Context) -> Result<ExitCode> {
    let gateway = context.gateway().await?;
    let copied = match (End::parse(&command.from), End::parse(&command.to)) {
        (End::Local(from), End::Remote(to)) => {
            copy::upload(&gateway.door(&to.sandbox), &from, &to).await?
        }
        (End::Remote(from), End::Local(to)) => {
            copy::download(&gateway.door(&from.sandbox), &from, &to).await?
        }
        (End::Remote(from), End::Remote(to)) => {
            let (from_door, to_door) = (gateway.door(&from.sandbox), gateway.door(&to.sandbox));
            copy::across((&from_door, &from), (&to_door, &to)).await?
        }
        (End::Local(_), End::Local(_)) => {
            return Err(Failure::new("neither path is in a sandbox")
                .hint("write :PATH for the live sandbox, NAME:PATH for another"));
        }
    };
    if context.json {
        output::print_json(&copied)?;
    }
    Ok(ExitCode::SUCCESS)
}
