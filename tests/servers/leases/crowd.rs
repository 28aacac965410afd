//! Workers that take, keep and give back places, and are killed in the middle of it.

use std::collections::HashMap;
use std::env;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use redis::Client;

use super::{lease, release};
use crate::support::random::Numbers;
use crate::support::{Server, Setup, now, reply, run, slide_peek, wait_until};

const WORKERS: u64 = 50;
const PLACES: u64 = 10;
const TTL_MS: i64 = 400;
const TTL: &str = "400ms";

/// How a worker knows its server's port and its own number.
const PORT: &str = "SLIDE_WORKER_PORT";
const NUMBER: &str = "SLIDE_WORKER_NUMBER";

/// A worker, in a process of its own: it goes on until it is killed.
#[test]
#[ignore = "a process that the test below starts, and kills"]
fn worker() {
    let (Ok(port), Ok(number)) = (env::var(PORT), env::var(NUMBER)) else {
        panic!("{PORT} and {NUMBER} are not set");
    };
    let client = Client::open(format!("redis://127.0.0.1:{port}/")).unwrap();
    let mut con = client.get_connection().unwrap();
    let mut numbers = Numbers::new(number.parse().unwrap());
    for job in 0.. {
        let id = format!("{number}:{job}");
        let take = lease("k", PLACES, TTL, &id, &[]);
        while reply(&mut con, &take).limited == 1 {
            sleep(Duration::from_millis(numbers.one_to(20)));
        }
        for _ in 0..numbers.below(5) {
            sleep(Duration::from_millis(numbers.one_to(30)));
            reply(&mut con, &take);
        }
        // Now and then it forgets to, as one that dies does.
        if !numbers.one_in(8) {
            release(&mut con, "k", &id);
        }
    }
}

fn start_worker(server: &Server, number: u64) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "leases::crowd::worker", "--ignored"])
        .env(PORT, server.port().to_string())
        .env(NUMBER, number.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn kill(mut worker: Child) {
    let ended = worker.try_wait().unwrap();
    assert!(ended.is_none(), "a worker ended by itself: {ended:?}");
    worker.kill().unwrap();
    worker.wait().unwrap();
}

/// Plays what the server wrote: places were taken one `ttl` before their end.
fn most_at_once(commands: &[Vec<String>]) -> (usize, usize) {
    let (mut places, mut most, mut taken) = (HashMap::new(), 0, 0);
    for command in commands {
        match command[0].to_uppercase().as_str() {
            "ZADD" => {
                let [end, id] = &command[2..] else {
                    panic!("{command:?}")
                };
                let end: i64 = end.parse().unwrap();
                taken += usize::from(places.insert(id.clone(), end).is_none());
                let live = places.values().filter(|&&other| other > end - TTL_MS);
                most = most.max(live.count());
            }
            "ZREM" => {
                for id in &command[2..] {
                    assert!(places.remove(id).is_some(), "{id} had no place");
                }
            }
            "PEXPIREAT" => {}
            // The key's time was over.
            "DEL" | "UNLINK" => places.clear(),
            other => panic!("{other} is none of the effects"),
        }
    }
    (most, taken)
}

#[test]
fn every_place_is_back_one_ttl_after_the_workers_were_killed() {
    let server = Setup::new()
        .line("appendonly yes")
        .line("appendfsync no")
        .start();
    let mut con = server.connect();
    let mut numbers = Numbers::new(0xdead);
    let mut workers: Vec<Child> = (0..WORKERS).map(|n| start_worker(&server, n)).collect();
    // One after the other is killed, wherever it is, and another takes over.
    for number in WORKERS..2 * WORKERS {
        sleep(Duration::from_millis(numbers.one_to(80)));
        let place = numbers.place(workers.len());
        kill(workers.swap_remove(place));
        workers.push(start_worker(&server, number));
        let peek = slide_peek(&mut con, "k", &[(PLACES, "1s")], &[]);
        assert!((0..=10).contains(&peek.remaining));
    }
    workers.into_iter().for_each(kill);

    let killed = now(&mut con);
    wait_until(&mut con, killed + TTL_MS + 1);
    let free = slide_peek(&mut con, "k", &[(PLACES, "1s")], &[]);
    assert_eq!((free.limited, free.remaining), (0, 10), "a place is lost");
    assert_eq!(run::<i64>(&mut con, "EXISTS", &["k"]), 0);

    let (most, taken) = most_at_once(&server.append_only_file());
    assert_eq!(
        most, 10,
        "of {taken} places, not one fewer: they were wanted"
    );
    assert!(taken > 100, "hardly a crowd: {taken}");
}
