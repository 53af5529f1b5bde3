//! What is kept, by the tables of the service and by a plain model of it.

use crate::testing::{Bench, Random, between, header, refusal};
use crate::{BlobError, Failure};
use wire::http::Reply;

const DAY: u64 = 24 * 3600;
const INCLUDE: [(&str, &str); 1] = [("x-ms-delete-snapshots", "include")];

async fn versioned() -> Bench {
    let mut bench = Bench::with_container().await;
    bench.settings.versioning = true;
    bench
}

async fn softly() -> Bench {
    let mut bench = Bench::with_container().await;
    bench.settings.blob_soft_delete_days = Some(7);
    bench
}

fn version_of(reply: &Reply) -> String {
    header(reply, "x-ms-version-id").expect("a version id").to_owned()
}

impl Bench {
    /// Puts a block blob and returns its version id.
    async fn write(&self, body: &[u8]) -> String {
        version_of(&self.call("PUT", "cont/blob", &[("x-ms-blob-type", "BlockBlob")], body).await.unwrap())
    }

    async fn version(&self, id: &str) -> Option<Vec<u8>> {
        let url = format!("cont/blob?versionid={id}");
        match self.call("GET", &url, &[], b"").await {
            Ok(_) => Some(self.get(&url).await),
            Err(_) => None,
        }
    }

    async fn delete(&self, url: &str) -> Reply {
        self.call("DELETE", url, &[], b"").await.unwrap()
    }

    async fn is_gone(&self, url: &str) -> bool {
        let answer = self.call("HEAD", url, &[], b"").await;
        answer.is_err().then(|| refusal(answer)) == Some(BlobError::BlobNotFound)
    }

    async fn undelete(&self) {
        assert_eq!(self.call("PUT", "cont/blob?comp=undelete", &[], b"").await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn every_write_keeps_what_was_there() {
    let bench = versioned().await;
    let first = bench.write(b"first").await;
    let second = bench.write(b"second").await;
    let set = bench.call("PUT", "cont/blob?comp=metadata", &[("x-ms-meta-a", "1")], b"").await.unwrap();
    let third = version_of(&set);
    assert!(first < second && second < third);
    for _ in 0..2 {
        assert_eq!(bench.version(&first).await.as_deref(), Some(&b"first"[..]));
        assert_eq!(bench.version(&second).await.as_deref(), Some(&b"second"[..]));
        assert_eq!(bench.version(&third).await.as_deref(), Some(&b"second"[..]));
        bench.sweep().await;
    }
    let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
    assert_eq!((version_of(&told), header(&told, "x-ms-is-current-version")), (third, Some("true")));
    let told = bench.call("HEAD", &format!("cont/blob?versionid={second}"), &[], b"").await.unwrap();
    assert_eq!((version_of(&told), header(&told, "x-ms-is-current-version")), (second, None));
    assert_eq!((header(&told, "x-ms-meta-a"), header(&told, "x-ms-lease-state")), (None, None));
}

#[tokio::test]
async fn what_is_softly_deleted_comes_back_or_ends_with_its_time() {
    let bench = softly().await;
    bench.put("cont/blob", b"first").await;
    let before = bench.figures();
    let deleted = bench.delete("cont/blob").await;
    assert_eq!(header(&deleted, "x-ms-delete-type-permanent"), Some("false"));
    assert!(bench.is_gone("cont/blob").await);
    bench.advance(6 * DAY).await;
    bench.sweep().await;
    bench.undelete().await;
    assert_eq!(bench.get("cont/blob").await, b"first");
    bench.advance(2 * DAY).await;
    bench.sweep().await;
    assert_eq!(bench.get("cont/blob").await, b"first");
    assert_eq!(bench.figures(), before);
    bench.delete("cont/blob").await;
    bench.advance(7 * DAY).await;
    // Nobody has swept yet.
    let late = bench.call("PUT", "cont/blob?comp=undelete", &[], b"").await;
    assert_eq!(refusal(late), BlobError::BlobNotFound);
    bench.sweep().await;
    assert_eq!(bench.figures(), (1, 0));
}

#[tokio::test]
async fn what_is_overwritten_is_a_snapshot_once_it_is_undeleted() {
    let bench = softly().await;
    bench.put("cont/blob", b"first").await;
    bench.put("cont/blob", b"second").await;
    bench.delete("cont/blob").await;
    bench.put("cont/blob", b"third").await;
    bench.undelete().await;
    bench.sweep().await;
    assert_eq!(bench.get("cont/blob").await, b"third");
    let listed = bench.text("GET", "cont?restype=container&comp=list&include=snapshots").await;
    assert_eq!(listed.matches("<Snapshot>").count(), 2, "{listed}");
    assert_eq!(refusal(bench.call("DELETE", "cont/blob", &[], b"").await), BlobError::SnapshotsPresent);
    bench.call("DELETE", "cont/blob", &INCLUDE, b"").await.unwrap();
    bench.advance(7 * DAY).await;
    bench.sweep().await;
    assert_eq!(bench.figures(), (1, 0));
}

#[tokio::test]
async fn a_blob_from_before_versions_becomes_one_with_the_time_of_its_creation() {
    let mut bench = Bench::with_container().await;
    bench.put("cont/blob", b"before").await;
    bench.settings.versioning = true;
    let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
    assert_eq!((header(&told, "x-ms-version-id"), header(&told, "x-ms-is-current-version")), (None, None));
    let second = bench.write(b"second").await;
    let listed = bench.text("GET", "cont?restype=container&comp=list&include=versions").await;
    let versions = between(&listed, "<VersionId>", "</VersionId>");
    assert_eq!((versions.len(), versions[1]), (2, second.as_str()));
    assert_eq!(bench.version(versions[0]).await.as_deref(), Some(&b"before"[..]));
    // Switched off: what is a version stays one, and the next state is none.
    bench.settings.versioning = false;
    bench.put("cont/blob", b"third").await;
    bench.put("cont/blob", b"fourth").await;
    bench.sweep().await;
    let listed = bench.text("GET", "cont?restype=container&comp=list&include=versions").await;
    assert_eq!(between(&listed, "<VersionId>", "</VersionId>"), versions);
    assert!(!listed.contains("IsCurrentVersion"));
    assert_eq!(bench.version(&second).await.as_deref(), Some(&b"second"[..]));
    // And on again: neither the first nor the fourth is lost.
    bench.settings.versioning = true;
    bench.write(b"fifth").await;
    let listed = bench.text("GET", "cont?restype=container&comp=list&include=versions").await;
    assert_eq!(between(&listed, "<VersionId>", "</VersionId>").len(), 4);
}

#[tokio::test]
async fn the_current_version_is_deleted_as_the_blob_only() {
    let mut bench = versioned().await;
    let (first, second) = (bench.write(b"first").await, bench.write(b"second").await);
    let by_id = format!("cont/blob?versionid={second}");
    assert_eq!(refusal(bench.call("DELETE", &by_id, &[], b"").await), BlobError::OperationNotAllowedOnRootBlob);
    // Two faults: the condition comes first.
    let stale = [("if-match", "\"0x1\"")];
    assert_eq!(refusal(bench.call("DELETE", &by_id, &stale, b"").await), BlobError::ConditionNotMet);
    let none = "cont/blob?versionid=2026-11-15T18:00:00.0000000Z";
    assert_eq!(refusal(bench.call("DELETE", none, &[], b"").await), BlobError::BlobNotFound);
    let deleted = bench.delete("cont/blob").await;
    assert_eq!(header(&deleted, "x-ms-delete-type-permanent"), Some("false"));
    assert!(bench.is_gone("cont/blob").await);
    assert_eq!(refusal(bench.call("DELETE", "cont/blob", &[], b"").await), BlobError::BlobNotFound);
    let told = bench.call("HEAD", &by_id, &[], b"").await.unwrap();
    assert_eq!(header(&told, "x-ms-is-current-version"), None);
    // Undelete makes no current version.
    bench.settings.blob_soft_delete_days = Some(1);
    bench.delete(&by_id).await;
    assert!(bench.version(&second).await.is_none());
    bench.undelete().await;
    assert!(bench.is_gone("cont/blob").await);
    assert_eq!(bench.version(&second).await.as_deref(), Some(&b"second"[..]));
    bench.settings.blob_soft_delete_days = None;
    for id in [first, second] {
        let deleted = bench.delete(&format!("cont/blob?versionid={id}")).await;
        assert_eq!(header(&deleted, "x-ms-delete-type-permanent"), Some("true"));
    }
    // Also the due row of the retention that was not needed.
    bench.advance(DAY).await;
    bench.sweep().await;
    assert_eq!(bench.figures(), (1, 0));
}

#[tokio::test]
async fn versions_are_not_written() {
    let bench = versioned().await;
    let id = bench.write(b"first").await;
    bench.write(b"second").await;
    for (query, headers) in [
        ("", &[("x-ms-blob-type", "BlockBlob")][..]),
        ("&comp=metadata", &[]),
        ("&comp=properties", &[]),
        ("&comp=snapshot", &[]),
        ("&comp=blocklist", &[]),
        ("&comp=undelete", &[]),
        ("&comp=lease", &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")]),
    ] {
        let refused = bench.call("PUT", &format!("cont/blob?versionid={id}{query}"), headers, b"").await;
        assert_eq!(refusal(refused), BlobError::InvalidOperation, "{query}");
    }
}

const SET_POLICY: &str = "?restype=service&comp=properties";

async fn allow_permanent_delete(bench: &Bench, allow: bool) {
    let policy = format!(
        "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days>\
         <AllowPermanentDelete>{allow}</AllowPermanentDelete></DeleteRetentionPolicy></StorageServiceProperties>"
    );
    bench.call("PUT", SET_POLICY, &[], policy.as_bytes()).await.unwrap();
}

#[tokio::test]
async fn for_good_goes_only_what_is_deleted_and_only_if_the_account_allows_it() {
    let bench = versioned().await;
    allow_permanent_delete(&bench, false).await;
    let before = bench.figures();
    let (first, _) = (bench.write(b"first").await, bench.write(b"second").await);
    let version = format!("cont/blob?versionid={first}");
    let for_good = format!("{version}&deletetype=permanent");
    let refused = async |url: &str| refusal(bench.call("DELETE", url, &[], b"").await);
    assert_eq!(refused("cont/blob?deletetype=permanent").await, BlobError::PermanentDeleteNotAllowed);
    assert_eq!(refused(&for_good).await, BlobError::PermanentDeleteNotAllowed);
    bench.delete(&version).await;
    assert_eq!(refused(&for_good).await, BlobError::PermanentDeleteNotAllowed);
    allow_permanent_delete(&bench, true).await;
    let deleted = bench.delete(&for_good).await;
    assert_eq!(header(&deleted, "x-ms-delete-type-permanent"), Some("true"));
    assert_eq!(refused(&for_good).await, BlobError::BlobNotFound);
    bench.undelete().await;
    assert!(bench.version(&first).await.is_none());
    let snapshot = bench.call("PUT", "cont/blob?comp=snapshot", &[], b"").await.unwrap();
    let snapshot = format!("cont/blob?snapshot={}", header(&snapshot, "x-ms-snapshot").unwrap());
    let for_good = format!("{snapshot}&deletetype=Permanent");
    assert_eq!(refused(&for_good).await, BlobError::PermanentDeleteNotAllowed);
    bench.delete(&snapshot).await;
    bench.delete(&for_good).await;
    bench.sweep().await;
    // The blob with one reference, its version with another, to one content, and the due rows of two retentions.
    assert_eq!(bench.figures(), (before.0 + 4 + 2, before.1 + 1));
    bench.advance(7 * DAY).await;
    bench.sweep().await;
    assert_eq!(bench.figures(), (before.0 + 4, before.1 + 1));
}

#[tokio::test]
async fn a_changed_retention_holds_for_what_is_deleted_later() {
    let mut bench = softly().await;
    bench.put("cont/blob", b"first").await;
    bench.delete("cont/blob").await;
    bench.settings.blob_soft_delete_days = Some(1);
    bench.advance(2 * DAY).await;
    // Deleting it again is not possible and changes nothing.
    assert_eq!(refusal(bench.call("DELETE", "cont/blob", &[], b"").await), BlobError::BlobNotFound);
    bench.undelete().await;
    bench.call("PUT", "cont/blob?comp=snapshot", &[], b"").await.unwrap();
    bench.call("DELETE", "cont/blob", &INCLUDE, b"").await.unwrap();
    bench.advance(DAY).await;
    let late = bench.call("PUT", "cont/blob?comp=undelete", &[], b"").await;
    assert_eq!(refusal(late), BlobError::BlobNotFound);
}

/// What a list of everything shows of the blob, in its order.
async fn shown(bench: &Bench) -> String {
    let include = "snapshots,versions,deleted,uncommittedblobs";
    let page = bench.text("GET", &format!("cont?restype=container&comp=list&include={include}")).await;
    let word = |blob: &&str| {
        let has = |element: &str| blob.contains(element);
        let kind = match (has("<Snapshot>"), has("<VersionId>") && !has("<IsCurrentVersion>"), has("<Etag>")) {
            (true, _, _) => "snapshot",
            (false, true, _) => "version",
            (false, false, true) => "base",
            (false, false, false) => "uncommitted",
        };
        assert_eq!(has("<LeaseState>"), matches!(kind, "base" | "uncommitted") && !has("<Deleted>"), "{blob}");
        assert_eq!(has("<Deleted>true</Deleted>"), has("<RemainingRetentionDays>7</RemainingRetentionDays>"));
        assert_eq!(has("<Deleted>"), has("<DeletedTime>"));
        format!("{kind}{}", if has("<Deleted>") { "-deleted" } else { "" })
    };
    between(&page, "<Blob>", "</Blob>").iter().map(word).collect::<Vec<_>>().join(" ")
}

/// The table of the service: what is done to a blob, and what is there afterwards with soft delete alone and with versions.
#[tokio::test]
async fn what_each_operation_keeps() {
    let table: &[(&[&str], &str, &str)] = &[
        (&["delete"], "base-deleted", "version"),
        (&["snapshot", "delete include"], "snapshot-deleted base-deleted", "snapshot-deleted version version"),
        (&["snapshot", "delete only"], "snapshot-deleted base", "snapshot-deleted version base"),
        (&["snapshot", "delete snapshot"], "snapshot-deleted base", "snapshot-deleted version base"),
        (&["put", "delete version"], "snapshot-deleted base", "version-deleted base"),
        (&["put"], "snapshot-deleted base", "version base"),
        (&["put list"], "snapshot-deleted base", "version base"),
        (&["delete", "put"], "snapshot-deleted base", "version base"),
        (&["delete", "put list"], "snapshot-deleted base", "version base"),
        (&["put", "delete", "put"], "snapshot-deleted snapshot-deleted base", "version version base"),
        (&["put", "delete", "put append"], "base", "version version"),
        (&["delete", "put block"], "snapshot-deleted uncommitted", "version uncommitted"),
        (&["put append", "append"], "base", "base"),
        (&["properties"], "base", "base"),
        (&["metadata"], "base", "version base"),
        (&["delete", "undelete"], "base", "version"),
        (&["snapshot", "delete include", "undelete"], "snapshot base", "snapshot version version"),
        (&["put", "undelete"], "snapshot base", "version base"),
        (&["put", "delete version", "undelete"], "snapshot base", "version base"),
        (&["undelete"], "base", "base"),
        (&["delete", "put block", "undelete"], "snapshot uncommitted", "version uncommitted"),
    ];
    for (steps, alone, with_versions) in table {
        for (versioning, expected) in [(false, alone), (true, with_versions)] {
            let mut bench = softly().await;
            bench.settings.versioning = versioning;
            bench.put("cont/blob", b"first").await;
            for step in *steps {
                do_step(&bench, step).await;
            }
            assert_eq!(shown(&bench).await, **expected, "{steps:?}, versions: {versioning}");
            bench.call("DELETE", "cont?restype=container", &[], b"").await.unwrap();
            bench.advance(8 * DAY).await;
            bench.sweep().await;
            assert_eq!(bench.figures(), (0, 0), "{steps:?}, versions: {versioning}");
        }
    }
}

async fn do_step(bench: &Bench, step: &str) {
    let block: [(&str, &str); 1] = [("x-ms-blob-type", "BlockBlob")];
    let append = [("x-ms-blob-type", "AppendBlob")];
    let list = b"<BlockList><Latest>QUFB</Latest></BlockList>";
    let (method, url, headers, body): (_, String, &[(&str, &str)], &[u8]) = match step {
        "put" => ("PUT", "cont/blob".into(), &block, b"next"),
        "put append" => ("PUT", "cont/blob".into(), &append, b""),
        "append" => ("PUT", "cont/blob?comp=appendblock".into(), &[], b"more"),
        "put block" => ("PUT", "cont/blob?comp=block&blockid=QUFB".into(), &[], b"block"),
        "put list" => {
            bench.call("PUT", "cont/blob?comp=block&blockid=QUFB", &[], b"block").await.unwrap();
            ("PUT", "cont/blob?comp=blocklist".into(), &[], list)
        }
        "snapshot" => ("PUT", "cont/blob?comp=snapshot".into(), &[], b""),
        "properties" => ("PUT", "cont/blob?comp=properties".into(), &[], b""),
        "metadata" => ("PUT", "cont/blob?comp=metadata".into(), &[("x-ms-meta-a", "1")], b""),
        "undelete" => ("PUT", "cont/blob?comp=undelete".into(), &[], b""),
        "delete" => ("DELETE", "cont/blob".into(), &[], b""),
        "delete include" => ("DELETE", "cont/blob".into(), &INCLUDE, b""),
        "delete only" => ("DELETE", "cont/blob".into(), &[("x-ms-delete-snapshots", "only")], b""),
        "delete snapshot" => match first(bench, "Snapshot").await {
            Some(at) => ("DELETE", format!("cont/blob?snapshot={at}"), &[], b""),
            None => return,
        },
        "delete version" => match first(bench, "VersionId").await {
            Some(id) => ("DELETE", format!("cont/blob?versionid={id}"), &[], b""),
            None => return,
        },
        other => panic!("no step: {other}"),
    };
    match bench.call(method, &url, headers, body).await {
        // All versions of a blob have one type.
        Err(Failure::Refused(BlobError::InvalidBlobType)) if bench.settings.versioning && step.contains("append") => {}
        answer => drop(answer.unwrap_or_else(|error| panic!("{step}: {error:?}"))),
    }
}

#[tokio::test]
async fn what_is_kept_of_a_blob_has_one_type() {
    let mut bench = Bench::with_container().await;
    let append = [("x-ms-blob-type", "AppendBlob")];
    let block = [("x-ms-blob-type", "BlockBlob")];
    bench.put("cont/blob", b"first").await;
    let snapshot = bench.call("PUT", "cont/blob?comp=snapshot", &[], b"").await.unwrap();
    let snapshot = format!("cont/blob?snapshot={}", header(&snapshot, "x-ms-snapshot").unwrap());
    let before = bench.figures();
    assert_eq!(refusal(bench.call("PUT", "cont/blob", &append, b"").await), BlobError::SnapshotsPresent);
    // Other faults are told first.
    let stale = [append[0], ("if-match", "\"0x1\"")];
    assert_eq!(refusal(bench.call("PUT", "cont/blob", &stale, b"").await), BlobError::ConditionNotMet);
    assert_eq!(bench.figures(), before);
    bench.call("PUT", "cont/blob", &block, b"second").await.unwrap();
    bench.delete(&snapshot).await;
    bench.call("PUT", "cont/blob", &append, b"").await.unwrap();
    // What becomes a version, and what is left when the blob itself is gone.
    bench.settings.versioning = true;
    assert_eq!(refusal(bench.call("PUT", "cont/blob", &block, b"x").await), BlobError::InvalidBlobType);
    bench.delete("cont/blob").await;
    assert_eq!(refusal(bench.call("PUT", "cont/blob", &block, b"x").await), BlobError::InvalidBlobType);
    bench.settings.versioning = false;
    assert_eq!(refusal(bench.call("PUT", "cont/blob", &block, b"x").await), BlobError::InvalidBlobType);
    bench.call("PUT", "cont/blob", &append, b"").await.unwrap();
}

async fn first(bench: &Bench, element: &str) -> Option<String> {
    let page = bench.text("GET", "cont?restype=container&comp=list&include=snapshots,versions").await;
    between(&page, &format!("<{element}>"), &format!("</{element}>")).first().map(|text| text.to_string())
}

/// A state of the blob as a model has it.
#[derive(Clone, Debug)]
struct State {
    kind: &'static str,
    bytes: Vec<u8>,
    is_version: bool,
    deleted_until: Option<u64>,
}

/// A blob of an account whose settings change, beside what it should be.
struct Play {
    bench: Bench,
    random: Random,
    now: u64,
    writes: u8,
    base: Option<State>,
    deleted_base: Option<State>,
    has_blocks: bool,
    snapshots: Vec<State>,
    versions: Vec<State>,
    /// The type of the last that became one.
    version_kind: Option<&'static str>,
}

impl Play {
    fn new(seed: u64, bench: Bench) -> Play {
        Play {
            bench,
            random: Random(seed),
            now: 0,
            writes: 0,
            base: None,
            deleted_base: None,
            has_blocks: false,
            snapshots: Vec::new(),
            versions: Vec::new(),
            version_kind: None,
        }
    }

    /// Whether a blob of this type may take the place of what is there.
    fn may_become(&self, kind: &str) -> bool {
        let is_live = |state: &State| state.deleted_until.is_none();
        let others = self.versions.iter().any(is_live) && self.version_kind.is_some_and(|known| known != kind);
        let snapshots = self.snapshots.iter().any(|state| is_live(state) && state.kind != kind);
        let stays = self.base.as_ref().is_some_and(|base| {
            base.kind != kind
                && (self.bench.settings.versioning || base.is_version || self.snapshots.iter().any(is_live))
        });
        !others && !snapshots && !stays
    }

    fn keep(&mut self, old: State) {
        self.version_kind = Some(old.kind);
        self.versions.push(State { is_version: true, ..old });
    }

    /// Puts a blob, if it can be.
    async fn put(&mut self, kind: &'static str, headers: &[(&str, &str)], body: Vec<u8>) {
        let may = self.may_become(kind);
        let sent = if kind == "page" { &[][..] } else { &body };
        assert_eq!(self.call("PUT", "cont/blob", headers, sent).await, may, "{kind}");
        if may {
            self.replace(kind, body);
        }
    }

    async fn call(&self, method: &str, url: &str, headers: &[(&str, &str)], body: &[u8]) -> bool {
        self.bench.call(method, url, headers, body).await.is_ok()
    }

    fn until(&self) -> Option<u64> {
        self.bench.settings.blob_soft_delete_days.map(|days| self.now + u64::from(days) * DAY)
    }

    /// What is over is as good as gone.
    fn age(&mut self) {
        let now = self.now;
        let is_kept = |state: &State| state.deleted_until.is_none_or(|until| now < until);
        self.snapshots.retain(is_kept);
        self.versions.retain(is_kept);
        self.deleted_base = self.deleted_base.take().filter(is_kept);
    }

    fn put_deleted_away(&mut self) {
        self.snapshots.extend(self.deleted_base.take());
    }

    fn replace(&mut self, kind: &'static str, bytes: Vec<u8>) {
        let versioning = self.bench.settings.versioning;
        // All that is left of a name has one type.
        self.deleted_base.take_if(|state| state.kind != kind);
        self.snapshots.retain(|state| state.kind == kind);
        self.versions.retain(|state| state.kind == kind);
        self.base.take_if(|state| state.kind != kind);
        self.put_deleted_away();
        let until = self.until();
        match self.base.take() {
            Some(old) if versioning || old.is_version => self.keep(old),
            Some(old) if until.is_some() => self.snapshots.push(State { deleted_until: until, ..old }),
            Some(_) | None => {}
        }
        self.has_blocks = false;
        self.base = Some(State { kind, bytes, is_version: versioning, deleted_until: None });
    }

    fn keep_version(&mut self) {
        let versioning = self.bench.settings.versioning;
        if let Some(base) = self.base.as_mut().filter(|base| versioning || base.is_version) {
            let old = base.clone();
            base.is_version = versioning;
            self.keep(old);
        }
    }

    fn delete_snapshots(&mut self) {
        let until = self.until();
        let live = self.snapshots.iter_mut().filter(|state| state.deleted_until.is_none());
        live.for_each(|state| state.deleted_until = Some(until.unwrap_or(0)));
        self.age();
    }

    async fn step(&mut self) {
        self.writes = self.writes.wrapping_add(1);
        let (fresh, page) = (vec![self.writes; usize::from(self.writes) + 1], vec![self.writes; 512]);
        let is = |base: &Option<State>, kind| base.as_ref().is_some_and(|base| base.kind == kind);
        match self.random.below(20) {
            0 | 1 => self.put("block", &[("x-ms-blob-type", "BlockBlob")], fresh).await,
            2 => self.put("append", &[("x-ms-blob-type", "AppendBlob")], Vec::new()).await,
            3 | 4 if is(&self.base, "append") => {
                assert!(self.call("PUT", "cont/blob?comp=appendblock", &[], &fresh).await);
                self.base.as_mut().unwrap().bytes.extend(fresh);
            }
            5 => {
                let pages = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "1024")];
                self.put("page", &pages, vec![0; 1024]).await;
            }
            6 | 7 if is(&self.base, "page") => {
                let at = self.random.below(2) as usize * 512;
                let range = format!("bytes={at}-{}", at + 511);
                let headers = [("x-ms-page-write", "update"), ("range", &*range)];
                assert!(self.call("PUT", "cont/blob?comp=page", &headers, &page).await);
                self.base.as_mut().unwrap().bytes[at..at + 512].copy_from_slice(&page);
            }
            8 => {
                let is_possible = self.base.as_ref().is_none_or(|base| base.kind == "block");
                let put = self.call("PUT", "cont/blob?comp=block&blockid=QUFB", &[], &fresh).await;
                assert_eq!(put, is_possible);
                if is_possible {
                    self.put_deleted_away();
                    self.has_blocks = true;
                }
                let list = b"<BlockList><Latest>QUFB</Latest></BlockList>";
                if is_possible && self.random.below(2) == 0 {
                    let may = self.may_become("block");
                    assert_eq!(self.call("PUT", "cont/blob?comp=blocklist", &[], list).await, may);
                    if may {
                        self.replace("block", fresh);
                    }
                }
            }
            9 => {
                let set = self.call("PUT", "cont/blob?comp=metadata", &[("x-ms-meta-a", "1")], b"").await;
                assert_eq!(set, self.base.is_some());
                self.keep_version();
            }
            10 | 11 => {
                assert_eq!(self.call("PUT", "cont/blob?comp=snapshot", &[], b"").await, self.base.is_some());
                let snapshot = self.base.clone().map(|base| State { is_version: false, ..base });
                self.snapshots.extend(snapshot);
                if self.bench.settings.versioning {
                    self.keep_version();
                }
            }
            12 => {
                let there = self.base.is_some() || self.has_blocks;
                assert_eq!(self.call("DELETE", "cont/blob", &INCLUDE, b"").await, there);
                if there {
                    self.delete_snapshots();
                    self.has_blocks = false;
                    let until = self.until();
                    match self.base.take() {
                        Some(old) if self.bench.settings.versioning || old.is_version => self.keep(old),
                        Some(old) if until.is_some() => {
                            self.deleted_base = Some(State { deleted_until: until, ..old });
                        }
                        Some(_) | None => {}
                    }
                }
            }
            13 => self.delete_one().await,
            14 => {
                self.call("PUT", "cont/blob?comp=undelete", &[], b"").await;
                self.snapshots.iter_mut().chain(&mut self.versions).for_each(|state| state.deleted_until = None);
                if let Some(base) = self.deleted_base.take() {
                    self.base = Some(State { deleted_until: None, ..base });
                }
            }
            15 => {
                let days = self.random.below(4) + 1;
                self.bench.advance(days * DAY).await;
                self.now += days * DAY;
                // Blocks wait for a week only.
                let listed = self.seen(100).await;
                self.has_blocks &= self.base.is_some() || listed.iter().any(|(kind, ..)| kind == "uncommitted");
            }
            16 => self.bench.sweep().await,
            17 => self.bench.settings.versioning ^= true,
            18 => {
                let days = [None, Some(2), Some(5)][self.random.below(3) as usize];
                self.bench.settings.blob_soft_delete_days = days;
            }
            _ => {
                let only = [("x-ms-delete-snapshots", "only")];
                let there = self.base.is_some() || self.has_blocks;
                assert_eq!(self.call("DELETE", "cont/blob", &only, b"").await, there);
                if there {
                    self.delete_snapshots();
                }
            }
        }
        self.age();
    }

    /// One snapshot or previous version that is not deleted.
    async fn delete_one(&mut self) {
        let seen = self.seen(100).await;
        let live: Vec<&(String, bool, u64, String)> =
            seen.iter().filter(|(kind, deleted, _, _)| kind != "base" && kind != "uncommitted" && !deleted).collect();
        if live.is_empty() {
            return;
        }
        let at = self.random.below(live.len() as u64) as usize;
        let (kind, _, _, url) = live[at].clone();
        let place = live[..at].iter().filter(|other| other.0 == kind).count();
        assert!(self.call("DELETE", &url, &[], b"").await);
        let until = self.until().unwrap_or(0);
        let states = if kind == "snapshot" { &mut self.snapshots } else { &mut self.versions };
        states.iter_mut().filter(|state| state.deleted_until.is_none()).nth(place).unwrap().deleted_until = Some(until);
    }

    /// Kind, whether it is deleted, length, and URL of everything that a list shows.
    async fn seen(&self, max: usize) -> Vec<(String, bool, u64, String)> {
        let (mut seen, mut marker) = (Vec::new(), String::new());
        loop {
            let marked = wire::percent::encode_value(&marker).into_owned();
            let include = "snapshots,versions,deleted,uncommittedblobs";
            let url = format!("cont?restype=container&comp=list&include={include}&maxresults={max}&marker={marked}");
            let page = self.bench.text("GET", &url).await;
            for blob in between(&page, "<Blob>", "</Blob>") {
                let one = |name: &str| between(blob, &format!("<{name}>"), &format!("</{name}>")).first().copied();
                let (kind, url) = match (one("Snapshot"), one("VersionId"), one("IsCurrentVersion"), one("Etag")) {
                    (Some(at), _, _, _) => ("snapshot", format!("cont/blob?snapshot={at}")),
                    (None, Some(id), None, _) => ("version", format!("cont/blob?versionid={id}")),
                    (None, _, _, Some(_)) => ("base", "cont/blob".to_owned()),
                    (None, _, _, None) => ("uncommitted", String::new()),
                };
                let length = one("Content-Length").unwrap().parse().unwrap();
                seen.push((kind.to_owned(), one("Deleted").is_some(), length, url));
            }
            marker = between(&page, "<NextMarker>", "</NextMarker>").first().map_or("", |m| *m).to_owned();
            if marker.is_empty() {
                return seen;
            }
        }
    }

    async fn check(&mut self) {
        let states = self.snapshots.iter().map(|state| ("snapshot", state));
        let states = states.chain(self.versions.iter().map(|state| ("version", state)));
        let base = self.base.iter().chain(&self.deleted_base).map(|state| ("base", state));
        let expected: Vec<(&str, &State)> = states.chain(base).collect();
        let kinds: std::collections::BTreeSet<&str> = expected.iter().map(|(_, state)| state.kind).collect();
        assert!(kinds.len() <= 1, "{kinds:?}");
        let max = self.random.0 as usize % 4 + 1;
        let mut seen = self.seen(max).await;
        seen.retain(|(kind, ..)| kind != "uncommitted");
        let short: Vec<_> = seen.iter().map(|(kind, deleted, length, _)| (kind.as_str(), *deleted, *length)).collect();
        let wanted: Vec<_> = expected
            .iter()
            .map(|(kind, state)| (*kind, state.deleted_until.is_some(), state.bytes.len() as u64))
            .collect();
        assert_eq!(short, wanted);
        for ((_, deleted, _, url), (_, state)) in seen.iter().zip(&expected) {
            match deleted {
                true => assert!(self.bench.is_gone(url).await, "{url}"),
                false => assert!(self.bench.get(url).await == state.bytes, "{url}"),
            }
        }
    }
}

#[tokio::test]
async fn a_blob_of_changing_settings_is_what_a_plain_model_says() {
    for seed in 1..=60_u64 {
        let mut play = Play::new(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed), Bench::with_container().await);
        for _ in 0..60 {
            play.step().await;
            play.check().await;
            assert_eq!(play.bench.problems().await, Vec::<String>::new(), "seed {seed}");
        }
        play.call("DELETE", "cont?restype=container", &[], b"").await;
        play.bench.advance(8 * DAY).await;
        play.bench.sweep().await;
        assert_eq!(play.bench.figures(), (0, 0), "seed {seed}");
    }
}

/// Which writes make a version, and tell its id, by the type of the blob.
#[tokio::test]
async fn which_writes_make_versions() {
    const BLOCK: &[(&str, &str)] = &[("x-ms-blob-type", "BlockBlob")];
    const APPEND: &[(&str, &str)] = &[("x-ms-blob-type", "AppendBlob")];
    const PAGE: &[(&str, &str)] = &[("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "512")];
    const WRITE: &[(&str, &str)] = &[("x-ms-page-write", "update"), ("range", "bytes=0-511")];
    const LEASE: &[(&str, &str)] = &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15")];
    type Headers = &'static [(&'static str, &'static str)];
    type Write = (&'static str, Headers, &'static [u8], bool);
    let every: &[Write] = &[
        ("?comp=metadata", &[("x-ms-meta-a", "1")], b"", true),
        ("?comp=snapshot", &[], b"", true),
        ("?comp=properties", &[("x-ms-blob-content-type", "text/plain")], b"", false),
        ("?comp=tags", &[], b"<Tags><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tags>", false),
        ("?comp=lease", LEASE, b"", false),
    ];
    let table: [(Headers, &[Write]); 3] = [
        (
            BLOCK,
            &[
                ("", BLOCK, b"x", true),
                ("?comp=block&blockid=QUFB", &[], b"x", false),
                ("?comp=blocklist", &[], b"<BlockList/>", true),
            ],
        ),
        (APPEND, &[("", APPEND, b"", true), ("?comp=appendblock", &[], b"x", false), ("?comp=seal", &[], b"", false)]),
        (PAGE, &[("", PAGE, b"", true), ("?comp=page", WRITE, &[1; 512], false)]),
    ];
    for (kind, writes) in table {
        for (query, headers, body, makes_one) in writes.iter().chain(every) {
            let bench = versioned().await;
            let first = bench.call("PUT", "cont/blob", kind, b"").await.unwrap();
            let answer = bench.call("PUT", &format!("cont/blob{query}"), headers, body).await.unwrap();
            let versions = if *makes_one { "version base" } else { "base" };
            let kept = shown(&bench).await.replace("snapshot ", "").replace(" uncommitted", "");
            assert_eq!(kept, versions, "{kind:?} {query}");
            assert_eq!(header(&answer, "x-ms-version-id").is_some(), *makes_one, "{kind:?} {query}");
            let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
            assert_eq!(version_of(&told) != version_of(&first), *makes_one, "{kind:?} {query}");
        }
    }
}

#[tokio::test]
async fn a_deleted_blob_whose_time_is_over_takes_nothing_with_it() {
    let mut bench = softly().await;
    bench.put("cont/blob", b"first").await;
    bench.put("cont/blob", b"second").await;
    bench.settings.blob_soft_delete_days = Some(1);
    bench.delete("cont/blob").await;
    bench.advance(2 * DAY).await;
    // Nobody has swept yet: the first is kept for five days more.
    bench.put("cont/blob", b"third").await;
    bench.undelete().await;
    let listed = bench.text("GET", "cont?restype=container&comp=list&include=snapshots").await;
    assert_eq!(listed.matches("<Snapshot>").count(), 1, "{listed}");
}

/// What takes the place of something deleted, of another type, takes all of it away: so the reference has it. It does not say
/// what becomes of a blob that is there and overwritten by one of another type; it cannot become a snapshot of it, so it is
/// treated alike.
#[tokio::test]
async fn what_comes_back_is_of_the_type_of_the_blob() {
    let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "512")];
    let append = [("x-ms-blob-type", "AppendBlob")];
    let types = async |bench: &Bench| {
        let include = "snapshots,versions,deleted";
        let listed = bench.text("GET", &format!("cont?restype=container&comp=list&include={include}")).await;
        between(&listed, "<BlobType>", "</BlobType>").iter().map(|kind| kind.to_string()).collect::<Vec<_>>()
    };
    let bench = softly().await;
    bench.call("PUT", "cont/blob", &page, b"").await.unwrap();
    bench.delete("cont/blob").await;
    do_step(&bench, "put list").await;
    assert_eq!(types(&bench).await, ["BlockBlob"]);
    bench.undelete().await;
    assert_eq!(types(&bench).await, ["BlockBlob"]);

    let bench = softly().await;
    bench.call("PUT", "cont/blob", &append, b"").await.unwrap();
    bench.call("PUT", "cont/blob", &append, b"").await.unwrap();
    bench.put("cont/blob", b"block").await;
    bench.undelete().await;
    assert_eq!(types(&bench).await, ["BlockBlob"]);

    // Undeleted before the list comes: a snapshot of another type stands against it.
    let bench = softly().await;
    bench.call("PUT", "cont/blob", &page, b"").await.unwrap();
    bench.delete("cont/blob").await;
    do_step(&bench, "put block").await;
    bench.undelete().await;
    assert_eq!(types(&bench).await[0], "PageBlob");
    let list = b"<BlockList><Latest>QUFB</Latest></BlockList>";
    let refused = bench.call("PUT", "cont/blob?comp=blocklist", &[], list).await;
    assert_eq!(refusal(refused), BlobError::SnapshotsPresent);

    // Versions that are all deleted.
    let mut bench = softly().await;
    bench.settings.versioning = true;
    let first = version_of(&bench.call("PUT", "cont/blob", &append, b"").await.unwrap());
    bench.delete("cont/blob").await;
    bench.delete(&format!("cont/blob?versionid={first}")).await;
    bench.put("cont/blob", b"block").await;
    bench.put("cont/blob", b"again").await;
    bench.undelete().await;
    assert_eq!(types(&bench).await, ["BlockBlob", "BlockBlob"]);
    bench.call("DELETE", "cont?restype=container", &[], b"").await.unwrap();
    bench.advance(8 * DAY).await;
    bench.sweep().await;
    assert_eq!(bench.figures(), (0, 0));
}

/// What makes a version of the current state leaves that state what it is, with what protects it; the new current version has
/// none, because a container has no default here.
#[tokio::test]
async fn a_state_that_becomes_a_version_keeps_what_protects_it() {
    let policy = [
        ("x-ms-immutability-policy-until-date", "Sun, 15 Nov 2099 18:00:00 GMT"),
        ("x-ms-immutability-policy-mode", "Locked"),
    ];
    let cases = [
        ("legalhold", &[("x-ms-legal-hold", "true")][..], BlobError::BlobImmutableDueToLegalHold),
        ("immutabilityPolicies", &policy, BlobError::BlobImmutableDueToPolicy),
    ];
    for (comp, headers, refused) in cases {
        for pages in [false, true] {
            let bench = versioned().await;
            match pages {
                true => _ = bench.put_pages("cont/blob", 512).await,
                false => _ = bench.put("cont/blob", b"first").await,
            }
            bench.call("PUT", &format!("cont/blob?comp={comp}"), headers, b"").await.unwrap();
            let first = version_of(&bench.call("HEAD", "cont/blob", &[], b"").await.unwrap());
            bench.call("PUT", "cont/blob?comp=snapshot", &[], b"").await.unwrap();
            let version = format!("cont/blob?versionid={first}");
            let told = bench.call("HEAD", &version, &[], b"").await.unwrap();
            assert_eq!(header(&told, headers[0].0), Some(headers[0].1), "{comp}");
            assert_eq!(refusal(bench.call("DELETE", &version, &[], b"").await), refused);
            let told = bench.call("HEAD", "cont/blob", &[], b"").await.unwrap();
            assert_eq!(header(&told, headers[0].0), None, "{comp}");
            assert_eq!(bench.problems().await, Vec::<String>::new());
            let container = bench.call("DELETE", "cont?restype=container", &[], b"").await;
            assert_eq!(refusal(container), refused);
        }
    }
}
