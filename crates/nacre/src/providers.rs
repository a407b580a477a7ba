//! `providers.toml` in the data directory: the providers that `nacre provider add` keeps.
//!
//! It has the same tables as `nacre.toml`, which people write and programs leave alone. Keys are in
//! files of their own below `keys`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nacre_gateway::RawProvider;
use serde::Deserialize;
use toml::{Table, Value};

use crate::failure::{Failure, Result};

pub(crate) const FILE: &str = "providers.toml";
const KEYS: &str = "keys";
const HEADER: &str = "# Written by `nacre provider`; write your own tables into nacre.toml.\n\n";

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Providers {
    provider: BTreeMap<String, RawProvider>,
}

pub(crate) fn read(data_dir: &Path) -> Result<BTreeMap<String, RawProvider>> {
    let path = data_dir.join(FILE);
    let text = text(&path)?;
    let wrong =
        |error: toml::de::Error| Failure::new(format!("{}: {}", path.display(), error.message()));
    let mut all = toml::from_str::<Providers>(&text).map_err(wrong)?.provider;
    all.values_mut().for_each(|provider| provider.files_below(data_dir));
    Ok(all)
}

/// Puts a table in the place of the one of that name.
pub(crate) fn put(data_dir: &Path, name: &str, table: Table) -> Result<()> {
    change(data_dir, |all| drop(all.insert(name.to_owned(), Value::Table(table))))
}

/// Whether there was one. Its key goes with it.
pub(crate) fn remove(data_dir: &Path, name: &str) -> Result<bool> {
    let mut found = false;
    change(data_dir, |all| found = all.remove(name).is_some())?;
    let key = key_file(data_dir, name);
    match fs::remove_file(&key) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::io(key.display(), &error))
        }
        Ok(()) | Err(_) => Ok(found),
    }
}

/// Where the key of a provider is kept, from the data directory.
pub(crate) fn key_name(name: &str) -> PathBuf {
    Path::new(KEYS).join(name)
}

fn key_file(data_dir: &Path, name: &str) -> PathBuf {
    data_dir.join(key_name(name))
}

/// For its owner's eyes only, from the first byte on.
pub(crate) fn write_key(data_dir: &Path, name: &str, key: &str) -> Result<()> {
    let folder = data_dir.join(KEYS);
    let failed = |error: io::Error| Failure::io(folder.display(), &error);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
    replace(&key_file(data_dir, name), format!("{key}\n").as_bytes())
}

fn change(data_dir: &Path, change: impl FnOnce(&mut Table)) -> Result<()> {
    let path = data_dir.join(FILE);
    let text = text(&path)?;
    let wrong = |why: &dyn std::fmt::Display| Failure::new(format!("{}: {why}", path.display()));
    let mut file: Table = toml::from_str(&text).map_err(|error| wrong(&error.message()))?;
    let all = file.entry("provider").or_insert_with(|| Value::Table(Table::new()));
    let all = all.as_table_mut().ok_or_else(|| wrong(&"provider is no table"))?;
    change(all);
    let text = toml::to_string(&file).map_err(|error| wrong(&error))?;
    replace(&path, format!("{HEADER}{text}").as_bytes())
}

fn text(path: &Path) -> Result<String> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(Failure::io(path.display(), &error)),
    }
}

/// In one step, so that nobody reads half of it.
fn replace(path: &Path, content: &[u8]) -> Result<()> {
    let failed = |error: io::Error| Failure::io(path.display(), &error);
    let new = path.with_extension("new");
    let _ = fs::remove_file(&new);
    let mut file = fs::OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&new)
        .map_err(failed)?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(&new, path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn what_is_added_is_read_and_what_is_removed_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap().is_empty());
        write_key(dir.path(), "a", "sk-1").unwrap();
        let mut table = Table::new();
        table.insert("kind".to_owned(), "openai".into());
        table.insert("key_file".to_owned(), "keys/a".into());
        put(dir.path(), "a", table.clone()).unwrap();
        put(dir.path(), "b", table).unwrap();
        let all = read(dir.path()).unwrap();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["a", "b"]);
        let key = all["a"].key_file.clone().unwrap();
        assert_eq!(fs::read_to_string(&key).unwrap(), "sk-1\n");
        assert_eq!(fs::metadata(&key).unwrap().mode() & 0o777, 0o600);
        assert!(remove(dir.path(), "a").unwrap() && !key.exists());
        assert!(!remove(dir.path(), "a").unwrap());
        assert_eq!(read(dir.path()).unwrap().len(), 1);
    }
}
