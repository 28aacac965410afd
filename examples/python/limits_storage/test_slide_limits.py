"""limits' own strategies, on the module and on limits' MemoryStorage, with the same hits."""

import asyncio
import random
import time
from concurrent.futures import ThreadPoolExecutor

import flask
import flask_limiter
import httpx
import limits.aio.strategies
import limits.strategies
import pytest
import slowapi
import slowapi.util
from fastapi import FastAPI, Request
from limits import RateLimitItemPerHour, RateLimitItemPerSecond
from limits.storage import MemoryStorage, storage_from_string

import slide_limits

STRATEGIES = [limits.strategies.MovingWindowRateLimiter, limits.strategies.SlidingWindowCounterRateLimiter]


@pytest.fixture
def uri(redis_server):
    return redis_server.url.replace("redis://", "slide://")


@pytest.fixture
def storage(uri):
    return storage_from_string(uri)


def test_the_schemes_are_registered(uri):
    assert type(storage_from_string(uri)) is slide_limits.SlideStorage
    assert type(storage_from_string("async+" + uri)) is slide_limits.AsyncSlideStorage
    assert storage_from_string(uri).check()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_same_hits_give_what_memory_gives(storage, strategy):
    ours, theirs = strategy(storage), strategy(MemoryStorage())
    item, chance = RateLimitItemPerHour(100), random.Random(1)
    answers = set()
    away_from_the_end_of_a_window(3600)
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


def away_from_the_end_of_a_window(seconds):
    """In memory a counter's windows begin at whole multiples since the epoch: for the hits to be in one."""
    left = seconds - time.time() % seconds
    if left < 5:
        time.sleep(left)


def test_a_moving_window_moves_as_in_memory(storage):
    strategy = limits.strategies.MovingWindowRateLimiter
    ours, theirs = strategy(storage), strategy(MemoryStorage())
    item = RateLimitItemPerSecond(3)
    hits = [(ours.hit(item), theirs.hit(item)) for _ in range(4)]
    assert hits == [(True, True)] * 3 + [(False, False)]
    here, there = ours.get_window_stats(item), theirs.get_window_stats(item)
    assert here.remaining == there.remaining == 0
    assert here.reset_time == pytest.approx(there.reset_time, abs=0.1)
    time.sleep(max(0, here.reset_time - time.time()) + 0.002)
    assert ours.hit(item)


def a_window_of_2_s_begins():
    time.sleep(2 - time.time() % 2)


def a_user_whose_windows_begin_with_memorys(item, window):
    """A counter's windows begin at a moment that its key determines, by the key's 64-bit FNV-1a hash."""
    def phase(user):
        hashed = 0xCBF29CE484222325
        for byte in slide_limits.counter(f"LIMITS:{item.key_for(user)}").encode():
            hashed = (hashed ^ byte) * 0x100000001B3 % 2**64
        return hashed % window

    return next(user for user in map(str, range(100_000)) if phase(user) < 3)


def test_a_counter_weighs_the_window_before_as_in_memory(storage):
    strategy = limits.strategies.SlidingWindowCounterRateLimiter
    ours, theirs = strategy(storage), strategy(MemoryStorage())
    item = RateLimitItemPerSecond(10, 2)
    user = a_user_whose_windows_begin_with_memorys(item, 2000)
    a_window_of_2_s_begins()
    assert all(ours.hit(item, user) and theirs.hit(item, user) for _ in range(10))
    assert not ours.hit(item, user) and not theirs.hit(item, user)
    a_window_of_2_s_begins()
    passed = [0, 0]
    for _ in range(40):
        # limits rounds the weighed count down first: it lets up to one unit more through.
        remaining = [limiter.get_window_stats(item, user).remaining for limiter in (ours, theirs)]
        assert remaining[1] - remaining[0] in (0, 1, -1), remaining
        passed[0] += ours.hit(item, user)
        passed[1] += theirs.hit(item, user)
        assert passed[1] - passed[0] in (0, 1, -1), passed
        time.sleep(0.04)
    assert 6 <= passed[0] <= 10


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_test_and_a_hit_never_differ(storage, strategy):
    limiter, item, chance = strategy(storage), RateLimitItemPerSecond(5), random.Random(2)
    deadline = time.monotonic() + 2.5
    asked = differ = 0
    while time.monotonic() < deadline:
        cost = chance.choice([1, 2, 3])
        asked += 1
        differ += limiter.test(item, cost=cost) != limiter.hit(item, cost=cost)
    # The clock ticks between the two calls, and only then may they differ.
    assert differ <= 0.02 * asked + 3, (differ, asked)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_threads_get_exactly_the_limit(storage, strategy):
    limiter, item = strategy(storage), RateLimitItemPerHour(100)
    with ThreadPoolExecutor(50) as pool:
        assert sum(pool.map(lambda _: limiter.hit(item), range(300))) == 100


def test_strategies_of_one_item_keep_apart(storage):
    item = RateLimitItemPerHour(2)
    for strategy in limits.strategies.STRATEGIES.values():
        limiter = strategy(storage)
        assert [limiter.hit(item, "user") for _ in range(3)] == [True, True, False]
    assert storage.reset() == 3


def test_async_strategies(uri):
    async def hits():
        storage = storage_from_string("async+" + uri)
        item = RateLimitItemPerHour(50)
        for strategy in ("MovingWindowRateLimiter", "SlidingWindowCounterRateLimiter"):
            limiter = getattr(limits.aio.strategies, strategy)(storage)
            answers = await asyncio.gather(*(limiter.hit(item, "user", cost=2) for _ in range(60)))
            assert sum(answers) == 25
            assert not await limiter.test(item, "user")
            stats = await limiter.get_window_stats(item, "user")
            assert stats.remaining == 0 and time.time() < stats.reset_time <= time.time() + 3601
            await limiter.clear(item, "user")
            assert (await limiter.get_window_stats(item, "user")).remaining == 50

    asyncio.run(hits())


def three_calls(get):
    """Two a minute: the third is refused, and says when to come again."""
    responses = [get() for _ in range(3)]
    assert [response.status_code for response in responses] == [200, 200, 429]
    assert 1 <= int(responses[2].headers["Retry-After"]) <= 60


@pytest.mark.parametrize("strategy", ["moving-window", "sliding-window-counter"])
def test_slowapi(uri, serve, strategy):
    limiter = slowapi.Limiter(
        slowapi.util.get_remote_address, storage_uri=uri, strategy=strategy, headers_enabled=True)
    app = FastAPI()
    app.state.limiter = limiter
    app.add_exception_handler(slowapi.errors.RateLimitExceeded, slowapi._rate_limit_exceeded_handler)

    @app.get("/")
    @limiter.limit("2/minute")
    def index(request: Request, response: slowapi.extension.Response):
        return "hello"

    url = serve(app)
    three_calls(lambda: httpx.get(url))


@pytest.mark.parametrize("strategy", ["moving-window", "sliding-window-counter"])
def test_flask_limiter(uri, strategy):
    app = flask.Flask(__name__)
    limiter = flask_limiter.Limiter(
        flask_limiter.util.get_remote_address, app=app, storage_uri=uri, strategy=strategy,
        headers_enabled=True)

    @app.get("/")
    @limiter.limit("2/minute")
    def index():
        return "hello"

    three_calls(lambda: app.test_client().get("/"))
