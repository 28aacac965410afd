import { count, duration, onlyFields, text, type Duration, type Tier } from "./units.js";

export interface LogClause {
  key: string;
  /** Exact: no window of this length ever holds more than the limit. */
  log: readonly Tier[];
  /** Units that the call takes, 1 unless given. */
  cost?: number | undefined;
}

export interface CounterOptions {
  /** Buckets a window, 1 to 64: more are more exact and larger. 1 unless given. */
  buckets?: number | undefined;
  /** Never more than the limit in any window, at the price of refusing a little early. */
  strict?: boolean | undefined;
}

export interface CounterClause extends CounterOptions {
  key: string;
  /** Approximate, and small whatever the traffic. */
  counter: readonly Tier[];
  cost?: number | undefined;
}

export interface LeaseClause {
  key: string;
  /** How many at once. */
  lease: number;
  /** When a place comes back by itself if nobody renews or releases it. */
  ttl: Duration;
  /** Names the holder: asking again with the same id renews. */
  id: string;
}

export type Clause = LogClause | CounterClause | LeaseClause;

/** The words of a clause as SLIDE.ALL takes them, checked. */
export function words(clause: Clause): string[] {
  text("key", clause.key);
  if ("lease" in clause) {
    onlyFields("a lease's clause", clause, ["key", "lease", "ttl", "id"]);
    return ["LEASE", count("limit", clause.lease), duration("ttl", clause.ttl), text("id", clause.id)];
  }
  const cost = ["COST", count("cost", costOf(clause))];
  if ("log" in clause) onlyFields("a log's clause", clause, ["key", "log", "cost"]);
  else onlyFields("a counter's clause", clause, ["key", "counter", "cost", "buckets", "strict"]);
  if ("log" in clause) return ["LOG", ...tierWords(clause.log), ...cost];
  return ["COUNTER", ...tierWords(clause.counter), ...cost, ...counterWords(clause)];
}

export function costOf(clause: Clause): number {
  return "lease" in clause ? 0 : (clause.cost ?? 1);
}

export function tierWords(tiers: readonly Tier[]): string[] {
  const given: unknown = tiers;
  if (!Array.isArray(given) || given.length === 0 || !given.every((tier) => Array.isArray(tier))) {
    throw new TypeError(`tiers must be a list such as [[100, "60s"]], got ${JSON.stringify(tiers)}`);
  }
  return tiers.flatMap(([limit, window]) => [count("limit", limit), duration("window", window)]);
}

export function counterWords({ buckets, strict }: CounterOptions): string[] {
  return [
    ...(buckets === undefined ? [] : ["BUCKETS", count("buckets", buckets)]),
    ...(strict ? ["STRICT"] : []),
  ];
}
