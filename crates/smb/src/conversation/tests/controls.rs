//! Conversations about controls: copies inside of the server, sparse files, previous versions.

use std::future::Future;

use concurrency::Timestamp;
use file::{DeleteShare, SnapshotShare};

use super::*;
use crate::wire::snapshot_token;

impl Bench {
    async fn account(&self) -> u64 {
        engine::account::id(self.host.engine.as_ref(), "devstore").await.unwrap()
    }

    async fn snapshot(&self) -> Timestamp {
        let take =
            SnapshotShare { share: ShareName::parse("data").unwrap(), lease: None, metadata: Default::default() };
        let taken = service::commit(self.host.engine.as_ref(), self.account().await, &Arc::new(take)).await;
        taken.unwrap().0
    }

    async fn drop_snapshot(&self, time: Timestamp) {
        let share = ShareName::parse("data").unwrap();
        let drop = DeleteShare { share, lease: None, snapshot: Some(time), snapshots: None, first_days: None };
        service::commit(self.host.engine.as_ref(), self.account().await, &Arc::new(drop)).await.unwrap();
    }
}

impl Talk {
    fn control(&mut self, id: FileId, code: u32, input: &[u8], max: u32) -> impl Future<Output = Told> {
        self.ask(Command::Ioctl, body::ioctl(id, code, input, max))
    }

    /// A new file with these bytes.
    async fn file(&mut self, name: &str, bytes: &[u8]) -> FileId {
        let id = self.open(name, 2, 0x40).await.file_id();
        assert_eq!(self.ask(Command::Write, body::write(id, 0, bytes)).await.status(), Status::SUCCESS);
        id
    }

    async fn key(&mut self, id: FileId) -> Vec<u8> {
        let told = self.control(id, code::SRV_REQUEST_RESUME_KEY, &[], 32).await;
        assert_eq!((told.status(), told.output().len()), (Status::SUCCESS, 32));
        told.output()[..24].to_vec()
    }

    async fn read(&mut self, id: FileId) -> Vec<u8> {
        let told = self.ask(Command::Read, body::read(id, 0, 60_000)).await;
        assert_eq!(told.status(), Status::SUCCESS);
        told.data().to_vec()
    }

    async fn in_snapshot(&mut self, name: &str, access: u32, disposition: u32, time: Timestamp) -> Told {
        let time = i64::try_from(file::door::filetime(time)).unwrap();
        self.ask(Command::Create, body::create_in_snapshot(name, access, disposition, time)).await
    }
}

fn chunks(key: &[u8], chunks: &[(u64, u64, u32)]) -> Vec<u8> {
    let mut input = key.to_vec();
    input.extend(u32::to_le_bytes(chunks.len() as u32));
    input.extend([0; 4]);
    for (from, to, length) in chunks {
        input.extend([from.to_le_bytes(), to.to_le_bytes(), u64::from(*length).to_le_bytes()].concat());
    }
    input
}

/// Two offsets and a length.
fn extents(id: FileId, numbers: [u64; 3]) -> Vec<u8> {
    let numbers = [&[id.persistent, id.volatile][..], &numbers].concat();
    numbers.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// The three numbers that a copy is answered with.
fn counts(told: &Told) -> [u32; 3] {
    let number = |at: usize| u32::from_le_bytes(told.output()[at..at + 4].try_into().unwrap());
    assert_eq!(told.output().len(), 12);
    [number(0), number(4), number(8)]
}

const LIMITS: [u32; 3] = [256, 1 << 20, 16 << 20];

#[tokio::test]
async fn chunks_are_copied_by_key() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let from = talk.file("from", b"0123456789").await;
    let to = talk.file("to", b"").await;
    let key = talk.key(from).await;
    assert_eq!(talk.key(from).await, key, "a file has one key");
    assert_ne!(talk.key(to).await, key);
    for (input, status, numbers) in [
        (chunks(&key, &[(0, 0, 4), (4, 5, 5)]), Status::SUCCESS, [2, 0, 9]),
        (chunks(&key, &[(0, u64::MAX, 2)]), Status::SUCCESS, [1, 0, 2]),
        (chunks(&key, &[]), Status::SUCCESS, [0; 3]),
        (chunks(&key, &[(0, 0, 4), (8, 0, 3)]), Status::INVALID_VIEW_SIZE, [1, 0, 4]),
        (chunks(&key, &[(0, 0, 0)]), Status::INVALID_PARAMETER, LIMITS),
        (chunks(&key, &[(0, 0, u32::MAX)]), Status::INVALID_PARAMETER, LIMITS),
        (chunks(&key, &[(0, 0, 1); 257]), Status::INVALID_PARAMETER, LIMITS),
        (chunks(&key, &[(0, 0, 1 << 20); 17]), Status::INVALID_PARAMETER, LIMITS),
        (chunks(&key, &[(0, 1 << 63, 1)]), Status::INVALID_PARAMETER, LIMITS),
        (chunks(&key, &[(0, 0, 1)])[..50].to_vec(), Status::INVALID_PARAMETER, LIMITS),
    ] {
        let told = talk.control(to, code::SRV_COPYCHUNK, &input, 12).await;
        assert_eq!((told.status(), counts(&told)), (status, numbers), "{input:?}");
    }
    assert_eq!(talk.read(to).await, b"0123\x004567801");
    let one = chunks(&key, &[(0, 0, 1)]);
    assert_eq!(talk.control(to, code::SRV_COPYCHUNK, &one, 11).await.status(), Status::INVALID_PARAMETER);
    assert_eq!(talk.control(to, code::SRV_COPYCHUNK, &[0; 10], 12).await.status(), Status::INVALID_PARAMETER);
    // No key, that of another session, and that of a file that was closed.
    let mut other = bench.connected().await;
    let beside = other.open("from", 1, 0).await.file_id();
    let foreign = other.key(beside).await;
    let closed = talk.open("from", 1, 0).await.file_id();
    let old = talk.key(closed).await;
    talk.ask(Command::Close, body::close(closed)).await;
    let mut changed = key.clone();
    changed[23] ^= 1;
    for key in [&[9; 24][..], &foreign, &old, &changed] {
        let told = talk.control(to, code::SRV_COPYCHUNK, &chunks(key, &[(0, 0, 1)]), 12).await;
        assert_eq!(told.status(), Status::OBJECT_NAME_NOT_FOUND, "{key:?}");
    }
    // A handle that may not read is good for SRV_COPYCHUNK_WRITE.
    let blind = talk.ask(Command::Create, body::create("to", 0x2, 7, 1, 0)).await.file_id();
    assert_eq!(talk.control(blind, code::SRV_COPYCHUNK, &one, 12).await.status(), Status::ACCESS_DENIED);
    assert_eq!(talk.control(blind, code::SRV_COPYCHUNK_WRITE, &one, 12).await.status(), Status::SUCCESS);
    // A lock of another handle: the answer says that nothing was copied.
    assert_eq!(other.ask(Command::Lock, body::lock(beside, &[(0, 1, 0x12)])).await.status(), Status::SUCCESS);
    let told = talk.control(to, code::SRV_COPYCHUNK, &one, 12).await;
    assert_eq!((told.status(), counts(&told)), (Status::FILE_LOCK_CONFLICT, [0; 3]));
}

#[tokio::test]
async fn extents_are_duplicated_by_file_id() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let bytes: Vec<u8> = (0..40_000_u32).map(|n| (n / 100) as u8).collect();
    let from = talk.file("from", &bytes).await;
    let to = talk.file("to", &vec![9; 40_000]).await;
    for (input, status) in [
        (extents(from, [4_096, 0, 36_864]), Status::SUCCESS),
        (extents(from, [36_864, 0, 8_192]), Status::NOT_SUPPORTED),
        (extents(to, [0, 1, 5]), Status::NOT_SUPPORTED),
        (extents(FileId { volatile: 99, ..from }, [0, 0, 5]), Status::INVALID_HANDLE),
        (extents(from, [1 << 63, 0, 5]), Status::INVALID_PARAMETER),
        (extents(from, [0, 0, 5])[..39].to_vec(), Status::INVALID_PARAMETER),
    ] {
        let told = talk.control(to, code::DUPLICATE_EXTENTS_TO_FILE, &input, 0).await;
        assert_eq!(told.status(), status, "{input:?}");
    }
    let copied = talk.read(to).await;
    assert!(copied[..35_904] == bytes[4_096..] && copied[35_904..36_864].iter().all(|byte| *byte == 0));
    assert!(copied[36_864..].iter().all(|byte| *byte == 9));
}

/// A copy is cancelled, or ends with its conversation, between two steps. What it has done by then stays.
#[tokio::test(start_paused = true)]
async fn a_copy_that_takes_long_can_be_cancelled() {
    const LENGTH: u64 = 40 << 20;
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let (from, to) = (talk.file("from", b"first").await, talk.file("to", b"").await);
    for id in [from, to] {
        let told = talk.ask(Command::SetInfo, body::set_info(id, 1, 20, &LENGTH.to_le_bytes())).await;
        assert_eq!(told.status(), Status::SUCCESS);
    }
    let key = talk.key(from).await;
    let duplicate = (code::DUPLICATE_EXTENTS_TO_FILE, extents(from, [0, 0, LENGTH]), 0);
    let chunk = (code::SRV_COPYCHUNK, chunks(&key, &[(0, 0, 5), (0, 9, 5)]), 12);
    for (code, input, max) in [duplicate.clone(), chunk] {
        assert_eq!(talk.ask(Command::Write, body::write(to, 0, b"other")).await.status(), Status::SUCCESS);
        // One commit for the first step.
        let held = bench.commits.forget_permits(bench.commits.available_permits() - 1);
        let interim = talk.control(to, code, &input, max).await;
        assert_eq!(interim.status(), Status::PENDING);
        let frame = talk.client.cancel(interim.header.message_id, None);
        talk.send(&frame).await.unwrap();
        let told = tokio::time::timeout(Duration::from_secs(60), talk.answers()).await.expect("an answer");
        assert_eq!(statuses(&told), [Status::CANCELLED]);
        assert_eq!(talk.read(to).await[..10], *b"first\0\0\0\0\0");
        bench.commits.add_permits(held);
    }
    bench.commits.forget_permits(bench.commits.available_permits());
    let (code, input, max) = duplicate;
    assert_eq!(talk.control(to, code, &input, max).await.status(), Status::PENDING);
    tokio::time::timeout(Duration::from_secs(60), talk.conversation.end())
        .await
        .expect("it does not wait for the copy");
}

#[tokio::test]
async fn holes_of_sparse_files() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    let file = talk.file("a", &[1; 20_000]).await;
    let attributes = async |talk: &mut Talk| {
        let told = talk.ask(Command::QueryInfo, body::query_info(file, 1, 4, 100)).await;
        u32::from_le_bytes(told.buffer()[32..36].try_into().unwrap())
    };
    assert_eq!(attributes(&mut talk).await & 0x200, 0);
    let two = |one: u64, other: u64| [one.to_le_bytes(), other.to_le_bytes()].concat();
    let told = talk.control(file, code::SET_ZERO_DATA, &two(4_096, 8_192), 0).await;
    assert_eq!(told.status(), Status::SUCCESS);
    let whole = talk.control(file, code::QUERY_ALLOCATED_RANGES, &two(0, 1 << 40), 1_024).await;
    assert_eq!(whole.output(), two(0, 20_000), "it is not sparse");
    assert_eq!(talk.control(file, code::SET_SPARSE, &[], 0).await.status(), Status::SUCCESS);
    assert_eq!(attributes(&mut talk).await & 0x200, 0x200);
    let told = talk.control(file, code::QUERY_ALLOCATED_RANGES, &two(0, 1 << 40), 1_024).await;
    assert_eq!(told.output(), [two(0, 4_096), two(8_192, 11_808)].concat());
    let told = talk.control(file, code::QUERY_ALLOCATED_RANGES, &two(0, 1 << 40), 16).await;
    assert_eq!((told.status(), told.output()), (Status::BUFFER_OVERFLOW, &two(0, 4_096)[..]));
    let told = talk.control(file, code::QUERY_ALLOCATED_RANGES, &two(0, 1 << 40), 15).await;
    assert_eq!(told.status(), Status::BUFFER_TOO_SMALL);
    assert_eq!(talk.control(file, code::SET_SPARSE, &[0], 0).await.status(), Status::SUCCESS);
    assert_eq!(attributes(&mut talk).await & 0x200, 0);
    assert_eq!(talk.control(file, code::SET_COMPRESSION, &[0, 0], 0).await.status(), Status::SUCCESS);
    assert_eq!(talk.control(file, code::SET_COMPRESSION, &[1, 0], 0).await.status(), Status::NOT_SUPPORTED);
    let reader = talk.ask(Command::Create, body::create("a", 0x81, 7, 1, 0)).await.file_id();
    assert_eq!(talk.control(reader, code::SET_SPARSE, &[], 0).await.status(), Status::ACCESS_DENIED);
    assert_eq!(talk.control(reader, code::SET_ZERO_DATA, &two(0, 1), 0).await.status(), Status::ACCESS_DENIED);
    let directory = talk.open("d", 2, 1).await.file_id();
    assert_eq!(talk.control(directory, code::SET_SPARSE, &[], 0).await.status(), Status::INVALID_PARAMETER);
}

#[tokio::test]
async fn previous_versions() {
    let bench = bench(true).await;
    let mut talk = bench.connected().await;
    talk.open("d", 2, 1).await;
    let file = talk.file("d\\a", b"before").await;
    let none = talk.control(file, code::SRV_ENUMERATE_SNAPSHOTS, &[], 16).await;
    assert_eq!(none.output()[..8], [0; 8]);
    let time = bench.snapshot().await;
    let later = bench.snapshot().await;
    talk.ask(Command::Write, body::write(file, 0, b"after!")).await;

    // Their number first, then their names.
    assert_eq!(talk.control(file, code::SRV_ENUMERATE_SNAPSHOTS, &[], 15).await.status(), Status::INVALID_PARAMETER);
    let number = talk.control(file, code::SRV_ENUMERATE_SNAPSHOTS, &[], 16).await;
    assert_eq!(number.output(), [2, 0, 0, 0, 0, 0, 0, 0, 102, 0, 0, 0, 0, 0, 0, 0]);
    let names = talk.control(file, code::SRV_ENUMERATE_SNAPSHOTS, &[], 200).await;
    let text: Vec<u16> =
        names.output()[12..].chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    let token = snapshot_token::of(time);
    assert_eq!(String::from_utf16(&text).unwrap(), format!("{}\0{token}\0\0", snapshot_token::of(later)));

    let old = talk.in_snapshot("d\\a", 0x81, 1, time).await;
    assert_eq!((old.status(), talk.read(old.file_id()).await), (Status::SUCCESS, b"before".to_vec()));
    for path in [format!("{token}\\d\\a"), format!("d\\{token}\\a"), format!("D\\A\\{token}")] {
        let told = talk.ask(Command::Create, body::create(&path, 0x81, 7, 1, 0)).await;
        assert_eq!((told.status(), talk.read(told.file_id()).await), (Status::SUCCESS, b"before".to_vec()), "{path}");
    }
    assert_eq!(talk.read(file).await, b"after!");
    // A time between two snapshots, and one that no date has.
    for time in [Timestamp(time.0 - 10_000_000), Timestamp(0)] {
        let status = talk.in_snapshot("d\\a", 0x81, 1, time).await.status();
        assert_eq!(status, if time.0 == 0 { Status::SUCCESS } else { Status::OBJECT_NAME_NOT_FOUND });
    }
    let told = talk.ask(Command::Create, body::create_in_snapshot("d\\a", 0x81, 1, -5)).await;
    assert_eq!(told.status(), Status::OBJECT_NAME_NOT_FOUND);

    // Rights are granted; what uses them is not done.
    let written = talk.in_snapshot("d\\a", 0x1F_01FF, 1, time).await.file_id();
    for (command, body) in [
        (Command::Write, body::write(written, 0, b"x")),
        (Command::SetInfo, body::set_info(written, 1, 20, &5_u64.to_le_bytes())),
        (Command::SetInfo, body::set_info(written, 1, 13, &[1])),
        (Command::Ioctl, body::ioctl(written, code::SET_SPARSE, &[], 0)),
        (
            Command::Create,
            body::create_in_snapshot("d\\a", 0x1F_01FF, 5, i64::try_from(file::door::filetime(time)).unwrap()),
        ),
        (Command::Create, body::create(&format!("{token}\\new"), 0x1F_01FF, 7, 2, 0)),
    ] {
        assert_eq!(talk.ask(command, body).await.status(), Status::MEDIA_WRITE_PROTECTED, "{command:?}");
    }
    let rename = crate::samples::rename(&format!("{token}\\b"));
    let told = talk.ask(Command::SetInfo, body::set_info(file, 1, 10, &rename)).await;
    assert_eq!(told.status(), Status::MEDIA_WRITE_PROTECTED, "nothing comes into a snapshot");
    assert_eq!(talk.ask(Command::Lock, body::lock(written, &[(0, 1, 0x12)])).await.status(), Status::NOT_SUPPORTED);

    // It lists, and is a source of copies.
    let directory = talk.in_snapshot("d", 0x81, 1, time).await.file_id();
    let listed = talk.ask(Command::QueryDirectory, body::query_directory(directory, 12, 0, 4_096, "*")).await;
    assert_eq!(listed.status(), Status::SUCCESS);
    let key = talk.key(old.file_id()).await;
    let told = talk.control(file, code::SRV_COPYCHUNK, &chunks(&key, &[(0, 0, 6)]), 12).await;
    assert_eq!((told.status(), talk.read(file).await), (Status::SUCCESS, b"before".to_vec()));

    bench.drop_snapshot(time).await;
    let told = talk.ask(Command::Read, body::read(old.file_id(), 0, 10)).await;
    assert_eq!(told.status(), Status::FILE_INVALID);
    assert_eq!(talk.ask(Command::Close, body::close(old.file_id())).await.status(), Status::SUCCESS);
}
