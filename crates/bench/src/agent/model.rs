//! A model that answers at once, and notes when it was asked and when it had answered.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::samples::Samples;

/// Of a task that holds these words, every answer calls a tool that looks at files.
pub(super) const LOOPS: &str = "go round and round";
/// Or one that runs a command which says much, piece by piece.
pub(super) const TALKS: &str = "talk and talk";

const CALL: &str = r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"NAME","arguments":"ARGUMENTS"}}]},"finish_reason":null}]}"#;
/// JSON in a string of JSON.
const TALK: &str = r#"{\"command\":\"for i in $(seq 60); do echo line $i; sleep 0.002; done\"}"#;
const CALLED: &str = r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
const WORD: &str = r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Done."},"finish_reason":null}]}"#;
const SAID: &str = r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;

#[derive(Clone, Default)]
pub(super) struct Clock(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    answered: Option<Instant>,
    between: Samples,
}

impl Clock {
    fn asked(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answered) = state.answered.take() {
            state.between.push_ms(answered.elapsed());
        }
    }

    fn answered(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).answered = Some(Instant::now());
    }

    /// From an answer to the next question, since this was asked last.
    pub(super) fn take(&self) -> Samples {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.answered = None;
        std::mem::take(&mut state.between)
    }
}

/// Serves until the process ends. Returns where.
pub(super) async fn serve(clock: Clock) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let clock = clock.clone();
            let service = service_fn(move |request| {
                let clock = clock.clone();
                async move { Ok::<_, Infallible>(answer(&clock, request).await) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    Ok(address)
}

async fn answer(clock: &Clock, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    clock.asked();
    let text = String::from_utf8_lossy(&body);
    let call =
        |name: &str, arguments: &str| CALL.replace("NAME", name).replace("ARGUMENTS", arguments);
    let (first, last) = if text.contains(LOOPS) {
        (call("list_files", "{}"), CALLED)
    } else if text.contains(TALKS) {
        (call("run_command", TALK), CALLED)
    } else {
        (WORD.to_owned(), SAID)
    };
    let events = format!("data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n");
    let mut response = Response::new(Full::from(events));
    let kind = hyper::header::HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert("content-type", kind);
    clock.answered();
    response
}
