//! The tree of the comparison: what is in packages that people install, the same versions every time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::tree::{Tree, directories};

/// With many files, and none of them only icons, whose thousand files are nearly the same.
const PACKAGES: &[&str] = &[
    "@angular/common@19.0.4",
    "@aws-sdk/client-ec2@3.1166.0",
    "@babylonjs/core@9.31.0",
    "@blueprintjs/core@6.20.0",
    "@carbon/react@1.117.0",
    "@chakra-ui/react@3.38.0",
    "@elastic/eui@122.1.0",
    "@firebase/auth@1.8.1",
    "@fluentui/react@8.122.1",
    "@mui/material@6.2.0",
    "@mui/x-data-grid@9.14.0",
    "@tensorflow/tfjs-core@4.22.0",
    "@types/node@26.6.6",
    "ag-grid-community@36.2.0",
    "ant-design-vue@4.2.6",
    "antd@5.22.5",
    "caniuse-lite@1.0.30001689",
    "core-js-pure@3.51.0",
    "date-fns@4.1.0",
    "echarts@6.1.0",
    "effect@3.11.7",
    "element-plus@2.14.6",
    "es-abstract@1.24.2",
    "eslint@9.17.0",
    "ethers@6.13.4",
    "firebase@11.1.0",
    "highlight.js@11.11.0",
    "lodash-es@4.18.1",
    "mathjs@15.2.0",
    "moment@2.30.1",
    "ol@10.10.0",
    "primereact@11.2.0",
    "ramda@0.32.0",
    "rxjs@7.8.1",
    "semantic-ui-react@2.1.5",
    "svelte@5.14.1",
    "three@0.171.0",
    "typescript@5.7.2",
    "viem@2.21.55",
    "web3@4.16.0",
    "webpack@5.97.1",
];

/// Archives of all of them, in a folder that later runs use again.
pub(super) struct Packages {
    folder: PathBuf,
}

/// `@scope/name@1.2.3` as a folder of `node_modules`, and as npm names its archive.
fn names(package: &str) -> Option<(&str, String)> {
    let (name, version) = package.rsplit_once('@')?;
    let flat = name.trim_start_matches('@').replace('/', "-");
    Some((name, format!("{flat}-{version}.tgz")))
}

impl Packages {
    pub(super) fn fetch(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let is_missing = |package: &&str| {
            names(package).is_none_or(|(_, archive)| !folder.join(archive).exists())
        };
        let missing: Vec<&str> = PACKAGES.iter().copied().filter(is_missing).collect();
        if !missing.is_empty() {
            eprintln!("getting {} packages", missing.len());
            let mut npm = Command::new("npm");
            npm.args(["pack", "--silent", "--pack-destination"]).arg(folder).args(&missing);
            let status = npm.stdout(Stdio::null()).status().context("cannot run npm")?;
            ensure!(status.success(), "npm pack ended with {status}");
        }
        Ok(Self { folder: folder.to_owned() })
    }

    /// The first `files` files of them.
    pub(super) fn plant(&self, root: &Path, files: usize) -> Result<Tree> {
        let mut found = Vec::new();
        for package in PACKAGES {
            let (name, archive) = names(package).context("a package without a version")?;
            let below = Path::new("node_modules").join(name);
            unpack(&self.folder.join(archive), &root.join(&below))?;
            list(root, &below, &mut found)?;
            if found.len() >= files {
                break;
            }
        }
        ensure!(found.len() >= files, "the packages have only {} files", found.len());
        found.split_off(files).iter().for_each(|surplus| remove(root, surplus));
        let sizes = found.iter().map(|file| Ok(fs::metadata(root.join(file))?.len()));
        let bytes = sizes.sum::<Result<u64>>()?;
        Ok(Tree { root: root.to_owned(), directories: directories(&found), files: found, bytes })
    }
}

fn unpack(archive: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    let mut tar = Command::new("tar");
    tar.args(["--no-same-owner", "--strip-components=1", "-mxzf"]).arg(archive).arg("-C").arg(to);
    let status = tar.status().context("cannot run tar")?;
    ensure!(status.success(), "tar of {} ended with {status}", archive.display());
    Ok(())
}

/// In the order of their names.
fn list(root: &Path, below: &Path, into: &mut Vec<PathBuf>) -> Result<()> {
    let mut entries = fs::read_dir(root.join(below))?.collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_unstable_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            list(root, &path, into)?;
        } else {
            into.push(path);
        }
    }
    Ok(())
}

/// With the folders that are empty then.
fn remove(root: &Path, file: &Path) {
    let _ = fs::remove_file(root.join(file));
    for folder in file.ancestors().skip(1) {
        if fs::remove_dir(root.join(folder)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_named_as_npm_does() {
        assert_eq!(names("rxjs@7.8.1"), Some(("rxjs", "rxjs-7.8.1.tgz".to_owned())));
        let scoped = names("@mui/x-data-grid@9.14.0");
        assert_eq!(scoped, Some(("@mui/x-data-grid", "mui-x-data-grid-9.14.0.tgz".to_owned())));
        assert!(PACKAGES.iter().all(|package| names(package).is_some()));
    }
}
