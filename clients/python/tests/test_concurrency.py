import asyncio
from concurrent.futures import ThreadPoolExecutor

import redis
import redis.asyncio

from redis_slide import AsyncSlide, Log, Slide

WINDOWS = (100, "1h")


def test_50_threads_get_exactly_the_limit(server, protocol):
    client = redis.Redis(port=server.port, protocol=protocol, client_name="crowd")
    slide = Slide(client, timeout="10s", connections=20)
    with ThreadPoolExecutor(50) as pool:
        assert sum(v.admitted for v in pool.map(lambda _: slide.log("k", WINDOWS), range(500))) == 100
        assert sum(v.admitted for v in pool.map(lambda _: slide.counter("c", WINDOWS), range(500))) == 100
        both = {"k2": Log(WINDOWS), "c2": Log((90, "1h"))}
        assert sum(v.admitted for v in pool.map(lambda _: slide.all(both), range(500))) == 90
    stats = slide.stats()
    assert stats.calls == 1500 == stats.admitted + stats.limited + stats.remembered
    assert 1 < sum(each["name"] == "crowd" for each in server.client.client_list()) <= 20
    slide.close()


def test_50_tasks_get_exactly_the_limit(server, protocol):
    async def calls():
        client = redis.asyncio.Redis(port=server.port, protocol=protocol)
        slide = AsyncSlide(client, timeout="10s", connections=20)
        logs = await asyncio.gather(*(slide.log("k", WINDOWS) for _ in range(500)))
        counters = await asyncio.gather(*(slide.counter("c", WINDOWS) for _ in range(500)))
        await slide.close()
        return sum(v.admitted for v in logs), sum(v.admitted for v in counters)

    assert asyncio.run(calls()) == (100, 100)
