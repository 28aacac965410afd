"""Leases as context managers: taken, renewed in the background, released."""

import asyncio
import contextlib
import secrets
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from redis_slide.calls import seconds_of
from redis_slide.durations import Duration
from redis_slide.policy import SlideError, log
from redis_slide.verdict import Key, Verdict

if TYPE_CHECKING:
    from redis_slide.slide import AsyncSlide, Slide


class Refused(Exception):
    """There was no place: `verdict` says when there may be one."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(f"no place is free at {verdict.key!r}, limit {verdict.limit}")
        self.verdict = verdict


class _Held:
    """What is known of a lease."""

    verdict: Verdict
    """of the latest call that took or renewed it"""

    def __init__(
        self, key: Key, limit: int, ttl: Duration, id: Key | None, on_lost: Callable[[], Any] | None
    ) -> None:
        self.key, self.limit, self.ttl = key, limit, ttl
        self.id = secrets.token_hex(16) if id is None else id
        self._on_lost = on_lost
        self._seconds = seconds_of("ttl", ttl)
        self._until = 0.0
        self._reported = True

    @property
    def lost(self) -> bool:
        """Whether the place may be another's: the server said so, or was silent for a whole ttl.

        Also true if the server did not answer at the start, and the policy let the caller in without a place.
        """
        return time.monotonic() >= self._until

    def _taken(self, verdict: Verdict) -> None:
        if not verdict.admitted:
            raise Refused(verdict)
        self.verdict = verdict
        if verdict.source == "server":
            self._until, self._reported = verdict.sent + self._seconds, False

    def _renewed(self, verdict: Verdict | None) -> None:
        """Takes note of a renewal; None if it was an error.

        Renewing goes on after a refusal: the work goes on too, so it takes the next place that is free.
        """
        if verdict is None or (verdict.source == "server" and not verdict.admitted):
            self._until = 0.0
        elif verdict.admitted:
            self._taken(verdict)
        if self.lost and not self._reported:
            self._reported = True
            log.warning("the lease %r of %r is lost", self.id, self.key)
            if self._on_lost:
                self._on_lost()


class Lease(_Held):
    """`with slide.lease("gpu", 4, "30s") as lease:` raises Refused if no place is free.

    A thread renews the lease every third of its ttl; `lease.lost` says when that was in vain, and `on_lost`
    is then called in that thread. The end of the block releases the place, which takes no longer than any call;
    where that fails the place comes free when the ttl has passed.
    """

    def __init__(self, slide: "Slide", *lease: Any) -> None:
        super().__init__(*lease)
        self._slide = slide
        self._left = threading.Event()

    def __enter__(self) -> "Lease":
        self._taken(self._slide.place(self.key, self.limit, self.ttl, self.id))
        self._renewing = threading.Thread(target=self._renew, name="redis_slide lease", daemon=True)
        self._renewing.start()
        return self

    def _renew(self) -> None:
        while not self._left.wait(self._seconds / 3):
            try:
                self._renewed(self._slide.place(self.key, self.limit, self.ttl, self.id))
            except SlideError:
                self._renewed(None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()
        self._renewing.join()  # a renewal that came after the release would take the place again
        self._slide.release(self.key, self.id)


class AsyncLease(_Held):
    """`async with slide.lease("gpu", 4, "30s") as lease:`, renewed by a task: see Lease."""

    def __init__(self, slide: "AsyncSlide", *lease: Any) -> None:
        super().__init__(*lease)
        self._slide = slide

    async def __aenter__(self) -> "AsyncLease":
        self._taken(await self._slide.place(self.key, self.limit, self.ttl, self.id))
        self._left = asyncio.Event()
        self._renewing = asyncio.create_task(self._renew())
        return self

    async def _renew(self) -> None:
        while not await self._is_left_within(self._seconds / 3):
            try:
                self._renewed(await self._slide.place(self.key, self.limit, self.ttl, self.id))
            except SlideError:
                self._renewed(None)

    async def _is_left_within(self, seconds: float) -> bool:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._left.wait(), seconds)
        return self._left.is_set()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()
        await self._renewing  # for the same reason as in Lease
        await self._slide.release(self.key, self.id)
