// The quick start of the README, as it is.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { freePort, get, Server, storm, tally, until } from "./support.js";

test("the quick start limits, and passes requests while the server is away", async (t) => {
  const [, code] = /```js\n(.*?)```/s.exec(readFileSync(new URL("README.md", import.meta.url), "utf8"));
  assert.ok(code.trim().split("\n").length <= 10);
  const file = fileURLToPath(new URL("quick-start.mjs", import.meta.url));
  writeFileSync(file, code);
  t.after(() => rmSync(file));

  const server = await Server.start();
  t.after(() => server.stop());
  const port = await freePort();
  const env = { ...process.env, REDIS_URL: server.url, RATE_LIMIT_SECRET: "secret", PORT: `${port}` };
  const service = spawn(process.execPath, [file], { env, stdio: ["ignore", "ignore", "pipe"] });
  t.after(() => service.kill("SIGKILL"));
  let lines = "";
  service.stderr.on("data", (text) => (lines += text));
  const url = `http://127.0.0.1:${port}/`;
  await until(async () =>
    (await get(url).catch(() => ({ headers: new Headers() }))).headers.has("RateLimit"),
  );

  const statuses = async () => tally((await storm(50, 4, () => get(url))).map(({ status }) => status));
  await statuses();
  assert.deepEqual(await statuses(), { 429: 200 });
  const [key] = await server.call("KEYS", "*");
  assert.match(key, /^ip:[0-9a-f]{32}$/);
  assert.equal((await server.call("ZRANGE", key, "0", "-1")).at(-1).split(":")[0], "100");

  await server.kill();
  // What it remembers it still refuses.
  assert.deepEqual(await statuses(), { 429: 200 });
  assert.equal(service.exitCode, null);
  await server.start();
  assert.doesNotMatch(lines, /Error|at .*\.js/);
});

test("the quick start, started before the server", async (t) => {
  const server = await Server.start();
  await server.kill();
  t.after(() => server.stop());
  const [, code] = /```js\n(.*?)```/s.exec(readFileSync(new URL("README.md", import.meta.url), "utf8"));
  const port = await freePort();
  const env = { ...process.env, REDIS_URL: server.url, RATE_LIMIT_SECRET: "secret", PORT: `${port}` };
  const cwd = fileURLToPath(new URL(".", import.meta.url));
  const service = spawn(process.execPath, ["--input-type=module", "--eval", code], {
    cwd,
    env,
    stdio: "ignore",
  });
  t.after(() => service.kill("SIGKILL"));
  const url = `http://127.0.0.1:${port}/`;
  await until(async () => (await get(url).catch(() => ({}))).status === 200);
  assert.equal((await get(url)).headers.get("RateLimit"), null);
  await server.start();
  await until(async () => (await get(url)).headers.has("RateLimit"));
});
