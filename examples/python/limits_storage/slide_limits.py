"""Storages for `limits`, and so for slowapi and Flask-Limiter, that let slide decide.

Import this module, and `slide://host:port` (`async+slide://host:port`) is a storage URI. The moving
window is SLIDE.LOG, the sliding window counter is SLIDE.COUNTER; all else is limits' own RedisStorage.
"""

import time

from limits.aio.storage import RedisStorage as AsyncRedisStorage
from limits.storage import RedisStorage

EVERY_UNIT = 2**53 - 1  # the highest limit there is: what it leaves tells how much is used


def log(key):
    return f"{key}:log"


def counter(key):
    return f"{key}:counter"


class SlideStorage(RedisStorage):
    STORAGE_SCHEME = ["slide", "slides", "slide+unix"]

    def __init__(self, uri, **options):
        super().__init__(redis_uri(uri), **options)

    def call(self, command, key, limit, expiry, amount=1):
        return self.get_connection().execute_command(
            command, self.prefixed_key(key), limit, f"{expiry}s", "COST", amount)

    def acquire_entry(self, key, limit, expiry, amount=1):
        return self.call("SLIDE.LOG", log(key), limit, expiry, amount)[0] == 0

    def acquire_sliding_window_entry(self, key, limit, expiry, amount=1):
        return self.call("SLIDE.COUNTER", counter(key), limit, expiry, amount)[0] == 0

    def get_moving_window(self, key, limit, expiry):
        used, wait = self.used(log(key), expiry)
        return time.time() + wait - expiry, used

    def get_sliding_window(self, key, expiry):
        used, wait = self.used(counter(key), expiry)
        return in_one_window(used, wait, expiry)

    def used(self, key, expiry):
        """The units in use, and the seconds until the oldest of them are free again."""
        used = EVERY_UNIT - self.call("SLIDE.PEEK", key, EVERY_UNIT, expiry, 0)[2]
        if used == 0:
            return 0, expiry
        return used, self.call("SLIDE.PEEK", key, used, expiry)[3] / 1000

    def clear(self, key):
        self.get_connection().delete(*(self.prefixed_key(each) for each in (key, log(key))))

    def clear_sliding_window(self, key, expiry):
        self.get_connection().delete(self.prefixed_key(counter(key)))


class AsyncSlideStorage(AsyncRedisStorage):
    STORAGE_SCHEME = ["async+slide", "async+slides", "async+slide+unix"]

    def __init__(self, uri, **options):
        super().__init__(redis_uri(uri), implementation="redispy", **options)

    async def call(self, command, key, limit, expiry, amount=1):
        return await self.bridge.get_connection().execute_command(
            command, self.bridge.prefixed_key(key), limit, f"{expiry}s", "COST", amount)

    async def acquire_entry(self, key, limit, expiry, amount=1):
        return (await self.call("SLIDE.LOG", log(key), limit, expiry, amount))[0] == 0

    async def acquire_sliding_window_entry(self, key, limit, expiry, amount=1):
        return (await self.call("SLIDE.COUNTER", counter(key), limit, expiry, amount))[0] == 0

    async def get_moving_window(self, key, limit, expiry):
        used, wait = await self.used(log(key), expiry)
        return time.time() + wait - expiry, used

    async def get_sliding_window(self, key, expiry):
        used, wait = await self.used(counter(key), expiry)
        return in_one_window(used, wait, expiry)

    async def used(self, key, expiry):
        used = EVERY_UNIT - (await self.call("SLIDE.PEEK", key, EVERY_UNIT, expiry, 0))[2]
        if used == 0:
            return 0, expiry
        return used, (await self.call("SLIDE.PEEK", key, used, expiry))[3] / 1000

    async def clear(self, key):
        keys = (self.bridge.prefixed_key(each) for each in (key, log(key)))
        await self.bridge.get_connection().delete(*keys)

    async def clear_sliding_window(self, key, expiry):
        await self.bridge.get_connection().delete(self.bridge.prefixed_key(counter(key)))


def redis_uri(uri):
    return uri.replace("slide", "redis", 1)


def in_one_window(used, wait, expiry):
    """What limits computes a counter's state from: (previous count, its TTL, current count, its TTL).

    The module has weighed both windows already, so its verdict is told as that of the current one.
    limits takes the rest of the TTL by the window, so a longer wait is told as a whole window, less 1 ms.
    """
    return 0, 0.0, used, min(wait, expiry - 0.001)
