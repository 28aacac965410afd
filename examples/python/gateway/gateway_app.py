"""The gateway as a service: uvicorn --factory gateway_app:gateway"""

import os

from llm_gateway import Gateway

ACCOUNTS = {"demo-key-1": "1", "demo-key-2": "2"}


def gateway(**options):
    return Gateway(
        os.environ.get("MODEL_URL", "http://127.0.0.1:8001"),
        os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"),
        ACCOUNTS.get, ttl=float(os.environ.get("LEASE_SECONDS", 60)), **options)
