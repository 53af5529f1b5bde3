//! Questions that a history answers. Each looks through all that is kept: some ten thousand records.

use concurrency::{Lease, LeaseId, Timestamp, Until, guid};

use crate::record::{Read, Record, Service};
use crate::ring::History;
use crate::words::{self, Sentence};

/// Which requests are wanted. What is `None` does not matter.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    pub service: Option<Service>,
    pub op: Option<String>,
    pub account: Option<String>,
    /// The path below the account begins so.
    pub object: Option<String>,
    pub status: Option<u16>,
    pub code: Option<String>,
    /// An address, with or without its port.
    pub peer: Option<String>,
    pub slower_us: Option<u32>,
    pub since: Option<Timestamp>,
}

impl Filter {
    #[must_use]
    pub fn takes(&self, record: &Record) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        self.service.is_none_or(|service| service == record.service)
            && is(&self.op, &record.op)
            && is(&self.account, &record.account)
            && self.object.as_ref().is_none_or(|object| record.path.starts_with(object.as_str()))
            && self.status.is_none_or(|status| status == record.status)
            && self.code.as_ref().is_none_or(|code| record.code.as_ref() == Some(code))
            && self.peer.as_ref().is_none_or(|peer| is_peer(peer, record))
            && self.slower_us.is_none_or(|least| record.took_us >= least)
            && self.since.is_none_or(|since| record.at >= since)
    }
}

fn is_peer(wanted: &str, record: &Record) -> bool {
    record.peer.is_some_and(|peer| peer.to_string() == wanted || peer.ip().to_string() == wanted)
}

/// All that is kept of one object, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Chain {
    pub records: Vec<Record>,
    pub reads: Vec<Read>,
}

/// A lease that the history knows to be held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldLease {
    pub service: Service,
    pub account: String,
    pub path: String,
    pub id: LeaseId,
    /// The request that acquired it.
    pub since: Record,
    /// When it ends, in the engine's time. `None`: not by itself.
    pub until: Option<Timestamp>,
}

impl History {
    /// The newest requests, newest first, at most `limit`, and before the one with the number `before_seq`.
    ///
    /// Plain reads have no account and no object here, so a filter that names one does not find them.
    #[must_use]
    pub fn requests(&self, filter: &Filter, limit: usize, before_seq: Option<u64>) -> Vec<Record> {
        let is_before = |seq: u64| before_seq.is_none_or(|before| seq < before);
        let mut found = self.records(|record| is_before(record.seq) && filter.takes(record));
        let reads = self.reads(|read| is_before(read.seq));
        found.extend(reads.iter().map(|read| read.to_record("", "")).filter(|record| filter.takes(record)));
        found.sort_unstable_by_key(|record| std::cmp::Reverse(record.seq));
        found.truncate(limit);
        found
    }

    /// The requests after the number `after_seq`, oldest first: what somebody who follows has not seen yet.
    #[must_use]
    pub fn after(&self, filter: &Filter, limit: usize, after_seq: u64) -> Vec<Record> {
        let mut found = self.records(|record| record.seq > after_seq && filter.takes(record));
        let reads = self.reads(|read| read.seq > after_seq);
        found.extend(reads.iter().map(|read| read.to_record("", "")).filter(|record| filter.takes(record)));
        found.sort_unstable_by_key(|record| record.seq);
        found.truncate(limit);
        found
    }

    /// The request that the server or its client gave this id.
    #[must_use]
    pub fn by_request_id(&self, id: &str) -> Option<Record> {
        if let Some(bytes) = guid::parse(id) {
            if let Some(found) = self.records(|record| record.request_id == bytes).pop() {
                return Some(found);
            }
            if let Some(read) = self.reads(|read| read.request_id == bytes).pop() {
                return Some(read.to_record("", ""));
            }
        }
        self.records(|record| record.client_request_id.as_deref() == Some(id)).pop()
    }

    /// All that is kept of an object. A queue's messages belong to the queue.
    #[must_use]
    pub fn object(&self, service: Service, account: &str, path: &str) -> Chain {
        let root = object_of(service, path);
        let records = self.records(|record| {
            record.service == service && record.account == account && object_of(service, &record.path) == root
        });
        let object = self.object_hash(service, account, path);
        Chain { records, reads: self.reads(|read| read.object == object) }
    }

    /// The leases that are held at `now`, as far as requests in the history tell. What a lease action that was done has
    /// seen is the lease as it left it.
    #[must_use]
    pub fn leases(&self, account: Option<&str>, now: Timestamp) -> Vec<HeldLease> {
        let is_lease = |record: &Record| {
            record.sent.lease_action.is_some() && account.is_none_or(|account| record.account == account)
        };
        let mut held: Vec<HeldLease> = Vec::new();
        for record in self.records(|record| is_lease(record) && !record.is_refused()) {
            let place = held.iter().position(|lease| {
                lease.service == record.service && lease.account == record.account && lease.path == record.path
            });
            let before = place.map(|place| held.swap_remove(place));
            let Some(seen) = record.seen.as_ref().and_then(|seen| seen.lease) else { continue };
            let (id, until) = match seen.lease {
                Lease::Leased { id, until: Until::At(end), .. } | Lease::Breaking { id, until: end } => (id, Some(end)),
                Lease::Leased { id, until: Until::Forever, .. } => (id, None),
                Lease::Available | Lease::Broken { .. } => continue,
            };
            let since = before.filter(|before| before.id == id).map_or_else(|| record.clone(), |before| before.since);
            let Record { service, account, path, .. } = record;
            held.push(HeldLease { service, account, path, id, since, until });
        }
        // Only now: one that looks expired may have been renewed later.
        held.retain(|lease| lease.until.is_none_or(|end| now < end));
        held
    }

    /// Why a request was refused, with what else is known of its object.
    #[must_use]
    pub fn why(&self, record: &Record) -> Vec<Sentence> {
        let neighbours = self.object(record.service, &record.account, &record.path);
        words::why(record, &neighbours, |read, etag| read.etag == self.etag_hash(Some(etag)))
    }
}

/// What a request is about, of those that share their fate: the messages of a queue are one thing.
fn object_of(service: Service, path: &str) -> &str {
    match service {
        Service::Queue => path.split('/').next().unwrap_or_default(),
        Service::Blob | Service::Table | Service::File | Service::Dfs => path,
    }
}
