// Places that are renewed, released, lost and given back by the server.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";
import { LimitError } from "redis-slide";
import { CLIENTS, open, pause, Server, timed, until } from "./support.js";

let server;
before(async () => (server = await Server.start()));
after(() => server.stop());
beforeEach(() => server.call("FLUSHALL"));

const live = async (key = "jobs") =>
  (await server.call("ZRANGE", key, "0", "-1")).map((member) => member.slice(1));

for (const kind of Object.keys(CLIENTS)) {
  test(`${kind}: a lease is renewed for as long as it is held`, async (t) => {
    const { slide } = await open(t, server.url, { kind });
    const lease = await slide.lease("jobs", 1, "300ms");
    assert.ok(
      lease.verdict.admitted && !lease.lost && lease.verdict.limit === 1 && lease.verdict.remaining === 0,
    );
    for (let i = 0; i < 10; i++) {
      await pause(100);
      await assert.rejects(slide.lease("jobs", 1, "300ms"), ({ name, verdict }) => {
        assert.ok(!verdict.admitted && verdict.retryAfterMs > 0 && verdict.retryAfterMs <= 300);
        return name === "LimitError";
      });
    }
    assert.deepEqual(await live(), [lease.id]);
    assert.equal(await lease.release(), true);
    assert.equal(await lease.release(), true);
    assert.deepEqual(await live(), []);
    assert.equal(lease.lost, false);
  });
}

test("fifty clients take exactly the places there are", async (t) => {
  const opened = await Promise.all(Array.from({ length: 50 }, () => open(t, server.url)));
  const asked = await Promise.allSettled(opened.map(({ slide }) => slide.lease("jobs", 7, "30s")));
  const leases = asked.flatMap(({ value }) => value ?? []);
  assert.equal(leases.length, 7);
  assert.equal(new Set(leases.map(({ id }) => id)).size, 7);
  assert.ok(asked.every(({ value, reason }) => value || reason instanceof LimitError));
  await Promise.all(leases.map((lease) => lease.release()));
  assert.deepEqual(await live(), []);
});

test("withLease gives the place back, whatever becomes of the work", async (t) => {
  const { slide } = await open(t, server.url);
  const result = await slide.withLease("jobs", 1, "30s", async (lease) => {
    assert.deepEqual(await live(), [lease.id]);
    await assert.rejects(
      slide.withLease("jobs", 1, "30s", () => assert.fail("there is no place")),
      (error) => error instanceof LimitError && error.verdict.retryAfterMs > 0,
    );
    return "done";
  });
  assert.equal(result, "done");
  assert.deepEqual(await live(), []);
  const failing = () => slide.withLease("jobs", 1, "30s", () => Promise.reject(new Error("failed")));
  await assert.rejects(failing, /failed/);
  assert.deepEqual(await live(), []);
});

test("`await using` gives the place back", async (t) => {
  const { slide } = await open(t, server.url);
  const lease = await slide.lease("jobs", 1, "30s", { id: "mine" });
  assert.deepEqual(await live(), ["mine"]);
  await lease[Symbol.asyncDispose]();
  assert.deepEqual(await live(), []);
});

test("the same id renews, and takes no second place; force takes one beyond the limit", async (t) => {
  const { slide } = await open(t, server.url);
  const first = await slide.lease("jobs", 1, "30s", { id: "mine" });
  const again = await slide.lease("jobs", 1, "30s", { id: "mine" });
  assert.equal(again.id, first.id);
  const forced = await slide.lease("jobs", 1, "30s", { id: "other", force: true });
  assert.deepEqual((await live()).sort(), ["mine", "other"]);
  await Promise.all([first.release(), again.release(), forced.release()]);
});

test("a place that all has taken is held and given back", async (t) => {
  const { slide } = await open(t, server.url);
  const clause = { key: "jobs", lease: 1, ttl: "300ms", id: "mine" };
  const verdict = await slide.all([{ key: "calls", log: [[5, "60s"]] }, clause]);
  const lease = slide.hold(clause, verdict);
  await pause(1000);
  assert.deepEqual(await live(), ["mine"]);
  assert.equal(await lease.release(), true);
});

/** A process that takes a lease, says so and then does `what`. */
function holder(what) {
  const code = `
    import { createClient } from "redis";
    import { Slide } from "redis-slide";
    const client = createClient({ url: "${server.url}" });
    await client.connect();
    const lease = await new Slide(client, { timeout: "10s" }).lease("jobs", 1, "600ms", { id: "child" });
    console.log(lease.verdict.admitted);
    ${what}`;
  const cwd = fileURLToPath(new URL(".", import.meta.url));
  return spawn(process.execPath, ["--input-type=module", "--eval", code], {
    cwd,
    stdio: ["ignore", "pipe", "inherit"],
  });
}

test("the place of a process that crashes comes back by itself", async (t) => {
  const child = holder("setInterval(() => {}, 1000);");
  t.after(() => child.kill("SIGKILL"));
  const [said] = await once(child.stdout, "data");
  assert.equal(`${said}`, "true\n");
  const { slide } = await open(t, server.url);
  await pause(1000); // it renews
  const next = () => slide.lease("jobs", 1, "1s").then(() => true, () => false); // prettier-ignore
  assert.equal(await next(), false);
  child.kill("SIGKILL");
  await once(child, "exit");
  const died = performance.now();
  await until(next);
  assert.ok(performance.now() - died < 1500);
});

test("a lease does not keep a process running that has ended its work", async (t) => {
  const child = holder("client.destroy();");
  t.after(() => child.kill("SIGKILL"));
  await until(() => child.exitCode !== null);
  assert.equal(child.exitCode, 0);
});

test("a lease that somebody else has taken is lost, and is not given back", async (t) => {
  const { slide } = await open(t, server.url);
  const lease = await slide.lease("jobs", 1, "300ms");
  await server.call("SLIDE.RELEASE", "jobs", lease.id);
  await server.call("SLIDE.LEASE", "jobs", "1", "60s", "thief");
  await once(lease.signal, "abort");
  assert.ok(lease.lost);
  assert.match(`${lease.signal.reason}`, /is lost/);
  assert.equal(await lease.release(), false);
  assert.deepEqual(await live(), ["thief"]);
});

test("a lease whose key becomes something else is lost", async (t) => {
  const { slide } = await open(t, server.url);
  const lease = await slide.lease("jobs", 1, "300ms");
  await server.call("SET", "jobs", "text");
  await once(lease.signal, "abort");
  assert.match(`${lease.signal.reason}`, /WRONGTYPE/);
});

test("in an outage a lease goes on when failing open, and is taken again after", async (t) => {
  const { slide, lines } = await open(t, server.url, { timeout: "50ms" });
  const lease = await slide.lease("jobs", 1, "600ms");
  assert.equal(lease.verdict.source, "server");
  server.freeze();
  t.after(() => server.thaw());
  const during = await slide.lease("others", 1, "600ms");
  assert.deepEqual([during.verdict.admitted, during.verdict.source], [true, "unavailable"]);
  const [released, ms] = await timed(() => during.release());
  assert.equal(released, false);
  assert.ok(ms < 500, `${ms}`);
  await pause(1000);
  assert.equal(lease.lost, false);
  server.thaw();
  await until(() => lines.length === 2);
  await until(async () => (await live()).includes(lease.id));
  assert.equal(lease.lost, false);
  assert.equal(await lease.release(), true);
});

test("in an outage a lease is lost after its ttl when failing closed", async (t) => {
  const { slide } = await open(t, server.url, { timeout: "50ms", onFailure: "closed" });
  const started = performance.now();
  const lease = await slide.lease("jobs", 1, "600ms");
  server.freeze();
  t.after(() => server.thaw());
  await assert.rejects(slide.lease("jobs", 1, "600ms"), ({ verdict }) => verdict.source === "unavailable");
  await once(lease.signal, "abort");
  const held = performance.now() - started;
  assert.ok(held >= 600 && held < 1500, `${held}`);
});
