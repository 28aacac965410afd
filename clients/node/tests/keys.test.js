import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { createRequire } from "node:module";
import { test } from "node:test";
import { apiKey, clientIp, ipKey, tagged } from "redis-slide";

test("an API key is hashed", () => {
  assert.equal(apiKey("secret"), `key:${createHash("sha256").update("secret").digest("hex").slice(0, 32)}`);
  assert.notEqual(apiKey("a"), apiKey("b"));
  for (const value of ["", undefined, null, 5])
    assert.throws(() => apiKey(value), /^TypeError: value must be/);
});

test("an address is hashed with a secret: IPv4 whole, IPv6 by its /64", () => {
  const hmac = (text) => `ip:${createHmac("sha256", "s").update(text).digest("hex").slice(0, 32)}`;
  for (const [address, network] of [
    ["192.0.2.1", "192.0.2.1"],
    [" 192.0.2.1:4711", "192.0.2.1"],
    ["[2001:db8:1:2::1]:4711", "2001:db8:1:2::/64"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["::FFFF:c000:201", "192.0.2.1"],
    ["0:0:0:0:0:ffff:192.0.2.1", "192.0.2.1"],
    ["2001:db8:1:2::1", "2001:db8:1:2::/64"],
    ["2001:0DB8:1:2:ffff::9", "2001:db8:1:2::/64"],
    ["2001:db8::1", "2001:db8::/64"],
    ["fe80::1%eth0", "fe80::/64"],
    ["::1", "::/64"],
    ["1:2:3:4:5:6:7:8", "1:2:3:4::/64"],
  ]) {
    assert.equal(ipKey(address, "s"), hmac(network), address);
  }
  assert.notEqual(ipKey("192.0.2.1", "a"), ipKey("192.0.2.1", "b"));
  for (const secret of ["", undefined])
    assert.throws(() => ipKey("192.0.2.1", secret), /^TypeError: secret must be/);
  for (const address of [
    "",
    "example.com",
    "1.2.3",
    undefined,
    "192.0.2.1:",
    "192.0.2.1:80:80",
    "[1.2.3.4",
    "a[::1]",
  ]) {
    assert.throws(() => ipKey(address, "s"), /^TypeError: address must be an IP address/);
  }
});

test("the client is the last address that is not a trusted proxy", () => {
  const trusted = ["10.0.0.0/8", "192.0.2.7", "2001:db8:ff::/48"];
  for (const [peer, forwardedFor, client] of [
    ["198.51.100.1", undefined, "198.51.100.1"],
    ["198.51.100.1", "203.0.113.9", "198.51.100.1"], // not a proxy of ours: what it says is invented
    ["10.0.0.1", undefined, "10.0.0.1"],
    ["10.0.0.1", "", "10.0.0.1"],
    ["10.0.0.1", "203.0.113.9", "203.0.113.9"],
    ["::ffff:10.0.0.1", "203.0.113.9", "203.0.113.9"],
    ["10.0.0.1", "1.1.1.1, 203.0.113.9", "203.0.113.9"],
    ["10.0.0.1", "1.1.1.1, 203.0.113.9 ,192.0.2.7,10.9.9.9", "203.0.113.9"],
    ["10.0.0.1", ["1.1.1.1, 203.0.113.9", "192.0.2.7"], "203.0.113.9"],
    ["10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
    ["10.0.0.1", "203.0.113.9, unknown", "10.0.0.1"],
    ["10.0.0.1", "unknown, 10.0.0.2", "10.0.0.2"],
    ["2001:db8:ff::1", "2001:DB8::0:1", "2001:db8::1"],
    ["10.0.0.1", "203.0.113.9:80, 192.0.2.7:81", "203.0.113.9"],
    ["2001:db8:ff:1::1", "[2001:db8::1]", "2001:db8::1"],
    ["2001:db8:fe::1", "203.0.113.9", "2001:db8:fe::1"],
  ]) {
    assert.equal(clientIp(peer, forwardedFor, trusted), client, `${peer} ${forwardedFor}`);
  }
  assert.equal(clientIp("10.0.0.1", "203.0.113.9", []), "10.0.0.1");
  for (const network of [
    "10.0.0.0/33",
    "2001:db8::/129",
    "10.0.0.0/",
    "10.0.0.0/x",
    "proxy",
    "",
    "10.0.0.0/8/8",
  ]) {
    assert.throws(() => clientIp("10.0.0.1", "", [network]), /^TypeError: a trusted proxy must be/, network);
  }
});

test("keys with a tag share a slot", () => {
  assert.equal(tagged("{user:9}", "calls"), "{user:9}:calls");
  for (const tag of ["user:9", "{}", "{a}{b}", "{user:9", "", undefined]) {
    assert.throws(() => tagged(tag, "calls"), /^TypeError: tag must be/);
  }
  assert.throws(() => tagged("{a}", ""), /^TypeError: name must be/);
});

test(
  "CommonJS can require the package",
  { skip: !process.features.require_module && "not on this Node" },
  () => {
    const { Slide } = createRequire(import.meta.url)("redis-slide");
    assert.equal(typeof Slide, "function");
  },
);
