import type { Verdict } from "./verdict.js";

/** The server's error reply to a call that is a mistake: an argument out of its range, a key of another kind. */
export class SlideError extends Error {
  override name = "SlideError";
}

/** There was no free place. The verdict says when there may be one. */
export class LimitError extends Error {
  override name = "LimitError";
  constructor(readonly verdict: Verdict) {
    super(`no place is free in '${verdict.key}'`);
  }
}

const MISTAKE = /^(ERR|WRONGTYPE|CROSSSLOT) /;
const OUTAGE = /^ERR (unknown command|max number of clients|max clients)/i;

/** Whether an error that a client library rejects with is about the call, and not about the server's state. */
export function isMistake(error: unknown): error is Error {
  return error instanceof Error && MISTAKE.test(error.message) && !OUTAGE.test(error.message);
}
