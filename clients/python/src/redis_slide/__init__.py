"""Sliding-window rate limits by slide, a module for Redis and Valkey."""

from redis_slide.calls import Clause, Counter, Log, Place, Tier, Tiers
from redis_slide.durations import NEVER, Duration
from redis_slide.keys import api_key, client_ip, ip_key, tagged
from redis_slide.lease import AsyncLease, Lease, Refused
from redis_slide.policy import SlideError, Stats
from redis_slide.slide import AsyncSlide, Slide
from redis_slide.verdict import Key, Source, Verdict

__all__ = [
    "NEVER",
    "AsyncLease",
    "AsyncSlide",
    "Clause",
    "Counter",
    "Duration",
    "Key",
    "Lease",
    "Log",
    "Place",
    "Refused",
    "Slide",
    "SlideError",
    "Source",
    "Stats",
    "Tier",
    "Tiers",
    "Verdict",
    "api_key",
    "client_ip",
    "ip_key",
    "tagged",
]
