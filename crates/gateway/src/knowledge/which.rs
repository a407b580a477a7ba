//! Which files are documents. Pure.

use std::path::Path;

use super::KnowledgeConfig;

/// Where the files of a sandbox are.
pub(super) const ROOT: &str = "/workspace";
/// A longer file is hardly read by people, and would hold up all others.
pub(super) const LARGEST: u64 = 1 << 20;

const TEXT: &[&str] = &["md", "markdown", "mdx", "txt", "org", "rst", "adoc", "tex", "typ"];
const CODE: &[&str] = &[
    "rs", "py", "js", "jsx", "ts", "tsx", "go", "java", "kt", "c", "h", "cc", "cpp", "hpp", "cs",
    "rb", "php", "swift", "sh", "sql", "css", "html", "vue", "svelte", "toml", "yaml", "yml",
    "json", "lua", "ex", "hs", "ml", "zig",
];
/// What programs make and fetch, and nobody wrote here.
const LEFT_OUT: &[&str] = &[
    "node_modules",
    "target",
    "dist",
    "build",
    "out",
    "venv",
    "__pycache__",
    "vendor",
    "coverage",
    "site-packages",
    "bower_components",
];
/// Long by nature, and not written by people either.
const LOCKS: &[&str] = &["package-lock.json", "pnpm-lock.yaml", "composer.lock"];

/// Whether a folder, as a path from the workspace, is looked into.
pub(super) fn folder(config: &KnowledgeConfig, path: &str) -> bool {
    path.is_empty() || (path.split('/').all(|name| !skipped(name)) && !excluded(config, path))
}

/// Whether a file, as a path from the workspace, is a document.
pub(super) fn document(config: &KnowledgeConfig, path: &str) -> bool {
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    let kind = ending
        .as_deref()
        .is_some_and(|ending| TEXT.contains(&ending) || (config.code && CODE.contains(&ending)));
    kind && !name.starts_with('.')
        && !LOCKS.contains(&name)
        && folder(config, above)
        && !excluded(config, path)
}

fn skipped(name: &str) -> bool {
    name.starts_with('.') || LEFT_OUT.contains(&name)
}

/// By its name or that of something above it, or by its path or one above it.
fn excluded(config: &KnowledgeConfig, path: &str) -> bool {
    config.exclude.iter().any(|rule| {
        let below = path.strip_prefix(rule.as_str());
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            || (!rule.contains('/') && path.split('/').any(|name| name == rule))
    })
}

/// A path from the workspace. `None` for what is not below it or has a name that is not text.
pub(super) fn relative(path: &Path) -> Option<String> {
    let below = if path.is_absolute() { path.strip_prefix(ROOT).ok()? } else { path };
    let mut names = Vec::new();
    for part in below.components() {
        match part {
            std::path::Component::Normal(name) => names.push(name.to_str()?),
            std::path::Component::CurDir => {}
            _ => return None,
        }
    }
    let joined = names.join("/");
    (!joined.chars().any(char::is_control)).then_some(joined)
}

pub(super) fn absolute(path: &str) -> String {
    if path.is_empty() { ROOT.to_owned() } else { format!("{ROOT}/{path}") }
}

/// Text, as far as one can tell.
pub(super) fn text(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// By the ending of a name.
pub(super) fn media_type(path: &str) -> &'static str {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    match ending.as_deref() {
        Some("md" | "markdown" | "mdx") => "text/markdown",
        Some("html" | "htm") => "text/html",
        Some("txt" | "org" | "rst" | "adoc" | "tex" | "typ") => "text/plain",
        Some("json") => "application/json",
        Some("pdf") => "application/pdf",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("svg") => "image/svg+xml",
        Some(ending) if CODE.contains(&ending) => "text/plain",
        Some(_) | None => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_a_document_unless_it_is_somebody_elses() {
        let plain = KnowledgeConfig::default();
        let code = KnowledgeConfig {
            code: true,
            exclude: vec!["drafts".to_owned(), "a/b".to_owned()],
            ..Default::default()
        };
        let check = |path: &str, as_text: bool, as_code: bool| {
            assert_eq!(document(&plain, path), as_text, "{path}");
            assert_eq!(document(&code, path), as_code, "{path}");
        };
        check("notes.md", true, true);
        check("a/NOTES.MD", true, true);
        check("main.rs", false, true);
        check("README", false, false);
        check(".hidden.md", false, false);
        check("node_modules/x/README.md", false, false);
        check("a/target/doc.md", false, false);
        check(".git/x.md", false, false);
        check("targets/x.md", true, true);
        check("package-lock.json", false, false);
        check("x/drafts/y.md", true, false);
        check("drafts.md", true, true);
        check("a/b/c.md", true, false);
        check("a/bc.md", true, true);
        check("photo.png", false, false);
    }

    #[test]
    fn paths_are_told_from_the_workspace() {
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(relative(Path::new(path)).as_deref(), expected, "{path}");
        };
        check("/workspace/a/b.md", Some("a/b.md"));
        check("/workspace", Some(""));
        check("./a//b.md", Some("a/b.md"));
        check("/etc/passwd", None);
        check("/workspaces/a", None);
        check("../a", None);
        check("a\nb", None);
    }
}
