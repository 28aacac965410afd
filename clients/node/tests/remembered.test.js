// Refusals that the process remembers, so that a flood does not reach the server.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { open, pause, Server, storm, tally } from "./support.js";

let server;
before(async () => (server = await Server.start()));
after(() => server.stop());
beforeEach(() => server.call("FLUSHALL"));

const ONE = [[1, "60s"]];
const sources = async (...calls) => {
  const told = [];
  for (const call of calls) told.push((await call()).source);
  return told.join(" ");
};
const judged = async () => (await server.info("log_admitted")) + (await server.info("log_limited"));

for (const kind of ["node-redis 5, RESP2", "node-redis 6, RESP3", "ioredis 5, RESP2"]) {
  test(`${kind}: a flood costs the server one refusal a window, and admits no more than the limit`, async (t) => {
    const { slide } = await open(t, server.url, { kind });
    const before = { admitted: await server.info("log_admitted"), limited: await server.info("log_limited") };
    const verdicts = [];
    const deadline = performance.now() + 2700;
    while (performance.now() < deadline) {
      verdicts.push(...(await storm(50, 1, () => slide.log("k", [[5, "1s"]], { cost: 5 }))));
      await pause(1);
    }
    const admitted = verdicts.filter((verdict) => verdict.admitted).length;
    assert.ok(verdicts.length > 5000, `${verdicts.length}`);
    assert.equal(admitted, 3);
    assert.equal((await server.info("log_admitted")) - before.admitted, admitted);
    // Of the fifty that ask together when a window is full, none knows of the others' refusals yet. Those who
    // ask just before the wait is over, counted from when the refused call was sent, are the server's to refuse.
    const limited = (await server.info("log_limited")) - before.limited;
    t.diagnostic(`${verdicts.length} calls, ${admitted} admitted, ${limited} refused by the server`);
    assert.ok(limited <= 3 * 2 * 50, `${limited}`);
    assert.equal(slide.stats().remembered, verdicts.length - admitted - limited);
  });
}

test("one client's flood costs two calls a window", async (t) => {
  const { slide } = await open(t, server.url);
  const before = await judged();
  let calls = 0;
  const deadline = performance.now() + 2700;
  while (performance.now() < deadline) {
    await slide.log("k", [[1, "1s"]]);
    if (++calls % 1000 === 0) await pause(1);
  }
  const asked = (await judged()) - before;
  t.diagnostic(`${calls} calls, ${asked} to the server`);
  // A call just before a wait is over may ask once more.
  assert.ok(calls > 10_000 && asked >= 6 && asked <= 9, `${asked}`);
});

test("a remembered refusal counts down, and is asked again when its wait is over", async (t) => {
  const { slide } = await open(t, server.url);
  const tiers = [[2, "3s"], [3, "60s"]]; // prettier-ignore
  await slide.log("k", tiers, { cost: 2 });
  const refused = await slide.log("k", tiers);
  assert.equal(refused.source, "server");
  assert.equal(refused.headers["Retry-After"], "3");
  await pause(1500);
  const now = performance.now();
  const later = await slide.log("k", tiers);
  const elapsed = now - refused.sentAt;
  assert.deepEqual([later.source, later.admitted, later.over], ["remembered", false, true]);
  assert.ok(Math.abs(refused.retryAfterMs - elapsed - later.retryAfterMs) < 20);
  assert.ok(Math.abs(refused.resetAfterMs - elapsed - later.resetAfterMs) < 20);
  assert.equal(later.headers["Retry-After"], `${Math.ceil(later.retryAfterMs / 1000)}`);
  assert.equal(later.headers["X-RateLimit-Reset"], refused.headers["X-RateLimit-Reset"]);
  assert.equal(refused.headers["RateLimit"], '"2-per-3s";r=0;t=3, "3-per-60s";r=1;t=60');
  assert.equal(later.headers["RateLimit"], '"2-per-3s";r=0;t=2, "3-per-60s";r=1;t=59');
  assert.equal(await slide.refund(later), 0);
  await pause(later.retryAfterMs + 1);
  const admitted = await slide.log("k", tiers);
  assert.deepEqual([admitted.source, admitted.admitted], ["server", true]);
});

test("a call is remembered with all its words", async (t) => {
  const { slide } = await open(t, server.url);
  await slide.log("k", ONE);
  await slide.log("k", ONE);
  assert.equal(
    await sources(
      () => slide.log("k", ONE),
      () => slide.log("k", ONE, { cost: 0 }),
      () => slide.log("k", [[2, "60s"]]), // admitted
      () => slide.log("k", ONE, { force: true }),
      () => slide.all([{ key: "k", log: ONE }]),
      () => slide.all([{ key: "k", log: ONE }]),
    ),
    "remembered server server server server remembered",
  );
  const counter = (options) => () => slide.counter("c", ONE, options);
  assert.equal(
    await sources(
      counter(),
      counter(),
      counter(),
      counter({ buckets: 2 }),
      counter({ buckets: 2 }),
      counter({ buckets: 2 }),
    ),
    "server server remembered server server remembered",
  );
});

test("what gives room again drops what is remembered of the key, and of no other", async (t) => {
  const { slide } = await open(t, server.url);
  const call = (key) => slide.log(key, ONE);
  const mine = await call("k");
  await call("other");
  const both = () => slide.all(["k", "other"].map((key) => ({ key, log: ONE })));
  for (const room of [
    () => slide.refund(mine),
    () => slide.refund("k", 1),
    () => slide.log("k", ONE, { force: true }),
    () => slide.reset("k"),
    () => slide.release("k", "id").catch(() => {}),
    () => slide.counter("k", ONE, { force: true }).catch(() => {}),
  ]) {
    await call("k");
    await Promise.all([call("k"), call("other"), both()]);
    const remembered = () => sources(() => call("k"), () => call("other"), both); // prettier-ignore
    assert.equal(await remembered(), "remembered remembered remembered", `${room}`);
    await room();
    assert.equal(await remembered(), "server remembered server", `${room}`);
  }
});

test("several keys are remembered, unless one holds leases", async (t) => {
  const { slide } = await open(t, server.url);
  const clauses = [{ key: "a", log: [[2, "60s"]] }, { key: "b", log: ONE }]; // prettier-ignore
  await slide.all(clauses);
  await slide.all(clauses);
  const refused = await slide.all(clauses);
  assert.equal(refused.source, "remembered");
  assert.deepEqual(refused.each.map(({ key, admitted, over, source }) => [key, admitted, over, source]), [
    ["a", true, false, "remembered"], ["b", false, true, "remembered"],
  ]); // prettier-ignore
  const lease = { key: "c", lease: 1, ttl: "60s", id: "x" };
  const withLease = () => slide.all([...clauses, lease]);
  const alone = () => slide.all([{ ...lease, lease: 0 }]);
  assert.equal(await sources(withLease, withLease, alone, alone), "server server server server");
});

test("a call that can never pass is remembered; an admission and a dry run are not", async (t) => {
  const { slide } = await open(t, server.url);
  const never = () => slide.log("k", ONE, { cost: 2 });
  assert.equal(await sources(never, never), "server remembered");
  const { retryAfterMs, canPass, headers } = await never();
  assert.deepEqual([retryAfterMs, canPass, headers["Retry-After"]], [Infinity, false, undefined]);
  await server.call("CONFIG", "SET", "slide.enforce", "no");
  t.after(() => server.call("CONFIG", "SET", "slide.enforce", "yes"));
  const call = () => slide.log("k", ONE);
  assert.equal(await sources(call, call, call), "server server server");
});

test("the table is bounded, the oldest goes first, and it can be switched off", async (t) => {
  const { slide } = await open(t, server.url, { remember: 3 });
  const never = (key) => () => slide.log(key, ONE, { cost: 2 });
  await sources(...["a", "b", "c", "d"].map(never));
  assert.equal(await sources(...["d", "c", "b", "a"].map(never)), "remembered remembered remembered server");
  assert.equal(await sources(...["a", "d", "c", "b"].map(never)), "remembered remembered remembered server");
  const { slide: off } = await open(t, server.url, { remember: 0 });
  await storm(1, 5, () => off.log("k", ONE));
  assert.deepEqual(tally(Object.entries(off.stats()).map(String)), {
    "calls,5": 1, "admitted,1": 1, "limited,4": 1, "remembered,0": 1, "unavailable,0": 1, "errors,0": 1, "outages,0": 1,
  }); // prettier-ignore
});
