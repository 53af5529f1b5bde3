// Starts a server of its own for a test, and says what a refusal looks like.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { BlobServiceClient, RestError } from "@azure/storage-blob";

export const ACCOUNT = "devstoreaccount1";
export const KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const BINARY = process.env.LAZURITE_BIN || fileURLToPath(new URL("../../../target/debug/lazurite", import.meta.url));
const SERVICES = ["blob", "queue", "table", "file", "dfs", "admin"];

/** A server process on free ports with its own data folder; it ends with the test `t`. */
export async function startServer(t, ...options) {
  const folder = await mkdtemp(join(tmpdir(), "lazurite-js-"));
  const server = new Server(folder, options);
  await server.start();
  t.after(async () => {
    if (server.process.exitCode === null && server.process.signalCode === null) {
      assert.equal(await server.stop(), 0, "the server ends in good order");
    }
    await rm(folder, { recursive: true, force: true });
  });
  return server;
}

class Server {
  constructor(folder, options) {
    this.folder = folder;
    this.options = options;
    this.urls = {};
  }

  async start() {
    const ports = SERVICES.flatMap((name) => [`--${name}-port`, "0"]);
    // Every option of the server may also come from the environment; ours come from here only.
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("LAZURITE_")));
    this.process = spawn(BINARY, ["--location", this.folder, ...ports, "--test-clock", ...this.options], {
      stdio: ["ignore", "pipe", "inherit"],
      env,
    });
    for await (const line of createInterface({ input: this.process.stdout })) {
      const listening = line.match(/(\w+)(?: service)? is listening at (https?:\S+)/);
      if (listening) this.urls[listening[1].toLowerCase()] = listening[2];
      if (line.trim() === "Ready.") {
        this.process.stdout.resume();
        return;
      }
    }
    throw new Error("the server ended before it was ready");
  }

  /** A client that reports the first answer it gets: a retry would hide what the server said. */
  service() {
    const endpoint = `${this.urls.blob}/${ACCOUNT}`;
    return BlobServiceClient.fromConnectionString(
      `DefaultEndpointsProtocol=http;AccountName=${ACCOUNT};AccountKey=${KEY};BlobEndpoint=${endpoint};`,
      { retryOptions: { maxTries: 1 } },
    );
  }

  queueUrl() {
    return `${this.urls.queue}/${ACCOUNT}`;
  }

  tableUrl() {
    return `${this.urls.table}/${ACCOUNT}`;
  }

  fileUrl() {
    return `${this.urls.file}/${ACCOUNT}`;
  }

  /** Moves the server's time forward. */
  async advance(seconds) {
    const body = JSON.stringify({ advance_seconds: seconds });
    const answer = await fetch(`${this.urls.admin}/test/clock`, { method: "POST", body });
    assert.equal(answer.status, 200);
    return (await answer.json()).offset_seconds;
  }

  async stop(signal = "SIGTERM") {
    const ended = once(this.process, "exit");
    this.process.kill(signal);
    return (await ended)[0];
  }

  kill9() {
    return this.stop("SIGKILL");
  }

  /** Starts again on the same folder, after `kill9` or `stop`. The ports are new. */
  restart() {
    return this.start();
  }
}

/** A container called "box" on a server of the test's own. */
export async function startWithBox(t) {
  const server = await startServer(t);
  const box = server.service().getContainerClient("box");
  await box.create();
  return { server, box };
}

/** The promise must fail with exactly this status and error code. */
export async function refused(promise, status, code) {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof RestError, String(error));
    // The client has no code of its own for an answer without a body (HEAD); the header is always there.
    assert.deepEqual([error.statusCode, error.response.headers.get("x-ms-error-code")], [status, code], error.message);
    assert.equal(error.code ?? code, code);
    return true;
  });
}

export async function collect(items) {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
}
