//! The open files of segments: as many as may be, however many segments there are.
//!
//! A data folder of a terabyte has thousands of segments, and a process may have a thousand files open, connections among
//! them. So the file of a segment that is not written to is closed when others are needed, and opened again when it is read.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};

use crate::segment::Segment;
use crate::sync::{AtomicU64, Mutex};

/// How many files of segments stay open, unless the options say otherwise.
pub const SEGMENT_FILES_MAX: u64 = 256;

/// Which segments have their files open. One for each folder.
#[derive(Debug)]
pub struct SegmentFiles {
    max: u64,
    open: AtomicU64,
    /// All segments in use, in the order in which their files are looked at for closing.
    ring: Mutex<VecDeque<Weak<Segment>>>,
}

impl SegmentFiles {
    pub fn new(max: u64) -> SegmentFiles {
        SegmentFiles { max, open: AtomicU64::new(0), ring: Mutex::default() }
    }

    /// The file of this segment may be closed once it is not written to any more.
    pub fn add(&self, segment: &Arc<Segment>) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        // Segments come and go all the time. Those that are gone take memory here, so they go before there is room for more.
        if ring.len() == ring.capacity() {
            ring.retain(|segment| segment.strong_count() > 0);
        }
        ring.push_back(Arc::downgrade(segment));
    }

    /// A file was opened. If there are too many, others are closed.
    pub fn opened(&self) {
        if self.open.fetch_add(1, Ordering::AcqRel) >= self.max {
            self.close_some(1);
        }
    }

    pub fn closed(&self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
    }

    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Acquire)
    }

    /// Closes files, first those that were not used since they were last looked at. How many.
    pub fn close_some(&self, wanted: usize) -> usize {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let mut closed = 0;
        // Twice round: the first time those that were used are only marked.
        for _ in 0..2 * ring.len() {
            if closed == wanted {
                break;
            }
            let Some(next) = ring.pop_front() else { break };
            // A segment that is gone has closed its file.
            let Some(segment) = next.upgrade() else { continue };
            if segment.close_if_idle() {
                closed += 1;
            }
            ring.push_back(next);
        }
        closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;
    use crate::folder::Folder;
    use crate::segment::SegmentKind;

    /// Few files are open, so none is looked at for closing.
    #[test]
    fn segments_that_are_gone_are_forgotten() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), Arc::new(RealDisk)).expect("a new folder");
        let make = |id| Arc::new(Segment::create(&folder, id, SegmentKind::Data, 0).expect("made"));
        let files = folder.segment_files();
        let kept: Vec<_> = (1..=3).map(make).collect();
        kept.iter().for_each(|segment| files.add(segment));
        for id in 4..=200 {
            files.add(&make(id));
        }
        let ring = files.ring.lock().expect("no panic");
        assert!(ring.len() < 50, "{} are remembered", ring.len());
        assert_eq!(ring.iter().filter(|segment| segment.strong_count() > 0).count(), kept.len());
    }
}
