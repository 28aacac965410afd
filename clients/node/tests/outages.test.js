// Servers that are frozen, dead, away, slow, without the module or out of memory: calls end in time and follow the policy.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { createClientPool } from "redis";
import { Slide } from "redis-slide";
import { CLIENTS, freePort, open, pause, Proxy, Server, storm, tally, timed, until } from "./support.js";

const TIMEOUT = 50;
/** What a call may take beyond its timeout where other work keeps both cores busy. */
const SLACK = 450;
const TIERS = [[1000, "60s"]];
const NO_ANSWER = /^slide: no answer from Redis \(.+\): calls pass unlimited$/;
const ANSWERS = /^slide: Redis answers again after \d+\.\d s, in which (\d+) calls passed unlimited$/;

let server;
before(async () => (server = await Server.start()));
after(() => server.stop());
beforeEach(() => server.call("FLUSHALL"));

const impatient = (t, url, options) => open(t, url, { timeout: `${TIMEOUT}ms`, ...options });

/** Twenty calls over half a second and fifty at once, each in time and by the policy, with one log line. */
async function outage(t, { slide, lines }, reason, admitted = true) {
  let slowest = 0;
  const call = async (key) => {
    const [verdict, ms] = await timed(() => slide.log(key, TIERS));
    slowest = Math.max(slowest, ms);
    const { source, over, limit, remaining, headers } = verdict;
    assert.deepEqual({ source, over, limit, remaining, headers, admitted: verdict.admitted }, {
      source: "unavailable", over: false, limit: 0, remaining: 0, headers: {}, admitted,
    }); // prettier-ignore
    return verdict;
  };
  const [first] = await timed(() => call("k"));
  for (let i = 0; i < 19; i++) await pause(25).then(() => call("k"));
  const [, together] = await timed(() => storm(50, 1, () => call("k")));
  t.diagnostic(`slowest of 70 calls: ${Math.round(slowest)} ms; fifty at once: ${Math.round(together)} ms`);
  assert.ok(slowest < TIMEOUT + SLACK, `${slowest} ms`);
  const [refunded, ms] = await timed(() => slide.refund("k", 1));
  assert.equal(refunded, 0);
  assert.ok(ms < TIMEOUT + SLACK);
  assert.equal(await slide.refund(first), 0);
  const { calls, unavailable, outages } = slide.stats();
  assert.deepEqual([calls, unavailable, outages], [71, 71, 1]);
  assert.equal(lines.length, 1, `${lines}`);
  assert.match(lines[0], admitted ? NO_ANSWER : /: calls are refused$/);
  assert.match(lines[0], reason);
}

/** By itself, with one more line. Each call has its own answer: none gets one that an abandoned call left behind. */
async function recovered({ slide, lines }) {
  await until(async () => (await slide.log("other", TIERS)).source === "server");
  assert.equal(lines.length, 2, `${lines}`);
  assert.match(lines[1], /^slide: Redis answers again after \d+\.\d s, in which \d+ calls /);
  for (let i = 1; i <= 20; i++) {
    const verdict = await slide.log("own", [[i, "60s"]], { cost: 0 });
    if (verdict.source === "server") assert.equal(verdict.limit, i);
  }
}

for (const kind of Object.keys(CLIENTS)) {
  test(`${kind}: a server that is frozen`, async (t) => {
    const opened = await impatient(t, server.url, { kind });
    server.freeze();
    t.after(() => server.thaw());
    await outage(t, opened, /no answer within 50 ms/);
    server.thaw();
    await recovered(opened);
  });

  test(`${kind}: a server that is killed and comes back`, async (t) => {
    const opened = await impatient(t, server.url, { kind });
    await server.kill();
    await outage(t, opened, /./).finally(() => server.start());
    await recovered(opened);
  });

  test(`${kind}: a server that was never there and comes`, async (t) => {
    const late = await Server.start();
    t.after(() => late.stop());
    await late.kill();
    const opened = await impatient(t, late.url, { kind, connected: false });
    await outage(t, opened, /./);
    await late.start();
    await recovered(opened);
  });

  test(`${kind}: a server behind a network that is slow`, async (t) => {
    const proxy = await Proxy.start(t, server.port);
    const opened = await impatient(t, proxy.url, { kind });
    proxy.delay = 300;
    await outage(t, opened, /no answer within 50 ms/);
    proxy.delay = 0;
    await recovered(opened);
  });

  test(`${kind}: a server that gets the module late`, async (t) => {
    const bare = await Server.start({ module: false, options: ["--enable-module-command", "yes"] });
    t.after(() => bare.stop());
    const opened = await impatient(t, bare.url, { kind });
    await outage(t, opened, /unknown command/);
    await bare.call("MODULE", "LOAD", process.env.SLIDE_MODULE);
    await recovered(opened);
  });
}

test("failing closed, calls are refused in time, and admitted again after", async (t) => {
  const opened = await impatient(t, server.url, { onFailure: "closed" });
  server.freeze();
  t.after(() => server.thaw());
  await outage(t, opened, /no answer/, false);
  server.thaw();
  await recovered(opened);
  assert.match(opened.lines[1], /calls were refused$/);
});

test("a pool that is exhausted", async (t) => {
  const pool = createClientPool({ url: server.url }, { minimum: 1, maximum: 1 });
  await pool.connect();
  t.after(() => pool.destroy());
  const lines = [];
  const slide = new Slide(pool, { warn: (line) => lines.push(line) });
  const blocked = pool.execute((client) => client.sendCommand(["BLPOP", "list", "0"]));
  await outage(t, { slide, lines }, /no answer within 50 ms/);
  await server.call("LPUSH", "list", "item");
  await blocked;
  await recovered({ slide, lines });
});

test("a server out of memory is an outage for calls that it cannot record", async (t) => {
  const { slide, lines } = await open(t, server.url);
  await slide.log("full", [[1, "60s"]]);
  await server.call("CONFIG", "SET", "maxmemory", "1");
  t.after(() => server.call("CONFIG", "SET", "maxmemory", "0"));
  assert.equal((await slide.log("full", [[1, "60s"]])).admitted, false);
  assert.equal((await slide.log("k", TIERS)).source, "unavailable");
  assert.match(lines[0], /OOM/);
});

test("a replica is an outage", async (t) => {
  const { slide, lines } = await open(t, server.url);
  await server.call("REPLICAOF", "127.0.0.1", `${await freePort()}`);
  t.after(() => server.call("REPLICAOF", "NO", "ONE"));
  assert.equal((await slide.log("k", TIERS)).source, "unavailable");
  assert.match(lines[0], /READONLY/);
});

for (const kind of ["node-redis 5, RESP3", "ioredis 5, RESP2"]) {
  // Two hundred are more than the server may owe before any more are sent; after one, probes are.
  for (const [first, least, most] of [
    [200, 200, 203],
    [1, 5, 12],
  ]) {
    test(`${kind}: a server that freezes in the middle of ${first} leaves few calls behind`, async (t) => {
      const { slide } = await impatient(t, server.url, { kind });
      const before = await server.info("log_admitted");
      server.freeze();
      t.after(() => server.thaw());
      await storm(first, 1, () => slide.log("k", TIERS));
      const deadline = Date.now() + 1000;
      while (Date.now() < deadline) await storm(50, 10, () => slide.log("k", TIERS)).then(() => pause(1));
      assert.ok(slide.stats().calls > 1000);
      server.thaw();
      await until(async () => (await slide.log("k", TIERS)).source === "server");
      const served = (await server.info("log_admitted")) - before;
      assert.ok(served >= least && served <= most, `${served}`);
    });
  }
}

test("what waits for a server that is away is taken back, so that it is not recorded later", async (t) => {
  const { slide } = await impatient(t, server.url);
  await server.kill();
  try {
    const deadline = Date.now() + 1000;
    while (Date.now() < deadline) await storm(10, 1, () => slide.log("k", TIERS)).then(() => pause(1));
  } finally {
    await server.start();
  }
  await until(async () => (await slide.log("other", TIERS)).source === "server");
  assert.deepEqual(await server.call("KEYS", "*"), ["other"]);
});

test("a process that was busy reads the reply before it gives up", async (t) => {
  const { slide, lines } = await impatient(t, server.url);
  for (let i = 0; i < 5; i++) {
    const call = slide.log("k", TIERS);
    await new Promise(setImmediate); // the call is written
    const busy = performance.now() + 3 * TIMEOUT;
    while (performance.now() < busy);
    assert.equal((await call).source, "server");
  }
  assert.deepEqual(lines, []);
});

test("outages that come and go are each told once, with what passed", async (t) => {
  const { slide, lines } = await impatient(t, server.url);
  t.after(() => server.thaw());
  for (const round of [1, 2, 3]) {
    const before = slide.stats().unavailable;
    server.freeze();
    for (let i = 0; i < 10; i++) await slide.log("k", TIERS);
    server.thaw();
    await until(async () => (await slide.log("k", TIERS)).source === "server");
    assert.equal(slide.stats().outages, round);
    assert.equal(lines.length, 2 * round);
    assert.match(lines.at(-2), NO_ANSWER);
    assert.equal(Number(ANSWERS.exec(lines.at(-1))[1]), slide.stats().unavailable - before);
  }
});

test("a storm over a kill: every call ends, and the server admits no more than the limit", async (t) => {
  const { slide } = await impatient(t, server.url, { timeout: "500ms" });
  let asked = 0;
  const call = () => {
    if (++asked === 100) server.process.kill("SIGKILL");
    return slide.log("k", [[100, "60s"]]);
  };
  const verdicts = await storm(50, 20, call).finally(async () => {
    await until(() => server.process.signalCode);
    await server.start();
  });
  const { server: judged = 0, unavailable, remembered = 0 } = tally(verdicts.map(({ source }) => source));
  assert.ok(unavailable > 0);
  assert.equal(judged + unavailable + remembered, 1000);
  assert.ok(verdicts.filter(({ source, admitted }) => source === "server" && admitted).length <= 100);
});
