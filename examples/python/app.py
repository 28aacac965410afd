"""A service to try it on: uvicorn --factory app:service --no-proxy-headers"""

import os

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

from slide_fastapi import RateLimit

ACCOUNTS = {"demo-key-1": "1", "demo-key-2": "2"}


def service(url=os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"), **options):
    app = FastAPI()
    # Only a key that we gave out makes a caller an account: an invented one stays a guest.
    app.add_middleware(
        RateLimit, url=url, secret=os.environ.get("RATE_LIMIT_SECRET", "change me").encode(),
        account_of=ACCOUNTS.get, **options)

    @app.get("/items")
    async def items():
        return ["a", "b"]

    @app.get("/search")
    async def search(q: str = ""):
        return {"q": q, "found": []}

    @app.get("/reports/{id}")
    async def report(id: int):
        return {"report": id}

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics():
        return f"rate_limit_failed_open_total {RateLimit.failed_open}\n"

    return app
