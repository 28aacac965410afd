"""The bound on time, the policy, the log and recovery, in each kind of outage."""

import asyncio
import socket
import statistics
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
import redis
import redis.asyncio
from servers import MODULE, Server, free_port, until

from redis_slide import AsyncSlide, Slide

WINDOW = (1000, "60s")
# A loaded machine may stop a process for a while; what must not be there are seconds of waiting in each call.
MEDIAN, WORST = 0.35, 1.5
# Where lines in the log are counted: less than a machine that is busy for a moment takes must not be an outage.
EASY = {"timeout": "200ms"}


def timed(slide, calls=8, pause=0.11, median=MEDIAN):
    """The verdicts of some calls, far enough apart that each one tries the server."""
    verdicts, times = [], []
    for number in range(calls):
        began = time.monotonic()
        verdicts.append(slide.log(f"k{number}", WINDOW))
        times.append(time.monotonic() - began)
        time.sleep(pause)
    assert statistics.median(times) < median, times
    assert max(times) < WORST, times
    return verdicts


def fails(slide, admitted=True, median=MEDIAN):
    verdicts = timed(slide, median=median)
    assert {verdict.source for verdict in verdicts} == {"unavailable"}
    assert {verdict.admitted for verdict in verdicts} == {admitted}
    assert not any(verdict.headers or verdict.over for verdict in verdicts)


def recovers(slide):
    until(lambda: slide.log("recovered", WINDOW).source == "server")


def began_and_ended(caplog, times=1):
    """One log line when an outage begins, and one when it ends."""
    lines = [record.getMessage() for record in caplog.records if record.name == "redis_slide"]
    assert len(lines) == 2 * times, lines
    assert all("gives no answer" in line for line in lines[::2])
    assert all("answers again after" in line for line in lines[1::2])


@contextmanager
def frozen(server):
    server.freeze()
    try:
        yield
    finally:
        server.thaw()


@pytest.mark.parametrize("on_failure", ["open", "closed"])
def test_a_frozen_server(slide_to, own_server, caplog, on_failure):
    slide = slide_to(own_server.port, on_failure=on_failure, **EASY)
    recovers(slide)
    caplog.clear()
    before = slide.stats().outages
    with frozen(own_server):
        fails(slide, admitted=on_failure == "open")
    recovers(slide)
    began_and_ended(caplog)
    stats = slide.stats()
    assert stats.outages - before == 1
    assert stats.calls == stats.admitted + stats.limited + stats.unavailable


def test_a_server_that_is_frozen_when_the_first_call_comes(slide_to, own_server):
    slide = slide_to(own_server.port)  # 50 ms, as by default
    with frozen(own_server):
        fails(slide, median=0.15)
    recovers(slide)


def test_a_killed_server_and_its_restart(slide_to, own_server, caplog):
    slide = slide_to(own_server.port, **EASY)
    recovers(slide)
    caplog.clear()
    own_server.kill()
    fails(slide)
    own_server.start()
    recovers(slide)
    began_and_ended(caplog)


def test_a_restart_between_two_calls_is_no_outage(slide_to, own_server):
    slide = slide_to(own_server.port, timeout="5s")
    assert slide.log("k", WINDOW).source == "server"
    own_server.kill()
    own_server.start()
    assert slide.log("k", WINDOW).source == "server"
    assert slide.stats().outages == 0


def test_a_refused_connection(slide_to, tmp_path, caplog):
    slide = slide_to(free_port(), **EASY)
    fails(slide)
    assert "unavailable=8" in str(slide.stats())
    assert len(caplog.records) == 1


def test_a_host_that_never_answers_a_connection(slide_to):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        # A full queue of connections: the next one gets no answer at all.
        port = listener.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        fails(slide_to(port, **EASY))
        for each in waiting:
            each.close()


def test_closing_in_an_outage_leaves_nothing_behind(own_server, caplog):
    async def calls():
        slide = AsyncSlide(redis.asyncio.Redis(port=own_server.port, protocol=3))
        with frozen(own_server):
            await asyncio.gather(*(slide.log("k", WINDOW) for _ in range(20)))
            await slide.close()
            assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(calls())
    assert [record.name for record in caplog.records] == ["redis_slide"]


def test_a_server_without_the_module(slide_to, bare_server, caplog):
    slide = slide_to(bare_server.port, timeout="5s")  # it is its answer that is the outage
    fails(slide)
    assert "unknown command" in caplog.records[0].getMessage()
    assert len(caplog.records) == 1


def test_a_server_that_gets_the_module_later(slide_to, bare_server, caplog):
    slide = slide_to(bare_server.port, **EASY)
    fails(slide)
    bare_server.kill()
    bare_server.options = ["--loadmodule", MODULE]
    bare_server.start()
    recovers(slide)
    began_and_ended(caplog)


@pytest.mark.parametrize("line", [{"delay": 0.5}, {"every_byte": 0.03}], ids=["late", "byte by byte"])
def test_a_slow_line(slide_to, server, proxy, line, caplog):
    slow = proxy(server.port)
    slide = slide_to(slow.port, **EASY)
    recovers(slide)
    caplog.clear()
    for name, value in line.items():
        setattr(slow, name, value)
    fails(slide)
    slow.delay = slow.every_byte = 0
    recovers(slide)
    began_and_ended(caplog)


def test_a_line_that_is_slow_to_connect_is_an_outage_for_a_while_only(slide_to, server, proxy):
    # HELLO and the two CLIENT SETINFO take 40 ms each: more than a call has, but the connection gets there.
    slide = slide_to(proxy(server.port, delay=0.04).port, timeout="100ms")
    assert slide.log("k", WINDOW).source == "unavailable"
    until(lambda: slide.log("k", WINDOW).source == "server")


def test_a_long_timeout_is_waited_for(slide_to, server, proxy):
    slow = proxy(server.port)
    slide = slide_to(slow.port, timeout="10s")
    slide.log("k", WINDOW)
    slow.delay = 2.5
    assert slide.log("k", WINDOW).source == "server"


def test_a_late_reply_is_never_taken_for_that_of_the_next_call(slide_to, server, proxy):
    slow = proxy(server.port)
    slide = slide_to(slow.port, timeout="100ms")
    recovers(slide)
    for number in range(5):
        slow.delay = 0.2
        assert slide.log("late", (11, "60s")).source == "unavailable"
        slow.delay = 0
        until(lambda n=number: slide.peek(f"next{n}", (22, "60s")).source == "server")
        for _ in range(20):
            verdict = slide.log(f"next{number}", (33, "60s"))
            assert verdict.source == "unavailable" or verdict.limit == 33


def test_an_exhausted_pool_of_threads(own_server, caplog):
    slide = Slide(redis.Redis(port=own_server.port), connections=1, **EASY)
    until(lambda: slide.log("k", WINDOW).source == "server")
    caplog.clear()
    took = []

    def call():
        began = time.monotonic()
        slide.log("k", WINDOW)
        took.append(time.monotonic() - began)

    with frozen(own_server):
        threads = [threading.Thread(target=call) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(took) == 20
    assert statistics.median(took) < 2 * MEDIAN
    assert max(took) < WORST
    until(lambda: slide.log("k", WINDOW).source == "server")
    began_and_ended(caplog)
    slide.close()


def test_an_exhausted_pool_of_tasks(own_server, caplog):
    async def calls():
        slide = AsyncSlide(redis.asyncio.Redis(port=own_server.port), connections=1, **EASY)
        while (await slide.log("k", WINDOW)).source != "server":
            await asyncio.sleep(0.01)
        caplog.clear()
        with frozen(own_server):
            began = time.monotonic()
            verdicts = await asyncio.gather(*(slide.log("k", WINDOW) for _ in range(20)))
            took = time.monotonic() - began
        assert {verdict.source for verdict in verdicts} == {"unavailable"}
        assert took < 2 * MEDIAN
        while (await slide.log("k", WINDOW)).source != "server":
            await asyncio.sleep(0.01)
        await slide.close()

    asyncio.run(calls())
    began_and_ended(caplog)


def test_an_outage_piles_up_neither_connections_nor_calls(own_server, proxy, caplog):
    """Ten thousand calls of 50 threads: few of them wait, and few connections are made."""
    line = proxy(own_server.port)
    slide = Slide(redis.Redis(port=line.port), **EASY)
    until(lambda: slide.log("k", WINDOW).source == "server")
    before, line.delay = slide.stats().outages, 5
    slide.log("k", WINDOW)
    connections, began, took = line.connections, time.monotonic(), []

    def calls():
        for _ in range(200):
            started = time.monotonic()
            assert slide.log("k", WINDOW).source == "unavailable"
            took.append(time.monotonic() - started)
            time.sleep(0.005)

    threads = [threading.Thread(target=calls) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - began
    assert len(took) == 10_000
    assert sum(each > 0.15 for each in took) < 10_000 / 20
    assert line.connections - connections <= seconds / 0.1 + 2
    assert slide.stats().outages - before == 1
    slide.close()


def test_a_cancelled_call_leaves_its_connection_to_nobody(server, proxy):
    async def calls():
        slow = proxy(server.port)
        slide = AsyncSlide(redis.asyncio.Redis(port=slow.port), timeout="5s", connections=2)
        await slide.log("k", (33, "60s"))
        for _ in range(5):
            slow.delay = 0.1
            call = asyncio.create_task(slide.log("other", (11, "60s")))
            await asyncio.sleep(0.03)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            slow.delay = 0
            verdicts = await asyncio.gather(*(slide.log("k", (33, "60s")) for _ in range(4)))
            assert {(verdict.source, verdict.limit) for verdict in verdicts} == {("server", 33)}
        assert slide.stats().outages == 0
        await slide.close()

    asyncio.run(calls())


def test_a_cancelled_probe_does_not_end_the_probing(own_server):
    async def calls():
        slide = AsyncSlide(redis.asyncio.Redis(port=own_server.port), timeout="500ms")
        own_server.freeze()
        assert (await slide.log("k", WINDOW)).source == "unavailable"
        for _ in range(3):
            probe = asyncio.create_task(slide.log("k", WINDOW))
            await asyncio.sleep(0.01)
            probe.cancel()
            await asyncio.gather(probe, return_exceptions=True)
        own_server.thaw()
        ended = time.monotonic() + 5
        while (await slide.log("k", WINDOW)).source != "server":
            assert time.monotonic() < ended
            await asyncio.sleep(0.01)
        await slide.close()

    asyncio.run(calls())


def test_a_busy_event_loop_is_no_outage(server, proxy):
    async def calls():
        slow = proxy(server.port)
        slide = AsyncSlide(redis.asyncio.Redis(port=slow.port), timeout="400ms")
        while (await slide.log("k", WINDOW)).source != "server":
            pass
        slow.delay = 0.2
        call = asyncio.create_task(slide.log("k", WINDOW))
        await asyncio.sleep(0.1)
        time.sleep(0.6)  # the reply comes while the loop is blocked, for longer than a call may take
        verdict = await call
        await slide.close()
        return verdict.source

    assert asyncio.run(calls()) == "server"


def test_a_server_out_of_memory(slide_to, own_server, caplog):
    slide = slide_to(own_server.port, timeout="5s")
    own_server.client.config_set("maxmemory-policy", "noeviction")
    own_server.client.config_set("maxmemory", "1")
    assert slide.log("k", WINDOW).source == "unavailable"
    own_server.client.config_set("maxmemory", "0")
    recovers(slide)
    began_and_ended(caplog)


def test_a_user_who_may_not(slide_to, own_server, caplog):
    own_server.client.acl_setuser(
        "limiter", enabled=True, passwords=["+secret"], keys=["*"], commands=["+ping", "+hello"]
    )
    client = {"username": "limiter", "password": "secret"}
    slide = slide_to(own_server.port, client, timeout="5s")
    assert slide.log("k", WINDOW).source == "unavailable"
    assert slide_to(own_server.port, client | {"password": "wrong"}).log("k", WINDOW).source == "unavailable"
    own_server.client.acl_setuser("limiter", enabled=True, commands=["+slide.log"], keys=["*"])
    recovers(slide)


def test_a_replica_is_an_outage(slide_to, own_server):
    own_server.client.replicaof("127.0.0.1", free_port())
    slide = slide_to(own_server.port, timeout="5s")
    assert slide.log("k", WINDOW).source == "unavailable"
    own_server.client.replicaof("NO", "ONE")
    recovers(slide)


def test_refund_and_release_give_nothing_in_an_outage(slide_to, own_server):
    slide = slide_to(own_server.port, **EASY)
    own_server.kill()
    verdict = slide.log("k", WINDOW)
    assert slide.refund(verdict, 1) == 0
    assert slide.refund("k", 1) == 0
    assert slide.release("k", "a") == 0
    assert slide.stats().unavailable == 3


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_fork_has_connections_of_its_own(server):
    script = f"""
import os, redis, redis_slide
slide = redis_slide.Slide(redis.Redis(port={server.port}), timeout="5s")
slide.log("k", (1000, "60s"))
children = []
for _ in range(4):
    if (child := os.fork()) == 0:
        os._exit(0 if all(slide.log("k", (1000, "60s")).source == "server" for _ in range(50)) else 1)
    children.append(child)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
assert slide.log("k", (1000, "60s")).remaining == 1000 - 202
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=30)


def test_a_server_on_a_unix_socket(tmp_path):
    server = Server(tmp_path, "--unixsocket", "s")
    slide = Slide(redis.Redis(unix_socket_path=str(tmp_path / "s")), timeout="5s")
    assert slide.log("k", WINDOW).source == "server"
    slide.close()
    server.kill()
