//! What a blob or a file knows of the copy that it came from.

use concurrency::{LeaseId, Timestamp};
use engine::Tick;
use minicbor::{Decode, Encode};
use service::sources::without_signature;
use service::{codec, reply};
use wire::dates;
use wire::http::{HeaderMap, HeaderValue};

/// The last copy into a blob or a file. It is forgotten when the blob is written to, except by leases, pages and blocks, and when
/// the file is created anew or its properties are set.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct CopyState {
    #[n(0)]
    pub id: String,
    #[n(1)]
    pub status: CopyStatus,
    /// The URL as it may be shown.
    #[n(2)]
    pub source: String,
    #[n(3)]
    pub done: u64,
    #[n(4)]
    pub total: u64,
    #[cbor(n(5), with = "codec::optional_time")]
    pub completed: Option<Timestamp>,
    /// Why it failed.
    #[n(6)]
    pub description: Option<String>,
    /// The snapshots that an incremental copy went from and led to.
    #[n(7)]
    pub incremental: Option<Incremental>,
    /// The job of a background copy, while it is pending.
    #[n(8)]
    pub job: Option<u64>,
    /// When it is done by itself: what it was made of must be rehydrated first.
    #[cbor(n(9), with = "codec::optional_time", default)]
    pub until: Option<Timestamp>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(index_only)]
pub enum CopyStatus {
    #[n(0)]
    Pending,
    #[n(1)]
    Success,
    #[n(2)]
    Aborted,
    #[n(3)]
    Failed,
}

/// What makes a blob the incremental copy of another.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(map)]
pub struct Incremental {
    /// The uid that the blob had whose snapshots are copied; it takes another when its snapshots are deleted.
    #[n(0)]
    pub source: u64,
    /// The snapshot of it that was copied last.
    #[cbor(n(1), with = "codec::time")]
    pub source_snapshot: Timestamp,
    /// The snapshot of this blob that the copy left.
    #[cbor(n(2), with = "codec::time")]
    pub snapshot: Timestamp,
    /// The key of the blob whose snapshots are copied. `None`: copied before this was noted, and known by its uid.
    #[cbor(n(3), with = "minicbor::bytes", default)]
    pub source_key: Option<Vec<u8>>,
    /// The page map of that snapshot: another one means that the source was written anew between two copies.
    #[n(4)]
    pub source_map: Option<u64>,
}

impl Incremental {
    /// Whether it was copied from a later state of the same pages.
    pub fn follows(&self, earlier: &Incremental) -> bool {
        match (self.source_map, earlier.source_map) {
            (Some(own), Some(other)) => own == other,
            (None, _) | (_, None) => true,
        }
    }
}

impl CopyStatus {
    pub fn name(self) -> &'static str {
        match self {
            CopyStatus::Pending => "pending",
            CopyStatus::Success => "success",
            CopyStatus::Aborted => "aborted",
            CopyStatus::Failed => "failed",
        }
    }
}

impl CopyState {
    /// A copy that is done.
    pub fn success(source: &str, length: u64, tick: Tick) -> CopyState {
        CopyState {
            id: copy_id(tick),
            status: CopyStatus::Success,
            source: without_signature(source),
            done: length,
            total: length,
            completed: Some(tick.now),
            description: None,
            incremental: None,
            job: None,
            until: None,
        }
    }

    /// A copy that is done once its time has come.
    pub fn waiting(self, until: Timestamp) -> CopyState {
        CopyState { status: CopyStatus::Pending, done: 0, completed: None, until: Some(until), ..self }
    }

    /// Whether it is under way at `now`.
    pub fn is_pending(&self, now: Timestamp) -> bool {
        self.status == CopyStatus::Pending && self.until.is_none_or(|until| now < until)
    }

    /// What is told of it at `now`: its status, how far it has come, and when it ended.
    pub fn shown(&self, now: Timestamp) -> (CopyStatus, String, Option<Timestamp>) {
        let (status, done, completed) = match self.until {
            Some(until) if self.status == CopyStatus::Pending && until <= now => {
                (CopyStatus::Success, self.total, Some(until))
            }
            Some(_) | None => (self.status, self.done, self.completed),
        };
        (status, format!("{done}/{}", self.total), completed)
    }

    /// A copy that has begun.
    pub fn pending(source: &str, length: u64, tick: Tick) -> CopyState {
        CopyState { status: CopyStatus::Pending, done: 0, completed: None, ..CopyState::success(source, length, tick) }
    }

    /// What reads tell of it at `now`.
    pub fn tell(&self, headers: &mut HeaderMap, now: Timestamp) {
        let (status, progress, completed) = self.shown(now);
        let mut set = |name: &'static str, text: &str| _ = headers.insert(name, reply::value(text.to_owned()));
        set("x-ms-copy-id", &self.id);
        set("x-ms-copy-source", &self.source);
        set("x-ms-copy-progress", &progress);
        if let Some(description) = &self.description {
            set("x-ms-copy-status-description", description);
        }
        headers.insert("x-ms-copy-status", HeaderValue::from_static(status.name()));
        if let Some(at) = completed {
            headers.insert("x-ms-copy-completion-time", reply::date(at));
        }
        if let Some(incremental) = &self.incremental {
            headers.insert("x-ms-incremental-copy", reply::TRUE);
            let at = dates::iso_ticks(incremental.snapshot).as_str().to_owned();
            headers.insert("x-ms-copy-destination-snapshot", reply::value(at));
        }
    }
}

/// A fresh GUID.
fn copy_id(tick: Tick) -> String {
    let mut bytes = tick.entropy.to_be_bytes();
    // Marked as a random one, as GUIDs are.
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    LeaseId(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(0x8DE_0000_0000_0000);

    fn tick() -> Tick {
        Tick { now: NOW, stamp: NOW.plus_ticks(100), entropy: 7 }
    }

    /// Those of before copies could wait.
    #[test]
    fn copies_that_do_not_wait_are_read() {
        #[derive(Encode)]
        #[cbor(map)]
        struct Before {
            #[n(0)]
            id: String,
            #[n(1)]
            status: CopyStatus,
            #[n(2)]
            source: String,
            #[n(3)]
            done: u64,
            #[n(4)]
            total: u64,
            #[cbor(n(5), with = "codec::optional_time")]
            completed: Option<Timestamp>,
            #[n(6)]
            description: Option<String>,
            #[n(7)]
            incremental: Option<Incremental>,
            #[n(8)]
            job: Option<u64>,
        }
        let copy = CopyState::success("http://h/a/c/b", 3, tick());
        let CopyState { id, status, source, done, total, completed, description, incremental, job, until } =
            copy.clone();
        assert_eq!(until, None);
        let before = Before { id, status, source, done, total, completed, description, incremental, job };
        assert_eq!(codec::decode::<CopyState>(&codec::encode(&before)).unwrap(), copy);
    }

    /// Those of before the source was known by its name.
    #[test]
    fn incremental_copies_that_know_a_uid_are_read() {
        #[derive(Encode)]
        #[cbor(map)]
        struct Before {
            #[n(0)]
            source: u64,
            #[cbor(n(1), with = "codec::time")]
            source_snapshot: Timestamp,
            #[cbor(n(2), with = "codec::time")]
            snapshot: Timestamp,
        }
        let before = Before { source: 5, source_snapshot: NOW, snapshot: NOW };
        let read = Incremental { source: 5, source_snapshot: NOW, snapshot: NOW, source_key: None, source_map: None };
        assert_eq!(codec::decode::<Incremental>(&codec::encode(&before)).unwrap(), read);
    }

    #[test]
    fn copies_wait_for_their_time() {
        let later = Timestamp(NOW.0 + 10);
        let copy = CopyState::success("http://h/a/c/b", 3, tick()).waiting(later);
        assert!(copy.is_pending(NOW) && !copy.is_pending(later));
        assert_eq!(copy.shown(NOW), (CopyStatus::Pending, "0/3".to_owned(), None));
        assert_eq!(copy.shown(later), (CopyStatus::Success, "3/3".to_owned(), Some(later)));
        let pending = CopyState::pending("http://h/a/c/b", 3, tick());
        assert!(pending.is_pending(later));
    }

    #[test]
    fn ids_are_guids() {
        let id = CopyState::success("http://h/a/c/b", 3, tick()).id;
        assert_eq!((id.len(), id.matches('-').count()), (36, 4));
        assert_eq!(&id[14..15], "4");
    }
}
