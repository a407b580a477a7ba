//! Events to whoever follows: from where they were, at their own pace.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use axum::response::{IntoResponse, Response};
use futures_util::{SinkExt, StreamExt, stream};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use nacre_wire::conductor::Notice;
use tokio::time::timeout;

use super::log::Log;
use super::news::Listener;

/// Lines that are taken from the log at once.
const AT_ONCE: usize = 256;
/// When nothing happens, so that nobody in between takes the connection for dead.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// A client that takes nothing for so long is gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// One client's way through a log.
pub(super) struct Reader {
    log: Arc<Log>,
    seen: u64,
    follow: bool,
}

impl Reader {
    /// Who saw more than there is, of another journal perhaps, begins at the end.
    pub(super) fn new(log: Arc<Log>, after: u64, follow: bool) -> Self {
        let seen = after.min(log.last());
        Self { log, seen, follow }
    }

    /// The next ones, with the number of the first; `None` at the end.
    async fn next(&mut self) -> Option<(u64, Vec<Bytes>)> {
        if self.log.last() <= self.seen && (!self.follow || !self.log.more(self.seen).await) {
            return None;
        }
        let first = self.seen + 1;
        let lines = self.log.after(self.seen, AT_ONCE);
        self.seen += lines.len() as u64;
        Some((first, lines))
    }
}

pub(super) fn server_sent(reader: Reader) -> Response {
    let body = stream::unfold(reader, |mut reader| async move {
        let piece = match timeout(HEARTBEAT, reader.next()).await {
            Ok(Some((first, lines))) => framed(first, &lines),
            Ok(None) => return None,
            Err(_) => Bytes::from_static(b":\n\n"),
        };
        Some((Ok::<_, Infallible>(piece), reader))
    });
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    (headers, Body::from_stream(body)).into_response()
}

/// A line of JSON has no line end in it.
fn framed(first: u64, lines: &[Bytes]) -> Bytes {
    let mut text = Vec::with_capacity(lines.iter().map(|line| line.len() + 32).sum());
    for (seq, line) in (first..).zip(lines) {
        text.extend_from_slice(format!("id: {seq}\ndata: ").as_bytes());
        text.extend_from_slice(line);
        text.extend_from_slice(b"\n\n");
    }
    text.into()
}

pub(super) async fn socket(mut reader: Reader, socket: WebSocket) {
    let (mut sink, mut incoming) = socket.split();
    // Clients have nothing to say but that they go.
    let gone = async { while matches!(incoming.next().await, Some(Ok(_))) {} };
    let telling = async {
        loop {
            let messages: VecDeque<Message> = match timeout(HEARTBEAT, reader.next()).await {
                Ok(Some((_, lines))) => lines.into_iter().filter_map(message).collect(),
                Ok(None) => [Message::Close(None)].into(),
                Err(_) => [Message::Ping(Bytes::new())].into(),
            };
            for message in messages {
                let last = matches!(message, Message::Close(_));
                let sent = timeout(PATIENCE, sink.send(message)).await;
                if last || !matches!(sent, Ok(Ok(()))) {
                    return;
                }
            }
        }
    };
    tokio::select! {
        () = gone => {}
        () = telling => {}
    }
}

fn message(line: Bytes) -> Option<Message> {
    Utf8Bytes::try_from(line).ok().map(Message::Text)
}

/// What there is, then what comes, a line of JSON each.
pub(super) fn notices(now: Vec<Notice>, listener: Listener) -> Response {
    let waiting: VecDeque<Notice> = now.into();
    let body = stream::unfold((waiting, listener), |(mut waiting, mut listener)| async move {
        let notice = match waiting.pop_front() {
            Some(notice) => notice,
            None => listener.next().await?,
        };
        let mut line = serde_json::to_vec(&notice).unwrap_or_default();
        line.push(b'\n');
        Some((Ok::<_, Infallible>(Bytes::from(line)), (waiting, listener)))
    });
    let headers = [(CONTENT_TYPE, "application/x-ndjson"), (CACHE_CONTROL, "no-store")];
    (headers, Body::from_stream(body)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_says_its_number() {
        let text = framed(7, &["{}".into(), "{\"a\":1}".into()]);
        assert_eq!(text, "id: 7\ndata: {}\n\nid: 8\ndata: {\"a\":1}\n\n");
    }

    #[tokio::test]
    async fn there_is_no_gap_between_what_was_and_what_comes() {
        let dir = tempfile::tempdir().unwrap();
        let log = Arc::new(Log::load(&dir.path().join("none")).unwrap());
        let lines = 3 * AT_ONCE as u64;
        let mut reader = Reader::new(log.clone(), 0, true);
        let mut seen = Vec::new();
        for seq in 1..=lines {
            log.push(seq.to_string());
            if seq % 100 == 0 {
                let (first, some) = reader.next().await.unwrap();
                assert_eq!(first, seen.len() as u64 + 1);
                seen.extend(some);
            }
        }
        log.close();
        while let Some((_, some)) = reader.next().await {
            seen.extend(some);
        }
        let expected: Vec<Bytes> = (1..=lines).map(|seq| seq.to_string().into()).collect();
        assert_eq!(seen, expected);
        let mut late = Reader::new(log.clone(), lines + 5, false);
        assert!(late.next().await.is_none());
    }
}
