//! Records in and out, the bounds of the rings, and the words of every code.

use concurrency::{Lease, LeaseDuration, LeaseId, MessageId, Seen, SeenMessage, Timestamp, Until};

use crate::record::PATH_BYTES_MAX;
use crate::{Caller, Filter, History, Judged, Read, Record, Sent, Service};

const SECOND: u64 = Timestamp::TICKS_PER_SECOND;
const START: Timestamp = Timestamp(638_000_000_000_000_000);
const MINE: LeaseId = LeaseId([0x11; 16]);
const YOURS: LeaseId = LeaseId([0x22; 16]);
const OLD: &str = "0x8DE000000000001";
const NEW: &str = "0x8DE000000000002";
const MESSAGE: MessageId = MessageId([7; 16]);

/// A write that was done, by client and request `number`, `seconds` after the start.
fn record(number: u8, seconds: u64, op: &str) -> Record<&str> {
    Record {
        seq: 0,
        at: START.plus_seconds(seconds),
        took_us: 0,
        request_id: [number; 16],
        client_request_id: None,
        trace: None,
        service: Service::Blob,
        op,
        account: "mine",
        path: "orders/state.json",
        caller: Caller::Key(1),
        peer: Some(([10, 0, 0, number], 5000).into()),
        connection: number.into(),
        agent: None,
        sent: Sent::default(),
        seen: None,
        judged: Judged::Commit,
        status: 201,
        code: None,
        etag: None,
        lease_given: None,
    }
}

fn refused<'a>(number: u8, seconds: u64, op: &'a str, status: u16, code: &'a str) -> Record<&'a str> {
    Record { status, code: Some(code), ..record(number, seconds, op) }
}

fn read(history: &History, number: u8, seconds: u64, etag: &str) -> Read {
    Read {
        seq: 0,
        at: START.plus_seconds(seconds),
        request_id: [number; 16],
        object: history.object_hash(Service::Blob, "mine", "orders/state.json"),
        etag: history.etag_hash(Some(etag)),
        connection: number.into(),
        took_us: 0,
        status: 200,
        service: Service::Blob,
        op: "GetBlob",
    }
}

/// The words about the newest record.
fn why(history: &History) -> String {
    let newest = history.requests(&Filter::default(), 1, None).remove(0);
    history.why(&newest).into_iter().map(|sentence| sentence.text).collect::<Vec<_>>().join(" ")
}

fn guid(number: u8) -> String {
    crate::record::Guid([number; 16]).to_string()
}

fn held(id: LeaseId, until: Timestamp) -> Lease {
    Lease::Leased { id, duration: LeaseDuration::Seconds(15), until: Until::At(until) }
}

/// Every word of `words` must be there, in this order.
#[track_caller]
fn says(text: &str, words: &[&str]) {
    let mut rest = text;
    for word in words {
        let Some((_, after)) = rest.split_once(word) else { panic!("{word:?} is missing in {text:?}") };
        rest = after;
    }
}

#[test]
fn a_record_comes_back_as_it_was() {
    let history = History::with_shards(1 << 20, 1);
    let leases = [
        Lease::Available,
        held(MINE, START),
        Lease::Leased { id: MINE, duration: LeaseDuration::Infinite, until: Until::Forever },
        Lease::Breaking { id: MINE, until: START },
        Lease::Broken { id: YOURS },
    ];
    for lease in leases {
        let mut seen = Seen::resource(NEW, lease, START);
        seen.messages.push(SeenMessage { id: MESSAGE, visible: START, taken: 3 });
        for (peer, caller) in
            [("10.0.0.1:1", Caller::Key(0)), ("[::1]:9", Caller::Console), ("1.1.1.1:2", Caller::Signature)]
        {
            let sent = Sent {
                if_match: Some(OLD),
                if_none_match: Some("*"),
                if_modified_since: Some("a"),
                if_unmodified_since: Some("b"),
                if_tags: Some("c"),
                lease_action: Some("renew"),
                signed_at: Some(START),
                lease: Some(MINE),
            };
            let mut one = refused(4, 2, "PutBlob", 412, "ConditionNotMet");
            one = Record { sent, seen: Some(seen.clone()), caller, peer: peer.parse().ok(), ..one };
            one.client_request_id = Some("mine, all mine");
            one.trace = Some("00-4bf9-00-01");
            one.agent = Some("worker-1 azsdk-python-storage-blob/12");
            one.lease_given = Some(YOURS);
            one.judged = Judged::Door;
            let seq = history.note(one.clone());
            let back = history.requests(&Filter::default(), 1, None).remove(0);
            assert_eq!(
                (back.seq, back.object().as_str(), back.label().as_str()),
                (seq, "mine/orders/state.json", "worker-1")
            );
            assert_eq!((back.caller, back.peer, back.judged), (one.caller, one.peer, one.judged));
            assert_eq!((back.seen, back.lease_given, back.status), (one.seen, one.lease_given, one.status));
            assert_eq!((back.at, back.request_id, back.connection), (one.at, one.request_id, one.connection));
            assert_eq!((back.client_request_id.as_deref(), back.trace.as_deref()), (one.client_request_id, one.trace));
            let Sent { if_match, if_none_match, if_modified_since, if_unmodified_since, .. } = &back.sent;
            let texts = [if_match, if_none_match, if_modified_since, if_unmodified_since, &back.sent.if_tags];
            assert_eq!(texts.map(|text| text.as_deref()), [OLD, "*", "a", "b", "c"].map(Some));
            assert_eq!((back.sent.signed_at, back.sent.lease), (Some(START), Some(MINE)));
            assert_eq!((back.sent.lease_action.as_deref(), back.code.as_deref()), (Some("renew"), one.code));
        }
    }
}

#[test]
fn long_texts_are_cut_between_characters() {
    let history = History::with_shards(1 << 20, 1);
    let path = format!("a{}", "ä".repeat(PATH_BYTES_MAX));
    let agent = "ü".repeat(5000);
    history.note(Record { path: path.as_str(), agent: Some(agent.as_str()), ..record(1, 0, "PutBlob") });
    let back = history.requests(&Filter::default(), 1, None).remove(0);
    assert_eq!(back.path.len(), PATH_BYTES_MAX - 1);
    assert!(
        path.starts_with(&back.path) && back.agent.is_some_and(|kept| kept.len() <= 256 && agent.starts_with(&kept))
    );
}

/// A record that takes as many bytes as one can.
fn largest(thread: u8, text: &str) -> Record<&str> {
    let long = Some(text);
    let sent = Sent {
        if_match: long,
        if_none_match: long,
        if_modified_since: long,
        if_unmodified_since: long,
        if_tags: long,
        lease_action: long,
        signed_at: Some(START),
        lease: Some(MINE),
    };
    let message = SeenMessage { id: MESSAGE, visible: START, taken: 1 };
    let seen = Seen { messages: vec![message; 40], ..Seen::resource(text, held(MINE, START), START) };
    let mut record = Record { path: text, account: text, sent, seen: Some(seen), ..record(thread, 0, text) };
    (record.client_request_id, record.trace, record.agent) = (long, long, long);
    (record.code, record.etag, record.lease_given) = (long, long, Some(MINE));
    record
}

#[test]
fn sixteen_threads_stay_within_the_bound_and_the_newest_are_kept() {
    for limit in [64 * 1024, 1 << 20, 4 << 20] {
        let history = History::with_shards(limit, 16);
        let path = "x".repeat(2 * PATH_BYTES_MAX);
        std::thread::scope(|scope| {
            for thread in 0..16 {
                let (history, path) = (&history, &path);
                scope.spawn(move || {
                    for _ in 0..2000 {
                        history.note(largest(thread, path));
                        history.note_read(read(history, thread, 0, OLD));
                        assert!(history.bytes() <= limit, "{} of {limit}", history.bytes());
                    }
                });
            }
        });
        let kept = history.requests(&Filter::default(), usize::MAX, None);
        assert!(kept.len() > 9, "{}", kept.len());
        assert!(kept.windows(2).all(|pair| pair[0].seq > pair[1].seq), "numbers are unique and fall");
        let last = history.note(record(99, 1, "PutBlob"));
        assert_eq!(history.by_request_id(&guid(99)).map(|record| record.seq), Some(last));
    }
}

#[test]
fn a_history_that_is_off_keeps_nothing() {
    let history = History::off();
    assert_eq!(history.note(record(1, 0, "PutBlob")), 0);
    history.note_read(read(&history, 2, 0, OLD));
    assert!(!history.is_on() && history.bytes() == 0);
    assert!(history.requests(&Filter::default(), 9, None).is_empty());
}

#[test]
fn requests_are_found_by_filter_by_page_and_by_either_id() {
    let history = History::with_shards(1 << 20, 1);
    for number in 1..=5 {
        history.note(Record { client_request_id: Some("theirs"), ..record(number, number.into(), "PutBlob") });
    }
    history.note(refused(6, 6, "DeleteBlob", 412, "ConditionNotMet"));
    history.note_read(read(&history, 7, 7, OLD));
    let found = |filter: &Filter, before| {
        let found = history.requests(filter, 3, before);
        found.iter().map(|record| record.request_id[0]).collect::<Vec<_>>()
    };
    let all = Filter::default();
    assert_eq!(found(&all, None), [7, 6, 5]);
    assert_eq!(found(&all, Some(5)), [4, 3, 2]);
    assert_eq!(found(&Filter { code: Some("ConditionNotMet".into()), ..all.clone() }, None), [6]);
    assert_eq!(found(&Filter { op: Some("PutBlob".into()), ..all.clone() }, None), [5, 4, 3]);
    assert_eq!(found(&Filter { peer: Some("10.0.0.2".into()), ..all.clone() }, None), [2]);
    assert_eq!(found(&Filter { since: Some(START.plus_seconds(6)), ..all.clone() }, None), [7, 6]);
    assert_eq!(found(&Filter { account: Some("other".into()), ..all.clone() }, None), []);
    assert_eq!(
        found(&Filter { account: Some("mine".into()), ..all.clone() }, None),
        [6, 5, 4],
        "no read is somebody's"
    );
    assert_eq!(history.after(&all, 9, 5).len(), 2);
    assert_eq!(history.by_request_id("theirs").map(|record| record.request_id[0]), Some(5));
    assert_eq!(history.by_request_id(&guid(7)).map(|record| record.op), Some("GetBlob".into()));
    assert!(history.by_request_id("nobody").is_none());
}

#[test]
fn an_unmet_condition_names_the_write_and_the_stale_read() {
    let history = History::with_shards(1 << 20, 1);
    history.note(Record { etag: Some(OLD), ..record(1, 0, "PutBlob") });
    history.note_read(read(&history, 3, 1, OLD));
    history.note_read(Read { connection: 9, ..read(&history, 4, 2, OLD) });
    history.note(Record { etag: Some(NEW), ..record(2, 3, "PutBlob") });
    // Another object, which must not be named.
    history.note(Record { etag: Some(NEW), path: "orders/other", ..record(8, 3, "PutBlob") });
    let sent = Sent { if_match: Some("\"0x8DE000000000001\""), ..Sent::default() };
    let seen = Some(Seen::resource(NEW, Lease::Available, START));
    history.note(Record { sent, seen, ..refused(3, 5, "PutBlob", 412, "ConditionNotMet") });
    let text = why(&history);
    says(&text, &["You sent If-Match 0x8DE000000000001; when it was judged the blob was at 0x8DE000000000002."]);
    says(&text, &["written 2.0 s before by 10.0.0.2:5000 (PutBlob", &guid(2)]);
    says(&text, &["You had got 0x8DE000000000001 4.0 s before (GetBlob", &guid(3), "connection 3", "one write"]);
    assert!(!text.contains(&guid(8)) && !text.contains(&guid(4)), "{text}");
}

#[test]
fn an_unmet_condition_on_an_entity_keeps_the_form_of_its_etags() {
    let history = History::with_shards(1 << 20, 1);
    let (old, new) =
        ("W/\"datetime'2026-11-18T00%3A00%3A00.0000001Z'\"", "W/\"datetime'2026-11-18T00%3A00%3A00.0000002Z'\"");
    let entity = |record| Record { service: Service::Table, path: "t(PartitionKey='a',RowKey='b')", ..record };
    history.note(entity(Record { etag: Some(old), ..record(1, 0, "InsertEntity") }));
    history.note(entity(Record { etag: Some(new), ..record(2, 1, "UpdateEntity") }));
    let sent = Sent { if_match: Some(old), ..Sent::default() };
    let seen = Some(Seen::etag(new));
    history.note(entity(Record { sent, seen, ..refused(1, 2, "MergeEntity", 412, "UpdateConditionNotSatisfied") }));
    says(&why(&history), &[old, "the entity was at", new, &guid(2), "You had got", old, "InsertEntity", &guid(1)]);
}

#[test]
fn what_is_there_already_and_what_is_gone() {
    let history = History::with_shards(1 << 20, 1);
    history.note(Record { etag: Some(NEW), ..record(1, 0, "PutBlob") });
    for code in ["BlobAlreadyExists", "EntityAlreadyExists", "ResourceAlreadyExists", "UnauthorizedBlobOverwrite"] {
        let seen = Some(Seen::resource(NEW, Lease::Available, START));
        history.note(Record { seen, ..refused(2, 1, "PutBlob", 409, code) });
        says(&why(&history), &["no blob yet; there is one at 0x8DE000000000002", "1.0 s before", &guid(1)]);
    }
    for code in ["AppendPositionConditionNotMet", "MaxBlobSizeConditionNotMet", "SequenceNumberConditionNotMet"] {
        history.note(refused(2, 1, "AppendBlock", 412, code));
        says(&why(&history), &["When it was judged", &guid(1)]);
    }
    history.note(Record { status: 202, ..record(3, 2, "DeleteBlob") });
    for code in ["BlobNotFound", "ResourceNotFound"] {
        history.note(refused(2, 4, "PutBlockList", 404, code));
        says(&why(&history), &["The blob was deleted 2.0 s before by", "DeleteBlob", &guid(3)]);
    }
    history.note(Record { etag: Some(NEW), ..record(1, 5, "PutBlob") });
    history.note(refused(2, 6, "GetBlob", 404, "BlobNotFound"));
    assert_eq!(why(&history), "", "it was made again, so that delete explains nothing");
}

#[test]
fn every_refusal_of_a_lease_names_its_holder() {
    let history = History::with_shards(1 << 20, 1);
    let lease = |action| Sent { lease_action: Some(action), ..Sent::default() };
    history.note(Record { sent: lease("acquire"), lease_given: Some(YOURS), ..record(1, 0, "LeaseBlob") });
    for code in [
        "LeaseAlreadyPresent",
        "LeaseIdMismatchWithBlobOperation",
        "LeaseIdMismatchWithContainerOperation",
        "LeaseIdMismatchWithFileOperation",
        "LeaseIdMismatchWithLeaseOperation",
        "LeaseIdMissing",
    ] {
        let seen = Some(Seen::resource(NEW, held(YOURS, START.plus_seconds(12)), START.plus_seconds(1)));
        history.note(Record { seen, ..refused(2, 1, "PutBlob", 412, code) });
        let text = why(&history);
        says(&text, &["You named no lease; the blob was held by the lease 22222222…, for 11.0 s more.", &guid(1)]);
        assert!(!text.contains(&YOURS.to_string()), "an id that could be used is not shown: {text}");
    }
    history.note(Record { sent: lease("break"), status: 202, ..record(3, 2, "LeaseBlob") });
    for code in
        ["LeaseIsBreakingAndCannotBeAcquired", "LeaseIsBreakingAndCannotBeChanged", "LeaseIsBrokenAndCannotBeRenewed"]
    {
        let breaking = Lease::Breaking { id: YOURS, until: START.plus_seconds(9) };
        let seen = Some(Seen::resource(NEW, breaking, START.plus_seconds(3)));
        history.note(Record { seen, ..refused(2, 3, "LeaseBlob", 409, code) });
        says(&why(&history), &["was breaking, for 6.0 s more", &guid(1), "broken 1.0 s before by", &guid(3)]);
    }
}

#[test]
fn a_lost_lease_tells_when_it_ran_out_and_who_wrote_since() {
    let history = History::with_shards(1 << 20, 1);
    let acquire = Sent { lease_action: Some("acquire"), ..Sent::default() };
    history.note(Record { sent: acquire, lease_given: Some(MINE), ..record(1, 0, "LeaseBlob") });
    history.note(Record { etag: Some(NEW), ..record(2, 20, "PutBlob") });
    let sent = Sent { lease: Some(MINE), ..Sent::default() };
    let expired = Seen::resource(NEW, held(MINE, START.plus_seconds(15)), START.plus_seconds(21));
    history.note(Record { sent, seen: Some(expired), ..refused(1, 21, "PutBlob", 412, "LeaseLost") });
    says(
        &why(&history),
        &["11111111…; the lease", "had run out 6.0 s before", "acquired", &guid(1), "Since then", &guid(2)],
    );
    for code in [
        "LeaseNotPresentWithBlobOperation",
        "LeaseNotPresentWithContainerOperation",
        "LeaseNotPresentWithFileOperation",
        "LeaseNotPresentWithLeaseOperation",
    ] {
        let seen = Some(Seen::resource(NEW, Lease::Available, START.plus_seconds(21)));
        history.note(Record { sent, seen, ..refused(1, 21, "PutBlob", 412, code) });
        says(&why(&history), &["the blob had no lease", "Yours was acquired", &guid(1), "Since then", &guid(2)]);
    }
}

#[test]
fn leases_that_are_held() {
    let history = History::with_shards(1 << 20, 1);
    let action = |action| Sent { lease_action: Some(action), ..Sent::default() };
    let seen = |end: u64| Some(Seen::resource(NEW, held(MINE, START.plus_seconds(end)), START));
    let given = Some(MINE);
    history.note(Record { sent: action("acquire"), lease_given: given, seen: seen(15), ..record(1, 0, "LeaseBlob") });
    history.note(Record { sent: action("renew"), lease_given: given, seen: seen(25), ..record(1, 10, "LeaseBlob") });
    let at = |seconds| history.leases(Some("mine"), START.plus_seconds(seconds));
    let held = at(24);
    assert_eq!((held.len(), held[0].id, held[0].until), (1, MINE, Some(START.plus_seconds(25))));
    assert_eq!(held[0].since.at, START, "the request that acquired it, not the one that renewed it");
    assert!(at(25).is_empty() && history.leases(Some("other"), START).is_empty());
    let released = Some(Seen::resource(NEW, Lease::Available, START));
    history.note(Record { sent: action("release"), seen: released, ..record(1, 12, "LeaseBlob") });
    assert!(at(13).is_empty());
}

#[test]
fn a_message_tells_who_had_it() {
    let history = History::with_shards(1 << 20, 1);
    let path = format!("jobs/messages/{MESSAGE}");
    let queue = |record| Record { service: Service::Queue, ..record };
    let take = |number, seconds, taken| {
        let visible = START.plus_seconds(seconds + 30);
        let seen = Some(Seen::messages(vec![SeenMessage { id: MESSAGE, visible, taken }]));
        history.note(queue(Record { path: "jobs/messages", seen, ..record(number, seconds, "GetMessages") }));
    };
    take(1, 0, 1);
    take(2, 40, 2);
    let path = path.as_str();
    history.note(queue(Record { path, ..refused(1, 41, "DeleteMessage", 404, "MessageNotFound") }));
    says(&why(&history), &["given out 41.0 s before", &guid(1), "came back", "1.0 s before", &guid(2), "2. time"]);
    history.note(queue(Record { path, ..refused(1, 41, "UpdateMessage", 400, "PopReceiptMismatch") }));
    says(&why(&history), &["belongs to another message", &guid(1), &guid(2)]);
    history.note(queue(Record { path, status: 204, ..record(2, 42, "DeleteMessage") }));
    history.note(queue(Record { path, ..refused(1, 43, "DeleteMessage", 404, "MessageNotFound") }));
    says(&why(&history), &[&guid(2), "deleted 1.0 s before", &guid(2)]);
}

#[test]
fn policies_opens_and_signatures() {
    let history = History::with_shards(1 << 20, 1);
    history.note(record(1, 0, "SetBlobImmutabilityPolicy"));
    history.note(record(2, 0, "SetBlobLegalHold"));
    history.note(refused(3, 1, "DeleteBlob", 409, "BlobImmutableDueToPolicy"));
    says(&why(&history), &["immutability policy", &guid(1)]);
    history.note(refused(3, 1, "DeleteBlob", 409, "BlobImmutableDueToLegalHold"));
    says(&why(&history), &["legal hold", &guid(2)]);
    for (code, word) in [
        ("SharingViolation", "does not share it"),
        ("ClientCacheFlushDelay", "in its cache"),
        ("FileLockConflict", "lock"),
        ("SMBDeletePending", "marked for deletion"),
    ] {
        history.note(Record { service: Service::File, ..refused(3, 1, "PutRange", 409, code) });
        says(&why(&history), &[word]);
    }
    for (signed, word) in [
        (START.0 - 3600 * SECOND, "is 1 h behind the server's clock"),
        (START.0 + 1200 * SECOND, "is 20 min ahead of the server's clock"),
        (START.0 + 5 * SECOND, "5.0 s from the server's clock, which is allowed"),
    ] {
        let sent = Sent { signed_at: Some(Timestamp(signed)), ..Sent::default() };
        history.note(Record { sent, ..refused(3, 0, "PutBlob", 403, "AuthenticationFailed") });
        says(&why(&history), &[word]);
    }
    history.note(refused(3, 1, "PutBlob", 400, "InvalidHeaderValue"));
    assert_eq!(why(&history), "");
    history.note(Record { code: Some("ConditionNotMet"), ..record(3, 1, "PutBlob") });
    assert_eq!(why(&history), "", "what was done needs no excuse");
}
