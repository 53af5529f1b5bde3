//! Failed logons by address and by account name: the first are refused at once, later ones wait for their refusal.
//!
//! Only refusals wait, so nobody can keep the owner of an account from logging on by guessing its key.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Failures that are refused at once. A person who mistypes a key has a few; a client that tries both keys has two.
pub const FAILED_LOGONS_BURST: f64 = 20.0;
/// Failures that are forgiven in a second.
pub const FAILED_LOGONS_PER_SECOND: f64 = 2.0;
/// No refusal waits longer than this.
pub const FAILED_LOGON_WAIT_MAX: Duration = Duration::from_secs(5);
/// Addresses and names of which failures are remembered.
pub const FAILED_LOGONS_REMEMBERED_MAX: usize = 8_192;
/// Bytes of a name by which failures are remembered; accounts have 24.
const NAME_BYTES_MAX: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Address(IpAddr),
    Name(String),
}

#[derive(Clone, Copy, Debug)]
struct Debt {
    count: f64,
    at: Instant,
}

impl Debt {
    fn at(self, now: Instant) -> f64 {
        (self.count - now.saturating_duration_since(self.at).as_secs_f64() * FAILED_LOGONS_PER_SECOND).max(0.0)
    }
}

/// What failed, less what time has forgiven.
#[derive(Debug, Default)]
pub struct LogonThrottle(Mutex<HashMap<Key, Debt>>);

impl LogonThrottle {
    /// Notes a failed logon and says how long its refusal waits: the longer of what address and name have earned.
    pub fn failed(&self, address: IpAddr, name: Option<&str>, now: Instant) -> Duration {
        let mut debts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = name.filter(|name| name.len() <= NAME_BYTES_MAX).map(|name| Key::Name(name.to_owned()));
        let keys = [Some(Key::Address(network_of(address))), name];
        keys.into_iter().flatten().map(|key| note(&mut debts, key, now)).max().unwrap_or_default()
    }
}

/// The address, or the network of 64 bits that one client has in IPv6.
fn network_of(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => IpAddr::V4(ip),
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
    }
}

fn note(debts: &mut HashMap<Key, Debt>, key: Key, now: Instant) -> Duration {
    if debts.len() >= FAILED_LOGONS_REMEMBERED_MAX && !debts.contains_key(&key) {
        debts.retain(|_, debt| debt.at(now) > 0.0);
        // Whoever invents names has one failure with each: that does not make the server forget the others.
        if debts.len() >= FAILED_LOGONS_REMEMBERED_MAX {
            debts.retain(|_, debt| debt.at(now) > 1.0);
        }
        if debts.len() >= FAILED_LOGONS_REMEMBERED_MAX {
            debts.clear();
        }
    }
    let most = FAILED_LOGONS_BURST + FAILED_LOGONS_PER_SECOND * FAILED_LOGON_WAIT_MAX.as_secs_f64();
    let debt = debts.entry(key).or_insert(Debt { count: 0.0, at: now });
    *debt = Debt { count: (debt.at(now) + 1.0).min(most), at: now };
    Duration::from_secs_f64((debt.count - FAILED_LOGONS_BURST).max(0.0) / FAILED_LOGONS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_free_and_names_count_from_any_address() {
        let (throttle, now) = (LogonThrottle::default(), Instant::now());
        let address = |last| IpAddr::from([10, 0, 0, last]);
        for _ in 0..FAILED_LOGONS_BURST as usize {
            assert_eq!(throttle.failed(address(1), Some("devstore"), now), Duration::ZERO);
        }
        assert!(throttle.failed(address(1), None, now) > Duration::ZERO);
        assert!(throttle.failed(address(2), Some("devstore"), now) > Duration::ZERO, "the name has its own count");
        assert_eq!(throttle.failed(address(2), Some("other"), now), Duration::ZERO);
        for _ in 0..1_000 {
            assert!(throttle.failed(address(1), Some("devstore"), now) <= FAILED_LOGON_WAIT_MAX);
        }
        let later = now + Duration::from_secs(3600);
        assert_eq!(throttle.failed(address(1), Some("devstore"), later), Duration::ZERO, "it is forgiven in time");
    }

    #[test]
    fn a_network_is_one_client_and_invented_names_hide_nobody() {
        let (throttle, now) = (LogonThrottle::default(), Instant::now());
        let address = |last: u16| IpAddr::from([0x2001, 0xDB8, 0, 0, last, 0, 0, last]);
        for number in 0..=FAILED_LOGONS_BURST as u16 {
            throttle.failed(address(number), None, now);
        }
        for number in 0..FAILED_LOGONS_REMEMBERED_MAX as u32 {
            throttle.failed(IpAddr::from((number << 8).to_be_bytes()), Some(&number.to_string()), now);
        }
        assert!(throttle.failed(address(999), None, now) > Duration::ZERO);
    }

    #[test]
    fn what_is_remembered_has_a_limit() {
        let (throttle, now) = (LogonThrottle::default(), Instant::now());
        for number in 0..2 * FAILED_LOGONS_REMEMBERED_MAX as u32 {
            throttle.failed(IpAddr::from(number.to_be_bytes()), Some(&number.to_string()), now);
            assert!(throttle.0.lock().unwrap().len() <= FAILED_LOGONS_REMEMBERED_MAX);
        }
        throttle.failed(IpAddr::from([1, 1, 1, 1]), Some(&"x".repeat(1 << 20)), now);
    }
}
