//! What a person sees in place of an app that is not up: how it is, its last words, and the way
//! to the supervisor's own page. It comes back by itself when the app does.

use axum::response::{Html, IntoResponse, Response};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, StatusCode};
use nacre_wire::processes::{LogLine, ProcessInfo, ProcessState};

use super::manager::Entry;
use super::mount::prefix;
use crate::page::nonce;

const PAGE: &str = include_str!("waiting.html");
const LINES: usize = 40;
const LONGEST_LINE: usize = 400;

pub(crate) fn page(entry: &Entry, headers: &HeaderMap) -> Response {
    let nonce = match nonce() {
        Ok(nonce) => nonce,
        Err(failure) => return failure.into_response(),
    };
    let html = render(&nonce, prefix(headers), &entry.info, &entry.log.tail(LINES));
    let mut response = (StatusCode::SERVICE_UNAVAILABLE, Html(html)).into_response();
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&policy(&nonce)) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The state of a process as half a sentence.
pub(crate) fn in_words(info: &ProcessInfo) -> String {
    let state = match info.state {
        ProcessState::Stopped => "it is stopped",
        ProcessState::Starting => "it is starting",
        ProcessState::Ready if info.responding == Some(false) => "it hangs",
        ProcessState::Ready => "it does not take connections",
        ProcessState::Stopping => "it is stopping",
        ProcessState::BackingOff => "it ended and is started again soon",
        ProcessState::CrashLooping => "it keeps ending and is tried again now and then",
        ProcessState::Failed => "it failed",
        ProcessState::Unknown => "its state is unknown",
    };
    match &info.reason {
        Some(reason) => format!("{state} ({reason})"),
        None => state.to_owned(),
    }
}

fn render(nonce: &str, prefix: &str, info: &ProcessInfo, lines: &[LogLine]) -> String {
    let log: Vec<String> = lines
        .iter()
        .map(|line| escape(&line.text.chars().take(LONGEST_LINE).collect::<String>()))
        .collect();
    // The log last: what it holds must not be taken for a place to fill.
    PAGE.replace("{nonce}", nonce)
        .replace("{prefix}", prefix)
        .replace("{name}", &escape(&info.name))
        .replace("{state}", &escape(&in_words(info)))
        .replace("{command}", &escape(&info.command))
        .replace("{log}", &log.join("\n"))
}

fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    )
}

pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Colours are for terminals.
            c if c.is_control() && c != '\t' => {}
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_wire::processes::LogStream;

    fn info(reason: &str) -> ProcessInfo {
        ProcessInfo {
            name: "runtime".into(),
            state: ProcessState::CrashLooping,
            reason: Some(reason.into()),
            since: 0,
            responding: None,
            pid: None,
            exit_code: Some(1),
            restarts: 5,
            ends_in_a_row: 0,
            run: 6,
            next_try: None,
            command: "npm run \"dev\"".into(),
            directory: std::path::Path::new("/workspace").into(),
            port: Some(5173),
            log_seq: 1,
        }
    }

    #[test]
    fn nothing_an_app_prints_becomes_markup() {
        let text = "\x1b[31m<script>alert('{nonce}')</script>".to_owned();
        let line = LogLine { seq: 1, at: 0, stream: LogStream::Stderr, text };
        let html = render("abc", "/dev", &info("<img src=x>"), &[line]);
        assert!(html.contains("&lt;script&gt;alert(&#39;{nonce}&#39;)"), "{html}");
        assert!(!html.contains("<img") && !html.contains("alert('"), "{html}");
        assert_eq!(html.matches("<script nonce=\"abc\">").count(), html.matches("<script").count());
        assert!(html.contains("href=\"/dev/supervisor/\""));
    }
}
