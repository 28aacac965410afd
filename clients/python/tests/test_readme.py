"""What the README shows, as it is."""

import asyncio
import pathlib
import re

import fastapi
import flask
import httpx
import pytest
import redis
import redis.asyncio

import redis_slide.asgi
import redis_slide.wsgi

README = pathlib.Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def at_6379(server, monkeypatch):
    """The server of the tests in the place of one on the usual port."""
    connect = redis.Redis.__init__

    def init(self, *args, port, **options):
        assert port == 6379
        connect(self, *args, port=server.port, **options)

    monkeypatch.setattr(redis.Redis, "__init__", init)


def test_the_quick_start(at_6379, server, capsys):
    assert len(BLOCKS[0].splitlines()) <= 10
    server.client.execute_command("SLIDE.LOG", "user:42", 100, "60s", "COST", 99)
    exec(compile(BLOCKS[0], "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("{'X-RateLimit-Limit': '100', 'X-RateLimit-Remaining': '0'")
    exec(compile(BLOCKS[0], "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("try again in 0:00:")


def test_the_middlewares(server):
    flask_app, app = flask.Flask(__name__), fastapi.FastAPI()
    sync_client, async_client = redis.Redis(port=server.port), redis.asyncio.Redis(port=server.port)
    names = {"redis_slide": redis_slide, "SECRET": "secret", "app": app, "application": flask_app.wsgi_app}
    names |= {name: getattr(redis_slide, name) for name in redis_slide.__all__}
    definition, asgi, wsgi = BLOCKS[1].rsplit("\n", 3)[:3]
    exec(definition, names)
    exec(asgi, names | {"client": async_client})
    names["client"] = sync_client
    exec(wsgi, names)
    flask_app.wsgi_app = names["application"]

    forwarded = {"X-Forwarded-For": "6.6.6.6, 198.51.100.1"}
    client = flask_app.test_client()
    first = client.get("/", headers=forwarded, environ_base={"REMOTE_ADDR": "10.0.0.1"})
    assert first.headers["X-RateLimit-Remaining"] == "99"

    async def get():
        transport = httpx.ASGITransport(app, client=("198.51.100.1", 4711))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get("/")

    assert asyncio.run(get()).headers["X-RateLimit-Remaining"] == "98"
    key = redis_slide.ip_key("198.51.100.1", "secret")
    assert server.client.zcard(key) == 2
