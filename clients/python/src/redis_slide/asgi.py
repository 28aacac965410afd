"""A middleware for ASGI applications: FastAPI, Starlette, Litestar and others."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from redis_slide.http import KeyOf, LimitOf, Request, call_of, refusal
from redis_slide.slide import AsyncSlide

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class SlideMiddleware:
    """Limits HTTP requests; WebSockets and lifespan events pass.

    `key` gives a request's key, None for one that is not limited; `limit` is a Log or a Counter, or a function of
    the request and its key that gives one, or gives several as a mapping from keys. Over the limit the reply is
    429, 400 if the request can never pass, 503 if the server does not answer and the policy is closed; every
    reply has the headers. The verdict is `scope["redis_slide.verdict"]`.
    """

    def __init__(self, app: Application, slide: AsyncSlide, key: KeyOf, limit: LimitOf) -> None:
        self._app, self._slide, self._key, self._limit = app, slide, key, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = call_of(_request(scope), self._key, self._limit) if scope["type"] == "http" else None
        if call is None:
            return await self._app(scope, receive, send)
        verdict = await self._slide.decide(call)
        if refused := refusal(verdict):
            headers = _encoded(refused.headers)
            await send({"type": "http.response.start", "status": refused.status.value, "headers": headers})
            return await send({"type": "http.response.body", "body": refused.body})
        scope["redis_slide.verdict"] = verdict

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = _encoded(verdict.headers)
                names = {name for name, _ in ours}
                theirs = [pair for pair in message.get("headers", ()) if pair[0].lower() not in names]
                message = {**message, "headers": [*theirs, *ours]}
            await send(message)

        return await self._app(scope, receive, send_with_headers)


def _request(scope: Scope) -> Request:
    def header(name: str) -> list[str]:
        return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name.encode()]

    peer = scope["client"][0] if scope.get("client") else None
    return Request(scope["method"], scope["path"], peer or None, header, scope)


def _encoded(headers: Any) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]
