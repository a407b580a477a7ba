//! The copy that the binary carries. It is kept as small as it goes over the wire.

use std::io::{self, Read};

use axum::body::{Body, Bytes};
use axum::response::{Html, IntoResponse, Response};
use flate2::read::GzDecoder;
use futures_util::stream;
use http::HeaderMap;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    HeaderValue, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use nacre_wire::ErrorKind;
use nacre_wire::processes::{LogLine, ProcessInfo, ProcessState};

use super::guard;
use crate::failure::Failure;
use crate::runtime::Entry;

include!(concat!(env!("OUT_DIR"), "/desktop.rs"));

/// A file of the copy.
pub(super) struct File {
    name: &'static str,
    /// Its bytes are gzip.
    packed: bool,
    bytes: &'static [u8],
}

const PAGE: &str = "index.html";
const ASSETS: &str = "assets/";
/// No larger page is carried; the rest of one that is would be missing.
const LARGEST_PAGE: u64 = 1 << 20;
const PIECE: usize = 32 * 1024;
/// Last words of a process that are looked through.
const LINES: usize = 20;
/// As a shell says that there is no such command.
const NOT_FOUND: i32 = 127;
const POLICY: &str = "object-src 'self'; base-uri 'self'; frame-ancestors 'self'";

/// Why this copy is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The one in the workspace is on its way.
    Starting,
    /// It is not.
    Failed,
    /// There is nothing that could run it.
    NoNode,
    /// Somebody wants it so.
    Chosen,
    /// There is no other.
    Nothing,
}

impl Reason {
    /// For an app that is not ready.
    pub(crate) fn of(entry: &Entry) -> Self {
        Self::judge(&entry.info, &entry.log.tail(LINES))
    }

    fn judge(info: &ProcessInfo, last_words: &[LogLine]) -> Self {
        match info.state {
            ProcessState::Starting | ProcessState::Stopping => Self::Starting,
            ProcessState::BackingOff | ProcessState::CrashLooping | ProcessState::Failed
                if info.exit_code == Some(NOT_FOUND)
                    && last_words.iter().any(|line| misses_node(&line.text)) =>
            {
                Self::NoNode
            }
            ProcessState::Stopped
            | ProcessState::Ready
            | ProcessState::BackingOff
            | ProcessState::CrashLooping
            | ProcessState::Failed
            | ProcessState::Unknown => Self::Failed,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Failed => "failed",
            Self::NoNode => "no-node",
            Self::Chosen => "chosen",
            Self::Nothing => "none",
        }
    }
}

/// `sh: 1: npm: not found`, `bash: npm: command not found`, `env: ‘node’: No such file or directory`.
fn misses_node(line: &str) -> bool {
    let missing = line.contains("not found") || line.contains("No such file");
    let words = line.split(|c: char| !c.is_ascii_alphanumeric());
    missing && words.into_iter().any(|word| matches!(word, "node" | "npm" | "npx"))
}

/// Whether the page gets the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guarded {
    Yes,
    No,
}

/// The page, for a sandbox that is mounted at `prefix`.
pub(crate) fn page(prefix: &str, reason: Reason, guarded: Guarded) -> Response {
    let Some(html) = FILES.iter().find(|file| file.name == PAGE).and_then(text) else {
        return Failure::new(ErrorKind::Internal, "the built page cannot be read").into_response();
    };
    let others = FILES.iter().map(|file| file.name).filter(|name| !name.contains('/'));
    let html = render(&html, others, prefix, reason, guarded);
    let mut response = Html(html).into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

fn text(file: &File) -> Option<String> {
    let mut text = String::new();
    match file.packed {
        true => {
            GzDecoder::new(file.bytes).take(LARGEST_PAGE).read_to_string(&mut text).ok()?;
        }
        false => text.push_str(std::str::from_utf8(file.bytes).ok()?),
    }
    Some(text)
}

/// It may be shown at `/`, where its files are not, so it names them by where they always are.
fn render<'a>(
    html: &str,
    others: impl Iterator<Item = &'a str>,
    prefix: &str,
    reason: Reason,
    guarded: Guarded,
) -> String {
    let home = format!("{prefix}/supervisor/desktop/");
    let mark = format!("data-nacre=\"built\" data-reason=\"{}\"", reason.as_str());
    let html = html
        .replacen("data-nacre=\"source\"", &mark, 1)
        .replace("./assets/", &format!("{home}{ASSETS}"))
        .replace("\"./supervisor/", &format!("\"{prefix}/supervisor/"));
    let html = others.fold(html, |html, name| {
        html.replace(&format!("\"./{name}\""), &format!("\"{home}{name}\""))
    });
    match guarded {
        Guarded::Yes => guard::inserted(&html, prefix),
        Guarded::No => html,
    }
}

/// A file that the page names.
pub(super) fn file(name: &str, asked: &HeaderMap) -> Result<Response, Failure> {
    let found = FILES.iter().find(|file| file.name == name && name != PAGE);
    let file = found.ok_or_else(|| {
        Failure::new(ErrorKind::NotFound, format!("the built desktop has no \"{name}\""))
    })?;
    Ok(serve(file, takes_gzip(asked)))
}

fn serve(file: &'static File, takes_gzip: bool) -> Response {
    let mut response = match (file.packed, takes_gzip) {
        (false, _) | (true, true) => Body::from(Bytes::from_static(file.bytes)).into_response(),
        (true, false) => inflated(file.bytes).into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type(file.name)));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Names of assets change with their content.
    let kept = if file.name.starts_with(ASSETS) {
        "private, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(kept));
    if file.packed {
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if takes_gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
    }
    response
}

/// Piece by piece, so that neither memory nor others wait for it.
fn inflated(bytes: &'static [u8]) -> Body {
    Body::from_stream(stream::try_unfold(GzDecoder::new(bytes), |mut decoder| async move {
        let mut piece = Vec::with_capacity(PIECE);
        decoder.by_ref().take(PIECE as u64).read_to_end(&mut piece)?;
        Ok::<_, io::Error>((!piece.is_empty()).then(|| (Bytes::from(piece), decoder)))
    }))
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut codings = values.flat_map(|value| value.split(','));
    codings.any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let refused = parts.any(|part| {
            part.strip_prefix("q=").is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q <= 0.0))
        });
        named && !refused
    })
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "ttf" => "font/ttf",
        "wasm" => "application/wasm",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;
    use nacre_wire::processes::LogStream;

    const HTML: &str = "<!doctype html><html lang=\"en\" data-nacre=\"source\"><head>\
        <script src=\"./assets/a-1.js\"></script><link href=\"./icon.svg\"></head></html>";

    #[test]
    fn the_page_names_its_files_by_where_they_always_are() {
        let check = |prefix: &str, guarded, expected: &[&str]| {
            let html = render(HTML, ["icon.svg"].into_iter(), prefix, Reason::Starting, guarded);
            for part in expected {
                assert!(html.contains(part), "{part} in {html}");
            }
            assert_eq!(html.contains("guard.js"), guarded == Guarded::Yes, "{html}");
            assert!(!html.contains("\"./"), "{html}");
        };
        let mark = "<html lang=\"en\" data-nacre=\"built\" data-reason=\"starting\">";
        let root =
            [mark, "\"/supervisor/desktop/assets/a-1.js\"", "\"/supervisor/desktop/icon.svg\""];
        check("", Guarded::No, &root);
        let below = [
            "\"/dev/supervisor/desktop/assets/a-1.js\"",
            "<head><script src=\"/dev/supervisor/guard.js\" data-nacre-guard></script><script",
        ];
        check("/dev", Guarded::Yes, &below);
    }

    #[test]
    fn the_copy_that_is_carried_can_be_shown() {
        let html = FILES.iter().find(|file| file.name == PAGE).and_then(text).unwrap();
        assert!(html.contains("data-nacre=\"source\""), "{html}");
        assert_eq!(page("/dev", Reason::Nothing, Guarded::No).status(), 200);
        for file in FILES.iter().filter(|file| file.name.ends_with(".js")) {
            assert!(html.len() < LARGEST_PAGE as usize && file.packed, "{}", file.name);
        }
    }

    #[test]
    fn why_it_is_shown_is_known() {
        let check = |state, exit_code, said: &str, expected| {
            let info = ProcessInfo { exit_code, ..info(state) };
            let text = said.to_owned();
            let line = LogLine { seq: 1, at: 0, stream: LogStream::Stderr, text };
            assert_eq!(Reason::judge(&info, &[line]), expected, "{state:?} {said}");
        };
        let off = ProcessState::BackingOff;
        check(ProcessState::Starting, None, "", Reason::Starting);
        check(ProcessState::Starting, Some(1), "", Reason::Starting);
        check(ProcessState::Ready, None, "", Reason::Failed);
        check(off, Some(1), "sh: 1: npm: not found", Reason::Failed);
        check(off, Some(127), "sh: 1: npm: not found", Reason::NoNode);
        check(off, Some(127), "/usr/bin/env: ‘node’: No such file or directory", Reason::NoNode);
        check(off, Some(127), "sh: 1: vite: not found", Reason::Failed);
        check(ProcessState::Stopped, Some(0), "", Reason::Failed);
    }

    fn info(state: ProcessState) -> ProcessInfo {
        ProcessInfo {
            name: "runtime".into(),
            state,
            reason: None,
            since: 0,
            responding: None,
            pid: None,
            exit_code: None,
            restarts: 0,
            ends_in_a_row: 0,
            run: 1,
            next_try: None,
            command: "npm run dev".into(),
            directory: std::path::Path::new("/workspace").into(),
            port: Some(1),
            log_seq: 1,
        }
    }

    #[test]
    fn gzip_goes_to_who_takes_it() {
        let check = |value: &'static str, expected| {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, value.parse().unwrap())]);
            assert_eq!(takes_gzip(&headers), expected, "{value}");
        };
        check("gzip", true);
        check("br, GZIP;q=0.5, deflate", true);
        check("gzip;q=0", false);
        check("identity, gzipped", false);
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[tokio::test]
    async fn a_file_is_the_same_packed_and_unpacked() {
        use flate2::{Compression, write::GzEncoder};
        use std::io::Write;
        let content = "let a = 1;\n".repeat(20_000);
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content.as_bytes()).unwrap();
        let bytes: &'static [u8] = encoder.finish().unwrap().leak();
        let file: &'static File =
            Box::leak(Box::new(File { name: "assets/a-1.js", packed: true, bytes }));
        let plain = serve(file, false);
        assert!(!plain.headers().contains_key(CONTENT_ENCODING));
        assert_eq!(plain.headers()[CONTENT_TYPE], "text/javascript; charset=utf-8");
        assert!(plain.headers()[CACHE_CONTROL].to_str().unwrap().contains("immutable"));
        assert_eq!(to_bytes(plain.into_body(), usize::MAX).await.unwrap(), content);
        let packed = serve(file, true);
        assert_eq!(packed.headers()[CONTENT_ENCODING], "gzip");
        assert_eq!(to_bytes(packed.into_body(), usize::MAX).await.unwrap(), bytes);
    }
}
