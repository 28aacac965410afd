//! A cluster of six nodes, and clients that know it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use redis::cluster::{ClusterClient, ClusterConnection};
use redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
use redis::{Cmd, Connection, RedisError, Value};
use tempfile::TempDir;

use crate::support::{Reply, Server, Setup, all_replies, eventually, info, line, run};
use crate::wire::assert_agree;

/// Each third of the slots.
const SLOTS: [(u16, u16); 3] = [(0, 5460), (5461, 10_922), (10_923, 16_383)];

/// Three primaries, and a replica of each at the same place.
pub struct Cluster {
    pub primaries: Vec<Server>,
    pub replicas: Vec<Server>,
}

fn setup() -> Setup {
    Setup::new()
        .cluster()
        // What is not of the slots of a dead node goes on.
        .line("cluster-require-full-coverage no")
        // Who is alive goes round in half of this time. See `Cluster::start`.
        .line("cluster-node-timeout 2000")
        // Nobody takes over because the machine is busy: only the test that wants it lets them.
        .line("cluster-replica-no-failover yes")
        .line("cluster-announce-ip 127.0.0.1")
}

/// Where another node reaches this one: address, port, and port of the bus.
fn meeting_point(server: &Server) -> [String; 3] {
    let nodes: String = run(&mut server.connect(), "CLUSTER", &["NODES"]);
    let (_, after) = nodes.split_once('@').expect("a node's address");
    let bus: String = after.chars().take_while(char::is_ascii_digit).collect();
    ["127.0.0.1".to_owned(), server.port().to_string(), bus]
}

/// The node's name in the cluster.
pub fn id(server: &Server) -> String {
    run(&mut server.connect(), "CLUSTER", &["MYID"])
}

/// The slots and the epoch of each node that has some slots.
fn owners(server: &Server) -> BTreeSet<String> {
    let nodes: String = run(&mut server.connect(), "CLUSTER", &["NODES"]);
    let owner = |node: &str| {
        let words: Vec<&str> = node.split(' ').collect();
        // Name, epoch and slots.
        let slots = words.get(8..).filter(|slots| !slots.is_empty())?;
        Some(format!("{} {} {}", words[0], words[6], slots.join(" ")))
    };
    nodes.lines().filter_map(owner).collect()
}

fn cluster_info(server: &Server, line: &str) -> bool {
    let info: String = run(&mut server.connect(), "CLUSTER", &["INFO"]);
    info.lines().any(|found| found == line)
}

fn is_replica_in_step(server: &Server) -> bool {
    let mut con = server.connect();
    let role = info(&mut con, "replication", "role");
    let link = info(&mut con, "replication", "master_link_status");
    role.as_deref() == Some("slave") && link.as_deref() == Some("up")
}

impl Cluster {
    #[track_caller]
    pub fn start() -> Self {
        let mut servers: Vec<Server> = (0..6).map(|_| setup().start()).collect();
        for (epoch, server) in (1..).zip(&servers) {
            let epoch = format!("{epoch}");
            run::<()>(
                &mut server.connect(),
                "CLUSTER",
                &["SET-CONFIG-EPOCH", &epoch],
            );
        }
        for (server, (first, last)) in servers.iter().zip(SLOTS) {
            let range = ["ADDSLOTSRANGE", &first.to_string(), &last.to_string()];
            run::<()>(&mut server.connect(), "CLUSTER", &range);
        }
        for other in &servers[1..] {
            let [host, port, bus] = meeting_point(other);
            let meet = ["MEET", &host, &port, &bus];
            run::<()>(&mut servers[0].connect(), "CLUSTER", &meet);
        }
        let replicas = servers.split_off(3);
        let cluster = Cluster {
            primaries: servers,
            replicas,
        };
        cluster.await_acquaintance();
        for (primary, replica) in cluster.primaries.iter().zip(&cluster.replicas) {
            let replicate = ["REPLICATE", &id(primary)];
            run::<()>(&mut replica.connect(), "CLUSTER", &replicate);
        }
        cluster.await_order();
        // Now a busy machine may take its time.
        cluster.configure("cluster-node-timeout", "5000");
        cluster
    }

    pub fn nodes(&self) -> impl Iterator<Item = &Server> {
        self.primaries.iter().chain(&self.replicas)
    }

    /// A setting, on every node.
    pub fn configure(&self, name: &str, value: &str) {
        for node in self.nodes() {
            run::<()>(&mut node.connect(), "CONFIG", &["SET", name, value]);
        }
    }

    fn await_acquaintance(&self) {
        for node in self.nodes() {
            eventually("each node knows the others", || {
                let nodes: String = run(&mut node.connect(), "CLUSTER", &["NODES"]);
                (nodes.lines().count() == 6 && !nodes.contains("handshake")).then_some(())
            });
        }
    }

    /// All nodes agree on who has which slots, and the replicas follow.
    fn await_order(&self) {
        for node in self.nodes() {
            eventually("the cluster is up, with three replicas", || {
                let nodes: String = run(&mut node.connect(), "CLUSTER", &["NODES"]);
                let replicas = nodes.matches("slave").count();
                let whole = cluster_info(node, "cluster_slots_ok:16384");
                (replicas == 3 && whole && cluster_info(node, "cluster_state:ok")).then_some(())
            });
        }
        for replica in &self.replicas {
            eventually("the replica follows", || {
                is_replica_in_step(replica).then_some(())
            });
        }
    }

    /// A client that knows the cluster, follows its redirections, and tries again so often.
    #[track_caller]
    pub fn connect(&self, retries: u32) -> Clustered {
        let address = |node: &Server| format!("redis://127.0.0.1:{}", node.port());
        let client = ClusterClient::builder(self.nodes().map(address))
            .retries(retries)
            .min_retry_wait(1)
            .max_retry_wait(20)
            .connection_timeout(Duration::from_secs(5))
            .response_timeout(Duration::from_secs(30))
            .build()
            .expect("addresses");
        let con = client.get_connection().expect("the cluster is up");
        Clustered { client, con }
    }

    /// All nodes know who has which slots, and since which epoch: whoever takes one now takes it with
    /// a later one. Word of that gets round with the pings.
    pub fn await_agreement(&self) {
        eventually("all nodes agree on who has which slots", || {
            let views: BTreeSet<_> = self.nodes().map(owners).collect();
            (views.len() == 1).then_some(())
        });
    }

    /// Each replica has what its primary has.
    #[track_caller]
    pub fn assert_replicas_agree(&self) {
        self.await_agreement();
        for (primary, replica) in self.primaries.iter().zip(&self.replicas) {
            assert_agree(primary, replica);
        }
    }

    /// How many keys all primaries together have.
    pub fn count_keys(&self) -> usize {
        let size = |node: &Server| run::<usize>(&mut node.connect(), "DBSIZE", &[]);
        self.primaries.iter().map(size).sum()
    }

    /// Starts a node that has died again, on other ports, which it tells the others.
    pub fn revive(dir: Arc<TempDir>) -> Server {
        let server = setup().in_dir(dir).start();
        eventually("the revived node follows its successor", || {
            is_replica_in_step(&server).then_some(())
        });
        server
    }
}

/// A connection to the cluster.
pub struct Clustered {
    client: ClusterClient,
    con: ClusterConnection,
}

impl Clustered {
    /// Runs a command at the node that has the key. The client knows by itself only of commands
    /// whose first argument is the key, and `SLIDE.ALL` is none.
    fn at(&mut self, key: &str, command: &Cmd) -> Result<Value, RedisError> {
        let route = Route::with_key(key, SlotAddr::Master);
        let routing = RoutingInfo::SingleNode(SingleNodeRoutingInfo::SpecificNode(route));
        self.con.route_command(command, routing)
    }

    /// `SLIDE.ALL` on keys that share the slot of the first.
    pub fn all(&mut self, keys: [&str; 2], rest: &str) -> Result<(i64, Vec<Reply>), RedisError> {
        let [first, second] = keys;
        let call = line(&format!("SLIDE.ALL 2 {first} {second} {rest}"));
        self.at(first, &call).map(|value| all_replies(&value))
    }

    /// Asks the living nodes who has which slots: by itself the client would go on looking for a
    /// dead one.
    pub fn reconnect(&mut self) {
        if let Ok(con) = self.client.get_connection() {
            self.con = con;
        }
    }

    pub fn query<T: redis::FromRedisValue>(&mut self, command: &Cmd) -> Result<T, RedisError> {
        command.query(&mut self.con)
    }
}

/// Moves what one node says of a slot to another state, on one node.
pub fn set_slot(con: &mut Connection, slot: u16, state: &[&str]) {
    let slot = slot.to_string();
    run::<()>(con, "CLUSTER", &[&["SETSLOT", &slot], state].concat());
}
