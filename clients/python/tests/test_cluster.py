import asyncio
import time

import pytest
import redis
import redis.asyncio
from servers import Server, free_port, until

from redis_slide import AsyncSlide, Log, Slide, SlideError, tagged

WINDOW = (100, "60s")


@pytest.fixture
def node(tmp_path):
    """A cluster of one."""
    node = Server(tmp_path, "--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    node.client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    until(lambda: node.client.cluster("info")["cluster_state"] == "ok")
    yield node
    node.kill()


def test_threads(node):
    cluster = redis.RedisCluster("127.0.0.1", node.port, socket_timeout=1)
    slide = Slide(cluster, timeout="5s")
    assert slide.log("k", WINDOW).headers["X-RateLimit-Remaining"] == "99"
    both = {tagged("{user:9}", "calls"): Log(WINDOW), tagged("{user:9}", "tokens"): Log(WINDOW)}
    assert slide.all(both).admitted
    with pytest.raises(SlideError, match="same key slot"):
        slide.all({"a": Log(WINDOW), "b": Log(WINDOW)})
    quick = Slide(cluster)
    node.freeze()
    try:
        began = time.monotonic()
        verdicts = [quick.log("k", WINDOW) for _ in range(20)]
        took = time.monotonic() - began
    finally:
        node.thaw()
    assert {verdict.source for verdict in verdicts} == {"unavailable"}
    assert took < 1
    until(lambda: quick.log("k", WINDOW).source == "server")


def test_tasks(node):
    async def calls():
        cluster = redis.asyncio.RedisCluster("127.0.0.1", node.port, socket_timeout=1)
        slide = AsyncSlide(cluster, timeout="5s")
        assert (await slide.log("k", WINDOW)).headers["X-RateLimit-Remaining"] == "99"
        quick = AsyncSlide(cluster)
        node.freeze()
        try:
            began = time.monotonic()
            verdicts = await asyncio.gather(*(quick.log("k", WINDOW) for _ in range(20)))
            took = time.monotonic() - began
        finally:
            node.thaw()
        assert {verdict.source for verdict in verdicts} == {"unavailable"}
        assert took < 1
        ends = time.monotonic() + 10
        while (await quick.log("k", WINDOW)).source != "server":
            assert time.monotonic() < ends
            await asyncio.sleep(0.01)
        await cluster.aclose()

    asyncio.run(calls())
