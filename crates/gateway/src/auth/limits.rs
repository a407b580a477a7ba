//! How often an address may fail: the more, the longer it waits. Pure, but for the clock.
//!
//! Failures are forgotten with time. The table is bounded: whoever has waited longest is forgotten
//! first, so filling it up takes more addresses than guessing would.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Mistakes that cost nothing.
const FREE: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_secs(2);
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);
/// After this long without a failure an address starts anew.
const FORGOTTEN: Duration = Duration::from_secs(60 * 60);
const MOST: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Limits(Mutex<HashMap<IpAddr, Failures>>);

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

impl Failures {
    fn wait(self) -> Duration {
        match self.count.checked_sub(FREE) {
            None => Duration::ZERO,
            Some(more) => FIRST_WAIT.saturating_mul(1 << more.min(16)).min(LONGEST_WAIT),
        }
    }
}

impl Limits {
    /// How long this address still has to wait.
    pub(crate) fn check(&self, address: IpAddr) -> Result<(), Duration> {
        self.check_at(address, Instant::now())
    }

    pub(crate) fn failed(&self, address: IpAddr) {
        self.failed_at(address, Instant::now());
    }

    /// Whoever got in starts anew.
    pub(crate) fn succeeded(&self, address: IpAddr) {
        self.lock().remove(&network(address));
    }

    fn check_at(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let Some(failures) = self.lock().get(&network(address)).copied() else { return Ok(()) };
        let left = (failures.last + failures.wait()).saturating_duration_since(now);
        if left.is_zero() { Ok(()) } else { Err(left) }
    }

    fn failed_at(&self, address: IpAddr, now: Instant) {
        let mut table = self.lock();
        let address = network(address);
        if table.len() >= MOST && !table.contains_key(&address) {
            table.retain(|_, failures| now.duration_since(failures.last) < FORGOTTEN);
            let oldest = table.iter().min_by_key(|(_, failures)| failures.last).map(|(ip, _)| *ip);
            if let Some(oldest) = oldest.filter(|_| table.len() >= MOST) {
                table.remove(&oldest);
            }
        }
        let failures = table.entry(address).or_insert(Failures { count: 0, last: now });
        if now.duration_since(failures.last) >= FORGOTTEN {
            failures.count = 0;
        }
        *failures = Failures { count: failures.count.saturating_add(1), last: now };
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<IpAddr, Failures>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who has one IPv6 address has all that share its first half.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_failures_the_longer_the_wait() {
        let (limits, mut now) = (Limits::default(), Instant::now());
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        let mut waits = Vec::new();
        for _ in 0..16 {
            assert_eq!(limits.check_at(address, now), Ok(()));
            limits.failed_at(address, now);
            let wait = limits.check_at(address, now).err().unwrap_or_default();
            waits.push(wait.as_secs());
            now += wait;
        }
        assert_eq!(waits, [0, 0, 0, 0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]);
        assert_eq!(limits.check_at("192.0.2.2".parse().unwrap(), now), Ok(()));

        now += FORGOTTEN;
        limits.failed_at(address, now);
        assert_eq!(limits.check_at(address, now), Ok(()));
    }

    #[test]
    fn whoever_gets_in_starts_anew() {
        let limits = Limits::default();
        let address: IpAddr = "::1".parse().unwrap();
        for _ in 0..9 {
            limits.failed(address);
        }
        assert!(limits.check(address).is_err());
        limits.succeeded(address);
        assert_eq!(limits.check(address), Ok(()));
    }

    #[test]
    fn an_ipv6_network_and_a_mapped_address_are_one() {
        let limits = Limits::default();
        for _ in 0..9 {
            limits.failed("2001:db8::1".parse().unwrap());
            limits.failed("::ffff:192.0.2.1".parse().unwrap());
        }
        assert!(limits.check("2001:db8::ffff:1:2:3".parse().unwrap()).is_err());
        assert!(limits.check("192.0.2.1".parse().unwrap()).is_err());
        assert!(limits.check("2001:db8:0:1::1".parse().unwrap()).is_ok());
    }

    #[test]
    fn the_table_does_not_grow_without_end() {
        let limits = Limits::default();
        for number in 0..u32::try_from(MOST).unwrap() + 100 {
            limits.failed(IpAddr::V4(number.to_be_bytes().into()));
        }
        assert_eq!(limits.lock().len(), MOST);
    }
}
