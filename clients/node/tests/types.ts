// What compiles, and what must not. Nothing here runs.

import express, { type Request } from "express";
import fastify, { type FastifyRequest } from "fastify";
import { rateLimit } from "express-rate-limit";
import { Redis as IORedis, Cluster as IORedisCluster } from "ioredis";
import { Redis as IORedis6 } from "ioredis-6";
import { createClient, createClientPool, createCluster } from "redis";
import * as redis6 from "redis-6";
import {
  expressLimit,
  fastifyLimit,
  ipKey,
  Slide,
  SlideStore,
  type Clause,
  type Duration,
} from "redis-slide";

export const slides = [
  new Slide(createClient()),
  new Slide(createClient({ RESP: 3 })),
  new Slide(createClientPool()),
  new Slide(createCluster({ rootNodes: [] })),
  new Slide(redis6.createClient()),
  new Slide(redis6.createClientPool()),
  new Slide(redis6.createCluster({ rootNodes: [] })),
  new Slide(new IORedis()),
  new Slide(new IORedisCluster([])),
  new Slide(new IORedis6()),
  new Slide(async (words: string[], key: string) => [words, key]),
];

const slide = slides[0]!;
const seconds = 60;
const window: Duration = `${seconds}s`;
export const right: Clause[] = [
  { key: "a", log: [[100, window]], cost: 2 },
  { key: "b", counter: [[30, "500ms"]], buckets: 10, strict: true },
  { key: "c", lease: 5, ttl: "30s", id: "job" },
];
void slide.log("a", [[100, "60s"], [1000, "1d"]], { cost: 5, force: true }); // prettier-ignore
// @ts-expect-error A bare number has no unit.
void slide.log("a", [[100, 60]]);
// @ts-expect-error There is no such unit.
void slide.log("a", [[100, "1w"]]);
// @ts-expect-error A ttl has a unit.
void slide.lease("a", 5, 30);
// @ts-expect-error A timeout has a unit.
export const wrong = new Slide(createClient(), { timeout: 50 });
// @ts-expect-error A number of units belongs to one key.
void slide.refund("a");
// @ts-expect-error This is no client.
export const nothing = new Slide({});

export async function leases(): Promise<string> {
  await using lease = await slide.lease("jobs", 5, "30s");
  return slide.withLease("jobs", 5, "30s", ({ id, signal }) => (signal.aborted ? "lost" : id + lease.id));
}

const app = express();
app.use(expressLimit(slide, (req: Request) => ({ key: ipKey(req.ip!, "secret"), log: [[100, "60s"]] })));
app.get(
  "/",
  expressLimit(slide, (req: Request) => (req.get("x-free") ? undefined : right), { refundOn: [502] }),
);
app.use(
  rateLimit({ windowMs: 60_000, limit: 5, store: new SlideStore(slide, { counter: { buckets: 10 } }) }),
);

const server = fastify();
server.addHook(
  "onRequest",
  fastifyLimit(slide, (req: FastifyRequest) => ({ key: req.ip, log: [[100, "60s"]] })),
);
server.get("/", { onRequest: fastifyLimit(slide, async () => right) }, async () => "hello");
