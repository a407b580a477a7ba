//! Calls at a fixed rate, whether or not the last ones are back: who falls behind is seen to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::Mutex;

use super::Way;
use crate::samples::Samples;

const BODY: &str = r#"{"model":"gpt-4o","max_tokens":50,"messages":[{"role":"system","content":"You are brief."},{"role":"user","content":"Say something of some length about nothing in particular."}]}"#;

pub(super) type Sender = SendRequest<Full<Bytes>>;

/// Connections that are free.
#[derive(Clone, Default)]
struct Free(Arc<Mutex<Vec<Sender>>>);

/// How long each call took from the moment it was due. A thread of its own says when: the clock of the
/// runtime counts in milliseconds.
pub(super) async fn run(way: &Way, rate: u32, seconds: u32) -> Result<Samples> {
    let (free, runtime, way) = (Free::default(), Handle::current(), way.clone());
    let paced = tokio::task::spawn_blocking(move || {
        let began = Instant::now();
        let due = |number: u32| began + Duration::from_secs(1) / rate * number;
        let begin = |number: u32| {
            std::thread::sleep(due(number).saturating_duration_since(Instant::now()));
            runtime.spawn(timed(way.clone(), free.clone(), due(number)))
        };
        (0..rate * seconds).map(begin).collect::<Vec<_>>()
    });
    let mut samples = Samples::default();
    for call in paced.await? {
        samples.push_ms(call.await??);
    }
    Ok(samples)
}

async fn timed(way: Way, free: Free, due: Instant) -> Result<Duration> {
    let idle = free.0.lock().await.pop().filter(|sender| !sender.is_closed());
    let mut sender = match idle {
        Some(sender) => sender,
        None => connect(&way).await?,
    };
    call(&way, &mut sender).await?;
    let took = due.elapsed();
    free.0.lock().await.push(sender);
    Ok(took)
}

pub(super) async fn once(way: &Way) -> Result<()> {
    call(way, &mut connect(way).await?).await
}

pub(super) async fn connect(way: &Way) -> Result<Sender> {
    let stream = TcpStream::connect(&way.address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

async fn call(way: &Way, sender: &mut Sender) -> Result<()> {
    sender.ready().await?;
    let response = sender.send_request(request(way, BODY)?).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
    Ok(())
}

pub(super) fn request(way: &Way, body: &'static str) -> Result<Request<Full<Bytes>>> {
    Ok(Request::post(way.path)
        .header("host", &way.address)
        .header("authorization", format!("Bearer {}", way.token))
        .header("content-type", "application/json")
        .body(Full::from(body))?)
}
