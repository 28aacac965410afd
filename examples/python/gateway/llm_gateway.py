"""A gateway in front of a language model: for each account so many requests at once, calls a minute and
tokens a minute, decided together. It passes on what the model streams, and counts what was used."""

import asyncio
import json
import logging
import math
import time
import uuid

import httpx
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

AT_ONCE = 5
CALLS = (60, "60s")
TOKENS = (100_000, "60s")
# How long a place outlives a gateway that dies. A gateway that lives renews it three times in that.
TTL_SECONDS = 60
MODEL_TIMEOUT = 30  # seconds without a word from the model
REDIS_TIMEOUT = 0.25
PASSED_ON = ["content-type"]


class Flight:
    """One request on its way: who it is, when it began, and what it has used."""

    def __init__(self, account, estimate):
        # Braces: in a cluster the keys of an account are on one node.
        self.places, self.calls, self.tokens = (f"llm:{{{account}}}:{what}" for what in ("flight", "calls", "tokens"))
        self.id, self.started = uuid.uuid4().hex, time.monotonic()
        self.estimate, self.used = estimate, 0
        self.recorded = self.answered = False

    def age(self):
        """How long ago the units were recorded, at most: the stopwatch began before the call."""
        return f"{math.ceil((time.monotonic() - self.started) * 1000)}ms"


class Gateway:
    def __init__(self, model_url, redis_url, account_of, at_once=AT_ONCE, calls=CALLS, tokens=TOKENS,
                 ttl=TTL_SECONDS, model_timeout=MODEL_TIMEOUT, redis_timeout=REDIS_TIMEOUT):
        self.account_of, self.at_once, self.calls, self.tokens = account_of, at_once, calls, tokens
        self.ttl, self.redis_timeout = ttl, redis_timeout
        self.model = httpx.AsyncClient(base_url=model_url, limits=httpx.Limits(max_connections=None), verify=False,
                                       timeout=httpx.Timeout(model_timeout, pool=None))
        self.redis = Redis.from_pool(BlockingConnectionPool.from_url(
            redis_url, protocol=3, decode_responses=True, retry=Retry(NoBackoff(), 0),
            socket_timeout=redis_timeout, socket_connect_timeout=redis_timeout))

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return
        request = Request(scope, receive, send)
        account = self.account_of(request.headers.get("x-api-key"))
        if account is None:
            return await problem(401, "Unauthorized")(scope, receive, send)
        try:
            body = await request.body()
            estimate = len(body) // 4 + int(json.loads(body)["max_tokens"])
        except ClientDisconnect:
            return
        except (ValueError, KeyError, TypeError):
            return await problem(400, "Bad Request")(scope, receive, send)
        flight = Flight(account, estimate)
        limited, headers = await self.take(flight)
        if limited:
            return await problem(429, "Too Many Requests", headers)(scope, receive, send)
        try:
            await self.carry(flight, body, headers, request, send)
        finally:
            # Whatever happened, also when the server shuts down: the place is given back.
            await asyncio.shield(self.settle(flight))

    async def take(self, flight):
        """One call takes a place, a call and the estimated tokens, or nothing of these."""
        (calls, calls_window), (tokens, tokens_window) = self.calls, self.tokens
        try:
            limited, *judged, headers = await self.ask(
                "SLIDE.ALL", 3, flight.places, flight.calls, flight.tokens,
                "LEASE", self.at_once, self.lifetime(), flight.id,
                "LOG", calls, calls_window,
                "LOG", tokens, tokens_window, "COST", flight.estimate, "HEADERS")
        except (RedisError, OSError, TimeoutError) as error:
            # It passes. It may have been recorded all the same: the place ends by itself.
            logging.warning("a request is not limited: %s: %s", type(error).__name__, error)
            return False, {}
        # A call with a wait was over a limit and not recorded, also while slide.enforce is off.
        flight.recorded = all(reply[3] == 0 for reply in judged)
        return limited, headers

    async def carry(self, flight, body, headers, request, send):
        """Passes the request on until the model is done, or the client is gone."""
        work = asyncio.create_task(self.forward(flight, body, headers, send))
        beat = asyncio.create_task(self.keep_alive(flight))
        gone = asyncio.create_task(wait_until_gone(request))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, beat, gone):
                task.cancel()
            ended, *_ = await asyncio.gather(work, beat, gone, return_exceptions=True)
        if isinstance(ended, Exception):
            raise ended

    async def forward(self, flight, body, headers, send):
        try:
            async with self.model.stream("POST", "/generate", content=body) as answer:
                if answer.status_code >= 500:
                    return await respond(send, 502, {}, b"")
                flight.answered = True
                kept = {name: answer.headers[name] for name in PASSED_ON if name in answer.headers}
                await start(send, answer.status_code, {**kept, **headers})
                async for line in answer.aiter_lines():
                    flight.used = max(flight.used, tokens_so_far(line))
                    await send({"type": "http.response.body", "body": f"{line}\n".encode(), "more_body": True})
            await send({"type": "http.response.body"})
        except httpx.HTTPError as error:
            if flight.answered:
                raise  # the client has to see that its answer is cut short
            await respond(send, 504 if isinstance(error, httpx.TimeoutException) else 502, {}, b"")

    async def keep_alive(self, flight):
        """Renews the place while the request is on its way. FORCE, because it is, whatever Redis has
        forgotten meanwhile."""
        while flight.recorded:
            await asyncio.sleep(self.ttl / 3)
            try:
                await self.ask(
                    "SLIDE.LEASE", flight.places, self.at_once, self.lifetime(), flight.id, "FORCE")
            except (RedisError, OSError, TimeoutError) as error:
                logging.warning("a place is not renewed: %s: %s", type(error).__name__, error)

    async def settle(self, flight):
        """Corrects the estimate and gives the place back, in one transaction. What cannot be settled
        ends by itself: the place after its ttl, the units with their window."""
        try:
            async with asyncio.timeout(self.redis_timeout), self.redis.pipeline(transaction=True) as transaction:
                spare = flight.estimate - flight.used
                if flight.recorded and spare > 0:
                    transaction.execute_command("SLIDE.REFUND", flight.tokens, spare, "AGE", flight.age())
                if flight.recorded and spare < 0:
                    transaction.execute_command("SLIDE.LOG", flight.tokens, *self.tokens, "COST", -spare, "FORCE")
                if flight.recorded and not flight.answered:
                    transaction.execute_command("SLIDE.REFUND", flight.calls, 1, "AGE", flight.age())
                # Even if the call got no reply: it may have taken a place.
                transaction.execute_command("SLIDE.RELEASE", flight.places, flight.id)
                await transaction.execute()
        except (RedisError, OSError, TimeoutError) as error:
            logging.warning("not settled: %s: %s", type(error).__name__, error)

    async def ask(self, *words):
        async with asyncio.timeout(self.redis_timeout):
            return await self.redis.execute_command(*words)

    def lifetime(self):
        return f"{round(self.ttl * 1000)}ms"


def tokens_so_far(line):
    """What the model says that it has used, on each line of its stream."""
    try:
        return int(json.loads(line.removeprefix("data: "))["usage"])
    except (ValueError, KeyError, TypeError):
        return 0


async def wait_until_gone(request):
    while (await request.receive())["type"] != "http.disconnect":
        pass


def problem(status, title, headers=None):
    body = {"type": "about:blank", "title": title, "status": status}
    return JSONResponse(body, status, headers, "application/problem+json")


async def respond(send, status, headers, body):
    await start(send, status, headers)
    await send({"type": "http.response.body", "body": body})


async def start(send, status, headers):
    pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
