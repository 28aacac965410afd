import time
from datetime import timedelta

import pytest

from redis_slide import Counter, Log, Place, Slide
from redis_slide.policy import Memory

EASY = {"timeout": "5s"}


@pytest.fixture
def slide(slide_to, server):
    return slide_to(server.port, **EASY)


def test_a_flood_costs_the_server_about_one_call_a_window(slide, server):
    window = (5, "400ms")
    limited, admitted = server.count("log_limited"), server.count("log_admitted")
    ended = time.monotonic() + 2
    passed = asked = 0
    while time.monotonic() < ended:
        passed += slide.log("flood", window).admitted
        asked += 1
    assert asked > 500
    assert 5 * 4 <= passed <= 5 * 6
    assert server.count("log_admitted") - admitted == passed
    # One refusal each time the limit is reached; the oldest call may leave the window alone, so up to five.
    assert server.count("log_limited") - limited <= 5 * 6 + 5


def test_one_flood_on_one_full_window_is_one_call(slide, server):
    slide.counter("k", (10, "1h"), cost=10)
    limited = server.count("counter_limited")
    verdicts = [slide.counter("k", (10, "1h")) for _ in range(1000)]
    assert not any(verdicts)
    assert {verdict.source for verdict in verdicts[1:]} == {"remembered"}
    assert server.count("counter_limited") - limited == 1
    assert slide.stats().remembered == 999


def test_a_remembered_refusal_ends_when_the_server_would_admit(slide):
    slide.log("k", (1, "300ms"))
    refused = slide.log("k", (1, "300ms"))
    ends = refused.sent + refused.retry_after.total_seconds()
    last = refused
    while not (verdict := slide.log("k", (1, "300ms"))).admitted:
        last = verdict
        assert verdict.source == "remembered" or time.monotonic() >= ends
    assert last.retry_after < timedelta(milliseconds=300)
    assert verdict.sent >= ends - 0.001


def test_waits_are_counted_down(slide):
    slide.log("k", (1, "3s"))
    refused = slide.log("k", (1, "3s"))
    assert refused.headers["Retry-After"] == "3"
    assert refused.headers["RateLimit"].endswith("t=3")
    time.sleep(1.1)
    remembered = slide.log("k", (1, "3s"))
    assert remembered.source == "remembered"
    assert remembered.headers["Retry-After"] == "2"
    assert remembered.headers["RateLimit"].endswith("t=2")
    assert remembered.headers["X-RateLimit-Reset"] == refused.headers["X-RateLimit-Reset"]
    assert timedelta(milliseconds=900) < refused.retry_after - remembered.retry_after
    assert remembered.reset_after < refused.reset_after
    assert slide.refund(remembered, 1) == 0


def test_another_cost_tier_or_option_is_another_call(slide):
    slide.log("k", (10, "1h"), cost=8)
    assert not slide.log("k", (10, "1h"), cost=5).admitted
    assert slide.log("k", (10, "1h"), cost=2).admitted
    assert not slide.log("k", (10, "1h"), cost=5).admitted
    assert slide.log("k", (20, "1h"), cost=5).admitted


def test_a_refund_is_seen_at_once(slide):
    first = slide.log("k", (1, "1h"))
    assert not slide.log("k", (1, "1h")).admitted
    assert slide.refund(first, 1) == 1
    assert slide.log(b"k", (1, "1h")).admitted


def test_force_asks_the_server_and_drops_what_is_remembered(slide, server):
    slide.log("k", (1, "1h"))
    assert not slide.log("k", (1, "1h")).admitted
    assert slide.log("k", (1, "1h")).source == "remembered"
    assert slide.log("k", (1, "1h"), force=True).source == "server"
    assert slide.log("k", (1, "1h")).source == "server"


def test_all_is_remembered_and_dropped_by_each_of_its_keys(slide):
    clauses = {"a": Log((1, "1h")), "b": Counter((5, "1h"))}
    slide.all(clauses)
    slide.all(clauses)
    remembered = slide.all(clauses)
    assert (remembered.source, remembered.key) == ("remembered", "a")
    assert [each.source for each in remembered.each] == ["remembered", "remembered"]
    slide.refund("b", 1)
    assert slide.all(clauses).source == "server"


def test_leases_and_peeks_are_always_asked_for(slide):
    clauses = {"jobs": Place(1, "30s", "a"), "calls": Log((1, "1h"))}
    slide.all(clauses)
    assert [slide.all(clauses).source for _ in range(2)] == ["server", "server"]
    assert [slide.peek("calls", (1, "1h")).source for _ in range(2)] == ["server", "server"]
    taken = [slide.place("jobs", 1, "30s", "b") for _ in range(2)]
    assert [(verdict.admitted, verdict.source) for verdict in taken] == [(False, "server")] * 2


def test_never_is_remembered_too(slide):
    slide.log("k", (1, "1h"), cost=2)
    verdict = slide.log("k", (1, "1h"), cost=2)
    assert (verdict.source, verdict.can_pass) == ("remembered", False)
    assert "Retry-After" not in verdict.headers


def test_it_can_be_switched_off(slide_to, server):
    slide = slide_to(server.port, remember=0, **EASY)
    assert [slide.log("k", (1, "1h")).source for _ in range(4)] == ["server"] * 4


def test_the_table_is_bounded_and_its_oldest_entry_goes(slide_to, server):
    slide = slide_to(server.port, remember=3, **EASY)
    for key in "abcd":
        slide.log(key, (1, "1h"))
        slide.log(key, (1, "1h"))
    assert [slide.log(key, (1, "1h")).source for key in "bcd"] == ["remembered"] * 3
    assert slide.log("a", (1, "1h")).source == "server"


def test_a_refusal_that_was_decided_before_a_refund_is_not_remembered(server):
    import redis

    slide = Slide(redis.Redis(port=server.port), **EASY)
    first = slide.log("k", (1, "1h"))
    execute = slide._transport.execute

    def refused_while_another_thread_refunds(words):
        reply = execute(words)
        slide._transport.execute = execute
        assert slide.refund(first, 1) == 1
        return reply

    slide._transport.execute = refused_while_another_thread_refunds
    assert not slide.log("k", (1, "1h")).admitted
    assert slide.log("k", (1, "1h")).admitted
    slide.close()


def test_the_table_forgets_its_index_too(slide_to, server):
    memory = Memory(2)
    slide = slide_to(server.port, remember=0, **EASY)
    from redis_slide import calls

    slide.log("k0", (1, "1h"))
    verdict = slide.log("k0", (1, "1h"))
    for number in range(10):
        memory.put(calls.one("SLIDE.LOG", f"k{number}", Log((1, "1h"))), verdict)
    assert len(memory._refusals) == len(memory._of_key) == 2
    memory.forget(("k8", b"k9", "absent"))
    assert not memory._refusals
    assert not memory._of_key
