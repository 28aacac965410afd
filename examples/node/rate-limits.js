// Rate limits for an Express service: paste this in and edit the table.

import { createHmac } from "node:crypto";
import { isIPv6 } from "node:net";
import { createClient } from "redis";

export const TABLE = {
  account: "LOG 100 60s 10000 1d",
  guest: "COUNTER 30 60s BUCKETS 10",
  // What a call of the endpoint costs, and a limit of its own for each client.
  endpoints: {
    items: { cost: 1 },
    search: { cost: 5 },
    report: { cost: 10, own: "LOG 20 1h" },
  },
};

export function rateLimits({ url, secret, accountOf, timeout = 50 }) {
  const redis = createClient({
    url,
    RESP: 3,
    disableOfflineQueue: true,
    commandsQueueMaxLength: 10_000, // while Redis hangs, what was sent waits here
    socket: { reconnectStrategy: 250 },
  });
  let down = false;
  redis.on("error", () => {}); // every error is told by the requests that it lets pass
  redis.connect().catch(() => {});

  const limit = (name) => {
    const endpoint = TABLE.endpoints[name];
    if (!endpoint) throw new Error(`no endpoint '${name}' in the table of rate limits`);
    return async (req, res, next) => {
      const [limited, headers] = await askOrPass(clientOf(req), name, endpoint);
      res.set(headers);
      if (!limited) return next();
      const problem = { type: "about:blank", title: "Too Many Requests", status: 429 };
      res.status(429).type("application/problem+json").json(problem);
    };
  };
  limit.failedOpen = 0; // the metric: requests that passed because Redis did not answer
  limit.close = () => redis.destroy();
  return limit;

  function clientOf(req) {
    const account = accountOf(req.get("x-api-key"));
    if (account) return [`key:${account}`, TABLE.account];
    // req.ip is what the setting 'trust proxy' makes of X-Forwarded-For: see the README.
    const hash = createHmac("sha256", secret).update(networkOf(req.ip)).digest("hex");
    return [`ip:${hash.slice(0, 16)}`, TABLE.guest];
  }

  async function askOrPass(...question) {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(reject, timeout, new Error(`no answer within ${timeout} ms`));
    });
    try {
      const answer = await Promise.race([ask(...question), late]);
      down = false;
      return answer;
    } catch (error) {
      limit.failedOpen += 1;
      if (!down) console.warn(`no request is limited: ${error.message || error}`);
      down = true;
      return [0, {}];
    } finally {
      clearTimeout(timer);
    }
  }

  async function ask([client, limits], name, { cost, own }) {
    const key = `rate:{${client}}`; // braces: in a cluster both keys of a client are on one node
    const [kind, ...tiers] = limits.split(" ");
    if (!own) {
      const reply = await redis.sendCommand([`SLIDE.${kind}`, key, ...tiers, "COST", `${cost}`, "HEADERS"]);
      return [reply[0], reply[5]];
    }
    const [, ...ownTiers] = own.split(" ");
    const ownKey = `${key}:${name}`;
    const [[limited, ...replies], ...peeks] = await Promise.all([
      redis.sendCommand(["SLIDE.ALL", "2", key, ownKey, kind, ...tiers, ...own.split(" "), "COST", `${cost}`]),
      // ALL has no HEADERS, and a call that costs nothing tells what it left.
      redis.sendCommand(["SLIDE.PEEK", key, ...tiers, "COST", "0", "HEADERS"]),
      redis.sendCommand(["SLIDE.PEEK", ownKey, ...ownTiers, "COST", "0", "HEADERS"]),
    ]);
    const waits = replies.map((reply) => (reply[3] < 0 ? Infinity : reply[3]));
    const worst = limited ? waits[1] > waits[0] : replies[1][2] < replies[0][2];
    const headers = { ...peeks[Number(worst)][5] };
    for (const list of ["RateLimit-Policy", "RateLimit"]) headers[list] = peeks.map((peek) => peek[5][list]).join(", ");
    const wait = Math.max(...waits);
    if (limited && wait < Infinity) headers["Retry-After"] = `${Math.ceil(wait / 1000)}`;
    return [limited, headers];
  }
}

// What a subscriber has: one IPv4 address, or the /64 around an IPv6 one.
export function networkOf(address = "") {
  const ip = address.replace(/^::ffff:(?=\d+\.)/i, "").replace(/%.*/, "");
  if (!isIPv6(ip)) return ip;
  const [left, right = ""] = new URL(`http://[${ip}]`).hostname.slice(1, -1).split("::");
  const [head, tail] = [left, right].map((half) => half.split(":").filter(Boolean));
  return [...head, ...Array(8 - head.length - tail.length).fill("0"), ...tail].slice(0, 4).join(":");
}
