//! A moment of the past, as people write one: a checkpoint or a time.

use jiff::civil::{DateTime, Time};
use jiff::{SignedDuration, Timestamp, Zoned};
use nacre_wire::client::{Client, ListHistory};

use crate::failure::{Failure, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Checkpoint(u64),
    /// Milliseconds since 1970.
    Time(i64),
}

/// For clap: `@17`, or a time.
pub(crate) fn parse(text: &str) -> Result<Moment, String> {
    parse_at(text, &Zoned::now())
}

/// For clap: a time only.
pub(crate) fn parse_time(text: &str) -> Result<i64, String> {
    time(text.trim(), &Zoned::now()).map(|time| time.as_millisecond())
}

/// For clap: `@17`, `#17` or `17`.
pub(crate) fn parse_id(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix(['@', '#']).unwrap_or(text);
    digits.parse().map_err(|_| format!("\"{text}\" is not a checkpoint: they look like @17"))
}

fn parse_at(text: &str, now: &Zoned) -> Result<Moment, String> {
    let text = text.trim();
    if let Ok(id) = parse_id(text) {
        return Ok(Moment::Checkpoint(id));
    }
    let time = time(text, now)?;
    if time > now.timestamp() {
        return Err(format!("\"{text}\" has not come yet"));
    }
    // `14:32:10` means with all that was recorded in that second, as a listing shows it.
    let time = time.as_millisecond();
    Ok(Moment::Time(if time % 1000 == 0 { time + 999 } else { time }))
}

fn time(text: &str, now: &Zoned) -> Result<Timestamp, String> {
    let bad = || {
        format!(
            "\"{text}\" is not a time: try 10m, \"2 hours ago\", 14:32, \"yesterday 14:32\" or \
             \"2026-11-16 14:32\""
        )
    };
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    if let Ok(time) = text.parse::<DateTime>() {
        return on_the_clock(time, now).ok_or_else(bad);
    }
    if let Ok(time) = text.parse::<Time>() {
        return last_time_it_was(time, now).ok_or_else(bad);
    }
    let lower = text.to_ascii_lowercase();
    let found = match lower.split_once(' ').unwrap_or((&lower, "")) {
        ("now", "") => Some(now.timestamp()),
        ("today", rest) => day(0, rest, now),
        ("yesterday", rest) => day(1, rest, now),
        _ => span(&lower).and_then(|span| now.timestamp().checked_sub(span).ok()),
    };
    found.ok_or_else(bad)
}

fn on_the_clock(time: DateTime, now: &Zoned) -> Option<Timestamp> {
    now.time_zone().to_timestamp(time).ok()
}

/// Today, or yesterday when that is still to come.
fn last_time_it_was(time: Time, now: &Zoned) -> Option<Timestamp> {
    let today = on_the_clock(now.date().to_datetime(time), now)?;
    if today <= now.timestamp() {
        return Some(today);
    }
    on_the_clock(now.date().yesterday().ok()?.to_datetime(time), now)
}

/// So many days ago, at the time of day that is given or that it is now.
fn day(ago: i64, rest: &str, now: &Zoned) -> Option<Timestamp> {
    let rest = rest.trim();
    let rest = rest.strip_prefix("at ").unwrap_or(rest);
    let time = if rest.is_empty() { now.time() } else { rest.parse().ok()? };
    let date = now.date().checked_sub(SignedDuration::from_hours(24 * ago)).ok()?;
    on_the_clock(date.to_datetime(time), now)
}

/// `10m`, `1h30m`, `10 minutes ago`, `1 day 2 hours`.
fn span(text: &str) -> Option<SignedDuration> {
    let mut rest = text.strip_suffix("ago").unwrap_or(text).trim();
    if rest.is_empty() {
        return None;
    }
    let mut seconds: i64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: i64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "s" | "sec" | "secs" | "second" | "seconds" => 1,
            "m" | "min" | "mins" | "minute" | "minutes" => 60,
            "h" | "hour" | "hours" => 3600,
            "d" | "day" | "days" => 86_400,
            "w" | "week" | "weeks" => 7 * 86_400,
            _ => return None,
        };
        seconds = seconds.checked_add(number.checked_mul(unit)?)?;
        rest = rest[end..].trim_start();
    }
    Some(SignedDuration::from_secs(seconds))
}

/// The checkpoint that a moment means: the last one at or before a time.
pub(crate) async fn checkpoint(moment: Moment, door: &Client) -> Result<u64> {
    let time = match moment {
        Moment::Checkpoint(id) => return Ok(id),
        Moment::Time(time) => time,
    };
    let wanted = ListHistory { until: Some(time), limit: Some(1), ..ListHistory::default() };
    let page = door.history(&wanted).await?;
    let newest = page.checkpoints.first().map(|checkpoint| checkpoint.id);
    newest.ok_or_else(|| {
        Failure::new("the history does not reach back that far")
            .hint("nacre history shows what it has")
    })
}

/// `2026-11-16 14:32:10`, in the local time zone.
pub(crate) fn on_paper(ms: i64) -> String {
    let Ok(time) = Timestamp::from_millisecond(ms) else { return "?".to_owned() };
    time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Zoned {
        "2026-11-16T14:30:00.250+01:00[+01:00]".parse().unwrap()
    }

    #[test]
    fn times_are_written_as_people_do() {
        let cases = [
            ("now", "2026-11-16T14:30:00.25"),
            ("10m", "2026-11-16T14:20:00.25"),
            ("10 minutes ago", "2026-11-16T14:20:00.25"),
            ("1h30m", "2026-11-16T13:00:00.25"),
            ("1 day 2 hours ago", "2026-11-15T12:30:00.25"),
            ("2w", "2026-11-02T14:30:00.25"),
            ("14:29", "2026-11-16T14:29:00.999"),
            ("14:29:59", "2026-11-16T14:29:59.999"),
            ("14:32", "2026-11-15T14:32:00.999"),
            ("yesterday", "2026-11-15T14:30:00.25"),
            ("Yesterday 09:15", "2026-11-15T09:15:00.999"),
            ("yesterday at 09:15", "2026-11-15T09:15:00.999"),
            ("today 09:15", "2026-11-16T09:15:00.999"),
            ("2026-11-16 09:15", "2026-11-16T09:15:00.999"),
            ("2026-11-16T09:15:30", "2026-11-16T09:15:30.999"),
            ("2026-11-15", "2026-11-15T00:00:00.999"),
            ("2026-11-16T09:15:30.5Z", "2026-11-16T10:15:30.5"),
            ("2026-11-16T09:15:30+02:00", "2026-11-16T08:15:30.999"),
        ];
        for (text, expected) in cases {
            let expected: DateTime = expected.parse().unwrap();
            let expected = now().time_zone().to_timestamp(expected).unwrap().as_millisecond();
            assert_eq!(parse_at(text, &now()), Ok(Moment::Time(expected)), "{text}");
        }
    }

    #[test]
    fn checkpoints_are_numbers() {
        for text in ["@17", "#17", "17", " 17 "] {
            assert_eq!(parse_at(text, &now()), Ok(Moment::Checkpoint(17)), "{text}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in ["", "ago", "m", "10x", "-5m", "@", "@x", "25:00", "tomorrow", "src/main.rs"] {
            assert!(parse_at(text, &now()).is_err(), "{text}");
        }
        let future = parse_at("2026-11-17", &now());
        assert_eq!(future, Err("\"2026-11-17\" has not come yet".to_owned()));
    }

    #[test]
    fn the_clock_that_is_put_forward_skips_an_hour() {
        let zone = jiff::tz::TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let now = jiff::civil::date(2026, 3, 29).at(12, 0, 0, 0).to_zoned(zone).unwrap();
        let Ok(Moment::Time(ms)) = parse_at("02:30", &now) else { panic!("no time") };
        let then = Timestamp::from_millisecond(ms).unwrap().to_zoned(now.time_zone().clone());
        assert_eq!(then.time().to_string(), "03:30:00.999");
    }
}
