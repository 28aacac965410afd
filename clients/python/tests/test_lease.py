import asyncio
import subprocess
import sys
import time

import pytest
import redis
import redis.asyncio
from servers import until

from redis_slide import AsyncSlide, Refused, Slide

EASY = {"timeout": "5s"}


@pytest.fixture
def slide(server):
    slide = Slide(redis.Redis(port=server.port), **EASY)
    yield slide
    slide.close()


def live(server):
    return server.client.zcard("jobs")


def test_a_place_is_taken_renewed_and_released(slide, server):
    with slide.lease("jobs", 1, "600ms") as lease:
        assert lease.verdict.admitted
        assert len(lease.id) == 32
        first = lease.verdict.sent
        with pytest.raises(Refused) as refused, slide.lease("jobs", 1, "600ms"):
            pytest.fail("there is no place")
        assert 0 < refused.value.verdict.retry_after.total_seconds() <= 0.6
        time.sleep(1.5)
        assert not lease.lost
        assert lease.verdict.sent > first
        assert not slide.place("jobs", 1, "1s", "other").admitted
    assert slide.place("jobs", 1, "1s", "other").admitted
    assert slide.stats().unavailable == 0


def test_an_error_in_the_block_releases_too(slide, server):
    with pytest.raises(ZeroDivisionError), slide.lease("jobs", 1, "10s", id="mine"):
        1 / len(server.client.zrange("jobs", 0, -1)[1:])
    assert live(server) == 0


def test_asyncio(server):
    async def calls():
        slide = AsyncSlide(redis.asyncio.Redis(port=server.port), **EASY)
        async with slide.lease("jobs", 1, "600ms") as lease:
            with pytest.raises(Refused):
                async with slide.lease("jobs", 1, "600ms"):
                    pytest.fail("there is no place")
            await asyncio.sleep(1.5)
            assert not lease.lost
            assert not (await slide.place("jobs", 1, "1s", "other")).admitted
        assert (await slide.place("jobs", 1, "1s", "other")).admitted
        server.client.delete("jobs")

        async def job():
            async with slide.lease("jobs", 1, "10s"):
                await asyncio.sleep(60)

        cancelled = asyncio.create_task(job())
        while not live(server):
            await asyncio.sleep(0.01)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        assert live(server) == 0
        await slide.close()

    asyncio.run(calls())


def test_a_lease_that_another_has_taken_is_lost(slide, server, caplog):
    told = []
    with slide.lease("jobs", 1, "600ms", id="mine", on_lost=lambda: told.append(True)) as lease:
        assert slide.release("jobs", "mine") == 1
        assert slide.place("jobs", 1, "30s", "other").admitted
        until(lambda: lease.lost)
        until(lambda: told)
        slide.release("jobs", "other")
        until(lambda: not lease.lost)  # the work goes on, and takes the place that is free
    assert told == [True]
    assert [record.getMessage() for record in caplog.records] == ["the lease 'mine' of 'jobs' is lost"]
    assert live(server) == 0


def test_a_lost_lease_of_asyncio(server):
    async def calls():
        slide = AsyncSlide(redis.asyncio.Redis(port=server.port), **EASY)
        lost = asyncio.Event()
        async with slide.lease("jobs", 1, "600ms", id="mine", on_lost=lost.set) as lease:
            await slide.release("jobs", "mine")
            await slide.place("jobs", 1, "30s", "other")
            await asyncio.wait_for(lost.wait(), 10)
            assert lease.lost
        await slide.close()

    asyncio.run(calls())


def test_the_place_of_one_who_died_comes_back_by_itself(slide, server):
    script = f"""
import redis, redis_slide, time
slide = redis_slide.Slide(redis.Redis(port={server.port}), timeout="5s")
with slide.lease("jobs", 1, "900ms"):
    print("taken", flush=True)
    time.sleep(60)
"""
    holder = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "taken\n"
    time.sleep(1.2)
    assert not slide.place("jobs", 1, "1s", "other").admitted
    holder.kill()
    holder.communicate()
    died = time.monotonic()
    until(lambda: slide.place("jobs", 1, "1s", "other").admitted)
    assert time.monotonic() - died < 0.9 + 0.5


def test_an_outage_ends_no_block_and_delays_none(own_server, caplog):
    slide = Slide(redis.Redis(port=own_server.port))
    until(lambda: slide.log("k", (9, "1s")).source == "server")
    with slide.lease("jobs", 1, "900ms") as lease:
        own_server.freeze()
        until(lambda: lease.lost)
        began = time.monotonic()
    assert time.monotonic() - began < 1
    with slide.lease("jobs", 1, "900ms") as lease:
        assert lease.verdict.source == "unavailable"
        assert lease.lost
        own_server.thaw()
        until(lambda: not lease.lost)  # it has got a place after all
    closed = Slide(redis.Redis(port=own_server.port), on_failure="closed")
    own_server.kill()
    with pytest.raises(Refused), closed.lease("jobs", 1, "900ms"):
        pytest.fail("the policy is closed")
    slide.close()
    closed.close()


def test_a_wrong_lease_is_an_error(slide, server):
    with pytest.raises(TypeError, match="ttl must be a timedelta"), slide.lease("jobs", 1, 30):
        pytest.fail("a bare number")
    slide.log("jobs", (1, "60s"))
    with pytest.raises(Exception, match=r"SLIDE\.LEASE"), slide.lease("jobs", 1, "30s"):
        pytest.fail("a log")
