use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};

use ::bytes::Bytes;
use concurrency::range_lock::LockKind;
use engine::memory::MemoryEngine;
use engine::{BoxFuture, Decision, Engine, EngineError, Wrapper};

use super::*;
use crate::testing::header;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn chunk(from: u64, to: u64, length: u64) -> Chunk {
    Chunk { from, to: Some(to), length }
}

fn pattern(length: u64) -> Bytes {
    (0..length).map(|n| (n / 7 + n / 1_000) as u8).collect::<Vec<u8>>().into()
}

async fn copy(from: &OpenFile, to: &OpenFile, chunks: &[Chunk]) -> (Copied, Result<(), Refused>) {
    to.copy_chunks(from, chunks, CopyAccess::ReadAndWrite).await
}

fn done_with(chunks: usize, bytes: u64) -> Copied {
    Copied { chunks, bytes }
}

/// Contents that are stored, whoever refers to them.
fn contents(bench: &Bench) -> u64 {
    bench.figures().iter().find(|(name, _)| *name == "contents").map_or(0, |(_, count)| *count)
}

#[tokio::test]
async fn no_bytes_move_within_a_share() {
    let (bench, tree) = bench().await;
    let (from, to) = (open(&tree, created("from")).await, open(&tree, created("to")).await);
    let bytes = pattern(3 * MIB + 5);
    from.write(0, bytes.clone()).await.unwrap();
    let (before, stored) = (bench.file("to").await, contents(&bench));
    bench.advance(1).await;
    let chunks = [chunk(0, 0, MIB), chunk(MIB, MIB, MIB), chunk(2 * MIB, 2 * MIB, MIB + 5)];
    assert_eq!(copy(&from, &to, &chunks).await, (done_with(3, 3 * MIB + 5), Ok(())));
    assert!(bench.read("to").await == bytes);
    assert_eq!(contents(&bench), stored, "the copy refers to what is there");
    assert_eq!(bench.usage().await, 10 + 2 * (3 * MIB + 5), "it counts all the same");
    let after = bench.file("to").await;
    for name in ["etag", "last-modified", "x-ms-file-last-write-time", "x-ms-file-change-time"] {
        assert_ne!(header(&before, name), header(&after, name), "{name}");
    }
    // Neither file changes with the other.
    to.write(10, "changed".into()).await.unwrap();
    assert!(bench.read("from").await == bytes);
    from.set_end_of_file(0).await.unwrap();
    bench.sweep().await;
    assert!(bench.read("to").await[17..] == bytes[17..]);
    // What is small is stored as any other write.
    assert_eq!(copy(&to, &from, &[chunk(0, 0, 1_000)]).await, (done_with(1, 1_000), Ok(())));
    assert!(bench.read("from").await == bench.read("to").await[..1_000]);
    done(&bench, [from, to]).await;
}

/// A chunk reads what the one before it has written.
#[tokio::test]
async fn chunks_within_one_file_are_copied_one_after_the_other() {
    let (bench, tree) = bench().await;
    let file = open(&tree, created("new")).await;
    for (n, byte) in [b'a', b'b', b'c'].into_iter().enumerate() {
        file.write(n as u64 * MIB, vec![byte; MIB as usize].into()).await.unwrap();
    }
    let chunks = [chunk(0, MIB, MIB), chunk(MIB, 2 * MIB, MIB)];
    assert_eq!(copy(&file, &file, &chunks).await, (done_with(2, 2 * MIB), Ok(())));
    assert!(bench.read("new").await == vec![b'a'; 3 << 20]);
    done(&bench, [file]).await;
}

/// An engine in which something comes before the next commit, or which does the next commit and says that it failed.
struct Between {
    inner: Arc<MemoryEngine>,
    before: Mutex<Option<BoxFuture<'static, ()>>>,
    fails: AtomicBool,
}

impl std::fmt::Debug for Between {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Between").finish_non_exhaustive()
    }
}

impl Wrapper for Between {
    fn inner(&self) -> &dyn Engine {
        &*self.inner
    }

    fn commit(&self, decision: Box<dyn Decision>) -> BoxFuture<'_, Result<(), EngineError>> {
        let before = self.before.lock().unwrap().take();
        Box::pin(async move {
            if let Some(before) = before {
                before.await;
            }
            self.inner.commit(decision).await?;
            match self.fails.swap(false, Ordering::Relaxed) {
                true => Err(EngineError::Unavailable("nobody knows".to_owned())),
                false => Ok(()),
            }
        })
    }
}

async fn between() -> (Bench, Arc<Between>, Tree) {
    let inner = Arc::new(MemoryEngine::default());
    let between =
        Arc::new(Between { inner: Arc::clone(&inner), before: Mutex::default(), fails: AtomicBool::default() });
    let bench = Bench::over(Arc::clone(&between) as Arc<dyn Engine>, inner);
    bench.call("PUT", "share?restype=share", &[], b"").await.unwrap();
    let tree = tree(&bench).await;
    (bench, between, tree)
}

/// What others append meanwhile stays, and the chunk comes behind it: as bytes, and by reference.
#[tokio::test]
async fn appended_chunks_do_not_overwrite_each_other() {
    let (bench, between, tree) = between().await;
    let (from, to) = (open(&tree, created("from")).await, open(&tree, created("to")).await);
    from.write(0, pattern(100 * KIB)).await.unwrap();
    let mut expected = Vec::new();
    for length in [10, 100 * KIB] {
        let (other, end) = (open(&tree, wish("to")).await, expected.len() as u64);
        *between.before.lock().unwrap() = Some(Box::pin(async move {
            other.write(end, "other".into()).await.unwrap();
            other.close().await.unwrap();
        }));
        let copied = copy(&from, &to, &[Chunk { from: 0, to: None, length }]).await;
        assert_eq!(copied, (done_with(1, length), Ok(())));
        expected.extend_from_slice(b"other");
        expected.extend_from_slice(&pattern(length));
        assert!(bench.read("to").await == expected, "{length}");
    }
    done(&bench, [from, to]).await;
}

/// A file that is cut while extents are duplicated into it does not grow again.
#[tokio::test]
async fn extents_are_duplicated_into_a_file_that_is_cut() {
    for length in [100, 100 * KIB] {
        let (bench, between, tree) = between().await;
        let (from, to) = (open(&tree, created("from")).await, open(&tree, created("to")).await);
        from.write(0, pattern(length)).await.unwrap();
        to.set_end_of_file(length).await.unwrap();
        let other = open(&tree, wish("to")).await;
        *between.before.lock().unwrap() = Some(Box::pin(async move {
            other.set_end_of_file(70).await.unwrap();
            other.close().await.unwrap();
        }));
        assert_eq!(to.duplicate_extents(&from, 0, 0, length).await, Ok(()));
        assert!(bench.read("to").await == pattern(length)[..70], "{length}");
        done(&bench, [from, to]).await;
    }
}

/// So many parts of copies are in memory at once; others wait for them.
#[tokio::test]
async fn copies_as_bytes_have_a_share_of_memory() {
    let (bench, tree) = bench().await;
    let (from, to) = (open(&tree, created("from")).await, open(&tree, created("to")).await);
    from.write(0, pattern(10)).await.unwrap();
    let held = tree.door.copying.acquire_many(PARTS_IN_MEMORY_MAX as u32).await.unwrap();
    {
        let chunks = [chunk(0, 0, 10)];
        let mut copied = std::pin::pin!(copy(&from, &to, &chunks));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(copied.as_mut().poll(&mut context).is_pending());
        assert_eq!(to.query().await.unwrap().length, 0);
        drop(held);
        assert_eq!(copied.await, (done_with(1, 10), Ok(())));
    }
    assert_eq!(tree.door.copying.available_permits(), PARTS_IN_MEMORY_MAX);
    done(&bench, [from, to]).await;
}

/// What failed may be done, so it is not done again.
#[tokio::test]
async fn a_failed_copy_is_not_repeated() {
    let (bench, between, tree) = between().await;
    let (from, to) = (open(&tree, created("from")).await, open(&tree, created("to")).await);
    from.write(0, pattern(200 * KIB)).await.unwrap();
    between.fails.store(true, Ordering::Relaxed);
    let two = [chunk(0, 0, 100 * KIB), chunk(100 * KIB, 100 * KIB, 100 * KIB)];
    let (copied, result) = copy(&from, &to, &two).await;
    assert!(matches!(result, Err(Refused::Failed(_))), "{result:?}");
    assert_eq!(copied, done_with(0, 0));
    done(&bench, [from, to]).await;
}

#[tokio::test]
async fn a_copy_tells_how_far_it_came() {
    let (bench, tree) = bench().await;
    let (from, to) = (open(&tree, created("from")).await, open(&tree, created("to")).await);
    from.write(0, pattern(200 * KIB)).await.unwrap();
    let (half, more) = (100 * KIB, 100 * KIB + 1);
    let too_long = [chunk(0, 0, half), chunk(half, half, more)];
    assert_eq!(copy(&from, &to, &too_long).await, (done_with(1, half), Err(Refused::BeyondEnd)));
    assert!(bench.read("to").await == pattern(200 * KIB)[..half as usize], "the first one was copied");
    for small in [chunk(200 * KIB, 0, 1), chunk(200 * KIB - 1, 0, 2), chunk(1 << 40, 0, 100 * KIB)] {
        assert_eq!(copy(&from, &to, &[small]).await, (done_with(0, 0), Err(Refused::BeyondEnd)));
    }
    // At the end, wherever that is.
    let appended = [Chunk { from: 0, to: None, length: half }, Chunk { from: half, to: None, length: 3 }];
    assert_eq!(copy(&from, &to, &appended).await, (done_with(2, half + 3), Ok(())));
    assert_eq!(to.query().await.unwrap().length, 2 * half + 3);
    assert_eq!(copy(&from, &to, &[]).await, (done_with(0, 0), Ok(())));
    let far = chunk(0, (4 << 40) - 5, 100 * KIB);
    assert_eq!(copy(&from, &to, &[far]).await, (done_with(0, 0), Err(Refused::DiskFull)));
    assert_eq!(copy(&from, &to, &[chunk(u64::MAX, 0, 5)]).await.1, Err(Refused::InvalidParameter));
    // Only both together pass the largest offset: the first one is refused for itself.
    let last = (1 << 63) - 6;
    assert_eq!(copy(&from, &to, &[chunk(0, last, 5), chunk(5, last + 5, 5)]).await.1, Err(Refused::DiskFull));
    let long = Chunk { from: 0, to: None, length: MIB + 1 };
    assert_eq!(copy(&from, &to, &[long]).await.1, Err(Refused::InvalidParameter));
    bench.call("PUT", "share?restype=share&comp=properties", &[("x-ms-share-quota", "1")], b"").await.unwrap();
    let full = [chunk(0, 0, half), chunk(0, 1 << 30, half)];
    assert_eq!(copy(&from, &to, &full).await, (done_with(1, half), Err(Refused::DiskFull)));
    done(&bench, [from, to]).await;
}

#[tokio::test]
async fn rights_and_locks_of_both_files() {
    let (bench, tree) = bench().await;
    let from = open(&tree, created("from")).await;
    from.write(0, pattern(128 * KIB)).await.unwrap();
    let to = open(&tree, created("to")).await;
    let all = [chunk(0, 0, 128 * KIB)];
    for (path, access, needs, expected) in [
        ("from", WRITE, CopyAccess::ReadAndWrite, Err(Refused::AccessDenied)),
        ("from", READ, CopyAccess::ReadAndWrite, Ok(())),
        ("from", access::FILE_EXECUTE, CopyAccess::ReadAndWrite, Ok(())),
        ("from", LOOK, CopyAccess::ReadAndWrite, Err(Refused::AccessDenied)),
        ("to", READ, CopyAccess::Write, Err(Refused::AccessDenied)),
        ("to", WRITE, CopyAccess::ReadAndWrite, Err(Refused::AccessDenied)),
        ("to", WRITE, CopyAccess::Write, Ok(())),
        ("to", WRITE | READ, CopyAccess::ReadAndWrite, Ok(())),
        // It may only append.
        ("to", APPEND, CopyAccess::Write, Err(Refused::AccessDenied)),
    ] {
        let other = open(&tree, with(path, access, ALL)).await;
        let (source, target) = if path == "from" { (&other, &to) } else { (&from, &other) };
        let copied = target.copy_chunks(source, &all, needs).await;
        assert_eq!(copied.1, expected, "{path} {access:#x}");
        other.close().await.unwrap();
    }
    let dir = open(&tree, wish("dir")).await;
    assert_eq!(copy(&dir, &to, &all).await.1, Err(Refused::NotAFile));
    assert_eq!(copy(&from, &dir, &all).await.1, Err(Refused::NotAFile));

    // Of two chunks that follow each other the second is locked.
    let two = [chunk(0, 0, 64 * KIB), chunk(64 * KIB, 64 * KIB, 64 * KIB)];
    for path in ["from", "to"] {
        let other = open(&tree, wish(path)).await;
        let lock = Lock { offset: 100 * KIB, length: 1, kind: LockKind::Exclusive };
        other.lock(&[lock]).await.unwrap();
        to.set_end_of_file(0).await.unwrap();
        let copied = copy(&from, &to, &two).await;
        assert_eq!(copied, (done_with(1, 64 * KIB), Err(Refused::FileLockConflict)), "{path}");
        assert_eq!(bench.read("to").await.len() as u64, 64 * KIB, "{path}");
        other.close().await.unwrap();
    }
    // A shared lock only keeps writes away.
    let reader = open(&tree, wish("from")).await;
    reader.lock(&[Lock { offset: 0, length: 5, kind: LockKind::Shared }]).await.unwrap();
    assert_eq!(copy(&from, &to, &two).await.1, Ok(()));
    assert_eq!(copy(&to, &from, &two).await, (done_with(0, 0), Err(Refused::FileLockConflict)));
    done(&bench, [from, to, dir, reader]).await;
}

#[tokio::test]
async fn from_one_share_to_another() {
    let (bench, tree) = bench().await;
    bench.call("PUT", "other?restype=share", &[], b"").await.unwrap();
    let other = bench.service.door().connect(1, "other").await.unwrap();
    let (from, to) = (open(&tree, created("from")).await, open(&other, created("to")).await);
    let bytes = pattern(MIB + MIB / 2);
    from.write(0, bytes.clone()).await.unwrap();
    let chunks = [chunk(0, 7, MIB), chunk(MIB, MIB + 7, MIB / 2)];
    assert_eq!(copy(&from, &to, &chunks).await, (done_with(2, MIB + MIB / 2), Ok(())));
    assert!(to.read(7, 2 << 20).await.unwrap() == bytes);
    assert_eq!(to.duplicate_extents(&from, 0, 0, 4_096).await, Err(Refused::InvalidParameter));
    done(&bench, [from, to]).await;
}

/// A comparison with a snapshot sees what a copy has written and what it has cleared.
#[tokio::test]
async fn a_copy_is_a_change_since_a_snapshot() {
    let (bench, tree) = bench().await;
    let (from, to) = (open(&tree, created("from")).await, open(&tree, created("to")).await);
    from.write(64 * KIB, pattern(64 * KIB)).await.unwrap();
    to.write(0, pattern(192 * KIB)).await.unwrap();
    let time = bench.snapshot().await;
    assert_eq!(copy(&from, &to, &[chunk(0, 0, 128 * KIB)]).await.1, Ok(()));
    let told = bench.text("GET", &format!("share/to?comp=rangelist&prevsharesnapshot={time}")).await;
    let (cleared, written) =
        ("<ClearRange><Start>0</Start><End>65535</End>", "<Range><Start>65536</Start><End>131071</End>");
    assert!(told.contains(cleared) && told.contains(written) && !told.contains("131072"), "{told}");
    let told = bench.text("GET", "share/to?comp=rangelist").await;
    assert!(told.contains("<Start>65536</Start><End>196607</End>") && !told.contains("<Start>0</Start>"), "{told}");
    done(&bench, [from, to]).await;
}

/// Random writes, clears, cuts, copies and snapshots, held against plain bytes. REST reads what is there, and what snapshots saw.
#[tokio::test]
async fn copies_are_the_bytes_that_were_copied() {
    let (bench, tree) = bench().await;
    let files = [open(&tree, created("a")).await, open(&tree, created("b")).await];
    let mut plain = [Vec::<u8>::new(), Vec::new()];
    let mut seen: Vec<(String, [Vec<u8>; 2])> = Vec::new();
    let mut random = Random(7_046_029_254_386_353_131);
    let (mut shared, mut stored) = (0, contents(&bench));
    for round in 0..150 {
        let (which, other) = (random.below(2) as usize, random.below(2) as usize);
        let (offset, length) = (random.below(3 * MIB), 1 + random.below(700 * KIB));
        let (start, end) = (offset as usize, (offset + length) as usize);
        let file = &files[which];
        match random.below(8) {
            0 => {
                file.set_end_of_file(offset).await.unwrap();
                plain[which].resize(start, 0);
            }
            1 => {
                file.set_zero_data(offset, offset + length).await.unwrap();
                let end = end.min(plain[which].len());
                plain[which][start.min(end)..end].fill(0);
            }
            2 | 3 => {
                file.write(offset, vec![round as u8 + 1; length as usize].into()).await.unwrap();
                let whole = plain[which].len().max(end);
                plain[which].resize(whole, 0);
                plain[which][start..end].fill(round as u8 + 1);
            }
            4 if round % 3 == 0 => seen.push((bench.snapshot().await, plain.clone())),
            _ => {
                let there = plain[other].len() as u64;
                // One after the other, also where a chunk reads what the one before has written.
                let count = 1 + random.below(3);
                let part = length.div_ceil(count);
                let from = match random.below(2) {
                    0 => offset.saturating_sub(random.below(length)).min(there),
                    _ => random.below(there + 1),
                };
                let chunks: Vec<Chunk> = (0..count).map(|n| chunk(from + n * part, offset + n * part, part)).collect();
                let before = contents(&bench);
                let copied = copy(&files[other], file, &chunks).await;
                shared += u64::from(copied.1.is_ok() && contents(&bench) <= before);
                let mut expected = (done_with(0, 0), Ok(()));
                for Chunk { from, to, .. } in chunks {
                    let taken: Vec<u8> = plain[other].iter().skip(from as usize).take(part as usize).copied().collect();
                    if taken.len() < part as usize {
                        expected.1 = Err(Refused::BeyondEnd);
                        break;
                    }
                    let start = to.unwrap() as usize;
                    let whole = plain[which].len().max(start + taken.len());
                    plain[which].resize(whole, 0);
                    plain[which][start..start + taken.len()].copy_from_slice(&taken);
                    expected.0 = done_with(expected.0.chunks + 1, expected.0.bytes + part);
                }
                assert_eq!(copied, expected, "round {round}");
            }
        }
        for (name, expected) in ["a", "b"].into_iter().zip(&plain) {
            assert!(bench.read(name).await == *expected, "round {round}, {name}");
        }
        if round % 40 == 39 {
            bench.sweep().await;
            stored = stored.max(contents(&bench));
        }
    }
    assert!(shared > 10, "only {shared} copies moved no bytes");
    for (time, expected) in &seen {
        for (name, expected) in ["a", "b"].into_iter().zip(expected) {
            assert!(bench.read(&format!("{name}?sharesnapshot={time}")).await == *expected, "{time} {name}");
        }
        bench.drop_snapshot(time).await;
    }
    bench.sweep().await;
    for (name, expected) in ["a", "b"].into_iter().zip(&plain) {
        assert!(bench.read(name).await == *expected, "{name}");
    }
    done(&bench, files).await;
}

#[tokio::test]
async fn extents_are_duplicated() {
    let (bench, tree) = bench().await;
    let (from, to) = (open(&tree, created("from")).await, open(&tree, created("to")).await);
    let bytes = pattern(20 * MIB + 100);
    for part in (0..bytes.len()).step_by(8 << 20) {
        let end = bytes.len().min(part + (8 << 20));
        from.write(part as u64, bytes.slice(part..end)).await.unwrap();
    }
    let length = bytes.len() as u64;
    to.duplicate_extents(&from, 0, 0, 4_096).await.unwrap();
    assert_eq!(to.query().await.unwrap().length, 0, "it stays as long as it is");
    to.set_end_of_file(length).await.unwrap();
    let stored = contents(&bench);
    to.duplicate_extents(&from, 0, 0, length.next_multiple_of(4_096)).await.unwrap();
    assert!(bench.read("to").await == bytes);
    // The last bytes are stored apart: they are few.
    assert!(contents(&bench) <= stored + 1);
    assert_eq!(to.duplicate_extents(&from, 0, 0, 0).await, Ok(()));
    assert_eq!(
        to.duplicate_extents(&from, 4_096, 0, length.next_multiple_of(4_096)).await,
        Err(Refused::NotSupported),
        "the source is too short"
    );
    assert_eq!(to.duplicate_extents(&to, 0, 4_095, 4_096).await, Err(Refused::NotSupported));
    to.duplicate_extents(&to, 0, 4_096, 4_096).await.unwrap();
    assert!(to.read(4_096, 4_096).await.unwrap() == bytes[..4_096]);
    assert_eq!(to.duplicate_extents(&from, 0, 0, DUPLICATED_BYTES_MAX + 1).await, Err(Refused::InvalidParameter));
    // Behind the end of the source its last cluster is zeros.
    from.set_end_of_file(100).await.unwrap();
    to.duplicate_extents(&from, 0, 8_192, 4_096).await.unwrap();
    let read = to.read(8_192, 4_096).await.unwrap();
    assert!(read[..100] == bytes[..100] && read[100..].iter().all(|byte| *byte == 0));
    from.set_sparse(true).await.unwrap();
    assert_eq!(to.duplicate_extents(&from, 0, 0, 100).await, Err(Refused::NotSupported));
    to.set_sparse(true).await.unwrap();
    to.duplicate_extents(&from, 0, 0, 100).await.unwrap();
    let reader = open(&tree, with("to", READ | APPEND, ALL)).await;
    assert_eq!(reader.duplicate_extents(&from, 0, 0, 100).await, Err(Refused::AccessDenied));
    done(&bench, [from, to, reader]).await;
}

#[tokio::test]
async fn sparse_files() {
    let (bench, tree) = bench().await;
    let file = open(&tree, created("new")).await;
    let attributes = async || file.query().await.unwrap().attributes;
    assert_eq!(attributes().await, attributes::ARCHIVE);
    let before = bench.file("new").await;
    bench.advance(1).await;
    file.set_sparse(true).await.unwrap();
    assert_eq!(attributes().await, attributes::ARCHIVE | attributes::SPARSE_FILE);
    let after = bench.file("new").await;
    assert_eq!(header(&after, "x-ms-file-attributes"), Some("Archive"), "REST has no word for it");
    assert_ne!(header(&before, "etag"), header(&after, "etag"));
    file.set_sparse(true).await.unwrap();
    assert_eq!(header(&bench.file("new").await, "etag"), header(&after, "etag"), "nothing has changed");
    // Neither SMB nor REST takes it away by setting attributes.
    file.set_basic(BasicInfo { attributes: attributes::HIDDEN, ..BasicInfo::default() }).await.unwrap();
    assert_eq!(attributes().await, attributes::HIDDEN | attributes::SPARSE_FILE);
    bench.call("PUT", "share/new?comp=properties", &[("x-ms-file-attributes", "None")], b"").await.unwrap();
    assert_eq!(attributes().await, attributes::SPARSE_FILE);
    file.set_basic(BasicInfo { attributes: attributes::SPARSE_FILE, ..BasicInfo::default() }).await.unwrap();
    file.set_sparse(false).await.unwrap();
    assert_eq!(attributes().await, attributes::NORMAL);
    let overwritten =
        CreateRequest { disposition: Disposition::OverwriteIf, attributes: attributes::SPARSE_FILE, ..wish("new") };
    let again = tree.open(overwritten).await.unwrap();
    assert_eq!(again.info.attributes, attributes::ARCHIVE, "only FSCTL_SET_SPARSE sets it");
    let dir = open(&tree, wish("dir")).await;
    assert_eq!(dir.set_sparse(true).await, Err(Refused::InvalidParameter));
    let reader = open(&tree, with("new", READ, ALL)).await;
    assert_eq!(reader.set_sparse(true).await, Err(Refused::AccessDenied));
    let looker = open(&tree, with("new", access::FILE_WRITE_ATTRIBUTES, ALL)).await;
    looker.set_sparse(true).await.unwrap();
    done(&bench, [file, again.file, dir, reader, looker]).await;
}

/// A request looks at so many groups at most, in several reads, and says that there is more.
#[tokio::test]
async fn allocated_ranges_of_large_files() {
    let (bench, tree) = bench().await;
    let file = open(&tree, created("new")).await;
    file.set_sparse(true).await.unwrap();
    file.write(0, vec![1; 5 << 20].into()).await.unwrap();
    file.write(7 * MIB + 512, vec![1; 512].into()).await.unwrap();
    // Tests look at four groups.
    assert_eq!(file.allocated_ranges(0, 10 * MIB, 10).await, Ok((vec![(0, 4 * MIB)], true)));
    let rest = vec![(4 * MIB, MIB), (7 * MIB + 512, 512)];
    assert_eq!(file.allocated_ranges(4 * MIB, 6 * MIB, 10).await, Ok((rest.clone(), false)));
    assert_eq!(file.allocated_ranges(4 * MIB, 6 * MIB, 1).await, Ok((rest[..1].to_vec(), true)));
    assert_eq!(file.allocated_ranges(4 * MIB, MIB, 1).await, Ok((rest[..1].to_vec(), false)));
    // A copy takes holes along.
    let copied = open(&tree, created("copied")).await;
    copied.set_sparse(true).await.unwrap();
    copied.write(0, vec![2; 3 << 20].into()).await.unwrap();
    assert_eq!(copy(&file, &copied, &[chunk(5 * MIB, 0, 2 * MIB + 1_024)]).await.1, Ok(()));
    assert_eq!(copied.allocated_ranges(0, 10 * MIB, 10).await, Ok((vec![(2 * MIB + 512, MIB - 512)], false)));
    done(&bench, [file, copied]).await;
}
