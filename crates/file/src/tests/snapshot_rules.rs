//! What is done with share snapshots, what they refuse, and what has changed since one.

use concurrency::LeaseRefusal;
use concurrency::share_mode::Access;

use super::*;
use crate::testing::{Bench, MY_LEASE, YOUR_LEASE, between, blob_url, bytes, header, refusal, url};
use crate::{Failure, FileError};
use wire::http::Reply;

const SHARE: &str = "share?restype=share";
const UNKNOWN: &str = "2020-01-01T00:00:00.0000000Z";
const INCLUDE: (&str, &str) = ("x-ms-delete-snapshots", "include");
const INCLUDE_LEASED: (&str, &str) = ("x-ms-delete-snapshots", "include-leased");

/// A share with the file `dir/file`, and a snapshot of it.
async fn bench() -> (Bench, String) {
    let bench = Bench::with_share().await;
    bench.mkdir("dir").await;
    bench.create("dir/file", 2_000).await;
    bench.write("dir/file", 0, b"before").await;
    let time = bench.snapshot().await;
    (bench, time)
}

fn at(url: &str, time: &str) -> String {
    format!("{url}{}sharesnapshot={time}", if url.contains('?') { '&' } else { '?' })
}

async fn lease_snapshot(bench: &Bench, time: &str, headers: &[(&str, &str)]) -> Result<Reply, Failure> {
    bench.call("PUT", &at("share?restype=share&comp=lease", time), headers, b"").await
}

const TAKE: &[(&str, &str)] =
    &[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", MY_LEASE)];

#[tokio::test]
async fn every_read_takes_a_snapshot_and_no_write_does() {
    let (bench, time) = bench().await;
    for ask in FILE_READS.iter().chain(HANDLES) {
        let url = at(&ask.url("share/dir/file"), &time);
        assert!(bench.call(ask.method, &url, ask.headers, ask.body).await.is_ok(), "{}", ask.name);
    }
    for ask in DIRECTORY_READS {
        for path in ["share/dir", "share"] {
            let url = at(&ask.url(path), &time);
            assert!(bench.call(ask.method, &url, ask.headers, ask.body).await.is_ok(), "{} {path}", ask.name);
        }
    }
    for ask in [FILE_WRITES, LEASES, DIRECTORY_WRITES].into_iter().flatten().chain([&CREATE_FILE, &CREATE_DIRECTORY]) {
        let url = at(&ask.url("share/dir/file"), &time);
        let refused = refusal(bench.call(ask.method, &url, ask.headers, ask.body).await);
        assert_eq!(refused, FileError::query("sharesnapshot", &*time), "{}", ask.name);
    }
    for (method, comp) in [
        ("PUT", "&comp=metadata"),
        ("PUT", "&comp=properties"),
        ("PUT", "&comp=acl"),
        ("GET", "&comp=acl"),
        ("GET", "&comp=stats"),
        ("PUT", "&comp=snapshot"),
        ("PUT", "&comp=undelete"),
        ("PUT", ""),
    ] {
        let url = at(&format!("{SHARE}{comp}"), &time);
        assert_eq!(
            bench.refused(method, &url, &[]).await,
            FileError::query("sharesnapshot", &*time),
            "{method} {comp}"
        );
    }
}

#[tokio::test]
async fn a_snapshot_that_is_not_there_comes_before_a_path_that_is_not() {
    let (bench, time) = bench().await;
    for ask in FILE_READS.iter().chain(DIRECTORY_READS).chain(HANDLES) {
        let refused = async |path: &str, time: &str| {
            refusal(bench.call(ask.method, &at(&ask.url(path), time), ask.headers, ask.body).await)
        };
        assert_eq!(refused("share/no/file", UNKNOWN).await, FileError::ShareNotFound, "{}", ask.name);
        assert_eq!(refused("share/no/file", &time).await, FileError::ParentNotFound, "{}", ask.name);
        assert_eq!(refused("share/dir/no", &time).await, FileError::ResourceNotFound, "{}", ask.name);
    }
    bench.create("dir/later", 1).await;
    bench.mkdir("later").await;
    assert_eq!(bench.refused("GET", &at("share/dir/later", &time), &[]).await, FileError::ResourceNotFound);
    assert_eq!(bench.refused("GET", &at("share/later/file", &time), &[]).await, FileError::ParentNotFound);
    for comp in ["", "&comp=metadata", "&comp=lease", "&comp=filepermission"] {
        let method = if comp == "&comp=lease" { "PUT" } else { "GET" };
        let headers = [("x-ms-lease-action", "break"), ("x-ms-file-permission-key", "1*1")];
        let refused = bench.refused(method, &at(&format!("{SHARE}{comp}"), UNKNOWN), &headers).await;
        assert_eq!(refused, FileError::ShareNotFound, "{comp}");
    }
    assert_eq!(bench.refused("DELETE", &at(SHARE, UNKNOWN), &[]).await, FileError::ShareNotFound);
}

/// What is open and locked is the file as it is now.
#[tokio::test]
async fn no_open_keeps_a_snapshot_from_being_read() {
    let (bench, time) = bench().await;
    let _handle = bench.open("dir/file", Access::READ, Access::NONE).await;
    assert_eq!(bench.refused("GET", "share/dir/file", &[]).await, FileError::SharingViolation);
    let read = bench.call("GET", &at("share/dir/file", &time), &[], b"").await.unwrap();
    assert_eq!(&bytes(read).await[..6], b"before");
    let listed = bench.text("GET", &at("share/dir/file?comp=listhandles", &time)).await;
    assert!(!listed.contains("<HandleId>"), "{listed}");
    let close = [("x-ms-handle-id", "*")];
    let closed = bench.call("PUT", &at("share/dir/file?comp=forceclosehandles", &time), &close, b"").await.unwrap();
    assert_eq!(header(&closed, "x-ms-number-of-handles-closed"), Some("0"));
}

/// Files in a snapshot have no lease, whatever becomes of the file's own.
#[tokio::test]
async fn a_lease_of_a_file_is_none_in_a_snapshot() {
    let bench = Bench::with_share().await;
    bench.create("file", 10).await;
    bench.lease("file", MY_LEASE).await;
    let (time, rows) = (bench.snapshot().await, bench.rows());
    let shown = async || {
        let told = bench.call("HEAD", &at("share/file", &time), &[], b"").await.unwrap();
        header(&told, "x-ms-lease-state").unwrap().to_owned()
    };
    assert_eq!(shown().await, "available");
    let release = [("x-ms-lease-action", "release"), ("x-ms-lease-id", MY_LEASE)];
    bench.call("PUT", "share/file?comp=lease", &release, b"").await.unwrap();
    assert_eq!((shown().await.as_str(), bench.rows()), ("available", rows), "nothing is kept for a lease");
    let named = bench.refused("GET", &at("share/file", &time), &[("x-ms-lease-id", MY_LEASE)]).await;
    assert_eq!(named, FileError::file_lease(LeaseRefusal::NotPresent));
}

/// Without a snapshot a change costs no row; after one the first change of a file costs the past entry and what keeps it.
#[tokio::test]
async fn what_a_change_costs() {
    let bench = Bench::with_share().await;
    bench.create("file", 10).await;
    bench.write("file", 0, b"0").await;
    let alone = bench.rows();
    bench.write("file", 0, b"1").await;
    bench.sweep().await;
    assert_eq!(bench.rows(), alone);
    let time = bench.snapshot().await;
    assert_eq!(bench.rows(), alone + 1);
    bench.call("PUT", "share/file?comp=metadata", &[("x-ms-meta-a", "b")], b"").await.unwrap();
    // The past entry, what keeps it, and a reference to the map.
    assert_eq!(bench.rows(), alone + 4);
    for _ in 0..3 {
        bench.call("PUT", "share/file?comp=metadata", &[("x-ms-meta-a", "c")], b"").await.unwrap();
    }
    assert_eq!(bench.rows(), alone + 4);
    bench.drop_snapshot(&time).await;
    bench.sweep().await;
    assert_eq!(bench.rows(), alone);
}

#[tokio::test]
async fn they_are_listed_before_their_share_and_in_pages() {
    let bench = Bench::with_share().await;
    for name in ["aaa", "zzz"] {
        bench.call("PUT", &format!("{name}?restype=share"), &[], b"").await.unwrap();
    }
    let mut times = Vec::new();
    for _ in 0..3 {
        times.push(bench.snapshot().await);
    }
    let other = bench.call("PUT", "zzz?restype=share&comp=snapshot", &[("x-ms-meta-a", "b")], b"").await.unwrap();
    let other = header(&other, "x-ms-snapshot").unwrap();
    let expected = format!("aaa;share {};share {};share {};share;zzz {other};zzz", times[0], times[1], times[2]);
    for max in 1..8 {
        let (mut found, mut marker) = (Vec::new(), String::new());
        loop {
            let list = bench.text("GET", &format!("?comp=list&include=snapshots&maxresults={max}{marker}")).await;
            let shares = between(&list, "<Share>", "</Share>");
            assert!(shares.len() <= max);
            found.extend(shares.iter().map(|share| {
                let part = |name: &str| between(share, &format!("<{name}>"), "<").concat();
                format!("{} {}", part("Name"), part("Snapshot")).trim_end().to_owned()
            }));
            match between(&list, "<NextMarker>", "<").first() {
                Some(next) => marker = format!("&marker={next}"),
                None => break,
            }
        }
        assert_eq!(found.join(";"), expected, "pages of {max}");
    }
    let plain = bench.text("GET", "?comp=list").await;
    assert!(!plain.contains("<Snapshot>") && between(&plain, "<Name>", "<").len() == 3);
    let metadata = bench.text("GET", "?comp=list&include=snapshots,metadata&prefix=zzz").await;
    assert_eq!(between(&metadata, "<a>", "<"), ["b"], "only the snapshot has it");
}

#[tokio::test]
async fn a_directory_is_listed_as_it_was_in_pages() {
    let bench = Bench::with_share().await;
    for n in 0..130 {
        bench.create(&format!("f{n:03}"), n).await;
    }
    let time = bench.snapshot().await;
    // More rows than a page passes over come, go and change.
    for n in 0..120 {
        bench.create(&format!("e{n:03}"), 1).await;
        match n % 3 {
            0 => _ = bench.call("DELETE", &format!("share/f{n:03}"), &[], b"").await.unwrap(),
            1 => bench.create(&format!("f{n:03}"), 7_000).await,
            _ => _ = bench.rename(&format!("f{n:03}"), &format!("g{n:03}"), &[]).await.unwrap(),
        }
    }
    bench.snapshot().await;
    let expected: Vec<String> = (0..130).map(|n| format!("f{n:03} {n}")).collect();
    for max in [7, 50, 5_000] {
        let (mut found, mut marker) = (Vec::new(), String::new());
        loop {
            let url = at(&format!("share?restype=directory&comp=list&maxresults={max}{marker}"), &time);
            let list = bench.text("GET", &url).await;
            assert!(list.contains(&format!("ShareSnapshot=\"{time}\"")), "{list}");
            let names = between(&list, "<Name>", "<");
            assert!(names.len() <= max);
            let lengths = between(&list, "<Content-Length>", "<");
            found.extend(names.iter().zip(lengths).map(|(name, length)| format!("{name} {length}")));
            match between(&list, "<NextMarker>", "<").first() {
                Some(next) => marker = format!("&marker={next}"),
                None => break,
            }
        }
        assert_eq!(found, expected, "pages of {max}");
    }
    let prefixed = bench.text("GET", &at("share?restype=directory&comp=list&prefix=F01", &time)).await;
    assert_eq!(between(&prefixed, "<Name>", "<").len(), 10);
}

#[tokio::test]
async fn the_most_snapshots_of_a_share() {
    let bench = Bench::with_share().await;
    for _ in 0..200 {
        bench.snapshot().await;
    }
    let url = "share?restype=share&comp=snapshot";
    assert_eq!(bench.refused("PUT", url, &[]).await, FileError::ShareSnapshotCountExceeded);
    let list = bench.text("GET", "?comp=list&include=snapshots").await;
    let times = between(&list, "<Snapshot>", "<");
    assert!(times.len() == 200 && times.is_sorted());
    bench.drop_snapshot(times[0]).await;
    assert!(*bench.snapshot().await > *times[199], "times rise, also those of snapshots in one second");
    bench.check_rows().await;
}

#[tokio::test]
async fn a_share_with_snapshots_goes_only_with_them() {
    let (bench, time) = bench().await;
    bench.call("DELETE", "share/dir/file", &[], b"").await.unwrap();
    assert_eq!(bench.refused("DELETE", SHARE, &[]).await, FileError::ShareHasSnapshots);
    lease_snapshot(&bench, &time, TAKE).await.unwrap();
    let leased = FileError::DeleteShareWhenSnapshotLeased;
    assert_eq!(bench.refused("DELETE", SHARE, &[INCLUDE]).await, leased);
    // The lease of the share itself comes first.
    let mine = ("x-ms-lease-id", MY_LEASE);
    let none = FileError::share_lease(LeaseRefusal::NotPresent);
    assert_eq!(bench.refused("DELETE", SHARE, &[INCLUDE, mine]).await, none);
    let gone = bench.call("DELETE", SHARE, &[INCLUDE_LEASED], b"").await.unwrap();
    assert_eq!(header(&gone, "x-ms-file-share-usage-bytes"), Some("0"));
    assert_eq!(header(&gone, "x-ms-file-share-snapshot-usage-bytes"), Some("2000"));
    assert_eq!(bench.refused("GET", &at(SHARE, &time), &[]).await, FileError::ShareNotFound);
    bench.advance(60).await;
    bench.sweep().await;
    assert_eq!((bench.rows(), service::testing::figure(&*bench.engine, "contents")), (0, 0));
}

#[tokio::test]
async fn a_share_is_restored_with_its_snapshots() {
    let (mut bench, time) = bench().await;
    bench.settings.share_soft_delete_days = Some(7);
    bench.write("dir/file", 0, b"after!").await;
    let second = bench.snapshot().await;
    bench.write("dir/file", 0, b"at end").await;
    // One is dropped, and nothing has let go of it before the share goes.
    bench.drop_snapshot(&second).await;
    lease_snapshot(&bench, &time, TAKE).await.unwrap();
    bench.call("DELETE", SHARE, &[INCLUDE_LEASED], b"").await.unwrap();
    bench.check_rows().await;
    bench.sweep().await;
    bench.check_rows().await;
    let list = bench.text("GET", "?comp=list&include=deleted,snapshots").await;
    assert!(!list.contains("<Snapshot>"), "{list}");
    let headers =
        [("x-ms-deleted-share-name", "share"), ("x-ms-deleted-share-version", between(&list, "<Version>", "<")[0])];
    bench.call("PUT", "share?restype=share&comp=undelete", &headers, b"").await.unwrap();
    let read = bytes(bench.call("GET", &at("share/dir/file", &time), &[], b"").await.unwrap()).await;
    assert_eq!((&read[..6], &bench.read("dir/file").await[..6]), (&b"before"[..], &b"at end"[..]));
    let told = bench.call("HEAD", &at(SHARE, &time), &[], b"").await.unwrap();
    assert_eq!(header(&told, "x-ms-lease-state"), Some("available"));
    assert_eq!(bench.refused("GET", &at("share/dir/file", &second), &[]).await, FileError::ShareNotFound);
    assert_eq!(bench.past_rows().await, 2);
    // Nobody restores it again.
    bench.call("DELETE", SHARE, &[INCLUDE], b"").await.unwrap();
    bench.advance(8 * 24 * 3600).await;
    bench.sweep().await;
    assert_eq!((bench.rows(), service::testing::figure(&*bench.engine, "contents")), (0, 0));
}

/// A snapshot that is dropped just before its share: whichever is worked off first, nothing is left.
#[tokio::test]
async fn a_snapshot_and_its_share_go_together() {
    let (bench, first) = bench().await;
    for n in 0..10 {
        bench.create(&format!("dir/{n}"), 10).await;
    }
    let second = bench.snapshot().await;
    for n in 0..10 {
        bench.write(&format!("dir/{n}"), 0, b"bytes").await;
    }
    bench.write("dir/file", 0, b"after!").await;
    for time in [&first, &second] {
        bench.drop_snapshot(time).await;
    }
    bench.call("DELETE", SHARE, &[], b"").await.unwrap();
    bench.check_rows().await;
    bench.call("PUT", SHARE, &[], b"").await.unwrap();
    bench.advance(60).await;
    bench.sweep().await;
    assert_eq!((bench.rows(), bench.past_rows().await), (3, 0));
}

#[tokio::test]
async fn leases_of_snapshots_are_their_own() {
    let (bench, time) = bench().await;
    let before = bench.call("HEAD", &at(SHARE, &time), &[], b"").await.unwrap();
    let taken = lease_snapshot(&bench, &time, TAKE).await.unwrap();
    assert_eq!((taken.status.as_u16(), header(&taken, "etag")), (201, header(&before, "etag")));
    let state = async |url: &str| {
        header(&bench.call("HEAD", url, &[], b"").await.unwrap(), "x-ms-lease-state").unwrap().to_owned()
    };
    assert_eq!((state(&at(SHARE, &time)).await.as_str(), state(SHARE).await.as_str()), ("leased", "available"));
    let other = bench.snapshot().await;
    assert_eq!(state(&at(SHARE, &other)).await, "available");
    let read = bench.refused("GET", &at(SHARE, &time), &[("x-ms-lease-id", YOUR_LEASE)]).await;
    assert_eq!(read, FileError::share_lease(LeaseRefusal::IdMismatch));
    let delete = async |headers: &[(&str, &str)]| refusal(bench.call("DELETE", &at(SHARE, &time), headers, b"").await);
    assert_eq!(delete(&[]).await, FileError::share_lease(LeaseRefusal::IdMissing));
    let yours = ("x-ms-lease-id", YOUR_LEASE);
    assert_eq!(delete(&[yours]).await, FileError::share_lease(LeaseRefusal::IdMismatch));
    // With the header for all snapshots it is refused whatever the lease says.
    assert_eq!(delete(&[yours, INCLUDE]).await, FileError::header("x-ms-delete-snapshots", "include"));
    assert_eq!(bench.call("DELETE", &at(SHARE, &time), &[("x-ms-lease-id", MY_LEASE)], b"").await.unwrap().status, 202);
    // The share's own lease does not matter to its snapshots.
    bench.call("PUT", "share?restype=share&comp=lease", TAKE, b"").await.unwrap();
    bench.drop_snapshot(&other).await;
    bench.check_rows().await;
}

#[tokio::test]
async fn a_snapshot_keeps_the_settings_of_its_share() {
    let (bench, time) = bench().await;
    let settings = [("x-ms-share-quota", "7"), ("x-ms-access-tier", "Cool")];
    bench.call("PUT", "share?restype=share&comp=properties", &settings, b"").await.unwrap();
    bench.call("PUT", "share?restype=share&comp=metadata", &[("x-ms-meta-a", "b")], b"").await.unwrap();
    let told = bench.call("GET", &at(SHARE, &time), &[], b"").await.unwrap();
    assert_eq!((header(&told, "x-ms-share-quota"), header(&told, "x-ms-meta-a")), (Some("5120"), None));
    assert_eq!(header(&told, "x-ms-access-tier"), Some("TransactionOptimized"));
}

#[tokio::test]
async fn files_of_snapshots_are_copied_from() {
    let (bench, _) = Bench::with_elsewhere().await;
    bench.create("file", 6).await;
    bench.write("file", 0, b"before").await;
    let time = bench.snapshot().await;
    let sources = [at(&url("file"), &time), at(&blob_url("file"), &time)];
    for changed in [false, true] {
        if changed {
            bench.write("file", 0, b"after!").await;
        }
        for source in &sources {
            bench.call("PUT", "share/copy", &[("x-ms-copy-source", source)], b"").await.unwrap();
            assert_eq!(bench.read("copy").await, b"before", "{source}");
            let range = [UPDATE[0], ("x-ms-range", "bytes=0-2"), ("x-ms-source-range", "bytes=3-5")];
            let headers = [&[("x-ms-copy-source", &**source)], &range[..]].concat();
            bench.call("PUT", "share/copy?comp=range", &headers, b"").await.unwrap();
            assert_eq!(bench.read("copy").await, b"oreore", "{source}");
        }
    }
    // A file is restored from a snapshot of itself, also while it is as it was.
    for _ in 0..2 {
        bench.call("PUT", "share/file", &[("x-ms-copy-source", &*sources[0])], b"").await.unwrap();
        assert_eq!(bench.read("file").await, b"before");
        bench.write("file", 0, b"again!").await;
    }
    for source in [at(&url("file"), UNKNOWN), at(&blob_url("file"), UNKNOWN), at(&url("copy"), &time)] {
        let refused = bench.refused("PUT", "share/copy", &[("x-ms-copy-source", &*source)]).await;
        assert!(matches!(refused, FileError::CannotVerifyCopySource(_)), "{source}: {refused:?}");
    }
    bench.check_rows().await;
    bench.drop_snapshot(&time).await;
    bench.sweep().await;
    assert_eq!(bench.read("file").await, b"again!");
    bench.check_rows().await;
}

/// A copy from elsewhere goes on after a snapshot was taken of what had come.
#[tokio::test]
async fn a_background_copy_goes_on_behind_a_snapshot() {
    use crate::testing::{Script, Then};
    let (bench, elsewhere) = Bench::with_elsewhere().await;
    let stalled = Script { length: 1_000, then: Then::Stall, ..Script::of(&[7; 600]) };
    elsewhere.0.lock().unwrap().insert("http://a/x", stalled);
    let pending = bench.call("PUT", "share/file", &[("x-ms-copy-source", "http://a/x")], b"").await.unwrap();
    let id = header(&pending, "x-ms-copy-id").unwrap();
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let time = bench.snapshot().await;
    let before = bench.read("file").await;
    let abort = format!("share/file?comp=copy&copyid={id}");
    bench.call("PUT", &abort, &[("x-ms-copy-action", "abort")], b"").await.unwrap();
    assert_eq!(bench.read("file").await, b"");
    let told = bench.call("GET", &at("share/file", &time), &[], b"").await.unwrap();
    assert_eq!(header(&told, "x-ms-copy-status"), Some("pending"));
    assert_eq!(bytes(told).await, before);
    bench.check_rows().await;
}

/// What List Ranges tells: `+` for written and `-` for cleared pages.
async fn changes(bench: &Bench, url: &str, headers: &[(&str, &str)]) -> Result<String, FileError> {
    let list = match bench.call("GET", url, headers, b"").await {
        Ok(answer) => crate::testing::text(answer).await,
        Err(Failure::Refused(error)) => return Err(error),
        Err(failure) => panic!("{url}: {failure:?}"),
    };
    let list = between(&list, "<Ranges>", "</Ranges>").concat();
    let ranges = list.split_inclusive("Range>").filter(|part| part.contains("<Start>")).map(|part| {
        let number = |name: &str| between(part, &format!("<{name}>"), "<").concat();
        let sign = if part.ends_with("</ClearRange>") { '-' } else { '+' };
        format!("{sign}{}-{}", number("Start"), number("End"))
    });
    Ok(ranges.collect::<Vec<_>>().join(" "))
}

fn since(path: &str, time: &str) -> String {
    format!("share/{path}?comp=rangelist&prevsharesnapshot={time}")
}

const RENAME: &[(&str, &str)] = &[("x-ms-file-support-rename", "true")];

#[tokio::test]
async fn what_has_changed_since_a_snapshot() {
    let bench = Bench::with_share().await;
    bench.create("file", 5_000).await;
    bench.write("file", 0, &[1; 2_000]).await;
    let first = bench.snapshot().await;
    assert_eq!(changes(&bench, &since("file", &first), &[]).await.as_deref(), Ok(""));
    bench.write("file", 600, b"x").await;
    bench.write("file", 3_000, b"y").await;
    let clear = [("x-ms-write", "clear"), ("x-ms-range", "bytes=0-511")];
    bench.call("PUT", "share/file?comp=range", &clear, b"").await.unwrap();
    let expected = "-0-511 +512-1023 +2560-3071";
    assert_eq!(changes(&bench, &since("file", &first), &[]).await.as_deref(), Ok(expected));
    let second = bench.snapshot().await;
    // Written and cleared since, though zeros at both ends.
    bench.write("file", 4_096, &[1; 512]).await;
    let clear = [("x-ms-write", "clear"), ("x-ms-range", "bytes=4096-4607")];
    bench.call("PUT", "share/file?comp=range", &clear, b"").await.unwrap();
    bench.write("file", 4_900, b"z").await;
    let latest = "-4096-4607 +4608-4999";
    assert_eq!(changes(&bench, &since("file", &second), &[]).await.as_deref(), Ok(latest));
    let both = format!("{expected} {latest}");
    assert_eq!(changes(&bench, &since("file", &first), &[]).await, Ok(both));
    // Between two snapshots.
    let between = at(&since("file", &first), &second);
    assert_eq!(changes(&bench, &between, &[]).await.as_deref(), Ok(expected));
    assert_eq!(changes(&bench, &at(&since("file", &second), &second), &[]).await.as_deref(), Ok(""));
    let backwards = at(&since("file", &second), &first);
    assert_eq!(changes(&bench, &backwards, &[]).await, Err(FileError::query("prevsharesnapshot", &*second)));
    // A part of it, and in pages.
    let part = [("x-ms-range", "bytes=512-2600")];
    assert_eq!(changes(&bench, &between, &part).await.as_deref(), Ok("+512-1023 +2560-3071"));
    let paged = format!("{between}&maxresults=2");
    assert_eq!(changes(&bench, &paged, &[]).await.as_deref(), Ok("-0-511 +512-1023"));
    bench.sweep().await;
    assert_eq!(changes(&bench, &between, &[]).await.as_deref(), Ok(expected), "rewriting changes nothing");
    // Ranges themselves are those of the snapshot.
    let ranges = at("share/file?comp=rangelist", &first);
    assert_eq!(changes(&bench, &ranges, &[]).await.as_deref(), Ok("+0-2047"));
}

/// However often a file is renamed, what a snapshot that lives needs to find it is not forgotten.
#[tokio::test]
async fn a_file_that_was_renamed_many_times_is_compared() {
    let bench = Bench::with_share().await;
    bench.create("file0", 1_000).await;
    let first = bench.snapshot().await;
    for n in 0..10 {
        let other = bench.snapshot().await;
        bench.rename(&format!("file{n}"), &format!("file{}", n + 1), &[]).await.unwrap();
        bench.drop_snapshot(&other).await;
    }
    bench.write("file10", 0, b"x").await;
    assert_eq!(changes(&bench, &since("file10", &first), RENAME).await.as_deref(), Ok("+0-511"));
    bench.sweep().await;
    bench.check_rows().await;
}

#[tokio::test]
async fn a_file_that_is_not_the_same_is_not_compared() {
    let bench = Bench::with_share().await;
    for name in ["same", "replaced", "copied", "gone", "renamed", "moved", "over"] {
        bench.create(name, 1_000).await;
    }
    for name in ["dir", "dir/sub"] {
        bench.mkdir(name).await;
    }
    bench.create("dir/sub/file", 1_000).await;
    let time = bench.snapshot().await;
    bench.create("replaced", 1_000).await;
    bench.call("PUT", "share/copied", &[("x-ms-copy-source", &*url("same"))], b"").await.unwrap();
    bench.call("DELETE", "share/gone", &[], b"").await.unwrap();
    bench.create("gone", 1_000).await;
    // Changed before it is renamed, and renamed twice.
    bench.write("renamed", 0, b"x").await;
    bench.rename("renamed", "between", &[]).await.unwrap();
    bench.rename("between", "new", &[]).await.unwrap();
    bench.rename("moved", "over", &[("x-ms-file-rename-replace-if-exists", "true")]).await.unwrap();
    bench.rename("dir/sub", "other?restype=directory", &[]).await.unwrap();
    bench.create("later", 1_000).await;
    let mismatch = Err(FileError::FileGenerationMismatch);
    for (path, plain, renamed) in [
        ("same", Ok(""), Ok("")),
        ("replaced", mismatch.clone(), mismatch.clone()),
        ("copied", mismatch.clone(), mismatch.clone()),
        ("gone", mismatch.clone(), mismatch.clone()),
        ("new", mismatch.clone(), Ok("+0-511")),
        ("over", mismatch.clone(), Ok("")),
        ("other/file", mismatch.clone(), Ok("")),
        ("later", Err(FileError::ResourceNotFound), Err(FileError::ResourceNotFound)),
        ("renamed", Err(FileError::ResourceNotFound), Err(FileError::ResourceNotFound)),
    ] {
        let url = since(path, &time);
        assert_eq!(changes(&bench, &url, &[]).await.as_deref(), plain.as_ref().copied(), "{path}");
        assert_eq!(changes(&bench, &url, RENAME).await.as_deref(), renamed.as_ref().copied(), "{path} renamed");
    }
    assert_eq!(changes(&bench, &since("over", UNKNOWN), &[]).await, Err(FileError::ShareNotFound));
    for wrong in ["x", ""] {
        let refused = Err(FileError::query("prevsharesnapshot", wrong));
        assert_eq!(changes(&bench, &since("none", wrong), &[]).await, refused, "before what is not there");
    }
    // Replaced after it was renamed.
    bench.rename("same", "as it was", &[]).await.unwrap();
    bench.create("as it was", 1_000).await;
    for headers in [&[][..], RENAME] {
        assert_eq!(
            changes(&bench, &since("as%20it%20was", &time), headers).await,
            Err(FileError::FileGenerationMismatch)
        );
    }
    // The same in a later snapshot, and once the one before it is gone.
    let later = bench.snapshot().await;
    bench.rename("new", "newer", &[]).await.unwrap();
    assert_eq!(changes(&bench, &at(&since("new", &time), &later), RENAME).await.as_deref(), Ok("+0-511"));
    assert_eq!(changes(&bench, &since("newer", &time), RENAME).await.as_deref(), Ok("+0-511"));
    assert_eq!(changes(&bench, &since("newer", &later), RENAME).await.as_deref(), Ok(""));
    bench.drop_snapshot(&later).await;
    bench.sweep().await;
    assert_eq!(changes(&bench, &since("newer", &time), RENAME).await.as_deref(), Ok("+0-511"));
}

/// A file that has, or had, several names is found by its id.
#[tokio::test]
async fn a_file_with_several_names_is_compared() {
    let bench = Bench::with_nfs_share().await;
    bench.create("plain", 2_000).await;
    let first = bench.snapshot().await;
    bench.link("plain", "second", &[]).await.unwrap();
    bench.write("second", 0, b"x").await;
    let linked = bench.snapshot().await;
    bench.write("plain", 600, b"y").await;
    bench.rename("second", "third", &[]).await.unwrap();
    let mismatch = Err(FileError::FileGenerationMismatch);
    let compare = async |path: &str, expected: [(&str, &str); 2]| {
        for (time, expected) in expected {
            assert_eq!(changes(&bench, &since(path, time), RENAME).await.as_deref(), Ok(expected), "{path} {time}");
        }
    };
    let both = "+0-1023";
    compare("plain", [(&first, both), (&linked, "+512-1023")]).await;
    compare("third", [(&first, both), (&linked, "+512-1023")]).await;
    assert_eq!(changes(&bench, &since("third", &first), &[]).await, mismatch, "it had another name");
    // One name is left, and that is renamed.
    bench.call("DELETE", "share/plain", &[], b"").await.unwrap();
    compare("third", [(&first, both), (&linked, "+512-1023")]).await;
    bench.rename("third", "fourth", &[]).await.unwrap();
    compare("fourth", [(&first, both), (&linked, "+512-1023")]).await;
    bench.create("third", 2_000).await;
    assert_eq!(changes(&bench, &since("third", &first), RENAME).await, Err(FileError::ResourceNotFound));
    bench.drop_snapshot(&linked).await;
    bench.sweep().await;
    assert_eq!(changes(&bench, &since("fourth", &first), RENAME).await.as_deref(), Ok(both));
    bench.check_rows().await;
}

/// However many names a file has, a change keeps it once, and a name that goes is kept beside it. Its bytes count once.
#[tokio::test]
async fn what_a_change_of_a_file_with_several_names_costs() {
    let bench = Bench::with_nfs_share().await;
    bench.create("a", 100).await;
    for name in ["b", "c", "d"] {
        bench.link("a", name, &[]).await.unwrap();
    }
    let past_bytes = async || {
        let generation = bench.generation().await;
        let usage = engine::read::<_, FileError, _>(&*bench.engine, move |rows, _| {
            Ok(crate::model::find_usage(rows, generation)?.past_bytes)
        });
        usage.await.unwrap()
    };
    bench.snapshot().await;
    for name in ["a", "b", "c"] {
        bench.write(name, 0, name.as_bytes()).await;
    }
    // The file as it was, and what keeps it.
    assert_eq!((bench.past_rows().await, past_bytes().await), (2, 100));
    bench.call("DELETE", "share/a", &[], b"").await.unwrap();
    assert_eq!(bench.past_rows().await, 4, "the name that is gone");
    bench.link("b", "new", &[]).await.unwrap();
    bench.call("DELETE", "share/new", &[], b"").await.unwrap();
    assert_eq!(bench.past_rows().await, 4, "no snapshot sees the new name");
    for name in ["b", "c"] {
        bench.call("DELETE", &format!("share/{name}"), &[], b"").await.unwrap();
    }
    // The last name is not what it was, either: it is the file itself now.
    assert_eq!((bench.past_rows().await, past_bytes().await), (10, 100));
    bench.check_rows().await;
}

#[tokio::test]
async fn a_symbolic_link_is_in_a_snapshot_as_it_was() {
    let bench = Bench::with_nfs_share().await;
    bench.symlink("link", "old", &[]).await.unwrap();
    let time = bench.snapshot().await;
    bench.call("DELETE", "share/link", &[], b"").await.unwrap();
    bench.symlink("link", "new", &[]).await.unwrap();
    let text = async |url: &str| {
        let answer = bench.call("GET", url, &[], b"").await.unwrap();
        header(&answer, "x-ms-link-text").unwrap().to_owned()
    };
    const LINK: &str = "share/link?restype=symboliclink";
    assert_eq!((text(LINK).await, text(&at(LINK, &time)).await), ("new".to_owned(), "old".to_owned()));
    assert_eq!(bench.refused("GET", &at(LINK, UNKNOWN), &[]).await, FileError::ShareNotFound);
    let create = [("x-ms-link-text", "x")];
    let refused = bench.refused("PUT", &at("share/other?restype=symboliclink", &time), &create).await;
    assert_eq!(refused, FileError::query("sharesnapshot", &*time));
    let create = [("x-ms-type", "file"), ("x-ms-file-target-file", "link")];
    let refused = bench.refused("PUT", &at("share/other?restype=hardlink", &time), &create).await;
    assert_eq!(refused, FileError::query("sharesnapshot", &*time));
}

/// Usage of a share counts what is there now, that of its snapshots what only they see.
#[tokio::test]
async fn snapshots_do_not_count_towards_the_quota() {
    let bench = Bench::new();
    bench.call("PUT", SHARE, &[("x-ms-share-quota", "1")], b"").await.unwrap();
    let size: u64 = 600 << 20;
    for n in 0..5 {
        bench.create("file", size + n).await;
        bench.snapshot().await;
    }
    bench.create("other", 1 << 20).await;
    let stats = bench.text("GET", "share?restype=share&comp=stats").await;
    assert!(stats.contains(&format!("<ShareUsageBytes>{}<", size + 4 + (1 << 20))), "{stats}");
    bench.check_rows().await;
    let gone = bench.call("DELETE", SHARE, &[INCLUDE], b"").await.unwrap();
    let past = (0..4).map(|n| size + n).sum::<u64>().to_string();
    assert_eq!(header(&gone, "x-ms-file-share-snapshot-usage-bytes"), Some(&*past));
}
