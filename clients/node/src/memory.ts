import { countDown, type Verdict } from "./verdict.js";

/** No refusal is remembered for longer, so that what an operator changes is soon seen. */
const AT_MOST_MS = 60_000;

interface Refusal {
  verdict: Verdict;
  keys: readonly string[];
  until: number;
}

/**
 * Refusals, each under the words of its call until its wait is over (or a minute). A wait is exact and other calls only make it
 * longer, so that no call is refused from memory that the server would admit, unless usage was taken back elsewhere.
 */
export class Memory {
  #refusals = new Map<string, Refusal>();
  #ofKey = new Map<string, Set<string>>();
  /** How often something was forgotten: a refusal that was decided before may be out of date. */
  generation = 0;

  constructor(private readonly capacity: number) {}

  find(call: string, now: number): Verdict | undefined {
    const refusal = this.#refusals.get(call);
    if (refusal && now < refusal.until) return countDown(refusal.verdict, now - refusal.verdict.sentAt);
    if (refusal) this.#delete(call, refusal);
    return undefined;
  }

  /** Counted from when the call was sent, which is before the server decided. */
  add(call: string, keys: readonly string[], verdict: Verdict): void {
    if (this.capacity === 0) return;
    const old = this.#refusals.get(call);
    if (old) this.#delete(call, old);
    for (const [oldest, refusal] of this.#refusals) {
      if (this.#refusals.size < this.capacity) break;
      this.#delete(oldest, refusal);
    }
    const wait = Math.min(verdict.retryAfterMs, AT_MOST_MS);
    this.#refusals.set(call, { verdict, keys, until: verdict.sentAt + wait });
    for (const key of keys) {
      const calls = this.#ofKey.get(key);
      if (calls) calls.add(call);
      else this.#ofKey.set(key, new Set([call]));
    }
  }

  forget(keys: readonly string[]): void {
    this.generation += 1;
    for (const key of keys) {
      for (const call of this.#ofKey.get(key) ?? []) this.#delete(call, this.#refusals.get(call)!);
    }
  }

  #delete(call: string, { keys }: Refusal): void {
    this.#refusals.delete(call);
    for (const key of keys) {
      const calls = this.#ofKey.get(key);
      calls?.delete(call);
      if (calls?.size === 0) this.#ofKey.delete(key);
    }
  }
}
