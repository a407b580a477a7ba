//! `cargo xtask install`: one file to run, and what a shell and `man` want beside it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{builds, shell, tools};

/// Shell, and where its completions go below the prefix.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "share/bash-completion/completions/nacre"),
    ("zsh", "share/zsh/site-functions/_nacre"),
    ("fish", "share/fish/vendor_completions.d/nacre.fish"),
];

pub(crate) fn run(args: &[String]) -> Result<()> {
    let prefix = match args {
        [] => PathBuf::from("/usr/local"),
        [flag, dir] if flag == "--prefix" => PathBuf::from(dir),
        _ => bail!("install takes --prefix DIR and nothing else"),
    };
    tools::ensure(&[tools::For::Build])?;
    let nacre = builds::release()?.nacre;
    let bin = prefix.join("bin/nacre");
    put(&bin, &fs::read(&nacre)?, 0o755)?;
    for (shell, place) in COMPLETIONS {
        let script = shell::output(Command::new(&nacre).args(["completions", shell]))?;
        put(&prefix.join(place), script.as_bytes(), 0o644)?;
    }
    let man = prefix.join("share/man/man1");
    fs::create_dir_all(&man).with_context(|| format!("cannot make {}", man.display()))?;
    shell::run(Command::new(&nacre).arg("man").arg(&man))?;
    println!("installed {}", bin.display());
    Ok(())
}

/// Writes beside the place and renames: a running `nacre` keeps the file it was started from.
fn put(place: &Path, content: &[u8], mode: u32) -> Result<()> {
    let named = || format!("cannot write {}", place.display());
    let folder = place.parent().with_context(named)?;
    fs::create_dir_all(folder).with_context(named)?;
    let fresh = place.with_extension("new");
    fs::write(&fresh, content).with_context(named)?;
    fs::set_permissions(&fresh, fs::Permissions::from_mode(mode)).with_context(named)?;
    fs::rename(&fresh, place).with_context(named)?;
    println!("  {}", place.display());
    Ok(())
}
