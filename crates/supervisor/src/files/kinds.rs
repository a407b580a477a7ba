//! What a file is, by its name.

use std::path::Path;

/// How a browser is to take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) media_type: &'static str,
    /// A browser that opens it would run script that it holds.
    pub(crate) may_run: bool,
}

const TEXT: Kind = shown("text/plain; charset=utf-8");
const UNKNOWN: Kind = shown("application/octet-stream");

const fn shown(media_type: &'static str) -> Kind {
    Kind { media_type, may_run: false }
}

const fn running(media_type: &'static str) -> Kind {
    Kind { media_type, may_run: true }
}

pub(crate) fn of(path: &Path) -> Kind {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    match name.rsplit_once('.') {
        Some((_, extension)) => by_extension(extension),
        None => match name.as_str() {
            "readme" | "license" | "copying" | "authors" | "changelog" | "makefile"
            | "dockerfile" | "justfile" | "procfile" | "notice" | "todo" => TEXT,
            _ => UNKNOWN,
        },
    }
}

fn by_extension(extension: &str) -> Kind {
    match extension {
        "html" | "htm" => running("text/html; charset=utf-8"),
        "xhtml" => running("application/xhtml+xml"),
        "svg" => running("image/svg+xml"),
        "xml" | "xsl" | "xslt" | "rss" | "atom" | "kml" | "gpx" => running("application/xml"),
        "css" => shown("text/css; charset=utf-8"),
        "js" | "mjs" => shown("text/javascript; charset=utf-8"),
        "json" | "map" | "webmanifest" => shown("application/json"),
        "csv" => shown("text/csv; charset=utf-8"),
        "md" | "markdown" => shown("text/markdown; charset=utf-8"),
        "wasm" => shown("application/wasm"),
        "pdf" => shown("application/pdf"),
        "png" | "apng" => shown("image/png"),
        "jpg" | "jpeg" => shown("image/jpeg"),
        "gif" => shown("image/gif"),
        "webp" => shown("image/webp"),
        "avif" => shown("image/avif"),
        "bmp" => shown("image/bmp"),
        "ico" => shown("image/x-icon"),
        "mp4" | "m4v" => shown("video/mp4"),
        "webm" => shown("video/webm"),
        "mov" => shown("video/quicktime"),
        "mp3" => shown("audio/mpeg"),
        "m4a" => shown("audio/mp4"),
        "ogg" | "oga" | "opus" => shown("audio/ogg"),
        "wav" => shown("audio/wav"),
        "flac" => shown("audio/flac"),
        "woff" => shown("font/woff"),
        "woff2" => shown("font/woff2"),
        "ttf" => shown("font/ttf"),
        "otf" => shown("font/otf"),
        "zip" => shown("application/zip"),
        "gz" | "tgz" => shown("application/gzip"),
        "tar" => shown("application/x-tar"),
        "txt" | "log" | "text" | "toml" | "yaml" | "yml" | "ini" | "conf" | "cfg" | "env"
        | "lock" | "sh" | "bash" | "zsh" | "fish" | "py" | "rs" | "go" | "c" | "h" | "cc"
        | "cpp" | "hpp" | "java" | "kt" | "swift" | "rb" | "php" | "pl" | "lua" | "sql" | "ts"
        | "tsx" | "jsx" | "mts" | "cts" | "vue" | "svelte" | "scss" | "less" | "diff" | "patch"
        | "tex" | "rst" | "tsv" | "srt" | "vtt" | "jsonl" | "ndjson" | "gitignore"
        | "dockerfile" => TEXT,
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_a_file_is() {
        let check = |name: &str, media_type: &str, may_run: bool| {
            let found = of(Path::new(name));
            assert_eq!((found.media_type, found.may_run), (media_type, may_run), "{name}");
        };
        check("a/photo.JPG", "image/jpeg", false);
        check("drawing.svg", "image/svg+xml", true);
        check("page.html", "text/html; charset=utf-8", true);
        check("paper.pdf", "application/pdf", false);
        check("src/main.rs", "text/plain; charset=utf-8", false);
        check("Makefile", "text/plain; charset=utf-8", false);
        check(".gitignore", "text/plain; charset=utf-8", false);
        check("core", "application/octet-stream", false);
        check("a.svg.unknown", "application/octet-stream", false);
    }
}
