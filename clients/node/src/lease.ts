import type { LeaseClause } from "./clauses.js";
import { milliseconds } from "./units.js";
import type { Verdict } from "./verdict.js";

/** After a renewal without an answer the next one comes soon. */
const RETRY_MS = 200;

/** A place that is renewed every third of its ttl until it is released. Works with `await using`. */
export class Lease {
  readonly key: string;
  readonly id: string;
  /** The answer to the call that took the place. If its source is `"unavailable"`, the policy lets the holder go on without. */
  readonly verdict: Verdict;
  readonly #lost = new AbortController();
  readonly #ttlMs: number;
  #heldUntil: number;
  #timer: NodeJS.Timeout | undefined;
  #renewal: Promise<void> | undefined;
  #released: Promise<boolean> | undefined;

  /** @internal */
  constructor(
    { key, id, ttl }: LeaseClause,
    verdict: Verdict,
    private readonly renew: () => Promise<Verdict>,
    private readonly giveBack: () => Promise<number>,
  ) {
    this.key = key;
    this.id = id;
    this.verdict = verdict;
    this.#ttlMs = milliseconds("ttl", ttl);
    this.#heldUntil = verdict.sentAt + this.#ttlMs;
    this.#schedule(verdict);
  }

  /** Aborts when the place is lost: somebody else has it, or failing closed it was not renewed in time. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  get lost(): boolean {
    return this.#lost.signal.aborted;
  }

  /** Gives the place back, once. Resolves to whether it was still held; never rejects. */
  release(): Promise<boolean> {
    this.#released ??= this.#release();
    return this.#released;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  async #release(): Promise<boolean> {
    clearTimeout(this.#timer);
    if (this.lost) return false;
    // On another connection of a pool a renewal that is under way could come after the release.
    await this.#renewal;
    return this.giveBack().then(
      (ended) => ended > 0,
      () => false,
    );
  }

  #schedule({ source }: Verdict): void {
    const delay = source === "server" ? this.#ttlMs / 3 : Math.min(this.#ttlMs / 3, RETRY_MS);
    this.#timer = setTimeout(() => (this.#renewal = this.#beat()), delay);
    // A lease alone does not keep the process running.
    this.#timer.unref();
  }

  async #beat(): Promise<void> {
    let verdict;
    try {
      verdict = await this.renew();
    } catch (error) {
      return this.#lost.abort(error);
    }
    const renewed = verdict.source === "server" && verdict.admitted;
    if (renewed) this.#heldUntil = verdict.sentAt + this.#ttlMs;
    const refused =
      !verdict.admitted && (verdict.source === "server" || performance.now() >= this.#heldUntil);
    if (refused) this.#lost.abort(new Error(`the lease '${this.id}' of '${this.key}' is lost`));
    else if (!this.#released) this.#schedule(verdict);
  }
}
