// A store for express-rate-limit that lets slide count, in a window that slides.

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
  }

  init({ windowMs, limit, skipFailedRequests }) {
    this.window = `${windowMs}`;
    // A limit that is a function of the request is not known here: then every hit is recorded, refused or not.
    this.limit = typeof limit === "number" ? limit : ANY;
    // With this setting express-rate-limit also takes back the hits that it refused, so they are recorded.
    this.force = skipFailedRequests ? ["FORCE"] : [];
  }

  async increment(key) {
    const reply = await this.call(`SLIDE.${this.algorithm}`, key, ...this.force);
    const [limited, limit, remaining, retryAfter, resetAfter] = reply;
    const wait = limited && retryAfter > 0 ? retryAfter : resetAfter;
    return { totalHits: limit - remaining + limited, resetTime: new Date(Date.now() + wait) };
  }

  async get(key) {
    const [, limit, remaining, , resetAfter] = await this.call("SLIDE.PEEK", key);
    if (remaining === limit) return undefined;
    return { totalHits: limit - remaining, resetTime: new Date(Date.now() + resetAfter) };
  }

  async decrement(key) {
    await this.sendCommand("SLIDE.REFUND", this.prefix + key, "1");
  }

  async resetKey(key) {
    await this.sendCommand("DEL", this.prefix + key);
  }

  call(command, key, ...options) {
    return this.sendCommand(command, this.prefix + key, `${this.limit}`, this.window, ...options, ...this.options);
  }
}
