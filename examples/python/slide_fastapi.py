"""Rate limits for a FastAPI service, or any other ASGI one: paste this in and edit the table."""

import asyncio
import hmac
import ipaddress
import logging
import math
import time

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.routing import compile_path

ACCOUNT = "LOG 100 60s 10000 1d"
GUEST = "COUNTER 30 60s BUCKETS 10"
# What a call of the path costs (0: never limited), and how often each client may call the path itself.
ENDPOINTS = {
    "/search": (5, None),
    "/reports/{id}": (10, "LOG 2 1h"),
    "/metrics": (0, None),
}
OTHERS = (1, None)
# A request that one of these answers costs nothing: what it needed has failed.
GIVE_BACK = {502, 503, 504}
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
        started = time.monotonic()
        charges = self.charges(scope, path, cost, own)
        limited, recorded, headers = await self.ask_or_pass(charges)
        if limited:
            problem = {"type": "about:blank", "title": "Too Many Requests", "status": 429}
            response = JSONResponse(problem, 429, headers, "application/problem+json")
            return await response(scope, receive, send)
        status = None

        async def send_with_headers(message):
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update(headers)
            await send(message)

        await self.app(scope, receive, send_with_headers)
        if recorded and status in GIVE_BACK:
            await self.give_back(charges, started)

    def charges(self, scope, path, cost, own):
        """What a request takes: a key, its limits and a cost, for each limit that it has."""
        client, limits = self.client_of(scope)
        key = f"rate:{{{client}}}"  # braces: in a cluster both keys of a client are on one node
        return [(key, limits, cost)] + ([(f"{key}:{path}", own, 1)] if own else [])

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

    async def ask_or_pass(self, charges):
        try:
            async with asyncio.timeout(self.timeout):
                answer = await self.ask(charges)
            self.down = False
            return answer
        except (RedisError, OSError, TimeoutError) as error:
            RateLimit.failed_open += 1
            if not self.down:
                logging.warning("no request is limited: %s: %s", type(error).__name__, error)
            self.down = True
            return False, False, {}

    async def ask(self, charges):
        keys = [key for key, _, _ in charges]
        clauses = [word for _, limits, cost in charges for word in (*limits.split(), "COST", cost)]
        limited, *judged, headers = await self.redis.execute_command(
            "SLIDE.ALL", len(keys), *keys, *clauses, "HEADERS")
        # A call with a wait was over a limit and not recorded, also while slide.enforce is off.
        return limited, all(reply[3] == 0 for reply in judged), headers

    async def give_back(self, charges, started):
        """Gives back what was recorded at that moment. What cannot be given back expires."""
        age = math.ceil((time.monotonic() - started) * 1000)
        try:
            async with asyncio.timeout(self.timeout), self.redis.pipeline(transaction=False) as pipe:
                for key, _, cost in charges:
                    pipe.execute_command("SLIDE.REFUND", key, cost, "AGE", f"{age}ms")
                await pipe.execute()
        except (RedisError, OSError, TimeoutError) as error:
            logging.warning("not given back: %s: %s", type(error).__name__, error)


def network_of(address):
    """What a subscriber has: one IPv4 address, or the /64 around an IPv6 one."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return str(ip) if ip.version == 4 else str(ipaddress.ip_network((int(ip), 64), strict=False))
