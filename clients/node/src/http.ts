import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clause, LeaseClause } from "./clauses.js";
import type { Slide } from "./slide.js";
import type { Verdict } from "./verdict.js";

/** What a request takes: one clause, several that pass together or not at all, or nothing if it is not limited. */
export type ClausesOf<Q> = (request: Q) => Asked | Promise<Asked>;
type Asked = Clause | readonly Clause[] | undefined;

export interface LimitOptions {
  /** The status codes of answers for which the caller gets back what the request cost, such as 502, 503 and 504. */
  refundOn?: readonly number[];
}

interface Problem {
  status: number;
  body: string;
}

const verdicts = new WeakMap<object, Verdict>();

/** The verdict on a request that a middleware has let pass: to refund it, or to settle an estimate. */
export function verdictOf(request: object): Verdict | undefined {
  return verdicts.get(request);
}

/**
 * A middleware for Express 4 and 5, and for whatever else takes `(request, response, next)`:
 * `app.use(expressLimit(slide, (request: Request) => …))`.
 */
export function expressLimit<Q extends IncomingMessage>(
  slide: Slide,
  clausesOf: ClausesOf<Q>,
  options: LimitOptions = {},
): (request: Q, response: ServerResponse, next: (error?: unknown) => void) => void {
  return (request, response, next) => {
    limit(
      slide,
      request,
      clausesOf,
      response,
      (name, value) => response.setHeader(name, value),
      options,
    ).then((problem) => {
      if (!problem) return next();
      response.statusCode = problem.status;
      response.setHeader("Content-Type", "application/problem+json");
      response.end(problem.body);
    }, next);
  };
}

interface FastifyReply {
  raw: ServerResponse;
  header(name: string, value: string): unknown;
  code(status: number): { send(body: string): unknown };
}

/** A hook for Fastify: `app.addHook("onRequest", fastifyLimit(slide, (request: FastifyRequest) => …))`. */
export function fastifyLimit<Q extends object>(
  slide: Slide,
  clausesOf: ClausesOf<Q>,
  options: LimitOptions = {},
): (request: any, reply: FastifyReply) => Promise<unknown> {
  return async (request: Q, reply) => {
    const setHeader = (name: string, value: string) => reply.header(name, value);
    const problem = await limit(slide, request, clausesOf, reply.raw, setHeader, options);
    if (!problem) return;
    reply.header("Content-Type", "application/problem+json");
    reply.code(problem.status).send(problem.body);
    return reply;
  };
}

async function limit<Q extends object>(
  slide: Slide,
  request: Q,
  clausesOf: ClausesOf<Q>,
  response: ServerResponse,
  setHeader: (name: string, value: string) => unknown,
  { refundOn = [] }: LimitOptions,
): Promise<Problem | undefined> {
  const asked = await clausesOf(request);
  if (!asked) return undefined;
  const clauses = (Array.isArray(asked) ? asked : [asked]) as Clause[];
  const verdict = await slide.all(clauses);
  for (const [name, value] of Object.entries(verdict.headers)) setHeader(name, value);
  if (!verdict.admitted) return problemOf(verdict, setHeader);
  verdicts.set(request, verdict);
  const leases = clauses
    .filter((clause): clause is LeaseClause => "lease" in clause)
    .map((clause) => slide.hold(clause, verdict));
  response.once("close", () => {
    for (const lease of leases) void lease.release();
    // What cannot be given back expires.
    if (refundOn.includes(response.statusCode)) slide.refund(verdict).catch(() => {});
  });
  return undefined;
}

function problemOf(verdict: Verdict, setHeader: (name: string, value: string) => unknown): Problem {
  if (verdict.source === "unavailable") {
    setHeader("Retry-After", "1");
    return problem(503, "Service Unavailable", "The rate limit of this request could not be checked.");
  }
  if (!verdict.canPass)
    return problem(400, "Bad Request", "This request costs more than its limit ever allows.");
  return problem(429, "Too Many Requests", "The rate limit of this request is reached.");
}

function problem(status: number, title: string, detail: string): Problem {
  return { status, body: JSON.stringify({ type: "about:blank", title, status, detail }) };
}
