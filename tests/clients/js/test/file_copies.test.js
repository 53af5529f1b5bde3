// Copies between files and blobs, through @azure/storage-file-share and @azure/storage-blob.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { once } from "node:events";
import { test } from "node:test";
import { ContainerSASPermissions } from "@azure/storage-blob";
import { FileSASPermissions, ShareServiceClient, StorageSharedKeyCredential } from "@azure/storage-file-share";
import { ACCOUNT, KEY, refused, startServer } from "../harness.js";

const key = new StorageSharedKeyCredential(ACCOUNT, KEY);
const CONTENT = randomBytes(100_000);
const SOON = () => new Date(Date.now() + 3600_000);

async function start(t, ...options) {
  const server = await startServer(t, ...options);
  const shares = new ShareServiceClient(server.fileUrl(), key, { retryOptions: { maxTries: 1 } });
  const docs = shares.getShareClient("docs");
  await docs.create();
  const other = shares.getShareClient("other");
  await other.create();
  const box = server.service().getContainerClient("box");
  await box.create();
  const source = docs.rootDirectoryClient.getFileClient("söurce 1");
  await source.uploadData(CONTENT, { fileHttpHeaders: { fileContentType: "text/plain" } });
  await source.setMetadata({ a: "1" });
  return { docs: docs.rootDirectoryClient, other: other.rootDirectoryClient, box, source };
}

const signed = (file) => file.generateSasUrl({ permissions: FileSASPermissions.parse("r"), expiresOn: SOON() });

test("a file is copied within its share and to another", async (t) => {
  const { docs, other, source } = await start(t);
  for (const directory of [docs, other]) {
    const to = directory.getFileClient("copy");
    const { copyStatus } = await to.startCopyFromURL(await signed(source));
    assert.equal(copyStatus, "success");
    assert.ok((await to.downloadToBuffer()).equals(CONTENT));
    const seen = await to.getProperties();
    assert.deepEqual([seen.contentType, seen.metadata, seen.copyStatus], ["text/plain", { a: "1" }, "success"]);
  }
  // Neither is anything to the other afterwards.
  await source.uploadRange("changed", 0, 7);
  assert.ok((await other.getFileClient("copy").downloadToBuffer()).equals(CONTENT));
  await refused(docs.getFileClient("new").startCopyFromURL(docs.getFileClient("none").url), 404, "CannotVerifyCopySource");
});

test("a blob becomes a file, and a file a blob", async (t) => {
  const { docs, box, source } = await start(t);
  const blob = box.getBlockBlobClient("blob");
  await blob.uploadData(CONTENT, { metadata: { b: "2" }, blobHTTPHeaders: { blobContentType: "image/png" } });
  const url = await blob.generateSasUrl({ permissions: ContainerSASPermissions.parse("r"), expiresOn: SOON() });
  const file = docs.getFileClient("of-blob");
  assert.equal((await file.startCopyFromURL(url)).copyStatus, "success");
  const seen = await file.getProperties();
  assert.deepEqual([seen.contentType, seen.metadata, seen.contentLength], ["image/png", { b: "2" }, CONTENT.length]);
  assert.ok((await file.downloadToBuffer()).equals(CONTENT));
  const ofFile = box.getBlockBlobClient("of-file");
  const poller = await ofFile.beginCopyFromURL(await signed(source));
  assert.equal((await poller.pollUntilDone()).copyStatus, "success");
  assert.ok((await ofFile.downloadToBuffer()).equals(CONTENT));
  const at = box.getBlockBlobClient("at-once");
  await at.syncCopyFromURL(await signed(source));
  assert.ok((await at.downloadToBuffer()).equals(CONTENT));
  await at.stageBlockFromURL(btoa("1"), await signed(source), 10, 20);
  await at.commitBlockList([btoa("1")]);
  assert.ok((await at.downloadToBuffer()).equals(CONTENT.subarray(10, 30)));
});

test("ranges come from files and blobs", async (t) => {
  const { docs, box, source } = await start(t);
  const blob = box.getBlockBlobClient("blob");
  await blob.uploadData(CONTENT);
  const url = await blob.generateSasUrl({ permissions: ContainerSASPermissions.parse("r"), expiresOn: SOON() });
  const to = docs.getFileClient("to");
  await to.create(3_000);
  await to.uploadRangeFromURL(await signed(source), 50, 0, 1_000);
  await to.uploadRangeFromURL(url, 500, 2_000, 1_000);
  const expected = Buffer.concat([CONTENT.subarray(50, 1_050), Buffer.alloc(1_000), CONTENT.subarray(500, 1_500)]);
  assert.ok((await to.downloadToBuffer()).equals(expected));
});

test("a copy from elsewhere is aborted", async (t) => {
  // It sends half of its bytes, and no more.
  const elsewhere = createServer((_, answer) => {
    answer.writeHead(200, { "Content-Length": CONTENT.length, ETag: '"1"' });
    answer.write(CONTENT.subarray(0, CONTENT.length / 2));
  }).listen(0, "127.0.0.1");
  await once(elsewhere, "listening");
  t.after(() => {
    elsewhere.closeAllConnections();
    elsewhere.close();
  });
  const { docs } = await start(t, "--copy-sources", "loopback");
  const to = docs.getFileClient("to");
  const { copyId, copyStatus } = await to.startCopyFromURL(`http://127.0.0.1:${elsewhere.address().port}/x`);
  assert.equal(copyStatus, "pending");
  await refused(to.setMetadata({}), 409, "PendingCopyOperation");
  await to.abortCopyFromURL(copyId);
  const seen = await to.getProperties();
  assert.deepEqual([seen.copyStatus, seen.contentLength], ["aborted", 0]);
  await refused(to.abortCopyFromURL(copyId), 409, "NoPendingCopyOperation");
});
