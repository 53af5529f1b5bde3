//! Set Blob Tags: replace all of them. Neither ETag nor Last-Modified change.

use std::sync::Arc;

use concurrency::{Conditions, LeaseId, Timestamp};
use content::upload;
use engine::{Changes, Commit, Rows, commit, read};
use wire::checksum::{Crc64, Md5};
use wire::http::{Body, Head, Reply, StatusCode, collect};
use wire::names::{BlobName, ContainerName};
use wire::tags::Tags;

use super::Call;
use crate::error::BlobError;
use crate::model::Which;
use crate::model::tags::Tagged;
use crate::model::target::Target;
use crate::model::{self, Committed, Halt, refuse};
use crate::request::BodySums;
use crate::{Failure, reply, request};

/// Ten tags with the longest keys and values fit, even if every character of them is written as a reference.
const BODY_BYTES_MAX: usize = 64 * 1024;

struct SetBlobTags {
    container: ContainerName,
    name: BlobName,
    which: Which,
    conditions: Conditions,
    lease: Option<LeaseId>,
    sums: BodySums,
}

fn parse(head: &Head) -> Result<SetBlobTags, BlobError> {
    let (container, name) = request::blob(head)?;
    request::no_foreign_headers(head)?;
    let which = request::which(head)?;
    if matches!(which, Which::Snapshot(_)) && !head.since("2020-08-04") {
        return Err(BlobError::InvalidOperation);
    }
    Ok(SetBlobTags {
        container,
        name,
        which,
        conditions: request::tag_conditions(head)?,
        lease: request::lease_id(head)?,
        sums: request::body_sums(head)?,
    })
}

impl SetBlobTags {
    /// Whether it may be tagged. The lease stands as it is: nothing of the blob is written.
    fn judge(&self, found: Option<Target>, now: Timestamp) -> Result<Target, BlobError> {
        self.conditions.check_write(found.as_ref().map(|target| target.state.version()).as_ref())?;
        let target = found.ok_or(BlobError::BlobNotFound)?;
        target.lease.check_write(self.lease, now).map_err(BlobError::lease_on_blob)?;
        target.state.check_no_copy(now)?;
        Ok(target)
    }

    fn look(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<Target, Halt> {
        let generation = model::generation(rows, account, &self.container)?;
        let found = Target::find(rows, generation, &self.name, self.which)?;
        self.judge(found, now).map_err(refuse)
    }
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let op = Arc::new(parse(call.head)?);
    let (early, account) = (Arc::clone(&op), call.account);
    read(call.engine, move |rows, now| early.look(rows, account, now)).await?;

    let document = collect(body, BODY_BYTES_MAX).await?;
    upload::verify(&op.sums, op.sums.md5.map(|_| Md5::of(&document)), op.sums.crc64.map(|_| Crc64::of(&document)))?;
    let tags = Tags::parse_xml(&document).map_err(BlobError::from)?;

    let partition = model::blob_partition(account, &op.container, &op.name);
    commit(call.engine, partition, move |rows, tick| {
        let target = op.look(rows, account, tick.now)?;
        let after = Committed { tags: Tagged::new(account, &op.container, &tags), ..target.state.clone() };
        let mut changes = Changes::none();
        target.store(after, &mut changes);
        Ok(Commit { changes, outcome: () })
    })
    .await?;
    Ok(reply::reply(StatusCode::NO_CONTENT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Ask, Bench, HELD, MINE, NOW, YOURS, header, refusal, request};
    use concurrency::{ETagMatch, Lease, TagExpression};
    use service::RequestError;
    use wire::http::FixedBody;
    use wire::tags::TagsError;

    const URL: &str = "cont/blob?comp=tags";

    fn document(pairs: &[(&str, &str)]) -> Vec<u8> {
        let tag = |(key, value): &(&str, &str)| format!("<Tag><Key>{key}</Key><Value>{value}</Value></Tag>");
        let tags: String = pairs.iter().map(tag).collect();
        format!("<Tags><TagSet>{tags}</TagSet></Tags>").into_bytes()
    }

    #[test]
    fn each_refusal_and_two_at_once() {
        let ask = |lease, conditions| SetBlobTags {
            container: ContainerName::parse("cont").unwrap(),
            name: BlobName::parse("blob").unwrap(),
            which: Which::Base,
            conditions,
            lease,
            sums: BodySums::default(),
        };
        let free = Conditions::default;
        let stale = || Conditions { if_match: Some(ETagMatch::OneOf(vec!["0x1".into()])), ..free() };
        let red = || Conditions { if_tags: TagExpression::parse("colour='red'"), ..free() };
        let judge = |op: SetBlobTags, found: Option<Target>| op.judge(found, NOW).err();
        let blob = Target::current(Lease::Available);
        let held = Target::current(HELD);
        assert_eq!(judge(ask(None, free()), Some(blob.clone())), None);
        assert_eq!(judge(ask(None, free()), None), Some(BlobError::BlobNotFound));
        assert_eq!(judge(ask(None, free()), Some(held.clone())), Some(BlobError::LeaseIdMissing));
        assert_eq!(judge(ask(Some(MINE), free()), Some(held.clone())), None);
        let mismatch = Some(BlobError::LeaseIdMismatchWithBlobOperation);
        assert_eq!(judge(ask(Some(YOURS), free()), Some(held.clone())), mismatch);
        assert_eq!(judge(ask(None, red()), Some(blob)), Some(BlobError::ConditionNotMet));
        // A stale ETag and no lease: the condition is judged first.
        assert_eq!(judge(ask(None, stale()), Some(held)), Some(BlobError::ConditionNotMet));
    }

    #[tokio::test]
    async fn all_of_them_are_replaced_and_the_version_stays() {
        let bench = Bench::with_container().await;
        let put = [("x-ms-blob-type", "BlockBlob"), ("x-ms-tags", "colour=red&a+b=%2B")];
        let etag = bench.call("PUT", "cont/blob", &put, b"x").await.unwrap().headers["etag"].clone();
        let told = bench.text("GET", URL).await;
        let both = "<Tag><Key>colour</Key><Value>red</Value></Tag><Tag><Key>a b</Key><Value>+</Value></Tag>";
        assert!(told.contains(both), "{told}");
        let set = bench.call("PUT", URL, &[], &document(&[("size", "")])).await.unwrap();
        assert_eq!(set.status, StatusCode::NO_CONTENT);
        let head = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        assert_eq!((header(&head, "x-ms-tag-count"), &head.headers["etag"]), (Some("1"), &etag));
        let list = bench.text("GET", "cont?restype=container&comp=list&include=tags").await;
        assert!(
            list.contains("<TagCount>1</TagCount>") && list.contains("<Tag><Key>size</Key><Value /></Tag>"),
            "{list}"
        );
        let list = bench.text("GET", "cont?restype=container&comp=list").await;
        assert!(list.contains("<TagCount>1</TagCount>") && !list.contains("<Tags>"), "{list}");
        bench.call("PUT", URL, &[], &document(&[])).await.unwrap();
        let head = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
        assert_eq!(header(&head, "x-ms-tag-count"), None);
        assert!(bench.text("GET", URL).await.contains("<Tags><TagSet></TagSet></Tags>"));
    }

    #[tokio::test]
    async fn a_snapshot_keeps_its_own_and_whoever_overwrites_says_them_anew() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"x").await;
        bench.call("PUT", URL, &[], &document(&[("a", "1")])).await.unwrap();
        let at = bench.call("PUT", "cont/blob?comp=snapshot", &[], b"").await.unwrap();
        let at = header(&at, "x-ms-snapshot").unwrap().to_owned();
        bench.call("PUT", URL, &[], &document(&[("a", "2")])).await.unwrap();
        let kept = bench.text("GET", &format!("{URL}&snapshot={at}")).await;
        assert!(kept.contains("<Value>1</Value>"), "{kept}");
        // Since 2020-08-04 a snapshot can be tagged anew; it is not found by its tags.
        let of_snapshot = format!("{URL}&snapshot={at}");
        let old = Head { version: "2020-06-12".to_owned(), ..request("PUT", &of_snapshot, &[]) };
        let refused = bench.send(old, &mut FixedBody::new(document(&[]))).await;
        assert_eq!(refusal(refused), BlobError::InvalidOperation);
        bench.call("PUT", &of_snapshot, &[], &document(&[("a", "3")])).await.unwrap();
        assert!(bench.text("GET", &of_snapshot).await.contains("<Value>3</Value>"));
        assert!(bench.text("GET", URL).await.contains("<Value>2</Value>"));
        assert!(!bench.text("GET", "?comp=blobs&where=a%3D%273%27").await.contains("<Blob>"));
        assert_eq!(bench.problems().await, Vec::<String>::new());
        bench.put("cont/blob", b"y").await;
        assert!(!bench.text("GET", URL).await.contains("<Tag>"));
    }

    #[tokio::test]
    async fn bad_tags_change_nothing() {
        let bench = Bench::with_container().await;
        bench.put("cont/blob", b"x").await;
        bench.call("PUT", URL, &[], &document(&[("a", "1")])).await.unwrap();
        let eleven: Vec<(String, &str)> = (0..11).map(|n| (format!("k{n}"), "v")).collect();
        let eleven: Vec<(&str, &str)> = eleven.iter().map(|(key, value)| (key.as_str(), *value)).collect();
        let long = "k".repeat(129);
        let bad = [
            (document(&[("a", "*")]), BlobError::Tags(TagsError::InvalidTag)),
            (document(&[("", "1")]), BlobError::Tags(TagsError::EmptyTagName)),
            (document(&[("a", "1"), ("a", "2")]), BlobError::Tags(TagsError::DuplicateTagNames)),
            (document(&[(&long, "1")]), BlobError::Tags(TagsError::TagsTooLarge)),
            (document(&eleven), BlobError::Tags(TagsError::TagsTooLarge)),
            (b"<Tags/>".to_vec(), BlobError::Request(RequestError::MissingRequiredXmlNode { node: "TagSet" })),
            (b"".to_vec(), BlobError::Request(RequestError::InvalidXmlDocument)),
        ];
        for (body, expected) in bad {
            assert_eq!(refusal(bench.call("PUT", URL, &[], &body).await), expected);
        }
        let wrong = [("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")];
        let refused = refusal(bench.call("PUT", URL, &wrong, &document(&[])).await);
        assert!(matches!(refused, BlobError::Request(RequestError::Md5Mismatch { .. })));
        let put = [("x-ms-blob-type", "BlockBlob"), ("x-ms-tags", "a")];
        let refused = refusal(bench.call("PUT", "cont/blob", &put, b"y").await);
        assert_eq!(refused, BlobError::Tags(TagsError::InvalidTag));
        assert!(bench.text("GET", URL).await.contains("<Value>1</Value>"));
        assert_eq!(bench.get("cont/blob").await, b"x");
    }

    #[tokio::test]
    async fn conditions_have_names_of_their_own() {
        let bench = Bench::with_container().await;
        let etag = bench.put("cont/blob", b"x").await;
        let tags = document(&[("a", "1")]);
        for name in ["x-ms-blob-if-match", "if-match"] {
            bench.call("PUT", URL, &[(name, &etag)], &tags).await.unwrap();
            let refused = bench.call("PUT", URL, &[(name, "\"0x1\"")], &tags).await;
            assert_eq!(refusal(refused), BlobError::ConditionNotMet, "{name}");
            let refused = bench.call("GET", URL, &[(name, "\"0x1\"")], b"").await;
            assert_eq!(refusal(refused), BlobError::ConditionNotMet, "{name}");
        }
        let unchanged = bench.call("GET", URL, &[("x-ms-blob-if-none-match", &etag)], b"").await;
        assert_eq!(refusal(unchanged), BlobError::ConditionNotMet);
        let bad = bench.call("PUT", URL, &[("x-ms-if-tags", "@container='cont'")], &tags).await;
        assert_eq!(refusal(bad), BlobError::header("x-ms-if-tags", "@container='cont'"));
    }

    /// Every operation that takes `x-ms-if-tags`, on a blob that is not tagged so, and on one that is.
    #[tokio::test]
    async fn every_operation_asks_for_the_tags() {
        let bench = Bench::with_container().await;
        let block = ("x-ms-blob-type", "BlockBlob");
        let lease = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15")];
        let release = [("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "0")];
        let update = [("x-ms-page-write", "clear"), ("range", "bytes=0-511")];
        let all: [(&str, &[Ask<'_>]); 3] = [
            (
                "BlockBlob",
                &[
                    ("GET", "", &[], b""),
                    ("HEAD", "", &[], b""),
                    ("GET", "?comp=metadata", &[], b""),
                    ("GET", "?comp=tags", &[], b""),
                    ("GET", "?comp=blocklist", &[], b""),
                    ("PUT", "?comp=properties", &[], b""),
                    ("PUT", "?comp=metadata", &[], b""),
                    ("PUT", "?comp=lease", &lease, b""),
                    ("PUT", "?comp=lease", &release, b""),
                    ("PUT", "?comp=snapshot", &[], b""),
                    (
                        "PUT",
                        "?comp=tags",
                        &[],
                        b"<Tags><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tags>",
                    ),
                    ("PUT", "?comp=blocklist", &[("x-ms-tags", "a=1")], b"<BlockList/>"),
                    ("PUT", "", &[block, ("x-ms-tags", "a=1")], b""),
                    ("DELETE", "", &[("x-ms-delete-snapshots", "include")], b""),
                ],
            ),
            ("PageBlob", &[("PUT", "?comp=page", &update, b""), ("GET", "?comp=pagelist", &[], b"")]),
            ("AppendBlob", &[("PUT", "?comp=appendblock", &[], b"x")]),
        ];
        for (kind, asks) in all {
            let url = format!("cont/{kind}");
            let put = [("x-ms-blob-type", kind), ("x-ms-blob-content-length", "512"), ("x-ms-tags", "a=1")];
            bench.call("PUT", &url, &put, b"").await.unwrap();
            for (method, query, headers, body) in asks {
                let url = format!("{url}{query}");
                let with = |tags| [*headers, &[("x-ms-if-tags", tags)]].concat();
                let refused = bench.call(method, &url, &with("a='2'"), body).await;
                assert_eq!(refusal(refused), BlobError::ConditionNotMet, "{method} {url}");
                let refused = bench.call(method, &url, &with("a"), body).await;
                assert_eq!(refusal(refused), BlobError::header("x-ms-if-tags", "a"), "{method} {url}");
                let done = bench.call(method, &url, &with("a='1' AND a <> '2'"), body).await;
                assert!(done.is_ok(), "{method} {url}: {done:?}");
            }
        }
    }
}
