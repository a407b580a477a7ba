//! The model server behind all of them: it answers at once, or word by word.

use std::convert::Infallible;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use futures_util::stream;
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::Child;

use super::Way;
use crate::gateway::ourselves;

/// The pause before the first word, and before each of the others.
const FIRST: Duration = Duration::from_millis(20);
const NEXT: Duration = Duration::from_millis(20);
/// More words than anybody waits for.
const WORDS: usize = 100_000;

const ANSWER: &str = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"Hello there, this is an answer of some length."},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":10,"total_tokens":30}}"#;
const WORD: &str = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"gpt-4o\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"},\"finish_reason\":null}]}\n\n";

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Until it is killed. The first line of output is its address.
pub(super) async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = service_fn(|request| async { Ok::<_, Infallible>(answer(request).await) });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

pub(super) async fn start() -> Result<(Child, Way)> {
    let mut child = ourselves("model-process", &["server"], &[])?.stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("no output")?;
    let address = BufReader::new(output).lines().next_line().await?.context("the server ended")?;
    Ok((child, Way { address, path: "/v1/chat/completions", token: "sk-bench".to_owned() }))
}

async fn answer(request: Request<Incoming>) -> Response<Body> {
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let streamed = body.windows(14).any(|part| part == b"\"stream\":true,")
        || body.windows(14).any(|part| part == b"\"stream\": true")
        || body.windows(14).any(|part| part == b"\"stream\":true}");
    let (kind, body) = match streamed {
        true => ("text/event-stream", words()),
        false => ("application/json", Full::from(ANSWER).boxed_unsync()),
    };
    let mut response = Response::new(body);
    let kind = hyper::header::HeaderValue::from_static(kind);
    response.headers_mut().insert("content-type", kind);
    response
}

fn words() -> Body {
    let words = stream::unfold(0, |count| async move {
        tokio::time::sleep(if count == 0 { FIRST } else { NEXT }).await;
        (count < WORDS).then(|| (Ok(Frame::data(Bytes::from_static(WORD.as_bytes()))), count + 1))
    });
    StreamBody::new(words).boxed_unsync()
}
