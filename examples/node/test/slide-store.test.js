// express-rate-limit itself, on the module and on its own MemoryStore, with the same requests.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import express from "express";
import { MemoryStore, rateLimit } from "express-rate-limit";
import { createClient } from "redis";
import { SlideStore } from "../slide-store.js";
import { get, Redis, serve, statuses, storm, until } from "./support.js";

let redis;
let client;

before(async () => {
  redis = await Redis.start();
  client = createClient({ url: redis.url, disableOfflineQueue: true, socket: { reconnectStrategy: 100 } });
  client.on("error", () => {});
  await client.connect();
});
after(async () => {
  client.destroy();
  await redis.stop();
});
beforeEach(() => client.sendCommand(["FLUSHALL"]));

const slide = (options) => new SlideStore({ sendCommand: (...words) => client.sendCommand(words), ...options });

async function start(t, store, options) {
  const app = express();
  const limiter = rateLimit({ windowMs: 60_000, limit: 5, store, standardHeaders: "draft-6", ...options });
  app.use(limiter);
  app.get("/", (req, res) => res.send("hello"));
  app.get("/fails", (req, res) => res.sendStatus(500));
  app.get("/slow", async (req, res) => {
    await pause(2000);
    res.sendStatus(Number(req.query.status));
  });
  const url = await serve(t, app);
  return { url, limiter };
}

/** The same requests to both, one after the other; what each replied. */
async function both(t, requests, options, storeOptions) {
  const replies = [];
  for (const store of [slide(storeOptions), new MemoryStore()]) {
    const { url } = await start(t, store, options);
    const told = [];
    for (const path of requests) {
      const { status, headers } = await get(url + path);
      told.push([path, status, headers.get("RateLimit-Limit"), headers.get("RateLimit-Remaining")].join(" "));
      assert.match(headers.get("RateLimit-Reset"), /^\d+$/);
      if (status === 429) assert.match(headers.get("Retry-After"), /^[1-9]\d*$/);
    }
    replies.push(told);
  }
  return replies;
}

const repeat = (n, path) => Array(n).fill(path);

for (const [algorithm, options] of [["LOG", []], ["COUNTER", []], ["COUNTER", ["BUCKETS", "10"]]]) {
  const name = [algorithm, ...options].join(" ");

  test(`${name} replies what memory replies`, async (t) => {
    const [ours, theirs] = await both(t, repeat(8, "/"), {}, { algorithm, options });
    assert.deepEqual(ours, theirs);
    assert.equal(ours.at(-1), "/ 429 5 0");
  });

  test(`${name} with failed requests skipped replies what memory replies`, async (t) => {
    const requests = [...repeat(4, "/fails"), ...repeat(5, "/"), ...repeat(6, "/fails"), ...repeat(2, "/")];
    const [ours, theirs] = await both(t, requests, { skipFailedRequests: true }, { algorithm, options });
    assert.deepEqual(ours, theirs);
    // Taking back what was refused gave none of the five away.
    assert.deepEqual(ours.slice(-2), ["/ 429 5 0", "/ 429 5 0"]);
  });

  test(`${name} with successful requests skipped replies what memory replies`, async (t) => {
    const requests = [...repeat(8, "/"), ...repeat(5, "/fails"), ...repeat(2, "/")];
    const [ours, theirs] = await both(t, requests, { skipSuccessfulRequests: true }, { algorithm, options });
    assert.deepEqual(ours, theirs);
    assert.deepEqual(ours.slice(-3), ["/fails 500 5 0", "/ 429 5 0", "/ 429 5 0"]);
  });
}

/** When the client's hits were recorded. */
const times = async () => (await client.sendCommand(["ZRANGE", "rl:client", "0", "-1", "WITHSCORES"])).filter((_, i) => i % 2);

for (const [option, slow, quick] of [
  ["skipFailedRequests", "/slow?status=500", "/"],
  ["skipSuccessfulRequests", "/slow?status=200", "/fails"],
]) {
  test(`${option} takes back the request's own hit`, async (t) => {
    const { url } = await start(t, slide(), { [option]: true, keyGenerator: () => "client" });
    const first = get(url + slow);
    await until(async () => (await times()).length === 1);
    await pause(1200); // what is more than a second younger is never taken
    await get(url + quick);
    const [, later] = await times();
    await first;
    await until(async () => (await times()).length === 1);
    assert.deepEqual(await times(), [later]);
  });
}

test("a hit that was not recorded is not taken back", async (t) => {
  const { url } = await start(t, slide(), { limit: 1, skipSuccessfulRequests: true, keyGenerator: () => "client" });
  await client.sendCommand(["CONFIG", "SET", "slide.enforce", "no"]);
  t.after(() => client.sendCommand(["CONFIG", "SET", "slide.enforce", "yes"]));
  await get(`${url}/fails`);
  const before = await times();
  // Over the limit, and let through only because limits are off.
  assert.equal((await get(url)).status, 200);
  assert.equal((await get(`${url}/fails`)).status, 500);
  assert.deepEqual(await times(), before);
});

test("a limit that depends on the request holds", async (t) => {
  const [ours, theirs] = await both(t, repeat(6, "/"), { limit: () => 3 });
  assert.deepEqual(ours, theirs);
});

test("fifty clients at once get exactly the limit", async (t) => {
  const { url } = await start(t, slide(), { limit: 100 });
  assert.deepEqual(statuses(await storm(url, { clients: 50, each: 4 })), { 200: 100, 429: 100 });
});

test("a client's hits can be read and reset", async (t) => {
  const { url, limiter } = await start(t, slide(), { keyGenerator: () => "client" });
  assert.equal(await limiter.getKey("client"), undefined);
  for (let i = 0; i < 6; i++) await get(url);
  const { totalHits, resetTime } = await limiter.getKey("client");
  assert.equal(totalHits, 5);
  assert.ok(resetTime > Date.now() && resetTime <= Date.now() + 60_000);
  await limiter.resetKey("client");
  assert.equal(await limiter.getKey("client"), undefined);
  assert.equal((await get(url)).status, 200);
});

test("the window slides, where memory's starts afresh", async (t) => {
  const passed = [];
  for (const store of [slide(), new MemoryStore()]) {
    const { url } = await start(t, store, { windowMs: 2000, limit: 3 });
    const started = Date.now();
    assert.equal((await get(url)).status, 200);
    await pause(started + 1500 - Date.now());
    assert.deepEqual(statuses(await storm(url, { clients: 2 })), { 200: 2 });
    await pause(started + 2200 - Date.now());
    passed.push(statuses(await storm(url, { clients: 4 }))[200]);
  }
  assert.deepEqual(passed, [1, 3]);
});

test("with passOnStoreError requests pass while Redis is away, and are limited again after", async (t) => {
  const logger = { warn() {}, error() {} };
  const { url } = await start(t, slide(), { passOnStoreError: true, logger });
  await redis.kill();
  assert.deepEqual(statuses(await storm(url, { clients: 50 })), { 200: 50 });
  await redis.start();
  await until(() => client.isReady);
  assert.deepEqual(statuses(await storm(url, { clients: 20 })), { 200: 5, 429: 15 });
});
