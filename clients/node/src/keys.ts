import { createHash, createHmac } from "node:crypto";
import { BlockList, isIP, isIPv4 } from "node:net";
import { text as required } from "./units.js";

/** The key of a caller with an API key, which Redis does not get to see. */
export function apiKey(value: string): string {
  return `key:${createHash("sha256").update(required("value", value)).digest("hex").slice(0, 32)}`;
}

/**
 * The key of a caller without an account: a keyed hash of its address, so that a dump of Redis names nobody.
 * A subscriber has one IPv4 address, or a /64 of IPv6.
 */
export function ipKey(address: string, secret: string): string {
  required("secret", secret);
  return `ip:${createHmac("sha256", secret).update(networkOf(address)).digest("hex").slice(0, 32)}`;
}

/**
 * The address of the client: of the addresses in X-Forwarded-For, which each proxy adds to on the right, and the peer
 * at its end, the last that is not a trusted proxy. `trusted` are addresses or networks such as `"10.0.0.0/8"`.
 */
export function clientIp(
  peer: string,
  forwardedFor: string | readonly string[] | undefined,
  trusted: readonly string[],
): string {
  const proxies = networks(trusted);
  let client = normal(peer);
  const hops = [forwardedFor ?? []].flat().join(",").split(",");
  while (proxies.check(client, isIPv4(client) ? "ipv4" : "ipv6")) {
    const hop = normal(hops.pop() ?? "");
    if (isIP(hop) === 0) break;
    client = hop;
  }
  return client;
}

/** A key in the cluster slot of `tag`, such as `tagged("{user:9}", "calls")`: for the keys of one `all`. */
export function tagged(tag: string, name: string): string {
  if (!/^\{[^{}]+\}$/.test(tag))
    throw new TypeError(`tag must be a text in braces, such as "{user:9}", got "${tag}"`);
  return `${tag}:${required("name", name)}`;
}

function networkOf(address: string): string {
  const ip = normal(address);
  if (isIP(ip) === 0) throw new TypeError(`address must be an IP address, got ${JSON.stringify(address)}`);
  if (isIPv4(ip)) return ip;
  const [left = "", right = ""] = ip.split("::");
  const [head, tail] = [left, right].map((half) => half.split(":").filter(Boolean)) as [string[], string[]];
  const groups = [...head, ...Array<string>(8 - head.length - tail.length).fill("0"), ...tail];
  return `${canonical(`${groups.slice(0, 4).join(":")}::`)}/64`;
}

/** Without port and zone, an IPv4 address mapped to IPv6 as IPv4, IPv6 in its shortest form. */
function normal(address: string): string {
  const text = String(address).trim();
  const withPort = /^\[(.*)\](?::\d+)?$/.exec(text) ?? /^([^:]*):\d+$/.exec(text);
  const ip = (withPort?.[1] ?? text).replace(/%.*$/, "");
  if (isIP(ip) !== 6) return ip;
  const short = canonical(ip);
  const mapped = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(short);
  if (!mapped) return short;
  const [high, low] = mapped.slice(1).map((group) => parseInt(group, 16)) as [number, number];
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

function canonical(ipv6: string): string {
  return new URL(`http://[${ipv6}]`).hostname.slice(1, -1);
}

function networks(trusted: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of trusted) {
    const [address = "", length, ...rest] = network.split("/");
    const family = isIPv4(address) ? "ipv4" : "ipv6";
    const most = family === "ipv4" ? 32 : 128;
    const bits = length === undefined ? most : /^\d+$/.test(length) ? Number(length) : NaN;
    if (isIP(address) === 0 || !(bits <= most) || rest.length > 0) {
      throw new TypeError(
        `a trusted proxy must be an address or a network such as "10.0.0.0/8", got "${network}"`,
      );
    }
    list.addSubnet(address, bits, family);
  }
  return list;
}
