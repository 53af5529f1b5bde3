//! What a program written with azure_storage_blob sees.

use std::collections::HashMap;

use azure_core::Result;
use azure_core::http::RequestContent;
use azure_storage_blob::models::*;
use azure_storage_blob::{BlobClient, BlobContainerClient};
use futures::TryStreamExt;
use rust_client_tests::{Server, refused};

const STALE: &str = "\"0x8D0000000000000\"";

async fn box_on(server: &Server) -> Result<BlobContainerClient> {
    let container = server.service().blob_container_client("box");
    container.create(None).await?;
    Ok(container)
}

async fn put(blob: &BlobClient, content: &[u8]) -> Result<()> {
    blob.upload(RequestContent::from(content.to_vec()), None).await.map(drop)
}

async fn read(blob: &BlobClient) -> Result<Vec<u8>> {
    Ok(blob.download(None).await?.body.collect().await?.to_vec())
}

fn pair(name: &str, value: &str) -> HashMap<String, String> {
    HashMap::from([(name.to_owned(), value.to_owned())])
}

#[tokio::test]
async fn a_container_is_created_once() -> Result<()> {
    let server = Server::start();
    let container = box_on(&server).await?;
    refused(container.create(None).await, 409, "ContainerAlreadyExists");
    container.set_metadata(&pair("colour", "blue"), None).await?;
    let found = container.get_properties(None).await?;
    assert_eq!(found.metadata()?, pair("colour", "blue"));
    assert_eq!(found.lease_state()?, Some(LeaseState::Available));
    container.delete(None).await?;
    refused(container.get_properties(None).await, 404, "ContainerNotFound");
    Ok(())
}

#[tokio::test]
async fn a_blob_comes_back_as_it_went_in() -> Result<()> {
    let server = Server::start();
    let blob = box_on(&server).await?.blob_client("dir/a b+ü.txt");
    refused(blob.get_properties(None).await, 404, "BlobNotFound");
    refused(blob.download(None).await, 404, "BlobNotFound");
    let options = BlobClientUploadOptions {
        metadata: Some(pair("a", "1")),
        blob_content_type: Some("text/plain".to_owned()),
        ..Default::default()
    };
    blob.upload(RequestContent::from(b"hello world".to_vec()), Some(options)).await?;
    assert_eq!(read(&blob).await?, b"hello world");
    let found = blob.get_properties(None).await?;
    assert_eq!(found.content_length()?, Some(11));
    assert_eq!(found.metadata()?, pair("a", "1"));
    let range = BlobClientDownloadOptions { range: Some((6..9_u64).into()), ..Default::default() };
    assert_eq!(blob.download(Some(range)).await?.body.collect().await?.to_vec(), b"wor");
    blob.delete(None).await?;
    refused(blob.delete(None).await, 404, "BlobNotFound");
    Ok(())
}

#[tokio::test]
async fn a_large_blob_is_whole() -> Result<()> {
    let server = Server::start();
    let blob = box_on(&server).await?.blob_client("large");
    let content: Vec<u8> = (0..20 * 1024 * 1024_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let options = BlobClientUploadOptions {
        partition_size: Some((1024 * 1024).try_into().expect("not zero")),
        ..Default::default()
    };
    blob.upload(RequestContent::from(content.clone()), Some(options)).await?;
    assert!(read(&blob).await? == content);
    Ok(())
}

#[tokio::test]
async fn blocks_are_seen_when_committed() -> Result<()> {
    let server = Server::start();
    let blob = box_on(&server).await?.blob_client("blocks");
    let blocks = blob.block_blob_client();
    for (id, content) in [(b"b1", "one"), (b"b2", "two")] {
        blocks.stage_block(id, 3, RequestContent::from(content.as_bytes().to_vec()), None).await?;
    }
    refused(blob.get_properties(None).await, 404, "BlobNotFound");
    let list = blocks.get_block_list(BlockListType::Uncommitted, None).await?.into_model()?;
    assert_eq!(list.uncommitted_blocks.expect("two of them").len(), 2);

    let latest = |ids: &[&[u8]]| BlockLookupList {
        latest: Some(ids.iter().map(|id| id.to_vec()).collect()),
        ..Default::default()
    };
    blocks.commit_block_list(latest(&[b"b2", b"b1"]).try_into()?, None).await?;
    assert_eq!(read(&blob).await?, b"twoone");
    let list = blocks.get_block_list(BlockListType::Committed, None).await?.into_model()?;
    assert_eq!(list.committed_blocks.expect("two of them").len(), 2);
    refused(blocks.commit_block_list(latest(&[b"no"]).try_into()?, None).await, 400, "InvalidBlockList");
    Ok(())
}

#[tokio::test]
async fn a_lost_race_is_refused() -> Result<()> {
    let server = Server::start();
    let blob = box_on(&server).await?.blob_client("b");
    put(&blob, b"x").await?;
    let etag = blob.get_properties(None).await?.etag()?.expect("an etag");

    let stale = BlobClientSetMetadataOptions { if_match: Some(STALE.to_owned().into()), ..Default::default() };
    refused(blob.set_metadata(&pair("a", "1"), Some(stale)).await, 412, "ConditionNotMet");
    let unchanged = BlobClientGetPropertiesOptions { if_none_match: Some(etag.clone()), ..Default::default() };
    refused(blob.get_properties(Some(unchanged)).await, 304, "ConditionNotMet");
    let current = BlobClientSetMetadataOptions { if_match: Some(etag), ..Default::default() };
    blob.set_metadata(&pair("a", "1"), Some(current)).await?;
    let create_only = BlobClientUploadOptions::default().if_not_exists();
    refused(blob.upload(RequestContent::from(b"y".to_vec()), Some(create_only)).await, 409, "BlobAlreadyExists");
    Ok(())
}

#[tokio::test]
async fn a_lease_keeps_others_out_until_it_ends() -> Result<()> {
    let server = Server::start();
    let blob = box_on(&server).await?.blob_client("b");
    put(&blob, b"x").await?;
    let lease = blob.acquire_lease(15, None).await?.lease_id()?.expect("an id");
    refused(blob.acquire_lease(15, None).await, 409, "LeaseAlreadyPresent");
    refused(blob.delete(None).await, 412, "LeaseIdMissing");
    server.advance(10);
    blob.renew_lease(lease.clone(), None).await?;
    server.advance(10);
    assert_eq!(blob.get_properties(None).await?.lease_state()?, Some(LeaseState::Leased));
    let mine = BlobClientUploadOptions { lease_id: Some(lease.clone()), ..Default::default() };
    blob.upload(RequestContent::from(b"y".to_vec()), Some(mine)).await?;
    server.advance(5);
    assert_eq!(blob.get_properties(None).await?.lease_state()?, Some(LeaseState::Expired));
    blob.acquire_lease(-1, None).await?;
    blob.break_lease(None).await?;
    assert_eq!(blob.get_properties(None).await?.lease_state()?, Some(LeaseState::Broken));
    blob.delete(None).await?;
    Ok(())
}

#[tokio::test]
async fn a_snapshot_stays_as_it_was() -> Result<()> {
    let server = Server::start();
    let blob = box_on(&server).await?.blob_client("b");
    put(&blob, b"old").await?;
    let snapshot = blob.create_snapshot(None).await?.snapshot()?.expect("a snapshot");
    put(&blob, b"new").await?;
    assert_eq!(read(&blob.with_snapshot(&snapshot)?).await?, b"old");
    refused(blob.delete(None).await, 409, "SnapshotsPresent");
    let all =
        BlobClientDeleteOptions { delete_snapshots: Some(DeleteSnapshotsOptionType::Include), ..Default::default() };
    blob.delete(Some(all)).await?;
    Ok(())
}

#[tokio::test]
async fn blobs_are_listed_by_page() -> Result<()> {
    let server = Server::start();
    let container = box_on(&server).await?;
    let names = ["a", "b/1", "b/2", "c", "d"];
    for name in names {
        put(&container.blob_client(name), name.as_bytes()).await?;
    }
    let two = BlobContainerClientListBlobsOptions { maxresults: Some(2), ..Default::default() };
    let pages: Vec<_> = container.list_blobs(Some(two))?.into_pages().try_collect().await?;
    let mut found = Vec::new();
    for page in pages {
        let items = page.into_model()?.blob_items;
        assert!(items.len() <= 2);
        found.extend(items.into_iter().filter_map(|item| item.name));
    }
    assert_eq!(found, names);
    Ok(())
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_kill() -> Result<()> {
    let mut server = Server::start();
    let content = vec![7; 300_000];
    put(&box_on(&server).await?.blob_client("b"), &content).await?;
    server.kill_and_restart();
    let blob = server.service().blob_client("box", "b");
    assert_eq!(read(&blob).await?, content);
    Ok(())
}

#[tokio::test]
async fn a_signature_gives_what_it_says() -> Result<()> {
    let server = Server::start();
    let writer = server.service_by_sas("rwdlac").blob_container_client("box");
    writer.create(None).await?;
    put(&writer.blob_client("b"), b"x").await?;
    let reader = server.service_by_sas("r").blob_client("box", "b");
    assert_eq!(read(&reader).await?, b"x");
    refused(reader.delete(None).await, 403, "AuthorizationPermissionMismatch");
    Ok(())
}
