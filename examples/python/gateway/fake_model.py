"""A model that does what it is asked to: streams tokens, fails, or hangs."""

import asyncio
import json

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route


async def generate(request):
    wish = await request.json()
    if wish.get("fails"):
        return PlainTextResponse("the model is overloaded", 503)
    while wish.get("hangs") == "at once" and not await request.is_disconnected():
        await asyncio.sleep(0.01)
    return StreamingResponse(tokens(wish), media_type="text/event-stream")


async def tokens(wish):
    for count in range(1, wish["tokens"] + 1):
        await asyncio.sleep(wish.get("pause", 0.001))
        if wish.get("hangs") == count:
            await asyncio.sleep(3600)
        yield f"data: {json.dumps({'token': 'word', 'usage': count})}\n\n"


model = Starlette(routes=[Route("/generate", generate, methods=["POST"])])
