import asyncio
import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import httpx
import pytest

from conftest import free_port, until
from fake_model import model
from llm_gateway import Gateway

KEY = {"X-API-Key": "key"}
FLIGHT, CALLS, TOKENS = (f"llm:{{account}}:{what}" for what in ("flight", "calls", "tokens"))
AT_ONCE, MANY = 8, 1_000_000


class Watched(Gateway):
    """Counts what is on its way at once, and keeps what was settled."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.now, self.most, self.settled = 0, 0, []

    async def forward(self, flight, *rest):
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await super().forward(flight, *rest)
        finally:
            self.now -= 1

    async def settle(self, flight):
        await super().settle(flight)
        self.settled.append(flight)


@pytest.fixture
def start(redis_server, serve):
    def start(**options):
        defaults = {"at_once": AT_ONCE, "calls": (MANY, "1h"), "tokens": (MANY, "1h"), "ttl": 5,
                    "model_timeout": 0.5, "redis_timeout": 10}
        gateway = Watched(serve(model), redis_server.url, {"key": "account"}.get, **defaults | options)
        return gateway, serve(gateway)

    return start


def ask(url, **wish):
    return httpx.post(url, json={"max_tokens": 100, **wish}, headers=KEY, timeout=30, verify=False)


def used(client, key):
    """The units that are recorded."""
    return MANY - client.execute_command("SLIDE.PEEK", key, MANY, "1h")[2]


def places_taken(client):
    return AT_ONCE - client.execute_command("SLIDE.PEEK", FLIGHT, AT_ONCE, "1h")[2]


def usage(body):
    lines = [json.loads(line.removeprefix("data: ")) for line in body.splitlines() if line]
    return lines[-1]["usage"] if lines else 0


def test_an_answer_costs_what_it_used(start, redis_server):
    _, url = start()
    response = ask(url, tokens=30)
    assert (response.status_code, usage(response.text)) == (200, 30)
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["x-ratelimit-limit"] == str(MANY)
    client = redis_server.client
    until(lambda: not client.exists(FLIGHT))
    assert (used(client, CALLS), used(client, TOKENS)) == (1, 30)
    # More than the estimate is charged as well.
    assert usage(ask(url, tokens=300).text) == 300
    until(lambda: used(client, TOKENS) == 330)
    assert used(client, CALLS) == 2


@pytest.mark.parametrize("wish, status", [
    ({"fails": True}, 502),
    ({"hangs": "at once"}, 504),
])
def test_what_the_model_does_not_answer_costs_nothing(start, redis_server, wish, status):
    _, url = start()
    assert ask(url, tokens=10, **wish).status_code == status
    client = redis_server.client
    until(lambda: not client.exists(FLIGHT, CALLS, TOKENS))


def test_an_answer_that_stops_in_the_middle_costs_what_there_was(start, redis_server):
    gateway, url = start()
    with pytest.raises(httpx.RemoteProtocolError):
        ask(url, tokens=10, hangs=8)
    client = redis_server.client
    until(lambda: gateway.settled)
    assert (used(client, CALLS), used(client, TOKENS), places_taken(client)) == (1, 7, 0)


def test_a_client_that_goes_away_frees_its_place(start, redis_server):
    gateway, url = start(at_once=1)
    with httpx.stream("POST", url, json={"max_tokens": 100, "tokens": 500, "pause": 0.02}, headers=KEY,
                      timeout=30, verify=False) as response:
        lines = response.iter_lines()
        next(lines)
        assert ask(url, tokens=1).status_code == 429
    until(lambda: gateway.settled)
    assert 1 <= gateway.settled[0].used < 500
    client = redis_server.client
    assert (used(client, TOKENS), client.exists(FLIGHT)) == (gateway.settled[0].used, 0)
    assert ask(url, tokens=1).status_code == 200


def test_a_long_answer_keeps_its_place(start, redis_server):
    gateway, url = start(at_once=1, ttl=0.3)
    started = time.monotonic()
    statuses = []
    with httpx.stream("POST", url, json={"max_tokens": 100, "tokens": 60, "pause": 0.03}, headers=KEY,
                      timeout=30, verify=False) as response:
        for line in response.iter_lines():
            if line and time.monotonic() - started < 1.2:
                statuses.append(ask(url, tokens=1).status_code)
    assert time.monotonic() - started > 1.2, "it was not longer than its ttl"
    assert set(statuses) == {429}
    until(lambda: not redis_server.client.exists(FLIGHT))
    assert gateway.most == 1


def test_without_redis_requests_pass(start, redis_server):
    _, url = start(redis_timeout=0.05)
    redis_server.freeze()
    try:
        assert ask(url, tokens=3).status_code == 200
    finally:
        redis_server.thaw()


def test_wrong_requests_take_nothing(start, redis_server):
    _, url = start()
    assert httpx.post(url, json={"max_tokens": 1}, verify=False).status_code == 401
    for body in ({}, [], {"max_tokens": "many"}):
        assert httpx.post(url, json=body, headers=KEY, verify=False).status_code == 400
    assert redis_server.client.dbsize() == 0


def test_200_at_once_whatever_becomes_of_them(start, redis_server):
    """Some stream, some fail, some hang, some clients hang up: never are more on their way than there
    are places, and in the end every place is back and each token is accounted for."""
    gateway, url = start()
    chance = random.Random(5)
    ends = collections.Counter()
    answered = collections.Counter()

    async def one(client, kind, tokens):
        wish = {"max_tokens": 100, "tokens": tokens}
        wish |= {"fails": {"fails": True}, "hangs": {"hangs": "at once"}, "stops": {"hangs": tokens}}.get(kind, {})
        while True:
            try:
                async with client.stream("POST", url, json=wish, headers=KEY) as response:
                    if response.status_code == 429:
                        await response.aread()
                        assert int(response.headers["retry-after"]) >= 1
                        answered[429] += 1
                    elif kind == "leaves":
                        await anext(response.aiter_lines())
                        return ends.update([kind])
                    else:
                        body = (await response.aread()).decode()
                        assert response.status_code == {"fails": 502, "hangs": 504}.get(kind, 200)
                        answered[kind] += usage(body)
                        return ends.update([kind])
            except httpx.RemoteProtocolError:
                assert kind == "stops"
                return ends.update([kind])
            # Whoever waits for Retry-After gets in; a place is mostly free sooner.
            await asyncio.sleep(chance.uniform(0.02, 0.2))

    async def all_of_them():
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(timeout=60, limits=limits, verify=False) as client:
            kinds = ["streams"] * 120 + ["fails"] * 30 + ["hangs"] * 10 + ["stops"] * 10 + ["leaves"] * 30
            chance.shuffle(kinds)
            await asyncio.gather(*(one(client, kind, chance.randint(5, 150)) for kind in kinds))
            return collections.Counter(kinds)

    kinds = asyncio.run(all_of_them())
    assert ends == kinds
    assert answered[429] > 200, "there was no rush"
    until(lambda: len(gateway.settled) == 200 and gateway.now == 0)

    assert gateway.most == AT_ONCE, "places were passed, or never all taken"
    client = redis_server.client
    assert client.exists(FLIGHT) == 0
    assert used(client, CALLS) == kinds.total() - kinds["fails"] - kinds["hangs"]
    passed_on = collections.Counter()
    for flight in gateway.settled:
        passed_on[flight.answered] += flight.used
    assert passed_on[False] == 0
    assert used(client, TOKENS) == passed_on[True] > answered["streams"] > 0


def test_a_gateway_that_is_killed_leaves_its_places_for_one_ttl(redis_server, serve):
    port = free_port()
    environment = os.environ | {"MODEL_URL": serve(model), "REDIS_URL": redis_server.url, "LEASE_SECONDS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "--factory", "gateway_app:gateway", "--port", str(port),
         "--log-level", "warning"], cwd=pathlib.Path(__file__).parent, env=environment)
    url, client = f"http://127.0.0.1:{port}", redis_server.client
    flight = "llm:{1}:flight"
    places = lambda: 5 - client.execute_command("SLIDE.PEEK", flight, 5, "1h")[2]

    async def killed_on_the_way():
        async with httpx.AsyncClient(timeout=30, verify=False) as clients:
            async def one():
                with pytest.raises(httpx.HTTPError):
                    await clients.post(url, json={"max_tokens": 9, "tokens": 9, "pause": 30},
                                       headers={"X-API-Key": "demo-key-1"})

            requests = asyncio.gather(*(one() for _ in range(5)))
            while places() < 5:
                await asyncio.sleep(0.02)
            # They are renewed, so they are still there after more than one ttl.
            await asyncio.sleep(1.5)
            assert places() == 5
            process.send_signal(signal.SIGKILL)
            await requests

    try:
        until(lambda: accepts(port))
        asyncio.run(killed_on_the_way())
        killed = time.monotonic()
        assert places() == 5
        until(lambda: places() == 0, seconds=5)
        assert time.monotonic() - killed < 1.2
    finally:
        process.kill()
        process.wait()


def accepts(port):
    try:
        httpx.get(f"http://127.0.0.1:{port}", verify=False)
        return True
    except httpx.HTTPError:
        return False
