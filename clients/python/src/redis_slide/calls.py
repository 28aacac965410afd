"""The commands: their arguments, and how their replies are read. Nothing here waits for anything."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, Generic, TypeVar

from redis_slide import verdict as read
from redis_slide.durations import Duration, milliseconds, text
from redis_slide.verdict import Key, Verdict

T = TypeVar("T")
Word = str | bytes
Tier = tuple[int, Duration]
Tiers = Tier | Sequence[Tier]


@dataclass(frozen=True, slots=True)
class Log:
    """An exact limit: one tier, such as `(100, "60s")`, or several."""

    tiers: Tiers
    cost: int = 1


@dataclass(frozen=True, slots=True)
class Counter:
    """An approximate limit that takes the same small memory whatever the traffic."""

    tiers: Tiers
    cost: int = 1
    buckets: int | None = None
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A lease as a clause of `all`: one place out of `limit`, for `ttl` unless it is renewed."""

    limit: int
    ttl: Duration
    id: Key


Clause = Log | Counter | Place


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One command, how its reply is read (with when it was sent), and what to say in the place of a reply."""

    words: tuple[Word, ...]
    keys: tuple[Key, ...]
    read: Callable[[Any, float], T]
    absent: Callable[[bool, float], T]
    remembers: bool = False
    """A refusal holds until its retry_after has passed."""
    forgets: bool = False
    """What is remembered of the keys may no longer hold."""


def integer(name: str, value: int) -> str:
    """A number as the commands take it. The server checks the range."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, got {value!r}")
    return str(value)


def name_of(name: str, value: Key) -> Key:
    if not isinstance(value, str | bytes):
        raise TypeError(f"{name} must be str or bytes, got {value!r}")
    return value


def tier_words(tiers: Tiers) -> list[Word]:
    several: Iterable[Any] = [tiers] if isinstance(tiers, tuple) and _is_tier(tiers) else tiers
    words: list[Word] = []
    for tier in several:
        if not isinstance(tier, tuple | list) or len(tier) != 2:
            raise TypeError(f"a tier must be a limit and a window, such as (100, '60s'), got {tier!r}")
        words += [integer("limit", tier[0]), text("window", tier[1])]
    if not words:
        raise ValueError("there must be at least one tier, such as (100, '60s')")
    return words


def _is_tier(tiers: tuple[Any, ...]) -> bool:
    return len(tiers) == 2 and not isinstance(tiers[0], tuple | list)


def clause_words(clause: Clause) -> list[Word]:
    """The words of a clause after its kind."""
    if isinstance(clause, Place):
        return [integer("limit", clause.limit), text("ttl", clause.ttl), name_of("id", clause.id)]
    words = [*tier_words(clause.tiers), "COST", integer("cost", clause.cost)]
    if isinstance(clause, Counter):
        words += ["BUCKETS", integer("buckets", clause.buckets)] if clause.buckets is not None else []
        words += ["STRICT"] if clause.strict else []
    return words


def cost_of(clause: Clause) -> int:
    """The units that a refund can give back; a place is not given back by units."""
    return 0 if isinstance(clause, Place) else clause.cost


def _absent(key: Key, limit: str | bytes, admitted: bool, sent: float) -> Verdict:
    return read.unavailable(key, int(limit), sent, admitted=admitted)


def one(command: str, key: Key, clause: Clause, *, force: bool = False) -> Call[Verdict]:
    """SLIDE.LOG, SLIDE.COUNTER, SLIDE.LEASE, or SLIDE.PEEK of a log or a counter."""
    words = clause_words(clause)
    cost = 0 if command == "SLIDE.PEEK" else cost_of(clause)
    options = [*(["FORCE"] if force else []), *([] if isinstance(clause, Place) else ["HEADERS"])]
    return Call(
        words=(command, name_of("key", key), *words, *options),
        keys=(key,),
        read=partial(read.of_one, key, cost=cost, force=force),
        absent=partial(_absent, key, words[0]),
        remembers=command in ("SLIDE.LOG", "SLIDE.COUNTER") and not force,
        forgets=force,
    )


def peek_lease(key: Key, tiers: Tiers) -> Call[Verdict]:
    """SLIDE.PEEK of leases, which takes no options."""
    words = tier_words(tiers)
    return Call(
        words=("SLIDE.PEEK", name_of("key", key), *words),
        keys=(key,),
        read=partial(read.of_one, key, cost=0),
        absent=partial(_absent, key, words[0]),
    )


def every(clauses: Mapping[Key, Clause], *, force: bool = False) -> Call[Verdict]:
    """SLIDE.ALL."""
    if not clauses:
        raise ValueError("there must be at least one key with its clause")
    keys = tuple(name_of("key", key) for key in clauses)
    kinds = {Log: "LOG", Counter: "COUNTER", Place: "LEASE"}
    words: list[Word] = []
    for clause in clauses.values():
        if type(clause) not in kinds:
            raise TypeError(f"a clause must be a Log, a Counter or a Place, got {clause!r}")
        words += [kinds[type(clause)], *clause_words(clause)]
    costs = tuple(cost_of(clause) for clause in clauses.values())
    leases = any(isinstance(clause, Place) for clause in clauses.values())

    def absent(admitted: bool, sent: float) -> Verdict:
        each = tuple(_absent(key, clause_words(clause)[0], admitted, sent) for key, clause in clauses.items())
        return replace(each[0], each=each)

    return Call(
        words=("SLIDE.ALL", str(len(keys)), *keys, *words, *(["FORCE"] if force else []), "HEADERS"),
        keys=keys,
        read=partial(read.of_all, keys, costs=costs, force=force),
        absent=absent,
        remembers=not (leases or force),
        forgets=force,
    )


def _count(command: Word, key: Key, *words: Word) -> Call[int]:
    return Call(
        words=(command, name_of("key", key), *words),
        keys=(key,),
        read=lambda reply, _: int(reply),
        absent=lambda *_: 0,
        forgets=True,
    )


def refund(of: Verdict | Key, units: int | None) -> Call[int] | None:
    """SLIDE.REFUND. Of a verdict: the units of that very call, by their age; None if there are none."""
    if not isinstance(of, Verdict):
        if units is None:
            raise TypeError("units must be an int: only a verdict knows how many there are")
        return _count("SLIDE.REFUND", of, integer("units", units))
    if of.each:
        raise ValueError("a refund is for one key: give it one of verdict.each")
    words: list[Word] = [integer("units", of.recorded if units is None else units)]
    if not of.recorded:
        return None
    age = timedelta(milliseconds=math.ceil((time.monotonic() - of.sent) * 1000))
    return _count("SLIDE.REFUND", of.key, *words, "AGE", text("age", age))


def release(key: Key, ids: tuple[Key, ...]) -> Call[int]:
    return _count("SLIDE.RELEASE", key, *(name_of("id", each) for each in ids))


def reset(key: Key) -> Call[int]:
    return _count("DEL", key)


def seconds_of(name: str, value: Duration) -> float:
    return milliseconds(name, value) / 1000
