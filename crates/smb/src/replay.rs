//! CREATE requests that are sent again (MS-SMB2 3.3.5.9.10). A client that does not know whether its request was carried out sends it
//! again with the same GUID and says so; it gets the open that the first one made.
//!
//! An open can be had again so until its client first uses it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::open::FileOpen;
use crate::status::{Result, Status};

/// What names a CREATE: the client's GUID and the one that it has chosen for the request.
pub(crate) type CreateKey = (u128, u128);

/// CREATE requests by what names them. As many as there are opens and requests at work.
#[derive(Debug, Default)]
pub(crate) struct Replays(Mutex<HashMap<CreateKey, Known>>);

#[derive(Debug)]
enum Known {
    AtWork,
    Done { session: u64, file: Weak<FileOpen> },
}

/// A CREATE that is known by its name for as long as this lives.
#[derive(Debug)]
pub(crate) struct Named {
    replays: Weak<Replays>,
    key: CreateKey,
}

/// What a CREATE with a name turns out to be.
#[derive(Debug)]
pub(crate) enum Begun {
    New(Named),
    /// The open that the first request made.
    Again(Arc<FileOpen>),
}

impl Replays {
    fn known(&self) -> MutexGuard<'_, HashMap<CreateKey, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A CREATE begins in a session.
    ///
    /// # Errors
    /// DUPLICATE_OBJECTID if its name is taken, FILE_NOT_AVAILABLE if it is sent again while the first one is at work.
    pub fn begin(self: &Arc<Self>, key: CreateKey, session: u64, is_replay: bool) -> Result<Begun> {
        let mut known = self.known();
        match known.get(&key) {
            None => {}
            Some(Known::AtWork) if is_replay => return Err(Status::FILE_NOT_AVAILABLE),
            Some(Known::Done { session: of, file }) if is_replay && *of == session => {
                if let Some(file) = file.upgrade() {
                    return Ok(Begun::Again(file));
                }
            }
            Some(Known::AtWork | Known::Done { .. }) => return Err(Status::DUPLICATE_OBJECTID),
        }
        known.insert(key, Known::AtWork);
        Ok(Begun::New(Named { replays: Arc::downgrade(self), key }))
    }
}

impl Named {
    /// The CREATE has made an open.
    pub fn done(&self, session: u64, file: &Arc<FileOpen>) {
        if let Some(replays) = self.replays.upgrade() {
            replays.known().insert(self.key, Known::Done { session, file: Arc::downgrade(file) });
        }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        if let Some(replays) = self.replays.upgrade() {
            replays.known().remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: CreateKey = (1, 2);

    fn refused(begun: Result<Begun>) -> Status {
        begun.expect_err("refused")
    }

    #[test]
    fn a_name_is_taken_for_as_long_as_its_create_is_known() {
        let replays = Arc::new(Replays::default());
        let Ok(Begun::New(named)) = replays.begin(KEY, 7, false) else { panic!("a free name") };
        assert_eq!(refused(replays.begin(KEY, 7, true)), Status::FILE_NOT_AVAILABLE, "the first is at work");
        assert_eq!(refused(replays.begin(KEY, 7, false)), Status::DUPLICATE_OBJECTID);
        assert!(replays.begin((1, 3), 7, false).is_ok() && replays.begin((2, 2), 7, false).is_ok(), "other names");
        drop(named);
        assert!(matches!(replays.begin(KEY, 7, true), Ok(Begun::New(_))), "a replay of what failed is a new request");
        assert!(replays.known().is_empty());
    }
}
