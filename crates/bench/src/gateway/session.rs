//! What a request pays for the check of its session.
//!
//! The same request goes to two gateways before the same upstream: one as it is, and one that looks at
//! no session, which only this program can be built with. They take turns, block by block.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::Proxy;
use crate::report::Row;
use crate::samples::Samples;

/// Requests of one gateway before it is the other's turn.
const BLOCK: usize = 200;
const PATIENCE: Duration = Duration::from_secs(10);
/// As many as there can be.
const SESSIONS: usize = 200;
const CHECKS: usize = 1000;

/// With the check, without it, and the difference.
pub(super) async fn added(with: &Proxy, without: &Proxy, rounds: usize) -> Result<Vec<Row>> {
    let (with, without) = (with.clone(), without.clone());
    let compared = tokio::task::spawn_blocking(move || compare(&with, &without, rounds));
    let (with, without) = compared.await??;
    let added = with.median().zip(without.median()).map(|(with, without)| with - without);
    let row = |metric: &str, value| Row::lower(metric, "us", value).samples(with.count());
    Ok(vec![
        row("small request, with a look at its session, p50", with.median()),
        row("small request, without, p50", without.median()),
        row("what the session adds to a request, p50", added).target(50.0),
    ])
}

/// The check by itself: it is made in one place, so it can be timed alone.
pub(super) async fn alone(home: &Path) -> Result<Row> {
    let data = home.join("session");
    std::fs::create_dir_all(&data)?;
    let times = nacre_gateway::session_check_times(&data, SESSIONS, CHECKS).await?;
    let mut samples = Samples::default();
    times.iter().for_each(|took| samples.push(took.as_secs_f64() * 1e6));
    let metric = format!("session check alone, with {SESSIONS} sessions, p50");
    Ok(Row::lower(metric, "us", samples.median()).samples(samples.count()))
}

fn compare(with: &Proxy, without: &Proxy, rounds: usize) -> Result<(Samples, Samples)> {
    let cookie = with.cookie.as_deref().context("nobody is signed in")?;
    for (proxy, cookie, status) in [(with, "", "401"), (with, cookie, "200"), (without, "", "200")]
    {
        let (_, answer) = Connection::open(proxy, cookie)?.ask()?;
        ensure!(answer == status, "{} answered {answer} instead of {status}", proxy.address);
    }
    // Both get the cookie: what differs is whether anybody looks at it.
    let mut sides = [
        (Connection::open(with, cookie)?, Samples::default()),
        (Connection::open(without, cookie)?, Samples::default()),
    ];
    for round in 0..=rounds {
        // Who goes first changes, and the first round warms up.
        for turn in 0..sides.len() {
            let (connection, samples) = &mut sides[(round + turn) % 2];
            for _ in 0..BLOCK {
                let (took, status) = connection.ask()?;
                ensure!(status == "200", "answered {status}");
                if round > 0 {
                    samples.push(took.as_secs_f64() * 1e6);
                }
            }
        }
    }
    let [(_, with), (_, without)] = sides;
    Ok((with, without))
}

/// One that stays open, by plain reads and writes.
struct Connection {
    stream: TcpStream,
    request: String,
    answer: Vec<u8>,
}

impl Connection {
    fn open(proxy: &Proxy, cookie: &str) -> Result<Self> {
        let stream = TcpStream::connect(&proxy.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let request =
            format!("GET /small HTTP/1.1\r\nhost: {}\r\ncookie: {cookie}\r\n\r\n", proxy.address);
        Ok(Self { stream, request, answer: Vec::new() })
    }

    /// How long the whole answer took, and its status.
    fn ask(&mut self) -> Result<(Duration, String)> {
        self.answer.clear();
        let began = Instant::now();
        self.stream.write_all(self.request.as_bytes())?;
        let mut piece = [0; 4096];
        let whole = loop {
            let read = self.stream.read(&mut piece)?;
            ensure!(read > 0, "the gateway closed the connection");
            self.answer.extend_from_slice(&piece[..read]);
            if let Some(whole) = length(&self.answer)? {
                break whole;
            }
        };
        let took = began.elapsed();
        ensure!(self.answer.len() == whole, "more came than the answer");
        let status = self.answer.get(9..12).context("no status")?;
        Ok((took, String::from_utf8_lossy(status).into_owned()))
    }
}

/// Of head and body, when all of it is there.
fn length(answer: &[u8]) -> Result<Option<usize>> {
    let Some(head) = answer.windows(4).position(|end| end == b"\r\n\r\n") else { return Ok(None) };
    let text = std::str::from_utf8(&answer[..head])?.to_ascii_lowercase();
    let body = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    let body: usize = body.context("an answer without a length")?.trim().parse()?;
    let whole = head + 4 + body;
    Ok((answer.len() >= whole).then_some(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_body_is_there() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        assert_eq!(length(answer).unwrap(), Some(answer.len()));
        assert_eq!(length(&answer[..answer.len() - 1]).unwrap(), None);
        assert_eq!(length(&answer[..20]).unwrap(), None);
        assert!(length(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
