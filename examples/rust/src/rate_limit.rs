//! Rate limits for an axum service: paste this in and edit the table.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::{HeaderMap, StatusCode, header::CONTENT_TYPE};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hmac::{Hmac, KeyInit, Mac};
use redis::{RedisResult, aio::ConnectionManager, cmd};
use serde_json::json;
use sha2::Sha256;

type Headers = HashMap<String, String>;
type Answer = (bool, Headers);
type Judged = (bool, i64, i64, i64, i64);
type Reported = (bool, i64, i64, i64, i64, Headers);

pub struct RateLimits {
    pub account: &'static str,
    pub guest: &'static str,
    /// What a call of the path costs (0: never limited), and a limit of the path's own for each client.
    pub endpoint: fn(path: &str) -> (u64, Option<&'static str>),
    pub account_of: fn(api_key: &str) -> Option<&'static str>,
    pub secret: Vec<u8>,
    pub proxies: usize,
    pub timeout: Duration,
    pub redis: ConnectionManager,
    /// The metric: requests that passed because Redis did not answer.
    pub failed_open: AtomicU64,
    pub down: AtomicBool,
}

pub async fn rate_limit(
    State(limits): State<Arc<RateLimits>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    path: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let path = path.as_ref().map_or("", MatchedPath::as_str);
    let (cost, own) = (limits.endpoint)(path);
    if cost == 0 {
        return next.run(request).await;
    }
    let (client, tiers) = limits.client_of(request.headers(), peer);
    let ask = limits.ask(format!("rate:{{{client}}}"), tiers, path, cost, own);
    let (limited, headers) = limits.answer_or_pass(ask).await;
    let headers = HeaderMap::try_from(&headers).unwrap_or_default();
    if limited {
        let problem = json!({ "type": "about:blank", "title": "Too Many Requests", "status": 429 });
        let media = [(CONTENT_TYPE, "application/problem+json")];
        let status = StatusCode::TOO_MANY_REQUESTS;
        return (status, headers, media, problem.to_string()).into_response();
    }
    (headers, next.run(request).await).into_response()
}

impl RateLimits {
    fn client_of(&self, headers: &HeaderMap, peer: SocketAddr) -> (String, &'static str) {
        let api_key = headers.get("x-api-key").and_then(|key| key.to_str().ok());
        if let Some(account) = api_key.and_then(self.account_of) {
            return (format!("key:{account}"), self.account);
        }
        // Each proxy appends the address that called it: as many entries from the right as there
        // are proxies of our own are true, and what stands before them is the caller's invention.
        let lines = headers.get_all("x-forwarded-for").iter();
        let lines: Vec<_> = lines.filter_map(|line| line.to_str().ok()).collect();
        let lines = lines.join(",");
        let mut hops: Vec<_> = lines.split_terminator(',').map(str::to_owned).collect();
        hops.push(peer.ip().to_string());
        let address = hops[hops.len().saturating_sub(self.proxies + 1)].trim();
        let mut hash = Hmac::<Sha256>::new_from_slice(&self.secret).expect("any length will do");
        hash.update(network_of(address).as_bytes());
        let hash = hash.finalize().into_bytes();
        let hash: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        (format!("ip:{hash}"), self.guest)
    }

    async fn answer_or_pass(&self, ask: impl Future<Output = RedisResult<Answer>>) -> Answer {
        let error = match tokio::time::timeout(self.timeout, ask).await {
            Ok(Ok(answer)) => {
                self.down.store(false, Relaxed);
                return answer;
            }
            Ok(Err(error)) => error.to_string(),
            Err(late) => late.to_string(),
        };
        self.failed_open.fetch_add(1, Relaxed);
        if !self.down.swap(true, Relaxed) {
            tracing::warn!("no request is limited: {error}");
        }
        (false, Headers::new())
    }

    async fn ask(
        &self,
        key: String, // its braces keep both keys of a client on one node of a cluster
        limits: &str,
        path: &str,
        cost: u64,
        own: Option<&str>,
    ) -> RedisResult<Answer> {
        let mut redis = self.redis.clone();
        let (kind, tiers) = limits.split_once(' ').unwrap_or_default();
        let Some(own) = own else {
            let options = format!("{tiers} COST {cost} HEADERS");
            let mut call = cmd(&format!("SLIDE.{kind}"));
            let call = call.arg(key).arg(words(&options));
            let reply: Reported = call.query_async(&mut redis).await?;
            return Ok((reply.0, reply.5));
        };
        let (keys, mut calls) = ([&key, &format!("{key}:{path}")], redis::pipe());
        let clauses = format!("{limits} {own} COST {cost}");
        calls
            .cmd("SLIDE.ALL")
            .arg(2)
            .arg(&keys)
            .arg(words(&clauses));
        // ALL has no HEADERS, and a call that costs nothing tells what it left.
        for (key, clause) in keys.into_iter().zip([limits, own]) {
            let options = format!("{clause} COST 0 HEADERS");
            calls.cmd("SLIDE.PEEK").arg(key).arg(&words(&options)[1..]);
        }
        type Replies = ((bool, Judged, Judged), Reported, Reported);
        let ((limited, a, b), peek_a, peek_b): Replies = calls.query_async(&mut redis).await?;
        let [wait_a, wait_b] = [a.3, b.3].map(|wait| u64::try_from(wait).unwrap_or(u64::MAX)); // -1: never
        let b_is_worse = if limited { wait_b > wait_a } else { b.2 < a.2 };
        let mut headers = if b_is_worse {
            peek_b.5.clone()
        } else {
            peek_a.5.clone()
        };
        for (name, value) in &mut headers {
            if name.starts_with("RateLimit") {
                *value = format!("{}, {}", peek_a.5[name], peek_b.5[name]);
            }
        }
        let wait = wait_a.max(wait_b);
        if limited && wait < u64::MAX {
            let seconds = wait.div_ceil(1000).to_string();
            headers.insert("Retry-After".to_owned(), seconds);
        }
        Ok((limited, headers))
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

/// What a subscriber has: one IPv4 address, or the /64 around an IPv6 one.
pub fn network_of(address: &str) -> String {
    match address.parse::<IpAddr>().map(|ip| ip.to_canonical()) {
        Ok(IpAddr::V6(ip)) => format!("{:x?}", &ip.segments()[..4]),
        Ok(ip) => ip.to_string(),
        Err(_) => address.to_owned(),
    }
}
