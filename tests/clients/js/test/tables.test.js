// Tables through @azure/data-tables.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AzureNamedKeyCredential,
  AzureSASCredential,
  RestError,
  TableClient,
  TableServiceClient,
  TableTransaction,
  generateTableSas,
  odata,
} from "@azure/data-tables";
import { ACCOUNT, KEY, collect, startServer } from "../harness.js";

const OPTIONS = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };
const CREDENTIAL = new AzureNamedKeyCredential(ACCOUNT, KEY);

async function startWithTable(t) {
  const server = await startServer(t);
  const url = server.tableUrl();
  const tables = new TableServiceClient(url, CREDENTIAL, OPTIONS);
  await tables.createTable("people");
  return { server, url, tables, people: new TableClient(url, "people", CREDENTIAL, OPTIONS) };
}

/** The promise must fail with exactly this status and error code. */
async function refused(promise, status, code) {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof RestError, String(error));
    const said = error.details?.odataError?.code ?? error.code;
    assert.deepEqual([error.statusCode, said], [status, code], error.message);
    return true;
  });
}

const person = (rowKey, more) => ({ partitionKey: "all", rowKey, ...more });

test("tables come and go", async (t) => {
  const { tables } = await startWithTable(t);
  await tables.createTable("Beta");
  const names = async (options) => (await collect(tables.listTables(options))).map((table) => table.name);
  assert.deepEqual(await names(), ["Beta", "people"]);
  assert.deepEqual(await names({ queryOptions: { filter: "TableName eq 'Beta'" } }), ["Beta"]);
  await tables.deleteTable("beta");
  assert.deepEqual(await names(), ["people"]);
});

test("every type there and back", async (t) => {
  const { people } = await startWithTable(t);
  const entity = person("ä 'quoted' 😀", {
    text: 'line\nbreak "quoted" 日本語',
    number: -2147483648,
    big: 9223372036854775807n,
    fraction: 0.1,
    yes: true,
    when: new Date("2008-07-10T10:20:30.123Z"),
    id: { type: "Guid", value: "c9da6455-213d-42c9-9a79-3e9149a57833" },
    raw: new Uint8Array([0, 1, 2, 255]),
  });
  await people.createEntity(entity);
  const found = await people.getEntity("all", entity.rowKey);
  const { raw, ...rest } = entity;
  for (const [name, value] of Object.entries(rest)) assert.deepEqual(found[name], value, name);
  assert.deepEqual([...found.raw], [...raw]);
  const exact = await people.getEntity("all", entity.rowKey, { disableTypeConversion: true });
  assert.deepEqual(exact.big, { type: "Int64", value: "9223372036854775807" });
});

test("two writers on one entity", async (t) => {
  const { people } = await startWithTable(t);
  await people.createEntity(person("1", { count: 0 }));
  const { etag } = await people.getEntity("all", "1");
  await people.updateEntity(person("1", { count: 1 }), "Replace", { etag });
  await refused(people.updateEntity(person("1", { count: 2 }), "Merge", { etag }), 412, "UpdateConditionNotSatisfied");
  await refused(people.deleteEntity("all", "1", { etag }), 412, "UpdateConditionNotSatisfied");
  await refused(people.createEntity(person("1")), 409, "EntityAlreadyExists");
  await people.updateEntity(person("1", { count: 3 }), "Merge");
  assert.equal((await people.getEntity("all", "1")).count, 3);
  await people.upsertEntity(person("2", { a: 1 }), "Replace");
  await people.upsertEntity(person("2", { b: 2 }), "Merge");
  const both = await people.getEntity("all", "2");
  assert.deepEqual([both.a, both.b], [1, 2]);
  await people.deleteEntity("all", "2");
  await refused(people.getEntity("all", "2"), 404, "ResourceNotFound");
});

test("queries, page by page", async (t) => {
  const { people } = await startWithTable(t);
  for (let start = 0; start < 1200; start += 100) {
    const rows = Array.from({ length: 100 }, (_, row) => String(start + row).padStart(4, "0"));
    await people.submitTransaction(rows.map((row) => ["create", person(row, { n: Number(row) })]));
  }
  const sizes = [];
  for await (const page of people.listEntities().byPage()) sizes.push(page.length);
  assert.deepEqual(sizes, [1000, 200]);
  const filter = odata`RowKey ge ${"0500"} and RowKey lt ${"0510"} and n ne ${505}`;
  const found = await collect(people.listEntities({ queryOptions: { filter, select: ["n"] } }));
  assert.deepEqual(found.map((entity) => entity.n), [500, 501, 502, 503, 504, 506, 507, 508, 509]);
});

test("a transaction is all or nothing", async (t) => {
  const { people } = await startWithTable(t);
  await people.createEntity(person("there"));
  const transaction = new TableTransaction();
  transaction.upsertEntity(person("1"));
  transaction.createEntity(person("there"));
  await refused(people.submitTransaction(transaction.actions), 409, "EntityAlreadyExists");
  const rows = async () => (await collect(people.listEntities())).map((entity) => entity.rowKey);
  assert.deepEqual(await rows(), ["there"]);
  const told = await people.submitTransaction([
    ["create", person("1")],
    ["update", person("there", { v: 1 }), "Merge"],
    ["upsert", person("2"), "Replace"],
  ]);
  assert.deepEqual([told.status, told.subResponses.map((part) => part.status)], [202, [204, 204, 204]]);
  assert.ok(told.getResponseForEntity("1").etag);
  assert.deepEqual(await rows(), ["1", "2", "there"]);
});

test("a signature reaches as far as it says", async (t) => {
  const { url, people } = await startWithTable(t);
  for (const partitionKey of ["a", "b", "c"]) await people.createEntity({ partitionKey, rowKey: "1" });
  const permissions = { query: true, add: true };
  const signature = generateTableSas("people", CREDENTIAL, { permissions, startPartitionKey: "b", endPartitionKey: "b" });
  const limited = new TableClient(url, "people", new AzureSASCredential(signature), OPTIONS);
  assert.deepEqual((await collect(limited.listEntities())).map((entity) => entity.partitionKey), ["b"]);
  await refused(limited.createEntity({ partitionKey: "c", rowKey: "2" }), 403, "AuthorizationFailure");
  await refused(limited.deleteEntity("b", "1"), 403, "AuthorizationPermissionMismatch");
});
