//! Rate limits for an axum service: paste this in and edit the table.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::{HeaderMap, StatusCode, header::CONTENT_TYPE};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hmac::{Hmac, KeyInit, Mac};
use redis::{RedisResult, Value, aio::ConnectionManager, cmd, from_redis_value};
use serde_json::json;
use sha2::Sha256;

type Headers = HashMap<String, String>;
type Judged = (bool, i64, i64, i64, i64);

/// What a request takes of a key, and the limits of that key.
struct Charge {
    key: String,
    limits: &'static str,
    cost: u64,
}

#[derive(Default)]
struct Answer {
    limited: bool,
    recorded: bool,
    headers: Headers,
}

pub struct RateLimits {
    pub account: &'static str,
    pub guest: &'static str,
    /// What a call of the path costs (0: never limited), and how often each client may call the path itself.
    pub endpoint: fn(path: &str) -> (u64, Option<&'static str>),
    /// A request that one of these answers costs nothing: what it needed has failed.
    pub give_back: &'static [StatusCode],
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
    let started = Instant::now();
    let charges = limits.charges(request.headers(), peer, path, cost, own);
    let answer = limits.ask_or_pass(&charges).await;
    let headers = HeaderMap::try_from(&answer.headers).unwrap_or_default();
    if answer.limited {
        let problem = json!({ "type": "about:blank", "title": "Too Many Requests", "status": 429 });
        let media = [(CONTENT_TYPE, "application/problem+json")];
        let status = StatusCode::TOO_MANY_REQUESTS;
        return (status, headers, media, problem.to_string()).into_response();
    }
    let response = next.run(request).await;
    if answer.recorded && limits.give_back.contains(&response.status()) {
        limits.give_back(&charges, started).await;
    }
    (headers, response).into_response()
}

impl RateLimits {
    fn charges(
        &self,
        headers: &HeaderMap,
        peer: SocketAddr,
        path: &str,
        cost: u64,
        own: Option<&'static str>,
    ) -> Vec<Charge> {
        let (client, limits) = self.client_of(headers, peer);
        let key = format!("rate:{{{client}}}"); // braces: in a cluster both keys of a client are on one node
        let own = own.map(|limits| Charge {
            key: format!("{key}:{path}"),
            limits,
            cost: 1,
        });
        let mut charges = vec![Charge { key, limits, cost }];
        charges.extend(own);
        charges
    }

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

    async fn ask_or_pass(&self, charges: &[Charge]) -> Answer {
        match self.in_time(self.ask(charges)).await {
            Ok(answer) => {
                self.down.store(false, Relaxed);
                answer
            }
            Err(error) => {
                self.failed_open.fetch_add(1, Relaxed);
                if !self.down.swap(true, Relaxed) {
                    tracing::warn!("no request is limited: {error}");
                }
                Answer::default()
            }
        }
    }

    async fn ask(&self, charges: &[Charge]) -> RedisResult<Answer> {
        let mut call = cmd("SLIDE.ALL");
        call.arg(charges.len());
        for Charge { key, .. } in charges {
            call.arg(key);
        }
        for Charge { limits, cost, .. } in charges {
            call.arg(limits.split(' ').collect::<Vec<_>>());
            call.arg("COST").arg(cost);
        }
        call.arg("HEADERS");
        let reply: Vec<Value> = call.query_async(&mut self.redis.clone()).await?;
        let mut reply = reply.into_iter();
        let limited = from_redis_value(reply.next().unwrap_or(Value::Nil))?;
        let headers = from_redis_value(reply.next_back().unwrap_or(Value::Nil))?;
        let judged: Vec<Judged> = reply.map(from_redis_value).collect::<Result<_, _>>()?;
        // A call with a wait was over a limit and not recorded, also while slide.enforce is off.
        let recorded = judged
            .iter()
            .all(|&(_, _, _, retry_after, _)| retry_after == 0);
        Ok(Answer {
            limited,
            recorded,
            headers,
        })
    }

    /// Gives back what was recorded at that moment. What cannot be given back expires.
    async fn give_back(&self, charges: &[Charge], started: Instant) {
        let age = format!("{}ms", started.elapsed().as_micros().div_ceil(1000));
        let mut refunds = redis::pipe();
        for Charge { key, cost, .. } in charges {
            refunds
                .cmd("SLIDE.REFUND")
                .arg(key)
                .arg(cost)
                .arg("AGE")
                .arg(&age)
                .ignore();
        }
        let mut redis = self.redis.clone();
        if let Err(error) = self.in_time(refunds.query_async::<()>(&mut redis)).await {
            tracing::warn!("not given back: {error}");
        }
    }

    async fn in_time<T>(&self, call: impl Future<Output = RedisResult<T>>) -> Result<T, String> {
        match tokio::time::timeout(self.timeout, call).await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(late) => Err(late.to_string()),
        }
    }
}

/// What a subscriber has: one IPv4 address, or the /64 around an IPv6 one.
pub fn network_of(address: &str) -> String {
    match address.parse::<IpAddr>().map(|ip| ip.to_canonical()) {
        Ok(IpAddr::V6(ip)) => format!("{:x?}", &ip.segments()[..4]),
        Ok(ip) => ip.to_string(),
        Err(_) => address.to_owned(),
    }
}
