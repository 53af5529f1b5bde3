//! Slows down clients that guess: failed signatures and tokens, counted by address.
//!
//! Only refusals wait, never a request that is good, so a client behind the same address as somebody who guesses notices
//! nothing. Some failures are free, because a clock that is wrong or a key that was changed makes many of them at once. From
//! then on an address gets its refusals at a fixed rate, but none waits longer than [`FAILED_SIGN_IN_WAIT_MAX`]: whoever has
//! more connections than the rate allows in that time gets one refusal in that time on each of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::connection_limits::network_of;
use crate::limits::{
    FAILED_SIGN_IN_ADDRESSES_MAX, FAILED_SIGN_IN_WAIT_MAX, FAILED_SIGN_INS_BURST, FAILED_SIGN_INS_PER_SECOND,
};

#[derive(Debug, Default)]
pub(crate) struct FailedSignIns(Mutex<HashMap<IpAddr, Debt>>);

/// How many failures an address has, less what time has forgiven.
#[derive(Clone, Copy, Debug)]
struct Debt {
    count: f64,
    at: Instant,
}

impl Debt {
    fn at(self, now: Instant) -> f64 {
        (self.count - now.saturating_duration_since(self.at).as_secs_f64() * FAILED_SIGN_INS_PER_SECOND).max(0.0)
    }
}

impl FailedSignIns {
    /// Notes a failure, and says how long its refusal is to wait.
    pub(crate) fn note(&self, ip: IpAddr, now: Instant) -> Duration {
        let mut debts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let address = network_of(ip);
        if debts.len() >= FAILED_SIGN_IN_ADDRESSES_MAX && !debts.contains_key(&address) {
            debts.retain(|_, debt| debt.at(now) > 0.0);
            // Very many addresses guess at once: those begin anew.
            if debts.len() >= FAILED_SIGN_IN_ADDRESSES_MAX {
                debts.clear();
            }
        }
        let debt = debts.entry(address).or_insert(Debt { count: 0.0, at: now });
        let most = FAILED_SIGN_INS_BURST + FAILED_SIGN_INS_PER_SECOND * FAILED_SIGN_IN_WAIT_MAX.as_secs_f64();
        *debt = Debt { count: (debt.at(now) + 1.0).min(most), at: now };
        let over = (debt.count - FAILED_SIGN_INS_BURST).max(0.0);
        Duration::from_secs_f64(over / FAILED_SIGN_INS_PER_SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_free_and_then_there_is_a_rate_for_each_address() {
        let (failed, now) = (FailedSignIns::default(), Instant::now());
        let (guesser, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        for _ in 0..FAILED_SIGN_INS_BURST as usize {
            assert_eq!(failed.note(guesser, now), Duration::ZERO);
        }
        let waits: Vec<Duration> = (0..3).map(|_| failed.note(guesser, now)).collect();
        let step = 1.0 / FAILED_SIGN_INS_PER_SECOND;
        assert_eq!(waits, [1.0, 2.0, 3.0].map(|steps| Duration::from_secs_f64(steps * step)));
        assert_eq!(failed.note(other, now), Duration::ZERO, "another address has nothing to do with it");
        for _ in 0..100_000 {
            assert!(failed.note(guesser, now) <= FAILED_SIGN_IN_WAIT_MAX);
        }
        let later = now + Duration::from_secs(3600);
        assert_eq!(failed.note(guesser, later), Duration::ZERO, "it is forgiven in time");
    }

    #[test]
    fn what_is_remembered_has_a_limit() {
        let (failed, now) = (FailedSignIns::default(), Instant::now());
        for number in 0..3 * FAILED_SIGN_IN_ADDRESSES_MAX as u32 {
            failed.note(IpAddr::from(number.to_be_bytes()), now);
            assert!(failed.0.lock().unwrap().len() <= FAILED_SIGN_IN_ADDRESSES_MAX);
        }
    }
}
