import type { Sent } from "./connection.js";
import { isMistake, SlideError } from "./errors.js";

/** During an outage one call at a time may try the server, this long after the last failure. */
const PROBE_EVERY_MS = 100;
/** No call is sent while this many are waiting: many calls in good times, few that the server owes us in bad ones. */
const MAX_WAITING = 10_000;
const MAX_OWED = 100;

interface Outage {
  since: number;
  calls: number;
  probing: boolean;
  nextProbe: number;
}

/** Bounds the time of every call, and keeps calls away from a server that does not answer. */
export class Guard {
  outages = 0;
  #waiting = 0;
  #outage: Outage | undefined;

  constructor(
    private readonly send: (words: string[], key: string) => Sent,
    private readonly timeoutMs: number,
    private readonly failOpen: boolean,
    private readonly warn: (line: string) => void,
  ) {}

  /** The server's reply, or undefined if it gave none in time. Rejects with a SlideError for a mistake of the caller. */
  ask(words: string[], key: string): Promise<unknown> {
    const outage = this.#outage;
    if (outage) {
      const mayProbe = !outage.probing && performance.now() >= outage.nextProbe && this.#waiting < MAX_OWED;
      if (!mayProbe) return Promise.resolve(this.#fail(outage));
      outage.probing = true;
    } else if (this.#waiting >= MAX_WAITING) {
      return Promise.resolve(this.#fail(undefined, `${this.#waiting} calls are waiting for it`));
    }
    return this.#race(words, key, outage);
  }

  /** The client library's own promise may stay pending for as long as a server is frozen, so that a timer ends the call. */
  #race(words: string[], key: string, probed: Outage | undefined): Promise<unknown> {
    return new Promise((resolve, reject) => {
      let over = false;
      const end = (finish: () => void) => {
        if (over) return;
        over = true;
        clearTimeout(timer);
        if (probed) Object.assign(probed, { probing: false, nextProbe: performance.now() + PROBE_EVERY_MS });
        finish();
      };
      const sent = this.#start(words, key);
      const expire = () => {
        end(() => resolve(this.#fail(this.#outage, `no answer within ${this.timeoutMs} ms`)));
        sent.cancel();
      };
      // If the process itself was busy, the reply may have arrived: the event loop reads sockets before setImmediate.
      const timer = setTimeout(() => setImmediate(() => over || expire()), this.timeoutMs);
      sent.reply.then(
        (reply) => {
          this.#waiting -= 1;
          // A late reply belongs to its own call and to no other. It shows that the server is worth a try.
          if (over && this.#outage) this.#outage.nextProbe = 0;
          end(() => {
            this.#answered(probed);
            resolve(reply);
          });
        },
        (error: unknown) => {
          this.#waiting -= 1;
          end(() => {
            if (!isMistake(error)) return resolve(this.#fail(this.#outage, reasonOf(error)));
            this.#answered(probed);
            reject(new SlideError(error.message, { cause: error }));
          });
        },
      );
    });
  }

  #start(words: string[], key: string): Sent {
    this.#waiting += 1;
    try {
      return this.send(words, key);
    } catch (error) {
      return { reply: Promise.reject(error), cancel() {} };
    }
  }

  #fail(outage: Outage | undefined, reason = ""): undefined {
    if (!outage) {
      outage = {
        since: performance.now(),
        calls: 0,
        probing: false,
        nextProbe: performance.now() + PROBE_EVERY_MS,
      };
      this.#outage = outage;
      this.outages += 1;
      this.warn(
        `slide: no answer from Redis (${reason}): calls ${this.failOpen ? "pass unlimited" : "are refused"}`,
      );
    }
    outage.calls += 1;
  }

  /** Only the answer to a call that was sent during an outage ends it. */
  #answered(probed: Outage | undefined): void {
    if (!probed || probed !== this.#outage) return;
    this.#outage = undefined;
    const seconds = ((performance.now() - probed.since) / 1000).toFixed(1);
    const fate = this.failOpen ? "passed unlimited" : "were refused";
    this.warn(`slide: Redis answers again after ${seconds} s, in which ${probed.calls} calls ${fate}`);
  }
}

function reasonOf(error: unknown): string {
  // Node gives a refused connection to several addresses an empty message.
  const { message, code } = error as { message?: string; code?: string };
  return message || code || String(error);
}
