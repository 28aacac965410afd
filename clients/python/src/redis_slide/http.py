"""What the middlewares for ASGI and WSGI share: who is limited by what, and the reply to who is over it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple

from redis_slide import calls
from redis_slide.calls import Call, Clause, Counter, Log
from redis_slide.verdict import Key, Verdict


@dataclass(frozen=True, slots=True)
class Request:
    """What a key or a limit may depend on, the same under ASGI and WSGI."""

    method: str
    path: str
    peer: str | None
    """The address of the connection; None on a Unix socket."""
    _header: Callable[[str], list[str]]
    raw: Any
    """The ASGI scope, or the WSGI environ."""

    def header(self, name: str) -> str | None:
        """The value of a header; several of one name are joined by a comma."""
        return ", ".join(values) if (values := self._header(name.lower())) else None


KeyOf = Callable[[Request], Key | None]
Limit = Clause | Mapping[Key, Clause]
LimitOf = Limit | Callable[[Request, Key], Limit]


class Refusal(NamedTuple):
    """The reply to a request that is turned away."""

    status: HTTPStatus
    headers: dict[str, str]
    body: bytes


def call_of(request: Request, key_of: KeyOf, limit_of: LimitOf) -> Call[Verdict] | None:
    """The call that judges a request; None for one that is not limited."""
    if (key := key_of(request)) is None:
        return None
    limit = limit_of(request, key) if callable(limit_of) else limit_of
    if isinstance(limit, Mapping):
        return calls.every(limit) if limit else None
    if isinstance(limit, Log | Counter):
        return calls.one("SLIDE.LOG" if isinstance(limit, Log) else "SLIDE.COUNTER", key, limit)
    raise TypeError(f"limit must be a Log, a Counter or a mapping of keys to those, got {limit!r}")


def refusal(verdict: Verdict) -> Refusal | None:
    """None for a request that may go on."""
    if verdict.admitted:
        return None
    headers = dict(verdict.headers)
    if verdict.source == "unavailable":
        status, detail = HTTPStatus.SERVICE_UNAVAILABLE, "The rate limiter does not answer."
        headers["Retry-After"] = "1"
    elif verdict.can_pass:
        status, detail = (
            HTTPStatus.TOO_MANY_REQUESTS,
            "Too many requests: Retry-After says when to try again.",
        )
    else:
        status, detail = HTTPStatus.BAD_REQUEST, "This request costs more than its limit ever allows."
    problem = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}
    body = json.dumps(problem).encode()
    headers |= {"Content-Type": "application/problem+json", "Content-Length": str(len(body))}
    return Refusal(status, headers, body)
