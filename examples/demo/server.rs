//! A server with the module, which ends with the demonstration however that ends.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::{Client, Connection, RedisResult};
use tempfile::TempDir;

/// Waits until its input ends, which happens when the demonstration closes it or dies; then ends the
/// server and removes its folder. Signals from the terminal must not end it before.
const KEEPER: &str = r#"
trap '' HUP INT
dir=$1
shift
"$@" >"$dir/log" 2>&1 &
read -r _
kill $!
wait $!
rm -r "$dir"
"#;

/// How long a server may take to come up.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running server. Dropping it ends it.
#[derive(Debug)]
pub struct Server {
    keeper: Child,
    dir: PathBuf,
}

impl Server {
    /// Starts the server that `SLIDE_SERVER` names, by default Redis, with the module that
    /// `SLIDE_MODULE` names, by default the one that `make build` makes.
    pub fn start() -> Result<Self, Box<dyn Error>> {
        let program = env::var_os("SLIDE_SERVER").unwrap_or_else(|| "redis-server".into());
        let built = || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/release/libslide.so");
        let module = env::var_os("SLIDE_MODULE").map_or_else(built, PathBuf::from);
        let module = fs::canonicalize(&module)
            .map_err(|error| format!("{}: {error}: run `make build`", module.display()))?;
        let dir = TempDir::with_prefix("slide-demo-")?.keep();
        let keeper = Command::new("sh")
            .args(["-c", KEEPER, "sh"])
            .args([dir.as_os_str(), &program])
            // Its only door is a socket in its own folder: no port that another may have taken.
            .args(["--port", "0", "--unixsocket"])
            .arg(socket(&dir))
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(&dir)
            .arg("--loadmodule")
            .arg(module)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let server = Self { keeper, dir };
        server.wait()?;
        Ok(server)
    }

    pub fn connect(&self) -> RedisResult<Connection> {
        let address = format!("redis+unix://{}", socket(&self.dir).display());
        Client::open(address)?.get_connection()
    }

    fn wait(&self) -> Result<(), Box<dyn Error>> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let answers = |mut con| redis::cmd("PING").query::<String>(&mut con);
            if self.connect().and_then(answers).is_ok() {
                return Ok(());
            }
            sleep(Duration::from_millis(20));
        }
        let log = fs::read_to_string(self.dir.join("log"))?;
        Err(format!("The server does not come up. It said:\n{log}").into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // If it cannot be waited for, it still ends by itself.
        let _ = self.keeper.wait();
    }
}

fn socket(dir: &Path) -> PathBuf {
    dir.join("socket")
}
