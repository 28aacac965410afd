"""Keys for those who are limited: by their API key, else by a keyed hash of their address."""

import hashlib
import hmac
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

UNIX: Final = "unix"
"""In `trusted`: whoever calls through a Unix socket, where there is no address."""


def api_key(value: str) -> str:
    """The key of an API key: a hash, so that no list of credentials lies in Redis.

    Only for keys that have been checked, or anybody gets a new limit with every made-up one.
    """
    return f"key:{hashlib.sha256(value.encode()).digest()[:16].hex()}"


def ip_key(address: str, secret: str | bytes) -> str:
    """The key of an address: HMAC-SHA-256 under `secret`, so that no list of addresses lies in Redis.

    IPv6 counts by its /64, which is what one subscriber has, and IPv4 in IPv6 as IPv4.
    """
    key = secret.encode() if isinstance(secret, str) else secret
    if not key:
        raise ValueError("secret must not be empty: without one, addresses can be found by trying them all")
    ip = _parse(address)
    if ip is None:
        raise ValueError(f"address must be an IPv4 or IPv6 address, got {address!r}")
    network = str(ip) if isinstance(ip, IPv4Address) else str(IPv6Network((int(ip), 64), strict=False))
    return f"ip:{hmac.digest(key, network.encode(), 'sha256')[:16].hex()}"


def client_ip(peer: str | None, forwarded: str | Iterable[str], trusted: Iterable[str]) -> str:
    """The address of the client: the nearest one that is not a proxy of your own.

    `peer` is the address of the connection, `forwarded` the X-Forwarded-For header or headers, `trusted` your
    proxies as networks, such as `["10.0.0.0/8"]` (and "unix" for a proxy on a Unix socket). The list is read
    from the right, only as far as each address is a trusted proxy's: what is left of that anybody can write.
    """
    names = set(trusted)
    networks = [ip_network(name) for name in names if name != UNIX]
    headers = [forwarded] if isinstance(forwarded, str) else list(forwarded)
    hops = [hop.strip() for header in headers for hop in header.split(",")]
    client = peer or ""
    ip = _parse(client)
    while hops and (any(ip in network for network in networks) if ip else not client and UNIX in names):
        hop = hops.pop()
        if (ip := _parse(hop)) is None:
            break  # not an address: the proxy that wrote it is the last one known
        client = str(ip)
    return client


def tagged(tag: str, name: str) -> str:
    """A key with a hash tag: in a cluster, all keys of one `all` have the same. `tagged("{user:9}", "calls")`"""
    if not (tag.startswith("{") and tag.endswith("}") and len(tag) > 2) or "}" in tag[1:-1]:
        raise ValueError(f"tag must be text in braces, such as '{{user:9}}', got {tag!r}")
    return f"{tag}:{name}"


def _parse(text: str) -> IPv4Address | IPv6Address | None:
    """An address, also one with a port: 192.0.2.1:4711 or [2001:db8::1]:4711."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        ip = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(ip, "ipv4_mapped", None) or ip
