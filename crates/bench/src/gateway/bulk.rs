//! One large body over one connection, by plain reads and writes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::Proxy;

pub(super) const SIZE: usize = 1 << 30;
const PIECE: usize = 256 * 1024;

#[derive(Debug, Clone, Copy)]
pub(super) enum Way {
    Down,
    Up,
}

impl Way {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Down => "download",
            Self::Up => "upload",
        }
    }
}

/// GB/s.
pub(super) async fn run(proxy: &Proxy, way: Way) -> Result<f64> {
    let (address, cookie) = (proxy.address.clone(), proxy.cookie.clone().unwrap_or_default());
    tokio::task::spawn_blocking(move || blocking(&address, &cookie, way)).await?
}

fn blocking(address: &str, cookie: &str, way: Way) -> Result<f64> {
    let mut stream = TcpStream::connect(address)?;
    let line = match way {
        Way::Down => "GET /large HTTP/1.1".to_owned(),
        Way::Up => format!("POST /sink HTTP/1.1\r\ncontent-length: {SIZE}"),
    };
    let head = format!(
        "{line}\r\nhost: {address}\r\norigin: http://{address}\r\ncookie: {cookie}\r\n\
         connection: close\r\n\r\n"
    );
    let began = Instant::now();
    stream.write_all(head.as_bytes())?;
    let mut piece = vec![b'x'; PIECE];
    if matches!(way, Way::Up) {
        for _ in 0..SIZE / PIECE {
            stream.write_all(&piece)?;
        }
    }
    let (mut got, mut start) = (0, Vec::new());
    loop {
        let read = stream.read(&mut piece)?;
        if read == 0 {
            break;
        }
        if start.len() < 64 {
            start.extend_from_slice(&piece[..read.min(64)]);
        }
        got += read;
    }
    let took = began.elapsed().as_secs_f64();
    let start = String::from_utf8_lossy(&start);
    let status = start.split(' ').nth(1).context("no answer")?;
    ensure!(status == "200", "answered {status}");
    ensure!(matches!(way, Way::Up) || got > SIZE, "only {got} bytes came");
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    Ok(SIZE as f64 / 1e9 / took)
}
