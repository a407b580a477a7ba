//! Holds ARCHITECTURE.md to the workspace: its code map names each crate and the desktop, and no other.

use std::collections::BTreeSet;
use std::fs;

use crate::cargo;

/// What is not a crate and yet a program.
const DESKTOP: &str = "shell";

/// Folders with a `Cargo.toml`, as the workspace's `members` lists them.
fn crates() -> BTreeSet<String> {
    let manifest = fs::read_to_string(cargo::root().join("Cargo.toml")).unwrap();
    let members = manifest.lines().find(|line| line.starts_with("members")).unwrap();
    let patterns = members.split('"').skip(1).step_by(2);
    patterns
        .flat_map(expand)
        .filter(|path| cargo::root().join(path).join("Cargo.toml").exists())
        .collect()
}

fn expand(pattern: &str) -> Vec<String> {
    let Some(parent) = pattern.strip_suffix("/*") else { return vec![pattern.to_owned()] };
    let entries = fs::read_dir(cargo::root().join(parent)).unwrap();
    entries
        .map(|entry| format!("{parent}/{}", entry.unwrap().file_name().to_str().unwrap()))
        .collect()
}

/// The first word in backticks of each row of the table below `## Code map`.
fn mapped() -> BTreeSet<String> {
    let page = fs::read_to_string(cargo::root().join("ARCHITECTURE.md")).unwrap();
    let section = page.split("\n## ").find(|section| section.starts_with("Code map")).unwrap();
    section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_code_map_names_exactly_the_crates_of_the_workspace_and_the_desktop() {
    let mut expected = crates();
    expected.insert(DESKTOP.to_owned());
    assert_eq!(mapped(), expected);
}
