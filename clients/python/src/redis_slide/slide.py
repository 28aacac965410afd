"""The commands as methods, and the two clients that have them."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, Literal, TypeVar

import redis
import redis.asyncio

from redis_slide import calls
from redis_slide.aio import AsyncClusterTransport, AsyncTransport
from redis_slide.calls import Call, Clause, Counter, Log, Place, Tiers
from redis_slide.durations import Duration
from redis_slide.lease import AsyncLease, Lease
from redis_slide.policy import Policy, Stats
from redis_slide.transport import ClusterTransport, Transport
from redis_slide.verdict import Key, Verdict

V = TypeVar("V", covariant=True)
N = TypeVar("N", covariant=True)


class _Commands(ABC, Generic[V, N]):
    """What Slide and AsyncSlide share: V is a verdict, N a number, each of them to be awaited or not."""

    _policy: Policy

    @abstractmethod
    def decide(self, call: Call[Verdict]) -> V: ...

    @abstractmethod
    def number(self, call: Call[int] | None) -> N: ...

    def log(self, key: Key, tiers: Tiers, cost: int = 1, force: bool = False) -> V:
        """Takes `cost` units by an exact limit: `log("user:42", (100, "60s"), cost=5)`.

        `tiers` is a limit and a window, or several such pairs; the call passes if all of them have room.
        `force` records the call even if one has not. Raises SlideError if an argument is out of range.
        """
        return self.decide(calls.one("SLIDE.LOG", key, Log(tiers, cost), force=force))

    def counter(
        self,
        key: Key,
        tiers: Tiers,
        cost: int = 1,
        force: bool = False,
        buckets: int | None = None,
        strict: bool = False,
    ) -> V:
        """The same by an approximate limit: `buckets` (1 to 64) and `strict` make it sharper."""
        clause = Counter(tiers, cost, buckets, strict)
        return self.decide(calls.one("SLIDE.COUNTER", key, clause, force=force))

    def peek(
        self,
        key: Key,
        tiers: Tiers,
        cost: int = 1,
        buckets: int | None = None,
        strict: bool = False,
        lease: bool = False,
    ) -> V:
        """The verdict that a call would get, without recording it.

        With `lease`, that on a place: `tiers` is its limit and any window, and there are no options.
        """
        if lease:
            return self.decide(calls.peek_lease(key, tiers))
        return self.decide(calls.one("SLIDE.PEEK", key, Counter(tiers, cost, buckets, strict)))

    def refund(self, of: Verdict | Key, units: int | None = None) -> N:
        """Gives units back, and returns how many were taken back.

        Of a verdict: the units that very call has recorded, by its age, all of them unless `units` is given;
        nothing if it recorded none (it was over a limit, or the server did not answer). Of a key: the units
        recorded last, whoever's they are.
        """
        return self.number(calls.refund(of, units))

    def reset(self, key: Key) -> N:
        """Deletes a key: all that is recorded there is forgotten. Returns how many keys there were, 0 or 1."""
        return self.number(calls.reset(key))

    def release(self, key: Key, *ids: Key) -> N:
        """Ends leases by their ids, and returns how many were live."""
        return self.number(calls.release(key, ids))

    def all(self, clauses: Mapping[Key, Clause], force: bool = False) -> V:
        """Takes from several keys in one round trip, from all or from none.

        `all({"{user:9}:calls": Log((100, "60s")), "{user:9}:tokens": Log((50_000, "1h"), cost=4_000)})`
        """
        return self.decide(calls.every(clauses, force=force))

    def stats(self) -> Stats:
        """How many calls ended how."""
        return self._policy.stats()


class Slide(_Commands[Verdict, int]):
    """Rate limits by slide, for threads.

    `client` says where the server is and how to log in; the connections are Slide's own, at most
    `connections` of them (a RedisCluster uses its own, and must have a socket_timeout). No call takes longer
    than `timeout`; one that has no answer by then is admitted (`on_failure="open"`) or refused ("closed").
    Error replies to wrong calls are raised as SlideError, or follow `on_failure` too (`raise_errors=False`).
    At most `remember` refusals are remembered until their retry_after has passed; 0 switches that off.
    """

    def __init__(
        self,
        client: redis.Redis | redis.RedisCluster,
        *,
        timeout: Duration = "50ms",
        on_failure: Literal["open", "closed"] = "open",
        raise_errors: bool = True,
        remember: int = 10_000,
        connections: int = 50,
    ) -> None:
        seconds = calls.seconds_of("timeout", timeout)
        self._policy = Policy(timeout=seconds, on_failure=on_failure, raise_errors=raise_errors, remember=remember)
        self._transport = (
            ClusterTransport(client, seconds, connections)
            if isinstance(client, redis.RedisCluster)
            else Transport(client, seconds, connections)
        )

    def _ask(self, call: Call[calls.T]) -> calls.T:
        attempt = self._policy.begin(call)
        if not attempt.done:
            try:
                reply = self._transport.execute(call.words)
            except Exception as error:
                attempt.fail(error)
            except BaseException:
                attempt.abandon()
                raise
            else:
                attempt.reply(reply)
        return attempt.result

    def decide(self, call: Call[Verdict]) -> Verdict:
        return self._ask(call)

    def number(self, call: Call[int] | None) -> int:
        return self._ask(call) if call else 0

    def lease(
        self,
        key: Key,
        limit: int,
        ttl: Duration,
        id: Key | None = None,
        on_lost: Callable[[], Any] | None = None,
    ) -> Lease:
        """One place out of `limit` for the time of a `with`: see Lease."""
        return Lease(self, key, limit, ttl, id, on_lost)

    def place(self, key: Key, limit: int, ttl: Duration, id: Key, force: bool = False) -> Verdict:
        """Takes or renews a place that nobody renews by itself."""
        return self.decide(calls.one("SLIDE.LEASE", key, Place(limit, ttl, id), force=force))

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()


class AsyncSlide(_Commands[Awaitable[Verdict], Awaitable[int]]):
    """Rate limits by slide, for asyncio: the same as Slide, with methods to await."""

    def __init__(
        self,
        client: redis.asyncio.Redis | redis.asyncio.RedisCluster,
        *,
        timeout: Duration = "50ms",
        on_failure: Literal["open", "closed"] = "open",
        raise_errors: bool = True,
        remember: int = 10_000,
        connections: int = 50,
    ) -> None:
        seconds = calls.seconds_of("timeout", timeout)
        self._policy = Policy(timeout=seconds, on_failure=on_failure, raise_errors=raise_errors, remember=remember)
        self._transport = (
            AsyncClusterTransport(client, seconds, connections)
            if isinstance(client, redis.asyncio.RedisCluster)
            else AsyncTransport(client, seconds, connections)
        )

    async def _ask(self, call: Call[calls.T]) -> calls.T:
        attempt = self._policy.begin(call)
        if not attempt.done:
            try:
                reply = await self._transport.execute(call.words)
            except Exception as error:
                attempt.fail(error)
            except BaseException:
                attempt.abandon()
                raise
            else:
                attempt.reply(reply)
        return attempt.result

    async def decide(self, call: Call[Verdict]) -> Verdict:
        return await self._ask(call)

    async def number(self, call: Call[int] | None) -> int:
        return await self._ask(call) if call else 0

    def lease(
        self,
        key: Key,
        limit: int,
        ttl: Duration,
        id: Key | None = None,
        on_lost: Callable[[], Any] | None = None,
    ) -> AsyncLease:
        """One place out of `limit` for the time of an `async with`: see AsyncLease."""
        return AsyncLease(self, key, limit, ttl, id, on_lost)

    async def place(self, key: Key, limit: int, ttl: Duration, id: Key, force: bool = False) -> Verdict:
        """Takes or renews a place that nobody renews by itself."""
        return await self.decide(calls.one("SLIDE.LEASE", key, Place(limit, ttl, id), force=force))

    async def close(self) -> None:
        """Closes the connections."""
        await self._transport.close()
