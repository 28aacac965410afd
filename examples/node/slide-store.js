// A store for express-rate-limit that lets slide count, in a window that slides.

import { AsyncLocalStorage } from "node:async_hooks";

// As good as no limit. (The module takes more, but node-redis reads integers near 2^53 a unit wrong.)
const ANY = 1e15;

export class SlideStore {
  /**
   * sendCommand: `(...words) => client.sendCommand(words)` with node-redis, `(...words) => client.call(...words)`
   * with ioredis. algorithm: "LOG", or "COUNTER" for a small key whatever the traffic, with `options` such as
   * ["BUCKETS", "10"].
   */
  constructor({ sendCommand, prefix = "rl:", algorithm = "LOG", options = [] }) {
    Object.assign(this, { sendCommand, prefix, algorithm, options });
    // The hit of the request that is being handled: express-rate-limit gives decrement nothing but the key.
    this.hit = new AsyncLocalStorage();
  }

  init({ windowMs, limit, skipFailedRequests }) {
    this.window = `${windowMs}ms`;
    // A limit that is a function of the request is not known here: then every hit is recorded, refused or not.
    this.limit = typeof limit === "number" ? limit : ANY;
    // With this setting express-rate-limit also takes back the hits that it refused, so they are recorded.
    this.force = skipFailedRequests ? ["FORCE"] : [];
  }

  async increment(key) {
    const hit = { started: performance.now(), recorded: false };
    this.hit.enterWith(hit); // before the first await, so that the caller has it too
    const reply = await this.call(`SLIDE.${this.algorithm}`, key, ...this.force);
    const [limited, limit, remaining, retryAfter, resetAfter] = reply;
    // A call with a wait was over its limit and not recorded, also while slide.enforce is off.
    hit.recorded = retryAfter === 0 || this.force.length > 0;
    const wait = limited && retryAfter > 0 ? retryAfter : resetAfter;
    return { totalHits: limit - remaining + limited, resetTime: new Date(Date.now() + wait) };
  }

  async get(key) {
    const [, limit, remaining, , resetAfter] = await this.call("SLIDE.PEEK", key);
    if (remaining === limit) return undefined;
    return { totalHits: limit - remaining, resetTime: new Date(Date.now() + resetAfter) };
  }

  // Gives back the hit of this request's moment, to within a second.
  async decrement(key) {
    const hit = this.hit.getStore();
    if (!hit?.recorded) return;
    hit.recorded = false;
    const age = Math.ceil(performance.now() - hit.started);
    await this.sendCommand("SLIDE.REFUND", this.prefix + key, "1", "AGE", `${age}ms`);
  }

  async resetKey(key) {
    await this.sendCommand("DEL", this.prefix + key);
  }

  call(command, key, ...options) {
    return this.sendCommand(command, this.prefix + key, `${this.limit}`, this.window, ...options, ...this.options);
  }
}
