"""What the server has decided, or what was decided in its place."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final, Literal

from redis_slide.durations import NEVER, from_reply

Key = str | bytes
Source = Literal["server", "remembered", "unavailable"]

_WAIT: Final = re.compile(r";t=([0-9]+)")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one call. It is true when the call is admitted, so `if verdict:` does what it says.

    A verdict of `all` is that of the key that decided: the longest wait if the call was over a limit, else
    the fewest units left. `each` has one verdict for each key, in order.
    """

    key: Key
    admitted: bool
    """Whether the call may go on: what the caller must obey."""
    over: bool
    """Whether a limit was exceeded, also where that is not enforced (a dry run)."""
    limit: int
    remaining: int
    """Units left after this call, never below 0."""
    retry_after: timedelta
    """0 if the call was not over a limit, NEVER if it costs more than the limit."""
    reset_after: timedelta
    """How long until everything is free again."""
    headers: Mapping[str, str] = field(repr=False)
    """HTTP headers ready to send; empty where the server has not been asked."""
    source: Source
    """`server`; `remembered`: an earlier refusal still holds; `unavailable`: there was no answer in time."""
    sent: float = field(repr=False)
    """When the call was sent, in seconds of time.monotonic()."""
    recorded: int = field(repr=False)
    """The units that the call recorded, and a refund can give back."""
    each: tuple["Verdict", ...] = field(default=(), repr=False)

    def __bool__(self) -> bool:
        return self.admitted

    @property
    def can_pass(self) -> bool:
        """Whether this call passes after some wait: false only if it costs more than the limit."""
        return self.retry_after != NEVER

    def later(self, seconds: float) -> "Verdict":
        """This refusal as it reads some seconds later, from memory."""
        passed = timedelta(seconds=seconds)
        retry_after = max(timedelta(0), self.retry_after - passed) if self.can_pass else NEVER
        headers = {name: _count_down(value, seconds) for name, value in self.headers.items()}
        if "Retry-After" in headers:
            headers["Retry-After"] = str(max(1, math.ceil(retry_after.total_seconds())))
        return replace(
            self,
            retry_after=retry_after,
            reset_after=max(timedelta(0), self.reset_after - passed),
            headers=headers,
            source="remembered",
            recorded=0,
            each=tuple(verdict.later(seconds) for verdict in self.each),
        )


def _count_down(value: str, seconds: float) -> str:
    """The waits in a RateLimit header, some seconds later."""
    return _WAIT.sub(lambda wait: f";t={max(1, math.ceil(int(wait[1]) - seconds))}", value)


def headers_of(reply: Any) -> dict[str, str]:
    """A map of headers: RESP3 has a map, RESP2 the same as a flat array."""
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
    return {_text(name): _text(value) for name, value in pairs}


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()


def of_one(key: Key, reply: Any, sent: float, *, cost: int, force: bool = False) -> Verdict:
    """The verdict in a reply of five integers, and of a map of headers where those were asked for."""
    limited, limit, remaining, retry_after, reset_after = (int(number) for number in reply[:5])
    over = retry_after != 0
    return Verdict(
        key=key,
        admitted=limited == 0,
        over=over,
        limit=limit,
        remaining=remaining,
        retry_after=from_reply(retry_after),
        reset_after=from_reply(reset_after),
        headers=headers_of(reply[5]) if len(reply) > 5 else {},
        source="server",
        sent=sent,
        recorded=cost if force or not over else 0,
    )


def of_all(keys: tuple[Key, ...], reply: Any, sent: float, *, costs: tuple[int, ...], force: bool) -> Verdict:
    """The verdict in a reply of SLIDE.ALL."""
    limited, *fives, headers = reply
    each = [
        of_one(key, five, sent, cost=cost, force=True) for key, five, cost in zip(keys, fives, costs, strict=True)
    ]
    over = any(verdict.over for verdict in each)
    if over and not force:
        each = [replace(verdict, recorded=0) for verdict in each]
    worst = (
        max(each, key=lambda verdict: verdict.retry_after)
        if over
        else min(each, key=lambda verdict: verdict.remaining)
    )
    return replace(worst, admitted=int(limited) == 0, headers=headers_of(headers), recorded=0, each=tuple(each))


def unavailable(key: Key, limit: int, sent: float, *, admitted: bool) -> Verdict:
    """The verdict when there is no answer: that of the policy."""
    zero = timedelta(0)
    return Verdict(
        key=key,
        admitted=admitted,
        over=False,
        limit=limit,
        remaining=limit if admitted else 0,
        retry_after=zero,
        reset_after=zero,
        headers={},
        source="unavailable",
        sent=sent,
        recorded=0,
    )
