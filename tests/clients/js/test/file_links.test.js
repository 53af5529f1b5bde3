// Symbolic and hard links in a share for NFS, through @azure/storage-file-share.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ShareServiceClient, StorageSharedKeyCredential } from "@azure/storage-file-share";
import { ACCOUNT, KEY, collect, refused, startServer } from "../harness.js";

const key = new StorageSharedKeyCredential(ACCOUNT, KEY);

async function startWithShares(t) {
  const server = await startServer(t);
  const shares = new ShareServiceClient(server.fileUrl(), key, { retryOptions: { maxTries: 1 } });
  const nfs = shares.getShareClient("nfs");
  await nfs.create({ protocols: { nfsEnabled: true } });
  const smb = shares.getShareClient("smb");
  await smb.create();
  return { nfs: nfs.rootDirectoryClient, smb: smb.rootDirectoryClient };
}

const names = async (directory) => (await collect(directory.listFilesAndDirectories())).map((entry) => entry.name);

test("a file has another name until the last one is gone", async (t) => {
  const { nfs, smb } = await startWithShares(t);
  const file = nfs.getFileClient("file");
  await file.create(1024);
  await nfs.createSubdirectory("dir");
  const link = nfs.getDirectoryClient("dir").getFileClient("link");
  const made = await link.createHardLink("file");
  assert.equal(made.linkCount ?? made.posixProperties?.linkCount, 2);
  await link.uploadRange("hello", 0, 5);
  assert.equal((await file.downloadToBuffer()).subarray(0, 5).toString(), "hello");
  assert.equal((await file.getProperties()).etag, (await link.getProperties()).etag);
  assert.equal((await file.getProperties()).fileId, (await link.getProperties()).fileId);
  await file.delete();
  assert.deepEqual(await names(nfs), ["dir"]);
  assert.equal((await link.getProperties()).posixProperties.linkCount, 1);
  await refused(nfs.getFileClient("other").createHardLink("none"), 404, "ResourceNotFound");
  await refused(nfs.getFileClient("other").createHardLink("dir"), 409, "ResourceTypeMismatch");
  await refused(link.createHardLink("dir/link"), 409, "ResourceAlreadyExists");
  await smb.createFile("file", 0);
  await refused(smb.getFileClient("link").createHardLink("file"), 400, "UnsupportedQueryParameter");
});

test("a symbolic link is told and not followed", async (t) => {
  const { nfs, smb } = await startWithShares(t);
  const link = nfs.getFileClient("link");
  await link.createSymbolicLink("../a b/file", { metadata: { a: "1" }, owner: "345", group: "123" });
  const told = await link.getSymbolicLink();
  assert.equal(decodeURIComponent(told.linkText), "../a b/file");
  const seen = await link.getProperties();
  assert.deepEqual(
    [seen.posixProperties.fileType, seen.posixProperties.owner, seen.posixProperties.group, seen.posixProperties.linkCount, seen.metadata],
    ["SymLink", "345", "123", 1, { a: "1" }],
  );
  await refused(link.downloadToBuffer(), 409, "ResourceTypeMismatch");
  await refused(link.create(0), 409, "ResourceTypeMismatch");
  await refused(link.createSymbolicLink("other"), 409, "ResourceAlreadyExists");
  await link.delete();
  assert.deepEqual(await names(nfs), []);
  await refused(link.getSymbolicLink(), 404, "ResourceNotFound");
  await refused(smb.getFileClient("link").createSymbolicLink("file"), 400, "UnsupportedQueryParameter");
});

test("a copy takes owner, group and mode from where it is told", async (t) => {
  const { nfs } = await startWithShares(t);
  const source = nfs.getFileClient("source");
  const mode = (read, write) => ({ read, write, execute: false });
  const fileMode = { owner: mode(true, true), group: mode(true, false), other: mode(false, false), effectiveUserIdentity: false, effectiveGroupIdentity: false, stickyBit: false };
  await source.create(512, { posixProperties: { owner: "999", group: "888", fileMode } });
  const copied = async (options) => {
    const to = nfs.getFileClient("to");
    assert.equal((await to.startCopyFromURL(source.url, options)).copyStatus, "success");
    const seen = (await to.getProperties()).posixProperties;
    return [seen.owner, seen.group, seen.fileMode.owner.write, seen.fileMode.group.write];
  };
  assert.deepEqual(await copied({}), ["0", "0", true, true]);
  assert.deepEqual(await copied({ fileOwnerCopyMode: "source", fileModeCopyMode: "source" }), ["999", "888", true, false]);
  assert.deepEqual(await copied({ fileOwnerCopyMode: "override", posixProperties: { owner: "7", group: "8" } }), ["7", "8", true, true]);
});
