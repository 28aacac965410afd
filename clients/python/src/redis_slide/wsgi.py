"""A middleware for WSGI applications: Flask, Django and others."""

from collections.abc import Callable, Iterable
from typing import Any

from redis_slide.http import KeyOf, LimitOf, Request, call_of, refusal
from redis_slide.slide import Slide

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]


class SlideMiddleware:
    """Limits requests: `app.wsgi_app = SlideMiddleware(app.wsgi_app, slide, key, limit)`.

    `key` gives a request's key, None for one that is not limited; `limit` is a Log or a Counter, or a function of
    the request and its key that gives one, or gives several as a mapping from keys. Over the limit the reply is
    429, 400 if the request can never pass, 503 if the server does not answer and the policy is closed; every
    reply has the headers. The verdict is `environ["redis_slide.verdict"]`.
    """

    def __init__(self, app: Application, slide: Slide, key: KeyOf, limit: LimitOf) -> None:
        self._app, self._slide, self._key, self._limit = app, slide, key, limit

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        call = call_of(_request(environ), self._key, self._limit)
        if call is None:
            return self._app(environ, start_response)
        verdict = self._slide.decide(call)
        if refused := refusal(verdict):
            start_response(f"{refused.status.value} {refused.status.phrase}", list(refused.headers.items()))
            return [refused.body]
        environ["redis_slide.verdict"] = verdict
        names = {name.lower() for name in verdict.headers}

        def start_with_headers(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            theirs = [pair for pair in headers if pair[0].lower() not in names]
            return start_response(status, [*theirs, *verdict.headers.items()], *rest)

        return self._app(environ, start_with_headers)


def _request(environ: Environ) -> Request:
    def header(name: str) -> list[str]:
        plain = name.upper().replace("-", "_")
        value = environ.get(plain if name in ("content-type", "content-length") else f"HTTP_{plain}")
        return [] if value is None else [value]

    path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    return Request(environ["REQUEST_METHOD"], path, environ.get("REMOTE_ADDR") or None, header, environ)
