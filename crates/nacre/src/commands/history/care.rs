//! How history is, where its space goes, whether it is whole, and what it is told to keep.

use std::process::ExitCode;

use clap::Args;
use nacre_wire::client::Client;
use nacre_wire::history::{HistorySettings, HistoryState, HistoryStatus, HistoryUsage, Verified};

use crate::commands::Context;
use crate::commands::sandbox::parse_size;
use crate::failure::Result;
use crate::history::words;
use crate::output::{self, bytes, one_line};

const DAMAGED: u8 = 1;

pub(super) async fn status(door: &Client, context: &Context) -> Result<ExitCode> {
    let status = door.history_status().await?;
    if context.json {
        output::print_json(&status)?;
    } else {
        output::print(&describe(&status))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(status: &HistoryStatus) -> String {
    let state = match &status.state {
        HistoryState::Starting => "It is taking its first look at the files.".to_owned(),
        HistoryState::Recording => "Changes are recorded.".to_owned(),
        HistoryState::Refusing { why } => {
            format!(
                "Changes are NOT recorded: {}\nWhat was recorded before is safe.",
                one_line(why)
            )
        }
        HistoryState::Off { why } => format!("This sandbox keeps no history: {}", one_line(why)),
    };
    let mut text = format!(
        "{state}\nCheckpoints: {} (the newest is {}). Names: {}. Room: {}.\n",
        status.checkpoints,
        words::id(status.latest),
        status.names,
        bytes(status.quota_bytes)
    );
    if let Some(name) = &status.set_aside {
        let name = one_line(name);
        text.push_str(&format!(
            "An older history could not be read and was set aside as {name}.\n"
        ));
    }
    text
}

pub(super) async fn usage(door: &Client, context: &Context) -> Result<ExitCode> {
    let usage = door.history_usage().await?;
    if context.json {
        output::print_json(&usage)?;
    } else {
        output::print(&explain(&usage))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn explain(usage: &HistoryUsage) -> String {
    let percent = match usage.quota_bytes {
        0 => 0.0,
        quota => 100.0 * usage.disk_bytes as f64 / quota as f64,
    };
    let mut text = format!(
        "{} on disk, {percent:.1}% of the {} that history may take\n  {:>10}  contents of files, \
         compressed and each kept once\n  {:>10}  the log: names, times and who\n\n{} checkpoints, \
         {} names. Before compression:\n  {:>10}  files as they are now\n  {:>10}  what only the \
         past needs\n",
        bytes(usage.disk_bytes),
        bytes(usage.quota_bytes),
        bytes(usage.packs_bytes),
        bytes(usage.log_bytes),
        usage.checkpoints,
        usage.names,
        bytes(usage.present_bytes),
        bytes(usage.past_bytes),
    );
    if !usage.largest.is_empty() {
        text.push_str("\nNames whose versions take most:\n");
    }
    for one in &usage.largest {
        let path = one_line(&one.path.to_string());
        text.push_str(&format!("  {:>10}  {path}\n", bytes(one.bytes)));
    }
    text
}

pub(super) async fn verify(door: &Client, context: &Context) -> Result<ExitCode> {
    let found = door.verify_history().await?;
    if context.json {
        output::print_json(&found)?;
    } else {
        output::print(&findings(&found))?;
    }
    let whole = found.damaged.is_empty();
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(DAMAGED) })
}

fn findings(found: &Verified) -> String {
    if found.damaged.is_empty() {
        return format!("All {} contents are as they were recorded.\n", found.contents);
    }
    let mut text = format!("{} of {} contents are damaged:\n", found.damaged.len(), found.contents);
    for damaged in &found.damaged {
        let why = one_line(&damaged.why);
        if damaged.uses.is_empty() {
            text.push_str(&format!("  {}: {why}\n", one_line(&damaged.content)));
        }
        for used in &damaged.uses {
            let path = one_line(&used.path.to_string());
            text.push_str(&format!("  {path} of {}: {why}\n", words::id(used.checkpoint)));
        }
    }
    text.push_str("Everything else can still be restored.\n");
    text
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without options it shows the settings. They are the owner's: nothing inside the sandbox can change
them. What is excluded is neither recorded nor touched by an undo. --exclude replaces the present
list; patterns start at /workspace, * stays within a name and ** does not.

Examples:
  nacre history settings
  nacre history settings --exclude '**/node_modules' --exclude cache
  nacre history settings --largest-file 4G --quota 20G
  nacre history settings --reset")]
pub(super) struct Settings {
    /// Names to leave out; may be given more than once
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Larger files are noted without their content, such as 512M
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    largest_file: Option<u64>,
    /// How much the history may take, such as 20G
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    quota: Option<u64>,
    /// Back to how they were at first, before the other options
    #[arg(long)]
    reset: bool,
}

impl Settings {
    pub(super) async fn run(self, door: &Client, context: &Context) -> Result<ExitCode> {
        let present = door.history_settings().await?;
        let wanted = self.apply(present.clone());
        if wanted != present {
            door.set_history_settings(&wanted).await?;
        }
        if context.json {
            output::print_json(&wanted)?;
        } else {
            output::print(&show(&wanted))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn apply(self, present: HistorySettings) -> HistorySettings {
        let before = if self.reset { HistorySettings::default() } else { present };
        HistorySettings {
            exclude: if self.exclude.is_empty() { before.exclude } else { self.exclude },
            largest_file_bytes: self.largest_file.or(before.largest_file_bytes),
            quota_bytes: self.quota.or(before.quota_bytes),
        }
    }
}

fn show(settings: &HistorySettings) -> String {
    let size = |size: Option<u64>| size.map_or_else(|| "the default".to_owned(), bytes);
    let exclude = match &settings.exclude[..] {
        [] => "nothing".to_owned(),
        globs => globs.iter().map(|glob| one_line(glob)).collect::<Vec<_>>().join(", "),
    };
    format!(
        "Excluded      {exclude}\nLargest file  {}\nQuota         {}\n",
        size(settings.largest_file_bytes),
        size(settings.quota_bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_wire::history::{Damaged, PathBytes, Use};

    #[test]
    fn space_and_damage_for_people() {
        let usage = HistoryUsage {
            disk_bytes: 3 << 20,
            quota_bytes: 2 << 30,
            packs_bytes: 2 << 20,
            log_bytes: 1 << 20,
            checkpoints: 12,
            names: 340,
            present_bytes: 5 << 20,
            past_bytes: 1 << 20,
            largest: vec![PathBytes { path: "a.bin".into(), bytes: 1 << 19 }],
        };
        let damaged = Damaged {
            content: "ab".into(),
            why: "a bad sum".into(),
            uses: vec![Use { path: "src/a".into(), checkpoint: 3 }],
        };
        let found = Verified { contents: 9, damaged: vec![damaged] };
        insta::assert_snapshot!(format!("{}--\n{}", explain(&usage), findings(&found)));
    }

    #[test]
    fn settings_that_are_not_named_stay() {
        let present = HistorySettings {
            exclude: vec!["a".into()],
            largest_file_bytes: Some(1),
            quota_bytes: None,
        };
        let ask = |reset, exclude: &[&str], quota| Settings {
            exclude: exclude.iter().map(|glob| (*glob).to_owned()).collect(),
            largest_file: None,
            quota,
            reset,
        };
        assert_eq!(ask(false, &[], None).apply(present.clone()), present);
        let both = ask(false, &["b"], Some(9)).apply(present.clone());
        assert_eq!((both.exclude, both.largest_file_bytes), (vec!["b".to_owned()], Some(1)));
        assert_eq!(ask(true, &[], None).apply(present), HistorySettings::default());
    }
}
