//! Small responses over 64 connections that stay open, by wrk.

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use super::Proxy;

pub(super) struct Load {
    pub(super) per_second: f64,
    pub(super) p99_ms: f64,
}

pub(super) async fn run(proxy: &Proxy, seconds: u32) -> Result<Load> {
    let mut command = Command::new("wrk");
    command.args(["--threads", "1", "--connections", "64", "--latency"]);
    command.arg("--duration").arg(format!("{seconds}s"));
    if let Some(cookie) = &proxy.cookie {
        command.arg("--header").arg(format!("Cookie: {cookie}"));
    }
    command.arg(format!("http://{}/small", proxy.address));
    let output = command.output().await.context("cannot run wrk")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "wrk ended with {}: {text}", output.status);
    parse(&text).with_context(|| format!("what wrk said is not understood:\n{text}"))
}

/// Errors make it a failure: a fast refusal is no answer.
fn parse(text: &str) -> Result<Load> {
    ensure!(!text.contains("Non-2xx") && !text.contains("Socket errors"), "requests failed");
    let after =
        |word: &str| text.lines().find_map(|line| line.trim().strip_prefix(word)).map(str::trim);
    let per_second = after("Requests/sec:").context("no rate")?.parse()?;
    let tail = after("99%").context("no p99")?;
    let (number, factor) = match tail {
        _ if tail.ends_with("us") => (tail.trim_end_matches("us"), 1e-3),
        _ if tail.ends_with("ms") => (tail.trim_end_matches("ms"), 1.0),
        _ => (tail.trim_end_matches('s'), 1e3),
    };
    Ok(Load { per_second, p99_ms: number.parse::<f64>()? * factor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_wrk_are_understood() {
        let load = |tail| parse(&format!("  99%    {tail}\nRequests/sec:  12345.67\n")).unwrap();
        assert_eq!((load("1.50ms").per_second, load("1.50ms").p99_ms), (12345.67, 1.5));
        assert_eq!((load("900.00us").p99_ms, load("2.00s").p99_ms), (0.9, 2000.0));
        assert!(parse("  Non-2xx or 3xx responses: 5\n 99% 1ms\nRequests/sec: 1\n").is_err());
    }
}
