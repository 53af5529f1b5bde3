//! Credits: how many requests a client may have on their way, and which message ids they have (MS-SMB2 3.3.1.1, 3.3.1.2).

use std::collections::VecDeque;

/// Credits that a client holds at most: 32 MiB of reads or writes.
pub const CREDITS_MAX: usize = 512;

/// The distance between the oldest id that was not used and the newest that may be. A client that never uses an id gets no further.
pub const WINDOW_MAX: usize = 8 * CREDITS_MAX;

/// Bytes that one credit pays for.
pub const CREDIT_BYTES: u64 = 64 << 10;

/// A message id that was used, or may not be used yet: the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfWindow;

/// The message ids that may be used.
#[derive(Clone, Debug)]
pub struct Credits {
    /// The first id that was not used.
    low: u64,
    /// From `low` on: whether the id may be used.
    window: VecDeque<bool>,
    available: usize,
}

impl Default for Credits {
    /// A new connection may send one request, number 0.
    fn default() -> Credits {
        Credits { low: 0, window: VecDeque::from([true]), available: 1 }
    }
}

impl Credits {
    /// Uses the ids of a request: as many as its charge, 0 counting as 1.
    ///
    /// # Errors
    /// When one of them may not be used.
    pub fn take(&mut self, message_id: u64, charge: u16) -> Result<(), OutOfWindow> {
        let count = usize::from(charge.max(1));
        let start =
            message_id.checked_sub(self.low).and_then(|start| usize::try_from(start).ok()).ok_or(OutOfWindow)?;
        let end = start.checked_add(count).filter(|end| *end <= self.window.len()).ok_or(OutOfWindow)?;
        if !self.window.range(start..end).all(|free| *free) {
            return Err(OutOfWindow);
        }
        self.window.range_mut(start..end).for_each(|free| *free = false);
        self.available -= count;
        while self.window.front() == Some(&false) {
            self.window.pop_front();
            self.low += 1;
        }
        Ok(())
    }

    /// Grants what is asked for, up to the limit. A client that holds none gets one even if it asks for none: it could not go on.
    pub fn grant(&mut self, asked: u16) -> u16 {
        let least = usize::from(self.available == 0);
        let most = CREDITS_MAX.saturating_sub(self.available).min(WINDOW_MAX.saturating_sub(self.window.len()));
        let granted = usize::from(asked).max(least).min(most.max(least));
        self.window.extend(std::iter::repeat_n(true, granted));
        self.available += granted;
        u16::try_from(granted).unwrap_or(u16::MAX)
    }

    /// How many requests the client may send.
    #[must_use]
    pub fn available(&self) -> usize {
        self.available
    }
}

/// Whether a charge pays for so many bytes.
#[must_use]
pub fn pays_for(charge: u16, payload_bytes: u64) -> bool {
    payload_bytes <= u64::from(charge.max(1)) * CREDIT_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_used_once_and_in_the_window() {
        let mut credits = Credits::default();
        assert_eq!(credits.take(1, 0), Err(OutOfWindow));
        assert_eq!(credits.take(0, 0), Ok(()));
        assert_eq!(credits.take(0, 0), Err(OutOfWindow));
        assert_eq!(credits.grant(10), 10);
        assert_eq!(credits.take(5, 2), Ok(()));
        assert_eq!(credits.take(6, 1), Err(OutOfWindow));
        assert_eq!(credits.take(4, 2), Err(OutOfWindow), "a charge over an id that was used");
        assert_eq!(credits.take(9, 3), Err(OutOfWindow), "a charge out of the window");
        assert_eq!(credits.take(1, 4), Ok(()));
        assert_eq!(credits.take(7, 4), Ok(()));
        assert_eq!(credits.available(), 0);
        assert_eq!(credits.take(u64::MAX, u16::MAX), Err(OutOfWindow));
    }

    #[test]
    fn grants_end_at_the_limit() {
        let mut credits = Credits::default();
        assert_eq!(usize::from(credits.grant(u16::MAX)), CREDITS_MAX - 1);
        assert_eq!(credits.grant(u16::MAX), 0);
        for id in 0..CREDITS_MAX as u64 {
            credits.take(id, 1).unwrap();
        }
        assert_eq!(credits.grant(0), 1, "a client without credits could not go on");
        assert_eq!(credits.grant(0), 0);
    }

    #[test]
    fn a_client_that_leaves_an_id_out_gets_no_further_than_the_window() {
        let mut credits = Credits::default();
        credits.grant(1);
        let mut id = 1;
        while credits.take(id, 1).is_ok() {
            credits.grant(1);
            id += 1;
        }
        assert_eq!(id as usize, WINDOW_MAX);
        assert_eq!(credits.take(0, 1), Ok(()));
    }

    #[test]
    fn a_charge_pays_for_64_kib() {
        assert!(pays_for(0, 65_536) && pays_for(1, 65_536) && !pays_for(1, 65_537));
        assert!(pays_for(128, 8 << 20) && !pays_for(127, 8 << 20));
    }
}
