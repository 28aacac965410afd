"""Rate limits for a FastAPI service, or any other ASGI one: paste this in and edit the table."""

import asyncio
import hmac
import ipaddress
import logging
import math

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.routing import compile_path

ACCOUNT = "LOG 100 60s 10000 1d"
GUEST = "COUNTER 30 60s BUCKETS 10"
# What a call of the path costs (0: never limited), and a limit of the path's own for each client.
ENDPOINTS = {
    "/search": (5, None),
    "/reports/{id}": (10, "LOG 20 1h"),
    "/metrics": (0, None),
}
OTHERS = (1, None)
ROUTES = [(compile_path(path)[0], path) for path in ENDPOINTS]


class RateLimit:
    failed_open = 0  # the metric: requests that passed because Redis did not answer

    def __init__(self, app, url, secret, account_of, proxies=0, timeout=0.05):
        self.app, self.secret, self.account_of = app, secret, account_of
        self.proxies, self.timeout, self.down = proxies, timeout, False
        # The two socket timeouts bound what the client does after the call has timed out: cleaning up.
        self.redis = Redis.from_pool(BlockingConnectionPool.from_url(
            url, protocol=3, decode_responses=True, retry=Retry(NoBackoff(), 0),
            socket_timeout=timeout, socket_connect_timeout=timeout))

    async def __call__(self, scope, receive, send):
        path = next((path for regex, path in ROUTES if regex.match(scope.get("path", ""))), "")
        cost, own = ENDPOINTS.get(path, OTHERS)
        if scope["type"] != "http" or cost == 0:
            return await self.app(scope, receive, send)
        limited, headers = await self.ask_or_pass(*self.client_of(scope), path, cost, own)
        if limited:
            problem = {"type": "about:blank", "title": "Too Many Requests", "status": 429}
            response = JSONResponse(problem, 429, headers, "application/problem+json")
            return await response(scope, receive, send)

        async def send_with_headers(message):
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(headers)
            await send(message)

        await self.app(scope, receive, send_with_headers)

    def client_of(self, scope):
        headers = Headers(scope=scope)
        if account := self.account_of(headers.get("x-api-key")):
            return f"key:{account}", ACCOUNT
        # Each proxy appends the address that called it: as many entries from the right as there
        # are proxies of our own are true, and what stands before them is the caller's invention.
        hops = [hop.strip() for line in headers.getlist("x-forwarded-for") for hop in line.split(",")]
        hops.append(scope["client"][0] if scope["client"] else "")
        network = network_of(hops[-self.proxies - 1:][0])
        return f"ip:{hmac.digest(self.secret, network.encode(), 'sha256')[:8].hex()}", GUEST

    async def ask_or_pass(self, *question):
        try:
            async with asyncio.timeout(self.timeout):
                answer = await self.ask(*question)
            self.down = False
            return answer
        except (RedisError, OSError, TimeoutError) as error:
            RateLimit.failed_open += 1
            if not self.down:
                logging.warning("no request is limited: %s: %s", type(error).__name__, error)
            self.down = True
            return False, {}

    async def ask(self, client, limits, path, cost, own):
        key = f"rate:{{{client}}}"  # braces: in a cluster both keys of a client are on one node
        kind, *tiers = limits.split()
        if own is None:
            reply = await self.redis.execute_command(f"SLIDE.{kind}", key, *tiers, "COST", cost, "HEADERS")
            return reply[0], reply[5]
        async with self.redis.pipeline(transaction=False) as pipe:
            pipe.execute_command(
                "SLIDE.ALL", 2, key, f"{key}:{path}", kind, *tiers, *own.split(), "COST", cost)
            # ALL has no HEADERS, and a call that costs nothing tells what it left.
            pipe.execute_command("SLIDE.PEEK", key, *tiers, "COST", 0, "HEADERS")
            pipe.execute_command("SLIDE.PEEK", f"{key}:{path}", *own.split()[1:], "COST", 0, "HEADERS")
            (limited, *replies), *peeks = await pipe.execute()
        waits = [math.inf if reply[3] < 0 else reply[3] for reply in replies]
        worst = max((0, 1), key=lambda i: waits[i] if limited else -replies[i][2])
        headers = peeks[worst][5]
        for name in "RateLimit-Policy", "RateLimit":  # lists: both limits belong in them
            headers[name] = ", ".join(peek[5][name] for peek in peeks)
        if limited and max(waits) < math.inf:
            headers["Retry-After"] = str(math.ceil(max(waits) / 1000))
        return limited, headers


def network_of(address):
    """What a subscriber has: one IPv4 address, or the /64 around an IPv6 one."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return str(ip) if ip.version == 4 else str(ipaddress.ip_network((int(ip), 64), strict=False))
