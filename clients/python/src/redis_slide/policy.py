"""What happens around every call, however it is sent: refusals that are remembered, outages, errors, counts."""

import logging
import math
import re
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

from redis.exceptions import RedisClusterException, ResponseError

from redis_slide.calls import Call, Word
from redis_slide.verdict import Key, Verdict

T = TypeVar("T")

log: Final = logging.getLogger("redis_slide")

PROBE_EVERY: Final = 0.1
"""Seconds between two calls that try whether an outage is over."""
REMEMBER_AT_MOST: Final = 60.0
"""Seconds after which a refusal is asked for again, so that what an operator changes is soon seen."""
ERROR_LINE_EVERY: Final = 60.0
"""Seconds between two lines in the log about error replies that are not raised."""

# redis-py has cut the code ERR off; other codes in capitals say that the server cannot serve the call.
_CODE: Final = re.compile(r"(?:ERR )?([A-Z]{2,}) ")
_OF_THE_CALLER: Final = {"WRONGTYPE", "CROSSSLOT"}
_NO_MODULE: Final = re.compile(r"(?:ERR )?unknown (?:sub)?command", re.IGNORECASE)


class SlideError(Exception):
    """The server's error reply to a call that is wrong: an argument out of range, a key of another type."""


class Stats(NamedTuple):
    """Counts since the start. `calls` is the sum of the five after it.

    Peek, refund and release count only when they fail.
    """

    calls: int
    admitted: int
    """by the server"""
    limited: int
    """by the server"""
    remembered: int
    """refused without asking the server"""
    unavailable: int
    """no answer in time: admitted or refused by the policy"""
    errors: int
    """error replies to wrong calls"""
    outages: int


class Memory:
    """Refusals that hold for a while yet: a bounded table, whose oldest entry goes first."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._refusals: OrderedDict[tuple[Word, ...], tuple[float, Verdict, tuple[bytes, ...]]] = OrderedDict()
        self._of_key: dict[bytes, set[tuple[Word, ...]]] = {}
        self.generation = 0
        """How often something was forgotten: a refusal that was decided before that may be out of date."""

    def get(self, words: tuple[Word, ...], now: float) -> Verdict | None:
        if (refusal := self._refusals.get(words)) is None:
            return None
        until, verdict, _ = refusal
        if now >= until:
            self._remove(words)
            return None
        return verdict.later(now - verdict.sent)

    def put(self, call: Call[Any], verdict: Verdict) -> None:
        # The server decided after the call was sent, so this ends a moment early rather than late.
        wait = verdict.retry_after.total_seconds() if verdict.can_pass else math.inf
        keys = tuple(map(_as_bytes, call.keys))
        if call.words in self._refusals:
            self._remove(call.words)
        self._refusals[call.words] = (verdict.sent + min(wait, REMEMBER_AT_MOST), verdict, keys)
        for key in keys:
            self._of_key.setdefault(key, set()).add(call.words)
        while len(self._refusals) > self._size:
            self._remove(next(iter(self._refusals)))

    def forget(self, keys: tuple[Key, ...]) -> None:
        self.generation += 1
        for key in keys:
            for words in tuple(self._of_key.get(_as_bytes(key), ())):
                self._remove(words)

    def _remove(self, words: tuple[Word, ...]) -> None:
        _, _, keys = self._refusals.pop(words)
        for key in keys:
            of_key = self._of_key[key]
            of_key.discard(words)
            if not of_key:
                del self._of_key[key]


def _as_bytes(key: Key) -> bytes:
    return key if isinstance(key, bytes) else key.encode()


def is_of_the_caller(error: Exception) -> bool:
    """Whether an error is the server's answer to a wrong call, and not an outage."""
    message = str(error)
    if isinstance(error, RedisClusterException):
        return "same key slot" in message
    # Subclasses of redis-py stand for codes such as OOM and READONLY.
    if type(error) is not ResponseError or _NO_MODULE.match(message):
        return False
    code = _CODE.match(message)
    return code is None or code[1] in _OF_THE_CALLER


@dataclass(slots=True)
class Outage:
    began: float
    probe_at: float
    """When the next call may try whether it is over; later while one is trying."""
    calls: int = 0


class Policy:
    """Thread-safe, and nothing in it waits."""

    def __init__(
        self, *, timeout: float, on_failure: Literal["open", "closed"], raise_errors: bool, remember: int
    ) -> None:
        if on_failure not in ("open", "closed"):
            raise ValueError(f"on_failure must be 'open' or 'closed', got {on_failure!r}")
        self.opens = on_failure == "open"
        self._timeout = timeout
        self._raise_errors = raise_errors
        self._memory = Memory(remember)
        self._outage: Outage | None = None
        self._next_error_line = 0.0
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(Stats._fields, 0)

    def stats(self) -> Stats:
        with self._lock:
            return Stats(**self._counts)

    def begin(self, call: Call[T]) -> "Attempt[T]":
        """Starts a call. If the attempt is `done`, it must not be sent."""
        with self._lock:
            now = time.monotonic()
            attempt = Attempt(self, call, now, self._memory.generation)
            if call.remembers and (refusal := self._memory.get(call.words, now)) is not None:
                self._count("remembered")
                attempt.settle(refusal)
            elif (outage := self._outage) and now < outage.probe_at:
                self._unavailable(attempt)
            elif outage:
                attempt.probe = True
                outage.probe_at = now + self._timeout + PROBE_EVERY
            return attempt

    def replied(self, attempt: "Attempt[T]", reply: Any) -> None:
        try:
            result = attempt.call.read(reply, attempt.sent)
        except (TypeError, ValueError, LookupError) as error:
            return self.failed(attempt, ResponseError(f"UNREADABLE reply: {error}"))
        with self._lock:
            self._answers()
            if attempt.call.forgets:
                self._memory.forget(attempt.call.keys)
            if isinstance(result, Verdict) and attempt.call.words[0] != "SLIDE.PEEK":
                self._count("admitted" if result.admitted else "limited")
                fresh = attempt.generation == self._memory.generation
                if attempt.call.remembers and not result.admitted and fresh:
                    self._memory.put(attempt.call, result)
            attempt.settle(result)
        return None

    def failed(self, attempt: "Attempt[T]", error: Exception) -> None:
        """Settles a call that had no answer, or raises the SlideError that the answer was."""
        with self._lock:
            if attempt.call.forgets:  # it may have been done all the same
                self._memory.forget(attempt.call.keys)
            if is_of_the_caller(error):
                self._answers()
                self._count("errors")
                if self._raise_errors:
                    raise SlideError(str(error)) from error
                if attempt.sent >= self._next_error_line:
                    self._next_error_line = attempt.sent + ERROR_LINE_EVERY
                    log.error("a call is wrong, and follows the policy: %s", error)
                attempt.settle(attempt.call.absent(self.opens, attempt.sent))
                return
            now = time.monotonic()
            if self._outage is None:
                self._outage = Outage(began=now, probe_at=now)
                self._counts["outages"] += 1
                pass_or_not = "pass unlimited" if self.opens else "are refused"
                log.warning("calls %s, for slide gives no answer: %s: %s",
                            pass_or_not, type(error).__name__, error)  # fmt: skip
            elif attempt.probe:
                self._outage.probe_at = now + PROBE_EVERY
            self._unavailable(attempt)

    def abandoned(self, attempt: "Attempt[Any]") -> None:
        """The caller has gone before there was an answer."""
        with self._lock:
            if attempt.probe and self._outage:
                self._outage.probe_at = time.monotonic()
            if attempt.call.forgets:
                self._memory.forget(attempt.call.keys)

    def _unavailable(self, attempt: "Attempt[Any]") -> None:
        self._count("unavailable")
        if self._outage:
            self._outage.calls += 1
        attempt.settle(attempt.call.absent(self.opens, attempt.sent))

    def _answers(self) -> None:
        if outage := self._outage:
            self._outage = None
            log.warning(
                "slide answers again after %.1f s, in which %d calls %s",
                time.monotonic() - outage.began,
                outage.calls,
                "passed unlimited" if self.opens else "were refused",
            )

    def _count(self, outcome: str) -> None:
        self._counts["calls"] += 1
        self._counts[outcome] += 1


class Attempt(Generic[T]):
    """One call on its way: it is settled by the policy, or by a reply, or by an error."""

    __slots__ = ("_policy", "_result", "call", "done", "generation", "probe", "sent")

    def __init__(self, policy: Policy, call: Call[T], sent: float, generation: int) -> None:
        self._policy, self.call, self.sent, self.generation = policy, call, sent, generation
        self.done = self.probe = False
        self._result: T | None = None

    def settle(self, result: Any) -> None:
        self._result, self.done = result, True

    @property
    def result(self) -> T:
        assert self._result is not None  # noqa: S101 (for the type checker: it is settled by now)
        return self._result

    def reply(self, reply: Any) -> None:
        self._policy.replied(self, reply)

    def fail(self, error: Exception) -> None:
        self._policy.failed(self, error)

    def abandon(self) -> None:
        self._policy.abandoned(self)
