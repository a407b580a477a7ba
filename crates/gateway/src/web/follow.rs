//! `logs?follow=true` from a driver that only knows the tail of a log.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use nacre_sandbox::{Driver, SandboxId};
use tokio::sync::mpsc;

pub(crate) const TAIL_BYTES: u64 = 256 * 1024;
const POLL: Duration = Duration::from_millis(300);
/// Enough of the end of what was sent to find the place again.
const ANCHOR: usize = 1024;

/// Sends the tail, then what is added to it, until the reader or the sandbox goes away.
pub(crate) fn stream(driver: Arc<dyn Driver>, id: SandboxId, tail: u64) -> Body {
    let (sender, receiver) = mpsc::channel::<Result<Bytes, std::convert::Infallible>>(4);
    tokio::spawn(async move {
        let Ok(mut seen) = driver.logs(&id, tail).await else { return };
        let mut fresh = Bytes::copy_from_slice(&seen);
        loop {
            if !fresh.is_empty() && sender.send(Ok(fresh)).await.is_err() {
                return;
            }
            tokio::select! {
                () = sender.closed() => return,
                () = tokio::time::sleep(POLL) => {}
            }
            let Ok(now) = driver.logs(&id, TAIL_BYTES).await else { return };
            fresh = Bytes::copy_from_slice(added(&seen, &now));
            seen = now;
        }
    });
    Body::from_stream(futures_util::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|chunk| (chunk, receiver))
    }))
}

/// What `now` has after the last bytes of `before`; all of it when they are not there any more.
fn added<'n>(before: &[u8], now: &'n [u8]) -> &'n [u8] {
    let anchor = &before[before.len().saturating_sub(ANCHOR)..];
    if anchor.is_empty() {
        return now;
    }
    match now.windows(anchor.len()).rposition(|window| window == anchor) {
        Some(at) => &now[at + anchor.len()..],
        None => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: &str, now: &str, expected: &str) {
        assert_eq!(added(before.as_bytes(), now.as_bytes()), expected.as_bytes());
    }

    #[test]
    fn only_what_is_new_is_sent() {
        check("", "", "");
        check("", "a\n", "a\n");
        check("a\n", "a\n", "");
        check("a\n", "a\nb\n", "b\n");
        check("a\nb\n", "b\nc\n", "b\nc\n");
        check("a\nb\n", "a\nb\nc\n", "c\n");
        check("old\n", "rotated\n", "rotated\n");
        let long = "x".repeat(5000);
        check(&format!("{long}end\n"), &format!("{}end\nmore\n", "x".repeat(1020)), "more\n");
    }
}
