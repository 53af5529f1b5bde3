//! Places where a test can make the disk fail.

use std::fmt;
use std::io;
use std::sync::Arc;

/// Where the engine is about to touch the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    Create,
    LogWrite,
    LogSync,
    DataWrite,
    DataSync,
}

/// Asked before each touch; the default lets everything through.
#[derive(Clone, Default)]
pub struct Faults(Option<Arc<dyn Fn(Point) -> io::Result<()> + Send + Sync>>);

impl Faults {
    pub fn new(ask: impl Fn(Point) -> io::Result<()> + Send + Sync + 'static) -> Faults {
        Faults(Some(Arc::new(ask)))
    }

    pub fn at(&self, point: Point) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), |ask| ask(point))
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Faults(some)" } else { "Faults(none)" })
    }
}
