//! Put Blob: create a blob or replace it whole.

use std::sync::Arc;

use auth::account::Kind;
use concurrency::{Conditions, Lease, LeaseId, Timestamp};
use content::map::PageView;
use content::upload::{self, Announced, Received, Sums, Wanted};
use engine::{Changes, Key, Rows, Tick};
use service::{Operation, ReadOperation, RequestError};
use wire::http::{Body, Head, Reply, StatusCode};
use wire::names::{BlobName, ContainerName};

use super::Call;
use crate::error::BlobError;
use crate::model::encryption::Encryption;
use crate::model::{self, Blob, BlobType, Committed, ContentRef, Halt, HttpHeaders, Pairs, blob_key, refuse};
use crate::request::BodySums;
use crate::rules::creation_options::CreationOptions;
use crate::rules::encryption;
use crate::rules::soft_delete::{self, Keeping, Written};
use crate::rules::writable;
use crate::{Failure, Reach, reply, request};

const MIB: u64 = 1024 * 1024;

/// The largest body, by the version that raised it.
fn body_bytes_max(head: &Head) -> u64 {
    if head.since("2019-12-12") {
        5_000 * MIB
    } else if head.since("2016-05-31") {
        256 * MIB
    } else {
        64 * MIB
    }
}

/// A blob as it is to become. As a [`ReadOperation`] it says whether it may, before its body is read.
#[derive(Clone, Debug)]
pub struct PutBlob {
    pub container: ContainerName,
    pub name: BlobName,
    pub conditions: Conditions,
    pub lease: Option<LeaseId>,
    pub headers: HttpHeaders,
    pub metadata: Pairs,
    pub options: CreationOptions,
    pub kind: BlobType,
    /// The length of a page blob, which comes without its content.
    pub pages: u64,
    /// What the client names as encryption; else that of the container holds.
    pub encryption: Option<Encryption>,
    /// The bytes of a block blob, which are durable by now.
    pub body: Received,
    pub keeping: Keeping,
    pub reach: Reach,
}

/// The checksums that a client sends with the body.
struct Checksums {
    of_body: BodySums,
    /// Of the whole blob, which takes precedence.
    whole_md5: Option<[u8; 16]>,
}

impl Checksums {
    fn parse(head: &Head, kind: BlobType) -> Result<Checksums, BlobError> {
        let of_body = request::body_sums(head)?;
        let whole_md5 = match kind {
            BlobType::Block => request::md5(head, request::BLOB_CONTENT_MD5)?,
            BlobType::Append { .. } | BlobType::Page { .. } => None,
        };
        Ok(Checksums { of_body, whole_md5 })
    }

    fn expected(&self) -> BodySums {
        BodySums { md5: self.whole_md5.or(self.of_body.md5), crc64: self.of_body.crc64 }
    }
}

fn parse(call: &Call<'_>) -> Result<(PutBlob, Checksums), BlobError> {
    let (head, settings) = (call.head, call.asker.settings);
    let (container, name) = request::blob(head)?;
    request::only_base(head)?;
    request::no_expiry(head)?;
    let kind = kind(head)?;
    let pages = pages(head, kind)?;
    let conditions = request::conditions(head)?;
    conditions.check_write_combination()?;
    let op = PutBlob {
        container,
        name,
        conditions,
        lease: request::lease_id(head)?,
        headers: headers(head)?,
        metadata: request::metadata(head)?,
        options: request::creation_options(head, kind, pages, settings.kind == Kind::Premium)?,
        kind,
        pages,
        encryption: None,
        body: Received::nothing(0),
        keeping: call.keeping(),
        reach: call.reach,
    };
    Ok((op, Checksums::parse(head, kind)?))
}

fn kind(head: &Head) -> Result<BlobType, BlobError> {
    const NAME: &str = "x-ms-blob-type";
    match request::required(head, NAME)? {
        "BlockBlob" => Ok(BlobType::Block),
        "AppendBlob" => Ok(BlobType::Append { blocks: 0, sealed: false }),
        "PageBlob" => Ok(BlobType::Page { sequence: request::sequence_number(head)?.unwrap_or(0) }),
        other => Err(BlobError::header(NAME, other)),
    }
}

fn pages(head: &Head, kind: BlobType) -> Result<u64, BlobError> {
    match kind {
        BlobType::Block | BlobType::Append { .. } => Ok(0),
        BlobType::Page { .. } => request::page_blob_length(head)?
            .ok_or(BlobError::Request(RequestError::MissingRequiredHeader { name: request::BLOB_CONTENT_LENGTH })),
    }
}

/// The body that is to come. Only a block blob comes with its content.
fn announced(head: &Head, body: &dyn Body, kind: BlobType) -> Result<Announced, BlobError> {
    let announced = upload::announced(head, body, body_bytes_max(head))?;
    match kind {
        BlobType::Append { .. } | BlobType::Page { .. } if announced.length > 0 => {
            Err(BlobError::header("content-length", announced.length.to_string()))
        }
        BlobType::Block | BlobType::Append { .. } | BlobType::Page { .. } => Ok(announced),
    }
}

/// Here the plain headers stand in for the `x-ms-blob-*` ones, because they describe the same bytes.
fn headers(head: &Head) -> Result<HttpHeaders, BlobError> {
    let own = request::blob_headers(head)?;
    let or = |own: Option<String>, name| if own.is_some() { Ok(own) } else { request::stored(head, name) };
    Ok(HttpHeaders {
        content_type: or(own.content_type, "content-type")?.or(Some(reply::CONTENT_TYPE_DEFAULT.to_owned())),
        content_encoding: or(own.content_encoding, "content-encoding")?,
        content_language: or(own.content_language, "content-language")?,
        cache_control: or(own.cache_control, "cache-control")?,
        ..own
    })
}

impl PutBlob {
    /// Whether the write may happen, and the lease as it is afterwards. The order is the service's.
    fn judge(&self, found: Option<&Blob>, now: Timestamp) -> Result<Lease, BlobError> {
        self.options.check(now)?;
        let version = found.and_then(Blob::version);
        if self.reach == Reach::CreateOnly && version.is_some() {
            return Err(BlobError::UnauthorizedBlobOverwrite);
        }
        self.conditions.check_write(version.as_ref())?;
        let before = found.map_or(Lease::Available, |blob| blob.lease);
        let lease = writable::check_write(found, self.lease, now)?;
        self.conditions.check_create_only(version.is_some(), before.is_held_by(self.lease, now))?;
        found.map_or(Ok(()), |blob| blob.check_replace(self.keeping.versioning(), now))?;
        Ok(lease)
    }

    /// What becomes of the blob: new content, properties and metadata; the lease stays.
    fn decide(&self, found: Option<&Blob>, account: u64, tick: Tick) -> Result<(Lease, Committed), BlobError> {
        let (lease, body) = (self.judge(found, tick.now)?, &self.body);
        // The sum of a body that is the content; otherwise whatever the client says.
        let content_md5 = match self.kind {
            BlobType::Block => body.md5.map(Vec::from),
            BlobType::Append { .. } | BlobType::Page { .. } => self.headers.content_md5.clone(),
        };
        let content = match (self.kind, &body.staged) {
            (BlobType::Page { .. }, _) => ContentRef::Pages(PageView::new(tick.id(2))),
            (BlobType::Block | BlobType::Append { .. }, Some(staged)) => ContentRef::Whole(staged.id().0),
            (BlobType::Block | BlobType::Append { .. }, None) => ContentRef::Empty,
        };
        let committed = Committed {
            headers: HttpHeaders { content_md5, ..self.headers.clone() },
            metadata: self.metadata.clone(),
            ..Committed::new(self.kind, content, self.pages + body.length, tick)
        };
        Ok((lease, self.options.to(committed, &self.container, account, tick)))
    }
}

/// Whether the blob may be put.
impl ReadOperation for PutBlob {
    type Outcome = ();
    type Refusal = BlobError;

    fn apply(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<(), Halt> {
        let container = model::guard(rows, account, &self.container)?;
        encryption::effective(&container, self.encryption.as_ref())?;
        let found = model::find_blob(rows, &blob_key(container.generation, &self.name))?;
        self.judge(found.as_ref().filter(|blob| blob.is_there(now)), now).map_err(refuse)?;
        Ok(())
    }
}

impl Operation for PutBlob {
    /// What was written, and how it is encrypted.
    type Outcome = (Written, Option<Encryption>);
    type Refusal = BlobError;

    fn partition(&self, account: u64) -> Key {
        model::blob_partition(account, &self.container, &self.name)
    }

    fn apply(
        &self,
        rows: &dyn Rows,
        account: u64,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<(Written, Option<Encryption>), Halt> {
        self.keeping.prefetch(rows);
        let container = model::guard(rows, account, &self.container)?;
        // In the order of the look before a large body: the size does not matter for what is told.
        let encryption = encryption::effective(&container, self.encryption.as_ref())?;
        let key = blob_key(container.generation, &self.name);
        let found = model::find_blob(rows, &key)?;
        let there = found.as_ref().filter(|blob| blob.is_there(tick.now));
        let (lease, mut state) = self.decide(there, account, tick).map_err(refuse)?;
        state.encryption.clone_from(&encryption);
        if let Some(staged) = &self.body.staged {
            changes.store(staged, tick.id(1));
        }
        if let ContentRef::Pages(view) = state.content {
            view.create(changes);
        }
        let written = soft_delete::replace(rows, key, found, (lease, state), self.keeping, tick, changes)?;
        Ok((written, encryption))
    }
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let (mut op, sums) = parse(&call)?;
    let mut asked = call.encryption()?;
    let announced = announced(call.head, body, op.kind)?;
    op.encryption = asked.encryption.clone();
    let op = Arc::new(op);
    let announced = announced.sealed_with(asked.key.as_ref().map(|key| &key.secret));
    let wanted = Wanted { md5: true, ..Wanted::by(call.head, &sums.of_body) };
    let expected = sums.expected();
    let sums_of_body = Sums { wanted, given: &expected };
    let mut received =
        upload::receive_judged(call.engine, call.head, body, announced, sums_of_body, call.read(&op)).await?;

    let mut answer = reply::reply(StatusCode::CREATED);
    if op.kind == BlobType::Block {
        upload::answer_sums(&mut answer.headers, call.head, &sums.of_body, received.md5, received.crc64);
    }
    let mut op = Arc::unwrap_or_clone(op);
    asked.seal_metadata(&mut op.metadata)?;
    asked.seal_md5(&mut received.md5)?;
    let op = PutBlob { body: received, encryption: asked.encryption, ..op };
    let (written, encryption) = call.commit(&Arc::new(op)).await?;
    reply::set_written(&mut answer.headers, written);
    reply::set_encrypted(&mut answer.headers, encryption.as_ref());
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, HELD, Interrupted, MINE, NOW, YOURS, committed, header, refusal, request, tick};
    use auth::Settings;
    use concurrency::{ETag, ETagMatch};
    use wire::http::BodyError;

    fn ask(lease: Option<LeaseId>, conditions: Conditions) -> PutBlob {
        PutBlob {
            container: ContainerName::parse("cont").unwrap(),
            name: BlobName::parse("blob").unwrap(),
            conditions,
            lease,
            headers: HttpHeaders::default(),
            metadata: vec![],
            options: CreationOptions::default(),
            kind: BlobType::Block,
            pages: 0,
            encryption: None,
            body: Received::nothing(0),
            keeping: Keeping::new(1, &Settings::USUAL),
            reach: Reach::Overwrite,
        }
    }

    fn blob(lease: Lease) -> Blob {
        Blob { uid: 3, lease, committed: Some(committed()), snapshots: 2, ..Blob::default() }
    }

    fn if_match(stamp: Timestamp) -> Conditions {
        let etag = ETag::new(stamp).to_string();
        Conditions { if_match: Some(ETagMatch::OneOf(vec![etag])), ..Conditions::default() }
    }

    fn create_only() -> Conditions {
        Conditions { if_none_match: Some(ETagMatch::Any), ..Conditions::default() }
    }

    #[test]
    fn the_lease_stays_and_the_version_is_new() {
        let found = blob(HELD);
        let (lease, new) = ask(Some(MINE), Conditions::default()).decide(Some(&found), 1, tick()).unwrap();
        assert_eq!(lease, HELD);
        assert_ne!(new.version, found.committed.unwrap().version);
    }

    #[test]
    fn an_ended_lease_is_forgotten() {
        let new = ask(None, Conditions::default()).decide(Some(&blob(Lease::Broken { id: MINE })), 1, tick());
        assert_eq!(new.unwrap().0, Lease::Available);
    }

    #[test]
    fn each_refusal() {
        let judge = |ask: PutBlob, found: Option<Blob>| ask.judge(found.as_ref(), NOW).map(|_| ());
        let free = Conditions::default;
        assert_eq!(judge(ask(None, free()), Some(blob(HELD))), Err(BlobError::LeaseIdMissing));
        assert_eq!(judge(ask(Some(YOURS), free()), Some(blob(HELD))), Err(BlobError::LeaseIdMismatchWithBlobOperation));
        assert_eq!(judge(ask(Some(MINE), free()), None), Err(BlobError::LeaseNotPresentWithBlobOperation));
        assert_eq!(judge(ask(Some(MINE), free()), Some(blob(Lease::Broken { id: MINE }))), Err(BlobError::LeaseLost));
        assert_eq!(judge(ask(None, if_match(Timestamp(1))), None), Err(BlobError::ConditionNotMet));
        assert_eq!(
            judge(ask(None, if_match(Timestamp(1))), Some(blob(Lease::Available))),
            Err(BlobError::ConditionNotMet)
        );
        assert_eq!(judge(ask(None, create_only()), Some(blob(Lease::Available))), Err(BlobError::BlobAlreadyExists));
        assert_eq!(judge(ask(None, create_only()), None), Ok(()));
    }

    #[test]
    fn two_faults_at_once() {
        let judge = |ask: PutBlob, found: Option<Blob>| ask.judge(found.as_ref(), NOW).map(|_| ());
        // A stale ETag and no lease: the condition is judged first.
        assert_eq!(judge(ask(None, if_match(Timestamp(1))), Some(blob(HELD))), Err(BlobError::ConditionNotMet));
        // "Must not exist" is judged after the lease, and whoever holds the lease may replace the blob.
        assert_eq!(judge(ask(None, create_only()), Some(blob(HELD))), Err(BlobError::LeaseIdMissing));
        assert_eq!(judge(ask(Some(MINE), create_only()), Some(blob(HELD))), Ok(()));
    }

    #[test]
    fn the_right_to_create_is_no_right_to_overwrite() {
        let ask = PutBlob { reach: Reach::CreateOnly, ..ask(None, if_match(Timestamp(1))) };
        let found = blob(Lease::Available);
        assert_eq!(ask.judge(Some(&found), NOW), Err(BlobError::UnauthorizedBlobOverwrite));
        let ask = PutBlob { conditions: Conditions::default(), ..ask };
        assert_eq!(ask.judge(None, NOW), Ok(Lease::Available));
    }

    #[test]
    fn a_blob_of_uncommitted_blocks_counts_as_missing() {
        let found = Blob { committed: None, ..blob(Lease::Available) };
        assert_eq!(ask(None, create_only()).judge(Some(&found), NOW), Ok(Lease::Available));
    }

    #[tokio::test]
    async fn the_answer_carries_the_kind_of_sum_that_was_sent() {
        let bench = Bench::with_container().await;
        let md5 = "XUFAKrxLKna5cZ2REBfFkg==";
        let put = async |headers: &[(&str, &str)]| {
            let all = [&[("x-ms-blob-type", "BlockBlob")], headers].concat();
            bench.call("PUT", "cont/blob", &all, b"hello").await
        };
        let answer = put(&[]).await.unwrap();
        assert_eq!((answer.status.as_u16(), header(&answer, "content-md5")), (201, None));
        assert!(header(&answer, "x-ms-content-crc64").is_some());
        let answer = put(&[("content-md5", "XUFAKrxLKna5cZ2REBfFkg==")]).await.unwrap();
        assert_eq!((header(&answer, "content-md5"), header(&answer, "x-ms-content-crc64")), (Some(md5), None));
        let refused = refusal(put(&[("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")]).await);
        assert!(matches!(refused, BlobError::Request(RequestError::Md5Mismatch { .. })));
        let refused = refusal(put(&[("x-ms-content-crc64", "AQAAAAAAAAA=")]).await);
        assert!(matches!(refused, BlobError::Request(RequestError::Crc64Mismatch { .. })));
        let refused = refusal(put(&[("x-ms-blob-content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")]).await);
        assert!(matches!(refused, BlobError::Request(RequestError::Md5Mismatch { .. })));
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        assert_eq!(header(&told, "content-md5"), Some(md5));
    }

    #[tokio::test]
    async fn what_is_refused_leaves_the_blob_as_it_was() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"first").await;
        let figures = bench.figures();
        let wrong = [("x-ms-blob-type", "BlockBlob"), ("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")];
        refusal(bench.call("PUT", "cont/blob", &wrong, b"second").await);
        let stale = [("x-ms-blob-type", "BlockBlob"), ("if-match", "\"0x1\"")];
        assert_eq!(refusal(bench.call("PUT", "cont/blob", &stale, b"second").await), BlobError::ConditionNotMet);
        assert_eq!(bench.figures(), figures);
        assert_eq!(bench.get("cont/blob").await, b"first");
        // With both faults, and whatever the size, that of the blob is told.
        let both = [wrong[0], wrong[1], stale[1]];
        for body in [b"second".to_vec(), vec![7; engine::INLINE_MAX + 1]] {
            assert_eq!(refusal(bench.call("PUT", "cont/blob", &both, &body).await), BlobError::ConditionNotMet);
        }
    }

    #[tokio::test]
    async fn bodies_that_do_not_keep_their_word() {
        let bench = Bench::with_container().await;
        let headers = [("x-ms-blob-type", "BlockBlob")];
        for announced in [4, 6] {
            let result = bench.call_with("PUT", "cont/blob", &headers, b"hello", Some(announced)).await;
            assert!(matches!(result, Err(Failure::Body(BodyError::Incomplete))), "{announced}");
        }
        let result = bench.call_with("PUT", "cont/blob", &headers, b"hello", None).await;
        assert_eq!(refusal(result), BlobError::Request(RequestError::MissingContentLengthHeader));
        let result = bench.call_with("PUT", "cont/blob", &headers, b"", Some(5_001 * MIB)).await;
        assert_eq!(refusal(result), BlobError::Request(RequestError::RequestBodyTooLarge { most: 5_000 * MIB }));
        assert_eq!(refusal(bench.call("GET", "cont/blob", &[], b"").await), BlobError::BlobNotFound);
    }

    #[tokio::test]
    async fn a_refusal_comes_before_the_body_is_asked_for() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"first").await;
        let stale = [("x-ms-blob-type", "BlockBlob"), ("if-match", "\"0x1\"")];
        let result = bench.call_unread("PUT", "cont/blob", &stale).await;
        assert_eq!(refusal(result), BlobError::ConditionNotMet);
        let result = bench.call_unread("PUT", "gone/blob", &stale).await;
        assert_eq!(refusal(result), BlobError::ContainerNotFound);
    }

    /// A scope that the container does not allow, and a condition that is not met.
    #[tokio::test]
    async fn what_is_told_does_not_depend_on_the_size() {
        let mut bench = Bench::new().await;
        bench.settings.encryption_scopes = vec!["one".to_owned(), "two".to_owned()];
        let container = [("x-ms-default-encryption-scope", "one"), ("x-ms-deny-encryption-scope-override", "true")];
        bench.call("PUT", "cont?restype=container", &container, b"").await.unwrap();
        let both = [("x-ms-blob-type", "BlockBlob"), ("x-ms-encryption-scope", "two"), ("if-match", "\"0x1\"")];
        for size in [1, engine::INLINE_MAX + 1] {
            let refused = refusal(bench.call("PUT", "cont/blob", &both, &vec![7; size]).await);
            assert_eq!(refused, BlobError::RequestForbiddenByContainerEncryptionPolicy, "{size}");
        }
    }

    /// A client that waits for the word sends nothing before it, however little it has to send.
    #[tokio::test]
    async fn a_small_body_is_asked_for_after_the_refusal_if_the_client_waits_for_that() {
        let bench = Bench::with_container().await;
        for (headers, asked) in [(&[("expect", "100-continue")][..], 0), (&[], 1)] {
            let all = [&[("x-ms-blob-type", "BlockBlob")], headers].concat();
            let mut body = Cut { asked: 0 };
            let result = bench.send(request("PUT", "gone/blob", &all), &mut body).await;
            assert_eq!(refusal(result), BlobError::ContainerNotFound, "{headers:?}");
            assert_eq!(body.asked, asked, "{headers:?}");
        }
    }

    /// A small body that ends before its first byte. It counts how often it was asked for.
    struct Cut {
        asked: usize,
    }

    impl Body for Cut {
        fn length(&self) -> Option<u64> {
            Some(10)
        }

        fn next(&mut self) -> engine::BoxFuture<'_, Option<Result<bytes::Bytes, BodyError>>> {
            self.asked += 1;
            Box::pin(async { Some(Err(BodyError::Incomplete)) })
        }
    }

    #[tokio::test]
    async fn other_types_and_unknown_headers_are_refused() {
        let bench = Bench::with_container().await;
        let result = bench.call("PUT", "cont/blob", &[("x-ms-blob-type", "Blob")], b"").await;
        assert_eq!(refusal(result), BlobError::header("x-ms-blob-type", "Blob"));
        let headers = [("x-ms-blob-type", "BlockBlob"), ("x-ms-expiry-option", "a")];
        let result = bench.call("PUT", "cont/blob", &headers, b"").await;
        assert_eq!(refusal(result), BlobError::BlobOperationNotSupported);
    }

    #[tokio::test]
    async fn a_page_blob_begins_as_zeros() {
        let bench = Bench::with_container().await;
        let (kind, length, number) = ("x-ms-blob-type", "x-ms-blob-content-length", "x-ms-blob-sequence-number");
        let put = async |headers: &[(&str, &str)], body: &[u8]| {
            bench.call("PUT", "cont/blob", &[&[(kind, "PageBlob")], headers].concat(), body).await
        };
        let header_of = BlobError::header;
        assert_eq!(
            refusal(put(&[], b"").await),
            BlobError::Request(RequestError::MissingRequiredHeader { name: length })
        );
        assert_eq!(refusal(put(&[(length, "100")], b"").await), header_of(length, "100"));
        assert_eq!(refusal(put(&[(length, "8796093022720")], b"").await), header_of(length, "8796093022720"));
        assert_eq!(refusal(put(&[(length, "512"), (number, "-1")], b"").await), header_of(number, "-1"));
        assert_eq!(refusal(put(&[(length, "512")], b"x").await), header_of("content-length", "1"));
        let tier = refusal(put(&[(length, "512"), ("x-ms-access-tier", "Hot")], b"").await);
        assert_eq!(tier, BlobError::AccessTierNotSupportedForBlobType);
        assert_eq!(put(&[(length, "1536"), (number, "9")], b"").await.unwrap().status, 201);
        assert_eq!(bench.get("cont/blob").await, [0; 1_536]);
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        for (name, value) in [
            (kind, Some("PageBlob")),
            (number, Some("9")),
            ("content-length", Some("1536")),
            ("x-ms-access-tier", None),
        ] {
            assert_eq!(header(&told, name), value, "{name}");
        }
        let list = bench.text("GET", "cont?restype=container&comp=list").await;
        let shown =
            "<x-ms-blob-sequence-number>9</x-ms-blob-sequence-number><BlobType>PageBlob</BlobType><LeaseStatus>";
        assert!(list.contains(shown), "{list}");
        put(&[(length, "0")], b"").await.unwrap();
        assert_eq!(bench.get("cont/blob").await, b"");
        bench.call("DELETE", "cont/blob", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(bench.figures(), (1, 0));
    }

    #[tokio::test]
    async fn an_append_blob_begins_empty() {
        let bench = Bench::with_container().await;
        let kind = ("x-ms-blob-type", "AppendBlob");
        let refused = bench.call("PUT", "cont/blob", &[kind], b"x").await;
        assert_eq!(refusal(refused), BlobError::header("content-length", "1"));
        let refused = bench.call("PUT", "cont/blob", &[kind, ("x-ms-access-tier", "Cool")], b"").await;
        assert_eq!(refusal(refused), BlobError::AccessTierNotSupportedForBlobType);
        let md5 = "XUFAKrxLKna5cZ2REBfFkg==";
        let made = bench.call("PUT", "cont/blob", &[kind, ("x-ms-blob-content-md5", md5)], b"").await.unwrap();
        assert_eq!((made.status.as_u16(), header(&made, "x-ms-content-crc64")), (201, None));
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        let expected = [
            ("x-ms-blob-type", Some("AppendBlob")),
            ("x-ms-blob-committed-block-count", Some("0")),
            ("x-ms-blob-sealed", None),
            ("x-ms-access-tier", None),
            ("content-length", Some("0")),
            ("content-md5", Some(md5)),
        ];
        for (name, value) in expected {
            assert_eq!(header(&told, name), value, "{name}");
        }
        // One type replaces another, and what it held is gone.
        bench.put("cont/blob", b"x").await;
        let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        assert_eq!(header(&told, "x-ms-blob-type"), Some("BlockBlob"));
        assert_eq!(header(&told, "x-ms-blob-committed-block-count"), None);
        bench.call("PUT", "cont/blob", &[kind], b"").await.unwrap();
        assert_eq!(bench.get("cont/blob").await, b"");
    }

    #[tokio::test]
    async fn of_two_writers_with_one_etag_the_second_loses() {
        let bench = Bench::with_container().await;
        let etag = bench.put("cont/blob", b"first").await;
        let headers = [("x-ms-blob-type", "BlockBlob"), ("if-match", etag.as_str())];
        // Both were let in; the other one commits before us.
        let interrupted = Interrupted::by(&bench, request("PUT", "cont/blob", &headers), b"theirs");
        let refused = interrupted.call("PUT", "cont/blob", &headers, b"ours").await;
        assert_eq!(refusal(refused), BlobError::ConditionNotMet);
        assert_eq!(bench.get("cont/blob").await, b"theirs");
        bench.sweep().await;
        assert_eq!(bench.figures(), (3, 1));
    }

    #[tokio::test]
    async fn nothing_is_written_into_a_container_that_was_deleted_meanwhile() {
        let bench = Bench::with_container().await;
        let delete = request("DELETE", "cont?restype=container", &[]);
        let interrupted = Interrupted::by(&bench, delete, b"");
        let refused = interrupted.call("PUT", "cont/blob", &[("x-ms-blob-type", "BlockBlob")], b"late").await;
        assert_eq!(refusal(refused), BlobError::ContainerNotFound);
        bench.sweep().await;
        assert_eq!(bench.figures(), (0, 0));
    }
}
