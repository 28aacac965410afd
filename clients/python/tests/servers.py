"""Real servers to start, freeze, kill and put behind a slow line."""

import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

SERVER = os.environ["SLIDE_SERVER"]
MODULE = os.environ["SLIDE_MODULE"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.01)


class Server:
    def __init__(self, folder: pathlib.Path, *options, module=True):
        self.folder, self.port = folder, free_port()
        self.options = [*options, *(["--loadmodule", MODULE] if module else [])]
        self.client = redis.Redis(port=self.port, decode_responses=True, retry=Retry(NoBackoff(), 0))
        self.start()

    def start(self):
        command = [SERVER, "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--logfile", "log"]
        self.process = subprocess.Popen([*map(str, command), *self.options], cwd=self.folder)
        until(self.answers)

    def answers(self):
        assert self.process.poll() is None, (self.folder / "log").read_text()
        try:
            return self.client.ping()
        except redis.RedisError:
            return False

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)
        state = pathlib.Path(f"/proc/{self.process.pid}/stat")
        until(lambda: state.read_text().rpartition(")")[2].split()[0] == "T")

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)
        until(self.answers)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def count(self, name):
        return int(self.client.info("slide_stats")[f"slide_{name}"])


class Proxy:
    """A line to a server that delays each reply, or hands it out byte by byte."""

    def __init__(self, port, delay=0.0, every_byte=0.0):
        self.delay, self.every_byte = delay, every_byte
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            server = socket.create_connection(("127.0.0.1", self._target))
            threading.Thread(target=self._pump, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, True), daemon=True).start()

    def _pump(self, source, sink, replies):
        try:
            while data := source.recv(65536):
                if replies and self.delay:
                    time.sleep(self.delay)
                for i in range(len(data)) if replies and self.every_byte else ():
                    sink.sendall(data[i : i + 1])
                    time.sleep(self.every_byte)
                if not (replies and self.every_byte):
                    sink.sendall(data)
        except OSError:
            pass
        finally:
            for end in (source, sink):
                end.close()

    def close(self):
        self._listener.close()
