import asyncio
import inspect

import pytest
import redis
import redis.asyncio
from servers import Proxy, Server

from redis_slide import AsyncSlide, Slide


class Driven:
    """An AsyncSlide whose methods are run to their end: so one test serves both clients."""

    def __init__(self, loop, slide):
        self.loop, self.slide = loop, slide

    def __getattr__(self, name):
        method = getattr(self.slide, name)

        def run(*args, **options):
            async def call():
                result = method(*args, **options)
                return await result if inspect.isawaitable(result) else result

            return self.loop.run_until_complete(call())

        return run


@pytest.fixture(scope="session")
def server_of_all(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.kill()


@pytest.fixture
def server(server_of_all):
    server_of_all.client.flushall()
    return server_of_all


@pytest.fixture
def own_server(tmp_path):
    """A server that the test may harm."""
    server = Server(tmp_path)
    yield server
    server.kill()


@pytest.fixture
def bare_server(tmp_path):
    """A server without the module."""
    server = Server(tmp_path, module=False)
    yield server
    server.kill()


@pytest.fixture
def proxy():
    opened = []

    def open_to(port, **line):
        opened.append(Proxy(port, **line))
        return opened[-1]

    yield open_to
    for each in opened:
        each.close()


@pytest.fixture(params=[2, 3], ids=["RESP2", "RESP3"])
def protocol(request):
    return request.param


@pytest.fixture(params=["sync", "async"])
def slide_to(request):
    """Makes a Slide, or an AsyncSlide that is used in the same way."""
    made = []
    loop = asyncio.new_event_loop()

    def make(port, client=None, **options):
        client = {"port": port, "protocol": 3} | (client or {})
        if request.param == "sync":
            slide = Slide(redis.Redis(**client), **options)
        else:
            slide = Driven(loop, AsyncSlide(redis.asyncio.Redis(**client), **options))
        made.append(slide)
        return slide

    yield make
    for slide in made:
        slide.close()
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
