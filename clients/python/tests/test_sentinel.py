import asyncio
import subprocess

import pytest
import redis
import redis.asyncio.sentinel
import redis.sentinel
from servers import SERVER, free_port, until

from redis_slide import AsyncSlide, Slide

WINDOW = (100, "60s")


@pytest.fixture
def sentinel(server, tmp_path):
    port = free_port()
    config = tmp_path / "sentinel.conf"
    config.write_text(f"port {port}\nlogfile {tmp_path}/log\nsentinel monitor main 127.0.0.1 {server.port} 1\n")
    process = subprocess.Popen([SERVER, str(config), "--sentinel"], cwd=tmp_path)
    until(lambda: answers(port))
    yield ("127.0.0.1", port)
    process.kill()
    process.wait()


def answers(port):
    try:
        return redis.Redis(port=port).ping()
    except redis.RedisError:
        return False


def test_threads(sentinel):
    slide = Slide(redis.sentinel.Sentinel([sentinel]).master_for("main"), timeout="5s")
    assert slide.log("k", WINDOW).remaining == 99
    slide.close()


def test_tasks(sentinel):
    async def call():
        slide = AsyncSlide(redis.asyncio.sentinel.Sentinel([sentinel]).master_for("main"), timeout="5s")
        verdict = await slide.log("k", WINDOW)
        await slide.close()
        return verdict.remaining

    assert asyncio.run(call()) == 99
