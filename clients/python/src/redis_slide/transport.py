"""How a call is sent, by threads: connections whose every step ends by the deadline of the call."""

import math
import socket
import threading
import time
from concurrent.futures import Future, wait
from typing import Any, Final

from redis import ConnectionPool, Redis, RedisCluster
from redis.backoff import NoBackoff
from redis.connection import AbstractConnection
from redis.exceptions import ResponseError, TimeoutError
from redis.retry import Retry
from redis.sentinel import SentinelConnectionPool

from redis_slide.calls import Word

CONNECT_SECONDS: Final = 1.0
"""Seconds for a step of making a connection, which goes on in the background when its call has ended."""


class _Deadline(threading.local):
    """When the call of this thread must end, in seconds of time.monotonic()."""

    at = math.inf

    def left(self) -> float:
        left = self.at - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer within the time limit")
        return left


_deadline = _Deadline()


class _Socket:
    """A socket whose operations end by the deadline, however many of them a reply takes.

    A socket's own timeout is for one operation, and one byte in time is enough to start it anew.
    """

    def __init__(self, inner: socket.socket) -> None:
        self._inner = inner
        self._blocking = True

    def settimeout(self, seconds: float | None) -> None:
        self._blocking = seconds != 0
        if not self._blocking:
            self._inner.settimeout(0)

    def _arm(self) -> socket.socket:
        if self._blocking:
            self._inner.settimeout(min(_deadline.left(), 3600))
        return self._inner

    def recv(self, *args: Any) -> bytes:
        return self._arm().recv(*args)

    def recv_into(self, *args: Any) -> int:
        return self._arm().recv_into(*args)

    def sendall(self, data: Any) -> None:
        self._arm().sendall(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Bounded(AbstractConnection):
    """Comes before the client's own class of connection."""

    _connecting: Future[None] | None = None

    def connect(self) -> None:
        """Connects in a thread of its own.

        Names, TLS, sentinels and greetings take steps that no deadline ends. A connection that is
        late for its call is there for a later one, so that a slow start is not an outage for ever.
        """
        if self._connecting and self._connecting.done():
            self._connecting = None
        if self._connecting is None:
            if self._sock is not None:
                return
            self._connecting = Future()
            threading.Thread(target=self._connect_now, args=(self._connecting,), daemon=True).start()
        connecting = self._connecting
        if not wait([connecting], _deadline.left()).done:
            raise TimeoutError("no connection within the time limit")
        self._connecting = None
        connecting.result()

    def _connect_now(self, future: Future[None]) -> None:
        _deadline.at = time.monotonic() + CONNECT_SECONDS
        try:
            super().connect()  # type: ignore[no-untyped-call]
        except BaseException as error:
            self.disconnect()  # type: ignore[no-untyped-call]
            future.set_exception(error)
        else:
            future.set_result(None)

    def _connect(self) -> Any:
        return _Socket(super()._connect())  # type: ignore[no-untyped-call,safe-super]


def private_settings(pool: Any, retry: Any) -> dict[str, Any]:
    """What a pool of our own takes over from the client's: all but what waits, retries or waits longer."""
    settings = {
        name: value
        for name, value in pool.connection_kwargs.items()
        if not name.startswith(("maint_notifications", "oss_cluster_maint", "orig_"))
        and name not in ("connection_pool", "event_dispatcher", "retry_on_error", "retry_on_timeout")
    }
    if "maint_notifications_config" in pool.connection_kwargs:
        from redis.maint_notifications import MaintNotificationsConfig

        settings["maint_notifications_config"] = MaintNotificationsConfig(enabled=False)
    return settings | {
        "retry": retry,
        "socket_timeout": CONNECT_SECONDS,
        "socket_connect_timeout": CONNECT_SECONDS,
        "health_check_interval": 0,
        "decode_responses": True,
    }


class Transport:
    """Sends one call at a time on each of at most `connections` connections of its own."""

    def __init__(self, client: Redis, timeout: float, connections: int) -> None:
        self._timeout = timeout
        self._places = threading.BoundedSemaphore(connections)
        theirs = client.connection_pool
        bounded = type("BoundedConnection", (_Bounded, theirs.connection_class), {})
        settings = private_settings(theirs, Retry(NoBackoff(), 0))
        self._pool: ConnectionPool
        if isinstance(theirs, SentinelConnectionPool):
            self._pool = SentinelConnectionPool(
                theirs.service_name,
                theirs.sentinel_manager,
                connection_class=bounded,
                is_master=theirs.is_master,
                **settings,
            )
        else:
            self._pool = ConnectionPool(connection_class=bounded, **settings)

    def execute(self, words: tuple[Word, ...]) -> Any:
        _deadline.at = time.monotonic() + self._timeout
        if not self._places.acquire(timeout=self._timeout):
            raise TimeoutError("no connection was free within the time limit")
        try:
            connection = self._pool.get_connection()
            try:
                connection.send_command(*words)
                return connection.read_response()
            except ResponseError:
                raise
            except BaseException:  # the reply may still come, for whoever is next
                connection.disconnect()
                raise
            finally:
                self._pool.release(connection)
        finally:
            self._places.release()

    def close(self) -> None:
        self._pool.disconnect()


class ClusterTransport:
    """Sends each call by a thread, which goes on with it when the call has ended.

    A cluster's client chooses connections, asks again and looks for nodes by itself, and is bounded by
    no more than its own timeouts.
    """

    def __init__(self, client: RedisCluster, timeout: float, connections: int) -> None:
        self._client, self._timeout = client, timeout
        self._places = threading.BoundedSemaphore(connections)

    def execute(self, words: tuple[Word, ...]) -> Any:
        ends = time.monotonic() + self._timeout
        if not self._places.acquire(timeout=self._timeout):
            raise TimeoutError("no connection was free within the time limit")
        future: Future[Any] = Future()
        threading.Thread(target=self._execute, args=(words, future), daemon=True).start()
        if not wait([future], ends - time.monotonic()).done:
            raise TimeoutError("no answer within the time limit")
        return future.result()

    def _execute(self, words: tuple[Word, ...], future: Future[Any]) -> None:
        try:
            future.set_result(self._client.execute_command(*words))
        except BaseException as error:
            future.set_exception(error)
        finally:
            self._places.release()

    def close(self) -> None:
        """The client is the caller's to close."""
