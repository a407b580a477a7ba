//! The log as JSON, a line per event. Every proxied request is one, so nothing is allocated for it
//! and nothing is looked up: the fields are written as they come, into a buffer of the thread.

use std::cell::RefCell;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::Spool;

/// A layer for a subscriber without spans: there are none in this program.
pub struct JsonLines(Arc<Spool>);

impl JsonLines {
    pub fn new(spool: Arc<Spool>) -> Self {
        Self(spool)
    }
}

thread_local! {
    static LINE: RefCell<Line> = RefCell::default();
}

impl<S: Subscriber> Layer<S> for JsonLines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        LINE.with(|line| {
            // An event from within the formatting of another, such as by a `Debug` that logs.
            let Ok(mut line) = line.try_borrow_mut() else { return };
            line.begin(SystemTime::now(), event.metadata().level().as_str());
            event.record(&mut *line);
            line.text.push_str("}\n");
            let _ = (&*self.0).write_all(line.text.as_bytes());
        });
    }
}

#[derive(Default)]
struct Line {
    text: String,
    /// Of the second that was written last, up to its full stop.
    second: u64,
    second_text: String,
}

impl Line {
    fn begin(&mut self, at: SystemTime, level: &str) {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        if self.second != since.as_secs() || self.second_text.is_empty() {
            self.second = since.as_secs();
            self.second_text = second_text(self.second);
        }
        self.text.clear();
        self.text.push_str("{\"timestamp\":\"");
        self.text.push_str(&self.second_text);
        self.text.push('.');
        // A digit before them keeps the noughts.
        self.text.push_str(&itoa::Buffer::new().format(1_000_000 + since.subsec_micros())[1..]);
        self.text.push_str("Z\",\"level\":\"");
        self.text.push_str(level);
        self.text.push('"');
    }

    fn name(&mut self, field: &Field) {
        self.text.push_str(",\"");
        self.text.push_str(field.name());
        self.text.push_str("\":");
    }

    fn plain(&mut self, field: &Field, value: impl fmt::Display) {
        self.name(field);
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{value}");
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.name(field);
        self.text.push('"');
        let _ = Escaped(&mut self.text).write_str(value);
        self.text.push('"');
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.name(field);
        self.text.push('"');
        let _ = write!(Escaped(&mut self.text), "{value:?}");
        self.text.push('"');
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.name(field);
        self.text.push_str(itoa::Buffer::new().format(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.name(field);
        self.text.push_str(itoa::Buffer::new().format(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.name(field);
        self.text.push_str(if value { "true" } else { "false" });
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.plain(field, value);
        } else {
            self.plain(field, "null");
        }
    }
}

/// What is written to it stands between the quotes of a JSON string.
struct Escaped<'t>(&'t mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut plain = 0;
        for (at, byte) in text.bytes().enumerate() {
            if byte >= b' ' && byte != b'"' && byte != b'\\' {
                continue;
            }
            self.0.push_str(&text[plain..at]);
            plain = at + 1;
            match byte {
                b'"' => self.0.push_str("\\\""),
                b'\\' => self.0.push_str("\\\\"),
                b'\n' => self.0.push_str("\\n"),
                b'\t' => self.0.push_str("\\t"),
                other => write!(self.0, "\\u{other:04x}")?,
            }
        }
        self.0.push_str(&text[plain..]);
        Ok(())
    }
}

/// `2026-11-17T11:17:31`, in UTC.
fn second_text(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// Of a day since 1970. Years begin in March here, so that the day that comes and goes is the last,
/// and repeat every 400 (146,097 days).
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_event_is_one_line_of_json() {
        let kept = Kept::default();
        let (spool, guard) = Spool::start(kept.clone()).unwrap();
        let subscriber = tracing_subscriber::registry().with(JsonLines::new(spool));
        tracing::subscriber::with_default(subscriber, || {
            let hostile = "a\"b\\c\nd\u{1}é";
            let error = std::io::Error::other(hostile);
            tracing::info!(path = hostile, status = 200, size = -1_i64, cut = false, "request");
            tracing::warn!(%error, half = 0.5, nothing = f64::NAN, ?hostile, "it \"broke\"");
        });
        drop(guard);
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [first, second] = &lines[..] else { panic!("{text}") };
        assert_eq!(first["message"], "request");
        assert_eq!((&first["level"], &first["path"]), (&"INFO".into(), &"a\"b\\c\nd\u{1}é".into()));
        assert_eq!((&first["status"], &first["size"]), (&200.into(), &(-1).into()));
        assert_eq!(first["cut"], false);
        assert_eq!((&second["message"], &second["half"]), (&"it \"broke\"".into(), &0.5.into()));
        assert_eq!(second["error"], "a\"b\\c\nd\u{1}é");
        assert!(second["nothing"].is_null());
        assert_eq!(second["hostile"], "\"a\\\"b\\\\c\\nd\\u{1}é\"");
    }

    #[test]
    fn the_time_is_told_in_utc() {
        let check = |seconds, expected: &str| assert_eq!(second_text(seconds), expected);
        check(0, "1970-01-01T00:00:00");
        check(951_782_399, "2000-02-28T23:59:59");
        check(951_782_400, "2000-02-29T00:00:00");
        check(951_868_800, "2000-03-01T00:00:00");
        check(1_794_914_251, "2026-11-17T11:17:31");
        check(4_107_542_400, "2100-03-01T00:00:00");
        let mut line = Line::default();
        line.begin(UNIX_EPOCH + Duration::new(1, 42_000), "INFO");
        assert_eq!(line.text, "{\"timestamp\":\"1970-01-01T00:00:01.000042Z\",\"level\":\"INFO\"");
    }
}
