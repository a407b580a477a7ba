//! Sockets that are open and silent: what each costs the gateway.

use anyhow::{Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Proxy, resident_kib};
use crate::report::Row;

pub(super) async fn idle(proxy: &Proxy, pid: u32, count: usize) -> Result<Row> {
    // What the first ones cost is not theirs alone.
    let mut open = Vec::with_capacity(count + 64);
    for _ in 0..64 {
        open.push(socket(proxy).await?);
    }
    let before = resident_kib(pid)?;
    for _ in 0..count {
        open.push(socket(proxy).await?);
    }
    let grown = resident_kib(pid)? - before;
    #[expect(clippy::cast_precision_loss, reason = "thousands")]
    let each = grown / count as f64;
    drop(open);
    let metric = format!("{count} idle WebSockets, resident each");
    Ok(Row::lower(metric, "KB", Some(each)).target(15.0))
}

async fn socket(proxy: &Proxy) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(&proxy.address).await?;
    let (address, cookie) = (&proxy.address, proxy.cookie.as_deref().unwrap_or_default());
    let head = format!(
        "GET /ws HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\ncookie: {cookie}\r\n\
         connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await?);
    }
    ensure!(answer.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&answer));
    Ok(stream)
}
