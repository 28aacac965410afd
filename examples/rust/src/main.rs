use std::env::var;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use slide_axum_example::{rate_limits, service};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt::init();
    let setting = |name, default: &str| var(name).unwrap_or_else(|_| default.to_owned());
    let limits = rate_limits(
        &setting("REDIS_URL", "redis://127.0.0.1:6379"),
        &setting("RATE_LIMIT_SECRET", "change me"),
        setting("TRUSTED_PROXIES", "0").parse()?,
    )?;
    let listener =
        tokio::net::TcpListener::bind(("127.0.0.1", setting("PORT", "8000").parse()?)).await?;
    println!("http://{}/items", listener.local_addr()?);
    let service = service(Arc::new(limits)).into_make_service_with_connect_info::<SocketAddr>();
    Ok(axum::serve(listener, service).await?)
}
