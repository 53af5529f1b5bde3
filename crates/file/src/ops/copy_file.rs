//! Copy File: makes a file what another file, a blob, or something elsewhere is.
//!
//! A source in this server is copied in the request, by reference, unless it has too many contents. What is elsewhere is fetched
//! beside the requests, and the file is `pending` until all of it is there; see [`crate::background_copy`].

use std::sync::Arc;

use concurrency::Timestamp;
use concurrency::share_mode::RestAccess;
use content::background_copy::{Job, JobSource};
use content::copy_state::CopyState;
use content::map::FileView;
use content::source::{CopySourceFault, LocalPlace, SourceReader, announced_length, answered_properties};
use engine::{Changes, Key, Rows, Stop, Tick};
use service::reply;
use service::request::no_body;
use service::sources::Manner;
use wire::dates;
use wire::http::{Body, Head, HeaderMap, HeaderName, HeaderValue, Reply, StatusCode, header};
use wire::names::ShareName;

use super::Call;
use crate::announcement::Effect;
use crate::background_copy::FileDestination;
use crate::change::copy::{self, CopiedBytes, Copying, Described};
use crate::change::create::Replacing;
use crate::change::write::MAP_ID;
use crate::change::{create, permission};
use crate::entering::{self, Admission, NodeChange, NodeRead};
use crate::error::FileError;
use crate::model::{Attributes, FileMode, Halt, NfsProperties, refuse, share_key};
use crate::opens::events::Aspects;
use crate::reply::node::{GROUP, MODE, OWNER};
use crate::request::{FILE_BYTES_MAX, flag};
use crate::security::ChildKind;
use crate::source::{FilePlace, Place, Source, at_source, copied_file, halt_at_source, refused};
use crate::tree::{self, Spot, Target};
use crate::{Failure, request, smb_headers};

/// How often a copy begins anew, because its source was replaced or a map had to be made to stand by itself.
const ATTEMPTS_MAX: usize = 16;

fn parse(head: &Head, may_replace: bool) -> Result<(Target, Copying, Source), FileError> {
    let target = request::file(head)?;
    request::only_base(head)?;
    request::no_conditions(head)?;
    let source = Source::parse(head, Manner::Copy)?;
    let smb = smb_headers::parse_copy(head)?;
    let ignores_read_only = flag(head, "x-ms-file-copy-ignore-readonly")?.unwrap_or(false);
    let replacing = Replacing { lease: request::lease_id(head)?, may_replace, ignores_read_only };
    let copying = Copying {
        url: source.wish.url.clone(),
        replacing,
        metadata: request::metadata(head)?,
        attributes: smb.attributes,
        sets_archive: flag(head, "x-ms-file-copy-set-archive")?.unwrap_or(false),
        created: smb.created,
        written: smb.written,
        changed: smb.changed,
        permission: smb.permission,
        nfs: smb.nfs,
    };
    Ok((target, copying, source))
}

/// Whether the file may be copied to, before anybody looks at the source.
struct MayCopy(Replacing);

impl NodeRead for MayCopy {
    type Outcome = ();

    fn admission(&self, _: &Spot) -> Admission {
        Admission::of(RestAccess::Replace)
    }

    fn read(&self, spot: &Spot, _: &dyn Rows, now: Timestamp) -> Result<(), Halt> {
        self.0.judge(spot, now).map(|_lease| ()).map_err(refuse)
    }
}

/// The source as the decision looks at it.
#[derive(Clone, Debug)]
enum Origin {
    /// A file of this server, with the id that the table was entered for.
    File(FilePlace, u64),
    Blob(LocalPlace, Arc<dyn SourceReader>),
    /// What its answer has told.
    Elsewhere(Box<Described>, Option<String>),
}

#[derive(Clone, Debug)]
struct CopyFile {
    copying: Copying,
    origin: Origin,
    account: u64,
    share: ShareName,
}

/// What has become of it.
struct Copied {
    stamp: Timestamp,
    copy: CopyState,
    job: Option<Job>,
}

impl NodeChange for CopyFile {
    type Outcome = Copied;

    fn admission(&self) -> Admission {
        Admission::of(RestAccess::Replace).in_turn()
    }

    fn effect(&self) -> Effect {
        Effect::changed(Aspects::BYTES.and(Aspects::PROPERTIES))
    }

    /// A file that is copied by a map in front of its own goes on in the next epoch of that.
    fn other_partition(&self) -> Option<Key> {
        match &self.origin {
            Origin::File(place, _) => Some(share_key(place.account, &place.target.share)),
            Origin::Blob(..) | Origin::Elsewhere(..) => None,
        }
    }

    fn announce(&self, spot: &Spot, rows: &dyn Rows) {
        spot.share.announce_count(rows);
        if self.copying.permission.is_some() {
            permission::announce_new(spot, &create::inheriting(), ChildKind::File, rows);
        }
        // Whether the source is there does not matter yet.
        if let Origin::File(place, _) = &self.origin {
            _ = tree::find(rows, place.account, &place.target);
        }
    }

    fn apply(&self, spot: &Spot, rows: &dyn Rows, tick: Tick, changes: &mut Changes) -> Result<Copied, Halt> {
        self.copying.replacing.judge(spot, tick.now).map_err(refuse)?;
        match &self.origin {
            Origin::File(place, id) => self.copy_file(spot, (place, *id), rows, tick, changes),
            Origin::Blob(place, blobs) => self.copy_blob(spot, (place, blobs), rows, tick, changes),
            Origin::Elsewhere(described, etag) => {
                let view = FileView::new(tick.id(MAP_ID));
                view.create(changes);
                self.wait(spot, described, (view, etag.clone(), None), rows, tick, changes)
            }
        }
    }
}

impl CopyFile {
    fn copy_file(
        &self,
        spot: &Spot,
        (place, id): (&FilePlace, u64),
        rows: &dyn Rows,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<Copied, Halt> {
        let from = tree::find(rows, place.account, &place.target).map_err(halt_at_source)?;
        let node = copied_file(&from, tick.now).map_err(|error| refuse(refused(&error.into())))?;
        if node.id != id {
            return Err(refuse(FileError::SourceMoved));
        }
        let described = Described::file(&from, node, &self.copying, rows)?;
        let view = copy::branch((&from, node), spot, rows, tick, changes)?;
        self.done(spot, &described, view, rows, tick, changes)
    }

    fn copy_blob(
        &self,
        spot: &Spot,
        (place, blobs): (&LocalPlace, &Arc<dyn SourceReader>),
        rows: &dyn Rows,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<Copied, Halt> {
        let source = blobs.look(place, rows, tick.now).map_err(|stop| match stop {
            Stop::Refused(refusal) => refuse(refused(&refusal)),
            Stop::Unread(unread) => Stop::Unread(unread),
        })?;
        check_length(source.length).map_err(refuse)?;
        let described = Described::blob(&source);
        match copy::share(&source, rows, tick, changes)? {
            CopiedBytes::All(view) => self.done(spot, &described, view, rows, tick, changes),
            CopiedBytes::None(view) => {
                let waiting = (view, Some(source.etag()), Some(place.clone()));
                self.wait(spot, &described, waiting, rows, tick, changes)
            }
        }
    }

    /// All bytes are there.
    fn done(
        &self,
        spot: &Spot,
        described: &Described,
        view: FileView,
        rows: &dyn Rows,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<Copied, Halt> {
        let copy = CopyState::success(&self.copying.url, described.length, tick);
        let bytes = (CopiedBytes::All(view), copy.clone());
        let node = self.copying.apply(spot, described, bytes, rows, tick, changes)?;
        Ok(Copied { stamp: node.stamp, copy, job: None })
    }

    /// The bytes come later.
    fn wait(
        &self,
        spot: &Spot,
        described: &Described,
        (view, etag, local): (FileView, Option<String>, Option<LocalPlace>),
        rows: &dyn Rows,
        tick: Tick,
        changes: &mut Changes,
    ) -> Result<Copied, Halt> {
        let id = spot.id().unwrap_or(tick.id(0));
        let (account, share) = (self.account, self.share.clone());
        let destination = FileDestination { account, share, generation: spot.share.generation, id };
        let (url, content_md5) = (self.copying.url.clone(), described.headers.content_md5.clone());
        let job = Job::new(JobSource { url, etag, content_md5, local }, &destination, tick);
        let copy = CopyState::pending(&self.copying.url, described.length, tick);
        let copy = CopyState { job: Some(job.id), ..copy };
        let bytes = (CopiedBytes::None(view), copy.clone());
        let node = self.copying.apply(spot, described, bytes, rows, tick, changes)?;
        job.begin::<FileDestination>(changes);
        Ok(Copied { stamp: node.stamp, copy, job: Some(job) })
    }
}

fn check_length(length: u64) -> Result<(), FileError> {
    if length <= FILE_BYTES_MAX {
        return Ok(());
    }
    Err(CopySourceFault::unanswered("The copy source is larger than a file may be.").into())
}

/// What the answer of a source elsewhere tells.
fn described(headers: &HeaderMap, length: u64) -> Described {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let time = |name: &str| text(name).and_then(dates::parse_iso);
    let (http, metadata) = answered_properties(headers);
    Described {
        length,
        headers: http,
        metadata,
        attributes: text("x-ms-file-attributes").and_then(Attributes::parse),
        created: time("x-ms-file-creation-time"),
        written: time("x-ms-file-last-write-time"),
        changed: time("x-ms-file-change-time"),
        permission: None,
        nfs: nfs(headers),
    }
}

/// Owner, group and mode, if the answer tells all of them.
fn nfs(headers: &HeaderMap) -> Option<NfsProperties> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let (owner, group) = (text(&OWNER)?.parse().ok()?, text(&GROUP)?.parse().ok()?);
    Some(NfsProperties { owner, group, mode: FileMode::parse(text(&MODE)?)? })
}

async fn copy_file(
    call: Call<'_>,
    (target, spot): (&Target, Spot),
    copying: &Copying,
    place: &FilePlace,
) -> Result<Copied, Failure> {
    let mut spot = Some(spot);
    let reader = Call { base: service::Call { account: place.account, ..*call }, ..call };
    let copy = |id| change(call, target, copying, Origin::File(place.clone(), id));
    for _ in 0..ATTEMPTS_MAX {
        let (to, from) = ((target, spot.take()), (reader, &place.target));
        match entering::commit_reading(call, to, from, copy, at_source).await {
            Err(Failure::Refused(FileError::SourceMoved)) => {}
            Err(Failure::Refused(FileError::Unsettled { map })) => FileView::settle(call.engine, map).await?,
            result => return result,
        }
    }
    Err(FileError::SourceMoved.into())
}

fn change(call: Call<'_>, target: &Target, copying: &Copying, origin: Origin) -> CopyFile {
    CopyFile { copying: copying.clone(), origin, account: call.account, share: target.share.clone() }
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    // A signature that only lets create does not let replace.
    let (target, copying, source) = parse(call.head, call.asker.caller.has(b'w'))?;
    no_body(body).map_err(FileError::from)?;
    let (spot, ()) = entering::look(call, &target, MayCopy(copying.replacing)).await?;
    let mut begun = None;
    let copied = match source.find(call).await? {
        Place::File(place) => copy_file(call, (&target, spot), &copying, &place).await?,
        Place::Blob(place, blobs) => {
            let change = change(call, &target, &copying, Origin::Blob(place, blobs));
            entering::commit_at(call, &target, Some(spot), change).await?
        }
        Place::Elsewhere => {
            let fetched = source.fetch(call).await?;
            let length = announced_length(&fetched).map_err(FileError::from)?;
            check_length(length)?;
            let etag = fetched.headers.get(header::ETAG).and_then(|etag| etag.to_str().ok()).map(str::to_owned);
            let origin = Origin::Elsewhere(Box::new(described(&fetched.headers, length)), etag);
            begun = Some(fetched);
            let change = change(call, &target, &copying, origin);
            entering::commit_at(call, &target, Some(spot), change).await?
        }
    };
    if let Some(job) = copied.job {
        call.copier.pursue(job, begun);
    }
    let mut answer = reply::reply(StatusCode::ACCEPTED);
    reply::set_version(&mut answer.headers, copied.stamp);
    answer.headers.insert("x-ms-copy-id", reply::value(copied.copy.id));
    answer.headers.insert("x-ms-copy-status", HeaderValue::from_static(copied.copy.status.name()));
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MY_LEASE, Script, Then, blob_url, header, refusal, request as head_of, url};
    use auth::{Caller, Grant, GrantKind, Permissions};
    use concurrency::LeaseRefusal;
    use concurrency::share_mode::Access;
    use service::{Asker, HttpService, RequestError};
    use wire::http::{ErrorReply, FixedBody};

    const ELSEWHERE: &str = "http://a/x?sv=1&sig=secret";
    const SOURCE: &[(&str, &str)] = &[
        ("x-ms-type", "file"),
        ("x-ms-content-length", "2000"),
        ("x-ms-content-type", "text/plain"),
        ("x-ms-content-language", "de"),
        ("x-ms-content-md5", "1B2M2Y8AsgTpgAmY7PhCfg=="),
        ("x-ms-meta-a", "b"),
        ("x-ms-file-attributes", "Hidden|System"),
        ("x-ms-file-creation-time", "2019-01-02T03:04:05.0000006Z"),
        ("x-ms-file-last-write-time", "2019-01-02T03:04:06.0000006Z"),
        ("x-ms-file-permission", "O:SYG:SYD:(A;;FA;;;BU)"),
    ];

    async fn bench() -> Bench {
        let (bench, elsewhere) = Bench::with_elsewhere().await;
        elsewhere.0.lock().unwrap().insert(ELSEWHERE, Script::of(b"from elsewhere").header("x-ms-meta-c", "d"));
        bench.call("PUT", "share/source", SOURCE, b"").await.unwrap();
        bench.write("source", 1_000, b"some bytes").await;
        bench
    }

    async fn copy(bench: &Bench, from: &str, to: &str, more: &[(&str, &str)]) -> Result<Reply, Failure> {
        bench.call("PUT", &format!("share/{to}"), &[&[("x-ms-copy-source", from)], more].concat(), b"").await
    }

    async fn usage(bench: &Bench) -> String {
        let stats = bench.text("GET", "share?restype=share&comp=stats").await;
        crate::testing::between(&stats, "<ShareUsageBytes>", "<")[0].to_owned()
    }

    #[tokio::test]
    async fn a_file_becomes_what_another_is() {
        let bench = bench().await;
        let contents = service::testing::figure(&*bench.engine, "contents");
        let content = bench.read("source").await;
        bench.advance(1).await;
        let answer = copy(&bench, &url("source"), "copy", &[]).await.unwrap();
        assert_eq!((answer.status.as_u16(), header(&answer, "x-ms-copy-status")), (202, Some("success")));
        let (from, to) = (bench.file("source").await, bench.file("copy").await);
        for name in ["etag", "last-modified", "x-ms-copy-id", "x-ms-copy-status"] {
            assert_eq!(header(&to, name), header(&answer, name), "{name}");
        }
        for name in ["content-length", "content-type", "content-language", "content-md5", "x-ms-meta-a"] {
            assert_eq!(header(&to, name), header(&from, name), "{name}");
        }
        assert_eq!(header(&to, "x-ms-file-attributes"), Some("Archive"));
        assert_eq!(header(&to, "x-ms-copy-source"), Some(&*url("source")));
        assert_eq!(header(&to, "x-ms-copy-progress"), Some("2000/2000"));
        assert!(header(&to, "x-ms-copy-completion-time").is_some());
        for name in ["x-ms-file-id", "x-ms-file-creation-time", "x-ms-file-permission-key"] {
            assert_ne!(header(&to, name), header(&from, name), "{name}");
        }
        // Neither is anything to the other afterwards, and no bytes were copied.
        assert_eq!(service::testing::figure(&*bench.engine, "contents"), contents);
        assert!(bench.read("copy").await == content);
        bench.write("source", 1_000, b"other").await;
        bench.write("copy", 1_005, b"BYTES").await;
        assert_eq!(&bench.read("source").await[1_000..1_010], b"otherbytes");
        assert_eq!(&bench.read("copy").await[1_000..1_010], b"some BYTES");
        assert_eq!(
            bench.text("GET", "share/copy?comp=rangelist").await,
            bench.text("GET", "share/source?comp=rangelist").await
        );
        assert_eq!(usage(&bench).await, "4000");
        bench.check_rows().await;
        for path in ["source", "copy"] {
            bench.call("DELETE", &format!("share/{path}"), &[], b"").await.unwrap();
        }
        bench.sweep().await;
        assert_eq!((service::testing::figure(&*bench.engine, "contents"), usage(&bench).await.as_str()), (0, "0"));
    }

    #[tokio::test]
    async fn what_is_taken_from_the_source_and_what_is_set() {
        let bench = bench().await;
        let of_source = [
            ("x-ms-file-attributes", "source"),
            ("x-ms-file-creation-time", "source"),
            ("x-ms-file-last-write-time", "Source"),
            ("x-ms-file-change-time", "source"),
            ("x-ms-file-permission-copy-mode", "source"),
        ];
        let from = bench.file("source").await;
        bench.advance(1).await;
        copy(&bench, &url("source"), "copy", &of_source).await.unwrap();
        let to = bench.file("copy").await;
        for name in [
            "x-ms-file-attributes",
            "x-ms-file-creation-time",
            "x-ms-file-last-write-time",
            "x-ms-file-change-time",
            "x-ms-file-permission-key",
        ] {
            assert_eq!(header(&to, name), header(&from, name), "{name}");
        }
        let set = [
            ("x-ms-meta-new", "1"),
            ("x-ms-file-attributes", "ReadOnly"),
            ("x-ms-file-copy-set-archive", "true"),
            ("x-ms-file-creation-time", "2020-01-02T03:04:05.0000006Z"),
            ("x-ms-file-permission-copy-mode", "override"),
            ("x-ms-file-permission", "O:BAG:SYD:(A;;FA;;;BU)"),
        ];
        copy(&bench, &url("source"), "copy", &set).await.unwrap();
        let to = bench.file("copy").await;
        assert_eq!((header(&to, "x-ms-meta-new"), header(&to, "x-ms-meta-a")), (Some("1"), None));
        assert_eq!(header(&to, "x-ms-file-attributes"), Some("ReadOnly | Archive"));
        assert_eq!(header(&to, "x-ms-file-creation-time"), Some(set[3].1));
        assert_ne!(header(&to, "x-ms-file-permission-key"), header(&from, "x-ms-file-permission-key"));
        // It is read-only by now.
        let refused = refusal(copy(&bench, &url("source"), "copy", &[]).await);
        assert_eq!(refused, FileError::ReadOnlyAttribute);
        copy(&bench, &url("source"), "copy", &[("x-ms-file-copy-ignore-readonly", "true")]).await.unwrap();
        assert_eq!(header(&bench.file("copy").await, "x-ms-file-attributes"), Some("Archive"));
        let refused = async |more: &[(&str, &str)]| refusal(copy(&bench, &url("source"), "copy", more).await);
        let mode = |mode| ("x-ms-file-permission-copy-mode", mode);
        let missing = RequestError::MissingRequiredHeader { name: "x-ms-file-permission" };
        assert_eq!(refused(&[mode("override")]).await, missing.into());
        assert_eq!(refused(&[mode("both")]).await, FileError::header(mode("").0, "both"));
        assert_eq!(refused(&[mode("source"), set[5]]).await, FileError::header(mode("").0, "source"));
        assert_eq!(refused(&[("x-ms-mode", "0777")]).await, FileError::header("x-ms-mode", "0777"));
        let owner = ("x-ms-file-owner-copy-mode", "source");
        assert_eq!(refused(&[owner]).await, FileError::header(owner.0, owner.1));
    }

    #[tokio::test]
    async fn owner_group_and_mode_in_a_share_for_nfs() {
        let (owner, mode) = ("x-ms-file-owner-copy-mode", "x-ms-file-mode-copy-mode");
        let elsewhere = Arc::new(crate::testing::Elsewhere::default());
        let answer =
            Script::of(b"bytes").header("x-ms-owner", "7").header("x-ms-group", "8").header("x-ms-mode", "0707");
        elsewhere.0.lock().unwrap().insert(ELSEWHERE, answer);
        let bench = Bench::with_nfs_share().await.reaching(elsewhere);
        let own = [("x-ms-owner", "999"), ("x-ms-group", "888"), ("x-ms-mode", "0111")];
        let source = [&[("x-ms-type", "file"), ("x-ms-content-length", "3")], &own[..]].concat();
        bench.call("PUT", "share/source", &source, b"").await.unwrap();
        let given = [("x-ms-owner", "54321"), ("x-ms-group", "12345"), ("x-ms-mode", "7777")];
        type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str);
        let cases: [Case<'_>; 8] = [
            (&[], "0 0 0664", "0 0 0664"),
            (&[(owner, "source"), (mode, "Source")], "999 888 0111", "7 8 0707"),
            (&[(owner, "source")], "999 888 0664", "7 8 0664"),
            (&[(mode, "source")], "0 0 0111", "0 0 0707"),
            (&[(mode, "source"), given[1]], "0 12345 0111", "0 12345 0707"),
            (
                &[(owner, "override"), (mode, "override"), given[0], given[1], given[2]],
                "54321 12345 7777",
                "54321 12345 7777",
            ),
            (&[(owner, "override"), (mode, "override")], "0 0 0664", "0 0 0664"),
            (&given, "54321 12345 7777", "54321 12345 7777"),
        ];
        for (headers, of_file, of_elsewhere) in cases {
            for (from, expected) in [(url("source"), of_file), (ELSEWHERE.to_owned(), of_elsewhere)] {
                let path = format!("to{expected}{}", headers.len()).replace(' ', "-");
                copy(&bench, &from, &path, headers).await.unwrap();
                let told = bench.file(&path).await;
                let shown = ["x-ms-owner", "x-ms-group", "x-ms-mode"].map(|name| header(&told, name).unwrap());
                assert_eq!(shown.join(" "), expected, "{from} {headers:?}");
            }
        }
        for (headers, bad) in [
            (vec![(owner, "both")], (owner, "both")),
            (vec![(mode, "")], (mode, "")),
            (vec![(owner, "source"), given[0]], (owner, "source")),
            (vec![(owner, "source"), given[1]], (owner, "source")),
            (vec![(mode, "source"), given[2]], (mode, "source")),
        ] {
            let result = copy(&bench, &url("source"), "new", &headers).await;
            // An empty header says nothing.
            if bad.1.is_empty() {
                result.unwrap();
            } else {
                assert_eq!(refusal(result), FileError::header(bad.0, bad.1));
            }
        }
    }

    /// Files stand for blobs here: what counts is that another service tells where the bytes are.
    #[tokio::test]
    async fn a_blob_is_copied_by_reference() {
        let bench = bench().await;
        let contents = service::testing::figure(&*bench.engine, "contents");
        let answer = copy(&bench, &blob_url("source"), "copy", &[]).await.unwrap();
        assert_eq!(header(&answer, "x-ms-copy-status"), Some("success"));
        assert_eq!(service::testing::figure(&*bench.engine, "contents"), contents);
        assert!(bench.read("copy").await == bench.read("source").await);
        let told = bench.file("copy").await;
        assert_eq!((header(&told, "content-language"), header(&told, "x-ms-meta-a")), (Some("de"), Some("b")));
        bench.check_rows().await;
        bench.call("DELETE", "share/source", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(&bench.read("copy").await[1_000..1_010], b"some bytes");
        bench.call("DELETE", "share/copy", &[], b"").await.unwrap();
        bench.sweep().await;
        assert_eq!(service::testing::figure(&*bench.engine, "contents"), 0);
    }

    /// A blob that is too large for one decision is shared in several, after the answer.
    #[tokio::test]
    async fn a_large_blob_is_pending_and_no_bytes_move() {
        let bench = bench().await;
        const LENGTH: u64 = 200 << 20;
        bench.create("large", LENGTH).await;
        for at in [0, 64 << 20, (130 << 20) - 5, LENGTH - 10] {
            bench.write("large", at, b"0123456789").await;
        }
        let contents = service::testing::figure(&*bench.engine, "contents");
        let answer = copy(&bench, &blob_url("large"), "copy", &[]).await.unwrap();
        assert_eq!(header(&answer, "x-ms-copy-status"), Some("pending"));
        settle().await;
        let told = bench.file("copy").await;
        assert_eq!(header(&told, "x-ms-copy-status"), Some("success"));
        assert_eq!(header(&told, "x-ms-copy-progress"), Some(&*format!("{LENGTH}/{LENGTH}")));
        assert_eq!(service::testing::figure(&*bench.engine, "contents"), contents);
        assert_eq!(
            bench.text("GET", "share/copy?comp=rangelist").await,
            bench.text("GET", "share/large?comp=rangelist").await
        );
        for at in [0, 64 << 20, (130 << 20) - 5, LENGTH - 10] {
            let range = format!("bytes={at}-{}", at + 9);
            let read = bench.call("GET", "share/copy", &[("range", &*range)], b"").await.unwrap();
            assert_eq!(crate::testing::bytes(read).await, b"0123456789", "{at}");
        }
        bench.check_rows().await;
    }

    /// Lets what runs beside the requests run.
    async fn settle() {
        for _ in 0..2_000 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_source_elsewhere_is_fetched_after_the_answer() {
        let bench = bench().await;
        let answer = copy(&bench, ELSEWHERE, "copy", &[]).await.unwrap();
        assert_eq!((answer.status.as_u16(), header(&answer, "x-ms-copy-status")), (202, Some("pending")));
        settle().await;
        let told = bench.file("copy").await;
        assert_eq!(header(&told, "x-ms-copy-status"), Some("success"));
        assert_eq!(header(&told, "x-ms-copy-source"), Some("http://a/x?sv=1"));
        assert_eq!(header(&told, "x-ms-meta-c"), Some("d"));
        assert_eq!(bench.read("copy").await, b"from elsewhere");
        assert_eq!(usage(&bench).await, "2014");
        bench.check_rows().await;
        // What is set or made anew is no longer what was copied; what is written into it is.
        bench.write("copy", 0, b"FROM").await;
        assert!(header(&bench.file("copy").await, "x-ms-copy-id").is_some());
        bench.call("PUT", "share/copy?comp=properties", &[], b"").await.unwrap();
        assert_eq!(header(&bench.file("copy").await, "x-ms-copy-id"), None);
    }

    #[tokio::test]
    async fn each_refusal_and_two_at_once() {
        let bench = bench().await;
        bench.mkdir("dir").await;
        bench.create("leased", 1).await;
        bench.lease("leased", MY_LEASE).await;
        let none = url("none");
        let refused = async |from: &str, to: &str, more: &[(&str, &str)]| refusal(copy(&bench, from, to, more).await);
        // The target is judged before anybody looks at the source.
        assert_eq!(refused(&none, "dir", &[]).await, FileError::ResourceTypeMismatch);
        assert_eq!(refused(&none, "no/copy", &[]).await, FileError::ParentNotFound);
        assert_eq!(refused(&none, "leased", &[]).await, FileError::file_lease(LeaseRefusal::IdMissing));
        let lease = ("x-ms-lease-id", MY_LEASE);
        assert_eq!(refused(&none, "free", &[lease]).await, FileError::file_lease(LeaseRefusal::NotPresent));
        assert_eq!(refused(&none, "copy", &[("if-match", "*")]).await, FileError::ConditionHeadersNotSupported);
        assert_eq!(refused("not a url", "copy", &[]).await, FileError::header("x-ms-copy-source", "not a url"));
        for (from, status, code) in [
            (none.as_str(), 404, Some("ResourceNotFound")),
            (&url("dir"), 404, Some("ResourceNotFound")),
            (&blob_url("none"), 404, Some("ResourceNotFound")),
            ("http://private/x", 401, Some("NoAuthenticationInformation")),
            ("http://a/nowhere", 400, None),
        ] {
            let told = ErrorReply::from(refused(from, "copy", &[]).await);
            assert_eq!((told.status, told.code), (status, "CannotVerifyCopySource"), "{from}");
            let source = told.headers.iter().find(|(name, _)| *name == "x-ms-copy-source-error-code");
            assert_eq!(source.map(|(_, code)| code.as_str()), code, "{from}");
        }
        assert_eq!(bench.names("").await, ["dir", "leased", "source"]);
        let id = header(&bench.file("leased").await, "x-ms-file-id").unwrap().to_owned();
        copy(&bench, &url("source"), "leased", &[lease]).await.unwrap();
        let told = bench.file("leased").await;
        assert_eq!((header(&told, "x-ms-file-id"), header(&told, "x-ms-lease-state")), (Some(&*id), Some("leased")));
        let body = refusal(bench.call("PUT", "share/copy", &[("x-ms-copy-source", &*none)], b"x").await);
        assert_eq!(body, FileError::header("content-length", "1"));
    }

    #[tokio::test]
    async fn the_quota_holds() {
        let (bench, elsewhere) = Bench::with_elsewhere().await;
        bench.call("PUT", "share?restype=share&comp=properties", &[("x-ms-share-quota", "1")], b"").await.unwrap();
        bench.create("source", 600 << 20).await;
        let long = Script { length: 600 << 20, then: Then::Stall, ..Script::of(b"begin") };
        elsewhere.0.lock().unwrap().insert(ELSEWHERE, long);
        for from in [&*url("source"), &*blob_url("source"), ELSEWHERE] {
            assert_eq!(refusal(copy(&bench, from, "copy", &[]).await), FileError::ShareSizeLimitReached, "{from}");
        }
        assert_eq!(bench.names("").await, ["source"]);
        bench.call("PUT", "share/source?comp=properties", &[("x-ms-content-length", "100000000")], b"").await.unwrap();
        // It counts from the beginning, and is given back when it ends without its bytes.
        let answer = copy(&bench, ELSEWHERE, "copy", &[]).await.unwrap();
        assert_eq!(usage(&bench).await, (100_000_000 + (600_u64 << 20)).to_string());
        let id = header(&answer, "x-ms-copy-id").unwrap();
        let abort = [("x-ms-copy-action", "abort")];
        bench.call("PUT", &format!("share/copy?comp=copy&copyid={id}"), &abort, b"").await.unwrap();
        assert_eq!(usage(&bench).await, "100000000");
        // A file that is replaced gives its own bytes back.
        copy(&bench, &url("source"), "source", &[]).await.unwrap();
        assert_eq!(usage(&bench).await, "100000000");
        bench.check_rows().await;
    }

    #[tokio::test]
    async fn a_file_is_copied_onto_itself_and_a_chain_of_copies_holds() {
        let bench = bench().await;
        let content = bench.read("source").await;
        let id = header(&bench.file("source").await, "x-ms-file-id").unwrap().to_owned();
        copy(&bench, &url("source"), "source", &[]).await.unwrap();
        assert!(bench.read("source").await == content);
        assert_eq!(header(&bench.file("source").await, "x-ms-file-id"), Some(&*id));
        // Longer than the number of maps that may stand behind one.
        let mut from = "source".to_owned();
        for n in 0..12_u64 {
            let to = format!("copy{n}");
            copy(&bench, &url(&from), &to, &[]).await.unwrap();
            bench.write(&to, 100 * n, b"x").await;
            from = to;
        }
        let mut expected = content;
        (0..12).for_each(|n| expected[100 * n] = b'x');
        assert!(bench.read(&from).await == expected);
        bench.check_rows().await;
        for name in bench.names("").await {
            bench.call("DELETE", &format!("share/{name}"), &[], b"").await.unwrap();
        }
        bench.sweep().await;
        assert_eq!(service::testing::figure(&*bench.engine, "contents"), 0);
    }

    #[tokio::test]
    async fn a_copy_goes_to_another_share_with_its_permission() {
        let bench = bench().await;
        bench.call("PUT", "other?restype=share", &[], b"").await.unwrap();
        let source = url("source");
        let headers = [("x-ms-copy-source", source.as_str()), ("x-ms-file-permission-copy-mode", "source")];
        bench.call("PUT", "other/copy", &headers, b"").await.unwrap();
        let told = bench.call("HEAD", "other/copy", &[], b"").await.unwrap();
        let key = header(&told, "x-ms-file-permission-key");
        assert_eq!(key, header(&bench.file("source").await, "x-ms-file-permission-key"));
        let get = [("x-ms-file-permission-key", key.unwrap())];
        let permission = bench.call("GET", "other?restype=share&comp=filepermission", &get, b"").await.unwrap();
        assert!(crate::testing::text(permission).await.contains("O:SYG:SYD:(A;;FA;;;BU)"));
        bench.check_rows().await;
    }

    #[tokio::test]
    async fn handles_that_exclude_it() {
        let bench = bench().await;
        bench.create("target", 1).await;
        let handle = bench.open("source", Access::WRITE, Access::WRITE).await;
        let refused = ErrorReply::from(refusal(copy(&bench, &url("source"), "target", &[]).await));
        assert_eq!((refused.status, refused.code), (409, "CannotVerifyCopySource"));
        drop(handle);
        let handle = bench.open("target", Access::READ, Access::READ).await;
        assert_eq!(refusal(copy(&bench, &url("source"), "target", &[]).await), FileError::SharingViolation);
        drop(handle);
        copy(&bench, &url("source"), "target", &[]).await.unwrap();
    }

    #[tokio::test]
    async fn who_may_create_only_may_not_replace() {
        let bench = bench().await;
        let kind = GrantKind::Account { services: Permissions::of("f"), resource_types: Permissions::of("o") };
        let permissions = Permissions::of("c");
        let caller =
            Caller::Sas(Grant { kind, permissions, overrides: None, encryption_scope: None, delegation: None });
        let asker = Asker { caller: &caller, ..Asker::OWNER };
        let head = head_of("PUT", "share/source", &[("x-ms-copy-source", &*url("source"))]);
        let refused = bench.service.run_for(asker, crate::Op::CopyFile, &head, 1, &mut FixedBody::new(&b""[..])).await;
        assert_eq!(refusal(refused), FileError::UnauthorizedOverwrite);
    }

    #[tokio::test]
    async fn before_copies_had_settings_they_mean_nothing() {
        let bench = bench().await;
        let source = url("source");
        let headers = [("x-ms-copy-source", source.as_str()), ("x-ms-file-attributes", "source"), ("x-ms-mode", "0")];
        let mut head = head_of("PUT", "share/copy", &headers);
        head.version = "2019-02-02".into();
        bench.send(head, &mut FixedBody::new(&b""[..])).await.unwrap();
        assert_eq!(header(&bench.file("copy").await, "x-ms-file-attributes"), Some("Archive"));
    }
}
