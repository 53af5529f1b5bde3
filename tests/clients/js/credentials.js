// Every kind of credential over https, against the server at BLOB_URL and FILE_URL whose certificate this process was started with.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AccountSASPermissions,
  AccountSASResourceTypes,
  AccountSASServices,
  AnonymousCredential,
  BlobServiceClient,
  BlobSASPermissions,
  ContainerSASPermissions,
  generateAccountSASQueryParameters,
  generateBlobSASQueryParameters,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";
import { generateFileSASQueryParameters, ShareSASPermissions, ShareServiceClient } from "@azure/storage-file-share";
import { ACCOUNT, collect, KEY, refused } from "./harness.js";

const URL = `${process.env.BLOB_URL}/${ACCOUNT}`;
const ONCE = { retryOptions: { maxTries: 1 } };
const TENANT = "11111111-1111-1111-1111-111111111111";
const PERSON = "22222222-2222-2222-2222-222222222222";
const hours = (count) => new Date(Date.now() + count * 3600_000);
const key = new StorageSharedKeyCredential(ACCOUNT, KEY);
const owner = new BlobServiceClient(URL, key, ONCE);

const withToken = (token) => new BlobServiceClient(`${URL}?${token}`, new AnonymousCredential(), ONCE);
const withBearer = (claims) => new BlobServiceClient(URL, bearer(claims), ONCE);

/** Says who somebody is, signed by nobody: `--oauth basic` looks at the claims only. */
function bearer(claims) {
  const now = Math.floor(Date.now() / 1000);
  const all = {
    aud: "https://storage.azure.com",
    iss: `https://sts.windows.net/${TENANT}/`,
    iat: now,
    nbf: now - 60,
    exp: now + 3600,
    oid: PERSON,
    tid: TENANT,
    ...claims,
  };
  const parts = [JSON.stringify({ alg: "HS256", typ: "JWT" }), JSON.stringify(all), "nobody"];
  const token = parts.map((part) => Buffer.from(part).toString("base64url")).join(".");
  return { getToken: async () => ({ token, expiresOnTimestamp: Date.now() + 3600_000 }) };
}

function accountSas(permissions = "rwdlac", more = {}) {
  const values = {
    permissions: AccountSASPermissions.parse(permissions),
    services: AccountSASServices.parse("b").toString(),
    resourceTypes: AccountSASResourceTypes.parse("sco").toString(),
    expiresOn: hours(1),
    ...more,
  };
  return generateAccountSASQueryParameters(values, key).toString();
}

/** For a container, or for a blob or snapshot in it if `more` names one. */
function serviceSas(containerName, permissions, more = {}, signer = [key]) {
  const parse = more.blobName ? BlobSASPermissions : ContainerSASPermissions;
  const values = { containerName, ...more };
  if (permissions) Object.assign(values, { permissions: parse.parse(permissions), expiresOn: more.expiresOn ?? hours(1) });
  return generateBlobSASQueryParameters(values, ...signer).toString();
}

async function delegated() {
  return [await withBearer().getUserDelegationKey(hours(-1), hours(1)), ACCOUNT];
}

function setPolicy(box, permissions) {
  const accessPolicy = { permissions, startsOn: hours(-1), expiresOn: hours(1) };
  return box.setAccessPolicy(undefined, [{ id: "policy", accessPolicy }]);
}

let boxes = 0;
async function newBox() {
  const box = owner.getContainerClient(`box${boxes++}`);
  await box.create();
  await box.uploadBlockBlob("b", "content", 7);
  return box;
}

async function read(blob) {
  return (await blob.downloadToBuffer()).toString();
}

const credentials = {
  key: () => owner,
  "connection string": () =>
    BlobServiceClient.fromConnectionString(
      `DefaultEndpointsProtocol=https;AccountName=${ACCOUNT};AccountKey=${KEY};BlobEndpoint=${URL};`,
      ONCE,
    ),
  "connection string with a signature": () =>
    BlobServiceClient.fromConnectionString(`BlobEndpoint=${URL};SharedAccessSignature=${accountSas()};`, ONCE),
  "account signature": () => withToken(accountSas()),
  "service signature": (box) => withToken(serviceSas(box.containerName, "rwdlac")),
  "policy signature": async (box) => {
    await setPolicy(box, "rwdlac");
    return withToken(serviceSas(box.containerName, null, { identifier: "policy" }));
  },
  "user delegation signature": async (box) =>
    withToken(serviceSas(box.containerName, "rwdlac", {}, await delegated())),
  bearer: () => withBearer(),
};

for (const [kind, make] of Object.entries(credentials)) {
  test(`${kind}: it opens`, async () => {
    const box = await newBox();
    const mine = (await make(box)).getContainerClient(box.containerName);
    const blob = mine.getBlockBlobClient("dir/ä b+c.txt");
    await blob.upload("another", 7, { metadata: { colour: "blue" } });
    assert.equal((await blob.downloadToBuffer(2, 3)).toString(), "oth");
    const names = (await collect(mine.listBlobsFlat())).map((found) => found.name);
    assert.deepEqual(names, ["b", "dir/ä b+c.txt"]);
    await blob.delete();
    assert.equal(await blob.exists(), false);
  });
}

for (const [by, signer] of Object.entries({ key: () => [key], "user delegation": delegated })) {
  test(`a signature for a blob or a snapshot opens only that, by ${by}`, async () => {
    const box = await newBox();
    await box.uploadBlockBlob("other", "x", 1);
    const name = box.containerName;
    const { snapshot } = await box.getBlobClient("b").createSnapshot();
    await box.uploadBlockBlob("b", "changed", 7);
    const signedBy = await signer();
    const forBlob = withToken(serviceSas(name, "r", { blobName: "b" }, signedBy)).getContainerClient(name);
    assert.equal(await read(forBlob.getBlobClient("b")), "changed");
    await refused(forBlob.getBlobClient("other").download(), 403, "AuthenticationFailed");
    await refused(forBlob.getBlobClient("b").delete(), 403, "AuthorizationPermissionMismatch");
    const token = serviceSas(name, "r", { blobName: "b", snapshotTime: snapshot }, signedBy);
    const forSnapshot = withToken(token).getContainerClient(name).getBlobClient("b");
    assert.equal(await read(forSnapshot.withSnapshot(snapshot)), "content");
    await refused(forSnapshot.download(), 403, "AuthenticationFailed");
  });
}

test("a policy decides from the next request on", async () => {
  const box = await newBox();
  await setPolicy(box, "r");
  const mine = withToken(serviceSas(box.containerName, null, { identifier: "policy" })).getContainerClient(box.containerName);
  assert.equal(await read(mine.getBlobClient("b")), "content");
  await setPolicy(box, "w");
  await refused(mine.getBlobClient("b").download(), 403, "AuthorizationPermissionMismatch");
  await box.setAccessPolicy();
  await refused(mine.getBlobClient("b").download(), 403, "AuthenticationFailed");
});

test("anybody reads what is public", async () => {
  const box = await newBox();
  const anybody = new BlobServiceClient(URL, new AnonymousCredential(), ONCE).getContainerClient(box.containerName);
  await refused(anybody.getBlobClient("b").download(), 401, "NoAuthenticationInformation");
  await box.setAccessPolicy("blob");
  assert.equal(await read(anybody.getBlobClient("b")), "content");
  await refused(collect(anybody.listBlobsFlat()), 401, "NoAuthenticationInformation");
  await box.setAccessPolicy("container");
  assert.equal((await collect(anybody.listBlobsFlat())).length, 1);
  await refused(anybody.uploadBlockBlob("b", "x", 1), 401, "NoAuthenticationInformation");
});

test("each refusal has its name", async () => {
  const box = await newBox();
  const name = box.containerName;
  const blobName = "b";
  const attempts = [
    [serviceSas(name, "r", { blobName, expiresOn: hours(-1) }), "AuthenticationFailed"],
    [serviceSas(name, "r", { blobName, startsOn: hours(1), expiresOn: hours(2) }), "AuthenticationFailed"],
    [serviceSas(name, "r", { blobName: "another" }), "AuthenticationFailed"],
    [serviceSas(name, "r", { blobName }).replace("sp=r", "sp=rw"), "AuthenticationFailed"],
    [serviceSas(name, "w", { blobName }), "AuthorizationPermissionMismatch"],
    [serviceSas(name, "r", { blobName, ipRange: { start: "10.1.2.3" } }), "AuthorizationSourceIPMismatch"],
    [accountSas("w"), "AuthorizationPermissionMismatch"],
    [accountSas("r", { resourceTypes: "sc" }), "AuthorizationResourceTypeMismatch"],
    [accountSas("r", { services: "q" }), "AuthorizationServiceMismatch"],
  ];
  for (const [token, code] of attempts) {
    await refused(withToken(token).getContainerClient(name).getBlobClient("b").download(), 403, code);
  }
  const late = withBearer({ exp: 1_700_000_000 }).getContainerClient(name).getBlobClient("b");
  await refused(late.download(), 401, "InvalidAuthenticationInfo");
});

test("files are open to a token that says what it is for, and to signatures by its key", async () => {
  const url = `${process.env.FILE_URL}/${ACCOUNT}`;
  const shares = new ShareServiceClient(url, bearer(), { ...ONCE, fileRequestIntent: "backup" });
  const { shareClient: docs } = await shares.createShare("docs");
  await docs.rootDirectoryClient.getFileClient("f").uploadData(Buffer.from("content"));
  assert.equal(await read(docs.rootDirectoryClient.getFileClient("f")), "content");
  const aimless = new ShareServiceClient(url, bearer(), ONCE).getShareClient("docs");
  await assert.rejects(aimless.getProperties(), (error) => [400, 403].includes(error.statusCode));
  const delegation = await shares.getUserDelegationKey(hours(-1), hours(1));
  const signed = (letters) => {
    const values = { shareName: "docs", permissions: ShareSASPermissions.parse(letters), expiresOn: hours(1) };
    const token = generateFileSASQueryParameters(values, delegation, ACCOUNT);
    return new ShareServiceClient(`${url}?${token}`, undefined, ONCE).getShareClient("docs").rootDirectoryClient.getFileClient("f");
  };
  assert.equal(await read(signed("r")), "content");
  await refused(signed("w").download(), 403, "AuthorizationPermissionMismatch");
  await signed("w").uploadRange("C", 0, 1);
  assert.equal(await read(signed("r")), "Content");
});
