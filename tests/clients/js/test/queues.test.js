// Queues through @azure/storage-queue.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  QueueClient,
  QueueSASPermissions,
  QueueServiceClient,
  StorageSharedKeyCredential,
  generateQueueSASQueryParameters,
} from "@azure/storage-queue";
import { ACCOUNT, KEY, collect, refused, startServer } from "../harness.js";

const OPTIONS = { retryOptions: { maxTries: 1 } };

async function startWithLine(t) {
  const server = await startServer(t);
  const queues = new QueueServiceClient(server.queueUrl(), new StorageSharedKeyCredential(ACCOUNT, KEY), OPTIONS);
  const line = queues.getQueueClient("line");
  await line.create();
  return { server, queues, line };
}

test("queues are created, listed, described and deleted", async (t) => {
  const { queues, line } = await startWithLine(t);
  await refused(line.create({ metadata: { a: "1" } }), 409, "QueueAlreadyExists");
  assert.equal((await line.createIfNotExists()).succeeded, false);
  await line.setMetadata({ colour: "blue" });
  const properties = await line.getProperties();
  assert.deepEqual([properties.metadata, properties.approximateMessagesCount], [{ colour: "blue" }, 0]);
  await queues.createQueue("other");
  const listed = await collect(queues.listQueues({ includeMetadata: true }));
  assert.deepEqual(
    listed.map((queue) => queue.name),
    ["line", "other"],
  );
  await line.delete();
  await refused(line.getProperties(), 404, "QueueNotFound");
});

test("a message is given to one, comes back, is changed and deleted", async (t) => {
  const { server, line } = await startWithLine(t);
  const sent = await line.sendMessage("a <b> & c", { messageTimeToLive: -1 });
  assert.equal(sent.expiresOn.getUTCFullYear(), 9999);
  const first = (await line.receiveMessages({ visibilityTimeout: 10 })).receivedMessageItems[0];
  assert.deepEqual([first.messageText, first.dequeueCount, first.messageId], ["a <b> & c", 1, sent.messageId]);
  assert.equal((await line.receiveMessages()).receivedMessageItems.length, 0);
  await server.advance(11);
  const second = (await line.receiveMessages({ visibilityTimeout: 10 })).receivedMessageItems[0];
  assert.equal(second.dequeueCount, 2);
  await refused(line.deleteMessage(first.messageId, first.popReceipt), 404, "MessageNotFound");
  const updated = await line.updateMessage(second.messageId, second.popReceipt, "changed", 0);
  const seen = (await line.peekMessages({ numberOfMessages: 32 })).peekedMessageItems;
  assert.deepEqual([seen.length, seen[0].messageText], [1, "changed"]);
  await refused(line.updateMessage(second.messageId, second.popReceipt, "late"), 404, "MessageNotFound");
  await line.deleteMessage(second.messageId, updated.popReceipt);
  await line.sendMessage("x");
  await line.clearMessages();
  assert.equal((await line.getProperties()).approximateMessagesCount, 0);
});

test("thirty-two at a time, and no more", async (t) => {
  const { line } = await startWithLine(t);
  for (let n = 0; n < 40; n++) await line.sendMessage(String(n));
  const taken = (await line.receiveMessages({ numberOfMessages: 32 })).receivedMessageItems;
  assert.deepEqual(
    taken.map((message) => message.messageText),
    Array.from({ length: 32 }, (_, n) => String(n)),
  );
  await refused(line.receiveMessages({ numberOfMessages: 33 }), 400, "OutOfRangeQueryParameterValue");
  await refused(line.sendMessage("x".repeat(65_537)), 413, "RequestBodyTooLarge");
});

test("a signature allows what its letters say", async (t) => {
  const { server, line } = await startWithLine(t);
  const expiresOn = new Date(Date.now() + 3_600_000);
  const permissions = QueueSASPermissions.parse("a");
  const sas = generateQueueSASQueryParameters(
    { queueName: "line", permissions, expiresOn },
    new StorageSharedKeyCredential(ACCOUNT, KEY),
  );
  const adder = new QueueClient(`${server.queueUrl()}/line?${sas}`, undefined, OPTIONS);
  await adder.sendMessage("x");
  await refused(adder.receiveMessages(), 403, "AuthorizationPermissionMismatch");
  const policy = { id: "readers", accessPolicy: { permissions: "r", startsOn: new Date(0), expiresOn } };
  await line.setAccessPolicy([policy]);
  assert.equal((await line.getAccessPolicy()).signedIdentifiers[0].accessPolicy.permissions, "r");
});

test("settings", async (t) => {
  const { queues } = await startWithLine(t);
  const rule = { allowedOrigins: "*", allowedMethods: "GET", allowedHeaders: "", exposedHeaders: "", maxAgeInSeconds: 5 };
  await queues.setProperties({ cors: [rule] });
  assert.equal((await queues.getProperties()).cors[0].allowedOrigins, "*");
});
