// Rate limits for an Express service: paste this in and edit the table.

import { createHmac } from "node:crypto";
import { isIPv6 } from "node:net";
import { createClient } from "redis";

export const TABLE = {
  account: "LOG 100 60s 10000 1d",
  guest: "COUNTER 30 60s BUCKETS 10",
  // What a call of the endpoint costs, and how often each client may call the endpoint itself.
  endpoints: {
    items: { cost: 1 },
    search: { cost: 5 },
    report: { cost: 10, own: "LOG 2 1h" },
  },
  // A request that one of these answers costs nothing: what it needed has failed.
  giveBack: [502, 503, 504],
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
      const started = performance.now();
      const charges = chargesOf(req, name, endpoint);
      const { limited, recorded, headers } = await askOrPass(charges);
      res.set(headers);
      if (recorded) {
        res.once("finish", () => TABLE.giveBack.includes(res.statusCode) && giveBack(charges, started));
      }
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

  // What a request takes: a key, its limits and a cost, for each limit that it has.
  function chargesOf(req, name, { cost, own }) {
    const [client, limits] = clientOf(req);
    const key = `rate:{${client}}`; // braces: in a cluster both keys of a client are on one node
    const charges = [{ key, limits, cost }];
    if (own) charges.push({ key: `${key}:${name}`, limits: own, cost: 1 });
    return charges;
  }

  async function askOrPass(charges) {
    try {
      const answer = await inTime(ask(charges));
      down = false;
      return answer;
    } catch (error) {
      limit.failedOpen += 1;
      if (!down) console.warn(`no request is limited: ${error.message || error}`);
      down = true;
      return { limited: 0, recorded: false, headers: {} };
    }
  }

  async function ask(charges) {
    const keys = charges.map(({ key }) => key);
    const clauses = charges.flatMap(({ limits, cost }) => [...limits.split(" "), "COST", `${cost}`]);
    const reply = await redis.sendCommand(["SLIDE.ALL", `${keys.length}`, ...keys, ...clauses, "HEADERS"]);
    const [limited, ...judged] = reply;
    const headers = judged.pop();
    // A call with a wait was over a limit and not recorded, also while slide.enforce is off.
    return { limited, recorded: judged.every(([, , , retryAfter]) => retryAfter === 0), headers };
  }

  // Gives back what was recorded at that moment. What cannot be given back expires.
  async function giveBack(charges, started) {
    const age = `${Math.ceil(performance.now() - started)}ms`;
    try {
      const refunds = charges.map(({ key, cost }) => redis.sendCommand(["SLIDE.REFUND", key, `${cost}`, "AGE", age]));
      await inTime(Promise.all(refunds));
    } catch (error) {
      console.warn(`not given back: ${error.message || error}`);
    }
  }

  async function inTime(call) {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(reject, timeout, new Error(`no answer within ${timeout} ms`));
    });
    return Promise.race([call, late]).finally(() => clearTimeout(timer));
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
