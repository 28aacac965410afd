import { AsyncLocalStorage } from "node:async_hooks";
import type { CounterOptions } from "./clauses.js";
import type { Slide } from "./slide.js";
import { milliseconds, type Duration, type Tier } from "./units.js";
import type { Verdict } from "./verdict.js";

export interface StoreOptions {
  /** What keys begin with, `"rl:"` unless given. */
  prefix?: string;
  /** Counts with SLIDE.COUNTER, in a small key whatever the traffic, instead of SLIDE.LOG. */
  counter?: CounterOptions;
}

/** What the store needs of express-rate-limit's own options. */
export interface RateLimitOptions {
  windowMs: number;
  limit: number | ((...args: never[]) => unknown);
}

export interface ClientRateLimitInfo {
  totalHits: number;
  resetTime: Date | undefined;
}

/** As good as no limit. (The module takes more, but some clients read integers near 2^53 a unit wrong.) */
const ANY = 1e15;

/** A store for express-rate-limit, with which its window slides. */
export class SlideStore {
  /** Other processes count in the same keys. */
  readonly localKeys = false;
  readonly prefix: string;
  readonly #counter: CounterOptions | undefined;
  /** The hit of the request that is being handled: express-rate-limit gives `decrement` nothing but the key. */
  readonly #hit = new AsyncLocalStorage<{ verdict?: Verdict }>();
  #tiers: readonly Tier[] = [];

  constructor(
    private readonly slide: Slide,
    { prefix = "rl:", counter }: StoreOptions = {},
  ) {
    this.prefix = prefix;
    this.#counter = counter;
  }

  init({ windowMs, limit }: RateLimitOptions): void {
    const window = `${windowMs}ms` satisfies Duration;
    milliseconds("windowMs", window);
    // A limit that is a function of the request is not known here: then every hit is recorded, refused or not.
    this.#tiers = [[typeof limit === "number" ? limit : ANY, window]];
  }

  async increment(key: string): Promise<ClientRateLimitInfo> {
    const hit: { verdict?: Verdict } = {};
    this.#hit.enterWith(hit); // before the first await, so that the caller has it too
    const verdict = this.#counter
      ? await this.slide.counter(this.prefix + key, this.#tiers, this.#counter)
      : await this.slide.log(this.prefix + key, this.#tiers);
    hit.verdict = verdict;
    if (verdict.source !== "unavailable") return hits(verdict, verdict.admitted ? 0 : 1);
    if (verdict.admitted) return { totalHits: 1, resetTime: undefined };
    throw new Error("the rate limit could not be checked");
  }

  async get(key: string): Promise<ClientRateLimitInfo | undefined> {
    const verdict = await this.slide.peek(this.prefix + key, this.#tiers, this.#counter);
    return verdict.remaining === verdict.limit ? undefined : hits(verdict, 0);
  }

  /** Gives back this request's own hit, and nobody else's. */
  async decrement(_key: string): Promise<void> {
    const verdict = this.#hit.getStore()?.verdict;
    if (verdict) await this.slide.refund(verdict);
  }

  async resetKey(key: string): Promise<void> {
    await this.slide.reset(this.prefix + key);
  }
}

function hits(
  { limit, remaining, admitted, retryAfterMs, resetAfterMs }: Verdict,
  refused: number,
): ClientRateLimitInfo {
  const wait = !admitted && retryAfterMs !== Infinity ? retryAfterMs : resetAfterMs;
  return { totalHits: limit - remaining + refused, resetTime: new Date(Date.now() + wait) };
}
