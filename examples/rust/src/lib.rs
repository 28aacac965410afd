//! A service to try the rate limits on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::{Json, Router, routing::get};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use serde_json::json;

use rate_limit::RateLimits;

pub mod rate_limit;

/// Only a key that we gave out makes a caller an account: an invented one stays a guest.
fn account_of(api_key: &str) -> Option<&'static str> {
    match api_key {
        "demo-key-1" => Some("1"),
        "demo-key-2" => Some("2"),
        _ => None,
    }
}

fn endpoint(path: &str) -> (u64, Option<&'static str>) {
    match path {
        "/search" => (5, None),
        "/reports/{id}" => (10, Some("LOG 2 1h")),
        "/metrics" => (0, None),
        _ => (1, None),
    }
}

pub fn rate_limits(
    redis_url: &str,
    secret: &str,
    proxies: usize,
) -> redis::RedisResult<RateLimits> {
    let timeout = Duration::from_millis(50);
    // No retries: a request that finds Redis away passes, and the next one tries to connect again.
    let config = ConnectionManagerConfig::new()
        .set_number_of_retries(0)
        .set_connection_timeout(Some(timeout))
        .set_response_timeout(None);
    Ok(RateLimits {
        account: "LOG 100 60s 10000 1d",
        guest: "COUNTER 30 60s BUCKETS 10",
        endpoint,
        give_back: &[
            StatusCode::BAD_GATEWAY,
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::GATEWAY_TIMEOUT,
        ],
        account_of,
        secret: secret.as_bytes().to_vec(),
        proxies,
        timeout,
        redis: ConnectionManager::new_lazy_with_config(redis::Client::open(redis_url)?, config)?,
        failed_open: AtomicU64::new(0),
        down: AtomicBool::new(false),
    })
}

pub fn service(limits: Arc<RateLimits>) -> Router {
    let metrics = Arc::clone(&limits);
    Router::new()
        .route("/items", get(async || Json(json!(["a", "b"]))))
        .route("/search", get(async || Json(json!({ "found": [] }))))
        .route(
            "/reports/{id}",
            get(async |Path(id): Path<u64>| Json(json!({ "report": id }))),
        )
        .route(
            "/metrics",
            get(async move || {
                format!(
                    "rate_limit_failed_open_total {}\n",
                    metrics.failed_open.load(Relaxed)
                )
            }),
        )
        .layer(from_fn_with_state(limits, rate_limit::rate_limit))
}
