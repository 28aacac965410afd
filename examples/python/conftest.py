"""A Redis to start, kill and freeze, and a service on a real port."""

import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

import pytest
import redis
import uvicorn
from redis.backoff import NoBackoff
from redis.retry import Retry

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVER = os.environ.get("SLIDE_SERVER", "redis-server")
MODULE = os.environ.get("SLIDE_MODULE", str(ROOT / "target/release/libslide.so"))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {condition}"
        time.sleep(0.01)


class Server:
    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self.client = redis.Redis(port=self.port, decode_responses=True, retry=Retry(NoBackoff(), 0))
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [SERVER, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
             "--dir", str(self.folder), "--logfile", "redis.log", "--loadmodule", MODULE])
        until(self.answers)

    def answers(self):
        assert self.process.poll() is None, (self.folder / "redis.log").read_text()
        try:
            return self.client.ping()
        except redis.RedisError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("redis"))
    yield server
    server.kill()


@pytest.fixture
def redis_server(server):
    server.client.flushall()
    return server


@pytest.fixture
def serve():
    """Serves an ASGI app over HTTP on a free port; returns its URL."""
    running = []

    def start(app):
        http = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", proxy_headers=False))
        thread = threading.Thread(target=http.run)
        thread.start()
        running.append((http, thread))
        until(lambda: http.started)
        return f"http://127.0.0.1:{http.servers[0].sockets[0].getsockname()[1]}"

    yield start
    for http, thread in running:
        http.should_exit = True
        thread.join()
