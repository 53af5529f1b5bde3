//! Put Block: bring a block that a later Put Block List may make part of the blob.
//!
//! Nothing changes for readers, not even the ETag. A blob that did not exist comes into being as an uncommitted one,
//! which only Get Block List and an explicit listing show.

use std::sync::Arc;

use bytes::Bytes;
use concurrency::{Lease, LeaseId, Timestamp};
use content::upload::{self, Received, Wanted};
use engine::{Changes, Key, Rows, Tick, Unread};
use service::{Operation, ReadOperation, RequestError, codec, space};
use wire::http::{Body, Head, Reply, StatusCode};
use wire::names::{BlobName, ContainerName};

use super::Call;
use crate::error::BlobError;
use crate::model::blocks::{BadBlockId, BlockId, UNCOMMITTED_BLOCKS_MAX, UNCOMMITTED_SECONDS, uncommitted};
use crate::model::encryption::Encryption;
use crate::model::{self, Blob, Block, ContainerGuard, Halt, Staging, blob_key, block_key, refuse};
use crate::request::BodySums;
use crate::rules::encryption;
use crate::rules::soft_delete;
use crate::rules::writable;
use crate::{Failure, reply, request};

const MIB: u64 = 1024 * 1024;

/// The largest block, by the version that raised it.
pub(super) fn body_bytes_max(head: &Head) -> u64 {
    if head.since("2019-12-12") {
        4_000 * MIB
    } else if head.since("2016-05-31") {
        100 * MIB
    } else {
        4 * MIB
    }
}

/// A block to stage. As a [`ReadOperation`] it says whether the block may be staged, before its body is read.
#[derive(Clone, Debug)]
pub struct PutBlock {
    pub container: ContainerName,
    pub name: BlobName,
    pub id: BlockId,
    pub lease: Option<LeaseId>,
    /// What the client names as encryption; else that of the container holds.
    pub encryption: Option<Encryption>,
    /// The bytes of the block, which are durable by now. There is at least one.
    pub body: Received,
}

/// The block without its body, and the checksums that the client sends with that.
pub(super) fn parse(head: &Head) -> Result<(PutBlock, BodySums), BlobError> {
    let (container, name) = request::blob(head)?;
    request::only_base(head)?;
    request::no_expiry(head)?;
    let op = PutBlock {
        container,
        name,
        id: block_id(head)?,
        lease: request::lease_id(head)?,
        encryption: None,
        body: Received::nothing(0),
    };
    Ok((op, request::body_sums(head)?))
}

fn block_id(head: &Head) -> Result<BlockId, BlobError> {
    const NAME: &str = "blockid";
    let text =
        head.query.get(NAME).ok_or(BlobError::Request(RequestError::MissingRequiredQueryParameter { name: NAME }))?;
    BlockId::parse(text).map_err(|bad| match bad {
        BadBlockId::Unreadable => BlobError::query(NAME, text),
        BadBlockId::TooLong => BlobError::Request(RequestError::OutOfRangeInput),
    })
}

impl PutBlock {
    /// Whether the block may come, and the lease as it is afterwards. `again`: there is a block of this id. Here and in
    /// Put Block List the type is judged before the lease.
    fn judge(&self, found: Option<&Blob>, again: bool, now: Timestamp) -> Result<Lease, BlobError> {
        if found.is_some_and(|blob| !blob.is_block_blob()) {
            return Err(BlobError::InvalidBlobType);
        }
        let lease = writable::check_write(found, self.lease, now)?;
        // The reference lists what can be done with an archived blob, and blocks are not among it.
        if let Some(state) = found.and_then(|blob| blob.committed.as_ref()) {
            state.check_not_archived(now)?;
        }
        if let Some(staging) = found.and_then(|blob| blob.waiting(now)) {
            if usize::from(staging.id_length) != self.id.as_bytes().len() {
                return Err(BlobError::InvalidBlobOrBlock);
            }
            if staging.count >= UNCOMMITTED_BLOCKS_MAX && !again {
                return Err(BlobError::BlockCountExceedsLimit);
            }
        }
        Ok(lease)
    }

    /// The lease of the blob and the blocks that wait, with one more of them.
    fn decide(&self, found: Option<&Blob>, again: bool, tick: Tick) -> Result<(Lease, Staging), BlobError> {
        let lease = self.judge(found, again, tick.now)?;
        let staging = match found.and_then(|blob| blob.waiting(tick.now)) {
            Some(staging) => Staging {
                count: staging.count + u32::from(!again),
                last_put: tick.now,
                revision: tick.stamp.0,
                ..staging.clone()
            },
            None => Staging {
                id: tick.id(2),
                // At most 64: an id that is longer is none.
                id_length: self.id.as_bytes().len() as u8,
                count: 1,
                last_put: tick.now,
                due: tick.now.plus_seconds(UNCOMMITTED_SECONDS),
                revision: tick.stamp.0,
            },
        };
        Ok((lease, staging))
    }

    fn load(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<Loaded, Halt> {
        let container = model::guard(rows, account, &self.container)?;
        let key = blob_key(container.generation, &self.name);
        let row = model::find_blob(rows, &key)?;
        let earlier = match row.as_ref().and_then(|blob| blob.waiting(now)) {
            Some(staging) => rows.get(&block_key(staging.id, self.id.as_bytes()))?,
            None => None,
        };
        let earlier = earlier.map(|row| codec::decode(&row)).transpose()?;
        Ok(Loaded { container, key, row, earlier })
    }
}

/// What is stored when a block comes.
struct Loaded {
    container: ContainerGuard,
    key: Key,
    row: Option<Blob>,
    /// The block that waits under the same id, which the new one replaces.
    earlier: Option<Block>,
}

impl Loaded {
    fn there(&self, now: Timestamp) -> Option<&Blob> {
        self.row.as_ref().filter(|blob| blob.is_there(now))
    }
}

/// Whether the block may be put.
impl ReadOperation for PutBlock {
    type Outcome = ();
    type Refusal = BlobError;

    fn apply(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<(), Halt> {
        let loaded = self.load(rows, account, now)?;
        encryption::effective(&loaded.container, self.encryption.as_ref())?;
        self.judge(loaded.there(now), loaded.earlier.is_some(), now).map_err(refuse)?;
        Ok(())
    }
}

impl Operation for PutBlock {
    /// How the block is encrypted.
    type Outcome = Option<Encryption>;
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
    ) -> Result<Option<Encryption>, Halt> {
        let loaded = self.load(rows, account, tick.now)?;
        let decided = self.decide(loaded.there(tick.now), loaded.earlier.is_some(), tick);
        let (lease, staging) = decided.map_err(refuse)?;
        let encryption = encryption::effective(&loaded.container, self.encryption.as_ref())?;
        let content = self.body.keep(rows, staging.id, changes, BlobError::SourceConditionNotMet)?;
        let content = content.ok_or(refuse(BlobError::Request(RequestError::OutOfRangeInput)))?;
        let (size, is_shared) = (self.body.length, self.body.shared.is_some());
        let block = Block { content, size, is_shared, encryption: encryption.clone() };
        changes.put(block_key(staging.id, self.id.as_bytes()), codec::encode(&block));
        if let Some(earlier) = loaded.earlier
            && content != earlier.content
            && !self.is_used_by_others(rows, &staging, &earlier)?
        {
            changes.unrefer(space::CONTENT, earlier.content, staging.id, tick.now);
        }
        let before = loaded.row.as_ref().and_then(|blob| blob.staging.as_ref());
        if before.is_none_or(|before| before.id != staging.id) {
            if let Some(before) = before {
                before.leave(&loaded.key, changes, tick.now);
            }
            changes.put(staging.due_key(&loaded.key), Bytes::new());
        }
        let mut blob = loaded.row.unwrap_or_else(|| Blob { uid: tick.id(0), ..Blob::default() });
        soft_delete::put_deleted_away(&mut blob, &loaded.key, changes);
        blob.lease = lease;
        blob.staging = Some(staging);
        blob.store(loaded.key, changes);
        Ok(encryption)
    }
}

impl PutBlock {
    /// Whether the content of a block that goes is that of another one that waits as well.
    fn is_used_by_others(&self, rows: &dyn Rows, staging: &Staging, earlier: &Block) -> Result<bool, Unread> {
        if !earlier.is_shared {
            return Ok(false);
        }
        let blocks = uncommitted(rows, staging)?;
        Ok(blocks.iter().any(|(id, block)| *id != self.id.as_bytes() && block.content == earlier.content))
    }
}

pub async fn run(call: Call<'_>, body: &mut dyn Body) -> Result<Reply, Failure> {
    let (op, sums) = parse(call.head)?;
    let asked = call.encryption()?;
    let announced = upload::announced(call.head, body, body_bytes_max(call.head))?;
    if announced.length == 0 {
        return Err(BlobError::header("content-length", "0").into());
    }
    let op = Arc::new(PutBlock { encryption: asked.encryption.clone(), ..op });
    call.read(&op).await?;

    let announced = announced.sealed_with(asked.key.as_ref().map(|key| &key.secret));
    let body = upload::receive(call.engine, body, announced, Wanted::of_block(call.head, &sums)).await?;
    upload::verify(&sums, body.md5, body.crc64)?;

    PutBlock { body, ..Arc::unwrap_or_clone(op) }.store(call, &sums).await
}

impl PutBlock {
    /// Commits the block and answers.
    pub(super) async fn store(self, call: Call<'_>, sums: &BodySums) -> Result<Reply, Failure> {
        let mut answer = reply::reply(StatusCode::CREATED);
        upload::answer_sums(&mut answer.headers, call.head, sums, self.body.md5, self.body.crc64);
        let encryption = call.commit(&Arc::new(self)).await?;
        reply::set_encrypted(&mut answer.headers, encryption.as_ref());
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, HELD, MINE, NOW, YOURS, header, refusal, tick};

    fn ask(id: &[u8], lease: Option<LeaseId>) -> PutBlock {
        PutBlock {
            container: ContainerName::parse("cont").unwrap(),
            name: BlobName::parse("blob").unwrap(),
            id: BlockId::new(id).unwrap(),
            lease,
            encryption: None,
            body: Received::nothing(1),
        }
    }

    fn blob(lease: Lease, count: u32) -> Blob {
        let staging = Staging { id: 9, id_length: 1, count, last_put: NOW, due: Timestamp(2), revision: 1 };
        Blob { uid: 3, lease, staging: Some(staging), ..Blob::default() }
    }

    #[test]
    fn each_refusal_and_two_at_once() {
        let judge = |ask: PutBlock, found: &Blob, again| ask.judge(Some(found), again, NOW).err();
        assert_eq!(judge(ask(b"a", None), &blob(Lease::Available, 1), false), None);
        assert_eq!(judge(ask(b"a", Some(MINE)), &blob(HELD, 1), false), None);
        assert_eq!(judge(ask(b"a", None), &blob(HELD, 1), false), Some(BlobError::LeaseIdMissing));
        assert_eq!(
            judge(ask(b"a", Some(YOURS)), &blob(HELD, 1), false),
            Some(BlobError::LeaseIdMismatchWithBlobOperation)
        );
        assert_eq!(judge(ask(b"ab", None), &blob(Lease::Available, 1), false), Some(BlobError::InvalidBlobOrBlock));
        assert_eq!(judge(ask(b"ab", None), &blob(HELD, 1), false), Some(BlobError::LeaseIdMissing));
        let full = blob(Lease::Available, UNCOMMITTED_BLOCKS_MAX);
        assert_eq!(judge(ask(b"a", None), &full, false), Some(BlobError::BlockCountExceedsLimit));
        assert_eq!(judge(ask(b"a", None), &full, true), None);
        let missing = ask(b"a", Some(MINE)).judge(None, false, NOW);
        assert_eq!(missing, Err(BlobError::LeaseNotPresentWithBlobOperation));
    }

    #[test]
    fn a_block_uploaded_again_counts_once() {
        let (_, again) = ask(b"a", None).decide(Some(&blob(Lease::Available, 4)), true, tick()).unwrap();
        let (_, staging) = ask(b"b", None).decide(Some(&blob(Lease::Available, 4)), false, tick()).unwrap();
        assert_eq!((again.count, staging.count), (4, 5));
        assert_eq!((staging.id, staging.last_put, staging.due), (9, NOW, Timestamp(2)));
        assert_ne!(staging.revision, 1);
    }

    #[tokio::test]
    async fn ids_and_bodies() {
        let bench = Bench::with_container().await;
        let put = async |id: &str, body: &[u8]| {
            bench.call("PUT", &format!("cont/blob?comp=block&blockid={id}"), &[], body).await
        };
        let answer = put("QQ==", b"hello").await.unwrap();
        assert_eq!(answer.status, 201);
        assert!(header(&answer, "x-ms-content-crc64").is_some() && header(&answer, "etag").is_none());
        assert_eq!(refusal(put("Q", b"x").await), BlobError::query("blockid", "Q"));
        let missing = RequestError::MissingRequiredQueryParameter { name: "blockid" };
        assert_eq!(refusal(put("", b"x").await), BlobError::Request(missing));
        assert_eq!(refusal(put("QUE=", b"x").await), BlobError::InvalidBlobOrBlock);
        let long = wire::base64::encode(&[7; 65]);
        assert_eq!(refusal(put(&long, b"x").await), BlobError::Request(RequestError::OutOfRangeInput));
        assert_eq!(refusal(put("QQ==", b"").await), BlobError::header("content-length", "0"));
        // An uncommitted blob is missing for readers.
        assert_eq!(refusal(bench.call("GET", "cont/blob", &[], b"").await), BlobError::BlobNotFound);
        let list = bench.text("GET", "cont?restype=container&comp=list").await;
        assert!(!list.contains("<Blob>"));
        let list = bench.text("GET", "cont?restype=container&comp=list&include=uncommittedblobs").await;
        assert!(list.contains("<Name>blob</Name><Properties><Content-Length>0</Content-Length>"));
    }
}
