//! Swaps of live and dev while every connection asks for more.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use nacre_gateway::SOCKET_FILE;
use nacre_wire::client::Client;
use nacre_wire::roles::{DevMade, SwapRequest, Swapped};
use tokio::net::TcpStream;

use super::Proxy;
use crate::report::Row;
use crate::samples::Samples;

const CONNECTIONS: usize = 64;
/// An answer that takes longer is a failed one.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Load {
    answered: AtomicU64,
    failed: AtomicU64,
    over: AtomicBool,
}

/// Swaps `count` times under load. A refused swap fails the run; a failed request is a number.
/// `data` is the folder of the gateway behind `proxy`.
pub(super) async fn measure(proxy: &Arc<Proxy>, data: &Path, count: usize) -> Result<Vec<Row>> {
    let control = Client::unix(data.join(SOCKET_FILE));
    control.post_json::<DevMade>("/admin/sandboxes/dev", &()).await.context("make a dev")?;
    let load = Arc::new(Load::default());
    let clients: Vec<_> =
        (0..CONNECTIONS).map(|_| tokio::spawn(keep_asking(proxy.clone(), load.clone()))).collect();
    let (mut moved, mut durable) = (Samples::default(), Samples::default());
    let mut last = String::new();
    for _ in 0..count {
        let before = load.answered.load(Ordering::Relaxed);
        let wanted = SwapRequest::default();
        let swapped = control.post_json::<Swapped>("/admin/sandboxes/swap", &wanted).await;
        let swapped = swapped.context("swap")?;
        ensure!(swapped.live.id != last, "live is still {last}");
        last = swapped.live.id;
        moved.push_ms(Duration::from_micros(swapped.moved_in_us));
        let on_disk = swapped.durable_in_us.context("the disk did not confirm a swap")?;
        durable.push_ms(Duration::from_micros(on_disk));
        // The next one waits until the load has gone on.
        while load.answered.load(Ordering::Relaxed) < before + CONNECTIONS as u64 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    load.over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await?;
    }
    let (answered, failed) =
        (load.answered.load(Ordering::Relaxed), load.failed.load(Ordering::Relaxed));
    eprintln!("  {count} swaps, {answered} requests answered meanwhile, {failed} failed");
    #[expect(clippy::cast_precision_loss, reason = "a count for people")]
    let (answered, failed) = (answered as f64, failed as f64);
    let what = format!("{count} swaps under load of {CONNECTIONS} connections");
    Ok(vec![
        Row::higher(format!("{what}: requests answered meanwhile"), "", Some(answered)),
        Row::lower(format!("{what}: requests failed"), "", Some(failed)).target(0.0).samples(count),
        Row::lower(format!("{what}: both pointers move, p50"), "ms", moved.median())
            .target(5.0)
            .samples(count),
        Row::lower(format!("{what}: both pointers move, worst"), "ms", moved.percentile(100))
            .target(5.0)
            .samples(count),
        Row::lower(format!("{what}: on disk and answered, p50"), "ms", durable.median())
            .samples(count),
        Row::lower(format!("{what}: on disk and answered, worst"), "ms", durable.percentile(100))
            .samples(count),
    ])
}

/// One request after the other over one connection, until it is over.
async fn keep_asking(proxy: Arc<Proxy>, load: Arc<Load>) {
    let mut connection = None;
    while !load.over.load(Ordering::Relaxed) {
        match tokio::time::timeout(PATIENCE, ask(&mut connection, &proxy)).await {
            Ok(Ok(())) => load.answered.fetch_add(1, Ordering::Relaxed),
            Ok(Err(error)) => {
                eprintln!("  a request failed: {error:#}");
                connection = None;
                load.failed.fetch_add(1, Ordering::Relaxed)
            }
            Err(_) => {
                connection = None;
                load.failed.fetch_add(1, Ordering::Relaxed)
            }
        };
    }
}

type Sender = SendRequest<Full<Bytes>>;

async fn ask(connection: &mut Option<Sender>, proxy: &Proxy) -> Result<()> {
    let sender = match connection {
        Some(sender) => sender,
        None => connection.insert(connect(proxy).await?),
    };
    sender.ready().await?;
    let request = request(proxy)?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    ensure!(status == StatusCode::OK && !body.is_empty(), "answered {status}");
    Ok(())
}

async fn connect(proxy: &Proxy) -> Result<Sender> {
    let stream = TcpStream::connect(&proxy.address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

fn request(proxy: &Proxy) -> Result<Request<Full<Bytes>>> {
    Ok(Request::get("/small")
        .header("host", &proxy.address)
        .header("cookie", proxy.cookie.as_deref().unwrap_or_default())
        .body(Full::default())?)
}
