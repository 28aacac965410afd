"""limits' own strategies, by slide and by limits' MemoryStorage, with the same hits."""

import asyncio
import random
import time
from concurrent.futures import ThreadPoolExecutor

import flask
import flask_limiter
import httpx
import limits
import limits.aio.strategies
import limits.strategies
import pytest
import slowapi
import slowapi.util
from fastapi import FastAPI, Request
from limits import RateLimitItemPerHour, RateLimitItemPerSecond
from limits.errors import ConfigurationError
from limits.storage import MemoryStorage, storage_from_string
from servers import until

import redis_slide.limits

STRATEGIES = [limits.strategies.MovingWindowRateLimiter, limits.strategies.SlidingWindowCounterRateLimiter]


@pytest.fixture
def uri(server):
    return f"slide://127.0.0.1:{server.port}/1"


@pytest.fixture
def storage(uri):
    storage = storage_from_string(uri, timeout="5s")
    yield storage
    storage.slide.close()


def test_the_schemes_are_registered(uri, server):
    for name, kind in (("", redis_slide.limits.SlideStorage), ("async+", redis_slide.limits.AsyncSlideStorage)):
        for scheme in ("slide", "slides", "slide+unix"):
            assert type(storage_from_string(f"{name}{scheme}://127.0.0.1:1")) is kind
    storage = storage_from_string(uri, timeout="5s", protocol=2)
    assert storage.check()
    storage.acquire_entry("k", 1, 60)
    assert server.client.info("keyspace")["db1"]["keys"] == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_same_hits_give_what_memory_gives(storage, strategy):
    ours, theirs = strategy(storage), strategy(MemoryStorage())
    item, chance = RateLimitItemPerHour(100), random.Random(1)
    answers = set()
    left = 3600 - time.time() % 3600  # in memory a counter's windows begin at whole hours
    time.sleep(left if left < 10 else 0)
    for _ in range(400):
        user, cost = chance.choice("abc"), chance.choice([1, 1, 2, 7, 101])
        assert ours.test(item, user, cost=cost) == theirs.test(item, user, cost=cost)
        answer = ours.hit(item, user, cost=cost)
        assert answer == theirs.hit(item, user, cost=cost)
        answers.add((cost, answer))
        here, there = ours.get_window_stats(item, user), theirs.get_window_stats(item, user)
        assert here.remaining == there.remaining
        if chance.random() < 0.01:
            ours.clear(item, user)
            theirs.clear(item, user)
            assert ours.get_window_stats(item, user).remaining == 100
    assert {(1, True), (1, False), (7, True), (7, False), (101, False)} <= answers


def test_a_moving_window_moves_as_in_memory(storage):
    strategy = limits.strategies.MovingWindowRateLimiter
    ours, theirs = strategy(storage), strategy(MemoryStorage())
    item = RateLimitItemPerSecond(3)
    hits = [(ours.hit(item), theirs.hit(item)) for _ in range(4)]
    assert hits == [(True, True)] * 3 + [(False, False)]
    here, there = ours.get_window_stats(item), theirs.get_window_stats(item)
    assert here.remaining == there.remaining == 0
    assert here.reset_time == pytest.approx(there.reset_time, abs=0.2)
    time.sleep(max(0, here.reset_time - time.time()) + 0.01)
    assert ours.hit(item)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_threads_get_exactly_the_limit(storage, strategy):
    limiter, item = strategy(storage), RateLimitItemPerHour(100)
    with ThreadPoolExecutor(50) as pool:
        assert sum(pool.map(lambda _: limiter.hit(item), range(300))) == 100


def test_async_strategies(uri):
    async def hits():
        storage = storage_from_string("async+" + uri, timeout="5s")
        item = RateLimitItemPerHour(50)
        assert await storage.check()
        for strategy in ("MovingWindowRateLimiter", "SlidingWindowCounterRateLimiter"):
            limiter = getattr(limits.aio.strategies, strategy)(storage)
            answers = await asyncio.gather(*(limiter.hit(item, "user", cost=2) for _ in range(60)))
            assert sum(answers) == 25
            assert not await limiter.test(item, "user")
            stats = await limiter.get_window_stats(item, "user")
            assert stats.remaining == 0
            assert time.time() < stats.reset_time <= time.time() + 3601
            await limiter.clear(item, "user")
            assert (await limiter.get_window_stats(item, "user")).remaining == 50
        with pytest.raises(ConfigurationError, match="fixed-window is not slide's"):
            await limits.aio.strategies.FixedWindowRateLimiter(storage).hit(item)
        await storage.slide.close()

    asyncio.run(hits())


def test_a_fixed_window_is_an_error(storage):
    limiter = limits.strategies.FixedWindowRateLimiter(storage)
    item = RateLimitItemPerHour(2)
    for call in (limiter.hit, limiter.test, limiter.get_window_stats):
        with pytest.raises(ConfigurationError, match="fixed-window is not slide's: use moving-window"):
            call(item)


@pytest.mark.parametrize("on_failure", ["open", "closed"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_frozen_server_delays_nothing(own_server, strategy, on_failure):
    storage = storage_from_string(f"slide://127.0.0.1:{own_server.port}", on_failure=on_failure)
    limiter, item = strategy(storage), RateLimitItemPerHour(2)
    until(storage.check)
    own_server.freeze()
    try:
        began = time.monotonic()
        answers = {limiter.hit(item) for _ in range(50)} | {limiter.test(item) for _ in range(50)}
        took = time.monotonic() - began
    finally:
        own_server.thaw()
    assert answers == {on_failure == "open"}
    assert took < 2
    storage.slide.close()


def three_calls(get):
    """Two a minute: the third is refused, and says when to come again."""
    responses = [get() for _ in range(3)]
    assert [response.status_code for response in responses] == [200, 200, 429]
    assert 1 <= int(responses[2].headers["Retry-After"]) <= 60


@pytest.mark.parametrize("strategy", ["moving-window", "sliding-window-counter"])
def test_slowapi(uri, strategy):
    limiter = slowapi.Limiter(
        slowapi.util.get_remote_address,
        storage_uri=uri,
        storage_options={"timeout": "5s"},
        strategy=strategy,
        headers_enabled=True,
    )
    app = FastAPI()
    app.state.limiter = limiter
    app.add_exception_handler(slowapi.errors.RateLimitExceeded, slowapi._rate_limit_exceeded_handler)

    @app.get("/")
    @limiter.limit("2/minute")
    def index(request: Request, response: slowapi.extension.Response):
        return "hello"

    async def get():
        transport = httpx.ASGITransport(app, client=("192.0.2.1", 4711))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get("/")

    three_calls(lambda: asyncio.run(get()))


@pytest.mark.parametrize("strategy", ["moving-window", "sliding-window-counter"])
def test_flask_limiter(uri, strategy):
    app = flask.Flask(__name__)
    limiter = flask_limiter.Limiter(
        flask_limiter.util.get_remote_address,
        app=app,
        storage_uri=uri,
        storage_options={"timeout": "5s"},
        strategy=strategy,
        headers_enabled=True,
    )
    limiter.limit("2/minute")(app.get("/")(lambda: "hello"))

    @app.get("/limited")
    @limiter.limit("2/minute")
    def index():
        return "hello"

    three_calls(lambda: app.test_client().get("/limited"))
