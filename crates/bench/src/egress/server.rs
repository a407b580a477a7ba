//! Sends much or little, by plain writes, on a thread per connection.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

use anyhow::Result;

pub(super) const LARGE: u64 = 1 << 30;
const PIECE: usize = 256 * 1024;

/// Its port on loopback.
pub(super) async fn start() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    Ok(port)
}

/// Whoever goes away early is done.
fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let large = head.starts_with("GET /large");
        let size = if large { LARGE } else { 2 };
        // In one piece, so that no part of it waits for the other to be acknowledged.
        let body = if large { "" } else { "ok" };
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n{body}");
        stream.write_all(head.as_bytes())?;
        if !large {
            continue;
        }
        let piece = vec![b'x'; PIECE];
        for _ in 0..LARGE / PIECE as u64 {
            stream.write_all(&piece)?;
        }
    }
}
