// A service to try it on: npm start

import express from "express";
import { pathToFileURL } from "node:url";
import { rateLimits } from "./rate-limits.js";

const ACCOUNTS = new Map([["demo-key-1", "1"], ["demo-key-2", "2"]]);

export function service({
  url = process.env.REDIS_URL ?? "redis://127.0.0.1:6379",
  secret = process.env.RATE_LIMIT_SECRET ?? "change me",
  proxies = Number(process.env.TRUSTED_PROXIES ?? 0),
  ...options
} = {}) {
  const app = express();
  app.set("trust proxy", proxies);
  // Only a key that we gave out makes a caller an account: an invented one stays a guest.
  const limit = rateLimits({ url, secret, accountOf: (key) => ACCOUNTS.get(key), ...options });

  app.get("/items", limit("items"), (req, res) => res.json(["a", "b"]));
  app.get("/search", limit("search"), (req, res) => res.json({ q: req.query.q, found: [] }));
  app.get("/reports/:id", limit("report"), (req, res) => res.json({ report: req.params.id }));
  app.get("/metrics", (req, res) => res.type("text").send(`rate_limit_failed_open_total ${limit.failedOpen}\n`));
  return { app, limit };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const port = Number(process.env.PORT ?? 8000);
  service().app.listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${port}/items`));
}
