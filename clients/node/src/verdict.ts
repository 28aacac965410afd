/** Who decided: the server, this process from a refusal that it remembers, or the policy for outages and errors. */
export type Source = "server" | "remembered" | "unavailable";

/** The answer to a call. Without an answer of the server (`source` is `"unavailable"`) its numbers are 0. */
export class Verdict {
  readonly key!: string;
  readonly source!: Source;
  /** When the call was sent, as `performance.now()` has it. */
  readonly sentAt!: number;
  /** What the caller has to obey. */
  readonly admitted!: boolean;
  readonly limit: number = 0;
  /** Units left after this call. */
  readonly remaining: number = 0;
  /** Milliseconds until the call would be admitted if nothing else is recorded, `Infinity` if never, else 0. */
  readonly retryAfterMs: number = 0;
  /** Milliseconds until nothing is used any more. */
  readonly resetAfterMs: number = 0;
  /** Ready to send to the caller; none for a lease. */
  readonly headers: Readonly<Record<string, string>> = {};
  /** Of `all`: a verdict for each key, in the order given, that judges this key alone. */
  readonly each: readonly Verdict[] = [];
  /** @internal Units that this call recorded and that were not given back. */
  refundable = 0;

  /** @internal */
  constructor(facts: Facts) {
    Object.assign(this, facts);
  }

  /** Whether a limit was exceeded, even if the call is admitted because limits are not enforced. */
  get over(): boolean {
    return this.retryAfterMs !== 0;
  }

  /** Whether the same call can ever be admitted: its cost is within every limit. */
  get canPass(): boolean {
    return this.retryAfterMs !== Infinity;
  }
}

type Facts = Pick<Verdict, "key" | "source" | "sentAt" | "admitted"> &
  Partial<Omit<Verdict, "over" | "canPass">>;

/** What was asked, and what the call records if it is admitted. */
export interface Question {
  keys: readonly string[];
  costs: readonly number[];
  all: boolean;
  force: boolean;
  sentAt: number;
}

export function unavailable({ keys, all, sentAt }: Question, admitted: boolean): Verdict {
  const each = keys.map((key) => new Verdict({ key, source: "unavailable", sentAt, admitted }));
  return all ? new Verdict({ ...each[0]!, each }) : each[0]!;
}

export function read(reply: unknown, { keys, costs, all, force, sentAt }: Question): Verdict {
  const words = reply as unknown[];
  // One key is asked by its own command, several by SLIDE.ALL.
  const fives = keys.length === 1 ? [words] : (words.slice(1, -1) as unknown[][]);
  const headers = readHeaders(keys.length === 1 ? words[5] : words.at(-1));
  const recorded = force || fives.every((five) => Number(five[3]) === 0);
  const each = fives.map((five, i) => {
    const [limited, limit, remaining, retryAfter, resetAfter] = five.slice(0, 5).map(Number) as Five;
    return new Verdict({
      key: keys[i]!,
      source: "server",
      sentAt,
      admitted: limited === 0,
      limit,
      remaining,
      retryAfterMs: retryAfter < 0 ? Infinity : retryAfter,
      resetAfterMs: resetAfter,
      headers: all ? {} : headers,
      refundable: recorded ? costs[i]! : 0,
    });
  });
  if (!all) return each[0]!;
  return new Verdict({
    ...reported(each),
    admitted: Number(words[0]) === 0,
    headers,
    refundable: 0,
    each,
  });
}

type Five = [number, number, number, number, number];

/** As the server chooses its X-RateLimit headers: the key with the longest wait, else the one with the fewest units left. */
function reported(each: Verdict[]): Verdict {
  return each.reduce((a, b) => {
    if (a.over || b.over) return b.retryAfterMs > a.retryAfterMs ? b : a;
    return b.remaining < a.remaining ? b : a;
  });
}

/** RESP3 has maps, RESP2 flat arrays; a client may make a Map, an object or Buffers of them. */
function readHeaders(reply: unknown): Record<string, string> {
  const headers: Record<string, string> = {};
  if (Array.isArray(reply)) {
    for (let i = 0; i < reply.length; i += 2) headers[String(reply[i])] = String(reply[i + 1]);
  } else {
    const entries = reply instanceof Map ? reply : Object.entries(reply ?? {});
    for (const [name, value] of entries) headers[String(name)] = String(value);
  }
  return headers;
}

/** A remembered refusal, as it is `elapsed` ms after its call was sent. */
export function countDown(verdict: Verdict, elapsed: number): Verdict {
  const retryAfterMs = Math.max(0, Math.ceil(verdict.retryAfterMs - elapsed));
  const headers = { ...verdict.headers };
  if ("Retry-After" in headers) headers["Retry-After"] = `${Math.max(1, Math.ceil(retryAfterMs / 1000))}`;
  if (headers["RateLimit"]) {
    const seconds = Math.floor(elapsed / 1000);
    headers["RateLimit"] = headers["RateLimit"].replace(
      /;t=(\d+)/g,
      (_, t) => `;t=${Math.max(1, t - seconds)}`,
    );
  }
  return new Verdict({
    ...verdict,
    source: "remembered",
    admitted: retryAfterMs === 0,
    retryAfterMs,
    resetAfterMs: Math.max(0, Math.ceil(verdict.resetAfterMs - elapsed)),
    headers,
    each: verdict.each.map((one) => countDown(one, elapsed)),
  });
}
