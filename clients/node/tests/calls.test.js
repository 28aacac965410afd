// What the commands answer, by every client and protocol.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { createClientPool, createCluster } from "redis";
import { createCluster as createCluster6 } from "redis-6";
import IORedis from "ioredis";
import { Slide, SlideError, tagged } from "redis-slide";
import { CLIENTS, open, pause, Server, storm, tally, until } from "./support.js";

let server;
before(async () => (server = await Server.start()));
after(() => server.stop());
beforeEach(() => server.call("FLUSHALL"));

for (const kind of Object.keys(CLIENTS)) {
  test(`${kind}: a verdict has names and headers`, async (t) => {
    const { slide } = await open(t, server.url, { kind });
    const sent = performance.now();
    const first = await slide.log("k", [[3, "60s"], [10, "1h"]], { cost: 2 }); // prettier-ignore
    assert.ok(first.sentAt >= sent && first.sentAt <= performance.now());
    const { sentAt, resetAfterMs, headers, ...rest } = { ...first };
    assert.deepEqual(rest, {
      key: "k",
      source: "server",
      admitted: true,
      limit: 3,
      remaining: 1,
      retryAfterMs: 0,
      refundable: 2,
      each: [],
    });
    assert.ok(!first.over && first.canPass && resetAfterMs === 60_000);
    assert.equal(headers["RateLimit-Policy"], '"3-per-60s";q=3;w=60, "10-per-3600s";q=10;w=3600');
    assert.equal(headers["RateLimit"], '"3-per-60s";r=1;t=60, "10-per-3600s";r=8;t=3600');
    assert.equal(headers["X-RateLimit-Limit"], "3");
    assert.equal(headers["X-RateLimit-Remaining"], "1");
    assert.ok(Math.abs(headers["X-RateLimit-Reset"] - Date.now() / 1000 - 60) < 5);
    assert.equal(headers["Retry-After"], undefined);

    const refused = await slide.log("k", [[3, "60s"], [10, "1h"]], { cost: 2 }); // prettier-ignore
    assert.ok(!refused.admitted && refused.over && refused.canPass);
    assert.ok(refused.retryAfterMs > 50_000 && refused.retryAfterMs <= 60_000);
    assert.equal(refused.headers["Retry-After"], `${Math.ceil(refused.retryAfterMs / 1000)}`);

    const never = await slide.log("k", [[3, "60s"]], { cost: 4 });
    assert.ok(!never.admitted && never.over && !never.canPass);
    assert.equal(never.retryAfterMs, Infinity);
    assert.equal(never.headers["Retry-After"], undefined);
    assert.deepEqual(slide.stats(), {
      calls: 3, admitted: 1, limited: 2, remembered: 0, unavailable: 0, errors: 0, outages: 0,
    }); // prettier-ignore
  });

  test(`${kind}: fifty clients get exactly the limit`, async (t) => {
    const opened = await Promise.all(Array.from({ length: 50 }, () => open(t, server.url, { kind })));
    const before = await server.info("all_admitted");
    const alike = (key, kind, rest) => ({ key, [kind]: [[1000, "1h"]], ...rest });
    for (const ask of [
      (slide) => slide.log("log", [[100, "60s"]]),
      (slide) => slide.counter("counter", [[100, "1h"]], { buckets: 10, strict: true }),
      (slide) => slide.all([alike("a", "log", { cost: 10 }), alike("b", "counter", { cost: 2 })]),
    ]) {
      const verdicts = await storm(50, 4, (i) => ask(opened[i].slide));
      assert.deepEqual(tally(verdicts.map(({ admitted }) => admitted)), { true: 100, false: 100 });
    }
    assert.equal((await server.info("all_admitted")) - before, 100);
  });

  test(`${kind}: several keys pass together or not at all`, async (t) => {
    const { slide } = await open(t, server.url, { kind });
    const clauses = [
      { key: tagged("{user:9}", "calls"), log: [[2, "60s"]] },
      { key: tagged("{user:9}", "tokens"), counter: [[100, "1d"]], cost: 60, buckets: 4 },
      { key: tagged("{user:9}", "flights"), lease: 5, ttl: "30s", id: "one" },
    ];
    const first = await slide.all(clauses);
    assert.deepEqual(first.each.map(({ key, admitted, remaining }) => [key, admitted, remaining]), [
      ["{user:9}:calls", true, 1], ["{user:9}:tokens", true, 40], ["{user:9}:flights", true, 4],
    ]); // prettier-ignore
    assert.ok(first.admitted && !first.over && first.remaining === 1);
    assert.match(first.headers["RateLimit-Policy"], /^"2-per-60s";q=2;w=60, "100-per-86400s";q=100;w=86400$/);

    const refused = await slide.all(clauses);
    assert.ok(!refused.admitted && refused.over);
    assert.deepEqual(refused.each.map(({ admitted }) => admitted), [true, false, true]); // prettier-ignore
    assert.equal(refused.retryAfterMs, refused.each[1].retryAfterMs);
    assert.equal(refused.headers["Retry-After"], `${Math.ceil(refused.retryAfterMs / 1000)}`);
    assert.equal(await slide.refund(refused), 0);
    assert.equal(await slide.refund(refused.each[0]), 0);
    await assert.rejects(slide.refund(first, 1), TypeError);
    assert.equal(await slide.refund(first), 61);

    const single = await slide.all(clauses.slice(0, 1));
    assert.deepEqual([single.remaining, single.each.length, single.each[0].remaining], [1, 1, 1]);
    assert.equal(await slide.refund(single), 1);
  });

  test(`${kind}: a peek records nothing`, async (t) => {
    const { slide } = await open(t, server.url, { kind });
    const peek = () => slide.peek("k", [[1, "1d"]], { buckets: 2 });
    assert.ok((await peek()).admitted);
    await slide.counter("k", [[1, "1d"]], { buckets: 2 });
    const verdict = await peek();
    assert.ok(!verdict.admitted && verdict.retryAfterMs > 0);
    assert.match(verdict.headers["Retry-After"], /^\d+$/);
    const lease = await slide.lease("jobs", 2, "30s");
    const places = await slide.peek("jobs", [[2, "1s"]], { lease: true });
    assert.deepEqual([places.limit, places.remaining, await lease.release()], [2, 1, true]);
    assert.equal(slide.stats().calls, 2);
  });

  test(`${kind}: an error reply is raised, or counted, and is no outage`, async (t) => {
    await server.call("SET", "text", "text");
    const tiers = Array.from({ length: 17 }, (_, i) => [1, `${i + 1}s`]);
    for (const call of [(s) => s.log("text", [[1, "1s"]]), (s) => s.log("k", tiers), (s) => s.all([])]) {
      const { slide, lines } = await open(t, server.url, { kind });
      await assert.rejects(
        call(slide),
        (error) => error instanceof SlideError && /^(ERR|WRONGTYPE) /.test(error.message),
      );
      assert.deepEqual([slide.stats().errors, slide.stats().outages, lines], [1, 0, []]);
    }
    for (const onFailure of ["open", "closed"]) {
      const { slide, lines } = await open(t, server.url, { kind, onFailure, raiseErrors: false });
      for (let i = 0; i < 3; i++) {
        const { admitted, source } = await slide.log("text", [[1, "1s"]]);
        assert.deepEqual([admitted, source], [onFailure === "open", "unavailable"]);
      }
      assert.equal(await slide.refund("text", 1), 0);
      const { calls, errors, unavailable, outages } = slide.stats();
      assert.deepEqual([calls, errors, unavailable, outages, lines.length], [4, 4, 0, 0, 1]);
      assert.match(lines[0], /WRONGTYPE/);
    }
  });
}

test("a wrong unit or number is a TypeError that names it, and nothing is sent", async (t) => {
  const { slide } = await open(t, server.url);
  for (const [call, message] of [
    [() => slide.log("k", [[1, 60]]), /^window must be a whole number with a unit, such as "60s", got 60$/],
    [() => slide.log("k", [[1, "60"]]), /^window .* got "60"$/],
    [() => slide.log("k", [[1, "1.5s"]]), /^window .* got "1.5s"$/],
    [() => slide.log("k", [[-1, "1s"]]), /^limit must be an integer from 0 to 9007199254740991, got -1$/],
    [() => slide.log("k", [[NaN, "1s"]]), /^limit .* got NaN$/],
    [() => slide.log("k", [["5", "1s"]]), /^limit .* got 5$/],
    [() => slide.log("k", [1, "1s"]), /^tiers must be a list/],
    [() => slide.log("k", [[1, "1s"]], { cost: 1.5 }), /^cost .* got 1.5$/],
    [() => slide.log("", [[1, "1s"]]), /^key must be a string that is not empty/],
    [() => slide.log(undefined, [[1, "1s"]]), /^key .* got undefined$/],
    [() => slide.counter("k", [[1, "1s"]], { buckets: "10" }), /^buckets .* got 10$/],
    [() => slide.lease("k", 1, 30), /^ttl .* got 30$/],
    [() => slide.lease("k", 1, "30s", { id: "" }), /^id /],
    [() => slide.peek("k", [[1, 1]]), /^window .* got 1$/],
    [() => slide.refund("k"), /^units .* got undefined$/],
    [async () => new Slide(() => {}, { timeout: 50 }), /^timeout .* got 50$/],
    [() => slide.log("k", []), /^tiers must be a list/],
    [() => slide.log("k", [[1, "60s"]], 5), /^options must be an object .* got 5$/],
    [() => slide.log("k", [[1, "60s"]], null), /^options must be an object .* got null$/],
    [() => slide.log("k", [[1, "60s"]], { costs: 5 }), /^options must have no fields but .* got "costs"$/],
    [
      () => slide.counter("k", [[1, "60s"]], { bucket: 5 }),
      /^options must have no fields but .* got "bucket"$/,
    ],
    [() => slide.all([{ key: "k", log: [[1, "60s"]], price: 5 }]), /^a log's clause must have no fields but/],
    [async () => new Slide(() => {}, { onFailure: "shut" }), /^onFailure must be .* got "shut"$/],
    [async () => new Slide({}), /^redis must be a node-redis or ioredis client/],
  ]) {
    await assert.rejects(
      call,
      (error) => error instanceof TypeError && message.test(error.message),
      `${call}`,
    );
  }
  assert.deepEqual(await server.call("KEYS", "*"), []);
  assert.equal(slide.stats().calls, 0);
});

test("everything a command takes goes to the server as it was given", async () => {
  const sent = [];
  const slide = new Slide(async (words, key) => {
    sent.push([key, words.join(" ")]);
    return server.call(...words);
  });
  await slide.log("k", [[5, "60s"]], { cost: 2, force: true });
  await slide.counter("c", [[5, "1d"]], { buckets: 4, strict: true, force: true });
  await slide.all([{ key: "k", log: [[5, "60s"]] }, { key: "c", counter: [[5, "1d"]], buckets: 4 }], { force: true }); // prettier-ignore
  await slide.refund("k", 1);
  await slide.release("places", "a", "b");
  assert.deepEqual(sent, [
    ["k", "SLIDE.LOG k 5 60s COST 2 FORCE HEADERS"],
    ["c", "SLIDE.COUNTER c 5 1d COST 1 BUCKETS 4 STRICT FORCE HEADERS"],
    ["k", "SLIDE.ALL 2 k c LOG 5 60s COST 1 COUNTER 5 1d COST 1 BUCKETS 4 FORCE HEADERS"],
    ["k", "SLIDE.REFUND k 1"],
    ["places", "SLIDE.RELEASE places a b"],
  ]);
});

test("a refund takes the call's own units, once, and nobody else's", async (t) => {
  const { slide } = await open(t, server.url);
  const tiers = [[10, "60s"]];
  const entries = async () =>
    (await server.call("ZRANGE", "k", "0", "-1", "WITHSCORES")).filter((_, i) => i % 2);
  const mine = await slide.log("k", tiers, { cost: 3 });
  await pause(1200); // what is more than a second younger is never taken
  const other = await slide.log("k", tiers, { cost: 4 });
  const [, late] = await entries();
  assert.equal(await slide.refund(mine, 1), 1);
  assert.equal(await slide.refund(mine, 100), 2);
  assert.equal(await slide.refund(mine), 0);
  assert.deepEqual(await entries(), [late]);
  // Of two calls at the same moment, each has its own units only.
  const [one, two] = await Promise.all([slide.log("both", tiers, { cost: 3 }), slide.log("both", tiers)]);
  assert.equal(await slide.refund(one, 2), 2);
  assert.equal(await slide.refund(one), 1);
  assert.equal(await slide.refund(one), 0);
  assert.equal(await slide.refund(two), 1);
  const refused = await slide.log("k", tiers, { cost: 7 });
  assert.equal(await slide.refund(refused), 0);
  const free = await slide.log("k", tiers, { cost: 0 });
  assert.equal(await slide.refund(free), 0);
  // An estimate that was forced is recorded, so it can be settled.
  const forced = await slide.log("k", tiers, { cost: 8, force: true });
  assert.ok(!forced.admitted);
  assert.equal(await slide.refund(forced, 5), 5);
  assert.equal(await slide.refund("k", 3), 3);
  assert.equal((await slide.peek("k", tiers)).remaining, 6);
  assert.equal(await slide.refund(other), 4);
});

test("in a dry run calls are admitted that are over, and cannot be refunded", async (t) => {
  const { slide } = await open(t, server.url);
  await server.call("CONFIG", "SET", "slide.enforce", "no");
  t.after(() => server.call("CONFIG", "SET", "slide.enforce", "yes"));
  await slide.log("k", [[1, "60s"]]);
  for (let i = 0; i < 2; i++) {
    const verdict = await slide.log("k", [[1, "60s"]]);
    assert.deepEqual([verdict.admitted, verdict.over, verdict.source], [true, true, "server"]);
    assert.equal(await slide.refund(verdict), 0);
  }
});

test("reset deletes a key and what is remembered of it", async (t) => {
  const { slide } = await open(t, server.url);
  for (let i = 0; i < 3; i++) await slide.log("k", [[1, "60s"]]);
  assert.equal(await slide.reset("k"), true);
  assert.equal(await slide.reset("k"), false);
  assert.ok((await slide.log("k", [[1, "60s"]])).admitted);
});

test("a pool of node-redis, and a client that makes Maps and Buffers of replies", async (t) => {
  const pool = createClientPool({ url: server.url, RESP: 3 });
  await pool.connect();
  t.after(() => pool.destroy());
  const { client } = await open(t, server.url);
  for (const redis of [pool, client.withTypeMapping({ 37: Map, 36: Buffer, 43: Buffer, 58: String })]) {
    const { headers, remaining } = await new Slide(redis, { timeout: "10s" }).log("k", [[10, "60s"]]);
    assert.equal(headers["X-RateLimit-Remaining"], `${remaining}`);
  }
});

test("clients of a cluster", async (t) => {
  const cluster = await Server.start({
    options: ["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"],
  });
  t.after(() => cluster.stop());
  await cluster.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
  await until(async () => /cluster_state:ok/.test(await cluster.call("CLUSTER", "INFO")));
  const node = { host: "127.0.0.1", port: cluster.port };
  const rootNodes = [{ url: cluster.url }];
  const clients = [createCluster({ rootNodes }), createCluster6({ rootNodes }), new IORedis.Cluster([node])];
  for (const [i, client] of clients.entries()) {
    if (client.connect && !client.call) await client.connect();
    t.after(() => (client.destroy ?? client.disconnect).call(client));
    const slide = new Slide(client, { timeout: "10s" });
    assert.equal((await slide.log(`${i}`, [[5, "60s"]])).remaining, 4);
    const clause = (tag) => [`{${tag}}:a`, `{${tag}}:b`].map((key) => ({ key, log: [[5, "60s"]] }));
    assert.equal((await slide.all(clause(i))).remaining, 4);
    await assert.rejects(slide.all([clause("x")[0], clause("y")[0]]), /CROSSSLOT/);
    assert.equal(slide.stats().outages, 0);
  }
});
