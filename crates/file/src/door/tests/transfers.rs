use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use ::bytes::Bytes;
use concurrency::range_lock::LockKind;

use super::*;
use crate::testing::header;

fn lock(offset: u64, length: u64, kind: LockKind) -> Lock {
    Lock { offset, length, kind }
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn reads() {
    let (bench, tree) = bench().await;
    let file = open(&tree, wish("dir\\file")).await;
    for (offset, length, expected) in [
        (0, 10, Ok("0123456789")),
        (0, 100, Ok("0123456789")),
        (3, 4, Ok("3456")),
        (9, 1, Ok("9")),
        (10, 1, Err(Refused::EndOfFile)),
        (1 << 40, 1, Err(Refused::EndOfFile)),
        (10, 0, Ok("")),
        (50, 0, Ok("")),
        (u64::MAX, 1, Err(Refused::InvalidParameter)),
        (i64::MAX as u64, 1, Err(Refused::InvalidParameter)),
        (0, TRANSFER_BYTES_MAX as u32 + 1, Err(Refused::InvalidParameter)),
    ] {
        let expected = expected.map(Bytes::from);
        assert_eq!(file.read(offset, length).await, expected, "{offset} {length}");
    }
    let dir = open(&tree, wish("dir")).await;
    assert_eq!(dir.read(0, 1).await, Err(Refused::NotAFile));
    let blind = open(&tree, with("dir\\file", WRITE, ALL)).await;
    assert_eq!(blind.read(0, 1).await, Err(Refused::AccessDenied));
    let runner = open(&tree, with("dir\\file", access::FILE_EXECUTE, ALL)).await;
    assert_eq!(runner.read(0, 1).await, Ok("0".into()));
    done(&bench, [file, dir, blind, runner]).await;
}

#[tokio::test]
async fn writes_make_the_file_longer() {
    let (bench, tree) = bench().await;
    let file = open(&tree, created("new")).await;
    let before = bench.file("new").await;
    bench.advance(1).await;
    file.write(0, "abc".into()).await.unwrap();
    file.write(2, "defg".into()).await.unwrap();
    file.write(10, "xyz".into()).await.unwrap();
    let expected = b"abdefg\0\0\0\0xyz";
    assert_eq!((bench.read("new").await, bench.usage().await), (expected.to_vec(), 10 + 13));
    let after = bench.file("new").await;
    for name in ["etag", "last-modified", "x-ms-file-last-write-time", "x-ms-file-change-time"] {
        assert_ne!(header(&before, name), header(&after, name), "{name}");
    }
    let large = Bytes::from((0..TRANSFER_BYTES_MAX).map(|n| (n / 1_000) as u8).collect::<Vec<u8>>());
    file.write(5, large.clone()).await.unwrap();
    file.write(0, Bytes::new()).await.unwrap();
    assert_eq!(file.read(5, large.len() as u32).await.unwrap(), large);
    assert_eq!(bench.usage().await, 10 + 5 + large.len() as u64);
    file.flush().await.unwrap();
    done(&bench, [file]).await;
}

/// Random writes, cuts and clears against plain bytes, with a reader on REST's side.
#[tokio::test]
async fn bytes_are_those_that_were_written() {
    let (bench, tree) = bench().await;
    let file = open(&tree, created("new")).await;
    let (mut content, mut random) = (Vec::<u8>::new(), Random(88_172_645_463_325_252));
    let mut next = |below: u64| random.below(below);
    for round in 0..200 {
        let (offset, length) = (next(5_000), 1 + next(2_000));
        let (from, to) = (offset as usize, (offset + length) as usize);
        match next(6) {
            0 => {
                file.set_end_of_file(offset).await.unwrap();
                content.resize(from, 0);
            }
            1 => {
                file.set_zero_data(offset, offset + length).await.unwrap();
                let end = to.min(content.len());
                content[from.min(end)..end].fill(0);
            }
            2 => {
                file.set_allocation(offset).await.unwrap();
                content.truncate(from);
            }
            _ => {
                file.write(offset, vec![round as u8 + 1; length as usize].into()).await.unwrap();
                content.resize(content.len().max(to), 0);
                content[from..to].fill(round as u8 + 1);
            }
        }
        assert_eq!(file.query().await.unwrap().length, content.len() as u64);
        assert!(bench.read("new").await == content, "round {round}");
    }
    bench.sweep().await;
    done(&bench, [file]).await;
}

#[tokio::test]
async fn what_cannot_be_written() {
    let (bench, tree) = bench().await;
    let file = open(&tree, wish("dir\\file")).await;
    let x = || Bytes::from("x");
    assert_eq!(file.write(u64::MAX, x()).await, Err(Refused::InvalidParameter));
    assert_eq!(file.write(4 << 40, x()).await, Err(Refused::DiskFull));
    assert_eq!(file.write(0, vec![0; TRANSFER_BYTES_MAX + 1].into()).await, Err(Refused::InvalidParameter));
    assert_eq!(file.set_end_of_file((4 << 40) + 1).await, Err(Refused::DiskFull));
    assert_eq!(file.set_end_of_file(u64::MAX).await, Err(Refused::InvalidParameter));
    assert_eq!(file.set_allocation((4 << 40) + 1).await, Ok(()));
    assert_eq!(file.set_zero_data(5, 4).await, Err(Refused::InvalidParameter));
    assert_eq!(file.set_zero_data(0, u64::MAX).await, Err(Refused::InvalidParameter));
    let reader = open(&tree, with("dir\\file", READ, ALL)).await;
    assert_eq!(reader.write(0, x()).await, Err(Refused::AccessDenied));
    assert_eq!(reader.flush().await, Err(Refused::AccessDenied));
    assert_eq!(reader.set_end_of_file(0).await, Err(Refused::AccessDenied));
    assert_eq!(reader.set_allocation(0).await, Err(Refused::AccessDenied));
    assert_eq!(reader.set_zero_data(0, 1).await, Err(Refused::AccessDenied));
    let appender = open(&tree, with("dir\\file", APPEND, ALL)).await;
    assert_eq!(appender.write(9, x()).await, Err(Refused::AccessDenied));
    assert_eq!(appender.set_end_of_file(20).await, Err(Refused::AccessDenied));
    appender.write(10, x()).await.unwrap();
    assert_eq!(bench.read("dir/file").await, b"0123456789x");
    let dir = open(&tree, wish("dir")).await;
    assert_eq!(dir.write(0, x()).await, Err(Refused::NotAFile));
    assert_eq!(dir.set_end_of_file(0).await, Err(Refused::NotAFile));
    assert_eq!(dir.lock(&[lock(0, 1, LockKind::Shared)]).await, Err(Refused::NotAFile));
    dir.flush().await.unwrap();
    done(&bench, [file, reader, appender, dir]).await;
    let closed = open(&tree, wish("dir\\file")).await;
    closed.close().await.unwrap();
    assert_eq!(closed.write(0, x()).await, Err(Refused::FileClosed));
    assert_eq!(closed.read(0, 1).await, Err(Refused::FileClosed));
    assert_eq!(closed.flush().await, Err(Refused::FileClosed));
    assert_eq!(closed.close().await, Err(Refused::FileClosed));
}

/// What a client asks for in advance is shown to its handle, and nothing else comes of it.
#[tokio::test]
async fn allocation_sizes() {
    let (bench, tree) = bench().await;
    let opened = tree.open(CreateRequest { allocation: Some(10_000), ..created("new") }).await.unwrap();
    assert_eq!((opened.info.allocation, opened.info.length), (12_288, 0));
    let file = opened.file;
    let shown = async || file.query().await.unwrap().allocation;
    assert_eq!(shown().await, 12_288);
    file.set_end_of_file(5_000).await.unwrap();
    assert_eq!(shown().await, 8_192);
    file.set_allocation(20_000).await.unwrap();
    assert_eq!((shown().await, bench.usage().await), (20_480, 10 + 5_000));
    file.set_allocation(1).await.unwrap();
    assert_eq!((shown().await, bench.usage().await), (4_096, 11));
    file.set_allocation(u64::MAX / 2).await.unwrap();
    assert_eq!(shown().await, 4_096);
    let other = tree.open(CreateRequest { allocation: Some(10_000), ..wish("new") }).await.unwrap();
    assert_eq!(other.info.allocation, 4_096, "it was there before");
    done(&bench, [file, other.file]).await;
}

#[tokio::test]
async fn the_quota_of_the_share() {
    let (bench, tree) = bench().await;
    bench.call("PUT", "share?restype=share&comp=properties", &[("x-ms-share-quota", "1")], b"").await.unwrap();
    let file = open(&tree, created("new")).await;
    file.set_end_of_file((1 << 30) - 10).await.unwrap();
    assert_eq!(file.write((1 << 30) - 10, "x".into()).await, Err(Refused::DiskFull));
    assert_eq!(file.set_end_of_file(1 << 30).await, Err(Refused::DiskFull));
    file.write(0, "inside".into()).await.unwrap();
    assert_eq!(tree.space().await.unwrap().used_bytes, 1 << 30);
    file.set_end_of_file(0).await.unwrap();
    assert_eq!(tree.space().await.unwrap().used_bytes, 10);
    done(&bench, [file]).await;
}

#[tokio::test]
async fn allocated_ranges() {
    let (bench, tree) = bench().await;
    let file = open(&tree, created("new")).await;
    file.set_end_of_file(10_000).await.unwrap();
    assert_eq!(file.allocated_ranges(5, 20_000, 10).await, Ok((vec![(5, 9_995)], false)), "it is not sparse");
    file.set_sparse(true).await.unwrap();
    assert_eq!(file.allocated_ranges(0, 10_000, 10).await, Ok((vec![], false)));
    file.write(0, vec![1; 512].into()).await.unwrap();
    file.write(4_096, vec![1; 600].into()).await.unwrap();
    file.write(9_990, vec![1; 10].into()).await.unwrap();
    let all = vec![(0, 512), (4_096, 1_024), (9_728, 272)];
    assert_eq!(file.allocated_ranges(0, 1 << 40, 10).await, Ok((all.clone(), false)));
    assert_eq!(file.allocated_ranges(0, 10_000, 2).await, Ok((all[..2].to_vec(), true)));
    assert_eq!(file.allocated_ranges(100, 4_000, 10).await, Ok((vec![(100, 412), (4_096, 4)], false)));
    assert_eq!(file.allocated_ranges(20_000, 5, 10).await, Ok((vec![], false)));
    assert_eq!(file.allocated_ranges(1, u64::MAX, 10).await, Err(Refused::InvalidParameter));
    file.set_zero_data(0, 512).await.unwrap();
    assert_eq!(file.allocated_ranges(0, 10_000, 10).await, Ok((all[1..].to_vec(), false)));
    done(&bench, [file]).await;
}

#[tokio::test]
async fn locks_of_handles() {
    let (bench, tree) = bench().await;
    let (one, two) = (open(&tree, wish("dir\\file")).await, open(&tree, wish("dir\\file")).await);
    one.lock(&[lock(0, 5, LockKind::Exclusive), lock(100, 5, LockKind::Shared)]).await.unwrap();
    assert_eq!(two.read(4, 1).await, Err(Refused::FileLockConflict));
    assert_eq!(two.write(4, "x".into()).await, Err(Refused::FileLockConflict));
    assert_eq!(two.set_zero_data(0, 10).await, Err(Refused::FileLockConflict));
    assert_eq!(two.write(100, "x".into()).await, Err(Refused::FileLockConflict));
    assert_eq!(two.read(5, 5).await, Ok("56789".into()));
    one.write(0, "abc".into()).await.unwrap();
    // All or none.
    let some = [lock(50, 1, LockKind::Exclusive), lock(3, 1, LockKind::Shared)];
    assert_eq!(two.lock(&some).await, Err(Refused::LockNotGranted));
    one.lock(&[lock(50, 1, LockKind::Exclusive)]).await.unwrap();
    assert_eq!(one.unlock(&[(50, 1), (50, 1), (0, 5)]), Err(Refused::RangeNotLocked));
    assert_eq!(two.read(4, 1).await, Err(Refused::FileLockConflict), "what comes behind stays locked");
    assert_eq!(two.lock(&[lock(u64::MAX, 2, LockKind::Shared)]).await, Err(Refused::InvalidLockRange));
    assert_eq!(two.unlock(&[(u64::MAX, 2)]), Err(Refused::InvalidLockRange));
    let blind = open(&tree, with("dir\\file", LOOK, ALL)).await;
    assert_eq!(blind.lock(&[lock(0, 1, LockKind::Shared)]).await, Err(Refused::AccessDenied));
    {
        let mut waiting = pin!(two.lock_waiting(lock(0, 1, LockKind::Shared)));
        assert!(poll(waiting.as_mut()).is_pending());
        one.unlock(&[(0, 5)]).unwrap();
        assert_eq!(poll(waiting.as_mut()), Poll::Ready(Ok(())));
    }
    {
        // A request that is withdrawn leaves nothing behind.
        let mut waiting = pin!(one.lock_waiting(lock(0, 1, LockKind::Exclusive)));
        assert!(poll(waiting.as_mut()).is_pending());
    }
    two.unlock(&[(0, 1)]).unwrap();
    two.lock(&[lock(0, 1, LockKind::Exclusive)]).await.unwrap();
    {
        let mut waiting = pin!(one.lock_waiting(lock(0, 1, LockKind::Exclusive)));
        assert!(poll(waiting.as_mut()).is_pending());
        one.close().await.unwrap();
        assert_eq!(poll(waiting.as_mut()), Poll::Ready(Err(Refused::FileClosed)));
    }
    done(&bench, [two, blind]).await;
}
