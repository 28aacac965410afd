// Real servers to start, freeze and kill; a proxy that delays; the clients of the matrix; services on real ports.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Redis as IORedis } from "ioredis";
import { Redis as IORedis6 } from "ioredis-6";
import { createClient } from "redis";
import { createClient as createClient6 } from "redis-6";
import { Slide } from "redis-slide";

const { SLIDE_SERVER, SLIDE_MODULE } = process.env;
assert.ok(SLIDE_SERVER && SLIDE_MODULE, "SLIDE_SERVER and SLIDE_MODULE say what to test");

export { pause };

export async function until(condition, seconds = 20) {
  const deadline = Date.now() + seconds * 1000;
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, `not within ${seconds} s: ${condition}`);
    await pause(5);
  }
}

export async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}

const running = new Set();
process.on("exit", () => running.forEach((server) => server.process.kill("SIGKILL")));

export class Server {
  static async start({ module = true, options = [] } = {}) {
    const server = new Server();
    server.port = await freePort();
    server.folder = mkdtempSync(join(tmpdir(), "slide-"));
    server.options = [...(module ? ["--loadmodule", SLIDE_MODULE] : []), ...options];
    running.add(server);
    await server.start();
    return server;
  }

  async start() {
    const { port, folder } = this;
    const fixed = [
      "--port",
      `${port}`,
      "--bind",
      "127.0.0.1",
      "--save",
      "",
      "--dir",
      folder,
      "--logfile",
      "log",
    ];
    this.process = spawn(SLIDE_SERVER, [...fixed, ...this.options], { stdio: "ignore" });
    await until(async () => {
      if (this.process.exitCode !== null) throw new Error(readFileSync(join(folder, "log"), "utf8"));
      return (await this.call("PING").catch(() => "")) === "PONG";
    });
  }

  /** One command on a connection of its own. */
  async call(...command) {
    const client = createClient({ url: this.url, socket: { reconnectStrategy: false } });
    client.on("error", () => {});
    await client.connect();
    try {
      return await client.sendCommand(command);
    } finally {
      client.destroy();
    }
  }

  /** A number of the module's INFO. */
  async info(name) {
    return Number(new RegExp(`slide_${name}:(\\d+)`).exec(await this.call("INFO", "slide"))[1]);
  }

  get url() {
    return `redis://127.0.0.1:${this.port}`;
  }

  freeze() {
    this.process.kill("SIGSTOP");
  }

  thaw() {
    this.process.kill("SIGCONT");
  }

  async kill() {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    this.process.kill("SIGKILL");
    await once(this.process, "exit");
  }

  async stop() {
    await this.kill();
    running.delete(this);
    rmSync(this.folder, { recursive: true });
  }
}

/** Passes bytes on both ways, the server's each `delay` ms late. */
export class Proxy {
  static async start(t, port) {
    const proxy = new Proxy();
    proxy.delay = 0;
    const sockets = new Set();
    const listener = createServer((near) => {
      const far = connect(port, "127.0.0.1");
      for (const socket of [near, far]) {
        sockets.add(socket);
        socket.setNoDelay(true);
        socket.on("error", () => {});
        socket.on("close", () => [near, far].forEach((each) => each.destroy()));
      }
      near.on("data", (bytes) => far.write(bytes));
      let last = Promise.resolve();
      far.on("data", (bytes) => {
        const late = pause(proxy.delay, undefined, { ref: false });
        last = Promise.all([last, late]).then(() => near.writable && near.write(bytes));
      });
    });
    listener.listen(0, "127.0.0.1");
    await once(listener, "listening");
    t.after(() => {
      listener.close();
      for (const socket of sockets) socket.destroy();
    });
    proxy.url = `redis://127.0.0.1:${listener.address().port}`;
    return proxy;
  }
}

const nodeRedis = (create, options) => ({
  open: async (url) => {
    const client = create({ url, ...options, socket: { reconnectStrategy: 50 } });
    client.on("error", () => {});
    client.connect().catch(() => {});
    return { client, ready: () => client.isReady, close: () => client.destroy() };
  },
});

const ioredis = (Class, options) => ({
  open: async (url) => {
    const client = new Class(url, { retryStrategy: () => 50, ...options });
    client.on("error", () => {});
    return { client, ready: () => client.status === "ready", close: () => client.disconnect() };
  },
});

/** The client libraries, each with what it does when a server is away left as it is. */
export const CLIENTS = {
  "node-redis 5, RESP2": nodeRedis(createClient, { RESP: 2 }),
  "node-redis 5, RESP3": nodeRedis(createClient, { RESP: 3 }),
  "node-redis 6, RESP2": nodeRedis(createClient6, { RESP: 2 }),
  "node-redis 6, RESP3": nodeRedis(createClient6, { RESP: 3 }),
  "ioredis 5, RESP2": ioredis(IORedis),
  "ioredis 6, RESP2": ioredis(IORedis6, { protocol: 2 }),
  "ioredis 6, RESP3": ioredis(IORedis6, { protocol: 3 }),
};

/** On a busy machine a reply can take longer than a service would wait for it: tests that count wait. */
const PATIENT = { timeout: "10s" };

/** A Slide on a client of its own, with its log lines. It is closed when the test ends. */
export async function open(t, url, { kind = "node-redis 5, RESP3", connected = true, ...options } = {}) {
  const { client, ready, close } = await CLIENTS[kind].open(url);
  t.after(close);
  if (connected) await until(ready);
  const lines = [];
  const slide = new Slide(client, { ...PATIENT, warn: (line) => lines.push(line), ...options });
  return { slide, lines, client };
}

/** The result of a call and how many ms it took. */
export async function timed(call) {
  const started = performance.now();
  const result = await call();
  return [result, performance.now() - started];
}

/** Serves an app on a free port until the test ends; gives its URL. */
export async function serve(t, app) {
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

export async function get(url, headers = {}) {
  const response = await fetch(url, { headers });
  return { status: response.status, headers: response.headers, body: await response.text() };
}

/** Clients that each call at the same time as the others, one call after another. */
export async function storm(clients, each, call) {
  const one = async (_, client) => {
    const results = [];
    for (let i = 0; i < each; i++) results.push(await call(client));
    return results;
  };
  return (await Promise.all(Array.from({ length: clients }, one))).flat();
}

/** How often each value is there. */
export function tally(values) {
  const counts = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}
