//! How the module presents itself to the server, and where it refuses to load.

use std::collections::BTreeMap;

use redis::{Connection, Value, from_redis_value_ref};

use crate::support::{Server, Setup, at_least, command, error_of, eventually, run, slide_log};

/// A name and what it names, in lists of such pairs.
pub fn map_of(value: &Value) -> BTreeMap<String, Value> {
    value
        .as_map_iter()
        .unwrap_or_else(|| panic!("not a map: {value:?}"))
        .map(|(name, value)| (from_redis_value_ref(name).unwrap(), value.clone()))
        .collect()
}

#[test]
fn the_module_has_its_packages_version() {
    let server = Server::start();
    let mut con = server.connect();
    let modules: Vec<Value> = run(&mut con, "MODULE", &["LIST"]);
    let slide = modules
        .iter()
        .map(map_of)
        .find(|module| module["name"] == Value::BulkString(b"slide".to_vec()))
        .expect("a module called slide");
    let part = |text: &str| text.parse::<i64>().unwrap();
    let version = part(env!("CARGO_PKG_VERSION_MAJOR")) * 10_000
        + part(env!("CARGO_PKG_VERSION_MINOR")) * 100
        + part(env!("CARGO_PKG_VERSION_PATCH"));
    assert_eq!(slide["ver"], Value::Int(version));
}

/// A command's arity and flags.
pub fn command_info(con: &mut Connection, name: &str) -> (i64, Vec<String>) {
    let answer: Vec<Vec<Value>> = run(con, "COMMAND", &["INFO", name]);
    let field = |place: usize| &answer[0][place];
    (
        from_redis_value_ref(field(1)).unwrap(),
        from_redis_value_ref(field(2)).unwrap(),
    )
}

#[test]
fn the_server_knows_what_the_commands_do() {
    let server = Server::start();
    let mut con = server.connect();
    for name in ["SLIDE.LOG", "SLIDE.COUNTER"] {
        let answer: Vec<Vec<Value>> = run(&mut con, "COMMAND", &["INFO", name]);
        let command = &answer[0];
        let (arity, flags) = command_info(&mut con, name);
        assert_eq!(arity, -4, "{name}");
        assert!(flags.contains(&"write".to_owned()), "{name}: {flags:?}");
        assert!(flags.contains(&"fast".to_owned()), "{name}: {flags:?}");
        // Then the server would refuse limited calls too, when memory is full.
        assert!(!flags.contains(&"denyoom".to_owned()), "{name}: {flags:?}");
        let places: Vec<i64> = command[3..6]
            .iter()
            .map(|v| from_redis_value_ref(v).unwrap())
            .collect();
        assert_eq!(places, [1, 1, 1], "{name}'s keys");
        if at_least(&mut con, 7, 2) {
            let categories: Vec<String> = from_redis_value_ref(&command[6]).unwrap();
            for category in ["@write", "@fast"] {
                assert!(
                    categories.contains(&category.to_owned()),
                    "{name}: {categories:?}"
                );
            }
        }
        let keys: Vec<String> = run(
            &mut con,
            "COMMAND",
            &["GETKEYS", name, "the key", "10", "60s", "5", "1s"],
        );
        assert_eq!(keys, ["the key"]);
        let keys: Vec<(String, Vec<String>)> = run(
            &mut con,
            "COMMAND",
            &["GETKEYSANDFLAGS", name, "the key", "10", "60s"],
        );
        assert_eq!(keys[0].0, "the key");
        assert!(keys[0].1.contains(&"RW".to_owned()), "{keys:?}");
    }
}

/// All arguments of a command's documentation, those inside blocks too, by name.
fn arguments(list: &Value, found: &mut BTreeMap<String, BTreeMap<String, Value>>) {
    for argument in list
        .as_sequence()
        .unwrap_or_else(|| panic!("no list: {list:?}"))
    {
        let argument = map_of(argument);
        if let Some(inner) = argument.get("arguments") {
            arguments(inner, found);
        }
        found.insert(from_redis_value_ref(&argument["name"]).unwrap(), argument);
    }
}

#[test]
fn the_documentation_is_complete() {
    let server = Server::start();
    let mut con = server.connect();
    let tiers = &["limit", "window"][..];
    for (name, plain, tokens) in [
        ("SLIDE.LOG", tiers, &["COST", "FORCE", "HEADERS"][..]),
        (
            "SLIDE.COUNTER",
            tiers,
            &["COST", "FORCE", "HEADERS", "BUCKETS", "STRICT"],
        ),
        (
            "SLIDE.PEEK",
            tiers,
            &["COST", "HEADERS", "BUCKETS", "STRICT"],
        ),
        (
            "SLIDE.ALL",
            tiers,
            &["COST", "FORCE", "HEADERS", "BUCKETS", "STRICT"],
        ),
        ("SLIDE.LEASE", &["limit", "ttl", "id"], &["FORCE"]),
        ("SLIDE.REFUND", &["units"], &["AGE"]),
        ("SLIDE.RELEASE", &["id"], &[]),
    ] {
        let docs = map_of(&run(&mut con, "COMMAND", &["DOCS", name]));
        let docs = map_of(
            docs.values()
                .next()
                .unwrap_or_else(|| panic!("{name} has none")),
        );
        let text = |field: &str| -> String { from_redis_value_ref(&docs[field]).unwrap() };
        for field in ["summary", "since", "complexity"] {
            assert!(!text(field).is_empty(), "{name}: {field}");
        }
        assert_eq!(text("group"), "module");
        let mut found = BTreeMap::new();
        arguments(&docs["arguments"], &mut found);
        for argument in plain.iter().chain(&["key"]) {
            assert!(
                found.contains_key(*argument),
                "{name}: {argument} of {found:?}"
            );
        }
        let flags_of = |argument: &BTreeMap<String, Value>| -> Vec<String> {
            argument
                .get("flags")
                .map_or_else(Vec::new, |f| from_redis_value_ref(f).unwrap())
        };
        for token in tokens {
            let word = Value::BulkString(token.as_bytes().to_vec());
            let argument = found
                .values()
                .find(|argument| argument.get("token") == Some(&word))
                .unwrap_or_else(|| panic!("{name}: {token} of {found:?}"));
            assert!(
                flags_of(argument).contains(&"optional".to_owned()),
                "{name}: {argument:?}"
            );
        }
        let repeated = found.values().any(|argument| {
            argument.contains_key("arguments")
                && flags_of(argument).contains(&"multiple".to_owned())
        });
        assert_eq!(
            repeated,
            plain == tiers,
            "{name}: tiers repeat as a pair: {found:?}"
        );
    }
}

#[test]
fn the_commands_have_a_category_of_their_own() {
    let server = Server::start();
    let mut con = server.connect();
    if !at_least(&mut con, 7, 2) {
        return; // the server lets no module name categories
    }
    let mut commands: Vec<String> = run(&mut con, "ACL", &["CAT", "slide"]);
    for command in &mut commands {
        command.make_ascii_lowercase();
    }
    for name in [
        "slide.log",
        "slide.counter",
        "slide.peek",
        "slide.lease",
        "slide.refund",
        "slide.release",
        "slide.all",
    ] {
        assert!(
            commands.contains(&name.to_owned()),
            "{name} of {commands:?}"
        );
    }
}

/// A client may still refer to a command of the module, and servers crash when it is gone.
#[test]
fn unloading_is_refused_and_the_log_says_why() {
    let server = Server::start();
    let mut con = server.connect();
    slide_log(&mut con, "k", &[(5, "60s")], &[]);
    let error = error_of(&mut con, &command("MODULE", &["UNLOAD", "slide"]));
    assert!(error.starts_with("ERR Error unloading module"), "{error}");
    eventually("the log says why", || {
        server.log().contains("slide stays loaded: ").then_some(())
    });
    assert_eq!(slide_log(&mut con, "k", &[(5, "60s")], &[]).remaining, 3);
    server.assert_alive();
}

/// A queued transaction, and a call that is held back, would find their command gone.
#[test]
fn a_queued_call_survives_an_attempt_to_unload() {
    let server = Server::start();
    let (mut con, mut other) = (server.connect(), server.connect());
    run::<()>(&mut con, "MULTI", &[]);
    assert_eq!(
        run::<String>(&mut con, "SLIDE.LOG", &["k", "5", "60s"]),
        "QUEUED"
    );
    error_of(&mut other, &command("MODULE", &["UNLOAD", "slide"]));
    let replies: Vec<Vec<i64>> = run(&mut con, "EXEC", &[]);
    assert_eq!(replies[0][..3], [0, 5, 4]);
    server.assert_alive();
}

#[test]
fn a_user_can_be_given_nothing_but_the_limiter() {
    let server = Server::start();
    let mut con = server.connect();
    for rule in [
        "on",
        "nopass",
        "~api:*",
        "-@all",
        "+slide.log",
        "+slide.counter",
    ] {
        run::<()>(&mut con, "ACL", &["SETUSER", "limiter", rule]);
    }
    run::<()>(&mut con, "AUTH", &["limiter", "x"]);
    let reply: Vec<i64> = run(&mut con, "SLIDE.LOG", &["api:1", "5", "60s"]);
    assert_eq!(reply[0], 0);
    for (name, arguments) in [
        ("SLIDE.LOG", &["other", "5", "60s"][..]),
        ("SLIDE.COUNTER", &["other", "5", "60s"]),
        ("GET", &["api:1"]),
    ] {
        let error = redis::cmd(name)
            .arg(arguments)
            .query::<Value>(&mut con)
            .unwrap_err();
        assert_eq!(error.code(), Some("NOPERM"), "{name} {arguments:?}");
    }
}

#[test]
fn a_server_without_the_effects_commands_is_refused() {
    for effect in [
        "ZADD",
        "ZREM",
        "ZREMRANGEBYSCORE",
        "HSET",
        "HDEL",
        "PEXPIREAT",
        "UNLINK",
        "HRANDFIELD",
        "ZCOUNT",
    ] {
        for new_name in ["\"\"", "OTHER"] {
            let log = Setup::new()
                .line(&format!("rename-command {effect} {new_name}"))
                .refuses();
            let reason = log
                .lines()
                .find(|line| line.contains("slide") && line.to_uppercase().contains(effect));
            assert!(reason.is_some(), "no line says why:\n{log}");
        }
    }
}

#[test]
fn arguments_are_refused_and_named_in_the_log() {
    let server = Setup::new().without_module().start();
    let mut con = server.connect();
    let file = Setup::module_file();
    for (argument, named) in [
        (&b"%s%n"[..], "got '%s%n'"),
        (b"%n%n%n%n%s%s%s%s", "got '%n%n%n%n%s%s%s%s'"),
        (b"a\0b", r"got 'a\x00b'"),
        (b"\0", r"got '\x00'"),
        (b"\xff\r\n", r"got '\xff\x0d\x0a'"),
        (b"", "got ''"),
    ] {
        let mut load = redis::cmd("MODULE");
        load.arg("LOAD").arg(file.to_str().unwrap()).arg(argument);
        let error = error_of(&mut con, &load);
        assert!(error.starts_with("ERR "), "{error}");
        let log = server.log();
        let reason = log
            .lines()
            .find(|line| line.contains("slide is not loaded: ") && line.ends_with(named));
        assert!(reason.is_some(), "no line that ends with {named}:\n{log}");
        let call = command("SLIDE.LOG", &["k", "5", "60s"]);
        let gone = error_of(&mut con, &call).to_lowercase();
        assert!(gone.contains("unknown command"), "{gone}");
        server.assert_alive();
    }
    // Without an argument it still loads.
    run::<()>(&mut con, "MODULE", &["LOAD", file.to_str().unwrap()]);
    assert_eq!(slide_log(&mut con, "k", &[(5, "60s")], &[]).remaining, 4);
}

#[test]
fn renaming_anything_else_is_fine() {
    let setup = Setup::new()
        .line("rename-command FLUSHALL \"\"")
        .line("rename-command DEL erase");
    let server = setup.start();
    let reply: Vec<i64> = run(&mut server.connect(), "SLIDE.LOG", &["k", "5", "60s"]);
    assert_eq!(reply[0], 0);
}
