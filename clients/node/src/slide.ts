import { randomUUID } from "node:crypto";
import {
  costOf,
  counterWords,
  tierWords,
  words,
  type Clause,
  type CounterOptions,
  type LeaseClause,
} from "./clauses.js";
import { connection, type Redis } from "./connection.js";
import { LimitError } from "./errors.js";
import { Guard } from "./guard.js";
import { Lease } from "./lease.js";
import { Memory } from "./memory.js";
import { count, milliseconds, onlyFields, text, type Duration, type Tier } from "./units.js";
import { read, unavailable, Verdict, type Question } from "./verdict.js";

export interface SlideOptions {
  /** No call takes longer, whatever the server does. `"50ms"` unless given. */
  timeout?: Duration;
  /** What becomes of a call without an answer: it is admitted (`"open"`, the default) or refused (`"closed"`). */
  onFailure?: "open" | "closed";
  /** Whether an error reply about the call rejects with a SlideError (the default) or follows `onFailure`. */
  raiseErrors?: boolean;
  /** How many refusals are remembered, 10,000 unless given. 0: none. */
  remember?: number;
  /** Takes the log lines: one when an outage begins, one when it ends. `console.warn` unless given. */
  warn?: (line: string) => void;
}

export interface CallOptions {
  /** Units that the call takes, 1 unless given. */
  cost?: number | undefined;
  /** Records the call even if it is over a limit. */
  force?: boolean | undefined;
}

export interface LeaseOptions {
  /** A random one unless given. */
  id?: string | undefined;
  /** Takes a place beyond the limit. */
  force?: boolean | undefined;
}

/** `calls` is the sum of the five after it. Peek, refund, release and reset count only where they fail. */
export interface Stats {
  calls: number;
  admitted: number;
  limited: number;
  remembered: number;
  unavailable: number;
  errors: number;
  outages: number;
}

/** Rate limits and leases, with one policy for every server that does not answer. */
export class Slide {
  readonly #guard: Guard;
  readonly #memory: Memory;
  readonly #failOpen: boolean;
  readonly #raiseErrors: boolean;
  readonly #warn: (line: string) => void;
  #stats = { admitted: 0, limited: 0, remembered: 0, unavailable: 0, errors: 0 };
  #nextErrorLine = -Infinity;

  constructor(redis: Redis, options: SlideOptions = {}) {
    const { timeout = "50ms", onFailure = "open", raiseErrors = true, remember = 10_000 } = options;
    if (onFailure !== "open" && onFailure !== "closed") {
      throw new TypeError(`onFailure must be "open" or "closed", got ${JSON.stringify(onFailure)}`);
    }
    this.#failOpen = onFailure === "open";
    this.#raiseErrors = raiseErrors;
    this.#warn = options.warn ?? ((line) => console.warn(line));
    this.#memory = new Memory(Number(count("remember", remember)));
    this.#guard = new Guard(connection(redis), milliseconds("timeout", timeout), this.#failOpen, this.#warn);
  }

  /** Counts exactly: for users with accounts, and quotas. */
  async log(key: string, tiers: readonly Tier[], options: CallOptions = {}): Promise<Verdict> {
    onlyFields("options", options, ["cost", "force"]);
    const { cost, force } = options;
    return this.#decide([{ key, log: tiers, cost }], { force });
  }

  /** Counts approximately in a small key: for many callers. */
  async counter(
    key: string,
    tiers: readonly Tier[],
    options: CallOptions & CounterOptions = {},
  ): Promise<Verdict> {
    onlyFields("options", options, ["cost", "force", "buckets", "strict"]);
    const { force, ...rest } = options;
    return this.#decide([{ key, counter: tiers, ...rest }], { force });
  }

  /** Checks several keys and records in all of them or in none. In a cluster their hash tags are the same. */
  async all(clauses: readonly Clause[], options: { force?: boolean } = {}): Promise<Verdict> {
    onlyFields("options", options, ["force"]);
    const { force } = options;
    return this.#decide(clauses, { force, all: true });
  }

  /**
   * Takes one of `limit` places, and renews it until it is released. Rejects with a LimitError if none is free.
   * A place whose holder dies comes back by itself after `ttl`.
   */
  async lease(key: string, limit: number, ttl: Duration, options: LeaseOptions = {}): Promise<Lease> {
    onlyFields("options", options, ["id", "force"]);
    const clause = { key, lease: limit, ttl, id: options.id ?? randomUUID() };
    const verdict = await this.#decide([clause], { force: options.force });
    // A place that was forced is taken, although it is over the limit.
    const forced = options.force && verdict.source === "server";
    if (!verdict.admitted && !forced) throw new LimitError(verdict);
    return this.hold(clause, verdict);
  }

  /** Runs `work` with a place, and gives it back whatever becomes of it. Rejects with a LimitError if none is free. */
  async withLease<T>(
    key: string,
    limit: number,
    ttl: Duration,
    work: (lease: Lease) => T | Promise<T>,
    options: LeaseOptions = {},
  ): Promise<T> {
    const lease = await this.lease(key, limit, ttl, options);
    try {
      return await work(lease);
    } finally {
      await lease.release();
    }
  }

  /** Renews and later releases the place of a clause that `all` has admitted. */
  hold(clause: LeaseClause, verdict: Verdict): Lease {
    const renew = () => this.#decide([clause], {});
    return new Lease(clause, verdict, renew, () => this.release(clause.key, clause.id));
  }

  /** Ends leases, and resolves to how many of them were live (0 without an answer). */
  async release(key: string, ...ids: string[]): Promise<number> {
    return this.#takeBack(["SLIDE.RELEASE", text("key", key), ...ids.map((id) => text("id", id))], key);
  }

  /** What a call would be answered now, recording nothing. `lease`: the key holds leases, and of the tier only the limit matters. */
  async peek(
    key: string,
    tiers: readonly Tier[],
    given: { cost?: number; lease?: boolean } & CounterOptions = {},
  ): Promise<Verdict> {
    onlyFields("options", given, ["cost", "lease", "buckets", "strict"]);
    const { cost = 1, lease = false, ...counter } = given;
    const options = lease ? [] : ["COST", count("cost", cost), ...counterWords(counter), "HEADERS"];
    const call = ["SLIDE.PEEK", text("key", key), ...tierWords(tiers), ...options];
    const question = { keys: [key], costs: [0], all: false, force: false, sentAt: performance.now() };
    const reply = await this.#ask(call, key);
    return reply === undefined ? unavailable(question, this.#failOpen) : read(reply, question);
  }

  /**
   * Gives back what the call of a verdict recorded (all of it unless `units` says how much), and nobody else's:
   * nothing if it was refused, did not come from the server, or has been given back. Of a key: the most recent units.
   * Resolves to how many units were taken back (0 without an answer).
   */
  async refund(of: Verdict, units?: number): Promise<number>;
  async refund(of: string, units: number): Promise<number>;
  async refund(of: Verdict | string, units?: number): Promise<number> {
    if (!(of instanceof Verdict)) return this.#refund(text("key", of), count("units", units!));
    if (of.each.length === 1) return this.refund(of.each[0]!, units);
    if (of.each.length > 1) {
      if (units !== undefined)
        throw new TypeError("units must be those of one key: refund one of verdict.each");
      const each = await Promise.all(of.each.map((verdict) => this.refund(verdict)));
      return each.reduce((a, b) => a + b);
    }
    const taken = Math.min(Number(count("units", units ?? of.refundable)), of.refundable);
    if (taken === 0) return 0;
    of.refundable -= taken;
    return this.#refund(of.key, String(taken), "AGE", `${Math.ceil(performance.now() - of.sentAt)}ms`);
  }

  /** Deletes a key. Resolves to whether it was there (false without an answer). */
  async reset(key: string): Promise<boolean> {
    return (await this.#takeBack(["DEL", text("key", key)], key)) > 0;
  }

  stats(): Stats {
    const calls = Object.values(this.#stats).reduce((a, b) => a + b);
    return { calls, ...this.#stats, outages: this.#guard.outages };
  }

  async #decide(
    clauses: readonly Clause[],
    options: { force?: boolean | undefined; all?: boolean },
  ): Promise<Verdict> {
    const { force = false, all = false } = options;
    const keys = clauses.map(({ key }) => key);
    const call = commandOf(clauses.map(words), keys, force);
    const question: Question = { keys, costs: clauses.map(costOf), all, force, sentAt: performance.now() };
    // A lease is never remembered: a place may be released elsewhere at any time.
    const name =
      force || clauses.some((clause) => "lease" in clause) ? undefined : JSON.stringify([call, all]);
    const remembered = name && this.#memory.find(name, question.sentAt);
    if (remembered) {
      this.#stats.remembered += 1;
      return remembered;
    }
    const { generation } = this.#memory;
    const reply = await this.#ask(call, keys[0]!).finally(() => force && this.#memory.forget(keys));
    if (reply === undefined) return unavailable(question, this.#failOpen);
    const verdict = read(reply, question);
    this.#stats[verdict.admitted ? "admitted" : "limited"] += 1;
    const holds = !verdict.admitted && generation === this.#memory.generation;
    if (name && holds) this.#memory.add(name, keys, verdict);
    return verdict;
  }

  #refund(key: string, units: string, ...age: string[]): Promise<number> {
    return this.#takeBack(["SLIDE.REFUND", key, units, ...age], key);
  }

  /** Sends a command that makes room, after which nothing is remembered of its key. */
  async #takeBack(call: string[], key: string): Promise<number> {
    return Number((await this.#ask(call, key).finally(() => this.#memory.forget([key]))) ?? 0);
  }

  /** The reply; undefined if there is none, or an error that is not to be raised. */
  async #ask(call: string[], key: string): Promise<unknown> {
    try {
      const reply = await this.#guard.ask(call, key);
      if (reply === undefined) this.#stats.unavailable += 1;
      return reply;
    } catch (error) {
      this.#stats.errors += 1;
      if (this.#raiseErrors) throw error;
      if (performance.now() >= this.#nextErrorLine) {
        this.#nextErrorLine = performance.now() + 60_000;
        this.#warn(
          `slide: a call is wrong, and is treated as one without an answer: ${(error as Error).message}`,
        );
      }
      return undefined;
    }
  }
}

function commandOf(clauses: string[][], keys: string[], force: boolean): string[] {
  const options = [...(force ? ["FORCE"] : []), "HEADERS"];
  if (clauses.length !== 1) return ["SLIDE.ALL", String(keys.length), ...keys, ...clauses.flat(), ...options];
  const [kind, ...rest] = clauses[0]!;
  // A lease has no headers.
  return [`SLIDE.${kind}`, keys[0]!, ...rest, ...(kind === "LEASE" ? options.slice(0, -1) : options)];
}
