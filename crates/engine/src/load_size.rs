//! How many rows an engine fetches at once that does not have them at hand.

/// A scan fetches at least so many rows, and at most; each further fetch of a run brings more than the one before.
const ROWS_PER_LOAD_MIN: usize = 16;
const ROWS_PER_LOAD_MAX: usize = 10_000;

/// How many rows a scan fetches that expects to see `about`, after `loads` ranges were fetched.
#[must_use]
pub fn rows_per_load(about: usize, loads: u32) -> usize {
    (about.saturating_add(1).max(ROWS_PER_LOAD_MIN) << loads.min(10)).min(ROWS_PER_LOAD_MAX)
}
