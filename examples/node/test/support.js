// A Redis to start, kill and freeze, and a service on a real port.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createClient } from "redis";

const SERVER = process.env.SLIDE_SERVER ?? "redis-server";
const MODULE =
  process.env.SLIDE_MODULE ?? fileURLToPath(new URL("../../../target/release/libslide.so", import.meta.url));

export async function until(condition, seconds = 20) {
  const deadline = Date.now() + seconds * 1000;
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, `not within ${seconds} s: ${condition}`);
    await pause(10);
  }
}

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}

export class Redis {
  static async start() {
    const redis = new Redis();
    process.on("exit", () => redis.process.kill("SIGKILL"));
    redis.folder = mkdtempSync(join(tmpdir(), "slide-"));
    redis.port = await freePort();
    redis.url = `redis://127.0.0.1:${redis.port}`;
    await redis.start();
    return redis;
  }

  async start() {
    const options = ["--port", `${this.port}`, "--bind", "127.0.0.1", "--save", "", "--dir", this.folder];
    this.process = spawn(SERVER, [...options, "--logfile", "redis.log", "--loadmodule", MODULE], { stdio: "ignore" });
    await until(async () => {
      if (this.process.exitCode !== null) throw new Error(readFileSync(join(this.folder, "redis.log"), "utf8"));
      return (await this.call("PING").catch(() => "")) === "PONG";
    });
  }

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

  async kill() {
    const { exitCode, signalCode } = this.process;
    if (exitCode !== null || signalCode !== null) return; // it has ended by itself, and says so once
    this.process.kill("SIGKILL");
    await once(this.process, "exit");
  }

  freeze() {
    this.process.kill("SIGSTOP");
  }

  thaw() {
    this.process.kill("SIGCONT");
  }

  async stop() {
    await this.kill();
    rmSync(this.folder, { recursive: true });
  }
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

/** Clients that each call at the same time as the others, one call after another. */
export async function storm(url, { clients, each = 1, headers = {} }) {
  const one = async () => {
    const responses = [];
    for (let i = 0; i < each; i++) responses.push(await get(url, headers));
    return responses;
  };
  return (await Promise.all(Array.from({ length: clients }, one))).flat();
}

export async function get(url, headers = {}) {
  const response = await fetch(url, { headers });
  return { status: response.status, headers: response.headers, body: await response.text() };
}

export function statuses(responses) {
  const counts = {};
  for (const { status } of responses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
