//! A Redis to start, kill and freeze, a service on a real port, and what it logs.

use std::collections::HashMap;
use std::io::{Result, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use futures_util::future::join_all;
use reqwest::header::HeaderMap;
use slide_axum_example::rate_limit::{RateLimits, rate_limit};
use slide_axum_example::{rate_limits, service};
use tempfile::TempDir;
use tracing::subscriber::DefaultGuard;

pub struct Redis {
    folder: TempDir,
    port: u16,
    process: Child,
}

impl Redis {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let process = Self::spawn(&folder, port);
        let mut redis = Self {
            folder,
            port,
            process,
        };
        redis.answers().await;
        redis
    }

    fn spawn(folder: &TempDir, port: u16) -> Child {
        let module = std::env::var("SLIDE_MODULE").unwrap_or_else(|_| {
            concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../target/release/libslide.so"
            )
            .to_owned()
        });
        Command::new(std::env::var("SLIDE_SERVER").unwrap_or_else(|_| "redis-server".to_owned()))
            .args([
                "--port",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--logfile",
                "redis.log",
            ])
            .args(["--loadmodule", &module, "--dir"])
            .arg(folder.path())
            .spawn()
            .unwrap()
    }

    async fn answers(&mut self) {
        until(async || {
            let log = self.folder.path().join("redis.log");
            assert!(
                self.process.try_wait().unwrap().is_none(),
                "{:?}",
                std::fs::read_to_string(log)
            );
            self.try_call::<String>(&["PING"]).await.is_ok()
        })
        .await;
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/?protocol=resp3", self.port)
    }

    async fn try_call<T: redis::FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        let mut connection = redis::Client::open(self.url())?
            .get_multiplexed_async_connection()
            .await?;
        redis::cmd(words[0])
            .arg(&words[1..])
            .query_async(&mut connection)
            .await
    }

    pub async fn call<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        self.try_call(words).await.unwrap()
    }

    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub async fn restart(&mut self) {
        self.process = Self::spawn(&self.folder, self.port);
        self.answers().await;
    }

    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &pid])
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}

pub async fn until(mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition().await {
        assert!(Instant::now() < deadline, "not within 20 s");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// What the service logs on the test's thread, where all of it runs.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

pub struct Service {
    pub limits: Arc<RateLimits>,
    url: String,
    http: reqwest::Client,
    log: Log,
    _logging: DefaultGuard,
}

pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub fn judged(&self) -> bool {
        self.header("X-RateLimit-Limit").is_some()
    }
}

/// What answers as it is asked to, and when.
fn upstream(limits: Arc<RateLimits>) -> Router {
    let answer = async |Query(asked): Query<HashMap<String, u64>>| {
        let asked = |name| asked.get(name).copied();
        tokio::time::sleep(Duration::from_secs(asked("seconds").unwrap_or(0))).await;
        StatusCode::from_u16(asked("status").unwrap().try_into().unwrap()).unwrap()
    };
    Router::new()
        .route("/upstream", get(answer))
        .route("/upstream/report", get(answer))
        .layer(from_fn_with_state(limits, rate_limit))
}

pub const KEY: &[(&str, &str)] = &[("X-API-Key", "demo-key-1")];

impl Service {
    pub async fn start(
        redis: &Redis,
        proxies: usize,
        change: impl FnOnce(&mut RateLimits),
    ) -> Self {
        let log = Log::default();
        let writer = log.clone();
        let logging = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .finish();
        let logging = tracing::subscriber::set_default(logging);
        let mut limits = rate_limits(&redis.url(), "secret", proxies).unwrap();
        // On a busy machine a reply can take longer than a service would wait for it; a test that
        // counts to the unit waits.
        limits.timeout = Duration::from_secs(10);
        change(&mut limits);
        let limits = Arc::new(limits);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = service(Arc::clone(&limits)).merge(upstream(Arc::clone(&limits)));
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async { axum::serve(listener, app).await });
        let service = Self {
            limits,
            url,
            http: reqwest::Client::new(),
            log,
            _logging: logging,
        };
        until(async || service.get("/items", KEY).await.judged()).await;
        redis.call::<()>(&["FLUSHALL"]).await;
        service.limits.failed_open.store(0, Relaxed);
        service.log.0.lock().unwrap().clear();
        service
    }

    pub async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        let mut request = self.http.get(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Reply {
            status,
            headers,
            body: response.text().await.unwrap(),
        }
    }

    /// Clients that each call at the same time as the others, one call after another.
    pub async fn storm(
        &self,
        clients: usize,
        each: usize,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Vec<Reply> {
        let client = async || {
            let mut replies = Vec::new();
            for _ in 0..each {
                replies.push(self.get(path, headers).await);
            }
            replies
        };
        join_all((0..clients).map(|_| client()))
            .await
            .into_iter()
            .flatten()
            .collect()
    }

    pub fn failed_open(&self) -> u64 {
        self.limits.failed_open.load(Relaxed)
    }

    pub fn log(&self) -> String {
        String::from_utf8(self.log.0.lock().unwrap().clone()).unwrap()
    }
}

/// How many of the replies have which status.
pub fn count(replies: &[Reply], status: u16) -> usize {
    replies
        .iter()
        .filter(|reply| reply.status == status)
        .count()
}
