//! Sessions, tokens and the record, below `/admin/sandboxes`.

use utoipa::openapi::{HttpMethod, Required};

use super::call::Call;
use super::control::SOCKET_ONLY;
use crate::access::{AuditPage, CreateToken, MadeToken, SessionList, TokenList};
use crate::control::SetupCode;

pub(super) fn calls() -> Vec<Call> {
    let calls = sessions().into_iter().chain(tokens()).chain(record());
    calls.map(|call| call.tag("access")).collect()
}

fn sessions() -> Vec<Call> {
    let all = "/admin/sandboxes/sessions";
    vec![
        Call::new(HttpMethod::Get, all, "list_sessions", "Browsers that are signed in")
            .gives::<SessionList>("200", "Last used first"),
        Call::new(
            HttpMethod::Delete,
            "/admin/sandboxes/sessions/{id}",
            "end_session",
            "Sign a browser out; what it has open is closed",
        )
        .gives_nothing("204", "Ended"),
    ]
}

fn tokens() -> Vec<Call> {
    let all = "/admin/sandboxes/tokens";
    vec![
        Call::new(HttpMethod::Get, all, "list_tokens", "Tokens for programs")
            .gives::<TokenList>("200", "Oldest first"),
        Call::new(HttpMethod::Post, all, "create_token", "Make a token")
            .takes::<CreateToken>(Required::True)
            .gives::<MadeToken>("201", SOCKET_ONLY),
        Call::new(
            HttpMethod::Delete,
            "/admin/sandboxes/tokens/{id}",
            "revoke_token",
            "End a token, by id or name",
        )
        .gives_nothing("204", "Ended"),
    ]
}

fn record() -> Vec<Call> {
    vec![
        Call::new(
            HttpMethod::Get,
            "/admin/sandboxes/audit",
            "audit",
            "Who came in, who was turned away, what was given out",
        )
        .query::<i64>("before", "Only what is older than this event")
        .query::<u32>("limit", "How many; 50 unless told, 500 at most")
        .gives::<AuditPage>("200", "Newest first"),
        Call::new(
            HttpMethod::Post,
            "/admin/sandboxes/gateway/setup-code",
            "make_setup_code",
            "A code to make this computer somebody's with",
        )
        .gives::<SetupCode>("200", SOCKET_ONLY),
    ]
}
