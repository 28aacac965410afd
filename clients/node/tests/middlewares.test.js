// Express 4, Express 5 and Fastify on real ports.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import express from "express";
import express4 from "express-4";
import fastify from "fastify";
import { expressLimit, fastifyLimit, verdictOf } from "redis-slide";
import { get, open, pause, serve, Server, storm, tally, until } from "./support.js";

let server;
before(async () => (server = await Server.start()));
after(() => server.stop());
beforeEach(() => server.call("FLUSHALL"));

const viaExpress = (express) => async (t, slide, clauses, handler, options) => {
  const app = express();
  app.use(expressLimit(slide, clauses, options));
  app.get("/", async (req, res) => {
    const { status = 200, body = "" } = (await handler?.(req)) ?? {};
    res.status(status).send(body);
  });
  app.use((error, req, res, next) => res.status(500).send(error.message)); // eslint-disable-line
  return serve(t, app);
};

const viaFastify = async (t, slide, clauses, handler, options) => {
  const app = fastify();
  app.addHook("onRequest", fastifyLimit(slide, clauses, options));
  app.get("/", async (req, reply) => {
    const { status = 200, body = "" } = (await handler?.(req)) ?? {};
    return reply.code(status).send(body);
  });
  t.after(() => app.close());
  return app.listen({ port: 0, host: "127.0.0.1" });
};

const FRAMEWORKS = {
  "Express 4": viaExpress(express4),
  "Express 5": viaExpress(express),
  Fastify: viaFastify,
};

function checkProblem({ status, headers, body }, expected) {
  assert.equal(status, expected);
  assert.match(headers.get("Content-Type"), /^application\/problem\+json/);
  const { type, title, status: told, detail } = JSON.parse(body);
  assert.deepEqual([type, told], ["about:blank", expected]);
  assert.ok(title && detail);
}

for (const [name, start] of Object.entries(FRAMEWORKS)) {
  test(`${name}: headers on every reply, and 429 with Retry-After`, async (t) => {
    const { slide } = await open(t, server.url);
    const url = await start(t, slide, () => ({ key: "k", log: [[2, "60s"]] }));
    for (const [status, remaining] of [
      [200, "1"],
      [200, "0"],
      [429, "0"],
      [429, "0"],
    ]) {
      const response = await get(url);
      assert.equal(response.status, status);
      const { headers } = response;
      assert.equal(headers.get("X-RateLimit-Limit"), "2");
      assert.equal(headers.get("X-RateLimit-Remaining"), remaining);
      assert.match(headers.get("X-RateLimit-Reset"), /^\d+$/);
      assert.equal(headers.get("RateLimit-Policy"), '"2-per-60s";q=2;w=60');
      assert.match(headers.get("RateLimit"), new RegExp(`^"2-per-60s";r=${remaining};t=\\d+$`));
      if (status === 429) {
        assert.match(headers.get("Retry-After"), /^(59|60)$/);
        checkProblem(response, 429);
      } else {
        assert.equal(headers.get("Retry-After"), null);
      }
    }
    assert.equal(slide.stats().remembered, 1);
  });

  test(`${name}: fifty clients get exactly the limit`, async (t) => {
    const { slide } = await open(t, server.url);
    const clause = (kind) => ({ key: kind, [kind]: [[100, "1h"]] });
    for (const clauses of [
      [clause("log")],
      [clause("counter")],
      [
        { ...clause("log"), key: "l" },
        { ...clause("counter"), key: "c" },
      ],
    ]) {
      const url = await start(t, slide, () => clauses);
      const responses = await storm(50, 4, () => get(url));
      assert.deepEqual(tally(responses.map(({ status }) => status)), { 200: 100, 429: 100 });
    }
  });

  test(`${name}: 400 where a call can never pass`, async (t) => {
    const { slide } = await open(t, server.url);
    const url = await start(t, slide, () => ({ key: "k", log: [[2, "60s"]], cost: 3 }));
    for (let i = 0; i < 2; i++) {
      const response = await get(url);
      checkProblem(response, 400);
      assert.equal(response.headers.get("Retry-After"), null);
      assert.equal(response.headers.get("X-RateLimit-Limit"), "2");
    }
  });

  test(`${name}: what is asked may depend on the request, and be nothing`, async (t) => {
    const { slide } = await open(t, server.url);
    const url = await start(t, slide, async ({ headers }) => {
      await pause(1);
      const user = headers["x-user"];
      if (user === "wrong") throw new Error("no such user");
      return (
        user && [
          { key: `{${user}}:a`, log: [[5, "60s"]] },
          { key: `{${user}}:b`, counter: [[9, "1h"]], cost: 2 },
        ]
      );
    });
    assert.equal((await get(url)).headers.get("X-RateLimit-Limit"), null);
    assert.equal((await get(url, { "X-User": "1" })).headers.get("X-RateLimit-Remaining"), "4");
    assert.equal((await get(url, { "X-User": "1" })).headers.get("X-RateLimit-Remaining"), "3");
    assert.equal((await get(url, { "X-User": "2" })).headers.get("X-RateLimit-Remaining"), "4");
    const { status, body } = await get(url, { "X-User": "wrong" });
    assert.equal(status, 500);
    assert.match(body, /no such user/);
    assert.equal(slide.stats().calls, 3);
  });

  test(`${name}: a request gets back what it cost where the answer is one of refundOn`, async (t) => {
    const { slide } = await open(t, server.url);
    const before = await server.info("refunded_units");
    const clauses = [
      { key: "a", log: [[100, "60s"]], cost: 7 },
      { key: "b", counter: [[100, "1h"]], cost: 5 },
    ];
    const handler = ({ headers }) => ({ status: Number(headers["x-status"]) });
    const url = await start(t, slide, () => clauses, handler, { refundOn: [502, 503] });
    for (const status of [200, 404, 500, 502]) {
      const response = await get(url, { "X-Status": `${status}` });
      assert.equal(response.status, status);
      assert.equal(response.headers.get("X-RateLimit-Limit"), "100");
    }
    await until(async () => (await server.info("refunded_units")) - before === 12);
    assert.equal((await slide.peek("a", [[100, "60s"]])).remaining, 100 - 3 * 7 - 1 + 1);
  });

  test(`${name}: a handler settles an estimate with the verdict`, async (t) => {
    const { slide } = await open(t, server.url);
    const handler = async (req) => ({ body: `${await slide.refund(verdictOf(req), 30)}` });
    const url = await start(t, slide, () => ({ key: "k", log: [[100, "60s"]], cost: 50 }), handler);
    assert.equal((await get(url)).body, "30");
    assert.equal((await slide.peek("k", [[100, "60s"]])).remaining, 79 + 1);
  });

  test(`${name}: a place is held while the request runs`, async (t) => {
    const { slide } = await open(t, server.url);
    const clauses = () => [
      { key: "calls", log: [[100, "60s"]] },
      { key: "flights", lease: 2, ttl: "300ms", id: randomUUID() },
    ];
    let end;
    const ended = new Promise((resolve) => (end = resolve));
    t.after(() => end());
    const url = await start(t, slide, clauses, () => ended);
    const running = [get(url), get(url)];
    await until(async () => (await server.call("ZCARD", "flights")) === 2);
    await pause(700); // longer than a place lasts that nobody renews
    const refused = await get(url);
    checkProblem(refused, 429);
    assert.equal(refused.headers.get("Retry-After"), "1");
    end();
    for (const { status } of await Promise.all(running)) assert.equal(status, 200);
    await until(async () => (await server.call("ZCARD", "flights")) === 0);
    assert.equal((await get(url)).status, 200);
  });

  test(`${name}: in an outage requests pass, or get 503`, async (t) => {
    const open503 = await open(t, server.url, { timeout: "50ms", onFailure: "closed" });
    const passing = await open(t, server.url, { timeout: "50ms" });
    const clauses = () => ({ key: "k", log: [[2, "60s"]] });
    const [closed, url] = [await start(t, open503.slide, clauses), await start(t, passing.slide, clauses)];
    server.freeze();
    t.after(() => server.thaw());
    const responses = await storm(50, 4, () => get(url));
    assert.deepEqual(tally(responses.map(({ status }) => status)), { 200: 200 });
    assert.equal(responses[0].headers.get("X-RateLimit-Limit"), null);
    const refused = await get(closed);
    checkProblem(refused, 503);
    assert.equal(refused.headers.get("Retry-After"), "1");
    server.thaw();
    await until(async () => (await get(url)).headers.has("X-RateLimit-Limit"));
  });

  test(`${name}: an error reply is the framework's to answer, or passes`, async (t) => {
    await server.call("SET", "k", "text");
    const clauses = () => ({ key: "k", log: [[2, "60s"]] });
    const { slide } = await open(t, server.url);
    const response = await get(await start(t, slide, clauses));
    assert.equal(response.status, 500);
    assert.match(response.body, /WRONGTYPE/);
    const tolerant = await open(t, server.url, { raiseErrors: false });
    assert.equal((await get(await start(t, tolerant.slide, clauses))).status, 200);
  });
}
