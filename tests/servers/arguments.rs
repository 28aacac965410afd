//! What the commands take, and the sentences with which they turn down the rest.

use redis::cmd;

use crate::support::{DECADE, Server, command, error_of, line, run, slide, slide_log, state};

const COMMANDS: [&str; 2] = ["SLIDE.LOG", "SLIDE.COUNTER"];

#[test]
fn numbers_out_of_range_are_named_with_what_was_found() {
    let server = Server::start();
    let mut con = server.connect();
    let range = "must be an integer from 0 to 9007199254740991, got";
    for name in COMMANDS {
        for wrong in [
            "-3",
            "+3",
            "1.5",
            "9007199254740992",
            "99999999999999999999999",
            "007",
            "1e3",
            "3 ",
        ] {
            let limit = error_of(&mut con, &command(name, &["k", wrong, "60s"]));
            assert_eq!(limit, format!("ERR limit {range} '{wrong}'"));
            let second = error_of(&mut con, &command(name, &["k", "5", "1s", wrong, "60s"]));
            assert_eq!(second, format!("ERR limit {range} '{wrong}'"));
            let cost = error_of(&mut con, &command(name, &["k", "5", "60s", "COST", wrong]));
            assert_eq!(cost, format!("ERR cost {range} '{wrong}'"));
        }
        for wrong in ["", "x", "one", "\u{663}"] {
            let cost = error_of(&mut con, &command(name, &["k", "5", "60s", "COST", wrong]));
            assert!(cost.starts_with(&format!("ERR cost {range} '")), "{cost}");
        }
    }
    assert_eq!(
        run::<i64>(&mut con, "DBSIZE", &[]),
        0,
        "an error changed something"
    );
}

#[test]
fn the_largest_numbers_are_taken() {
    let server = Server::start();
    let mut con = server.connect();
    for name in COMMANDS {
        let largest = "9007199254740991";
        let five: Vec<i64> = run(&mut con, name, &[name, largest, DECADE, "COST", largest]);
        assert_eq!(five[..3], [0, 9_007_199_254_740_991, 0], "{name}");
        let five: Vec<i64> = run(&mut con, name, &[name, "0", "1ms"]);
        assert_eq!(
            five[..4],
            [1, 0, 0, -1],
            "{name}: a limit of 0 admits nothing"
        );
    }
}

#[test]
fn windows_out_of_range_are_named_with_what_was_found() {
    let server = Server::start();
    let mut con = server.connect();
    for name in COMMANDS {
        for wrong in [
            "0ms",
            "0d",
            "-5s",
            "+5s",
            "1.5s",
            "5S",
            "5Ms",
            "5w",
            "5 s",
            "s",
            "ms",
            "",
            "05s",
            "5ss",
            "5s5",
            "315576000001ms",
            "315576001s",
            "5259601m",
            "87661h",
            "3653d",
            "99999999999999999999d",
            "18446744073709551617ms",
        ] {
            let error = error_of(&mut con, &command(name, &["k", "5", wrong]));
            assert!(
                error.starts_with("ERR window must be ")
                    && error.contains(&format!("got '{wrong}'")),
                "{name} {wrong}: {error}"
            );
        }
    }
    assert_eq!(
        run::<i64>(&mut con, "DBSIZE", &[]),
        0,
        "an error changed something"
    );
}

/// Read as seconds by one caller and as ms by another, it would set a limit 1000 times too high or
/// too low.
#[test]
fn a_bare_number_is_no_duration() {
    let server = Server::start();
    let mut con = server.connect();
    slide_log(&mut con, "log", &[(5, "1d")], &[]);
    let before = state(&mut con);
    for bare in ["60", "1", "3", "60000", "315576000000"] {
        let hint = format!("got '{bare}': say {bare}s or {bare}ms");
        for (argument, call) in [
            ("window", format!("SLIDE.LOG k 3 {bare}")),
            ("window", format!("SLIDE.LOG k 3 60s 5 {bare} COST 1")),
            ("window", format!("SLIDE.COUNTER k 3 {bare}")),
            ("window", format!("SLIDE.PEEK log 3 {bare}")),
            ("window", format!("SLIDE.ALL 1 k LOG 3 {bare}")),
            ("age", format!("SLIDE.REFUND log 1 AGE {bare}")),
        ] {
            let error = error_of(&mut con, &line(&call));
            assert!(
                error.starts_with(&format!("ERR {argument} ")) && error.contains(&hint),
                "{call}: {error}"
            );
        }
    }
    // Swapped, the limit is the one that is wrong.
    let error = error_of(&mut con, &line("SLIDE.LOG k 60s 3"));
    assert!(
        error.starts_with("ERR limit ") && error.ends_with("got '60s'"),
        "{error}"
    );
    assert_eq!(state(&mut con), before);
}

#[test]
fn windows_are_durations_however_written() {
    let server = Server::start();
    let mut con = server.connect();
    for written in [
        "1ms",
        "315576000000ms",
        "315576000s",
        "5259600m",
        "87660h",
        "3652d",
    ] {
        assert_eq!(
            slide_log(&mut con, written, &[(1, written)], &[]).limited,
            0,
            "{written}"
        );
    }
    for same in [
        ["1d", "24h"],
        ["1h", "60m"],
        ["1m", "60s"],
        ["60s", "60000ms"],
        ["1s", "1000ms"],
    ] {
        for (left, written) in [3, 2, 1, 0].into_iter().zip(same.into_iter().cycle()) {
            let reply = slide_log(&mut con, same.concat(), &[(4, written)], &[]);
            assert_eq!((reply.limited, reply.remaining), (0, left), "{written}");
        }
        for name in COMMANDS {
            let twice = slide(name, "twice", &[(4, same[0]), (5, same[1])], &[]);
            let error = error_of(&mut con, &twice);
            assert!(
                error.starts_with("ERR ") && error.contains("window"),
                "{error}"
            );
        }
    }
}

#[test]
fn a_call_takes_sixteen_tiers() {
    let server = Server::start();
    let mut con = server.connect();
    let windows: Vec<String> = (1..=17).map(|minutes| format!("{minutes}m")).collect();
    let tiers: Vec<(u64, &str)> = windows.iter().map(|window| (5, window.as_str())).collect();
    for name in COMMANDS {
        let five: Vec<i64> = slide(name, name, &tiers[..16], &[])
            .query(&mut con)
            .unwrap();
        assert_eq!(five[..3], [0, 5, 4]);
        let error = error_of(&mut con, &slide(name, "k", &tiers, &[]));
        assert!(error.starts_with("ERR ") && error.contains("16"), "{error}");
    }
    assert_eq!(run::<i64>(&mut con, "EXISTS", &["k"]), 0);
}

#[test]
fn too_few_arguments_get_the_standard_error() {
    let server = Server::start();
    let mut con = server.connect();
    for name in COMMANDS {
        for arguments in [&[][..], &["k"], &["k", "5"]] {
            let error = error_of(&mut con, &command(name, arguments)).to_lowercase();
            let expected = format!(
                "err wrong number of arguments for '{}' command",
                name.to_lowercase()
            );
            assert_eq!(error, expected, "{arguments:?}");
        }
    }
}

#[test]
fn incomplete_pairs_say_what_is_missing() {
    let server = Server::start();
    let mut con = server.connect();
    for name in COMMANDS {
        for lone in [
            &["k", "5", "60s", "10"][..],
            &["k", "5", "60s", "10", "COST", "1"],
        ] {
            let error = error_of(&mut con, &command(name, lone));
            assert!(
                error.starts_with("ERR ") && error.contains("window"),
                "{error}"
            );
        }
        // In other limiters a lone number is the cost.
        let error = error_of(&mut con, &command(name, &["k", "5", "60s", "10"]));
        assert!(error.contains("COST"), "{error}");
        let error = error_of(&mut con, &command(name, &["k", "5", "60s", "COST"]));
        assert!(
            error.starts_with("ERR ") && error.to_lowercase().contains("cost"),
            "{error}"
        );
    }
}

#[test]
fn options_are_known_and_given_once() {
    let server = Server::start();
    let mut con = server.connect();
    for name in COMMANDS {
        for wrong in ["NX", "COSTS", "COS", "EX", "*"] {
            let error = error_of(&mut con, &command(name, &["k", "5", "60s", wrong]));
            assert!(
                error.starts_with("ERR syntax error: ") && error.contains(wrong),
                "{error}"
            );
        }
        let twice = ["k", "5", "60s", "COST", "1", "cost", "1"];
        let error = error_of(&mut con, &command(name, &twice));
        assert!(error.starts_with("ERR syntax error: "), "{error}");
        assert!(error.to_uppercase().contains("COST"), "{error}");
        for spelling in ["COST", "cost", "Cost", "cOsT"] {
            let five: Vec<i64> = run(&mut con, name, &[name, "9", "60s", spelling, "2"]);
            assert_eq!(five[1], 9, "{spelling}");
        }
        // Tiers end where options begin.
        let late = ["k", "5", "60s", "COST", "1", "10", "1h"];
        assert!(error_of(&mut con, &command(name, &late)).starts_with("ERR "));
    }
    for foreign in [&["BUCKETS", "2"][..], &["STRICT"]] {
        let error = error_of(&mut con, &slide("SLIDE.LOG", "k", &[(5, "60s")], foreign));
        assert!(
            error.starts_with("ERR syntax error: ") && error.contains(foreign[0]),
            "{error}"
        );
    }
}

#[test]
fn quoted_input_is_short_and_printable() {
    let server = Server::start();
    let mut con = server.connect();
    for name in COMMANDS {
        let long = "7".repeat(1000);
        let error = error_of(&mut con, &command(name, &["k", &long, "60s"]));
        let quoted = error.matches('7').count();
        assert!((32..=64 + 2).contains(&quoted), "{error}"); // two more are in 2^53 - 1
        let long = "y".repeat(1000);
        let error = error_of(&mut con, &command(name, &["k", "5", "60s", &long]));
        assert!(error.matches("yyyyyyyy").count() <= 8, "{error}");

        let mut bytes = cmd(name);
        bytes.arg("k").arg(&b"1\x00\r\n\xff\x7f~ "[..]).arg("60s");
        let error = error_of(&mut con, &bytes);
        assert!(error.ends_with(r"'1\x00\x0d\x0a\xff\x7f~ '"), "{error}");
        let mut bytes = cmd(name);
        bytes.arg("k").arg("5").arg("60s").arg(&b"a\x00\xe9"[..]);
        let error = error_of(&mut con, &bytes);
        assert!(error.contains(r"a\x00\xe9"), "{error}");
    }
    server.assert_alive();
}

#[test]
fn any_byte_sequence_is_a_key() {
    let server = Server::start();
    let mut con = server.connect();
    let keys: [&[u8]; 7] = [
        b"",
        b"\0",
        b"a",
        b"a\0",
        b"a\0b",
        b"\xff\xfe",
        b"k\r\n$3\r\n",
    ];
    for key in keys {
        let log = [b"log:", key].concat();
        let counter = [b"counter:", key].concat();
        for (name, key) in [("SLIDE.LOG", log), ("SLIDE.COUNTER", counter)] {
            let first: Vec<i64> = slide(name, key.as_slice(), &[(2, DECADE)], &[])
                .query(&mut con)
                .unwrap();
            assert_eq!(first[..3], [0, 2, 1], "{name} {key:?}");
            let exists: i64 = cmd("EXISTS").arg(key.as_slice()).query(&mut con).unwrap();
            assert_eq!(exists, 1, "{name} {key:?}");
        }
    }
    assert_eq!(run::<usize>(&mut con, "DBSIZE", &[]), 2 * keys.len());
}
