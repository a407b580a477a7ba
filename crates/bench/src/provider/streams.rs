//! Streams: when the first word comes, and what many of them cost in memory.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::Instant;

use super::{Way, load};
use crate::gateway::resident_kib;
use crate::report::Row;

const BODY: &str = r#"{"model":"gpt-4o","max_tokens":50,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Count for ever."}]}"#;

/// On a connection that is there already.
pub(super) async fn first_token(way: &Way) -> Result<Duration> {
    let mut sender = load::connect(way).await?;
    sender.ready().await?;
    let began = Instant::now();
    let response = sender.send_request(load::request(way, BODY)?).await?;
    word(&mut response.into_body()).await?;
    Ok(began.elapsed())
}

async fn word(body: &mut Incoming) -> Result<()> {
    loop {
        let frame = body.frame().await.context("the stream ended")??;
        if frame.data_ref().is_some_and(|data| data.windows(5).any(|part| part == b"word ")) {
            return Ok(());
        }
    }
}

/// Resident memory of the gateway a while after the streams began, and at their end.
pub(super) async fn measure(
    way: &Way,
    pid: u32,
    count: usize,
    lasting: Duration,
) -> Result<Vec<Row>> {
    let mut reading = Vec::new();
    for _ in 0..count {
        let mut sender = load::connect(way).await?;
        let response = sender.send_request(load::request(way, BODY)?).await?;
        ensure!(response.status().is_success(), "{}", response.status());
        let mut body = response.into_body();
        word(&mut body).await?;
        reading.push(tokio::spawn(async move {
            let _sender = sender;
            let mut words = 1_u64;
            while word(&mut body).await.is_ok() {
                words += 1;
            }
            words
        }));
    }
    tokio::time::sleep(lasting / 8).await;
    let before = resident_kib(pid)?;
    tokio::time::sleep(lasting).await;
    let after = resident_kib(pid)?;
    reading.iter().for_each(|stream| stream.abort());
    let what = format!("{count} streams at once");
    Ok(vec![
        Row::lower(
            format!("{what}: memory that they add while they last"),
            "KiB",
            Some(after - before),
        )
        .target(1024.0)
        .samples(count),
        Row::lower(format!("{what}: resident memory of the gateway"), "MB", Some(after / 1024.0))
            .samples(count),
    ])
}
