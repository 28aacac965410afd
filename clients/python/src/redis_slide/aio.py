"""How a call is sent, by asyncio: one deadline around everything."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from redis.asyncio import ConnectionPool, Redis, RedisCluster
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError, TimeoutError

from redis_slide.calls import Word
from redis_slide.transport import private_settings


class _Tasks:
    """Tasks that may outlive the call that began them."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # nobody else may be left to take note of it

    async def end(self) -> None:
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _within(task: "asyncio.Task[Any]", seconds: float) -> Any:
    # asyncio.wait does not wait for what it gives up, as asyncio.wait_for does.
    await asyncio.wait({task}, timeout=seconds)
    for _ in range(3):  # a loop that was busy with other work has the reply in its buffer
        if not task.done():
            await asyncio.sleep(0)
    if not task.done():
        raise TimeoutError("no answer within the time limit")
    return task.result()


class _Bounded(AbstractConnection):
    """Comes before the client's own class of connection."""

    _tasks: _Tasks
    _connecting: "asyncio.Task[None] | None" = None

    async def connect(self) -> None:
        """Connects in a task of its own, which goes on when the call has ended: see transport.py."""
        if self._connecting and self._connecting.done():
            self._connecting = None
        if self._connecting is None:
            if self.is_connected:
                return
            self._connecting = self._tasks.start(super().connect())  # type: ignore[no-untyped-call]
        await asyncio.shield(self._connecting)
        self._connecting = None


class AsyncTransport:
    """Sends one call at a time on each of at most `connections` connections of its own."""

    def __init__(self, client: Redis, timeout: float, connections: int) -> None:
        self._timeout = timeout
        self._places = asyncio.Semaphore(connections)
        self._tasks = _Tasks()
        theirs = client.connection_pool
        bounded = type("BoundedConnection", (_Bounded, theirs.connection_class), {"_tasks": self._tasks})
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

    async def execute(self, words: tuple[Word, ...]) -> Any:
        task = self._tasks.start(self._execute(words))
        try:
            return await _within(task, self._timeout)
        finally:
            task.cancel()

    async def _execute(self, words: tuple[Word, ...]) -> Any:
        async with self._places:
            connection = await self._pool.get_connection()
            try:
                await connection.send_command(*words)
                return await connection.read_response()
            except ResponseError:
                raise
            except BaseException:  # the reply may still come, for whoever is next
                await connection.disconnect(nowait=True)
                raise
            finally:
                await self._pool.release(connection)

    async def close(self) -> None:
        await self._tasks.end()
        await self._pool.disconnect()


class AsyncClusterTransport:
    """Sends each call by a task, which goes on with it when the call has ended: see transport.py."""

    def __init__(self, client: RedisCluster, timeout: float, connections: int) -> None:
        self._client, self._timeout = client, timeout
        self._places = asyncio.Semaphore(connections)
        self._tasks = _Tasks()

    async def execute(self, words: tuple[Word, ...]) -> Any:
        return await _within(self._tasks.start(self._execute(words)), self._timeout)

    async def _execute(self, words: tuple[Word, ...]) -> Any:
        async with self._places:
            return await self._client.execute_command(*words)

    async def close(self) -> None:
        """The client is the caller's to close."""
        await self._tasks.end()
