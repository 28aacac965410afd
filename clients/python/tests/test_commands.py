import math
import time
from datetime import timedelta

import pytest

from redis_slide import NEVER, Counter, Log, Place, SlideError, Stats

HEADERS = {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit-Policy", "RateLimit"}

# A timeout that a loaded machine keeps: these tests are about what is answered.
EASY = {"timeout": "5s"}


@pytest.fixture
def slide(slide_to, server, protocol):
    return slide_to(server.port, {"protocol": protocol}, remember=0, **EASY)


def test_a_log_admits_its_limit_and_says_when_to_come_again(slide):
    first = slide.log("user:1", (3, "60s"), cost=2)
    assert first
    assert (first.admitted, first.over, first.limit, first.remaining) == (True, False, 3, 1)
    assert (first.retry_after, first.source, first.can_pass) == (timedelta(0), "server", True)
    assert timedelta(seconds=59) < first.reset_after <= timedelta(seconds=60)
    assert set(first.headers) == HEADERS
    assert first.headers["RateLimit-Policy"] == '"3-per-60s";q=3;w=60'

    second = slide.log("user:1", (3, "60s"), cost=2)
    assert not second
    assert (second.admitted, second.over, second.remaining) == (False, True, 1)
    assert timedelta(seconds=50) < second.retry_after <= timedelta(seconds=60)
    assert set(second.headers) == HEADERS | {"Retry-After"}
    assert int(second.headers["Retry-After"]) == math.ceil(second.retry_after.total_seconds())
    assert slide.log(b"user:1", [(3, timedelta(minutes=1)), (9, "1h")]).remaining == 0


def test_a_call_that_costs_more_than_the_limit_never_passes(slide):
    verdict = slide.log("k", (3, "60s"), cost=4)
    assert not verdict.admitted
    assert verdict.retry_after == NEVER
    assert not verdict.can_pass
    assert "Retry-After" not in verdict.headers


def test_a_counter_takes_its_options(slide, server):
    assert slide.counter("c", [(5, "60s"), (50, "1h")], cost=5, buckets=10, strict=True).admitted
    assert set(server.client.hkeys("c")) == {"60000/10", "3600000/10"}
    assert not slide.counter("c", (5, "60s"), buckets=10, strict=True).admitted
    assert slide.counter("c", (5, "60s"), cost=3, force=True, buckets=10).over
    assert slide.peek("c", (10, "60s"), cost=0, buckets=10).remaining == 2


def test_a_peek_records_nothing(slide):
    assert slide.peek("k", (1, "60s")).admitted
    assert slide.peek("k", (1, "60s")).remaining == 1
    slide.log("k", (1, "60s"))
    peeked = slide.peek("k", (1, "60s"))
    assert peeked.over
    assert slide.refund(peeked, 1) == 0


def test_a_refund_of_a_verdict_takes_its_own_units_and_no_others(slide):
    window = (10, "1500ms")
    verdict = slide.log("k", window, cost=3)
    assert slide.refund(verdict, 2) == 2
    assert slide.refund(verdict) == 1
    time.sleep(1.6)
    assert slide.log("k", window).admitted  # somebody else, more than a second later
    assert slide.refund(verdict, 1) == 0
    assert slide.peek("k", window).remaining == 9
    assert slide.refund("k", 5) == 1
    with pytest.raises(TypeError, match="units must be an int"):
        slide.refund("k")


def test_what_was_not_recorded_is_not_refunded(slide, server):
    slide.log("k", (1, "60s"))
    over = slide.log("k", (1, "60s"))
    assert over.over
    refunded = server.count("refunded_units")
    assert slide.refund(over, 1) == 0
    assert server.count("refunded_units") == refunded
    forced = slide.log("k", (1, "60s"), force=True)
    assert forced.over
    assert slide.refund(forced, 1) == 1


def test_places_are_peeked_at_and_a_reset_forgets(slide):
    assert slide.peek("jobs", (1, "1s"), lease=True).admitted
    slide.place("jobs", 1, "30s", "a")
    assert not slide.peek("jobs", (1, "1s"), lease=True).admitted
    assert slide.reset("jobs") == 1
    assert slide.peek("jobs", (1, "1s"), lease=True).admitted


def test_all_takes_from_every_key_or_from_none(slide):
    clauses = {"calls": Log((2, "60s")), b"tokens": Counter([(100, "60s"), (900, "1h")], cost=60, buckets=4)}
    first = slide.all(clauses)
    assert first.admitted
    assert [(each.key, each.limit, each.remaining) for each in first.each] == [
        ("calls", 2, 1),
        (b"tokens", 100, 40),
    ]
    assert (first.key, first.remaining) == ("calls", 1)
    assert set(first.headers) == HEADERS
    assert first.headers["RateLimit-Policy"].count(";q=") == 3

    second = slide.all(clauses)
    assert not second
    assert [each.over for each in second.each] == [False, True]
    assert (second.key, second.retry_after) == (b"tokens", second.each[1].retry_after)
    assert slide.peek("calls", (2, "60s")).remaining == 1
    assert slide.refund(second.each[0], 1) == 0
    assert (first.each[0].recorded, first.each[1].recorded) == (1, 60)
    assert slide.refund(first.each[0]) == 1
    with pytest.raises(ValueError, match=r"one of verdict\.each"):
        slide.refund(first, 1)
    assert slide.all(clauses, force=True).over
    assert slide.peek("calls", (2, "60s")).remaining == 1


def test_all_with_a_place(slide):
    clauses = {"jobs": Place(1, "30s", "a"), "calls": Log((9, "60s"))}
    assert slide.all(clauses).admitted
    assert slide.all(clauses).admitted  # the same id renews its place
    assert slide.refund(slide.all(clauses).each[0], 1) == 0
    assert not slide.all({**clauses, "jobs": Place(1, "30s", "b")}).admitted
    assert slide.release("jobs", "a", "nobody") == 1
    assert slide.all({"jobs": Place(1, "30s", "b")}).admitted


def test_a_dry_run_admits_and_says_what_was_over(slide, server):
    server.client.config_set("slide.enforce", "no")
    try:
        slide.log("k", (1, "60s"))
        verdict = slide.log("k", (1, "60s"))
        assert verdict.admitted
        assert verdict.over
        assert slide.refund(verdict, 1) == 0
    finally:
        server.client.config_set("slide.enforce", "yes")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda slide: slide.log("k", (1, 60)), "window must be a timedelta or text with a unit"),
        (lambda slide: slide.log("k", (1, 60.0)), "window must be a timedelta"),
        (lambda slide: slide.log("k", ("1", "60s")), "limit must be an int, got '1'"),
        (lambda slide: slide.log("k", (1, "60s"), cost=1.0), "cost must be an int"),
        (lambda slide: slide.log("k", (1, "60s"), cost=True), "cost must be an int"),
        (lambda slide: slide.log(7, (1, "60s")), "key must be str or bytes"),
        (lambda slide: slide.log("k", [1, "60s"]), "a tier must be a limit and a window"),
        (lambda slide: slide.counter("k", (1, "60s"), buckets="4"), "buckets must be an int"),
        (lambda slide: slide.refund("k", "1"), "units must be an int"),
        (lambda slide: slide.all({"k": (1, "60s")}), "a clause must be a Log"),
    ],
)
def test_a_wrong_type_is_an_error_before_anything_is_sent(slide, wrong, words):
    with pytest.raises(TypeError, match=words):
        wrong(slide)
    assert slide.stats().calls == 0


@pytest.mark.parametrize("window", ["60", "60 s", "60S", "-1s", "1.5s", "06s", "", timedelta(microseconds=5)])
def test_a_window_that_is_none_is_an_error(slide, window):
    with pytest.raises(ValueError, match="window must be"):
        slide.log("k", (1, window))


@pytest.mark.parametrize("tiers", [[], ()])
def test_no_tier_is_an_error(slide, tiers):
    with pytest.raises(ValueError, match="at least one tier"):
        slide.log("k", tiers)


def test_an_error_reply_is_raised(slide, server, caplog):
    with pytest.raises(SlideError, match="limit must be an integer from 0 to 9007199254740991, got '-3'"):
        slide.log("k", (-3, "60s"))
    server.client.set("text", "x")
    with pytest.raises(SlideError, match="WRONGTYPE"):
        slide.log("text", (3, "60s"))
    with pytest.raises(SlideError):
        slide.refund("text", 1)
    assert slide.stats() == Stats(3, 0, 0, 0, 0, errors=3, outages=0)
    assert not caplog.records


@pytest.mark.parametrize(("on_failure", "admitted"), [("open", True), ("closed", False)])
def test_an_error_reply_can_follow_the_policy(slide_to, server, caplog, on_failure, admitted):
    slide = slide_to(server.port, raise_errors=False, on_failure=on_failure, **EASY)
    for _ in range(3):
        verdict = slide.log("k", (-3, "60s"))
        assert (verdict.admitted, verdict.source) == (admitted, "unavailable")
    assert slide.stats() == Stats(3, 0, 0, 0, 0, errors=3, outages=0)
    assert len(caplog.records) == 1
    assert "limit must be an integer" in caplog.records[0].getMessage()


def test_stats_add_up(slide_to, server):
    slide = slide_to(server.port, **EASY)
    for _ in range(5):
        slide.log("k", (2, "60s"))
    assert slide.stats() == Stats(5, admitted=2, limited=1, remembered=2, unavailable=0, errors=0, outages=0)


@pytest.mark.parametrize("decode", [True, False])
def test_the_clients_settings_do_not_matter(slide_to, server, decode):
    client = {"decode_responses": decode, "db": 3, "health_check_interval": 1, "client_name": "limiter"}
    slide = slide_to(server.port, client, **EASY)
    assert slide.log("k", (2, "60s")).headers["X-RateLimit-Limit"] == "2"
    assert server.client.info("keyspace")["db3"]["keys"] == 1
    assert any(each["name"] == "limiter" for each in server.client.client_list())
