// Files through @azure/storage-file-share, with the account in the path and in the host.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import dns from "node:dns";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  AccountSASPermissions,
  FileSASPermissions,
  FileSystemAttributes,
  ShareClient,
  ShareFileClient,
  ShareSASPermissions,
  ShareServiceClient,
  StorageSharedKeyCredential,
  generateAccountSASQueryParameters,
  generateFileSASQueryParameters,
} from "@azure/storage-file-share";
import { ACCOUNT, KEY, collect, refused, startServer } from "../harness.js";

const key = new StorageSharedKeyCredential(ACCOUNT, KEY);
const OPTIONS = { retryOptions: { maxTries: 1 } };
const MIB = 1024 * 1024;
const TIB = 1024 ** 4;
const SDDL =
  "O:S-1-5-21-2127521184-1604012920-1887927527-21560751G:S-1-5-21-2127521184-1604012920-1887927527-513" +
  "D:AI(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1200a9;;;S-1-5-21-397955417-626881126-188441444-3053964)S:NO_ACCESS_CONTROL";
const HOSTILE = ["ä b+c%20.txt", "100%", "a&b=c;d", "#hash", "日本語", "😀", "e\u0301", "\u202eright", " leading", "{[(~$!@,)]}", "%41", "x".repeat(200)];

// No name server knows the account's host.
const lookup = dns.lookup;
dns.lookup = (host, ...more) => lookup(host.endsWith(".localhost") ? "127.0.0.1" : host, ...more);

const STYLES = {
  path: (server) => ({ url: server.fileUrl(), options: OPTIONS }),
  host: (server) => ({ url: `http://${ACCOUNT}.file.localhost:${new URL(server.urls.file).port}`, options: OPTIONS }),
};

async function startWithDocs(t, style = "path", more = {}) {
  const server = await startServer(t);
  const { url, options } = STYLES[style](server);
  const shares = new ShareServiceClient(url, key, { ...options, ...more });
  const docs = shares.getShareClient("docs");
  await docs.create();
  return { server, shares, docs, url, options };
}

const names = async (directory, options) =>
  (await collect(directory.listFilesAndDirectories(options))).map((entry) => entry.name + (entry.kind === "directory" ? "/" : ""));
const sum = (content) => createHash("sha256").update(content).digest("hex");
const file = (docs, path) => path.split("/").slice(0, -1).reduce((at, name) => at.getDirectoryClient(name), docs.rootDirectoryClient).getFileClient(path.split("/").at(-1));

test("a share from its creation to its end", async (t) => {
  const { shares, docs } = await startWithDocs(t);
  await refused(docs.create(), 409, "ShareAlreadyExists");
  assert.equal((await docs.createIfNotExists()).succeeded, false);
  await docs.setMetadata({ colour: "blue" });
  await docs.setQuota(7);
  await docs.setProperties({ accessTier: "Hot" });
  const seen = await docs.getProperties();
  assert.deepEqual([seen.metadata, seen.quota, seen.accessTier], [{ colour: "blue" }, 7, "Hot"]);
  assert.equal((await docs.getStatistics()).shareUsageBytes, 0);
  await shares.createShare("other");
  const listed = await collect(shares.listShares({ includeMetadata: true }));
  assert.deepEqual(listed.map((share) => [share.name, share.metadata || {}]), [["docs", { colour: "blue" }], ["other", {}]]);
  const policy = { id: "readers", accessPolicy: { permissions: "rl", startsOn: new Date(0), expiresOn: new Date(4e12) } };
  await docs.setAccessPolicy([policy]);
  assert.equal((await docs.getAccessPolicy()).signedIdentifiers[0].accessPolicy.permissions, "rl");
  await docs.delete();
  await refused(docs.getProperties(), 404, "ShareNotFound");
});

test("snapshots", async (t) => {
  const { shares, docs } = await startWithDocs(t);
  await docs.createDirectory("dir");
  const disk = file(docs, "dir/disk");
  await disk.create(4096);
  await disk.uploadRange(Buffer.alloc(1024, 1), 0, 1024);
  const { snapshot } = await docs.createSnapshot({ metadata: { colour: "red" } });
  await disk.uploadRange(Buffer.alloc(512, 2), 2048, 512);
  await disk.clearRange(0, 512);
  await file(docs, "new").create(1);
  const before = docs.withSnapshot(snapshot);
  assert.deepEqual((await before.getProperties()).metadata, { colour: "red" });
  assert.deepEqual(await names(before.rootDirectoryClient), ["dir/"]);
  assert.deepEqual((await names(docs.rootDirectoryClient)).sort(), ["dir/", "new"]);
  const seen = await file(before, "dir/disk").downloadToBuffer();
  assert.deepEqual([seen[0], seen[1023], seen[2048], seen.length], [1, 1, 0, 4096]);
  const { ranges, clearRanges } = await disk.getRangeListDiff(snapshot);
  const spans = (list) => list.map(({ start, end }) => [start, end]);
  assert.deepEqual([spans(ranges), spans(clearRanges)], [[[2048, 2559]], [[0, 511]]]);
  const listed = await collect(shares.listShares({ includeSnapshots: true }));
  assert.deepEqual(listed.map((share) => [share.name, share.snapshot]), [["docs", snapshot], ["docs", undefined]]);
  await refused(docs.delete(), 409, "ShareHasSnapshots");
  await before.delete();
  await refused(before.getProperties(), 404, "ShareNotFound");
  await docs.createSnapshot();
  await docs.delete({ deleteSnapshots: "include" });
});

test("settings", async (t) => {
  const { shares } = await startWithDocs(t);
  const rule = { allowedOrigins: "*", allowedMethods: "GET", allowedHeaders: "", exposedHeaders: "", maxAgeInSeconds: 5 };
  await shares.setProperties({ cors: [rule] });
  assert.equal((await shares.getProperties()).cors[0].allowedOrigins, "*");
});

for (const style of Object.keys(STYLES)) {
  test(`${style} style: a tree goes up and comes down`, async (t) => {
    const { docs } = await startWithDocs(t, style);
    const folder = await mkdtemp(join(tmpdir(), "lazurite-js-files-"));
    t.after(() => rm(folder, { recursive: true, force: true }));
    const tree = { "a.txt": Buffer.from("alpha"), empty: Buffer.alloc(0), "dir/page": Buffer.alloc(512, "p"), "large.bin": randomBytes(9 * MIB + 1) };
    for (const name of HOSTILE) tree[`dir ${name}/${name}`] = Buffer.from(name);
    for (const [path, content] of Object.entries(tree)) {
      if (path.includes("/")) await docs.createDirectory(path.split("/")[0]);
      await file(docs, path).uploadData(content, { concurrency: 4 });
    }
    assert.equal((await names(docs.rootDirectoryClient)).length, 4 + HOSTILE.length);
    for (const [path, content] of Object.entries(tree)) {
      const found = content.length > 0 ? await file(docs, path).downloadToBuffer() : Buffer.alloc(0);
      assert.equal(sum(found), sum(content), path);
      assert.equal((await file(docs, path).getProperties()).contentLength, content.length);
    }
    await writeFile(join(folder, "up"), tree["large.bin"]);
    await docs.rootDirectoryClient.getFileClient("from-disk").uploadFile(join(folder, "up"));
    await docs.rootDirectoryClient.getFileClient("from-disk").downloadToFile(join(folder, "down"));
    assert.equal(sum(await readFile(join(folder, "down"))), sum(tree["large.bin"]));
  });

  test(`${style} style: ranges`, async (t) => {
    const { docs } = await startWithDocs(t, style);
    const one = docs.rootDirectoryClient.getFileClient("one");
    await one.create(10_000);
    await one.uploadRange("aaaaa", 1023, 5);
    await one.uploadRange(Buffer.alloc(1000, "b"), 4096, 1000);
    assert.deepEqual((await one.getRangeList()).rangeList, [{ start: 512, end: 1535 }, { start: 4096, end: 5119 }]);
    await one.clearRange(4096, 512);
    const expected = Buffer.alloc(10_000);
    expected.fill("a", 1023, 1028).fill("b", 4608, 5096);
    assert.ok((await one.downloadToBuffer()).equals(expected));
    const part = await one.download(1020, 10, { rangeGetContentMD5: true });
    const chunks = await collect(part.readableStreamBody);
    assert.ok(Buffer.concat(chunks).equals(expected.subarray(1020, 1030)));
    assert.ok(Buffer.from(part.contentMD5).equals(createHash("md5").update(expected.subarray(1020, 1030)).digest()));
    await one.resize(1_025);
    await one.resize(2_000);
    assert.ok((await one.downloadToBuffer()).equals(Buffer.concat([expected.subarray(0, 1_025), Buffer.alloc(975)])));
    await refused(one.uploadRange("xx", 1_999, 2), 416, "InvalidRange");
    await one.create(TIB);
    await one.uploadRange("end", TIB - 3, 3);
    assert.deepEqual((await one.getRangeList()).rangeList, [{ start: TIB - 512, end: TIB - 1 }]);
    await one.delete();
    assert.equal(await one.exists(), false);
  });
}

// In a path its rename forgets the account, so renames are for accounts in the host.
test("renames", async (t) => {
  const { docs } = await startWithDocs(t, "host");
  const root = docs.rootDirectoryClient;
  for (const name of HOSTILE) {
    const from = root.getFileClient(`from ${name}`);
    await from.uploadData(Buffer.from(name));
    const before = await from.getProperties();
    const { destinationFileClient: to } = await from.rename(`to ${name}`);
    const after = await to.getProperties();
    assert.deepEqual([after.fileId, after.fileCreatedOn], [before.fileId, before.fileCreatedOn], name);
    assert.equal((await to.downloadToBuffer()).toString(), name);
    assert.equal(await from.exists(), false);
  }
  await root.getFileClient("one").uploadData(Buffer.from("one"));
  await root.getFileClient("two").uploadData(Buffer.from("two"));
  await refused(root.getFileClient("one").rename("two"), 409, "ResourceAlreadyExists");
  await root.getFileClient("one").rename("two", { replaceIfExists: true });
  assert.equal((await root.getFileClient("two").downloadToBuffer()).toString(), "one");
  const dir = (await root.createSubdirectory("dir")).directoryClient;
  await (await dir.createSubdirectory("inner")).directoryClient.getFileClient("file").uploadData(Buffer.from("deep"));
  const { destinationDirectoryClient: moved } = await dir.rename("moved dir");
  const deep = moved.getDirectoryClient("inner").getFileClient("file");
  assert.equal((await deep.downloadToBuffer()).toString(), "deep");
  await refused(moved.rename("moved dir/inner/below"), 400, "InvalidInput");
});

test("leases", async (t) => {
  const { server, docs } = await startWithDocs(t, "host");
  const one = docs.rootDirectoryClient.getFileClient("one");
  await one.create(10);
  const lease = one.getShareLeaseClient();
  const { leaseId } = await lease.acquireLease(-1);
  await refused(one.getShareLeaseClient().acquireLease(-1), 409, "LeaseAlreadyPresent");
  await refused(one.uploadRange("x", 0, 1), 412, "LeaseIdMissing");
  await refused(one.delete(), 412, "LeaseIdMissing");
  await one.uploadRange("x", 0, 1, { leaseAccessConditions: { leaseId } });
  await refused(one.rename("two"), 412, "LeaseIdMissing");
  const { destinationFileClient: two } = await one.rename("two", { sourceLeaseAccessConditions: { leaseId } });
  assert.equal((await two.getProperties()).leaseState, "leased");
  await two.getShareLeaseClient(leaseId).breakLease();
  assert.equal((await two.getProperties()).leaseState, "broken");
  await two.delete();
  const share = docs.getShareLeaseClient();
  await share.acquireLease(15);
  await refused(docs.delete(), 412, "LeaseIdMissing");
  await server.advance(16);
  assert.equal((await docs.getProperties()).leaseState, "expired");
  await docs.delete();
});

test("listings", async (t) => {
  const { docs } = await startWithDocs(t);
  const { directoryClient: dir } = await docs.createDirectory("dir");
  await dir.createSubdirectory("Inner");
  for (let number = 0; number < 12; number++) await dir.createFile(`file${String(number).padStart(2, "0")}`, number);
  const all = await names(dir);
  assert.equal(all.length, 13);
  assert.equal(all.at(-1), "Inner/");
  for (const maxPageSize of [1, 5, 13]) {
    const pages = await collect(dir.listFilesAndDirectories().byPage({ maxPageSize }));
    const found = pages.flatMap((page) => [...page.segment.fileItems, ...page.segment.directoryItems].map((entry) => entry.name));
    assert.equal(found.length, 13);
  }
  assert.deepEqual(await names(dir, { prefix: "FILE1" }), ["file10", "file11"]);
  const include = { includeTimestamps: true, includeEtag: true, includeAttributes: true, includePermissionKey: true, includeExtendedInfo: true };
  const [entry] = await collect(dir.listFilesAndDirectories({ ...include, prefix: "file07" }));
  const seen = await dir.getFileClient("file07").getProperties();
  assert.deepEqual(
    [entry.fileId, entry.properties.contentLength, entry.properties.etag.replaceAll('"', ""), entry.permissionKey, entry.attributes],
    [seen.fileId, 7, seen.etag.replaceAll('"', ""), seen.filePermissionKey, "Archive"],
  );
  assert.equal(entry.properties.creationTime.getTime(), seen.fileCreatedOn.getTime());
  assert.deepEqual(await collect(dir.listHandles({ recursive: true })), []);
  assert.equal((await dir.forceCloseAllHandles({ recursive: true })).closedHandlesCount, 0);
});

test("properties and permissions", async (t) => {
  const { docs } = await startWithDocs(t);
  const { filePermissionKey } = await docs.createPermission(SDDL);
  assert.equal((await docs.getPermission(filePermissionKey)).permission, SDDL);
  const { permission } = await docs.getPermission(filePermissionKey, { filePermissionFormat: "Binary" });
  assert.equal((await docs.createPermission({ permission, format: "Binary" })).filePermissionKey, filePermissionKey);
  const one = docs.rootDirectoryClient.getFileClient("One");
  const created = new Date("2020-01-02T03:04:05.678Z");
  await one.create(100, {
    creationTime: created,
    fileAttributes: FileSystemAttributes.parse("Hidden|Archive"),
    filePermission: SDDL,
    filePropertySemantics: "Restore",
    fileHttpHeaders: { fileContentType: "text/plain", fileCacheControl: "no-store" },
    metadata: { colour: "blue" },
  });
  const seen = await docs.rootDirectoryClient.getFileClient("ONE").getProperties();
  assert.deepEqual(
    [seen.filePermissionKey, seen.contentType, seen.cacheControl, seen.metadata, seen.fileCreatedOn.getTime()],
    [filePermissionKey, "text/plain", "no-store", { colour: "blue" }, created.getTime()],
  );
  await one.setHttpHeaders({ fileContentType: "a/b" });
  await one.setMetadata({ size: "2" });
  const after = await one.getProperties();
  assert.deepEqual([after.contentType, after.cacheControl, after.metadata], ["a/b", undefined, { size: "2" }]);
  await refused(docs.createDirectory("one"), 409, "ResourceAlreadyExists");
  await refused(docs.createPermission("everybody"), 400, "FileInvalidPermission");
  for (const name of ["a:b", "a*b", "nul"]) await refused(docs.createDirectory(name), 400, "InvalidResourceName");
});

test("dots at the end", async (t) => {
  const { shares, docs, url, options } = await startWithDocs(t);
  await docs.createDirectory("dir...");
  assert.deepEqual(await names(docs.rootDirectoryClient), ["dir/"]);
  const keeping = new ShareServiceClient(url, key, { ...options, allowTrailingDot: true, allowSourceTrailingDot: true });
  await keeping.getShareClient("docs").createDirectory("dir...");
  assert.deepEqual(await names(docs.rootDirectoryClient), ["dir/", "dir.../"]);
  assert.ok(shares);
});

test("a signature allows what its letters say", async (t) => {
  const { docs, url, options } = await startWithDocs(t, "host");
  await docs.rootDirectoryClient.getFileClient("one").uploadData(Buffer.from("one"));
  const expiresOn = new Date(Date.now() + 3_600_000);
  const share = (letters) =>
    generateFileSASQueryParameters({ shareName: "docs", permissions: ShareSASPermissions.parse(letters), expiresOn }, key);
  const reader = new ShareClient(`${url}/docs?${share("rl")}`, undefined, options);
  assert.deepEqual(await names(reader.rootDirectoryClient), ["one"]);
  assert.equal((await reader.rootDirectoryClient.getFileClient("one").downloadToBuffer()).toString(), "one");
  await refused(reader.rootDirectoryClient.getFileClient("one").delete(), 403, "AuthorizationPermissionMismatch");
  await refused(reader.delete(), 403, "AuthorizationFailure");
  const writer = new ShareClient(`${url}/docs?${share("rcw")}`, undefined, options);
  await writer.rootDirectoryClient.getFileClient("one").rename("two");
  const permissions = FileSASPermissions.parse("r");
  const one = generateFileSASQueryParameters({ shareName: "docs", filePath: "two", permissions, expiresOn }, key);
  const two = new ShareFileClient(`${url}/docs/two?${one}`, undefined, options);
  assert.equal((await two.downloadToBuffer()).toString(), "one");
  const other = new ShareFileClient(`${url}/docs/three?${one}`, undefined, options);
  await refused(other.getProperties(), 403, "AuthenticationFailed");
  const account = generateAccountSASQueryParameters(
    { services: "f", resourceTypes: "sco", permissions: AccountSASPermissions.parse("rwdlc"), expiresOn },
    key,
  );
  const all = new ShareServiceClient(`${url}?${account}`, undefined, options);
  assert.deepEqual((await collect(all.listShares())).map((found) => found.name), ["docs"]);
  await all.deleteShare("docs");
});
