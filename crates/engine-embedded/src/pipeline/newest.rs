//! The rows that a decision sees in its turn.

use std::cell::Cell;
use std::sync::Arc;

use bytes::Bytes;
use engine::{Content, ContentId, Key, Rows, Unread, Visit};

use crate::tree::NEWEST;
use crate::{Inner, contents};

/// What the decider sees: everything decided so far, durable or not; as many rows as one may look at in one's turn.
pub struct Newest<'a> {
    pub inner: &'a Arc<Inner>,
    pub left: Cell<usize>,
}

impl Newest<'_> {
    fn look(&self) -> Result<(), Unread> {
        self.left.set(self.left.get().saturating_sub(1));
        if self.left.get() == 0 { Err(Unread::NotYet) } else { Ok(()) }
    }
}

impl Rows for Newest<'_> {
    fn get(&self, key: &Key) -> Result<Option<Bytes>, Unread> {
        self.look()?;
        Ok(self.inner.get(key.as_bytes(), NEWEST)?)
    }

    fn scan(
        &self,
        from: &Key,
        to: &Key,
        _about: usize,
        visit: &mut dyn FnMut(&[u8], &Bytes) -> Visit,
    ) -> Result<(), Unread> {
        self.look()?;
        let mut looked = Ok(());
        self.inner.tree.scan(from.as_bytes(), to.as_bytes(), NEWEST, &mut |key, value| {
            looked = self.look();
            if looked.is_ok() { visit(key, value) } else { Visit::Stop }
        })?;
        looked
    }

    fn content(&self, id: ContentId) -> Result<Content, Unread> {
        self.look()?;
        contents::open(self.inner, id, |key| Ok(self.inner.get(key, NEWEST)?))
    }
}
