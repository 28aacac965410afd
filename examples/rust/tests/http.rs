//! The rate limits over real HTTP, against a real server.

use std::time::{Duration, Instant, UNIX_EPOCH};

use slide_axum_example::rate_limit::network_of;
use support::{KEY, Redis, Reply, Service, count, until};

mod support;

const TIMEOUT: Duration = Duration::from_millis(50);

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the text is a list of `"name";p=1;q=2`, each with these parameters, in whole numbers.
fn is_list_of(text: &str, needed: &[&str], optional: &[&str]) -> bool {
    text.split(", ").all(|item| {
        let mut parts = item.split(';');
        let name = parts.next().unwrap();
        let parameters: Vec<_> = parts.map(|part| part.split_once('=').unwrap()).collect();
        name.starts_with('"')
            && name.ends_with('"')
            && needed
                .iter()
                .all(|name| parameters.iter().any(|(have, _)| have == name))
            && parameters
                .iter()
                .all(|(name, _)| needed.contains(name) || optional.contains(name))
            && parameters.iter().all(|(_, value)| is_number(value))
    })
}

fn check_headers(reply: &Reply) {
    for name in [
        "X-RateLimit-Limit",
        "X-RateLimit-Remaining",
        "X-RateLimit-Reset",
    ] {
        assert!(
            is_number(reply.header(name).unwrap()),
            "{name}: {:?}",
            reply.header(name)
        );
    }
    let (policy, state) = (
        reply.header("RateLimit-Policy").unwrap(),
        reply.header("RateLimit").unwrap(),
    );
    assert!(is_list_of(policy, &["q", "w"], &[]), "{policy}");
    assert!(is_list_of(state, &["r"], &["t"]), "{state}");
    let wait = reply.header("Retry-After");
    if reply.status == 429 {
        assert!(
            wait.is_some_and(|wait| is_number(wait) && wait != "0"),
            "{wait:?}"
        );
        assert_eq!(
            reply.header("Content-Type"),
            Some("application/problem+json")
        );
        assert_eq!(
            reply.body,
            r#"{"status":429,"title":"Too Many Requests","type":"about:blank"}"#
        );
    } else {
        assert_eq!(wait, None);
    }
}

#[tokio::test]
async fn fifty_clients_of_one_account_get_exactly_the_limit() {
    let redis = Redis::start().await;
    let service = Service::start(&redis, 0, |_| ()).await;
    let replies = service.storm(50, 4, "/items", KEY).await;
    assert_eq!((count(&replies, 200), count(&replies, 429)), (100, 100));
    replies.iter().for_each(check_headers);
    let passed = replies.iter().filter(|reply| reply.status == 200);
    let mut remaining: Vec<u32> = passed
        .map(|reply| {
            reply
                .header("X-RateLimit-Remaining")
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect();
    remaining.sort_unstable();
    assert_eq!(remaining, (0..100).collect::<Vec<_>>());
    assert_eq!(service.failed_open(), 0);
}

#[tokio::test]
async fn fifty_guests_behind_one_address_get_exactly_the_limit() {
    let redis = Redis::start().await;
    let service = Service::start(&redis, 0, |_| ()).await;
    let replies = service.storm(50, 2, "/items", &[]).await;
    assert_eq!((count(&replies, 200), count(&replies, 429)), (30, 70));
    replies.iter().for_each(check_headers);
}

#[tokio::test]
async fn fifty_clients_hold_a_limit_of_the_endpoint_too() {
    let redis = Redis::start().await;
    let service = Service::start(&redis, 0, |_| ()).await;
    let replies = service.storm(50, 1, "/reports/7", KEY).await;
    assert_eq!((count(&replies, 200), count(&replies, 429)), (2, 48));
    for reply in &replies {
        check_headers(reply);
        assert_eq!(
            reply.header("RateLimit-Policy").unwrap(),
            r#""100-per-60s";q=100;w=60, "10000-per-86400s";q=10000;w=86400, "2-per-3600s";q=2;w=3600"#
        );
    }
    for reply in replies.iter().filter(|reply| reply.status == 429) {
        assert_eq!(reply.header("X-RateLimit-Limit"), Some("2"));
        let wait: u32 = reply.header("Retry-After").unwrap().parse().unwrap();
        assert!((3590..=3600).contains(&wait), "{wait}");
    }
    // What the endpoint refused cost the account nothing: 20 of 100 units are gone.
    assert_eq!(
        service
            .get("/items", KEY)
            .await
            .header("X-RateLimit-Remaining"),
        Some("79")
    );
}

/// The seconds from now until the reply's X-RateLimit-Reset.
fn reset(reply: &Reply) -> f64 {
    let reset: f64 = reply.header("X-RateLimit-Reset").unwrap().parse().unwrap();
    reset - UNIX_EPOCH.elapsed().unwrap().as_secs_f64()
}

#[tokio::test]
async fn the_headers_are_those_of_both_limits() {
    let redis = Redis::start().await;
    let service = Service::start(&redis, 0, |_| ()).await;
    let first = service.get("/reports/7", KEY).await;
    check_headers(&first);
    // Of an admitted call, X-RateLimit-* are those of the key with the fewest units left.
    assert_eq!(first.header("X-RateLimit-Limit"), Some("2"));
    assert_eq!(first.header("X-RateLimit-Remaining"), Some("1"));
    assert_eq!(
        first.header("RateLimit").unwrap(),
        r#""100-per-60s";r=90;t=60, "10000-per-86400s";r=9990;t=86400, "2-per-3600s";r=1;t=3600"#
    );
    service.storm(1, 18, "/search", KEY).await;
    // Of a limited call, they are those of the key with the longest wait: here the account's.
    let refused = service.get("/reports/7", KEY).await;
    check_headers(&refused);
    assert_eq!(refused.header("X-RateLimit-Limit"), Some("100"));
    assert_eq!(refused.header("X-RateLimit-Remaining"), Some("0"));
    let wait: f64 = refused.header("Retry-After").unwrap().parse().unwrap();
    assert!(wait <= 60.0, "{wait}");
    let reset = reset(&refused);
    assert!((wait - 2.0..=wait + 1.0).contains(&reset), "{wait} {reset}");
}

async fn refunded(redis: &Redis) -> u64 {
    let info: String = redis.call(&["INFO", "slide"]).await;
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("slide_refunded_units:"));
    line.unwrap().trim().parse().unwrap()
}

/// The key's entries, each with the time at which it was recorded.
async fn entries(redis: &Redis, key: &str) -> Vec<(String, f64)> {
    redis.call(&["ZRANGE", key, "0", "-1", "WITHSCORES"]).await
}

#[tokio::test]
async fn a_failed_upstream_costs_nothing() {
    let redis = Redis::start().await;
    let service = Service::start(&redis, 0, |limits| {
        limits.endpoint = |path| match path {
            "/upstream/report" => (10, Some("LOG 2 1h")),
            _ => (1, None),
        }
    })
    .await;
    for status in [502, 503, 504] {
        let path = format!("/upstream?status={status}");
        assert_eq!(service.get(&path, KEY).await.status, status);
        assert_eq!(redis.call::<u64>(&["DBSIZE"]).await, 0);
    }
    let report = service.get("/upstream/report?status=502", KEY).await;
    assert_eq!(report.header("X-RateLimit-Limit"), Some("2"));
    assert_eq!(redis.call::<u64>(&["DBSIZE"]).await, 0);
    assert_eq!(refunded(&redis).await, 3 + 10 + 1);
}

#[tokio::test]
async fn a_guest_gets_back_what_a_failed_upstream_cost() {
    let redis = Redis::start().await;
    let service = Service::start(&redis, 0, |_| ()).await;
    for path in ["/upstream?status=502", "/upstream?status=200"] {
        let reply = service.get(path, &[]).await;
        assert_eq!(reply.header("X-RateLimit-Remaining"), Some("29"));
    }
}

#[tokio::test]
async fn the_answers_of_the_service_itself_are_not_given_back() {
    let redis = Redis::start().await;
    let service = Service::start(&redis, 0, |_| ()).await;
    for status in [200, 404, 500] {
        service
            .get(&format!("/upstream?status={status}"), KEY)
            .await;
    }
    let next = service.get("/items", KEY).await;
    assert_eq!(next.header("X-RateLimit-Remaining"), Some("96"));
}

#[tokio::test]
async fn what_is_given_back_is_the_requests_own() {
    let redis = Redis::start().await;
    let service = Service::start(&redis, 0, |_| ()).await;
    let later = async {
        until(async || entries(&redis, "rate:{key:1}").await.len() == 1).await;
        // What is more than a second younger is never taken.
        tokio::time::sleep(Duration::from_millis(1200)).await;
        service.get("/items", KEY).await;
        entries(&redis, "rate:{key:1}").await[1].1
    };
    let slow = service.get("/upstream?status=502&seconds=2", KEY);
    let (slow, later) = futures_util::future::join(slow, later).await;
    assert_eq!(slow.status, 502);
    let left = entries(&redis, "rate:{key:1}").await;
    assert_eq!(
        left.iter().map(|entry| entry.1).collect::<Vec<_>>(),
        [later]
    );
}

#[tokio::test]
async fn what_was_not_recorded_is_not_given_back() {
    let redis = Redis::start().await;
    let service = Service::start(&redis, 0, |limits| limits.account = "LOG 1 60s").await;
    redis
        .call::<()>(&["CONFIG", "SET", "slide.enforce", "no"])
        .await;
    service.get("/items", KEY).await;
    let before = entries(&redis, "rate:{key:1}").await;
    // Over the limit, and let through only because limits are off.
    let reply = service.get("/upstream?status=502", KEY).await;
    assert_eq!(
        (reply.status, reply.header("X-RateLimit-Remaining")),
        (502, Some("0"))
    );
    assert_eq!(entries(&redis, "rate:{key:1}").await, before);
    assert_eq!(refunded(&redis).await, 0);
}

#[tokio::test]
async fn both_keys_of_a_client_are_in_one_slot_of_a_cluster() {
    let redis = Redis::start().await;
    let service = Service::start(&redis, 0, |_| ()).await;
    service.get("/reports/7", KEY).await;
    let mut keys: Vec<String> = redis.call(&["KEYS", "*"]).await;
    keys.sort();
    assert_eq!(keys, ["rate:{key:1}", "rate:{key:1}:/reports/{id}"]);
}

#[tokio::test]
async fn endpoints_cost_what_the_table_says() {
    let redis = Redis::start().await;
    let service = Service::start(&redis, 0, |_| ()).await;
    for (path, remaining) in [
        ("/search", "95"),
        ("/search?q=a", "90"),
        ("/items", "89"),
        ("/none", "88"),
    ] {
        assert_eq!(
            service.get(path, KEY).await.header("X-RateLimit-Remaining"),
            Some(remaining)
        );
    }
    assert!(!service.get("/metrics", KEY).await.judged());
}

#[tokio::test]
async fn a_retry_after_the_wait_passes() {
    let redis = Redis::start().await;
    let service = Service::start(&redis, 0, |limits| limits.account = "LOG 2 1500ms").await;
    assert_eq!(count(&service.storm(1, 2, "/items", KEY).await, 200), 2);
    let refused = service.get("/items", KEY).await;
    assert_eq!(refused.status, 429);
    check_headers(&refused);
    assert!((0.0..=3.0).contains(&reset(&refused)));
    tokio::time::sleep(Duration::from_secs(
        refused.header("Retry-After").unwrap().parse().unwrap(),
    ))
    .await;
    assert_eq!(service.get("/items", KEY).await.status, 200);
}

#[tokio::test]
async fn a_call_that_can_never_pass_promises_nothing() {
    let redis = Redis::start().await;
    let service = Service::start(&redis, 0, |limits| limits.account = "LOG 4 60s").await;
    for path in ["/search", "/reports/1"] {
        let refused = service.get(path, KEY).await;
        assert_eq!((refused.status, refused.header("Retry-After")), (429, None));
    }
}

#[tokio::test]
async fn an_invented_key_is_a_guest() {
    let redis = Redis::start().await;
    let service = Service::start(&redis, 0, |_| ()).await;
    for key in ["invented", "", "{key:1}"] {
        let reply = service.get("/items", &[("X-API-Key", key)]).await;
        assert_eq!(reply.header("X-RateLimit-Limit"), Some("30"));
    }
    let keys: Vec<String> = redis.call(&["KEYS", "*"]).await;
    assert_eq!(keys.len(), 1);
    assert!(
        keys[0].starts_with("rate:{ip:") && keys[0].len() == "rate:{ip:}".len() + 16,
        "{keys:?}"
    );
}

async fn left(service: &Service, forwarded: &[&str]) -> u32 {
    let headers: Vec<_> = forwarded
        .iter()
        .map(|line| ("X-Forwarded-For", *line))
        .collect();
    service
        .get("/items", &headers)
        .await
        .header("X-RateLimit-Remaining")
        .unwrap()
        .parse()
        .unwrap()
}

#[tokio::test]
async fn without_proxies_a_forwarded_address_means_nothing() {
    let redis = Redis::start().await;
    let service = Service::start(&redis, 0, |_| ()).await;
    assert_eq!(left(&service, &[]).await, 29);
    assert_eq!(left(&service, &["192.0.2.1"]).await, 28);
    assert_eq!(left(&service, &["192.0.2.2, 192.0.2.3"]).await, 27);
}

#[tokio::test]
async fn behind_proxies_the_entry_of_the_outermost_own_one_counts() {
    let redis = Redis::start().await;
    let service = Service::start(&redis, 2, |_| ()).await;
    assert_eq!(left(&service, &["192.0.2.1, 198.51.100.1"]).await, 29);
    assert_eq!(left(&service, &["192.0.2.2, 198.51.100.1"]).await, 29);
    // Invented entries before it change nothing, on however many lines they stand.
    assert_eq!(
        left(&service, &["203.0.113.9, 192.0.2.1, 198.51.100.1"]).await,
        28
    );
    assert_eq!(
        left(
            &service,
            &["203.0.113.9", "203.0.113.10,192.0.2.1", "198.51.100.1"]
        )
        .await,
        27
    );
}

#[test]
fn a_network_is_an_ipv4_address_or_an_ipv6_64() {
    assert_eq!(network_of("192.0.2.1"), "192.0.2.1");
    assert_eq!(network_of("::ffff:192.0.2.1"), "192.0.2.1");
    assert_eq!(
        network_of("2001:db8:1:2::1"),
        network_of("2001:0DB8:1:2:ffff::9")
    );
    assert_ne!(network_of("2001:db8:1:2::1"), network_of("2001:db8:1:3::1"));
    assert_eq!(network_of("unknown"), "unknown");
}

/// Twenty calls in a row and fifty at once during an outage.
async fn outage(service: &Service) {
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        let started = Instant::now();
        let reply = service.get("/items", KEY).await;
        slowest = slowest.max(started.elapsed());
        assert_eq!((reply.status, reply.judged()), (200, false));
    }
    println!("slowest of 20 calls: {} ms", slowest.as_millis());
    assert!(
        slowest < TIMEOUT + Duration::from_millis(450),
        "{slowest:?}"
    );
    let started = Instant::now();
    assert_eq!(
        count(&service.storm(50, 1, "/reports/1", KEY).await, 200),
        50
    );
    assert!(started.elapsed() < Duration::from_secs(3));
    assert_eq!(service.failed_open(), 70);
    assert_eq!(
        service.get("/metrics", &[]).await.body,
        "rate_limit_failed_open_total 70\n"
    );
    assert_eq!(
        service.log().matches("no request is limited").count(),
        1,
        "{}",
        service.log()
    );
}

/// By itself, without a restart of the service. A call that timed out may have been recorded.
async fn enforced_again(service: &Service) {
    until(async || {
        service
            .get("/items", &[("X-API-Key", "demo-key-2")])
            .await
            .judged()
    })
    .await;
    let timed_out = service.failed_open();
    let (mut passed, mut calls) = (0, 0);
    loop {
        let reply = service.get("/items", KEY).await;
        if reply.status == 429 {
            break;
        }
        passed += u64::from(reply.judged());
        calls += 1;
        assert!(calls <= 200);
    }
    let timed_out = service.failed_open() - timed_out;
    assert!(
        passed <= 100 && passed + timed_out >= 100,
        "{passed} passed, {timed_out} timed out"
    );
}

#[tokio::test]
async fn redis_killed_and_back() {
    let mut redis = Redis::start().await;
    let service = Service::start(&redis, 0, |limits| limits.timeout = TIMEOUT).await;
    redis.kill();
    outage(&service).await;
    redis.restart().await;
    enforced_again(&service).await;
}

#[tokio::test]
async fn redis_frozen_and_back() {
    let redis = Redis::start().await;
    let service = Service::start(&redis, 0, |limits| limits.timeout = TIMEOUT).await;
    redis.freeze();
    outage(&service).await;
    redis.thaw();
    // What waited in the frozen server's buffers has been recorded since.
    until(async || redis.call::<u64>(&["DBSIZE"]).await > 0).await;
    redis.call::<()>(&["FLUSHALL"]).await;
    enforced_again(&service).await;
}

#[tokio::test]
async fn redis_killed_in_the_middle_of_a_storm() {
    let mut redis = Redis::start().await;
    let service = Service::start(&redis, 0, |limits| limits.timeout = Duration::from_secs(1)).await;
    let storm = service.storm(50, 6, "/items", KEY);
    let killer = async {
        until(async || redis.call::<u64>(&["DBSIZE"]).await > 0).await;
        redis.kill();
    };
    let (replies, ()) = futures_util::future::join(storm, killer).await;
    assert!(
        replies
            .iter()
            .all(|reply| [200, 429].contains(&reply.status))
    );
    let judged: Vec<_> = replies.into_iter().filter(Reply::judged).collect();
    assert!(count(&judged, 200) <= 100);
    assert_eq!(judged.len() as u64 + service.failed_open(), 300);
    redis.restart().await;
    enforced_again(&service).await;
}

#[tokio::test]
async fn an_error_of_the_server_lets_requests_pass() {
    let redis = Redis::start().await;
    let service = Service::start(&redis, 0, |_| ()).await;
    redis
        .call::<()>(&["SET", "rate:{key:1}", "not a log"])
        .await;
    assert_eq!(service.get("/items", KEY).await.status, 200);
    assert_eq!(service.failed_open(), 1);
    assert!(service.log().contains("WRONGTYPE"), "{}", service.log());
}
