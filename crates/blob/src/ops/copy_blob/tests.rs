use super::*;
use crate::model::{Blob, Committed};
use crate::testing::{
    Bench, Elsewhere, HELD, Interrupted, MINE, NOW, Script, Then, YOURS, bytes, committed, header, refusal, request,
    tick, url,
};
use concurrency::{ETagMatch, Lease, LeaseDuration, Until};
use content::copy_state::CopyState;

fn ask(kind: CopyKind, headers: &[(&str, &str)]) -> WholeCopy {
    let source = [("x-ms-copy-source", "http://127.0.0.1:10000/acct/cont/source")];
    let head = request("PUT", "cont/blob", &[&source, headers].concat());
    read_head(&head, 1, Reach::Overwrite, &Settings::default(), kind).unwrap().copy
}

fn blob(lease: Lease, kind: BlobType) -> Blob {
    Blob { uid: 3, lease, committed: Some(Committed { kind, ..committed() }), ..Blob::default() }
}

const SHORT: Lease =
    Lease::Leased { id: MINE, duration: LeaseDuration::Seconds(15), until: Until::At(Timestamp(u64::MAX)) };
const APPEND: BlobType = BlobType::Append { blocks: 3, sealed: true };
const PAGE: BlobType = BlobType::Page { sequence: 5 };

#[test]
fn each_refusal_and_two_at_once() {
    let mine = MINE.to_string();
    let mine = [("x-ms-lease-id", mine.as_str())];
    let yours = YOURS.to_string();
    let yours = [("x-ms-lease-id", yours.as_str())];
    let judge = |op: WholeCopy, found: Blob| op.judge(Some(&found), NOW).err();
    let copy = |headers: &[(&str, &str)]| ask(CopyKind::Copy, headers);
    assert_eq!(judge(copy(&[]), blob(Lease::Available, BlobType::Block)), None);
    assert_eq!(judge(copy(&mine), blob(HELD, BlobType::Block)), None);
    assert_eq!(judge(copy(&[]), blob(HELD, BlobType::Block)), Some(BlobError::LeaseIdMissing));
    let mismatch = Some(BlobError::LeaseIdMismatchWithBlobOperation);
    assert_eq!(judge(copy(&yours), blob(HELD, BlobType::Block)), mismatch);
    // A finite lease is not enough for what goes on after the answer, and is for what does not.
    let infinite = Some(BlobError::InfiniteLeaseDurationRequired);
    assert_eq!(judge(copy(&mine), blob(SHORT, BlobType::Block)), infinite);
    assert_eq!(judge(copy(&[]), blob(SHORT, BlobType::Block)), Some(BlobError::LeaseIdMissing));
    assert_eq!(judge(ask(CopyKind::CopyInRequest, &mine), blob(SHORT, BlobType::Block)), None);
    assert_eq!(judge(ask(CopyKind::BlockBlob, &mine), blob(SHORT, BlobType::Block)), None);
    // A condition and a lease: the condition. "Must not exist" comes after the lease.
    let stale = [("if-match", "\"0x1\"")];
    assert_eq!(judge(copy(&stale), blob(HELD, BlobType::Block)), Some(BlobError::ConditionNotMet));
    let new = [("if-none-match", "*")];
    assert_eq!(judge(copy(&new), blob(HELD, BlobType::Block)), Some(BlobError::LeaseIdMissing));
    assert_eq!(judge(copy(&new), blob(Lease::Available, BlobType::Block)), Some(BlobError::BlobAlreadyExists));
    // A copy under way stands against another, whatever lease there is.
    let mut waiting = blob(HELD, BlobType::Block);
    let state = waiting.committed.as_mut().unwrap();
    state.copy = Some(Box::new(CopyState::pending("http://elsewhere/x", 5, tick())));
    assert_eq!(judge(copy(&mine), waiting.clone()), Some(BlobError::PendingCopyOperation));
    assert_eq!(judge(copy(&[]), waiting), Some(BlobError::LeaseIdMissing));
    let create = WholeCopy { reach: Reach::CreateOnly, ..copy(&stale) };
    assert_eq!(judge(create, blob(HELD, BlobType::Block)), Some(BlobError::UnauthorizedBlobOverwrite));
}

#[test]
fn types_and_seals() {
    let kind = |result, headers: &[(&str, &str)], found: Option<BlobType>, source| {
        let found = found.map(|kind| blob(Lease::Available, kind));
        ask(result, headers).blob_type(found.as_ref(), source)
    };
    assert_eq!(kind(CopyKind::Copy, &[], None, PAGE), Ok(PAGE));
    assert_eq!(kind(CopyKind::Copy, &[], None, APPEND), Ok(APPEND));
    let open = BlobType::Append { blocks: 3, sealed: false };
    assert_eq!(kind(CopyKind::Copy, &[("x-ms-seal-blob", "false")], None, APPEND), Ok(open));
    assert_eq!(kind(CopyKind::Copy, &[("x-ms-seal-blob", "true")], None, open), Ok(APPEND));
    assert_eq!(kind(CopyKind::Copy, &[], Some(BlobType::Block), APPEND), Err(BlobError::InvalidBlobType));
    assert_eq!(kind(CopyKind::Copy, &[], Some(open), APPEND), Ok(APPEND));
    assert_eq!(kind(CopyKind::CopyInRequest, &[], None, PAGE), Err(BlobError::InvalidSourceBlobType));
    assert_eq!(kind(CopyKind::BlockBlob, &[], Some(PAGE), APPEND), Ok(BlobType::Block));
}

async fn copy(bench: &Bench, to: &str, from: &str, headers: &[(&str, &str)]) -> Result<Reply, Failure> {
    let from = url(from);
    bench.call("PUT", to, &[&[("x-ms-copy-source", from.as_str())], headers].concat(), b"").await
}

const SYNC: (&str, &str) = ("x-ms-requires-sync", "true");
const PUT: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

#[tokio::test]
async fn a_copy_is_what_its_source_was() {
    let bench = Bench::with_container().await;
    let put = [PUT, ("x-ms-meta-a", "1"), ("content-type", "text/plain"), ("x-ms-blob-cache-control", "no-store")];
    bench.call("PUT", "cont/source", &put, b"hello").await.unwrap();
    let before = bench.figures();
    let answer = copy(&bench, "cont/blob", "cont/source", &[]).await.unwrap();
    assert_eq!((answer.status.as_u16(), header(&answer, "x-ms-copy-status")), (202, Some("success")));
    // A row for the blob and one for the reference; no content.
    let after = bench.figures();
    assert_eq!((after.0 - before.0, after.1 - before.1), (2, 0));
    let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
    let text = |name| header(&told, name);
    assert_eq!((text("content-type"), text("x-ms-meta-a")), (Some("text/plain"), Some("1")));
    assert_eq!((text("cache-control"), text("content-md5")), (Some("no-store"), Some("XUFAKrxLKna5cZ2REBfFkg==")));
    assert_eq!(text("x-ms-copy-id"), header(&answer, "x-ms-copy-id"));
    assert_eq!((text("x-ms-copy-progress"), text("x-ms-copy-status")), (Some("5/5"), Some("success")));
    assert_eq!(text("x-ms-copy-source"), Some(url("cont/source").as_str()));
    assert!(text("x-ms-copy-completion-time").is_some());
    let list = bench.text("GET", "cont?restype=container&comp=list&include=copy").await;
    assert_eq!(list.matches("<CopyStatus>success</CopyStatus>").count(), 1);
    assert!(list.contains("<CopyProgress>5/5</CopyProgress>"), "{list}");
    assert!(!bench.text("GET", "cont?restype=container&comp=list").await.contains("Copy"));
    // What the request says counts instead.
    copy(&bench, "cont/blob", "cont/source", &[("x-ms-meta-b", "2"), ("x-ms-access-tier", "Cool")]).await.unwrap();
    let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
    assert_eq!((header(&told, "x-ms-meta-a"), header(&told, "x-ms-meta-b")), (None, Some("2")));
    assert_eq!(header(&told, "x-ms-access-tier"), Some("Cool"));
    // Without its source.
    bench.call("DELETE", "cont/source", &[], b"").await.unwrap();
    bench.sweep().await;
    assert_eq!(bench.get("cont/blob").await, b"hello");
    bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
    bench.sweep().await;
    assert_eq!(bench.figures(), (1, 0));
}

#[tokio::test]
async fn writes_forget_the_copy_but_leases_blocks_and_pages_do_not() {
    let bench = Bench::with_container().await;
    bench.put("cont/source", b"hello").await;
    bench.put_pages("cont/pages", 1_024).await;
    let known = async |blob: &str| {
        let told = bench.call("HEAD", blob, &[], b"").await.unwrap();
        header(&told, "x-ms-copy-id").is_some()
    };
    let lease = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15")];
    let update = [("x-ms-page-write", "update"), ("range", "bytes=0-511")];
    copy(&bench, "cont/blob", "cont/source", &[]).await.unwrap();
    copy(&bench, "cont/copied", "cont/pages", &[]).await.unwrap();
    bench.call("PUT", "cont/blob?comp=block&blockid=QQ==", &[], b"x").await.unwrap();
    bench.call("PUT", "cont/copied?comp=page", &update, &[1; 512]).await.unwrap();
    bench.call("PUT", "cont/copied?comp=lease", &lease, b"").await.unwrap();
    let snapshot = bench.call("PUT", "cont/blob?comp=snapshot", &[], b"").await.unwrap();
    let snapshot = format!("cont/blob?snapshot={}", header(&snapshot, "x-ms-snapshot").unwrap());
    assert!(known("cont/blob").await && known("cont/copied").await && known(&snapshot).await);
    bench.call("PUT", "cont/blob?comp=metadata", &[], b"").await.unwrap();
    assert!(!known("cont/blob").await && known(&snapshot).await);
    copy(&bench, "cont/blob", "cont/source", &[]).await.unwrap();
    assert!(known("cont/blob").await);
    bench.put("cont/blob", b"new").await;
    assert!(!known("cont/blob").await);
}

#[tokio::test]
async fn sources_that_cannot_be_read() {
    let bench = Bench::with_container().await;
    bench.put("cont/source", b"hello").await;
    let status = |error: &BlobError| {
        let reply = error.to_reply();
        let told = reply.headers.iter().find(|(name, _)| *name == "x-ms-copy-source-error-code");
        (reply.status, reply.code, told.map(|(_, code)| code.clone()))
    };
    for manner in [&[][..], &[SYNC], &[PUT]] {
        for (source, code) in [("cont/none", "BlobNotFound"), ("none/blob", "ContainerNotFound")] {
            let refused = refusal(copy(&bench, "cont/blob", source, manner).await);
            assert_eq!(status(&refused), (404, "CannotVerifyCopySource", Some(code.to_owned())), "{manner:?}");
        }
        let no_url = bench.call("PUT", "cont/blob", &[manner, &[("x-ms-copy-source", "/x")]].concat(), b"").await;
        assert_eq!(refusal(no_url), BlobError::header("x-ms-copy-source", "/x"));
    }
    let private = |manner: &[(&'static str, &'static str)]| {
        [manner, &[("x-ms-copy-source", "http://private/x?sig=secret")]].concat()
    };
    for manner in [&[][..], &[PUT]] {
        let refused = refusal(bench.call("PUT", "cont/blob", &private(manner), b"").await);
        let told = Some("NoAuthenticationInformation".to_owned());
        assert_eq!(status(&refused), (401, "CannotVerifyCopySource", told));
        assert!(!format!("{refused:?}").contains("secret"));
    }
    // Nothing elsewhere without a way there, and no body beside a source.
    let refused = bench.call("PUT", "cont/blob", &[("x-ms-copy-source", "http://elsewhere/x")], b"").await;
    assert!(matches!(refusal(refused), BlobError::CannotVerifyCopySource(_)));
    let with_body = bench.call("PUT", "cont/blob", &[("x-ms-copy-source", "http://private/x")], b"x").await;
    assert_eq!(refusal(with_body), BlobError::header("content-length", "1"));
    let missing = bench.call("GET", "cont/blob", &[], b"").await;
    assert_eq!(refusal(missing), BlobError::BlobNotFound);
}

#[tokio::test]
async fn conditions_on_the_source() {
    let bench = Bench::with_container().await;
    let etag = bench.put("cont/source", b"hello").await;
    let cases = [
        ("x-ms-source-if-match", "\"0x1\""),
        ("x-ms-source-if-none-match", etag.as_str()),
        ("x-ms-source-if-modified-since", "Fri, 01 Jan 2100 00:00:00 GMT"),
        ("x-ms-source-if-unmodified-since", "Fri, 01 Jan 1999 00:00:00 GMT"),
    ];
    for case in cases {
        assert_eq!(
            refusal(copy(&bench, "cont/blob", "cont/source", &[case]).await),
            BlobError::SourceConditionNotMet,
            "{case:?}"
        );
        let reply = refusal(copy(&bench, "cont/blob", "cont/source", &[PUT, case]).await).to_reply();
        assert_eq!((reply.status, reply.code), (412, "CannotVerifyCopySource"), "{case:?}");
    }
    for case in [("x-ms-source-if-match", etag.as_str()), ("x-ms-source-if-none-match", "\"0x1\"")] {
        copy(&bench, "cont/blob", "cont/source", &[case]).await.unwrap();
        copy(&bench, "cont/blob", "cont/source", &[SYNC, case]).await.unwrap();
    }
}

#[tokio::test]
async fn sums_of_the_source() {
    let bench = Bench::with_container().await;
    bench.put("cont/source", b"hello").await;
    let (right, wrong) = ("XUFAKrxLKna5cZ2REBfFkg==", "1B2M2Y8AsgTpgAmY7PhCfg==");
    for manner in [SYNC, PUT] {
        let answer = copy(&bench, "cont/blob", "cont/source", &[manner, ("x-ms-source-content-md5", right)]).await;
        let answer = answer.unwrap();
        assert_eq!(header(&answer, "content-md5"), Some(right));
        assert!(header(&answer, "x-ms-content-crc64").is_some());
        let refused = copy(&bench, "cont/blob", "cont/source", &[manner, ("x-ms-source-content-md5", wrong)]).await;
        assert!(matches!(refusal(refused), BlobError::Request(RequestError::Md5Mismatch { .. })));
    }
    // What was summed is what is copied, or nothing is.
    let interrupted = Interrupted::by(&bench, request("PUT", "cont/source", &[PUT]), b"other");
    let refused = copy(&interrupted, "cont/blob", "cont/source", &[PUT, ("x-ms-source-content-md5", right)]).await;
    assert_eq!(refusal(refused), BlobError::SourceConditionNotMet);
    assert_eq!(bench.get("cont/blob").await, b"hello");
}

#[tokio::test]
async fn what_put_blob_from_url_says_of_its_blob() {
    let bench = Bench::with_container().await;
    let put = [PUT, ("x-ms-meta-a", "1"), ("content-type", "text/plain"), ("x-ms-blob-content-language", "de")];
    bench.call("PUT", "cont/source", &put, b"hello").await.unwrap();
    let told = async |headers: &[(&str, &str)]| {
        let answer = copy(&bench, "cont/blob", "cont/source", &[&[PUT], headers].concat()).await.unwrap();
        assert_eq!((answer.status.as_u16(), header(&answer, "x-ms-copy-id")), (201, None));
        bench.call("HEAD", "cont/blob", &[], b"").await.unwrap()
    };
    let taken = told(&[("x-ms-blob-content-type", "text/html")]).await;
    assert_eq!(header(&taken, "content-type"), Some("text/html"));
    assert_eq!((header(&taken, "content-language"), header(&taken, "x-ms-meta-a")), (Some("de"), Some("1")));
    assert_eq!(header(&taken, "x-ms-copy-id"), None);
    let own = told(&[("x-ms-copy-source-blob-properties", "false"), ("x-ms-meta-b", "2")]).await;
    assert_eq!((header(&own, "content-language"), header(&own, "x-ms-meta-b")), (None, Some("2")));
    assert_eq!(header(&own, "content-md5"), Some("XUFAKrxLKna5cZ2REBfFkg=="));
    let other = copy(&bench, "cont/blob", "cont/source", &[("x-ms-blob-type", "PageBlob")]).await;
    assert_eq!(refusal(other), BlobError::header("x-ms-blob-type", "PageBlob"));
    // Of another type the bytes are taken.
    bench.call("PUT", "cont/append", &[("x-ms-blob-type", "AppendBlob")], b"").await.unwrap();
    bench.call("PUT", "cont/append?comp=appendblock", &[], b"six").await.unwrap();
    copy(&bench, "cont/blob", "cont/append", &[PUT]).await.unwrap();
    let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
    assert_eq!(header(&told, "x-ms-blob-type"), Some("BlockBlob"));
    assert_eq!(bench.get("cont/blob").await, b"six");
    let refused = copy(&bench, "cont/other", "cont/append", &[SYNC]).await;
    assert_eq!(refusal(refused), BlobError::InvalidSourceBlobType);
}

#[tokio::test]
async fn onto_itself_and_from_a_snapshot() {
    let bench = Bench::with_container().await;
    bench.put("cont/blob", b"first").await;
    let snapshot = bench.call("PUT", "cont/blob?comp=snapshot", &[], b"").await.unwrap();
    let snapshot = format!("cont/blob?snapshot={}", header(&snapshot, "x-ms-snapshot").unwrap());
    bench.put("cont/blob", b"second").await;
    bench.call("PUT", "cont/blob?comp=block&blockid=QQ==", &[], b"x").await.unwrap();
    copy(&bench, "cont/blob", "cont/blob", &[("x-ms-meta-a", "1")]).await.unwrap();
    bench.sweep().await;
    assert_eq!(bench.get("cont/blob").await, b"second");
    let waiting = bench.text("GET", "cont/blob?comp=blocklist&blocklisttype=uncommitted").await;
    assert!(!waiting.contains("<Block>"));
    // A snapshot is made the blob again.
    copy(&bench, "cont/blob", &snapshot, &[]).await.unwrap();
    bench.sweep().await;
    assert_eq!(bench.get("cont/blob").await, b"first");
    bench.call("DELETE", "cont/blob", &[("x-ms-delete-snapshots", "include")], b"").await.unwrap();
    bench.sweep().await;
    assert_eq!(bench.figures(), (1, 0));
}

const HOUR: u64 = 3_600;

/// A blob that came out of the archive is where it was rehydrated to, and so is what is copied onto it.
#[tokio::test]
async fn a_copy_onto_a_rehydrated_blob_stays_out_of_the_archive() {
    const AWAY: &str = "http://a/away";
    let Bench { engine, service, settings } = Bench::with_container().await;
    let elsewhere = Arc::new(Elsewhere::default());
    elsewhere.0.lock().unwrap().insert(AWAY, Script::of(b"from away"));
    let bench = Bench { engine, service: service.reaching(elsewhere), settings };
    bench.put("cont/source", b"from here").await;
    for (source, bytes) in [(url("cont/source"), &b"from here"[..]), (AWAY.to_owned(), b"from away")] {
        bench.put("cont/blob", b"archived").await;
        let tier = async |tier: &str| {
            bench.call("PUT", "cont/blob?comp=tier", &[("x-ms-access-tier", tier)], b"").await.unwrap();
        };
        tier("Archive").await;
        tier("Cool").await;
        bench.advance(16 * 3_600).await;
        bench.call("PUT", "cont/blob", &[("x-ms-copy-source", &source)], b"").await.unwrap();
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-copy-status"), Some("success"), "{source}");
        assert_eq!(header(&told, "x-ms-access-tier"), Some("Cool"), "{source}");
        assert_eq!(bench.get("cont/blob").await, bytes);
    }
}

#[tokio::test]
async fn a_source_in_the_archive_is_rehydrated_for_its_copy() {
    let bench = Bench::with_container().await;
    let archive = ("x-ms-access-tier", "Archive");
    bench.call("PUT", "cont/source", &[PUT, archive], b"hello").await.unwrap();
    let hot = [("x-ms-access-tier", "Hot"), ("x-ms-rehydrate-priority", "High")];
    let before = bench.figures();
    // Where to go must be said, and back to the archive is no answer. Who reads the source is refused by it.
    assert_eq!(refusal(copy(&bench, "cont/blob", "cont/source", &[]).await), BlobError::BlobArchived);
    assert_eq!(refusal(copy(&bench, "cont/blob", "cont/source", &[archive]).await), BlobError::BlobArchived);
    for how in [SYNC, PUT] {
        let refused = copy(&bench, "cont/blob", "cont/source", &[how, hot[0]]).await;
        let BlobError::CannotVerifyCopySource(fault) = refusal(refused) else { panic!("{how:?}") };
        assert_eq!((fault.status, fault.source_code.as_deref()), (409, Some("BlobArchived")));
    }
    let onto_itself = copy(&bench, "cont/source", "cont/source", &hot).await;
    assert_eq!(refusal(onto_itself), BlobError::BlobArchived);
    let odd = copy(&bench, "cont/blob", "cont/source", &[hot[0], ("x-ms-rehydrate-priority", "Now")]).await;
    assert_eq!(refusal(odd), BlobError::header("x-ms-rehydrate-priority", "Now"));
    let stale = copy(&bench, "cont/blob", "cont/source", &[("if-match", "\"0x1\"")]).await;
    assert_eq!(refusal(stale), BlobError::ConditionNotMet);
    let pages = copy(&bench, "cont/blob", "cont/source", &[("x-ms-access-tier", "P10")]).await;
    assert_eq!(refusal(pages), BlobError::AccessTierNotSupportedForBlobType);
    assert_eq!(bench.figures(), before);

    let answer = copy(&bench, "cont/blob", "cont/source", &hot).await.unwrap();
    assert_eq!((answer.status.as_u16(), header(&answer, "x-ms-copy-status")), (202, Some("pending")));
    let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
    let text = |name| header(&told, name);
    assert_eq!((text("x-ms-copy-status"), text("x-ms-copy-progress")), (Some("pending"), Some("0/5")));
    assert_eq!((text("x-ms-access-tier"), text("x-ms-rehydrate-priority")), (Some("Archive"), Some("High")));
    assert_eq!(text("x-ms-archive-status"), Some("rehydrate-pending-to-hot"));
    assert_eq!(text("x-ms-copy-completion-time"), None);
    let list = bench.text("GET", "cont?restype=container&comp=list&include=copy").await;
    assert!(list.contains("<CopyStatus>pending</CopyStatus>"), "{list}");
    assert_eq!(refusal(bench.call("GET", "cont/blob", &[], b"").await), BlobError::BlobArchived);
    let write = bench.call("PUT", "cont/blob", &[PUT], b"x").await;
    assert_eq!(refusal(write), BlobError::PendingCopyOperation);
    assert_eq!(refusal(copy(&bench, "cont/third", "cont/blob", &hot).await).to_reply().status, 409);

    // An aborted one is empty, and where it was going to.
    copy(&bench, "cont/aborted", "cont/source", &[("x-ms-access-tier", "Cool")]).await.unwrap();
    let told = bench.call("HEAD", "cont/aborted", &[], b"").await.unwrap();
    let abort = format!("cont/aborted?comp=copy&copyid={}", header(&told, "x-ms-copy-id").unwrap());
    bench.call("PUT", &abort, &[("x-ms-copy-action", "abort")], b"").await.unwrap();
    let told = bench.call("HEAD", "cont/aborted", &[], b"").await.unwrap();
    assert_eq!((header(&told, "x-ms-copy-status"), header(&told, "content-length")), (Some("aborted"), Some("0")));
    assert_eq!((header(&told, "x-ms-access-tier"), header(&told, "x-ms-archive-status")), (Some("Cool"), None));
    assert_eq!(bench.get("cont/aborted").await, b"");

    bench.advance(HOUR).await;
    let read = bench.call("GET", "cont/blob", &[], b"").await.unwrap();
    let text = |name| header(&read, name);
    assert_eq!((text("x-ms-copy-status"), text("x-ms-copy-progress")), (Some("success"), Some("5/5")));
    assert_eq!((text("x-ms-access-tier"), text("x-ms-archive-status")), (Some("Hot"), None));
    assert!(text("x-ms-copy-completion-time").is_some());
    assert_eq!(bytes(read).await, b"hello");
    assert_eq!(refusal(bench.call("GET", "cont/source", &[], b"").await), BlobError::BlobArchived);
    let abort = format!("cont/blob?comp=copy&copyid={}", header(&answer, "x-ms-copy-id").unwrap());
    let late = bench.call("PUT", &abort, &[("x-ms-copy-action", "abort")], b"").await;
    assert_eq!(refusal(late), BlobError::NoPendingCopyOperation);
    bench.call("PUT", "cont/blob", &[PUT], b"x").await.unwrap();
    for blob in ["cont/source", "cont/blob", "cont/aborted"] {
        bench.call("DELETE", blob, &[], b"").await.unwrap();
    }
    bench.sweep().await;
    assert_eq!(bench.figures(), (1, 0));
}

#[tokio::test]
async fn an_append_blob_and_its_copy_grow_apart() {
    let bench = Bench::with_container().await;
    bench.call("PUT", "cont/source", &[("x-ms-blob-type", "AppendBlob")], b"").await.unwrap();
    let append = async |blob: &str, bytes: &[u8]| {
        let answer = bench.call("PUT", &format!("{blob}?comp=appendblock"), &[], bytes).await.unwrap();
        header(&answer, "x-ms-blob-committed-block-count").unwrap().to_owned()
    };
    for n in 0..120_u8 {
        append("cont/source", &[n; 3]).await;
    }
    let start: Vec<u8> = (0..120).flat_map(|n| [n; 3]).collect();
    copy(&bench, "cont/blob", "cont/source", &[]).await.unwrap();
    copy(&bench, "cont/third", "cont/blob", &[]).await.unwrap();
    append("cont/source", b"source").await;
    assert_eq!(append("cont/blob", b"copy").await, "121");
    assert_eq!(append("cont/blob", b"+").await, "122");
    let with = |end: &[u8]| [&start, end].concat();
    assert_eq!(bench.get("cont/source").await, with(b"source"));
    assert_eq!(bench.get("cont/blob").await, with(b"copy+"));
    assert_eq!(bench.get("cont/third").await, start);
    bench.call("DELETE", "cont/source", &[], b"").await.unwrap();
    bench.sweep().await;
    assert_eq!(bench.get("cont/blob").await, with(b"copy+"));
    assert_eq!(bench.get("cont/third").await, start);
    for blob in ["cont/blob", "cont/third"] {
        bench.call("DELETE", blob, &[], b"").await.unwrap();
    }
    bench.sweep().await;
    assert_eq!(bench.figures(), (1, 0));
}

#[tokio::test]
async fn blocks_from_urls() {
    let bench = Bench::with_container().await;
    bench.put("cont/source", b"0123456789").await;
    let block = async |id: &str, headers: &[(&str, &str)]| {
        let from = url("cont/source");
        let all = [&[("x-ms-copy-source", from.as_str())], headers].concat();
        bench.call("PUT", &format!("cont/blob?comp=block&blockid={id}"), &all, b"").await
    };
    // The same bytes twice, once by the content that has them; then one of the two is replaced.
    let before = bench.figures().1;
    let answer = block("MDAx", &[]).await.unwrap();
    assert!(header(&answer, "x-ms-content-crc64").is_some());
    block("MDAy", &[("x-ms-source-range", "bytes=0-9")]).await.unwrap();
    block("MDAy", &[]).await.unwrap();
    assert_eq!(bench.figures().1, before);
    block("MDAx", &[("x-ms-source-range", "bytes=2-4")]).await.unwrap();
    bench.call("DELETE", "cont/source", &[], b"").await.unwrap();
    bench.sweep().await;
    let list = "<BlockList><Latest>MDAx</Latest><Latest>MDAy</Latest></BlockList>";
    bench.call("PUT", "cont/blob?comp=blocklist", &[], list.as_bytes()).await.unwrap();
    bench.sweep().await;
    assert_eq!(bench.get("cont/blob").await, b"2340123456789");
    // A whole block of the list is one content, too.
    let from = url("cont/blob");
    let part = [("x-ms-copy-source", from.as_str()), ("x-ms-source-range", "bytes=3-12")];
    let before = bench.figures().1;
    bench.call("PUT", "cont/other?comp=block&blockid=MDAx", &part, b"").await.unwrap();
    assert_eq!(bench.figures().1, before);
    let beyond = [("x-ms-copy-source", from.as_str()), ("x-ms-source-range", "bytes=90-91")];
    let refused = refusal(bench.call("PUT", "cont/other?comp=block&blockid=MDAx", &beyond, b"").await).to_reply();
    assert_eq!((refused.status, refused.code), (416, "CannotVerifyCopySource"));
    let odd = [("x-ms-copy-source", from.as_str()), ("x-ms-source-range", "bytes=9-1")];
    let refused = bench.call("PUT", "cont/other?comp=block&blockid=MDAx", &odd, b"").await;
    assert_eq!(refusal(refused), BlobError::header("x-ms-source-range", "bytes=9-1"));
    for blob in ["cont/blob", "cont/other"] {
        bench.call("DELETE", blob, &[], b"").await.unwrap();
    }
    bench.sweep().await;
    assert_eq!(bench.figures(), (1, 0));
}

#[tokio::test]
async fn appends_and_pages_from_urls() {
    let bench = Bench::with_container().await;
    bench.put("cont/source", &[7; 1_024]).await;
    let from = url("cont/source");
    let source = ("x-ms-copy-source", from.as_str());
    bench.call("PUT", "cont/append", &[("x-ms-blob-type", "AppendBlob")], b"").await.unwrap();
    let append = async |headers: &[(&str, &str)]| {
        bench.call("PUT", "cont/append?comp=appendblock", &[&[source], headers].concat(), b"").await
    };
    append(&[]).await.unwrap();
    append(&[("x-ms-source-range", "bytes=0-9")]).await.unwrap();
    let small = append(&[("x-ms-blob-condition-maxsize", "1100")]).await;
    assert_eq!(refusal(small), BlobError::MaxBlobSizeConditionNotMet);
    let crc = append(&[("x-ms-source-content-crc64", "AQAAAAAAAAA=")]).await;
    assert!(matches!(refusal(crc), BlobError::Request(RequestError::Crc64Mismatch { .. })));
    assert_eq!(bench.get("cont/append").await, [7; 1_034]);
    bench.put_pages("cont/pages", 2_048).await;
    let pages = async |headers: &[(&str, &str)]| {
        let all = [&[source, ("x-ms-page-write", "update")], headers].concat();
        bench.call("PUT", "cont/pages?comp=page", &all, b"").await
    };
    let (to, part) = (("x-ms-range", "bytes=512-1023"), ("x-ms-source-range", "bytes=512-1023"));
    let answer = pages(&[to, part]).await.unwrap();
    assert_eq!((answer.status.as_u16(), header(&answer, "x-ms-blob-sequence-number")), (201, Some("0")));
    assert_eq!(bench.get("cont/pages").await, [vec![0; 512], vec![7; 512], vec![0; 1_024]].concat());
    let missing = BlobError::Request(RequestError::MissingRequiredHeader { name: "x-ms-source-range" });
    assert_eq!(refusal(pages(&[to]).await), missing);
    let other = pages(&[to, ("x-ms-source-range", "bytes=0-1023")]).await;
    assert_eq!(refusal(other), BlobError::InvalidPageRange);
    let sequence = pages(&[to, part, ("x-ms-if-sequence-number-lt", "0")]).await;
    assert_eq!(refusal(sequence), BlobError::SequenceNumberConditionNotMet);
}

fn outside(bench: Bench, scripts: &[(&'static str, Script)]) -> (Bench, Arc<Elsewhere>) {
    let elsewhere = Arc::new(Elsewhere::default());
    elsewhere.0.lock().unwrap().extend(scripts.iter().cloned());
    let Bench { engine, service, settings } = bench;
    (Bench { engine, service: service.reaching(elsewhere.clone()), settings }, elsewhere)
}

#[tokio::test]
async fn from_elsewhere_within_the_request() {
    let script = Script::of(b"hello").header("content-type", "text/plain").header("x-ms-meta-a", "1");
    let broken = Script { length: 9, then: Then::Cut, ..script.clone() };
    let missing = Script { status: 404, ..Script::of(b"").header("x-ms-error-code", "BlobNotFound") };
    let scripts = [("http://a/x", script), ("http://a/broken", broken), ("http://a/missing", missing)];
    let (bench, _) = outside(Bench::with_container().await, &scripts);
    let call = async |target: &str, headers: &[(&str, &str)]| bench.call("PUT", target, headers, b"").await;
    let answer = call("cont/blob", &[PUT, ("x-ms-copy-source", "http://a/x")]).await.unwrap();
    assert_eq!(answer.status, 201);
    let read = bench.call("GET", "cont/blob", &[], b"").await.unwrap();
    assert_eq!((header(&read, "content-type"), header(&read, "x-ms-meta-a")), (Some("text/plain"), Some("1")));
    assert_eq!(bytes(read).await, b"hello");
    let before = bench.figures();
    for (source, status) in [("http://a/broken", 500), ("http://a/missing", 404), ("http://a/none", 400)] {
        for how in [PUT, SYNC] {
            let refused = refusal(call("cont/blob", &[how, ("x-ms-copy-source", source)]).await).to_reply();
            assert_eq!((refused.status, refused.code), (status, "CannotVerifyCopySource"), "{source}");
        }
    }
    assert_eq!(bench.figures(), before);
    let block = [("x-ms-copy-source", "http://a/x"), ("x-ms-source-range", "bytes=1-3")];
    call("cont/blob?comp=block&blockid=QQ==", &block).await.unwrap();
    let list = b"<BlockList><Latest>QQ==</Latest></BlockList>";
    bench.call("PUT", "cont/blob?comp=blocklist", &[], list).await.unwrap();
    assert_eq!(bench.get("cont/blob").await, b"ell");
    let copied = call("cont/copy", &[SYNC, ("x-ms-copy-source", "http://a/x")]).await.unwrap();
    assert_eq!((copied.status.as_u16(), header(&copied, "x-ms-copy-status")), (202, Some("success")));
}

#[tokio::test]
async fn tags_come_from_a_source_elsewhere() {
    let document = b"<Tags><TagSet><Tag><Key>colour</Key><Value>red</Value></Tag></TagSet></Tags>";
    let refused = Script { status: 403, ..Script::of(b"").header("x-ms-error-code", "AuthorizationFailure") };
    let scripts = [
        ("http://a/x", Script::of(b"hello")),
        ("http://a/x?comp=tags", Script::of(document)),
        ("http://a/signed?sig=s", Script::of(b"hello")),
        ("http://a/signed?sig=s&comp=tags", Script::of(b"<Tags><TagSet/></Tags>")),
        ("http://a/odd", Script::of(b"hello")),
        ("http://a/odd?comp=tags", Script::of(b"hello")),
        ("http://a/closed", Script::of(b"hello")),
        ("http://a/closed?comp=tags", refused),
    ];
    let (bench, _) = outside(Bench::with_container().await, &scripts);
    let tagged = ("x-ms-copy-source-tag-option", "COPY");
    let take = async |how: &[(&str, &str)], from: &str| {
        bench.call("PUT", "cont/blob", &[&[tagged, ("x-ms-copy-source", from)], how].concat(), b"").await
    };
    for how in [&[SYNC][..], &[PUT], &[]] {
        take(how, "http://a/x").await.unwrap();
        let tags = bench.text("GET", "cont/blob?comp=tags").await;
        assert!(tags.contains("<Key>colour</Key><Value>red</Value>"), "{how:?} {tags}");
        let found = bench.text("GET", "?comp=blobs&where=colour%3D%27red%27").await;
        assert!(found.contains("<Name>blob</Name>"), "{found}");
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        take(how, "http://a/signed?sig=s").await.unwrap();
        assert!(!bench.text("GET", "cont/blob?comp=tags").await.contains("<Tag>"));
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        let before = bench.figures();
        for (from, status) in [("http://a/odd", 400), ("http://a/closed", 403), ("http://a/none", 400)] {
            let refused = refusal(take(how, from).await).to_reply();
            assert_eq!((refused.status, refused.code), (status, "CannotVerifyCopySource"), "{from}");
        }
        assert_eq!(bench.figures(), before);
    }
}

#[test]
fn conditions_go_to_a_source_elsewhere() {
    let head = request(
        "PUT",
        "cont/blob",
        &[
            ("x-ms-copy-source", "http://a/x"),
            ("x-ms-source-if-match", "\"0x1\""),
            ("x-ms-source-if-modified-since", "Fri, 01 Jan 1999 00:00:00 GMT"),
            ("x-ms-source-range", "bytes=1-"),
            ("x-ms-copy-source-authorization", "Bearer abc"),
        ],
    );
    let source = Source::parse(&head, Manner::FromUrl).unwrap();
    assert_eq!(source.conditions.if_match, Some(ETagMatch::OneOf(vec!["0x1".to_owned()])));
    let headers = source.headers();
    let text = |name: &str| headers[name].to_str().unwrap();
    assert_eq!((text("if-match"), text("range")), ("\"0x1\"", "bytes=1-"));
    assert_eq!(text("if-modified-since"), "Fri, 01 Jan 1999 00:00:00 GMT");
    assert_eq!(text("authorization"), "Bearer abc");
    let basic = [("x-ms-copy-source", "http://a/x"), ("x-ms-copy-source-authorization", "Basic abc")];
    let refused = Source::parse(&request("PUT", "cont/blob", &basic), Manner::FromUrl).unwrap_err();
    assert_eq!(refused, BlobError::header("x-ms-copy-source-authorization", ""));
    let long = format!("http://a/{}", "x".repeat(2_100));
    let long = [("x-ms-copy-source", long.as_str())];
    assert!(Source::parse(&request("PUT", "cont/blob", &long), Manner::Copy).is_err());
}

/// The source changes between the reading of its bytes and the copy: the sums are those of what was copied.
#[tokio::test]
async fn the_sums_are_those_of_the_copy() {
    for headers in [SYNC, PUT] {
        let bench = Bench::with_container().await;
        bench.put("cont/source", b"first").await;
        let between = Interrupted::by(&bench, request("PUT", "cont/source", &[PUT]), b"second");
        let answer = copy(&between, "cont/blob", "cont/source", &[headers]).await.unwrap();
        assert_eq!(bench.get("cont/blob").await, b"second");
        let crc64 = wire::base64::encode_crc64(wire::checksum::Crc64::of(b"second"));
        assert_eq!(header(&answer, "x-ms-content-crc64"), Some(crc64.as_str()));
    }
}

/// A source too large to be summed becomes a page blob between the look at it and the copy: its pages are read.
#[tokio::test]
async fn pages_are_not_shared_with_a_block_blob() {
    let bench = Bench::with_container().await;
    bench.put("cont/source", &vec![7; source::SUMMED_BYTES_MAX as usize + 1]).await;
    let pages = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "512")];
    let between = Interrupted::by(&bench, request("PUT", "cont/source", &pages), b"");
    copy(&between, "cont/blob", "cont/source", &[PUT]).await.unwrap();
    assert_eq!(bench.get("cont/blob").await, [0; 512]);
    assert_eq!(bench.problems().await, Vec::<String>::new());
    for blob in ["cont/source", "cont/blob"] {
        bench.call("DELETE", blob, &[], b"").await.unwrap();
    }
    bench.sweep().await;
    assert_eq!(bench.figures(), (1, 0));
}

/// The status and the text are the source's, the code is one of copies.
#[tokio::test]
async fn a_source_that_refuses_says_why() {
    let bench = Bench::with_container().await;
    let said = async |from: &str, headers: &[(&str, &str)]| {
        let copied = bench.call("PUT", "cont/blob", &[&[("x-ms-copy-source", from)], headers].concat(), b"").await;
        let reply = refusal(copied).to_reply();
        let text = |name: &str| reply.headers.iter().find(|(known, _)| *known == name).map(|(_, text)| text.clone());
        let source = text("x-ms-copy-source-error-code").zip(text("x-ms-copy-source-status-code"));
        (reply.status, reply.code, reply.message.clone(), source)
    };
    for kind in [&[][..], &[SYNC], &[PUT]] {
        let source = |code: &str, status: &str| Some((code.to_owned(), status.to_owned()));
        let (status, code, message, told) = said("http://private/x", kind).await;
        assert_eq!((status, code, message.as_str()), (401, "CannotVerifyCopySource", "Nobody is let in."));
        assert_eq!(told, source("NoAuthenticationInformation", "401"));
        let (status, code, message, told) = said(&url("cont/none"), kind).await;
        assert_eq!((status, code), (404, "CannotVerifyCopySource"));
        assert_eq!(message, "The specified blob does not exist.");
        assert_eq!(told, source("BlobNotFound", "404"));
    }
}

#[tokio::test]
async fn a_source_elsewhere_that_refuses_is_quoted() {
    let Bench { engine, service, settings } = Bench::with_container().await;
    let elsewhere = Arc::new(Elsewhere::default());
    let document =
        b"<?xml version=\"1.0\"?><Error><Code>BlobNotFound</Code><Message>It is gone.\nRequestId:1</Message></Error>";
    let gone = Script { status: 404, ..Script::of(document) }.header("x-ms-error-code", "BlobNotFound");
    let closed = Script { status: 403, ..Script::of(b"<html>") };
    elsewhere.0.lock().unwrap().extend([("http://a/gone", gone), ("http://a/closed", closed)]);
    let bench = Bench { engine, service: service.reaching(elsewhere), settings };
    for kind in [&[][..], &[SYNC], &[PUT]] {
        for (from, status, message) in [
            ("http://a/gone", 404, "It is gone."),
            ("http://a/closed", 403, "The copy source did not answer with what was asked for."),
        ] {
            let headers = [&[("x-ms-copy-source", from)], kind].concat();
            let reply = refusal(bench.call("PUT", "cont/blob", &headers, b"").await).to_reply();
            let found = (reply.status, reply.code, reply.message.as_str());
            assert_eq!(found, (status, "CannotVerifyCopySource", message), "{headers:?}");
        }
    }
}

#[tokio::test]
async fn copy_blob_from_url_tells_an_md5_only_to_who_gives_one() {
    let bench = Bench::with_container().await;
    bench.put("cont/source", b"hello").await;
    let answer = copy(&bench, "cont/blob", "cont/source", &[SYNC]).await.unwrap();
    assert_eq!(header(&answer, "content-md5"), None);
    assert!(header(&answer, "x-ms-content-crc64").is_some());
    let md5 = "XUFAKrxLKna5cZ2REBfFkg==";
    let answer = copy(&bench, "cont/blob", "cont/source", &[SYNC, ("x-ms-source-content-md5", md5)]).await.unwrap();
    assert_eq!(header(&answer, "content-md5"), Some(md5));
}

/// The limits of what is copied within a request hold for sources in this server, too.
#[tokio::test]
async fn a_source_here_may_be_too_large() {
    let bench = Bench::with_container().await;
    let block = vec![1; 4 << 20];
    bench.call("PUT", "cont/source?comp=block&blockid=QUFB", &[], &block).await.unwrap();
    let list = async |count: u64| {
        let list = format!("<BlockList>{}</BlockList>", "<Latest>QUFB</Latest>".repeat(count as usize));
        bench.call("PUT", "cont/source?comp=blocklist", &[], list.as_bytes()).await.unwrap();
    };
    let cases = [(SYNC, COPY_BYTES_MAX), (PUT, PUT_BYTES_MAX)];
    for (kind, most) in cases {
        list(most / block.len() as u64 + 1).await;
        let refused = refusal(copy(&bench, "cont/blob", "cont/source", &[kind]).await);
        assert_eq!(refused, BlobError::Request(RequestError::RequestBodyTooLarge { most }));
        // Copy Blob takes it.
        assert_eq!(copy(&bench, "cont/other", "cont/source", &[]).await.unwrap().status, 202);
    }
}

/// Blobs stand for files here: what counts is that another service tells where the bytes are.
#[tokio::test]
async fn a_file_becomes_a_block_blob() {
    let Bench { engine, service, settings } = Bench::with_container().await;
    let bench = Bench { engine, service: service.copying_from(Arc::new(crate::BlobReader)), settings };
    let properties = [PUT, ("x-ms-meta-a", "1"), ("x-ms-blob-content-language", "de")];
    bench.call("PUT", "cont/source", &properties, b"some bytes").await.unwrap();
    let file = format!("{}cont/source", crate::testing::FILES);
    for (to, more, status) in [("cont/copy", None, 202), ("cont/sync", Some(SYNC), 202), ("cont/put", Some(PUT), 201)] {
        let source = ("x-ms-copy-source", file.as_str());
        let headers: Vec<(&str, &str)> = [Some(source), more].into_iter().flatten().collect();
        let done = bench.call("PUT", to, &headers, b"").await.unwrap();
        assert_eq!(done.status.as_u16(), status, "{to}");
        assert_eq!(bench.get(to).await, b"some bytes", "{to}");
        let told = bench.call("HEAD", to, &[], b"").await.unwrap();
        let shown = ["x-ms-blob-type", "x-ms-meta-a", "content-language"].map(|name| header(&told, name));
        assert_eq!(shown, [Some("BlockBlob"), Some("1"), Some("de")], "{to}");
        let stale = [&headers[..], &[("x-ms-source-if-match", "\"0x1\"")]].concat();
        let refused = refusal(bench.call("PUT", to, &stale, b"").await).to_reply();
        let code = if to == "cont/copy" { "SourceConditionNotMet" } else { "CannotVerifyCopySource" };
        assert_eq!((refused.status, refused.code), (412, code), "{to}");
    }
    let none = format!("{}cont/none", crate::testing::FILES);
    let refused = refusal(bench.call("PUT", "cont/copy", &[("x-ms-copy-source", &*none)], b"").await).to_reply();
    assert_eq!((refused.status, refused.code), (404, "CannotVerifyCopySource"));
}
