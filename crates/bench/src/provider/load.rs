//! Calls at a fixed rate, whether or not the last ones are back: who falls behind is seen to.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::Way;
use crate::samples::Samples;

const BODY: &str = r#"{"model":"gpt-4o","max_tokens":50,"messages":[{"role":"system","content":"You are brief."},{"role":"user","content":"Say something of some length about nothing in particular."}]}"#;

pub(super) type Sender = SendRequest<Full<Bytes>>;

/// Connections that are free.
#[derive(Clone, Default)]
struct Free(Arc<Mutex<Vec<Sender>>>);

/// How long each call took from the moment it was due.
pub(super) async fn run(way: &Way, rate: u32, seconds: u32) -> Result<Samples> {
    let free = Free::default();
    let mut ticks = interval(Duration::from_secs(1) / rate);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut calls = Vec::new();
    for _ in 0..rate * seconds {
        let due = ticks.tick().await;
        let (way, free) = (way.clone(), free.clone());
        calls.push(tokio::spawn(async move {
            let idle = free.0.lock().await.pop().filter(|sender| !sender.is_closed());
            let mut sender = match idle {
                Some(sender) => sender,
                None => connect(&way).await?,
            };
            call(&way, &mut sender).await?;
            let took = Instant::now() - due;
            free.0.lock().await.push(sender);
            anyhow::Ok(took)
        }));
    }
    let mut samples = Samples::default();
    for call in calls {
        samples.push_ms(call.await??);
    }
    Ok(samples)
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
