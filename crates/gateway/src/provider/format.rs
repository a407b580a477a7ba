//! Refusals, said as the provider itself would say them. Pure.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::json;

use super::config::Kind;

/// The SDKs of OpenAI and Anthropic try again by themselves unless they are told not to.
static SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Whose errors a client understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Openai,
    Anthropic,
    Google,
}

impl Format {
    /// Some answer the API of another, so the path has the first word.
    pub(crate) fn of(kind: Option<Kind>, path: &str) -> Self {
        match kind {
            Some(Kind::Anthropic) => Self::Anthropic,
            Some(Kind::Google) => Self::Google,
            _ if path.ends_with("messages") => Self::Anthropic,
            Some(Kind::Openai | Kind::Openrouter | Kind::OpenaiCompatible) | None => Self::Openai,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reason {
    Unauthorized,
    Forbidden,
    NotFound,
    Invalid,
    TooLarge,
    TooSlow,
    Budget,
    Rate,
    Stopped,
    /// There is more to do than we do at once.
    Busy,
    /// The provider does not answer, or not in a way that we pass on.
    Upstream,
    /// The call was ended while it was under way.
    Ended,
}

impl Reason {
    pub(crate) const ALL: [Self; 12] = [
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::Invalid,
        Self::TooLarge,
        Self::TooSlow,
        Self::Budget,
        Self::Rate,
        Self::Stopped,
        Self::Busy,
        Self::Upstream,
        Self::Ended,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Invalid => "invalid",
            Self::TooLarge => "too_large",
            Self::TooSlow => "too_slow",
            Self::Budget => "budget",
            Self::Rate => "rate",
            Self::Stopped => "stopped",
            Self::Busy => "busy",
            Self::Upstream => "upstream",
            Self::Ended => "ended",
        }
    }

    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Invalid => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Budget | Self::Rate => StatusCode::TOO_MANY_REQUESTS,
            Self::Stopped | Self::Busy | Self::Ended => StatusCode::SERVICE_UNAVAILABLE,
            Self::Upstream => StatusCode::BAD_GATEWAY,
        }
    }

    /// Type and code.
    fn openai(self) -> (&'static str, &'static str) {
        match self {
            Self::Unauthorized => ("invalid_request_error", "invalid_api_key"),
            Self::Forbidden => ("invalid_request_error", "permission_denied"),
            Self::NotFound => ("invalid_request_error", "not_found"),
            Self::Invalid | Self::TooLarge | Self::TooSlow => {
                ("invalid_request_error", "invalid_request")
            }
            Self::Budget => ("insufficient_quota", "insufficient_quota"),
            Self::Rate => ("requests", "rate_limit_exceeded"),
            Self::Stopped | Self::Busy | Self::Upstream | Self::Ended => {
                ("server_error", "server_error")
            }
        }
    }

    fn anthropic(self) -> &'static str {
        match self {
            Self::Unauthorized => "authentication_error",
            Self::Forbidden => "permission_error",
            Self::NotFound => "not_found_error",
            Self::Invalid | Self::TooSlow => "invalid_request_error",
            Self::TooLarge => "request_too_large",
            Self::Budget | Self::Rate => "rate_limit_error",
            Self::Stopped | Self::Upstream | Self::Ended => "api_error",
            Self::Busy => "overloaded_error",
        }
    }

    fn google(self) -> &'static str {
        match self {
            Self::Unauthorized => "UNAUTHENTICATED",
            Self::Forbidden => "PERMISSION_DENIED",
            Self::NotFound => "NOT_FOUND",
            Self::Invalid | Self::TooLarge => "INVALID_ARGUMENT",
            Self::TooSlow => "DEADLINE_EXCEEDED",
            Self::Budget | Self::Rate => "RESOURCE_EXHAUSTED",
            Self::Stopped | Self::Busy | Self::Upstream | Self::Ended => "UNAVAILABLE",
        }
    }
}

/// Why a call is not made, for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    pub(crate) message: String,
    /// When it makes sense to try again.
    pub(crate) after: Option<Duration>,
}

impl Refusal {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), after: None }
    }

    /// Asking again at once gives the same answer.
    fn is_final(&self) -> bool {
        match self.reason {
            Reason::Budget | Reason::Stopped | Reason::Ended | Reason::TooSlow => true,
            Reason::Unauthorized
            | Reason::Forbidden
            | Reason::NotFound
            | Reason::Invalid
            | Reason::TooLarge
            | Reason::Rate
            | Reason::Busy
            | Reason::Upstream => false,
        }
    }

    pub(crate) fn response(&self, format: Format) -> Response {
        let status = self.reason.status();
        let message = format!("nacre: {}", self.message);
        let body = match format {
            Format::Openai => {
                let (kind, code) = self.reason.openai();
                json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
            }
            Format::Anthropic => json!({
                "type": "error",
                "error": { "type": self.reason.anthropic(), "message": message },
            }),
            Format::Google => json!({ "error": {
                "code": status.as_u16(), "message": message, "status": self.reason.google(),
            } }),
        };
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.is_final() {
            headers.insert(SHOULD_RETRY.clone(), HeaderValue::from_static("false"));
        }
        if let Some(after) = self.after {
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn each_provider_is_spoken_for_in_its_own_words() {
        let refusal = Refusal {
            after: Some(Duration::from_millis(1500)),
            ..Refusal::new(Reason::Rate, "slow down")
        };
        let cases = [
            (
                Format::Openai,
                r#"{"error":{"code":"rate_limit_exceeded","message":"nacre: slow down","param":null,"type":"requests"}}"#,
            ),
            (
                Format::Anthropic,
                r#"{"error":{"message":"nacre: slow down","type":"rate_limit_error"},"type":"error"}"#,
            ),
            (
                Format::Google,
                r#"{"error":{"code":429,"message":"nacre: slow down","status":"RESOURCE_EXHAUSTED"}}"#,
            ),
        ];
        for (format, expected) in cases {
            let response = refusal.response(format);
            assert_eq!(response.status(), 429);
            assert_eq!(response.headers()["retry-after"], "2");
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let read = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
            assert_eq!(read(&body), read(expected.as_bytes()));
        }
    }

    #[test]
    fn the_api_that_is_spoken_decides() {
        assert_eq!(Format::of(Some(Kind::Openrouter), "messages"), Format::Anthropic);
        assert_eq!(Format::of(Some(Kind::Openrouter), "chat/completions"), Format::Openai);
        assert_eq!(Format::of(None, "v1/messages"), Format::Anthropic);
        assert_eq!(Format::of(Some(Kind::Google), "v1beta/models"), Format::Google);
    }
}
