import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { collect, refused, startWithBox } from "../harness.js";

const STALE = '"0x8D0000000000000"';
const blockId = (number) => Buffer.from(String(number).padStart(4, "0")).toString("base64");
const md5 = (content) => createHash("md5").update(content).digest();

async function startWithBlob(t) {
  const { server, box } = await startWithBox(t);
  return { server, box, blob: box.getBlockBlobClient("thing") };
}

test("a blob comes back as it went in", async (t) => {
  const { blob } = await startWithBlob(t);
  const written = await blob.upload("hello world", 11, {
    metadata: { Mixed: "Value" },
    blobHTTPHeaders: { blobContentType: "text/plain", blobCacheControl: "no-cache", blobContentLanguage: "de" },
  });
  const found = await blob.getProperties();
  assert.equal((await blob.downloadToBuffer()).toString(), "hello world");
  assert.equal(found.etag, written.etag);
  assert.deepEqual([found.contentType, found.cacheControl, found.contentLanguage], ["text/plain", "no-cache", "de"]);
  assert.deepEqual(found.metadata, { mixed: "Value" }); // This client folds the case.
  assert.deepEqual(Buffer.from(found.contentMD5), md5("hello world"));
  assert.equal(found.blobType, "BlockBlob");
});

test("a range is read", async (t) => {
  const { blob } = await startWithBlob(t);
  await blob.upload("0123456789", 10);
  assert.equal((await blob.downloadToBuffer(3, 4)).toString(), "3456");
  const answer = await blob.download(2, 3, { rangeGetContentMD5: true });
  assert.equal(answer._response.status, 206);
  assert.equal(answer.contentRange, "bytes 2-4/10");
  assert.deepEqual(Buffer.from(answer.contentMD5), md5("234"));
  await refused(blob.download(10, 1), 416, "InvalidRange");
});

test("what is not there is not found", async (t) => {
  const { blob } = await startWithBlob(t);
  assert.equal(await blob.exists(), false);
  await refused(blob.download(), 404, "BlobNotFound");
  await refused(blob.getProperties(), 404, "BlobNotFound");
  await refused(blob.delete(), 404, "BlobNotFound");
  assert.equal((await blob.deleteIfExists()).succeeded, false);
});

test("create only if missing", async (t) => {
  const { blob } = await startWithBlob(t);
  const conditions = { ifNoneMatch: "*" };
  await blob.upload("first", 5, { conditions });
  await refused(blob.upload("second", 6, { conditions }), 409, "BlobAlreadyExists");
  assert.equal((await blob.downloadToBuffer()).toString(), "first");
});

test("blocks are seen when committed", async (t) => {
  const { blob } = await startWithBlob(t);
  const first = Buffer.from("first ");
  await blob.stageBlock(blockId(1), first, first.length, { transactionalContentMD5: md5(first) });
  await blob.stageBlock(blockId(2), "second", 6);
  assert.equal(await blob.exists(), false);
  let blocks = await blob.getBlockList("all");
  assert.deepEqual(blocks.uncommittedBlocks, [{ name: blockId(1), size: 6 }, { name: blockId(2), size: 6 }]);
  await blob.commitBlockList([blockId(2), blockId(1)]);
  assert.equal((await blob.downloadToBuffer()).toString(), "secondfirst ");
  blocks = await blob.getBlockList("all");
  assert.deepEqual(blocks.committedBlocks.map((block) => block.name), [blockId(2), blockId(1)]);
  assert.deepEqual(blocks.uncommittedBlocks ?? [], []);
  await refused(blob.commitBlockList([blockId(3)]), 400, "InvalidBlockList");
  await refused(blob.stageBlock(blockId(1), first, 6, { transactionalContentMD5: md5("other") }), 400, "Md5Mismatch");
});

test("a large blob in many blocks", async (t) => {
  const { blob } = await startWithBlob(t);
  const content = randomBytes(20 * 1024 * 1024);
  await blob.uploadData(content, { blockSize: 1024 * 1024, maxSingleShotSize: 1024 * 1024, concurrency: 4 });
  assert.equal((await blob.getBlockList("committed")).committedBlocks.length, 20);
  const found = await blob.downloadToBuffer(0, undefined, { blockSize: 1024 * 1024, concurrency: 4 });
  assert.ok(found.equals(content));
});

test("conditions: 412 for a write, 304 for a read", async (t) => {
  const { blob } = await startWithBlob(t);
  const { etag } = await blob.upload("x", 1);
  await refused(blob.setMetadata({ a: "1" }, { conditions: { ifMatch: STALE } }), 412, "ConditionNotMet");
  await refused(blob.getProperties({ conditions: { ifMatch: STALE } }), 412, "ConditionNotMet");
  await refused(blob.download(0, undefined, { conditions: { ifNoneMatch: etag } }), 304, "ConditionNotMet");
  await blob.setMetadata({ a: "1" }, { conditions: { ifMatch: etag } });
  await refused(blob.delete({ conditions: { ifMatch: etag } }), 412, "ConditionNotMet");
});

test("a lease: acquire, renew, change, release, break", async (t) => {
  const { server, blob } = await startWithBlob(t);
  await blob.upload("x", 1);
  const lease = blob.getBlobLeaseClient();
  const { leaseId } = await lease.acquireLease(15);
  await refused(blob.getBlobLeaseClient().acquireLease(15), 409, "LeaseAlreadyPresent");
  await refused(blob.upload("y", 1), 412, "LeaseIdMissing");
  await blob.upload("y", 1, { conditions: { leaseId } });
  await server.advance(10);
  await lease.renewLease();
  await server.advance(10);
  assert.equal((await blob.getProperties()).leaseState, "leased");
  const other = "00000000-0000-0000-0000-000000000001";
  await lease.changeLease(other);
  await refused(blob.upload("z", 1, { conditions: { leaseId } }), 412, "LeaseIdMismatchWithBlobOperation");
  await server.advance(5);
  assert.equal((await blob.getProperties()).leaseState, "expired");
  await lease.renewLease();
  await lease.releaseLease();
  assert.equal((await blob.getProperties()).leaseState, "available");
  await lease.acquireLease(-1);
  assert.equal((await lease.breakLease(10)).leaseTime, 10);
  await server.advance(10);
  assert.equal((await blob.getProperties()).leaseState, "broken");
});

test("a snapshot stays as it was", async (t) => {
  const { blob } = await startWithBlob(t);
  await blob.upload("old", 3);
  const { snapshot } = await blob.createSnapshot();
  await blob.upload("newer", 5);
  assert.equal((await blob.withSnapshot(snapshot).downloadToBuffer()).toString(), "old");
  await refused(blob.delete(), 409, "SnapshotsPresent");
  await blob.delete({ deleteSnapshots: "include" });
  await refused(blob.withSnapshot(snapshot).download(), 404, "BlobNotFound");
});

test("blobs are listed flat, by folder and by page", async (t) => {
  const { box } = await startWithBox(t);
  const names = ["a", "a/1", "a/2", "b/1", "c"];
  for (const name of names.toReversed()) await box.uploadBlockBlob(name, name, name.length, { metadata: { name } });
  const flat = await collect(box.listBlobsFlat({ includeMetadata: true }));
  assert.deepEqual(flat.map((found) => [found.name, found.metadata.name]), names.map((name) => [name, name]));
  const pages = await collect(box.listBlobsFlat().byPage({ maxPageSize: 2 }));
  assert.deepEqual(pages.flatMap((page) => page.segment.blobItems).map((found) => found.name), names);
  const folders = await collect(box.listBlobsByHierarchy("/"));
  assert.deepEqual(folders.filter((found) => found.kind === "prefix").map((found) => found.name), ["a/", "b/"]);
  assert.deepEqual(folders.filter((found) => found.kind === "blob").map((found) => found.name), ["a", "c"]);
});

test("what was acknowledged survives kill -9", async (t) => {
  const { server, blob } = await startWithBlob(t);
  const content = randomBytes(300_000);
  const { etag } = await blob.uploadData(content, { metadata: { a: "1" } });
  await blob.stageBlock(blockId(1), "staged", 6);
  await server.kill9();
  await server.restart();
  const again = server.service().getContainerClient("box").getBlockBlobClient("thing");
  const found = await again.getProperties();
  assert.deepEqual([found.etag, found.metadata], [etag, { a: "1" }]);
  assert.ok((await again.downloadToBuffer()).equals(content));
  await again.commitBlockList([blockId(1)]);
  assert.equal((await again.downloadToBuffer()).toString(), "staged");
});
