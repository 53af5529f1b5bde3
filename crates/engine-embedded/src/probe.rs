//! Moments at which a test can step in: make a thread panic or wait, or the system give no randomness.

use std::fmt;
use std::io;
#[cfg(feature = "testing")]
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// Randomness is drawn from the system; an error means that there is none.
    Entropy,
    /// The thread of this name begins its next piece of work.
    Decider,
    Committer,
    Outside,
    Flusher,
    Compactor,
    Collector,
}

/// Called at each moment. The default does nothing, and without the feature `testing` there is no other.
#[derive(Clone, Default)]
pub struct Probe(#[cfg(feature = "testing")] Option<Ask>);

#[cfg(feature = "testing")]
type Ask = Arc<dyn Fn(Moment) -> io::Result<()> + Send + Sync>;

#[cfg(feature = "testing")]
impl Probe {
    pub fn new(ask: impl Fn(Moment) -> io::Result<()> + Send + Sync + 'static) -> Probe {
        Probe(Some(Arc::new(ask)))
    }

    pub(crate) fn at(&self, moment: Moment) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), |ask| ask(moment))
    }
}

#[cfg(not(feature = "testing"))]
impl Probe {
    pub(crate) fn at(&self, _: Moment) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Probe")
    }
}
