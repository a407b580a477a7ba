//! That something happened in some conversation, for supervisors to pass on to whoever listens there.

use nacre_wire::conductor::Notice;
use tokio::sync::broadcast;

/// Notices that a follower may be behind; what is older it skips, and learns from the next one's number.
const KEPT: usize = 1024;

#[derive(Debug, Clone)]
pub(super) struct News(broadcast::Sender<Notice>);

impl Default for News {
    fn default() -> Self {
        Self(broadcast::Sender::new(KEPT))
    }
}

impl News {
    /// Never waits.
    pub(super) fn tell(&self, notice: Notice) {
        // Mostly nobody listens.
        let _ = self.0.send(notice);
    }

    pub(super) fn listen(&self) -> Listener {
        Listener(self.0.subscribe())
    }
}

pub(super) struct Listener(broadcast::Receiver<Notice>);

impl Listener {
    /// `None` when there will be no more.
    pub(super) async fn next(&mut self) -> Option<Notice> {
        loop {
            match self.0.recv().await {
                Ok(notice) => return Some(notice),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_is_slow_skips_ahead() {
        let news = News::default();
        let mut listener = news.listen();
        for seq in 0..KEPT as u64 + 10 {
            news.tell(Notice { id: "c".to_owned(), seq, kind: "plan".to_owned() });
        }
        let first = listener.next().await.unwrap().seq;
        assert!(first >= 10, "{first}");
    }
}
