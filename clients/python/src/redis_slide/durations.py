"""Durations: a timedelta, or text with a unit. A bare number is a TypeError, for nobody can see its unit."""

import re
from datetime import timedelta
from typing import Final

Duration = timedelta | str

NEVER: Final = timedelta.max
"""The retry_after of a call that costs more than its limit: no wait lets it pass."""

_MILLISECOND: Final = timedelta(milliseconds=1)
_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_TEXT: Final = re.compile(r"(0|[1-9][0-9]*)(ms|s|m|h|d)", re.ASCII)


def milliseconds(name: str, value: Duration) -> int:
    """The whole milliseconds of a duration; `name` is what the error calls it. The server checks the range."""
    if isinstance(value, timedelta):
        if value < timedelta(0) or value % _MILLISECOND:
            raise ValueError(f"{name} must be a whole number of milliseconds, 0 or more, got {value!r}")
        return value // _MILLISECOND
    if isinstance(value, str):
        if match := _TEXT.fullmatch(value):
            return int(match[1]) * _UNITS[match[2]]
        raise ValueError(f"{name} must be an integer with the unit ms, s, m, h or d, such as '60s', got {value!r}")
    raise TypeError(f"{name} must be a timedelta or text with a unit, such as '60s', got {value!r}")


def text(name: str, value: Duration) -> str:
    """A duration as the commands take it."""
    return f"{milliseconds(name, value)}ms"


def from_reply(value: int) -> timedelta:
    """A number of milliseconds in a reply; -1 is never."""
    return NEVER if value < 0 else timedelta(milliseconds=value)
