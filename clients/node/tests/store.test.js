// express-rate-limit itself, on the module and on its own MemoryStore, with the same requests.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import express from "express";
import { MemoryStore, rateLimit } from "express-rate-limit";
import { SlideStore } from "redis-slide";
import { get, open, pause, serve, Server, storm, tally, until } from "./support.js";

let server;
before(async () => (server = await Server.start()));
after(() => server.stop());
beforeEach(() => server.call("FLUSHALL"));

const stored = async (t, options) => new SlideStore((await open(t, server.url)).slide, options);
const statuses = (responses) => tally(responses.map(({ status }) => status));

async function start(t, store, options) {
  const app = express();
  // Its own checks, such as of the hits that a store tells, are errors here.
  const logger = { warn: assert.fail, error: assert.fail };
  const limiter = rateLimit({
    windowMs: 60_000,
    limit: 5,
    store,
    standardHeaders: "draft-6",
    logger,
    ...options,
  });
  app.use(limiter);
  app.get("/", (req, res) => res.send("hello"));
  app.get("/fails", (req, res) => res.sendStatus(500));
  app.get("/slow", async (req, res) => {
    await pause(2000);
    res.sendStatus(Number(req.query.status));
  });
  app.use((error, req, res, next) => res.status(500).send(error.message)); // eslint-disable-line
  const url = await serve(t, app);
  return { url, limiter };
}

/** The same requests to both, one after the other; what each replied. */
async function both(t, requests, options, storeOptions) {
  const replies = [];
  for (const store of [await stored(t, storeOptions), new MemoryStore()]) {
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

for (const [name, options] of Object.entries({
  log: {},
  counter: { counter: {} },
  buckets: { counter: { buckets: 10 } },
})) {
  test(`${name} replies what memory replies`, async (t) => {
    const [ours, theirs] = await both(t, repeat(8, "/"), {}, options);
    assert.deepEqual(ours, theirs);
    assert.equal(ours.at(-1), "/ 429 5 0");
  });

  test(`${name} with failed requests skipped replies what memory replies`, async (t) => {
    const requests = [...repeat(4, "/fails"), ...repeat(5, "/"), ...repeat(6, "/fails"), ...repeat(2, "/")];
    const [ours, theirs] = await both(t, requests, { skipFailedRequests: true }, options);
    assert.deepEqual(ours, theirs);
    // Taking back what was refused gave none of the five away.
    assert.deepEqual(ours.slice(-2), ["/ 429 5 0", "/ 429 5 0"]);
  });

  test(`${name} with successful requests skipped replies what memory replies`, async (t) => {
    const requests = [...repeat(8, "/"), ...repeat(5, "/fails"), ...repeat(2, "/")];
    const [ours, theirs] = await both(t, requests, { skipSuccessfulRequests: true }, options);
    assert.deepEqual(ours, theirs);
    assert.deepEqual(ours.slice(-3), ["/fails 500 5 0", "/ 429 5 0", "/ 429 5 0"]);
  });
}

/** When the client's hits were recorded. */
const times = async () =>
  (await server.call("ZRANGE", "rl:client", "0", "-1", "WITHSCORES")).filter((_, i) => i % 2);

for (const [option, slow, quick] of [
  ["skipFailedRequests", "/slow?status=500", "/"],
  ["skipSuccessfulRequests", "/slow?status=200", "/fails"],
]) {
  test(`${option} takes back the request's own hit`, async (t) => {
    const { url } = await start(t, await stored(t), { [option]: true, keyGenerator: () => "client" });
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
  const options = { limit: 1, skipSuccessfulRequests: true, keyGenerator: () => "client" };
  const { url } = await start(t, await stored(t), options);
  await server.call("CONFIG", "SET", "slide.enforce", "no");
  t.after(() => server.call("CONFIG", "SET", "slide.enforce", "yes"));
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
  const { url } = await start(t, await stored(t), { limit: 100 });
  assert.deepEqual(statuses(await storm(50, 4, () => get(url))), { 200: 100, 429: 100 });
});

test("a client's hits can be read and reset", async (t) => {
  const { url, limiter } = await start(t, await stored(t), { keyGenerator: () => "client" });
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
  for (const store of [await stored(t), new MemoryStore()]) {
    const { url } = await start(t, store, { windowMs: 2000, limit: 3 });
    const started = Date.now();
    assert.equal((await get(url)).status, 200);
    await pause(started + 1500 - Date.now());
    assert.deepEqual(statuses(await storm(2, 1, () => get(url))), { 200: 2 });
    await pause(started + 2200 - Date.now());
    passed.push(statuses(await storm(4, 1, () => get(url)))[200]);
  }
  assert.deepEqual(passed, [1, 3]);
});

for (const onFailure of ["open", "closed"]) {
  test(`a frozen server hangs no request, failing ${onFailure}`, async (t) => {
    const { slide, lines } = await open(t, server.url, { timeout: "50ms", onFailure });
    const options = { limit: 10, keyGenerator: () => "client" };
    const { url, limiter } = await start(t, new SlideStore(slide), options);
    server.freeze();
    t.after(() => server.thaw());
    const started = performance.now();
    const responses = await storm(50, 2, () => get(url));
    assert.ok(performance.now() - started < 3000);
    assert.deepEqual(statuses(responses), { [onFailure === "open" ? 200 : 500]: 100 });
    server.thaw();
    await until(() => get(url).then(() => lines.length === 2));
    await limiter.resetKey("client");
    assert.deepEqual(statuses(await storm(20, 1, () => get(url))), { 200: 10, 429: 10 });
  });
}
