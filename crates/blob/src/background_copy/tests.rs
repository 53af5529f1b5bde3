use super::*;
use crate::BlobError;
use crate::testing::{Bench, Elsewhere, Script, Then, header, refusal};
use bytes::Bytes;
use content::background_copy::{
    ATTEMPTS_MAX, Attempt, COPIES_AT_ONCE_MAX, GRACE_SECONDS, Halted, Job, LOOK_SECONDS, PAGES_BYTES, SECONDS_MAX,
    WAIT_SECONDS, give_up,
};
use content::source::{Fetched, Outside, Running, Unreached};
use engine::Engine;
use std::convert::Infallible;
use std::sync::Arc;
use wire::http::{Body, HeaderMap, HeaderValue, header as names};

/// A request that changes a blob: method, URL and headers.
type Write<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

const SOURCE: &str = "http://a/x?sig=secret";
const COPY: [(&str, &str); 1] = [("x-ms-copy-source", SOURCE)];

async fn bench(script: Script) -> (Bench, Arc<Elsewhere>) {
    let Bench { engine, service, settings } = Bench::with_container().await;
    let elsewhere = Arc::new(Elsewhere::default());
    elsewhere.0.lock().unwrap().insert(SOURCE, script);
    (Bench { engine, service: service.reaching(elsewhere.clone()), settings }, elsewhere)
}

async fn told(bench: &Bench, name: &str) -> Option<String> {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
    header(&told, name).map(str::to_owned)
}

fn stalled() -> Script {
    Script { length: 1_000, then: Then::Stall, ..Script::of(b"begin") }
}

/// It would be pending for as long as the source likes.
#[tokio::test]
async fn a_source_that_announces_more_than_a_blob_may_have_is_refused() {
    for (length, kind) in [(1 << 62, "BlockBlob"), (1 << 62, "PageBlob"), ((8 << 40) + 512, "PageBlob")] {
        let script = Script { length, then: Then::Stall, ..Script::of(b"begin") };
        let (bench, _) = bench(script.header("x-ms-blob-type", kind)).await;
        let refused = refusal(bench.call("PUT", "cont/blob", &COPY, b"").await).to_reply();
        assert_eq!((refused.status, refused.code), (400, "CannotVerifyCopySource"), "{length} {kind}");
        assert_eq!(refusal(bench.call("HEAD", "cont/blob", &[], b"").await), BlobError::BlobNotFound);
    }
}

#[tokio::test]
async fn while_it_is_pending() {
    let (bench, _) = bench(stalled().header("content-type", "text/plain").header("x-ms-meta-a", "1")).await;
    bench.put("cont/blob", b"before").await;
    let answer = bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
    assert_eq!((answer.status.as_u16(), header(&answer, "x-ms-copy-status")), (202, Some("pending")));
    assert_eq!(told(&bench, "x-ms-copy-progress").await.as_deref(), Some("5/1000"));
    assert_eq!(told(&bench, "x-ms-copy-source").await.as_deref(), Some("http://a/x"));
    assert_eq!(told(&bench, "content-length").await.as_deref(), Some("0"));
    assert_eq!(bench.get("cont/blob").await, b"");
    let block_blob = [("x-ms-blob-type", "BlockBlob")];
    let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    let writes: [Write<'_>; 8] = [
        ("PUT", "cont/blob", &block_blob),
        ("PUT", "cont/blob", &COPY),
        ("PUT", "cont/blob?comp=block&blockid=QQ==", &[]),
        ("PUT", "cont/blob?comp=metadata", &[]),
        ("PUT", "cont/blob?comp=properties", &[]),
        ("PUT", "cont/blob?comp=snapshot", &[]),
        ("PUT", "cont/blob?comp=lease", &acquire),
        ("DELETE", "cont/blob", &[]),
    ];
    for (method, url, headers) in writes {
        let body: &[u8] = if url.contains("block") { b"x" } else { b"" };
        let refused = bench.call(method, url, headers, body).await;
        assert_eq!(refusal(refused), BlobError::PendingCopyOperation, "{method} {url}");
    }
    let list = "<BlockList/>";
    let refused = bench.call("PUT", "cont/blob?comp=blocklist", &[], list.as_bytes()).await;
    assert_eq!(refusal(refused), BlobError::PendingCopyOperation);
    // Nobody has its bytes, so nobody copies them on.
    let from = crate::testing::url("cont/blob");
    let refused = refusal(bench.call("PUT", "cont/next", &[("x-ms-copy-source", from.as_str())], b"").await);
    assert_eq!(refused.to_reply().status, 409);
    // Whoever looks after it sees that it is being done.
    bench.advance(60).await;
    bench.sweep().await;
    assert_eq!(told(&bench, "x-ms-copy-progress").await.as_deref(), Some("5/1000"));

    let id = header(&answer, "x-ms-copy-id").unwrap();
    let abort = [("x-ms-copy-action", "abort")];
    let answer = bench.call("PUT", &format!("cont/blob?comp=copy&copyid={id}"), &abort, b"").await.unwrap();
    assert_eq!(answer.status, 204);
    assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("aborted"));
    assert_eq!(told(&bench, "x-ms-meta-a").await.as_deref(), Some("1"));
    assert_eq!(bench.get("cont/blob").await, b"");
    let again = bench.call("PUT", &format!("cont/blob?comp=copy&copyid={id}"), &abort, b"").await;
    assert_eq!(refusal(again), BlobError::NoPendingCopyOperation);
    bench.put("cont/blob", b"after").await;
    bench.advance(60).await;
    bench.sweep().await;
    assert_eq!(bench.get("cont/blob").await, b"after");
    bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
    bench.sweep().await;
    assert_eq!(bench.figures(), (1, 0));
}

#[tokio::test]
async fn it_comes_to_its_end() {
    let whole: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
    let pieces = whole.chunks(7_777).map(Bytes::copy_from_slice).collect();
    let (bench, _) = bench(Script { bytes: pieces, ..Script::of(&whole) }).await;
    bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
    let before = told(&bench, "etag").await;
    assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("success"));
    assert_eq!(told(&bench, "x-ms-copy-progress").await.as_deref(), Some("200000/200000"));
    assert!(bench.get("cont/blob").await == whole);
    assert!(before.is_some() && told(&bench, "x-ms-copy-completion-time").await.is_some());
    bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
    bench.sweep().await;
    assert_eq!(bench.figures(), (1, 0));
}

#[tokio::test]
async fn pages_that_hold_nothing_are_not_written() {
    let whole = [vec![0; 1_024], vec![5; 512], vec![0; 512], vec![6; 1_024]].concat();
    let script = Script::of(&whole).header("x-ms-blob-type", "PageBlob").header("x-ms-blob-sequence-number", "7");
    let (bench, _) = bench(script).await;
    bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
    assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("success"));
    assert_eq!(told(&bench, "x-ms-blob-sequence-number").await.as_deref(), Some("7"));
    assert!(bench.get("cont/blob").await == whole);
    let pages = bench.text("GET", "cont/blob?comp=pagelist").await;
    assert!(pages.contains("<Start>1024</Start><End>1535</End>") && pages.contains("<Start>2048</Start>"));
}

#[tokio::test]
async fn a_source_that_breaks_off_is_tried_again_and_in_the_end_given_up() {
    let cut = Script { length: 10, then: Then::Cut, ..Script::of(b"begin") };
    let (bench, elsewhere) = bench(cut.clone()).await;
    let look = async || {
        bench.advance(LOOK_SECONDS + 1).await;
        bench.sweep().await;
        told(&bench, "x-ms-copy-status").await
    };
    bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
    assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("pending"));
    elsewhere.0.lock().unwrap().insert(SOURCE, Script::of(b"0123456789"));
    assert_eq!(look().await.as_deref(), Some("success"));
    assert_eq!(bench.get("cont/blob").await, b"0123456789");

    elsewhere.0.lock().unwrap().insert(SOURCE, cut);
    bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
    assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("pending"));
    for _ in 2..ATTEMPTS_MAX {
        assert_eq!(look().await.as_deref(), Some("pending"));
    }
    assert_eq!(look().await.as_deref(), Some("failed"));
    let why = told(&bench, "x-ms-copy-status-description").await.unwrap();
    assert!(why.starts_with("500 CannotVerifyCopySource"), "{why}");
    assert_eq!(bench.get("cont/blob").await, b"");
    bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
    bench.sweep().await;
    assert_eq!(bench.figures(), (1, 0));
}

#[tokio::test]
async fn a_source_that_changes_and_one_that_goes_fail_the_copy() {
    let cut = Script { length: 10, then: Then::Cut, ..Script::of(b"begin").header("etag", "\"1\"") };
    let other = Script::of(b"other bytes").header("etag", "\"2\"");
    let gone = Script { status: 404, ..Script::of(b"").header("x-ms-error-code", "BlobNotFound") };
    for (then, why) in [(Some(other), "412 "), (Some(gone), "404 BlobNotFound"), (None, "500 ")] {
        let (bench, elsewhere) = bench(cut.clone()).await;
        bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
        assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("pending"));
        match then {
            Some(script) => _ = elsewhere.0.lock().unwrap().insert(SOURCE, script),
            None => _ = elsewhere.0.lock().unwrap().remove(SOURCE),
        }
        for _ in 0..ATTEMPTS_MAX {
            bench.advance(LOOK_SECONDS + 1).await;
            bench.sweep().await;
            told(&bench, "x-ms-copy-status").await;
        }
        assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("failed"), "{why}");
        let described = told(&bench, "x-ms-copy-status-description").await.unwrap();
        assert!(described.starts_with(why), "{described}");
    }
}

/// Two nodes over one engine: a copy is done by the one that began it, as long as it says so.
#[tokio::test]
async fn one_node_does_a_copy_and_another_only_when_it_is_gone() {
    let (one, elsewhere) = bench(stalled()).await;
    let two = Bench::on(one.engine.clone());
    let two = Bench { service: two.service.reaching(elsewhere.clone()), ..two };
    one.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
    assert_eq!(told(&one, "x-ms-copy-progress").await.as_deref(), Some("5/1000"));
    // Whoever began anew would succeed now.
    elsewhere.0.lock().unwrap().insert(SOURCE, Script::of(&[7; 1_000]));
    for _ in 0..5 {
        one.advance(LOOK_SECONDS + 1).await;
        two.sweep().await;
        assert_eq!(told(&two, "x-ms-copy-status").await.as_deref(), Some("pending"), "it is done elsewhere");
        one.sweep().await;
        assert_eq!(told(&two, "x-ms-copy-status").await.as_deref(), Some("pending"), "it is being done");
    }
    one.advance(LOOK_SECONDS + GRACE_SECONDS).await;
    two.sweep().await;
    assert_eq!(told(&two, "x-ms-copy-status").await.as_deref(), Some("success"));
    one.advance(LOOK_SECONDS + GRACE_SECONDS).await;
    one.sweep().await;
    two.sweep().await;
    assert_eq!(two.get("cont/blob").await, [7; 1_000]);
}

#[tokio::test]
async fn after_two_weeks_it_is_over() {
    let (bench, _) = bench(stalled()).await;
    bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
    assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("pending"));
    bench.advance(SECONDS_MAX).await;
    bench.sweep().await;
    assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("failed"));
    bench.put("cont/blob", b"x").await;
}

/// What protects a blob is said of it, not of the bytes that a copy was to bring.
#[tokio::test]
async fn a_copy_that_ends_leaves_what_protects_its_blob() {
    let hold = [COPY[0], ("x-ms-legal-hold", "true")];
    let abort = [("x-ms-copy-action", "abort")];
    for is_aborted in [true, false] {
        let (bench, _) = bench(stalled()).await;
        let begun = bench.call("PUT", "cont/blob", &hold, b"").await.unwrap();
        if is_aborted {
            let id = header(&begun, "x-ms-copy-id").unwrap();
            bench.call("PUT", &format!("cont/blob?comp=copy&copyid={id}"), &abort, b"").await.unwrap();
        } else {
            bench.advance(SECONDS_MAX).await;
            bench.sweep().await;
        }
        assert_eq!(told(&bench, "x-ms-legal-hold").await.as_deref(), Some("true"));
        assert_eq!(bench.problems().await, Vec::<String>::new());
        let container = bench.call("HEAD", "cont?restype=container", &[], b"").await.unwrap();
        assert_eq!(header(&container, "x-ms-has-legal-hold"), Some("true"));
        let deleted = bench.call("DELETE", "cont?restype=container", &[], b"").await;
        assert_eq!(refusal(deleted), BlobError::BlobImmutableDueToLegalHold);
    }
}

/// A download in parts holds on to an ETag; a page that came meanwhile must end it.
#[tokio::test]
async fn each_write_of_pages_has_its_own_etag() {
    let mib = 1024 * 1024;
    let filled = Script::of(&vec![1; 4 * mib]).header("x-ms-blob-type", "PageBlob");
    let (bench, _) = bench(Script { length: 8 * mib as u64, then: Then::Stall, ..filled }).await;
    let begun = bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
    let empty = header(&begun, "etag").unwrap();
    assert_eq!(told(&bench, "x-ms-copy-progress").await, Some(format!("{}/{}", 4 * mib, 8 * mib)));
    assert_ne!(told(&bench, "etag").await.as_deref(), Some(empty));
    let part = [("if-match", empty), ("range", "bytes=0-511")];
    assert_eq!(refusal(bench.call("GET", "cont/blob", &part, b"").await), BlobError::ConditionNotMet);
}

/// The sum is that of the source's bytes, so it comes with them.
#[tokio::test]
async fn the_md5_of_the_source_is_told_when_its_bytes_are_there() {
    let md5 = "XUFAKrxLKna5cZ2REBfFkg==";
    let source = Script::of(b"hello").header("content-md5", md5);
    for kind in ["BlockBlob", "AppendBlob", "PageBlob"] {
        let stalled = Script { length: 512, then: Then::Stall, ..source.clone().header("x-ms-blob-type", kind) };
        let (bench, _) = bench(stalled).await;
        let begun = bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
        assert_eq!(told(&bench, "content-md5").await, None, "{kind}");
        let id = header(&begun, "x-ms-copy-id").unwrap();
        let abort = [("x-ms-copy-action", "abort")];
        bench.call("PUT", &format!("cont/blob?comp=copy&copyid={id}"), &abort, b"").await.unwrap();
        assert_eq!(told(&bench, "content-md5").await, None, "{kind}");
    }
    let (bench, _) = bench(source).await;
    bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
    assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("success"));
    assert_eq!(told(&bench, "content-md5").await.as_deref(), Some(md5));
}

async fn stored_job(bench: &Bench) -> Job {
    let job = engine::read::<_, Infallible, _>(&*bench.engine, |rows, _| {
        let (all, mut found) = (Key::new(space::COPY), None);
        rows.scan(&all, &all.after_all(), 1, &mut |_, row| {
            found = Some(codec::decode::<Job>(row));
            engine::Visit::Stop
        })?;
        Ok(found.transpose()?)
    });
    job.await.unwrap().expect("a copy is under way")
}

/// A node that seemed gone, and whose copy another one has begun anew, neither fails it nor writes to its blob.
#[tokio::test]
async fn an_attempt_that_another_has_replaced_changes_nothing() {
    let (bench, _) = bench(stalled()).await;
    bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
    assert_eq!(told(&bench, "x-ms-copy-progress").await.as_deref(), Some("5/1000"));
    let current = stored_job(&bench).await;
    let stale = Job { claim: Some(1), ..current.clone() };
    give_up::<BlobDestination>(&*bench.engine, stale.clone(), None).await.unwrap();
    give_up::<BlobDestination>(&*bench.engine, stale.clone(), Some("500 Over".to_owned())).await.unwrap();
    assert!(stored_job(&bench).await == current);
    let attempt = Attempt::<BlobDestination>::new(&*bench.engine, stale);
    assert!(matches!(attempt.tell(700).await, Err(Halted::Unwanted)));
    assert!(matches!(attempt.finish(Vec::new(), 1_000).await, Err(Halted::Unwanted)));
    assert_eq!(told(&bench, "x-ms-copy-progress").await.as_deref(), Some("5/1000"));
    assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("pending"));
}

/// Where nobody can tell whether the source is still what it was, nothing is left of what an earlier attempt wrote.
#[tokio::test]
async fn pages_of_two_attempts_are_not_mixed() {
    const HALF: usize = PAGES_BYTES;
    let page = |script: Script| script.header("x-ms-blob-type", "PageBlob");
    let cut = page(Script { length: 2 * HALF as u64, then: Then::Cut, ..Script::of(&vec![1; HALF]) });
    let after = [vec![0; HALF], vec![2; HALF]].concat();
    let (bench, elsewhere) = bench(cut).await;
    bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
    assert_eq!(told(&bench, "x-ms-copy-progress").await, Some(format!("{HALF}/{}", 2 * HALF)));
    elsewhere.0.lock().unwrap().insert(SOURCE, page(Script::of(&after)));
    bench.advance(LOOK_SECONDS + 1).await;
    bench.sweep().await;
    assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("success"));
    assert!(bench.get("cont/blob").await == after);
    bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
    bench.sweep().await;
    assert_eq!(bench.figures(), (1, 0));
}

/// A source that sends another ETag is another one, though it took no notice of the condition.
#[tokio::test]
async fn an_answer_with_another_etag_fails_the_copy() {
    let (bench, _) = bench(stalled()).await;
    bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
    told(&bench, "x-ms-copy-status").await;
    let job = Job { etag: Some("\"1\"".to_owned()), ..stored_job(&bench).await };
    let headers = HeaderMap::from_iter([(names::ETAG, HeaderValue::from_static("\"2\""))]);
    let body = Box::new(wire::http::FixedBody::new(Bytes::from_static(&[7; 1_000])));
    let attempt = Attempt::<BlobDestination>::new(&*bench.engine, job);
    let outcome = attempt.run(Fetched { status: 200, headers, body }, true).await;
    assert!(matches!(outcome, Err(Halted::Failed(why)) if why.starts_with("412 ")));
}

#[tokio::test]
async fn copies_that_find_no_room_stay_pending_and_wait() {
    let (bench, _) = bench(stalled()).await;
    let progress = async |blob: &str| {
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        let told = bench.call("HEAD", blob, &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-copy-status"), Some("pending"));
        header(&told, "x-ms-copy-progress").unwrap().to_owned()
    };
    let mut ids = Vec::new();
    for n in 0..=COPIES_AT_ONCE_MAX {
        let begun = bench.call("PUT", &format!("cont/{n}"), &COPY, b"").await.unwrap();
        ids.push(header(&begun, "x-ms-copy-id").unwrap().to_owned());
    }
    let last = format!("cont/{COPIES_AT_ONCE_MAX}");
    assert_eq!(progress("cont/0").await, "5/1000");
    assert_eq!(progress(&last).await, "0/1000");
    for _ in 0..3 {
        bench.advance(WAIT_SECONDS + GRACE_SECONDS).await;
        bench.sweep().await;
        assert_eq!(progress(&last).await, "0/1000");
    }
    let abort = [("x-ms-copy-action", "abort")];
    bench.call("PUT", &format!("cont/0?comp=copy&copyid={}", ids[0]), &abort, b"").await.unwrap();
    bench.advance(WAIT_SECONDS + GRACE_SECONDS).await;
    bench.sweep().await;
    assert_eq!(progress(&last).await, "5/1000");
}

/// Sends one byte every 29 seconds.
#[derive(Debug)]
struct Dripping(Arc<engine::memory::MemoryEngine>);

impl Outside for Dripping {
    fn fetch<'a>(&'a self, _: &'a str, _: HeaderMap) -> engine::BoxFuture<'a, Result<Fetched, Unreached>> {
        let body = Box::new(Drips(self.0.clone()));
        Box::pin(async { Ok(Fetched { status: 200, headers: HeaderMap::new(), body }) })
    }

    fn spawn(&self, work: engine::BoxFuture<'static, ()>) -> Box<dyn Running> {
        Elsewhere::default().spawn(work)
    }
}

struct Drips(Arc<engine::memory::MemoryEngine>);

impl Body for Drips {
    fn length(&self) -> Option<u64> {
        Some(1 << 20)
    }

    fn next(&mut self) -> engine::BoxFuture<'_, Option<Result<Bytes, wire::http::BodyError>>> {
        Box::pin(async {
            self.0.advance_clock(29).await.unwrap();
            Some(Ok(Bytes::from_static(b"x")))
        })
    }
}

#[tokio::test]
async fn a_source_that_drips_is_given_up() {
    let Bench { engine, service, settings } = Bench::with_container().await;
    let service = service.reaching(Arc::new(Dripping(engine.clone())));
    let bench = Bench { engine, service, settings };
    bench.call("PUT", "cont/blob", &COPY, b"").await.unwrap();
    for _ in 1..ATTEMPTS_MAX {
        assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("pending"));
        bench.advance(LOOK_SECONDS + 1).await;
        bench.sweep().await;
    }
    assert_eq!(told(&bench, "x-ms-copy-status").await.as_deref(), Some("failed"));
}
