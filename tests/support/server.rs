//! A server process: how it is set up, started, watched and ended.

use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use redis::{Client, Connection};
use tempfile::TempDir;

use super::{eventually, info, info_number, run};

/// Lines of the server's log that a failed test shows.
const LOG_TAIL: usize = 40;

/// What a reply may take before the server counts as hung.
const READ_TIMEOUT: Duration = Duration::from_secs(90);

/// What a server is started with.
#[derive(Debug, Clone)]
pub struct Setup {
    binary: Option<PathBuf>,
    module: bool,
    cluster: bool,
    sentinel: bool,
    lines: String,
    environment: Vec<(String, OsString)>,
    /// A program that runs the server, and its arguments.
    wrapper: Vec<OsString>,
    dir: Arc<TempDir>,
}

/// A running server. Dropping it ends the process.
#[derive(Debug)]
pub struct Server {
    child: Child,
    port: u16,
    dir: Arc<TempDir>,
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

fn log_of(dir: &Path) -> String {
    fs::read(dir.join("server.log"))
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}

impl Setup {
    /// The module loaded, nothing saved, everything else as the server's defaults are.
    pub fn new() -> Self {
        let mut setup = Setup::bare();
        setup.module = true;
        for line in [
            "save \"\"",
            "enable-debug-command yes",
            "enable-module-command yes",
            "crash-memcheck-enabled no",
            // Replicas come up at once, and nothing but effects moves the offset.
            "repl-diskless-sync-delay 0",
            "repl-ping-replica-period 3600",
            "repl-timeout 7200",
        ] {
            setup = setup.line(line);
        }
        setup
    }

    /// A sentinel that has yet to be told what to watch.
    pub fn sentinel() -> Self {
        let mut setup = Setup::bare();
        setup.sentinel = true;
        setup
    }

    fn bare() -> Self {
        let dir = TempDir::with_prefix("slide-").expect("a temporary folder");
        Setup {
            binary: None,
            module: false,
            cluster: false,
            sentinel: false,
            lines: "bind 127.0.0.1\n".to_owned(),
            environment: Vec::new(),
            wrapper: Vec::new(),
            dir: Arc::new(dir),
        }
    }

    /// The server under test.
    pub fn server_file() -> OsString {
        env::var_os("SLIDE_SERVER").unwrap_or_else(|| {
            panic!("SLIDE_SERVER does not say which server to test with: run `make test`")
        })
    }

    /// The module under test.
    pub fn module_file() -> PathBuf {
        let built = || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/release/libslide.so");
        let module = env::var_os("SLIDE_MODULE").map_or_else(built, PathBuf::from);
        assert!(
            module.exists(),
            "there is no module at {}: run `make test`",
            module.display()
        );
        std::path::absolute(&module).expect("a path")
    }

    /// Another server than the one under test.
    pub fn binary(mut self, binary: &Path) -> Self {
        self.binary = Some(binary.to_owned());
        self
    }

    pub fn without_module(mut self) -> Self {
        self.module = false;
        self
    }

    /// One more line of the configuration file.
    pub fn line(mut self, line: &str) -> Self {
        writeln!(self.lines, "{line}").expect("writing to a string");
        self
    }

    pub fn replica_of(self, primary: &Server) -> Self {
        self.line(&format!("replicaof 127.0.0.1 {}", primary.port))
    }

    /// As the only node of a cluster, which has yet to be given its slots.
    pub fn cluster(mut self) -> Self {
        self.cluster = true;
        self.line("cluster-enabled yes")
    }

    pub fn environment(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Run by another program, which becomes the server's process.
    pub fn under(mut self, wrapper: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.wrapper = wrapper.into_iter().map(Into::into).collect();
        self
    }

    /// In the folder, and so with the data, of an earlier server.
    pub fn in_dir(mut self, dir: Arc<TempDir>) -> Self {
        self.dir = dir;
        self
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn spawn(&self, port: u16) -> Child {
        let dir = self.dir.path();
        let mut lines = format!("port {port}\ndir {}\n{}", dir.display(), self.lines);
        if self.module {
            writeln!(lines, "loadmodule {}", Self::module_file().display()).expect("a string");
        }
        if self.cluster {
            // By default it would be the port plus 10,000, which may be too high.
            writeln!(lines, "cluster-port {}", free_port()).expect("a string");
        }
        fs::write(dir.join("server.conf"), lines).expect("the folder is writable");
        let log = File::create(dir.join("server.log")).expect("the folder is writable");
        let server = self
            .binary
            .as_ref()
            .map_or_else(Self::server_file, |binary| binary.clone().into());
        let mut words = self.wrapper.clone();
        words.extend([server, dir.join("server.conf").into()]);
        Command::new(&words[0])
            .args(&words[1..])
            .args(self.sentinel.then_some("--sentinel"))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file handle"))
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {words:?}: {error}"))
    }

    /// Starts it and waits until it serves.
    #[track_caller]
    pub fn start(self) -> Server {
        loop {
            let port = free_port();
            let mut server = Server {
                child: self.spawn(port),
                port,
                dir: Arc::clone(&self.dir),
            };
            let ended = eventually("the server answers PING", || {
                let ended = server.child.try_wait().expect("our own child");
                let answers = || {
                    server
                        .try_connect()
                        .and_then(|mut con| redis::cmd("PING").query::<String>(&mut con))
                };
                match ended {
                    Some(status) => Some(Some(status)),
                    None => answers().is_ok().then_some(None),
                }
            });
            match ended {
                None => return server,
                // Another process took the port first.
                Some(_) if server.log().contains("Address already in use") => {}
                Some(status) => panic!("the server ended with {status}"),
            }
        }
    }

    /// Starts it where that must fail, and gives what the server logged.
    #[track_caller]
    pub fn refuses(self) -> String {
        let port = free_port();
        let mut server = Server {
            child: self.spawn(port),
            port,
            dir: Arc::clone(&self.dir),
        };
        let status: ExitStatus = eventually("the server refuses and ends", || {
            server.child.try_wait().expect("our own child")
        });
        assert!(!status.success(), "it ended with {status}");
        server.log()
    }
}

impl Server {
    /// With the module and nothing else.
    #[track_caller]
    pub fn start() -> Self {
        Setup::new().start()
    }

    fn try_connect(&self) -> redis::RedisResult<Connection> {
        self.try_connect_with("")
    }

    fn try_connect_with(&self, parameters: &str) -> redis::RedisResult<Connection> {
        let address = format!("redis://127.0.0.1:{}/{parameters}", self.port);
        let con = Client::open(address)?.get_connection()?;
        con.set_read_timeout(Some(READ_TIMEOUT))?;
        Ok(con)
    }

    #[track_caller]
    pub fn connect(&self) -> Connection {
        self.try_connect().expect("the server takes connections")
    }

    /// A connection that speaks RESP3.
    #[track_caller]
    pub fn connect_resp3(&self) -> Connection {
        self.try_connect_with("?protocol=resp3")
            .expect("the server speaks RESP3")
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process's id.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn log(&self) -> String {
        log_of(self.dir.path())
    }

    /// Ends the process as an operator would, and leaves its folder.
    #[track_caller]
    pub fn shut_down(mut self) -> Arc<TempDir> {
        let sent = redis::cmd("SHUTDOWN")
            .arg("NOSAVE")
            .query::<()>(&mut self.connect());
        assert!(sent.is_err(), "the server closes the connection");
        let status = eventually("the server ends", || {
            self.child.try_wait().expect("our own child")
        });
        assert!(status.success(), "it ended with {status}");
        Arc::clone(&self.dir)
    }

    /// Kills the process with SIGKILL, and leaves its folder.
    pub fn crash(mut self) -> Arc<TempDir> {
        self.child.kill().expect("our own child");
        self.child.wait().expect("our own child");
        Arc::clone(&self.dir)
    }

    /// Waits until a replica has taken in all that this server has sent.
    #[track_caller]
    pub fn wait_for(&self, replica: &Server) {
        let (mut here, mut there) = (self.connect(), replica.connect());
        eventually("the replica has caught up", || {
            let sent = info_number(&mut here, "replication", "master_repl_offset");
            let up = info(&mut there, "replication", "master_link_status")? == "up";
            (up && sent == info_number(&mut there, "replication", "slave_repl_offset"))
                .then_some(())
        });
    }

    /// All commands that this server has written to its append-only file, transactions' brackets
    /// and database selections left out.
    pub fn append_only_file(&self) -> Vec<Vec<String>> {
        let mut commands = self.append_only_stream();
        commands.retain(|command| !["SELECT", "MULTI", "EXEC"].contains(&command[0].as_str()));
        commands
    }

    /// All that this server has written to its append-only file.
    pub fn append_only_stream(&self) -> Vec<Vec<String>> {
        let file = self
            .dir
            .path()
            .join("appendonlydir/appendonly.aof.1.incr.aof");
        let bytes = fs::read(&file).expect("the server runs with appendonly yes");
        let text = String::from_utf8(bytes).expect("only text was written");
        let mut words = text.split("\r\n");
        let mut commands = Vec::new();
        while let Some(count) = words.next().and_then(|word| word.strip_prefix('*')) {
            let count: usize = count.parse().expect("an array's length");
            let mut word = || {
                words.next().expect("a length");
                words.next().expect("a word").to_owned()
            };
            commands.push((0..count).map(|_| word()).collect::<Vec<_>>());
        }
        commands
    }

    /// Whether the process still runs and answers.
    #[track_caller]
    pub fn assert_alive(&self) {
        assert_eq!(run::<String>(&mut self.connect(), "PING", &[]), "PONG");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let tail = lines[lines.len().saturating_sub(LOG_TAIL)..].join("\n");
            eprintln!(
                "--- log of the server on port {} ---\n{tail}\n---",
                self.port
            );
        }
    }
}
