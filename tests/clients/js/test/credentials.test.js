import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { startServer } from "../harness.js";

// Node reads NODE_EXTRA_CA_CERTS when it starts, and the certificate is there when the server has started.
test("every kind of credential over https", async (t) => {
  const server = await startServer(t, "--tls", "auto", "--oauth", "basic");
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  env.NODE_EXTRA_CA_CERTS = join(server.folder, "tls/cert.pem");
  env.BLOB_URL = server.urls.blob;
  env.FILE_URL = server.urls.file;
  const program = fileURLToPath(new URL("../credentials.js", import.meta.url));
  const child = spawn(process.execPath, [program], { env, stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  child.stdout.on("data", (text) => (said += text));
  const [code] = await once(child, "close");
  assert.equal(code, 0, said);
});
