//! How far a copy is: counted always, drawn on a terminal once it takes more than a second.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(crate) struct Progress {
    bytes: Arc<AtomicU64>,
    bar: Option<ProgressBar>,
    began: Instant,
}

impl Progress {
    pub(crate) fn start(total: Option<u64>) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = match total {
                Some(total) => ProgressBar::new(total),
                None => ProgressBar::new_spinner(),
            };
            bar.set_draw_target(ProgressDrawTarget::hidden());
            if let Ok(style) = ProgressStyle::with_template(template(total)) {
                bar.set_style(style);
            }
            bar
        });
        Self { bytes: Arc::default(), bar, began: Instant::now() }
    }

    pub(crate) fn add(&self, count: usize) {
        let count = count as u64;
        self.bytes.fetch_add(count, Ordering::Relaxed);
        if let Some(bar) = &self.bar {
            if bar.is_hidden() && self.began.elapsed() > PATIENCE {
                bar.set_draw_target(ProgressDrawTarget::stderr());
            }
            bar.inc(count);
        }
    }

    /// Removes the bar and says how much it was.
    pub(crate) fn finish(&self) -> u64 {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.bytes.load(Ordering::Relaxed)
    }
}

fn template(total: Option<u64>) -> &'static str {
    match total {
        Some(_) => "{wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}",
        None => "{spinner} {binary_bytes} {binary_bytes_per_sec} {elapsed}",
    }
}
