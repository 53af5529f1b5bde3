//! Get Block List: the blocks of a blob, committed, waiting, or both.

use std::sync::Arc;

use concurrency::{Conditions, LeaseId, Timestamp};
use engine::{Rows, read};
use wire::base64;
use wire::http::{Head, HeaderValue, Reply, StatusCode};
use wire::names::{BlobName, ContainerName};
use wire::xml::XmlWriter;

use super::Call;
use crate::error::BlobError;
use crate::model::Which;
use crate::model::blocks;
use crate::model::{self, BlobType, Committed, Halt, blob_key, refuse};
use crate::{Failure, reply, request};

struct GetBlockList {
    container: ContainerName,
    name: BlobName,
    which: Which,
    conditions: Conditions,
    lease: Option<LeaseId>,
    lists: Lists,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lists {
    Committed,
    Uncommitted,
    All,
}

fn parse(head: &Head) -> Result<GetBlockList, BlobError> {
    let (container, name) = request::blob(head)?;
    request::no_foreign_headers(head)?;
    Ok(GetBlockList {
        container,
        name,
        which: request::which(head)?,
        // Of the conditions it takes only this one.
        conditions: Conditions { if_tags: request::if_tags(head)?, ..Conditions::default() },
        lease: request::lease_id(head)?,
        lists: lists(head)?,
    })
}

fn lists(head: &Head) -> Result<Lists, BlobError> {
    const NAME: &str = "blocklisttype";
    let Some(text) = head.query.get(NAME) else { return Ok(Lists::Committed) };
    match text.to_ascii_lowercase().as_str() {
        "committed" => Ok(Lists::Committed),
        "uncommitted" => Ok(Lists::Uncommitted),
        "all" => Ok(Lists::All),
        _ => Err(BlobError::query(NAME, text)),
    }
}

/// What was found: the length and version if there is a committed state, and ids with sizes.
struct BlockLists {
    committed: Option<(Timestamp, u64)>,
    committed_blocks: Vec<(Vec<u8>, u64)>,
    uncommitted_blocks: Vec<(Vec<u8>, u64)>,
}

impl GetBlockList {
    fn look(&self, rows: &dyn Rows, account: u64, now: Timestamp) -> Result<BlockLists, Halt> {
        let generation = model::generation(rows, account, &self.container)?;
        // A blob of waiting blocks only is found here, and its committed list is empty.
        let (state, staging, lease) = match self.which {
            Which::Base => {
                let blob = model::find_blob(rows, &blob_key(generation, &self.name))?;
                let blob = blob.filter(|blob| blob.is_there(now)).ok_or(refuse(BlobError::BlobNotFound))?;
                let waiting = blob.waiting(now).cloned();
                (blob.committed, waiting, blob.lease)
            }
            Which::Snapshot(_) | Which::Version(_) => {
                let seen = model::see(rows, generation, &self.name, self.which)?;
                let seen = seen.ok_or(refuse(BlobError::BlobNotFound))?;
                (Some(seen.state), None, seen.lease.unwrap_or_default())
            }
        };
        self.conditions
            .check_write(state.as_ref().map(Committed::version).as_ref())
            .map_err(|unmet| refuse(unmet.into()))?;
        lease.check_read(self.lease, now).map_err(BlobError::lease_on_blob).map_err(refuse)?;
        if state.as_ref().is_some_and(|state| state.kind != BlobType::Block) {
            return Err(refuse(BlobError::InvalidBlobType));
        }
        state.as_ref().map_or(Ok(()), |state| state.check_not_archived(now)).map_err(refuse)?;
        let listed = state.as_ref().filter(|_| self.lists != Lists::Uncommitted);
        let entries = listed.map(|state| blocks::committed(rows, state)).transpose();
        let waiting = staging.filter(|_| self.lists != Lists::Committed);
        let waiting = waiting.map(|staging| blocks::uncommitted(rows, &staging)).transpose();
        // Both were asked for before one of them is waited for, so an engine that fetches rows fetches both at once.
        let (entries, waiting) = (entries?.unwrap_or_default(), waiting?.unwrap_or_default());
        Ok(BlockLists {
            committed: state.map(|state| (state.stamp, state.length)),
            committed_blocks: entries.into_iter().map(|entry| (entry.id, entry.size)).collect(),
            uncommitted_blocks: waiting.into_iter().map(|(id, block)| (id, block.size)).collect(),
        })
    }

    fn document(&self, found: &BlockLists) -> XmlWriter {
        let mut xml = XmlWriter::document();
        xml.reserve((found.committed_blocks.len() + found.uncommitted_blocks.len()) * 160);
        xml.open("BlockList");
        if self.lists != Lists::Uncommitted {
            write(&mut xml, "CommittedBlocks", &found.committed_blocks);
        }
        if self.lists != Lists::Committed {
            write(&mut xml, "UncommittedBlocks", &found.uncommitted_blocks);
        }
        xml.close("BlockList");
        xml
    }
}

fn write(xml: &mut XmlWriter, element: &str, blocks: &[(Vec<u8>, u64)]) {
    if blocks.is_empty() {
        xml.empty(element);
        return;
    }
    xml.open(element);
    for (id, size) in blocks {
        xml.open("Block").leaf("Name", base64::encode(id)).number("Size", *size).close("Block");
    }
    xml.close(element);
}

pub async fn run(call: Call<'_>) -> Result<Reply, Failure> {
    let op = Arc::new(parse(call.head)?);
    let (looking, account) = (Arc::clone(&op), call.account);
    let found = read(call.engine, move |rows, now| looking.look(rows, account, now)).await?;
    let mut answer = reply::xml(StatusCode::OK, op.document(&found));
    let length = found.committed.map_or(0, |(_, length)| length);
    answer.headers.insert(&reply::BLOB_CONTENT_LENGTH, HeaderValue::from(length));
    if let Some((stamp, _)) = found.committed {
        reply::set_version(&mut answer.headers, stamp);
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use crate::BlobError;
    use crate::testing::{Bench, header, refusal};

    #[tokio::test]
    async fn both_lists() {
        let bench = Bench::with_container().await;
        let list =
            async |kind: &str| bench.text("GET", &format!("cont/blob?comp=blocklist&blocklisttype={kind}")).await;
        let missing = bench.call("GET", "cont/blob?comp=blocklist", &[], b"").await;
        assert_eq!(refusal(missing), BlobError::BlobNotFound);
        for (id, body) in [("Qg==", "bb"), ("QQ==", "a"), ("QQ==", "aaa")] {
            bench.call("PUT", &format!("cont/blob?comp=block&blockid={id}"), &[], body.as_bytes()).await.unwrap();
        }
        let told = list("all").await;
        assert!(told.ends_with(
            "<BlockList><CommittedBlocks /><UncommittedBlocks><Block><Name>QQ==</Name><Size>3</Size></Block>\
             <Block><Name>Qg==</Name><Size>2</Size></Block></UncommittedBlocks></BlockList>"
        ));
        assert!(list("committed").await.ends_with("<BlockList><CommittedBlocks /></BlockList>"));
        let told = bench.call("GET", "cont/blob?comp=blocklist", &[], b"").await.unwrap();
        assert_eq!((header(&told, "etag"), header(&told, "x-ms-blob-content-length")), (None, Some("0")));

        let body = b"<BlockList><Latest>Qg==</Latest><Latest>QQ==</Latest></BlockList>";
        bench.call("PUT", "cont/blob?comp=blocklist", &[], body).await.unwrap();
        assert!(list("").await.ends_with(
            "<BlockList><CommittedBlocks><Block><Name>Qg==</Name><Size>2</Size></Block>\
             <Block><Name>QQ==</Name><Size>3</Size></Block></CommittedBlocks></BlockList>"
        ));
        assert!(list("uncommitted").await.ends_with("<BlockList><UncommittedBlocks /></BlockList>"));
        let told = bench.call("GET", "cont/blob?comp=blocklist", &[], b"").await.unwrap();
        assert!(header(&told, "etag").is_some());
        assert_eq!(header(&told, "x-ms-blob-content-length"), Some("5"));
        let refused = bench.call("GET", "cont/blob?comp=blocklist&blocklisttype=x", &[], b"").await;
        assert_eq!(refusal(refused), BlobError::query("blocklisttype", "x"));
    }
}
