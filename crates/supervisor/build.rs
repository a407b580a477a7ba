//! Puts the desktop into `OUT_DIR`, from where `src/desktop/built.rs` embeds it.
//!
//! `NACRE_DESKTOP` names the folder that `cargo xtask` makes of it: `built/`, `source.tar.gz` and
//! `modules.id`. Without it a page says that there is none, and there is nothing to seed.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

type Outcome<T> = Result<T, Box<dyn Error>>;

const PAGE: &str = "index.html";
const ID_LENGTH: usize = 16;

fn main() -> Outcome<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=NACRE_DESKTOP");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let package = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let named = env::var_os("NACRE_DESKTOP").filter(|folder| !folder.is_empty());
    let code = match named {
        Some(folder) => carried(&package.join("../..").join(folder), &out)?,
        None => without(&package, &out)?,
    };
    fs::write(out.join("desktop.rs"), code)?;
    Ok(())
}

fn carried(folder: &Path, out: &Path) -> Outcome<String> {
    let at = |name: &str| folder.join(name);
    let read = |name: &str| {
        println!("cargo:rerun-if-changed={}", at(name).display());
        fs::read(at(name)).map_err(|error| format!("{}: {error}", at(name).display()))
    };
    println!("cargo:rerun-if-changed={}", at("built").display());
    let mut names = Vec::new();
    list(&at("built"), "", &mut names)?;
    names.sort();
    if !names.iter().any(|name| name == PAGE) {
        return Err(format!("{} has no {PAGE}", at("built").display()).into());
    }
    let mut files = Vec::new();
    for name in names {
        files.push((name.clone(), fs::read(at("built").join(&name))?));
    }
    let id = String::from_utf8(read("modules.id")?)?.trim().to_owned();
    if id.len() != ID_LENGTH || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(format!("modules.id is not {ID_LENGTH} hex digits: {id:?}").into());
    }
    fs::write(out.join("source.tar.gz"), read("source.tar.gz")?)?;
    let source = "Some(include_bytes!(concat!(env!(\"OUT_DIR\"), \"/source.tar.gz\")))";
    code(&files, source, &id, out)
}

fn without(package: &Path, out: &Path) -> Outcome<String> {
    let page = package.join("src/desktop/without.html");
    println!("cargo:rerun-if-changed={}", page.display());
    code(&[(PAGE.to_owned(), fs::read(page)?)], "None", "", out)
}

/// Names below the folder, with slashes.
fn list(folder: &Path, above: &str, names: &mut Vec<String>) -> Outcome<()> {
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|name| format!("{name:?}"))?;
        let name = format!("{above}{name}");
        if entry.file_type()?.is_dir() {
            list(&entry.path(), &format!("{name}/"), names)?;
        } else {
            names.push(name);
        }
    }
    Ok(())
}

fn code(files: &[(String, Vec<u8>)], source: &str, id: &str, out: &Path) -> Outcome<String> {
    let mut code = "pub(super) static FILES: &[File] = &[\n".to_owned();
    for (number, (name, content)) in files.iter().enumerate() {
        let small = gzip(content)?;
        // Pictures and fonts are as small as they get.
        let packed = small.len() < content.len();
        fs::write(out.join(format!("desktop-{number}")), if packed { &small } else { content })?;
        writeln!(
            code,
            "    File {{ name: {name:?}, packed: {packed}, bytes: \
             include_bytes!(concat!(env!(\"OUT_DIR\"), \"/desktop-{number}\")) }},"
        )?;
    }
    writeln!(code, "];\npub(super) static SOURCE: Option<&[u8]> = {source};")?;
    writeln!(code, "pub(super) const MODULES: &str = {id:?};")?;
    Ok(code)
}

fn gzip(content: &[u8]) -> Outcome<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    Ok(encoder.finish()?)
}
