//! `nacre ls`: a folder in a sandbox.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use clap::Args;
use nacre_wire::client::Client;
use nacre_wire::files::{FileKind, Stat};

use super::Context;
use crate::copy::place::Place;
use crate::failure::{Failure, Result};
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  nacre ls\n  nacre ls -l site\n  nacre ls dev:/etc")]
pub(crate) struct Ls {
    /// Show type, mode, size and age too
    #[arg(short, long)]
    long: bool,
    /// PATH in the live sandbox, or NAME:PATH
    #[arg(default_value = ".")]
    path: String,
}

pub(crate) async fn run(command: Ls, context: &Context) -> Result<ExitCode> {
    let place = Place::parse_remote(&command.path);
    let door = context.gateway().await?.door(&place.sandbox);
    let entries = entries(&door, &place.path).await?;
    if context.json {
        output::print_json(&entries)?;
    } else if command.long {
        let rows: Vec<_> = entries.iter().map(row).collect();
        let text = output::table(&["MODE", "SIZE", "CHANGED", "NAME"], &rows);
        output::print(&text)?;
    } else {
        let names: String = entries.iter().map(|entry| format!("{}\n", name(entry))).collect();
        output::print(&names)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// All pages of a folder, or the one file.
async fn entries(door: &Client, path: &Path) -> Result<Vec<Stat>> {
    let mut entries = Vec::new();
    let mut after = None;
    loop {
        let page = match door.list(path, None, after.as_ref()).await {
            Ok(page) => page,
            Err(error) if error.kind() == nacre_wire::ErrorKind::NotDirectory => {
                return Ok(vec![door.stat(path).await?]);
            }
            Err(error) => return Err(Failure::from(error)),
        };
        entries.extend(page.entries);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(entries),
        }
    }
}

fn name(entry: &Stat) -> String {
    let mut name = output::one_line(&entry.path.to_string());
    if entry.kind == FileKind::Directory {
        name.push('/');
    }
    name
}

fn row(entry: &Stat) -> Vec<String> {
    let changed = u64::try_from(entry.modified_ns).map(Duration::from_nanos).unwrap_or_default();
    let age = (UNIX_EPOCH + changed).elapsed().unwrap_or_default();
    let mut shown = name(entry);
    if let Some(target) = &entry.target {
        shown.push_str(&format!(" -> {}", output::one_line(&target.to_string())));
    }
    vec![mode(entry), output::bytes(entry.size), format!("{} ago", output::duration(age)), shown]
}

/// `drwxr-x---`, as ls writes it.
fn mode(entry: &Stat) -> String {
    let kind = match entry.kind {
        FileKind::File => '-',
        FileKind::Directory => 'd',
        FileKind::Symlink => 'l',
        FileKind::Fifo => 'p',
        FileKind::Socket => 's',
        FileKind::BlockDevice => 'b',
        FileKind::CharDevice => 'c',
        FileKind::Unknown => '?',
    };
    let special =
        |bit: u32, set: char, unset: char, plain: char| match (entry.mode & bit != 0, plain == 'x')
        {
            (true, true) => set,
            (true, false) => unset,
            (false, _) => plain,
        };
    let bit = |mask: u32, letter: char| if entry.mode & mask != 0 { letter } else { '-' };
    [
        kind,
        bit(0o400, 'r'),
        bit(0o200, 'w'),
        special(0o4000, 's', 'S', bit(0o100, 'x')),
        bit(0o040, 'r'),
        bit(0o020, 'w'),
        special(0o2000, 's', 'S', bit(0o010, 'x')),
        bit(0o004, 'r'),
        bit(0o002, 'w'),
        special(0o1000, 't', 'T', bit(0o001, 'x')),
    ]
    .into_iter()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(kind: FileKind, mode: u32, path: &str) -> Stat {
        Stat {
            path: path.into(),
            kind,
            size: 0,
            mode,
            uid: 0,
            gid: 0,
            links: 1,
            modified_ns: 0,
            etag: String::new(),
            target: None,
        }
    }

    #[test]
    fn modes_read_as_in_ls() {
        let cases = [
            (FileKind::File, 0o644, "-rw-r--r--"),
            (FileKind::Directory, 0o1777, "drwxrwxrwt"),
            (FileKind::File, 0o4755, "-rwsr-xr-x"),
            (FileKind::File, 0o2644, "-rw-r-Sr--"),
            (FileKind::Symlink, 0o777, "lrwxrwxrwx"),
        ];
        for (kind, bits, expected) in cases {
            assert_eq!(mode(&stat(kind, bits, "x")), expected);
        }
    }

    #[test]
    fn a_name_cannot_write_on_the_terminal() {
        assert_eq!(name(&stat(FileKind::File, 0, "a\x1b[2Jb")), "a\\u{1b}[2Jb");
        assert_eq!(name(&stat(FileKind::Directory, 0, "d")), "d/");
    }
}
