import assert from "node:assert/strict";
import { test } from "node:test";
import { collect, refused, startServer, startWithBox } from "../harness.js";

test("a container is created once", async (t) => {
  const { server, box } = await startWithBox(t);
  const before = await box.getProperties();
  assert.equal(before.leaseState, "available");
  await refused(server.service().createContainer("box"), 409, "ContainerAlreadyExists");
  assert.equal((await box.createIfNotExists()).succeeded, false);
  assert.equal((await box.getProperties()).etag, before.etag);
});

test("metadata is replaced whole and changes the etag", async (t) => {
  const { box } = await startWithBox(t);
  const before = await box.getProperties();
  await box.setMetadata({ colour: "blue", size: "2" });
  const after = await box.getProperties();
  assert.deepEqual(after.metadata, { colour: "blue", size: "2" });
  assert.notEqual(after.etag, before.etag);
  await box.setMetadata({});
  assert.deepEqual((await box.getProperties()).metadata, {});
});

test("access policies are kept", async (t) => {
  const { box } = await startWithBox(t);
  const expiresOn = new Date("2030-01-01T00:00:00Z");
  const startsOn = new Date("2026-01-01T00:00:00Z");
  await box.setAccessPolicy("container", [{ id: "readers", accessPolicy: { permissions: "r", startsOn, expiresOn } }]);
  const policy = await box.getAccessPolicy();
  assert.equal(policy.blobPublicAccess, "container");
  assert.deepEqual(policy.signedIdentifiers, [{ id: "readers", accessPolicy: { permissions: "r", startsOn, expiresOn } }]);
});

test("a deleted container is gone", async (t) => {
  const { server, box } = await startWithBox(t);
  await box.uploadBlockBlob("b", "x", 1);
  await box.delete();
  await refused(box.getProperties(), 404, "ContainerNotFound");
  await refused(box.getBlobClient("b").download(), 404, "ContainerNotFound");
  assert.deepEqual(await collect(server.service().listContainers()), []);
});

test("containers are listed in order and by page", async (t) => {
  const service = (await startServer(t)).service();
  const names = Array.from({ length: 7 }, (_, number) => `list-${number}`);
  for (const name of names.toReversed()) await service.createContainer(name, { metadata: { name } });
  assert.deepEqual((await collect(service.listContainers())).map((found) => found.name), names);
  const pages = await collect(service.listContainers({ prefix: "list-", includeMetadata: true }).byPage({ maxPageSize: 3 }));
  assert.deepEqual(pages.map((page) => page.containerItems.length), [3, 3, 1]);
  const items = pages.flatMap((page) => page.containerItems);
  assert.deepEqual(items.map((found) => found.metadata.name), names);
});

test("a leased container is not deleted without the lease, everything else goes on", async (t) => {
  const { server, box } = await startWithBox(t);
  const lease = box.getBlobLeaseClient();
  await lease.acquireLease(15);
  await refused(box.delete(), 412, "LeaseIdMissing");
  await box.uploadBlockBlob("b", "x", 1);
  await box.setMetadata({ a: "1" });
  await refused(box.getBlobLeaseClient().acquireLease(15), 409, "LeaseAlreadyPresent");
  await server.advance(15);
  assert.equal((await box.getProperties()).leaseState, "expired");
  await box.delete();
});

test("a batch deletes what it can", async (t) => {
  const { server, box } = await startWithBox(t);
  for (const name of ["one", "two", "a b/ä"]) {
    await box.getBlockBlobClient(name).upload("x", 1);
  }
  const blobs = ["one", "gone", "a b/ä"].map((name) => box.getBlobClient(name));
  const answer = await server.service().getBlobBatchClient().deleteBlobs(blobs);
  assert.deepEqual(answer.subResponses.map((part) => part.status), [202, 404, 202]);
  assert.equal(answer.subResponses[1].errorCode, "BlobNotFound");
  assert.equal((await collect(box.listBlobsFlat())).length, 1);
});
