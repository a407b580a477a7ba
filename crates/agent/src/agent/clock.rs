//! The time of a turn, which stands still while the owner is asked.

use std::future::{Future, pending};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Says whether it stands still.
#[derive(Debug)]
pub(super) struct Clock(watch::Sender<bool>);

impl Default for Clock {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Clock {
    /// Returns when so much time has passed, less that of [`Clock::without`].
    pub(super) async fn runs_out(&self, time: Duration) {
        let (mut left, mut still) = (time, self.0.subscribe());
        loop {
            let since = Instant::now();
            tokio::select! {
                () = tokio::time::sleep(left) => return,
                _ = still.wait_for(|still| *still) => left = left.saturating_sub(since.elapsed()),
            }
            // The sender is ours, so there is always another change to wait for.
            if still.wait_for(|still| !still).await.is_err() {
                return pending().await;
            }
        }
    }

    /// Waits for something that costs no time.
    pub(super) async fn without<T>(&self, waiting: impl Future<Output = T>) -> T {
        self.0.send_replace(true);
        let came = waiting.await;
        self.0.send_replace(false);
        came
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_what_is_not_waited_for_counts() {
        let (clock, began) = (Clock::default(), Instant::now());
        let seconds = |count| tokio::time::sleep(Duration::from_secs(count));
        let work = async {
            seconds(40).await;
            clock.without(seconds(1000)).await;
            clock.without(seconds(1000)).await;
            seconds(15).await;
            clock.without(seconds(1000)).await;
            pending::<()>().await;
        };
        tokio::select! {
            () = clock.runs_out(Duration::from_secs(60)) => {}
            () = work => {}
        }
        assert_eq!(began.elapsed().as_secs(), 3060);
    }
}
