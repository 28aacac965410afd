//! The module under memcheck: no invalid access, and nothing lost.
//!
//! It needs a server with the C library's malloc, which the Valkeys of the matrix are: in another,
//! memcheck does not see what is allocated.

use std::fs::{self, File};
use std::io::Read as _;
use std::process::Command;

use redis::{Connection, Value};

use crate::subscribers::{meddle_with_every_call, with_meddler};
use crate::support::random::{effort, seeds};
use crate::support::{
    DECADE, Server, Setup, error_of, line, now, run, skip, slide, slide_counter, slide_log,
};
use crate::units::store_log;
use crate::{hostile, leases, mutation};

/// What memcheck found.
#[derive(Debug, Default)]
struct Findings {
    /// Accesses that are wrong, of whomever.
    wrong_accesses: Vec<String>,
    /// What the module's calls lost.
    lost: Vec<String>,
    /// Blocks that the module got while it was loaded, and that it or the server keeps. Where the
    /// server unloads its modules as it ends, the module's own go with it.
    kept_since_loading: usize,
}

impl Findings {
    /// Reads memcheck's report. What is "possibly lost" has a pointer somewhere into it, as the
    /// server has into each of its strings: it counts as lost all the same once all keys are gone.
    fn read(report: &str) -> Self {
        assert!(
            report.contains("<state>FINISHED</state>"),
            "memcheck did not come to its end"
        );
        let mut findings = Findings::default();
        for error in report.split("<error>").skip(1) {
            let (error, _) = error.split_once("</error>").expect("the end of an error");
            let is_leak = error.contains("<kind>Leak_");
            let is_ours = error.contains("libslide.so");
            if !is_leak {
                findings.wrong_accesses.push(error.to_owned());
            } else if is_ours && error.contains("<fn>RedisModule_OnLoad</fn>") {
                findings.kept_since_loading += 1;
            } else if is_ours {
                findings.lost.push(error.to_owned());
            }
        }
        findings
    }
}

/// Whether the server has the C library's malloc. A Valkey without it is built wrongly: no server
/// would be left that memcheck sees through.
fn has_the_c_librarys_malloc() -> bool {
    let version = Command::new(Setup::server_file()).arg("--version").output();
    let version = version.expect("the server says its version").stdout;
    let version = String::from_utf8_lossy(&version);
    let has = version.contains("malloc=libc");
    assert!(has || !version.starts_with("Valkey"), "{version}");
    has
}

/// Whether the server runs with a C library other than the machine's, through a script. Memcheck does
/// not know where to hook into that one.
fn has_another_c_library() -> bool {
    let mut start = [0; 2];
    let mut file = File::open(Setup::server_file()).expect("a server");
    file.read_exact(&mut start).expect("a program");
    start == *b"#!"
}

/// Each command in each form, and each error that is not of some argument.
fn every_command(server: &Server) {
    let con = &mut server.connect();
    let resp3 = &mut server.connect_resp3();
    for words in [
        "SLIDE.LOG log 5 60s 50 1h COST 2 HEADERS",
        "SLIDE.COUNTER counter 5 60s 50 1h COST 2 HEADERS BUCKETS 50 STRICT",
        "SLIDE.COUNTER counter 5 60s COST 9 FORCE",
        "SLIDE.PEEK log 5 60s HEADERS",
        "SLIDE.PEEK counter 5 60s HEADERS BUCKETS 50",
        "SLIDE.PEEK missing 5 60s",
        "SLIDE.ALL 2 log counter LOG 5 60s COST 2 COUNTER 5 1h BUCKETS 3 HEADERS",
        "SLIDE.LEASE lease 2 60s job",
        "SLIDE.ALL 2 log lease LOG 50 60s LEASE 2 60s job HEADERS",
        "SLIDE.PEEK lease 2 60s",
        "SLIDE.RELEASE lease job nobody",
        "SLIDE.REFUND log 3",
        "SLIDE.REFUND counter 3",
        "SLIDE.REFUND log 3 AGE 10s",
        "SLIDE.REFUND counter 3 AGE 10s",
        "SLIDE.REFUND missing 3",
        "COMMAND GETKEYS SLIDE.ALL 2 a b LOG 5 60s LOG 5 60s",
        "INFO everything",
    ] {
        line(words).query::<Value>(con).unwrap();
        line(words).query::<Value>(resp3).unwrap();
    }
    run::<()>(con, "CONFIG", &["SET", "slide.enforce", "no"]);
    slide_log(con, "log", &[(1, "60s")], &["COST", "5"]);
    run::<()>(con, "CONFIG", &["SET", "slide.enforce", "yes"]);
    let script = "return redis.call('SLIDE.LOG', KEYS[1], '5', '60s', 'HEADERS')";
    run::<Value>(con, "EVAL", &[script, "1", "log"]);
    let long = "x".repeat(1_000_000);
    error_of(con, &slide("SLIDE.LOG", "log", &[(5, "60s")], &[&long]));
}

/// A log that is trimmed, one that is healed, and a refund over a thousand entries.
fn long_logs(con: &mut Connection) {
    let time = now(con);
    store_log(con, "old", 1500, time - 190_000);
    store_log(con, "future", 1500, time + 400_000);
    assert_eq!(run::<i64>(con, "SLIDE.REFUND", &["old", "1200"]), 1000);
    // One of so many calls trims.
    for _ in 0..16 {
        slide_log(con, "old", &[(50, "60s")], &[]);
    }
    assert!(
        run::<i64>(con, "ZCARD", &["old"]) < 500,
        "nothing was trimmed"
    );
    slide_log(con, "future", &[(5, "60s")], &[]);
    assert_eq!(
        run::<i64>(con, "ZCARD", &["future"]),
        1,
        "it was not healed"
    );
}

fn out_of_memory(con: &mut Connection) {
    slide_counter(con, "counter", &[(5, DECADE)], &[]);
    run::<()>(con, "CONFIG", &["SET", "maxmemory", "1"]);
    for call in [
        "SLIDE.LOG new 5 60s",
        "SLIDE.COUNTER new 5 60s",
        "SLIDE.LEASE new 5 60s job",
    ] {
        let error = error_of(con, &line(call));
        assert!(error.starts_with("OOM "), "{error}");
    }
    run::<()>(con, "CONFIG", &["SET", "maxmemory", "0"]);
}

#[test]
fn memcheck_finds_nothing() {
    if !has_the_c_librarys_malloc() {
        skip("memcheck sees nothing in a server without the C library's malloc");
        return;
    }
    if has_another_c_library() {
        skip("memcheck does not know the C library with which this server runs");
        return;
    }
    // Slow commands are remembered, and under memcheck all are slow.
    let setup = with_meddler(Setup::new()).line("slowlog-log-slower-than -1");
    let report = setup.dir().join("memcheck.xml");
    let server = setup
        .under([
            "valgrind",
            // Some servers unload their modules as they end: the frames keep their names.
            "--keep-debuginfo=yes",
            "--leak-check=full",
            "--show-leak-kinds=definite,indirect,possible",
            "--num-callers=40",
            "--xml=yes",
            &format!("--xml-file={}", report.display()),
        ])
        .start();
    let mut con = server.connect();
    let mut hostile_tally = hostile::Tally::default();
    let mut changes = mutation::Tally::default();
    let mut changed_leases = leases::Tally::default();
    for seed in seeds(effort(1, 10)) {
        hostile::round(&mut con, seed, &mut hostile_tally);
        for kind in [mutation::Kind::Log, mutation::Kind::Counter] {
            mutation::round(&mut con, kind, seed, &mut changes);
        }
        leases::round(&mut con, seed, &mut changed_leases);
    }
    run::<()>(&mut con, "FLUSHALL", &[]);
    every_command(&server);
    meddle_with_every_call(&mut con);
    run::<()>(&mut con, "FLUSHALL", &[]);
    long_logs(&mut con);
    out_of_memory(&mut con);
    println!("under memcheck: {hostile_tally:?}, {changes:?}");
    run::<()>(&mut con, "FLUSHALL", &["SYNC"]);
    let dir = server.shut_down();
    let report = fs::read_to_string(&report).expect("memcheck's report");
    drop(dir);
    let findings = Findings::read(&report);
    assert!(
        findings.kept_since_loading > 0,
        "memcheck does not see the module's frames"
    );
    for found in findings.wrong_accesses.iter().chain(&findings.lost) {
        println!("{found}");
    }
    assert_eq!(
        (findings.wrong_accesses.len(), findings.lost.len()),
        (0, 0),
        "wrong accesses, and blocks lost"
    );
}

#[test]
fn findings_of_memcheck_are_told_apart() {
    let error = |kind: &str, frames: &str| {
        format!("<error><kind>{kind}</kind><stack>{frames}</stack></error>")
    };
    let ours = "<frame><obj>/modules/libslide.so</obj></frame>";
    let loading = format!("{ours}<frame><fn>RedisModule_OnLoad</fn></frame>");
    let report = [
        "<status><state>FINISHED</state></status>",
        &error("InvalidRead", "<frame><fn>main</fn></frame>"),
        &error("Leak_DefinitelyLost", ours),
        &error("Leak_PossiblyLost", ours),
        &error("Leak_PossiblyLost", &loading),
        &error("Leak_DefinitelyLost", "<frame><fn>main</fn></frame>"),
    ];
    let findings = Findings::read(&report.concat());
    assert_eq!(findings.wrong_accesses.len(), 1);
    assert_eq!(findings.lost.len(), 2);
    assert_eq!(findings.kept_since_loading, 1);
}
