//! Why a request was refused: a record and what else is known of its object in, sentences out. A pure function.
//!
//! A sentence says only what a record says. Where the history has lost the request that would explain more, or never had
//! it, the sentence is left out.

use std::fmt::Write as _;

use concurrency::{Lease, LeaseId, LeaseState, MessageId, SeenLease, Timestamp, Until};

use crate::query::Chain;
use crate::record::{Judged, Read, Record, Service, bare, etags};

/// A sentence, and the number of the record that it speaks of beside the refused one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sentence {
    pub text: String,
    pub refers: Option<u64>,
}

/// The clock of a client may be off by this much before its signature is refused.
const SKEW_SECONDS_MAX: u64 = 15 * 60;
const TICKS_PER_MILLI: u64 = Timestamp::TICKS_PER_SECOND / 1000;

/// Why `record` was answered as it was. `gave`: whether a plain read gave an ETag; reads keep hashes alone.
///
/// There are no words for what was not refused, nor for a fault that the request has by itself.
pub fn why(record: &Record, neighbours: &Chain, gave: impl Fn(&Read, &str) -> bool) -> Vec<Sentence> {
    let story = Story { record, neighbours };
    let code = match (&record.code, record.status) {
        (_, 304) => "ConditionNotMet",
        (Some(code), 400..) => code.as_str(),
        (Some(_) | None, _) => return Vec::new(),
    };
    match code {
        "ConditionNotMet" | "UpdateConditionNotSatisfied" => story.condition(gave),
        "AppendPositionConditionNotMet" | "MaxBlobSizeConditionNotMet" | "SequenceNumberConditionNotMet" => {
            story.position(code)
        }
        "BlobAlreadyExists" | "EntityAlreadyExists" | "ResourceAlreadyExists" | "UnauthorizedBlobOverwrite" => {
            story.exists()
        }
        "BlobNotFound" | "ResourceNotFound" => story.gone(),
        "MessageNotFound" | "PopReceiptMismatch" => story.message(code),
        "AuthenticationFailed" => story.signature(),
        "BlobImmutableDueToPolicy" | "BlobImmutableDueToLegalHold" => story.immutable(code),
        "SharingViolation" | "SMBDeletePending" | "ClientCacheFlushDelay" | "FileLockConflict" => story.open(code),
        code if code.starts_with("Lease") => story.lease(code),
        _ => Vec::new(),
    }
}

struct Story<'a> {
    record: &'a Record,
    neighbours: &'a Chain,
}

impl Story<'_> {
    fn condition(&self, gave: impl Fn(&Read, &str) -> bool) -> Vec<Sentence> {
        let (thing, found) = (self.thing(), self.found());
        let mut said = Vec::new();
        let place = match self.record.judged {
            Judged::Door => "before the body was read",
            Judged::Commit => "when it was judged",
        };
        let state = match found {
            Some(etag) => format!("{place} the {thing} was at {etag}"),
            None if self.record.seen.is_some() => format!("{place} there was no {thing}"),
            None => "it did not hold".to_owned(),
        };
        said.push(plain(format!("You sent {}; {state}.", self.conditions())));
        if let Some(write) = found.and_then(|etag| self.writer(etag)) {
            said.push(about(write, format!("It was written {} by {}.", self.before(write), who(write))));
        }
        let Some(old) = self.record.sent.if_match.as_deref().and_then(|header| etags(header).next()) else {
            return said;
        };
        if old == "*" || Some(old) == found {
            return said;
        }
        said.extend(self.source(old, gave));
        if let Some(found) = found
            && let count @ 1.. = self.between(old, found)
        {
            let writes = if count == 1 { "one write".to_owned() } else { format!("{count} writes") };
            said.push(plain(format!("From {old} to {found} there was {writes}. Read again, then retry.")));
        }
        said
    }

    /// Where the client had its old ETag from: the last answer before this one that gave it, on the same connection if any
    /// there did.
    fn source(&self, old: &str, gave: impl Fn(&Read, &str) -> bool) -> Option<Sentence> {
        let reads = self.neighbours.reads.iter().filter(|read| gave(read, old));
        let reads = reads.map(|read| read.to_record(&self.record.account, &self.record.path));
        let records = self.neighbours.records.iter().filter(|other| other.etag.as_deref() == Some(old)).cloned();
        let earlier = reads.chain(records).filter(|other| other.at <= self.record.at && other.seq != self.record.seq);
        let from = earlier.max_by_key(|other| (other.connection == self.record.connection, other.seq))?;
        let whose = if from.connection == self.record.connection { "You had" } else { "Somebody had" };
        let Record { op, connection, .. } = &from;
        let text = format!(
            "{whose} got {old} {} ({op}, request {}, connection {connection}).",
            self.before(&from),
            from.request_id()
        );
        Some(Sentence { text, refers: Some(from.seq) })
    }

    fn position(&self, code: &str) -> Vec<Sentence> {
        let what = match code {
            "AppendPositionConditionNotMet" => "the position that you named is not the end of the blob",
            "MaxBlobSizeConditionNotMet" => "the blob would become longer than you allow",
            _ => "the sequence number of the blob is not what you demand",
        };
        let mut said = vec![plain(format!("When it was judged {what}."))];
        said.extend(self.last_write());
        said
    }

    fn exists(&self) -> Vec<Sentence> {
        let found = self.found().map_or(String::new(), |etag| format!(" at {etag}"));
        let mut said = vec![plain(format!("You asked that there is no {0} yet; there is one{found}.", self.thing()))];
        said.extend(self.last_write());
        said
    }

    fn gone(&self) -> Vec<Sentence> {
        let deletes = self.changes().filter(|other| other.op.starts_with("Delete"));
        let Some(delete) = deletes.last() else { return Vec::new() };
        let made_since = self.changes().any(|other| other.seq > delete.seq && other.etag.is_some());
        if made_since {
            return Vec::new();
        }
        let text = format!("The {} was deleted {} by {}.", self.thing(), self.before(delete), who(delete));
        vec![about(delete, text)]
    }

    fn immutable(&self, code: &str) -> Vec<Sentence> {
        let (what, ops) = match code {
            "BlobImmutableDueToPolicy" => ("an immutability policy that has not ended", "ImmutabilityPolicy"),
            _ => ("a legal hold", "LegalHold"),
        };
        let mut said = vec![plain(format!("The blob is under {what}."))];
        if let Some(set) = self.changes().filter(|other| other.op.contains(ops)).last() {
            said.push(about(set, format!("It was set {} by {}.", self.before(set), who(set))));
        }
        said
    }

    fn open(&self, code: &str) -> Vec<Sentence> {
        let text = match code {
            "SharingViolation" => "A client has the file open and does not share it for what you want.",
            "SMBDeletePending" => "The file is marked for deletion, and goes when the last client closes it.",
            "ClientCacheFlushDelay" => "A client keeps changes of the file in its cache, and was asked to write them.",
            _ => "A client holds a lock on some of these bytes.",
        };
        vec![plain(text)]
    }

    fn signature(&self) -> Vec<Sentence> {
        let Some(signed) = self.record.sent.signed_at else { return Vec::new() };
        let (now, skew) = (self.record.at, signed.0.abs_diff(self.record.at.0));
        if skew < SKEW_SECONDS_MAX * Timestamp::TICKS_PER_SECOND {
            let text = format!(
                "The date of the request was {} from the server's clock, which is allowed: the key or what was signed differs.",
                span(skew)
            );
            return vec![plain(text)];
        }
        let way = if signed < now { "behind" } else { "ahead of" };
        vec![plain(format!("The date of the request is {} {way} the server's clock; 15 min are allowed.", span(skew)))]
    }

    fn lease(&self, code: &str) -> Vec<Sentence> {
        let mut said = Vec::new();
        let sent = match self.record.sent.lease {
            Some(id) => format!("You named the lease {}", short(id)),
            None => "You named no lease".to_owned(),
        };
        let Some(seen) = self.record.seen.as_ref().and_then(|seen| seen.lease) else {
            return vec![plain(format!("{sent}: {code}."))];
        };
        said.push(plain(format!("{sent}; {}.", self.lease_seen(seen))));
        let id = match seen.lease {
            Lease::Leased { id, .. } | Lease::Breaking { id, .. } | Lease::Broken { id } => Some(id),
            Lease::Available => None,
        };
        if let Some(taken) = id.and_then(|id| self.acquired(id)) {
            said.push(about(taken, format!("It was acquired {} by {}.", self.before(taken), who(taken))));
        }
        if let Some(mine) = self.record.sent.lease.filter(|mine| Some(*mine) != id)
            && let Some(taken) = self.acquired(mine)
        {
            said.push(about(taken, format!("Yours was acquired {} by {}.", self.before(taken), who(taken))));
        }
        let breaks = self.changes().filter(|other| other.sent.lease_action.as_deref() == Some("break"));
        if let (Lease::Breaking { .. } | Lease::Broken { .. }, Some(broke)) = (seen.lease, breaks.last()) {
            said.push(about(broke, format!("It was broken {} by {}.", self.before(broke), who(broke))));
        }
        if !seen.lease.is_locked(seen.now) {
            let last = self.last_write();
            said.extend(last.map(|last| Sentence { text: format!("Since then: {}", last.text), ..last }));
        }
        said
    }

    fn lease_seen(&self, SeenLease { lease, now }: SeenLease) -> String {
        let thing = self.thing();
        let left = |until: Timestamp| span(until.0.saturating_sub(now.0));
        match (lease.state(now), lease) {
            (LeaseState::Leased, Lease::Leased { id, until: Until::Forever, .. }) => {
                format!("the {thing} was held by the lease {}, which does not end by itself", short(id))
            }
            (LeaseState::Leased, Lease::Leased { id, until: Until::At(end), .. }) => {
                format!("the {thing} was held by the lease {}, for {} more", short(id), left(end))
            }
            (LeaseState::Breaking, Lease::Breaking { id, until }) => {
                format!("the lease {} of the {thing} was breaking, for {} more", short(id), left(until))
            }
            (LeaseState::Expired, Lease::Leased { id, until: Until::At(end), .. }) => {
                format!(
                    "the lease {} of the {thing} had run out {} before",
                    short(id),
                    span(now.0.saturating_sub(end.0))
                )
            }
            (_, Lease::Broken { id } | Lease::Breaking { id, .. }) => {
                format!("the lease {} of the {thing} was broken", short(id))
            }
            (_, Lease::Available | Lease::Leased { .. }) => format!("the {thing} had no lease"),
        }
    }

    fn message(&self, code: &str) -> Vec<Sentence> {
        let id = self.record.path.rsplit('/').next().and_then(MessageId::parse);
        let Some(id) = id else { return Vec::new() };
        let mut said = Vec::new();
        if code == "PopReceiptMismatch" {
            said.push(plain("The pop receipt that you sent belongs to another message."));
        }
        let mut given_before = None;
        for other in self.changes() {
            let message = other.seen.as_ref().and_then(|seen| seen.messages.iter().find(|message| message.id == id));
            let (when, who) = (self.before(other), who(other));
            if let (Some(message), "GetMessages") = (message, other.op.as_str()) {
                let text = match given_before.replace(message.visible) {
                    None => format!("The message was given out {when} to {who}."),
                    Some(_) => format!(
                        "It came back, and was given out {when} to {who}, for the {}. time; the receipt before was stale then.",
                        message.taken
                    ),
                };
                said.push(about(other, text));
            } else if other.path == self.record.path && other.op == "UpdateMessage" {
                said.push(about(other, format!("It was updated {when} by {who}, which gave a new receipt.")));
            } else if other.path == self.record.path && other.op == "DeleteMessage" {
                said.push(about(other, format!("It was deleted {when} by {who}.")));
            } else if other.op == "ClearMessages" || other.op == "DeleteQueue" {
                said.push(about(other, format!("All messages were removed {when} by {who}.")));
            }
        }
        said
    }
}

/// What the neighbours tell.
impl Story<'_> {
    /// What was changed before the refusal, oldest first.
    fn changes(&self) -> impl Iterator<Item = &Record> {
        let is_earlier = |other: &&Record| !other.is_refused() && other.seq < self.record.seq;
        self.neighbours.records.iter().filter(is_earlier).filter(|other| !is_read(&other.op))
    }

    /// The request that wrote the state with this ETag.
    fn writer(&self, etag: &str) -> Option<&Record> {
        // An answer can overtake another, so a write may have a later number than the refusal that it caused.
        let writes = self.neighbours.records.iter().filter(|other| !other.is_refused() && !is_read(&other.op));
        writes.filter(|other| other.etag.as_deref() == Some(etag)).find(|other| other.sent.lease_action.is_none())
    }

    fn last_write(&self) -> Option<Sentence> {
        let by_etag = self.found().and_then(|etag| self.writer(etag));
        let write = by_etag.or_else(|| self.changes().filter(|other| other.sent.lease_action.is_none()).last())?;
        Some(about(write, format!("It was written {} by {}.", self.before(write), who(write))))
    }

    /// How many known writes made a state later than `old`, up to `found`. ETags are made of stamps, so they sort.
    fn between(&self, old: &str, found: &str) -> usize {
        let made = self.neighbours.records.iter().filter(|other| !other.is_refused() && !is_read(&other.op));
        let made = made.filter(|other| other.sent.lease_action.is_none());
        made.filter_map(|other| other.etag.as_deref()).filter(|etag| *etag > old && *etag <= found).count()
    }

    fn acquired(&self, id: LeaseId) -> Option<&Record> {
        let is_taken = |other: &&Record| matches!(other.sent.lease_action.as_deref(), Some("acquire" | "change"));
        let mut leases = self.neighbours.records.iter().filter(|other| !other.is_refused()).filter(is_taken);
        leases.rfind(|other| other.lease_given == Some(id))
    }

    fn found(&self) -> Option<&str> {
        self.record.seen.as_ref()?.etag.as_deref()
    }

    fn thing(&self) -> &'static str {
        let is_inner = self.record.path.contains('/');
        match self.record.service {
            Service::Blob | Service::Dfs if is_inner => "blob",
            Service::Blob | Service::Dfs => "container",
            Service::Queue => "message",
            Service::Table => "entity",
            Service::File if is_inner => "file",
            Service::File => "share",
        }
    }

    fn conditions(&self) -> String {
        let sent = &self.record.sent;
        let mut text = String::new();
        for (name, value) in [
            ("If-Match", &sent.if_match),
            ("If-None-Match", &sent.if_none_match),
            ("If-Modified-Since", &sent.if_modified_since),
            ("If-Unmodified-Since", &sent.if_unmodified_since),
            ("x-ms-if-tags", &sent.if_tags),
        ] {
            if let Some(value) = value {
                let and = if text.is_empty() { "" } else { " and " };
                let _ = write!(text, "{and}{name} {}", bare(value));
            }
        }
        if text.is_empty() { "a condition".to_owned() } else { text }
    }

    /// `38 ms before`, by the times of the answers.
    fn before(&self, other: &Record) -> String {
        let (mine, theirs) = (answered(self.record), answered(other));
        if theirs > mine { "at the same time".to_owned() } else { format!("{} before", span(mine.0 - theirs.0)) }
    }
}

fn answered(record: &Record) -> Timestamp {
    record.at.plus_ticks(u64::from(record.took_us) * 10)
}

fn is_read(op: &str) -> bool {
    ["GetBlob", "GetContainer", "GetFile", "GetShare", "Query", "List", "Peek", "Head"]
        .iter()
        .any(|read| op.starts_with(read))
}

/// `worker-2 (PutBlob, request 77d0…, connection 12)`.
fn who(record: &Record) -> String {
    let Record { op, connection, .. } = record;
    format!("{} ({op}, request {}, connection {connection})", record.label(), record.request_id())
}

/// Eight digits of a lease id: whoever knows all of them could use it.
fn short(id: LeaseId) -> String {
    format!("{}…", id.to_string().get(..8).unwrap_or_default())
}

fn span(ticks: u64) -> String {
    let millis = ticks / TICKS_PER_MILLI;
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        60_000..3_600_000 => format!("{} min", millis / 60_000),
        _ => format!("{} h", millis / 3_600_000),
    }
}

fn plain(text: impl Into<String>) -> Sentence {
    Sentence { text: text.into(), refers: None }
}

fn about(record: &Record, text: String) -> Sentence {
    Sentence { text, refers: Some(record.seq) }
}
