//! What a service answers when it does not answer, and what to do about it.

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use crate::model::Error;

const SHOWN: usize = 400;
/// Said by our own gateway, and by OpenAI.
const SHOULD_RETRY: &str = "x-should-retry";

pub(super) fn fault(error: &genai::Error) -> Error {
    use genai::Error as Theirs;
    let answered = match error {
        Theirs::HttpError { status, body, headers, .. } => Some((*status, body, headers)),
        Theirs::WebModelCall { webc_error, .. } | Theirs::WebAdapterCall { webc_error, .. } => {
            match webc_error {
                genai::webc::Error::ResponseFailedStatus { status, body, headers } => {
                    Some((*status, body, headers))
                }
                _ => None,
            }
        }
        _ => None,
    };
    if let Some((status, body, headers)) = answered {
        let again = headers.get(http::header::RETRY_AFTER);
        let again = again.and_then(|value| value.to_str().ok()?.parse().ok());
        let is_final = headers.get(SHOULD_RETRY).is_some_and(|value| value == "false");
        return refusal(status, body, again.map(Duration::from_secs), is_final);
    }
    match error {
        Theirs::StreamParse { serde_error, .. } => Error::Garbled(serde_error.to_string()),
        // What a stream was refused with is inside.
        Theirs::WebStream { cause, error, .. } => match error.downcast_ref::<Theirs>() {
            Some(inner) => fault(inner),
            None => Error::Broken(short(cause)),
        },
        Theirs::ChatResponse { body, .. } => said_in_stream(body),
        other => Error::Broken(short(&other.to_string())),
    }
}

/// Our own gateway says 429 when a budget is used up, as OpenAI does, and that asking again is of no use.
fn refusal(status: StatusCode, body: &str, again: Option<Duration>, is_final: bool) -> Error {
    let message = words(body).unwrap_or_else(|| format!("it answered {status}"));
    match status {
        StatusCode::PAYMENT_REQUIRED => Error::Spent(message),
        StatusCode::TOO_MANY_REQUESTS if is_final || body.contains("insufficient_quota") => {
            Error::Spent(message)
        }
        _ if is_final => Error::Refused(message),
        status if status.is_client_error() && is_too_long(body) => Error::TooLong(message),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
            Error::Busy { message, again }
        }
        status if status.is_server_error() => Error::Busy { message, again },
        _ => Error::Refused(message),
    }
}

/// Every service has its own words for it: OpenAI's code, Anthropic's two sentences, Google's, those of
/// llama.cpp and vLLM.
fn is_too_long(body: &str) -> bool {
    let body = body.to_ascii_lowercase();
    [
        "context_length_exceeded",
        "exceed_context_size",
        "prompt is too long",
        "exceed context limit",
        "exceeds the context window",
        "maximum context length",
        "exceeds the maximum number of tokens",
        "request_too_large",
    ]
    .iter()
    .any(|words| body.contains(words))
}

/// All three formats put an object `error` with a `message` there.
fn words(body: &str) -> Option<String> {
    let body: Value = serde_json::from_str(body).ok()?;
    let message = body.pointer("/error/message").or_else(|| body.pointer("/0/error/message"));
    Some(short(message?.as_str()?))
}

fn said_in_stream(body: &Value) -> Error {
    let message = ["/error/message", "/message", "/response/error/message"]
        .iter()
        .find_map(|place| body.pointer(place)?.as_str())
        .map_or_else(|| short(&body.to_string()), short);
    let kind = body.pointer("/error/type").and_then(Value::as_str).unwrap_or_default();
    match kind {
        _ if is_too_long(&body.to_string()) => Error::TooLong(message),
        "overloaded_error" | "rate_limit_error" | "api_error" => {
            Error::Busy { message, again: None }
        }
        _ => Error::Broken(message),
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_service_says_becomes_what_to_do() {
        let check = |status: u16, body: &str, expected: Error| {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(refusal(status, body, None, false), expected);
        };
        let body = r#"{"error":{"message":"slow down","type":"x"}}"#;
        let busy = |message: &str| Error::Busy { message: message.to_owned(), again: None };
        check(429, body, busy("slow down"));
        check(529, "overloaded", busy("it answered 529 <unknown status code>"));
        check(402, body, Error::Spent("slow down".to_owned()));
        check(400, body, Error::Refused("slow down".to_owned()));
        let poor = r#"{"error":{"message":"no more","code":"insufficient_quota"}}"#;
        check(429, poor, Error::Spent("no more".to_owned()));
        let last = |status| refusal(status, body, None, true);
        assert_eq!(last(StatusCode::TOO_MANY_REQUESTS), Error::Spent("slow down".to_owned()));
        assert_eq!(last(StatusCode::SERVICE_UNAVAILABLE), Error::Refused("slow down".to_owned()));
        let too_long = |text: &str| Error::TooLong(text.to_owned());
        let long = r#"{"error":{"message":"too much","code":"context_length_exceeded"}}"#;
        check(400, long, too_long("too much"));
        let long = "prompt is too long: 200001 tokens > 200000 maximum";
        check(400, &json!({"error": {"message": long}}).to_string(), too_long(long));
        let event =
            json!({"response": {"error": {"code": "context_length_exceeded", "message": "no"}}});
        assert_eq!(said_in_stream(&event), too_long("no"));
        let event =
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "later"}});
        assert_eq!(said_in_stream(&event), busy("later"));
    }
}
