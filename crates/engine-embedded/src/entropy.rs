//! Randomness for the decider: entropy of ticks, from which ids are drawn.

use engine::EngineError;

use crate::fill_random;
use crate::probe::Probe;

/// Randomness from the system, a page at a time.
pub struct Entropy {
    pool: [u8; 4096],
    used: usize,
}

impl Default for Entropy {
    fn default() -> Entropy {
        Entropy { pool: [0; 4096], used: 4096 }
    }
}

impl Entropy {
    /// Without randomness ids would repeat: then the decision fails.
    pub fn next(&mut self, probe: &Probe) -> Result<u128, EngineError> {
        if self.used == self.pool.len() {
            fill_random(&mut self.pool, probe)?;
            self.used = 0;
        }
        let bytes = self.pool[self.used..self.used + 16].try_into().expect("sixteen bytes");
        self.used += 16;
        Ok(u128::from_le_bytes(bytes))
    }
}
