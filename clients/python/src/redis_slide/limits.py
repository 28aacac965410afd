"""Storages for `limits`, and so for slowapi and Flask-Limiter, that let slide decide.

Import this module, and `slide://host:port` (`async+slide://host:port`) is a storage URI. The strategy
moving-window is SLIDE.LOG, sliding-window-counter is SLIDE.COUNTER; fixed-window is an error.
"""

import time
from typing import Any, Final, NoReturn

import limits.aio.storage.base as aio
import limits.storage.base as sync
import redis
import redis.asyncio
from limits.errors import ConfigurationError

from redis_slide.policy import SlideError
from redis_slide.slide import AsyncSlide, Slide
from redis_slide.verdict import Verdict

EVERY_UNIT: Final = 2**53 - 1
"""The highest limit there is: what it leaves says how much is used."""

_OWN_OPTIONS: Final = ("timeout", "on_failure", "raise_errors", "remember", "connections")


class _Common:
    """Names of keys, and replies as `limits` has them."""

    PREFIX = "LIMITS"

    def log(self, key: str) -> str:
        return f"{self.PREFIX}:{key}:log"

    def counter(self, key: str) -> str:
        return f"{self.PREFIX}:{key}:counter"

    @property
    def base_exceptions(self) -> type[Exception]:
        return SlideError

    @staticmethod
    def parts(uri: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The URI that redis-py takes, and the options that are Slide's."""
        scheme, _, rest = uri.removeprefix("async+").partition("://")
        schemes = {"slide": "redis", "slides": "rediss", "slide+unix": "unix"}
        ours: dict[str, Any] = {name: options.pop(name) for name in _OWN_OPTIONS if name in options}
        return f"{schemes[scheme]}://{rest}", ours


def _wrong_strategy() -> NoReturn:
    raise ConfigurationError(
        "the strategy fixed-window is not slide's: use moving-window, which is exact, or sliding-window-counter"
    )


def _window(expiry: int) -> str:
    return f"{expiry}s"


def _used(verdict: Verdict) -> int:
    return verdict.limit - verdict.remaining


def _wait(next_unit: Verdict | None, expiry: int) -> float:
    """Seconds until a used unit is free again."""
    return next_unit.retry_after.total_seconds() if next_unit is not None else float(expiry)


def _as_one_window(used: int, wait: float, expiry: int) -> tuple[int, float, int, float]:
    """What limits computes a counter's state from: (previous count, its TTL, current count, its TTL).

    slide has weighed both windows, so its verdict is given as that of the current one. limits takes the
    rest of the TTL by the window, so a longer wait is given as a whole window, less 1 ms.
    """
    return 0, 0.0, used, min(wait, expiry - 0.001)


class SlideStorage(_Common, sync.Storage, sync.MovingWindowSupport, sync.SlidingWindowCounterSupport):
    """`slide://`, `slides://` (TLS) and `slide+unix://`. Options: those of Slide, and those of redis-py."""

    STORAGE_SCHEME = ["slide", "slides", "slide+unix"]  # noqa: RUF012 (limits' own type)

    def __init__(self, uri: str, wrap_exceptions: bool = False, **options: Any) -> None:
        super().__init__(uri, wrap_exceptions)
        url, ours = self.parts(uri, options)
        self.client = redis.Redis.from_url(url, **options)
        self.slide = Slide(self.client, **ours)

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        return self.slide.log(self.log(key), (limit, _window(expiry)), amount).admitted

    def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        return self.slide.counter(self.counter(key), (limit, _window(expiry)), amount).admitted

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        used, wait = self._state(self.log(key), expiry)
        return time.time() + wait - expiry, used

    def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        return _as_one_window(*self._state(self.counter(key), expiry), expiry)

    def _state(self, key: str, expiry: int) -> tuple[int, float]:
        used = _used(self.slide.peek(key, (EVERY_UNIT, _window(expiry)), cost=0))
        return used, _wait(self.slide.peek(key, (used, _window(expiry))) if used else None, expiry)

    def clear(self, key: str) -> None:
        self.slide.reset(self.log(key))

    def clear_sliding_window(self, key: str, expiry: int) -> None:
        self.slide.reset(self.counter(key))

    def check(self) -> bool:
        return self.slide.peek(self.log("check"), (1, "1s")).source == "server"

    def reset(self) -> int | None:
        raise NotImplementedError("delete the keys by their prefix instead")

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        _wrong_strategy()

    def get(self, key: str) -> int:
        _wrong_strategy()

    def get_expiry(self, key: str) -> float:
        _wrong_strategy()


class AsyncSlideStorage(_Common, aio.Storage, aio.MovingWindowSupport, aio.SlidingWindowCounterSupport):
    """`async+slide://`, `async+slides://` and `async+slide+unix://`: the same for asyncio."""

    STORAGE_SCHEME = ["async+slide", "async+slides", "async+slide+unix"]  # noqa: RUF012

    def __init__(self, uri: str, wrap_exceptions: bool = False, **options: Any) -> None:
        super().__init__(uri, wrap_exceptions)
        url, ours = self.parts(uri, options)
        self.client = redis.asyncio.Redis.from_url(url, **options)
        self.slide = AsyncSlide(self.client, **ours)

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        return (await self.slide.log(self.log(key), (limit, _window(expiry)), amount)).admitted

    async def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        return (await self.slide.counter(self.counter(key), (limit, _window(expiry)), amount)).admitted

    async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        used, wait = await self._state(self.log(key), expiry)
        return time.time() + wait - expiry, used

    async def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        return _as_one_window(*await self._state(self.counter(key), expiry), expiry)

    async def _state(self, key: str, expiry: int) -> tuple[int, float]:
        used = _used(await self.slide.peek(key, (EVERY_UNIT, _window(expiry)), cost=0))
        return used, _wait(await self.slide.peek(key, (used, _window(expiry))) if used else None, expiry)

    async def clear(self, key: str) -> None:
        await self.slide.reset(self.log(key))

    async def clear_sliding_window(self, key: str, expiry: int) -> None:
        await self.slide.reset(self.counter(key))

    async def check(self) -> bool:
        return (await self.slide.peek(self.log("check"), (1, "1s"))).source == "server"

    async def reset(self) -> int | None:
        raise NotImplementedError("delete the keys by their prefix instead")

    async def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        _wrong_strategy()

    async def get(self, key: str) -> int:
        _wrong_strategy()

    async def get_expiry(self, key: str) -> float:
        _wrong_strategy()
