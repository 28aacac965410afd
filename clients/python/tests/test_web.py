"""The middlewares, under the frameworks that people use."""

import asyncio
import contextlib

import django
import flask
import httpx
import litestar
import litestar.middleware
import pytest
import redis
import redis.asyncio
import starlette.applications
import starlette.responses
import starlette.routing
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path
from fastapi import FastAPI
from servers import free_port, until
from starlette.middleware import Middleware
from werkzeug.test import Client

from redis_slide import AsyncSlide, Counter, Log, Slide, client_ip, ip_key, tagged
from redis_slide.asgi import SlideMiddleware as Asgi
from redis_slide.wsgi import SlideMiddleware as Wsgi

urlpatterns = [path("", lambda request: HttpResponse(str(request.environ["redis_slide.verdict"].remaining)))]
settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="tests", DEBUG=False)
django.setup()


def key(request):
    if request.path == "/health":
        return None
    return request.header("X-Api-Key") or ip_key(client_ip(request.peer, "", []), "secret")


def limit(request, key):
    if request.path == "/many":
        return {tagged(f"{{{key}}}", "calls"): Log((5, "60s")), tagged(f"{{{key}}}", "all"): Counter((2, "1h"))}
    return Log((2, "60s"), cost=9 if request.path == "/huge" else 1)


def fastapi_app(**options):
    app = FastAPI()
    app.add_middleware(Asgi, **options)
    app.get("/")(lambda: "hello")
    app.get("/health")(lambda: "well")
    return app


def starlette_app(**options):
    def hello(request):
        remaining = request.scope["redis_slide.verdict"].remaining if request.url.path == "/" else ""
        return starlette.responses.PlainTextResponse(f"hello {remaining}", headers={"X-RateLimit-Limit": "?"})

    routes = [starlette.routing.Route(each, hello) for each in ("/", "/health", "/many", "/huge")]
    return starlette.applications.Starlette(routes=routes, middleware=[Middleware(Asgi, **options)])


def litestar_app(**options):
    @litestar.get(["/", "/health"], sync_to_thread=False)
    def hello() -> str:
        return "hello"

    return litestar.Litestar([hello], middleware=[litestar.middleware.DefineMiddleware(Asgi, **options)])


def flask_app(**options):
    app = flask.Flask(__name__)
    for each in ("/", "/health", "/many", "/huge"):
        app.add_url_rule(each, each, lambda: "hello")
    app.wsgi_app = Wsgi(app.wsgi_app, **options)
    return app


def django_app(**options):
    return Wsgi(get_wsgi_application(), **options)


class Service:
    """An application with a middleware, whichever kind it is."""

    def __init__(self, make, port, **options):
        self._loop = None
        options = {"timeout": "5s", **options}
        if make in (flask_app, django_app):
            self._app = make(slide=Slide(redis.Redis(port=port), **options), key=key, limit=limit)
        else:
            self._loop = asyncio.new_event_loop()
            self._slide = AsyncSlide(redis.asyncio.Redis(port=port), **options)
            self._app = make(slide=self._slide, key=key, limit=limit)

    def get(self, path="/", **headers):
        if self._loop is None:
            response = Client(self._app).get(path, headers=headers, environ_base={"REMOTE_ADDR": "192.0.2.1"})
            return httpx.Response(response.status_code, headers=list(response.headers), content=response.data)

        async def get():
            transport = httpx.ASGITransport(self._app, client=("192.0.2.1", 4711))
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.get(path, headers=headers)

        return self._loop.run_until_complete(get())

    def close(self):
        if self._loop:
            self._loop.run_until_complete(self._slide.close())
            self._loop.close()


@pytest.fixture
def service():
    with contextlib.ExitStack() as stack:
        yield lambda *args, **options: stack.enter_context(contextlib.closing(Service(*args, **options)))


ALL = pytest.mark.parametrize("make", [fastapi_app, starlette_app, litestar_app, flask_app, django_app])
ONE_OF_EACH = pytest.mark.parametrize("make", [starlette_app, flask_app])


@ALL
def test_a_request_over_the_limit_gets_429(service, server, make):
    web = service(make, server.port)
    first, second, third = (web.get(**{"X-Api-Key": "a"}) for _ in range(3))
    assert (first.status_code, second.status_code, third.status_code) == (200, 200, 429)
    assert [each.headers.get_list("X-RateLimit-Remaining") for each in (first, second, third)] == [
        ["1"],
        ["0"],
        ["0"],
    ]
    assert first.headers.get_list("X-RateLimit-Limit") == ["2"]
    assert first.headers["RateLimit-Policy"] == '"2-per-60s";q=2;w=60'
    assert "Retry-After" not in first.headers
    assert 1 <= int(third.headers["Retry-After"]) <= 60
    assert third.headers["Content-Type"] == "application/problem+json"
    assert third.headers["Content-Length"] == str(len(third.content))
    problem = third.json()
    assert (problem["type"], problem["title"], problem["status"]) == ("about:blank", "Too Many Requests", 429)
    assert web.get(**{"X-Api-Key": "b"}).status_code == 200
    assert web.get().status_code == 200
    assert web.get("/health" if make is not django_app else "/").headers.get("X-RateLimit-Remaining") != "2"


@ONE_OF_EACH
def test_a_request_without_a_key_is_not_limited(service, server, make):
    web = service(make, server.port)
    responses = [web.get("/health") for _ in range(5)]
    assert {response.status_code for response in responses} == {200}
    assert "RateLimit" not in responses[0].headers
    assert server.client.dbsize() == 0


@ONE_OF_EACH
def test_a_request_that_can_never_pass_gets_400(service, server, make):
    response = service(make, server.port).get("/huge")
    assert (response.status_code, response.json()["title"]) == (400, "Bad Request")
    assert "Retry-After" not in response.headers


@ONE_OF_EACH
def test_several_limits_at_once(service, server, make):
    web = service(make, server.port)
    responses = [web.get("/many") for _ in range(3)]
    assert [response.status_code for response in responses] == [200, 200, 429]
    assert responses[0].headers["RateLimit-Policy"] == '"5-per-60s";q=5;w=60, "2-per-3600s";q=2;w=3600'


@ONE_OF_EACH
def test_an_open_policy_lets_requests_pass(service, make):
    web = service(make, free_port(), timeout="50ms")
    response = web.get()
    assert response.status_code == 200
    assert "RateLimit" not in response.headers


@ONE_OF_EACH
def test_a_closed_policy_answers_503(service, make):
    web = service(make, free_port(), timeout="50ms", on_failure="closed")
    response = web.get()
    assert (response.status_code, response.json()["status"]) == (503, 503)
    assert response.headers["Retry-After"] == "1"


@ONE_OF_EACH
def test_a_frozen_server_delays_no_request(service, own_server, make):
    web = service(make, own_server.port, timeout="50ms")
    until(lambda: "RateLimit" in web.get().headers)
    own_server.freeze()
    try:
        responses = [web.get(**{"X-Api-Key": str(number)}) for number in range(20)]
    finally:
        own_server.thaw()
    assert {response.status_code for response in responses} == {200}
    assert "RateLimit" not in responses[-1].headers


def test_websockets_and_lifespan_pass(server):
    seen = []

    async def app(scope, receive, send):
        seen.append(scope["type"])

    async def run():
        slide = AsyncSlide(redis.asyncio.Redis(port=server.port))
        middleware = Asgi(app, slide, key, limit)
        for kind in ("lifespan", "websocket"):
            await middleware({"type": kind, "path": "/", "headers": []}, None, None)
        await slide.close()

    asyncio.run(run())
    assert seen == ["lifespan", "websocket"]
