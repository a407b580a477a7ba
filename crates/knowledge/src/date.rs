//! Moments as people and manifests write them.

const DAY: u64 = 86_400_000;

/// Milliseconds since 1970 as `2026-11-17T18:30:00Z`.
pub fn of_ms(ms: u64) -> String {
    let (year, month, day) = civil(ms / DAY);
    let seconds = ms % DAY / 1000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Years begin in March here, so that the leap day is the last of one.
/// <https://howardhinnant.github.io/date_algorithms.html#civil_from_days>
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_dates() {
        let check = |ms, expected: &str| assert_eq!(of_ms(ms), expected);
        check(0, "1970-01-01T00:00:00Z");
        check(951_782_400_000, "2000-02-29T00:00:00Z");
        check(951_868_799_999, "2000-02-29T23:59:59Z");
        check(1_709_164_800_000, "2024-02-29T00:00:00Z");
        check(1_794_940_200_000, "2026-11-17T18:30:00Z");
        check(4_107_542_400_000, "2100-03-01T00:00:00Z");
    }
}
