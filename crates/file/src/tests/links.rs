//! Links: what is done through one name of a file is seen through all of them, and symbolic links are never followed.
//!
//! Random links against a plain model: the seed of a failure is printed and can be tried again with `LAZURITE_SEED`.

use std::collections::BTreeMap;

use super::*;
use crate::change::remove;
use crate::testing::{Bench, MY_LEASE, between, header, refusal, request, url};
use crate::tree::{self, Target};
use crate::{Failure, FileError};
use engine::{Changes, Commit, Key};
use service::space;
use wire::file_path::{FilePath, PathKind, TrailingDots};
use wire::http::{FixedBody, Reply};
use wire::names::ShareName;

/// A file with three names, one of them in a directory.
async fn linked() -> Bench {
    let bench = Bench::with_nfs_share().await;
    bench.mkdir("dir").await;
    bench.create("one", 2_000).await;
    bench.link("one", "two", &[]).await.unwrap();
    bench.link("two", "dir/Three", &[]).await.unwrap();
    bench
}

const NAMES: [&str; 3] = ["one", "two", "dir/three"];

/// All that is told of a file, whatever name it is asked by. What depends on the directory of the name is left out.
async fn told(bench: &Bench, path: &str) -> (Vec<(String, String)>, Vec<u8>) {
    let answer = bench.call("GET", &format!("share/{path}"), &[], b"").await.unwrap();
    let headers = answer.headers.iter().filter(|(name, _)| name.as_str() != "x-ms-file-parent-id");
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    (headers, crate::testing::bytes(answer).await)
}

async fn assert_same(bench: &Bench, after: &str) {
    let first = told(bench, NAMES[0]).await;
    for name in NAMES {
        assert_eq!(told(bench, name).await, first, "{name} after {after}");
    }
    bench.check_rows().await;
}

async fn count(bench: &Bench, path: &str) -> String {
    header(&bench.file(path).await, "x-ms-link-count").unwrap().to_owned()
}

#[tokio::test]
async fn every_change_through_one_name_is_seen_through_all() {
    let bench = linked().await;
    let source = url("source");
    bench.create("source", 700).await;
    bench.write("source", 0, b"from the source").await;
    let copy = [("x-ms-copy-source", source.as_str())];
    let copy_range =
        [copy[0], ("x-ms-write", "update"), ("x-ms-range", "bytes=0-3"), ("x-ms-source-range", "bytes=0-3")];
    let owner = [("x-ms-owner", "7"), ("x-ms-group", "8"), ("x-ms-mode", "0600"), ("x-ms-content-length", "1024")];
    type Change<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [u8]);
    let changes: [Change<'_>; 10] = [
        ("PATH?comp=range", UPDATE, b"data"),
        ("PATH?comp=range", &copy_range, b""),
        ("PATH?comp=range", CLEAR, b""),
        ("PATH?comp=properties", &owner, b""),
        ("PATH?comp=metadata", &[("x-ms-meta-a", "b")], b""),
        ("PATH", &copy, b""),
        ("PATH", CREATE, b""),
        ("PATH?comp=range", UPDATE, b"more"),
        ("PATH?comp=lease", ACQUIRE, b""),
        ("PATH?comp=lease", BREAK, b""),
    ];
    let before = (bench.rows(), header(&bench.file("one").await, "x-ms-file-id").unwrap().to_owned());
    for (at, (change, headers, body)) in changes.into_iter().enumerate() {
        bench.advance(1).await;
        let path = format!("share/{}", NAMES[at % NAMES.len()]);
        let earlier = told(&bench, "one").await;
        bench.call("PUT", &change.replace("PATH", &path), headers, body).await.unwrap();
        assert_same(&bench, change).await;
        assert_ne!(told(&bench, "one").await, earlier, "{change}");
        assert_eq!(count(&bench, "two").await, "3");
    }
    assert_eq!(header(&bench.file("two").await, "x-ms-file-id"), Some(&*before.1));
    assert_eq!(bench.usage().await, 1_024 + 700, "the bytes count once");
}

/// Whoever creates a file over a name spells that name anew, as over any other file. The others keep their spelling.
#[tokio::test]
async fn a_name_that_is_written_over_is_spelled_anew() {
    let bench = linked().await;
    bench.create("TWO", 5).await;
    assert_eq!(bench.names("").await, ["dir", "one", "TWO"]);
    assert_same(&bench, "a create").await;
    bench.rename("one", "ONE", &[]).await.unwrap();
    assert_eq!(bench.names("").await, ["dir", "ONE", "TWO"]);
    assert_eq!(count(&bench, "one").await, "3");
    assert_same(&bench, "a rename").await;
}

#[tokio::test]
async fn the_file_goes_with_its_last_name() {
    let bench = Bench::with_nfs_share().await;
    bench.mkdir("dir").await;
    bench.create("other", 1).await;
    bench.create("other", 0).await;
    bench.sweep().await;
    let (empty, mut orders) = (bench.figures(), vec![NAMES]);
    orders.extend([["two", "dir/three", "one"], ["dir/three", "one", "two"]]);
    for order in orders {
        bench.create("one", 2_000).await;
        bench.write("one", 0, b"bytes").await;
        let alone = bench.rows();
        bench.link("one", "two", &[]).await.unwrap();
        bench.link("one", "dir/three", &[]).await.unwrap();
        // Two names, and the row of the file itself.
        assert_eq!(bench.rows(), alone + 3);
        for (gone, name) in order.into_iter().enumerate() {
            bench.advance(1).await;
            let before = bench.file(order[2]).await;
            let answer = bench.call("DELETE", &format!("share/{name}"), &[], b"").await.unwrap();
            assert_eq!(header(&answer, "x-ms-link-count"), Some(["2", "1", "0"][gone]));
            assert_eq!(bench.refused("GET", &format!("share/{name}"), &[]).await, FileError::ResourceNotFound);
            for left in &order[gone + 1..] {
                assert_eq!(&bench.read(left).await[..5], b"bytes", "{left}");
                assert_eq!(count(&bench, left).await, ["2", "1"][gone]);
                let after = bench.file(left).await;
                assert_ne!(header(&after, "x-ms-file-change-time"), header(&before, "x-ms-file-change-time"));
            }
            bench.check_rows().await;
            if gone == 1 {
                // The file is an entry like any other again.
                assert_eq!(bench.rows(), alone);
            }
        }
        bench.sweep().await;
        assert_eq!((bench.figures(), bench.usage().await), (empty.clone(), 0));
    }
}

#[tokio::test]
async fn a_directory_with_a_name_of_a_file_in_it_is_not_empty() {
    let bench = linked().await;
    assert_eq!(bench.refused("DELETE", "share/dir?restype=directory", &[]).await, FileError::DirectoryNotEmpty);
    bench.call("DELETE", "share/dir/three", &[], b"").await.unwrap();
    bench.call("DELETE", "share/dir?restype=directory", &[], b"").await.unwrap();
    assert_eq!(count(&bench, "one").await, "2");
}

/// Clients send the path of the file as it is.
#[tokio::test]
async fn a_file_with_letters_beyond_ascii_is_linked() {
    let bench = Bench::with_nfs_share().await;
    bench.create("Stra%C3%9Fe", 7).await;
    bench.link("Straße", "link", &[]).await.unwrap();
    assert_eq!((&*count(&bench, "link").await, bench.names("").await), ("2", vec!["link".into(), "Straße".into()]));
}

#[tokio::test]
async fn links_have_their_version() {
    let bench = linked().await;
    bench.symlink("link", "one", &[]).await.unwrap();
    let headers = [("x-ms-type", "file"), ("x-ms-file-target-file", "one"), ("x-ms-link-text", "one")];
    for (method, restype, path) in
        [("PUT", "hardlink", "new"), ("PUT", "symboliclink", "other"), ("GET", "symboliclink", "link")]
    {
        let asked = async |version: &str| {
            let mut head = request(method, &format!("share/{path}?restype={restype}"), &headers);
            head.version = version.into();
            bench.send(head, &mut FixedBody::new(&b""[..])).await
        };
        assert_eq!(refusal(asked("2025-01-05").await), FileError::query("restype", restype), "{method} {restype}");
        asked("2025-05-05").await.unwrap();
    }
}

#[tokio::test]
async fn one_of_the_names_is_renamed() {
    let bench = linked().await;
    bench.write("two", 0, b"bytes").await;
    bench.rename("one", "dir/One", &[]).await.unwrap();
    assert_eq!(
        (bench.names("").await, bench.names("dir").await),
        (vec!["dir".into(), "two".into()], vec!["One".into(), "Three".into()])
    );
    for name in ["dir/one", "two", "dir/three"] {
        assert_eq!((&bench.read(name).await[..5], &*count(&bench, name).await), (&b"bytes"[..], "3"), "{name}");
    }
    bench.check_rows().await;
    // The directory of two of the names is renamed: they hang on its id.
    bench.rename("dir", "moved?restype=directory", &[]).await.unwrap();
    assert_eq!(bench.names("moved").await, ["One", "Three"]);
    assert_eq!(&bench.read("moved/three").await[..5], b"bytes");
    bench.check_rows().await;
}

const REPLACE: (&str, &str) = ("x-ms-file-rename-replace-if-exists", "true");

#[tokio::test]
async fn renames_over_a_name_of_a_file() {
    let bench = linked().await;
    bench.write("one", 0, b"bytes").await;
    bench.create("plain", 10).await;
    bench.rename("plain", "two", &[REPLACE]).await.unwrap();
    assert_eq!((&*count(&bench, "one").await, &*count(&bench, "two").await), ("2", "1"));
    assert_eq!((bench.read("two").await, &bench.read("dir/three").await[..5]), (vec![0; 10], &b"bytes"[..]));
    assert_eq!(bench.usage().await, 2_010);
    bench.check_rows().await;
    bench.rename("one", "two", &[REPLACE]).await.unwrap();
    assert_eq!((bench.usage().await, &*count(&bench, "two").await), (2_000, "2"));
    bench.check_rows().await;
}

/// On a full disk only what frees space is done. A file with several names must not be there for ever.
#[tokio::test]
async fn each_name_can_be_deleted_on_a_full_disk() {
    let bench = linked().await;
    let share = ShareName::parse("share").unwrap();
    for path in NAMES {
        let path_of = |path| FilePath::parse(path, PathKind::File, TrailingDots::Strip).unwrap();
        let target = Target { share: share.clone(), snapshot: None, path: path_of(path) };
        let frees_space =
            engine::commit::<bool, FileError, _>(&*bench.engine, Key::new(space::SHARE), move |rows, tick| {
                let mut changes = Changes::none();
                let spot = tree::find(rows, 1, &target)?;
                remove::file(&spot, None, rows, tick, &mut changes)?;
                Ok(Commit { outcome: changes.frees_space, changes })
            });
        assert!(frees_space.await.unwrap(), "{path}");
    }
    assert_eq!((bench.names("").await, bench.usage().await), (vec!["dir".to_owned()], 0));
}

/// POSIX does nothing when both names are of one file. Here the old name is gone after a rename, as after every other.
#[tokio::test]
async fn a_rename_to_another_name_of_the_same_file() {
    let bench = linked().await;
    assert_eq!(refusal(bench.rename("one", "TWO", &[]).await), FileError::ResourceAlreadyExists);
    let answer = bench.rename("one", "TWO", &[REPLACE]).await.unwrap();
    assert_eq!(header(&answer, "x-ms-link-count"), Some("2"));
    assert_eq!(
        (bench.names("").await, bench.names("dir").await),
        (vec!["dir".into(), "TWO".into()], vec!["Three".into()])
    );
    bench.check_rows().await;
    let answer = bench.rename("two", "dir/three", &[REPLACE]).await.unwrap();
    assert_eq!(header(&answer, "x-ms-link-count"), Some("1"));
    assert_eq!((bench.names("").await, bench.names("dir").await), (vec!["dir".into()], vec!["three".into()]));
    assert_eq!((bench.read("dir/three").await, bench.usage().await), (vec![0; 2_000], 2_000));
    bench.check_rows().await;
}

/// A file becomes a copy of itself, which is what it was.
#[tokio::test]
async fn a_copy_onto_another_name_of_the_same_file() {
    let bench = linked().await;
    bench.write("one", 0, b"bytes").await;
    for round in 0..3 {
        bench.call("PUT", "share/two", &[("x-ms-copy-source", &url("one"))], b"").await.unwrap();
        assert_eq!(&bench.read("dir/three").await[..5], b"bytes", "{round}");
        assert_same(&bench, "a copy").await;
    }
    for name in NAMES {
        bench.call("DELETE", &format!("share/{name}"), &[], b"").await.unwrap();
    }
    bench.sweep().await;
    assert_eq!((bench.usage().await, service::testing::figure(&*bench.engine, "contents")), (0, 0));
}

#[tokio::test]
async fn a_share_with_links_is_purged() {
    let mut bench = linked().await;
    bench.write("one", 0, b"bytes").await;
    bench.symlink("link", "one", &[]).await.unwrap();
    bench.settings.share_soft_delete_days = Some(1);
    bench.call("DELETE", "share?restype=share", &[], b"").await.unwrap();
    bench.check_rows().await;
    bench.advance(24 * 3_600).await;
    bench.sweep().await;
    assert_eq!((bench.rows(), service::testing::figure(&*bench.engine, "contents")), (0, 0));
}

/// A copy that goes on after its answer finds its file by its id, whatever becomes of the name that it was asked for.
#[tokio::test]
async fn a_copy_under_way_into_a_file_with_several_names() {
    use crate::testing::{Elsewhere, Script};
    let elsewhere = std::sync::Arc::new(Elsewhere::default());
    elsewhere.0.lock().unwrap().insert("http://a/x", Script::of(b"from elsewhere"));
    let bench = linked().await.reaching(elsewhere);
    bench.call("PUT", "share/two", &[("x-ms-copy-source", "http://a/x")], b"").await.unwrap();
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(header(&bench.file("one").await, "x-ms-copy-status"), Some("success"));
    assert_eq!(bench.read("dir/three").await, b"from elsewhere");
    assert_same(&bench, "a copy").await;
}

#[tokio::test]
async fn a_symbolic_link_is_not_the_file_that_it_leads_to() {
    let bench = Bench::with_nfs_share().await;
    bench.mkdir("dir").await;
    bench.create("dir/file", 1_024).await;
    bench.symlink("link", "dir/file", &[("x-ms-meta-a", "b")]).await.unwrap();
    bench.symlink("way", "dir", &[]).await.unwrap();
    // The service never follows it.
    assert_eq!(bench.refused("HEAD", "share/way/file", &[]).await, FileError::ParentNotFound);
    for ask in [FILE_READS, FILE_WRITES, LEASES].into_iter().flatten().chain([&CREATE_FILE]) {
        let works = ["GetFileProperties", "GetFileMetadata", "SetFileMetadata", "DeleteFile"].contains(&ask.name);
        if !works {
            let refused = refusal(bench.call(ask.method, &ask.url("share/link"), ask.headers, ask.body).await);
            assert_eq!(refused, FileError::ResourceTypeMismatch, "{}", ask.name);
        }
    }
    for ask in DIRECTORY_READS {
        let refused = bench.refused(ask.method, &ask.url("share/way"), ask.headers).await;
        assert_eq!(refused, FileError::ResourceNotFound, "{}", ask.name);
    }
    let copy = bench.call("PUT", "share/copy", &[("x-ms-copy-source", &url("link"))], b"").await;
    assert!(matches!(refusal(copy), FileError::CannotVerifyCopySource(_)));
    let copy = bench.call("PUT", "share/link", &[("x-ms-copy-source", &url("dir/file"))], b"").await;
    assert_eq!(refusal(copy), FileError::ResourceTypeMismatch);
    // What is said of the link is not said of the file.
    let set = [("x-ms-owner", "7"), ("x-ms-file-last-write-time", "2019-01-02T03:04:06.0000006Z")];
    bench.call("PUT", "share/link?comp=properties", &set, b"").await.unwrap();
    bench.call("PUT", "share/link?comp=metadata", &[("x-ms-meta-c", "d")], b"").await.unwrap();
    let lease = bench.refused("PUT", "share/link?comp=metadata", &[("x-ms-lease-id", MY_LEASE)]).await;
    assert!(matches!(lease, FileError::Lease(..)), "{lease:?}");
    let (link, file) = (bench.file("link").await, bench.file("dir/file").await);
    for (name, of_link, of_file) in [
        ("x-ms-owner", Some("7"), Some("0")),
        ("x-ms-file-last-write-time", Some(set[1].1), header(&file, "x-ms-file-creation-time")),
        ("x-ms-meta-c", Some("d"), None),
        ("x-ms-meta-a", None, None),
        ("x-ms-file-file-type", Some("SymLink"), Some("Regular")),
    ] {
        assert_eq!((header(&link, name), header(&file, name)), (of_link, of_file), "{name}");
    }
    bench.rename("link", "dir/link", &[]).await.unwrap();
    assert_eq!(refusal(bench.rename("dir/link", "way", &[]).await), FileError::ResourceAlreadyExists);
    bench.rename("dir/link", "way", &[REPLACE]).await.unwrap();
    assert_eq!(
        (bench.names("").await, bench.names("dir").await),
        (vec!["dir".into(), "way".into()], vec!["file".into()])
    );
    let answer = bench.call("DELETE", "share/way", &[], b"").await.unwrap();
    assert_eq!(header(&answer, "x-ms-link-count"), Some("0"));
    assert_eq!((bench.names("").await, bench.read("dir/file").await.len()), (vec!["dir".into()], 1_024));
    bench.check_rows().await;
}

const SEEDS: u64 = 30;
const STEPS: usize = 80;
const PATHS: [&str; 7] = ["a", "b", "c", "dir/a", "dir/b", "sub/a", "sub/c"];

/// Pseudorandom numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// A path, spelled in one way or another.
    fn path(&mut self) -> (&'static str, String) {
        let path = PATHS[self.below(PATHS.len())];
        let spelled = if self.below(2) == 0 { path.to_owned() } else { path.to_uppercase() };
        // Directories are there already, in lower case.
        (path, spelled.replace("DIR/", "dir/").replace("SUB/", "sub/"))
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct File {
    bytes: Vec<u8>,
    metadata: Option<String>,
}

/// Names with the numbers of their files.
#[derive(Debug, Default)]
struct Model {
    names: BTreeMap<&'static str, (String, usize)>,
    files: Vec<File>,
}

impl Model {
    fn file(&mut self, path: &str) -> Option<&mut File> {
        let number = self.names.get(path)?.1;
        self.files.get_mut(number)
    }

    fn count(&self, number: usize) -> usize {
        self.names.values().filter(|(_, other)| *other == number).count()
    }
}

fn worked(result: Result<Reply, Failure>) -> bool {
    match result {
        Ok(_) => true,
        Err(Failure::Refused(FileError::ResourceNotFound | FileError::ResourceAlreadyExists)) => false,
        Err(Failure::Refused(FileError::CannotVerifyCopySource(_))) => false,
        Err(other) => panic!("{other:?}"),
    }
}

async fn step(bench: &Bench, model: &mut Model, random: &mut Random) {
    let ((path, spelled), (other, other_spelled)) = (random.path(), random.path());
    let known = model.names.get(path).cloned();
    let (url_of, name) = (
        |spelled: &str| format!("share/{spelled}"),
        |spelled: &str| spelled.rsplit('/').next().unwrap_or_default().to_owned(),
    );
    match random.below(8) {
        0 => {
            let bytes = vec![0; random.below(600)];
            bench.create(&spelled, bytes.len() as u64).await;
            let file = File { bytes, metadata: None };
            let number = known.map_or(model.files.len(), |(_, number)| number);
            model.names.insert(path, (name(&spelled), number));
            if number == model.files.len() { model.files.push(file) } else { model.files[number] = file }
        }
        1 | 2 => {
            let linked = worked(bench.link(&other_spelled, &spelled, &[]).await);
            let number = model.names.get(other).map(|(_, number)| *number).filter(|_| known.is_none());
            assert_eq!(linked, number.is_some(), "{other} {path}");
            if let Some(number) = number {
                model.names.insert(path, (name(&spelled), number));
            }
        }
        3 => {
            let deleted = worked(bench.call("DELETE", &url_of(&spelled), &[], b"").await);
            assert_eq!(deleted, model.names.remove(path).is_some());
        }
        4 => {
            let replaces = random.below(2) == 0;
            let headers = [("x-ms-file-rename-replace-if-exists", if replaces { "true" } else { "false" })];
            let renamed = worked(bench.rename(&spelled, &other_spelled, &headers).await);
            let is_free = replaces || path == other || !model.names.contains_key(other);
            assert_eq!(renamed, known.is_some() && is_free, "{path} {other}");
            if let Some((_, number)) = known.filter(|_| renamed) {
                model.names.remove(path);
                model.names.insert(other, (name(&other_spelled), number));
            }
        }
        5 => {
            let Some(file) = model.file(path).filter(|file| !file.bytes.is_empty()) else { return };
            let at = random.below(file.bytes.len());
            let count = (1 + random.below(40)).min(file.bytes.len() - at);
            let bytes = vec![random.below(256) as u8; count];
            bench.write(&spelled, at as u64, &bytes).await;
            file.bytes[at..at + count].copy_from_slice(&bytes);
        }
        6 => {
            let value = random.below(1_000).to_string();
            let set =
                bench.call("PUT", &format!("share/{spelled}?comp=metadata"), &[("x-ms-meta-m", &value)], b"").await;
            assert_eq!(worked(set), known.is_some());
            if let Some(file) = model.file(path) {
                file.metadata = Some(value);
            }
        }
        _ => {
            let copied = bench.call("PUT", &url_of(&spelled), &[("x-ms-copy-source", &url(&other_spelled))], b"").await;
            let source = model.file(other).cloned();
            assert_eq!(worked(copied), source.is_some());
            let Some(source) = source else { return };
            let number = known.map_or(model.files.len(), |(_, number)| number);
            model.names.insert(path, (name(&spelled), number));
            if number == model.files.len() { model.files.push(source) } else { model.files[number] = source }
        }
    }
}

async fn compare(bench: &Bench, model: &Model) {
    let mut ids: BTreeMap<usize, String> = BTreeMap::new();
    for path in PATHS {
        let Some((_, number)) = model.names.get(path) else {
            assert_eq!(bench.refused("GET", &format!("share/{path}"), &[]).await, FileError::ResourceNotFound);
            continue;
        };
        let (told, file) = (bench.file(path).await, &model.files[*number]);
        assert_eq!(header(&told, "x-ms-link-count"), Some(&*model.count(*number).to_string()), "{path}");
        assert_eq!(header(&told, "x-ms-meta-m"), file.metadata.as_deref(), "{path}");
        assert_eq!(bench.read(path).await, file.bytes, "{path}");
        let id = header(&told, "x-ms-file-id").unwrap().to_owned();
        assert_eq!(*ids.entry(*number).or_insert(id.clone()), id, "{path}");
    }
    for (directory, prefix) in [("", ""), ("dir", "dir/"), ("sub", "sub/")] {
        let own = |path: &str| path.strip_prefix(prefix).is_some_and(|rest| !rest.contains('/'));
        let names = model.names.iter().filter(|(path, _)| own(path)).map(|(_, (spelled, _))| spelled.clone());
        let listed = bench.text("GET", &format!("share/{directory}?restype=directory&comp=list")).await;
        let files = between(&listed, "<File>", "</File>").join("");
        assert_eq!(between(&files, "<Name>", "<"), names.collect::<Vec<_>>(), "{directory}");
    }
    let live: usize = ids.keys().map(|number| model.files[*number].bytes.len()).sum();
    assert_eq!(bench.usage().await, live as u64);
    bench.check_rows().await;
}

#[tokio::test]
async fn random_links_are_as_the_model_says() {
    play(false).await;
}

/// Snapshots that come and go change nothing in the share itself.
#[tokio::test]
async fn random_links_are_as_the_model_says_among_snapshots() {
    play(true).await;
}

async fn play(has_snapshots: bool) {
    let given = std::env::var("LAZURITE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = given.map_or(0..SEEDS, |seed: u64| seed..seed + 1);
    for seed in seeds {
        println!("LAZURITE_SEED={seed}");
        let bench = Bench::with_nfs_share().await;
        bench.mkdir("dir").await;
        bench.mkdir("sub").await;
        let (mut model, mut random) = (Model::default(), Random(seed));
        let mut snapshots = Vec::new();
        for _ in 0..STEPS {
            match random.below(12) {
                0 | 1 if has_snapshots => snapshots.push(bench.snapshot().await),
                2 if !snapshots.is_empty() => {
                    bench.drop_snapshot(&snapshots.remove(random.below(snapshots.len()))).await;
                    bench.sweep().await;
                }
                _ => {}
            }
            step(&bench, &mut model, &mut random).await;
            compare(&bench, &model).await;
        }
        let with_snapshots = [("x-ms-delete-snapshots", "include")];
        bench.call("DELETE", "share?restype=share", &with_snapshots, b"").await.unwrap();
        bench.advance(30 * 24 * 3_600).await;
        bench.sweep().await;
        assert_eq!((bench.rows(), service::testing::figure(&*bench.engine, "contents")), (0, 0));
    }
}
