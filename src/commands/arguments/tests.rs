//! The grammar, and every error in its words.

use proptest::prelude::*;

use super::declared::{AGE, BUCKETS, COST, FORCE, HEADERS, STRICT};
use super::{Clause, Limits, parse, parse_all, parse_ids, parse_lease, parse_refund};
use crate::limiter::lease::Take;
use crate::limiter::units::{Millis, Timestamp};
use crate::server::Argument;

const ALL: &[Argument] = &[COST, FORCE, HEADERS, BUCKETS, STRICT];

fn words(line: &str) -> impl Iterator<Item = &[u8]> + Clone {
    let words = line.split(' ').filter(|word| !word.is_empty());
    words.map(str::as_bytes)
}

fn read(line: &str) -> Result<(Vec<(u64, u64)>, u64), String> {
    parse(words(line), ALL)
        .map(|request| {
            let tiers = request.tiers.each().iter();
            let tiers = tiers.map(|tier| (tier.limit.get(), tier.window.get()));
            (tiers.collect(), request.options.cost().get())
        })
        .map_err(|error| error.to_string())
}

#[test]
fn reads_tiers_and_options() {
    assert_eq!(read("10 60s"), Ok((vec![(10, 60_000)], 1)));
    assert_eq!(
        read("10 500ms 20 5m 30 1h 40 1d 50 60000ms cOsT 7"),
        Ok((
            vec![
                (10, 500),
                (20, 300_000),
                (30, 3_600_000),
                (40, 86_400_000),
                (50, 60_000)
            ],
            7
        ))
    );
    assert_eq!(read("0 3652d"), Ok((vec![(0, 315_532_800_000)], 1)));
    assert_eq!(
        read("9007199254740991 315576000000ms COST 9007199254740991"),
        Ok((vec![((1 << 53) - 1, 315_576_000_000)], (1 << 53) - 1))
    );
}

#[test]
fn errors_name_the_argument_its_range_and_what_was_found() {
    let limit = "ERR limit must be an integer from 0 to 9007199254740991, got ";
    for found in ["-3", "+3", "1.5", "03", "9007199254740992", "x", "60s"] {
        assert_eq!(
            read(&format!("{found} 60s")),
            Err(format!("{limit}'{found}'"))
        );
        if found != "x" {
            let second = read(&format!("1 1s {found} 60s"));
            assert_eq!(second, Err(format!("{limit}'{found}'")));
        }
    }
    assert_eq!(read(""), Err(format!("{limit}nothing")));

    let cost = "ERR cost must be an integer from 0 to 9007199254740991, got ";
    for found in ["-3", "1.5", "9007199254740992", "COST"] {
        assert_eq!(
            read(&format!("1 1s COST {found}")),
            Err(format!("{cost}'{found}'"))
        );
    }
    assert_eq!(read("1 1s COST"), Err(format!("{cost}nothing")));

    let window =
        "ERR window must be from 1ms to 315576000000ms with its unit (ms, s, m, h or d), got ";
    for found in [
        "0",
        "0s",
        "-1",
        "1.5s",
        "060s",
        "60S",
        "60x",
        "60 s",
        "s",
        "ms",
        "315576000001",
        "315576000001ms",
        "3653d",
        "99999999999999999999d",
        "213503982335d",
        "COST",
    ] {
        let line = [&b"1"[..], found.as_bytes()];
        let error = parse(line.into_iter(), ALL).unwrap_err();
        assert_eq!(error.to_string(), format!("{window}'{found}'"));
    }
    assert_eq!(read("1"), Err(format!("{window}nothing")));
}

#[test]
fn a_bare_number_is_no_duration() {
    for (line, hint) in [
        ("3 60", "got '60': say 60s or 60ms"),
        ("60000 3", "got '3': say 3s or 3ms"),
        ("3 60s 5 10", "got '10': say 10s or 10ms"),
    ] {
        assert!(read(line).unwrap_err().ends_with(hint), "{line}");
    }
    let refund = parse_refund(words("5 AGE 90"), &[AGE]).unwrap_err();
    assert_eq!(
        refund.to_string(),
        "ERR age must be from 0ms to 315576000000ms with its unit (ms, s, m, h or d), got '90': \
         say 90s or 90ms"
    );
}

#[test]
fn a_number_after_the_tiers_may_be_meant_as_the_cost() {
    let error = "ERR limit '5' has no window, such as 60s: a cost is written COST 5";
    assert_eq!(read("3 60s 5"), Err(error.to_owned()));
}

#[test]
fn tiers_are_at_most_16_with_different_windows() {
    let tiers = |count: u64| {
        let tiers = (1..=count).map(|window| format!("5 {window}ms"));
        tiers.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(read(&tiers(16)).map(|request| request.0.len()), Ok(16));
    assert_eq!(
        read(&tiers(17)),
        Err("ERR there must be at most 16 tiers, got one more with limit '5'".to_owned())
    );
    assert_eq!(
        read("1 60s 2 60000ms"),
        Err("ERR window must differ from those of the other tiers, got 60000ms again".into())
    );
}

#[test]
fn options_are_known_and_given_once_after_the_tiers() {
    for (line, error) in [
        ("1 1s FORCED", "unknown option 'FORCED'"),
        ("1 1s COST 1 cost 2", "option 'cost' was given twice"),
        (
            "1 1s COST 1 5 60s",
            "tiers come before the options, got '5'",
        ),
    ] {
        assert_eq!(read(line), Err(format!("ERR syntax error: {error}")));
    }
}

#[test]
fn options_are_taken_only_where_they_are_declared() {
    let line = "1 1s headers COST 0 Force";
    let request = parse(words(line), ALL).unwrap();
    assert!(request.options.headers && request.options.force);
    assert_eq!(request.options.cost().get(), 0);
    let error = parse(words(line), &[COST, HEADERS]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ERR syntax error: unknown option 'Force'"
    );
}

#[test]
fn a_refund_is_of_at_least_one_unit() {
    let read = |line: &str| parse_refund(words(line), &[AGE]);
    let units = |line: &str| read(line).map(|(units, _)| u64::from(units));
    assert_eq!(units("9007199254740991"), Ok((1 << 53) - 1));
    for found in ["0", "-1", "1.5", "9007199254740992"] {
        let error = read(found).unwrap_err().to_string();
        let range = "ERR units must be an integer from 1 to 9007199254740991";
        assert_eq!(error, format!("{range}, got '{found}'"));
    }
    let age = |line: &str| read(line).map(|(_, age)| age.map(|age| Millis::from(age).get()));
    assert_eq!(age("1"), Ok(None));
    assert_eq!(age("1 age 0ms"), Ok(Some(0)));
    assert_eq!(age("1 AGE 3652d"), Ok(Some(315_532_800_000)));
    for (line, error) in [
        ("1 AGE 1s AGE 1s", "option 'AGE' was given twice"),
        ("1 5s", "unknown option '5s'"),
        ("1 COST 5", "unknown option 'COST'"),
    ] {
        let error = format!("ERR syntax error: {error}");
        assert_eq!(read(line).unwrap_err().to_string(), error);
    }
}

#[test]
fn quotes_64_bytes_and_no_byte_that_is_not_printable() {
    let long = [b'x'; 100];
    let error = parse([&long[..], b"1s"].into_iter(), &[]).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with(&format!("got '{}'", "x".repeat(64)))
    );
    let error = parse([&b"5"[..], b"\x00\xff\r\n~"].into_iter(), &[]).unwrap_err();
    assert!(error.to_string().ends_with(r"got '\x00\xff\x0d\x0a~'"));
}

proptest! {
    #[test]
    fn no_arguments_are_too_strange(words in prop::collection::vec(
        prop_oneof![
            "[0-9]{1,20}(ms|s|m|h|d)?".prop_map(String::into_bytes),
            "(?i)cost|buckets|strict|log|counter|age|[+-][0-9]".prop_map(String::into_bytes),
            prop::collection::vec(any::<u8>(), 0..8),
        ],
        0..40,
    )) {
        let words = || words.iter().map(Vec::as_slice);
        let errors = [
            parse(words(), ALL).err(),
            parse_all(words(), &[FORCE, HEADERS]).err(),
            parse_refund(words(), &[AGE]).err(),
        ];
        for error in errors.into_iter().flatten() {
            let error = error.to_string();
            prop_assert!(error.starts_with("ERR "));
            prop_assert!(error.bytes().all(|byte| (32..127).contains(&byte)));
        }
    }
}

#[test]
fn buckets_are_1_to_64() {
    let shape = |line: &str| {
        parse(words(line), ALL).map(|request| {
            let shape = request.options.shape();
            (
                shape.buckets.get(),
                shape.strict,
                request.options.name_a_shape(),
            )
        })
    };
    assert_eq!(shape("1 1s"), Ok((1, false, false)));
    assert_eq!(shape("1 1s buckets 64"), Ok((64, false, true)));
    assert_eq!(shape("1 1s STRICT BUCKETS 1"), Ok((1, true, true)));
    for found in ["0", "65", "-1", "strict"] {
        let error = shape(&format!("1 1s BUCKETS {found}"))
            .unwrap_err()
            .to_string();
        let range = "ERR buckets must be an integer from 1 to 64";
        assert_eq!(error, format!("{range}, got '{found}'"));
    }
}

fn shown(limits: &Limits) -> String {
    let tiers = limits.tiers.each().iter();
    let tiers = tiers.map(|tier| format!(" {}@{}", tier.limit.get(), tier.window.get()));
    format!("{} x{}", tiers.collect::<String>(), limits.cost.get())
}

fn shown_lease(take: &Take) -> String {
    let start = Timestamp::from_millis(0);
    let ttl = (start + take.ttl).since(start).get();
    let member = String::from_utf8_lossy(take.id.member());
    format!("{}@{ttl} {member}", take.limit.get())
}

fn read_lease(line: &str) -> Result<(String, bool), String> {
    parse_lease(words(line), &[FORCE])
        .map(|(take, options)| (shown_lease(&take), options.force))
        .map_err(|error| error.to_string())
}

#[test]
fn a_lease_is_a_limit_a_ttl_and_an_id() {
    let read = |line| read_lease(line).unwrap();
    assert_eq!(read("5 60s req-81"), ("5@60000 @req-81".into(), false));
    assert_eq!(read("0 1d FORCE force"), ("0@86400000 @FORCE".into(), true));
    let error = |line| read_lease(line).unwrap_err();
    let ttl = "ERR ttl must be from 1ms to 86400000ms with its unit (ms, s, m, h or d), got ";
    assert_eq!(error("5 60 a"), format!("{ttl}'60': say 60s or 60ms"));
    assert_eq!(error("5 0ms a"), format!("{ttl}'0ms'"));
    assert_eq!(error("5 2d a"), format!("{ttl}'2d'"));
    assert_eq!(error("5"), format!("{ttl}nothing"));
    assert_eq!(error("5 1s"), "ERR id must be 1 to 128 bytes, got nothing");
    assert_eq!(error("5 1s a 7"), "ERR syntax error: unknown option '7'");
}

#[test]
fn an_id_has_1_to_128_bytes() {
    let ids = |id: &[u8]| parse_ids([&b"good"[..], id].into_iter());
    assert_eq!(ids(&[0xff; 128]).map(|ids| ids.len()), Ok(2));
    for length in [0, 129, 5_000] {
        let error = ids(&vec![b'x'; length]).unwrap_err().to_string();
        let range = "ERR id must be 1 to 128 bytes";
        assert_eq!(error, format!("{range}, got {length} bytes"));
    }
}

fn read_all(line: &str) -> Result<String, String> {
    let request = parse_all(words(line), &[FORCE, HEADERS]).map_err(|error| error.to_string())?;
    let clauses = request.clauses.iter().map(|clause| match clause {
        Clause::Log(limits) => format!("log{}", shown(limits)),
        Clause::Counter(limits, shape) => {
            let strict = if shape.strict { "!" } else { "" };
            let buckets = shape.buckets.get();
            format!("counter/{buckets}{strict}{}", shown(limits))
        }
        Clause::Lease(take) => format!("lease {}", shown_lease(take)),
    });
    let clauses = clauses.collect::<Vec<_>>().join(", ");
    let options = request.options;
    Ok(format!("{clauses}; {} {}", options.force, options.headers))
}

#[test]
fn all_reads_a_clause_for_each_key() {
    assert_eq!(
        read_all("1 a LOG 1 1s"),
        Ok("log 1@1000 x1; false false".to_owned())
    );
    assert_eq!(
        read_all(
            "3 a b c log 1 1s 5 1m cost 4 COUNTER 2 10ms cost 0 buckets 4 STRICT counter 3 9ms \
             FORCE headers"
        ),
        Ok("log 1@1000 5@60000 x4, counter/4! 2@10 x0, counter/1 3@9 x1; true true".to_owned())
    );
    assert_eq!(
        read_all("2 LOG COUNTER LOG 1 1ms LOG 2 2ms"),
        Ok("log 1@1 x1, log 2@2 x1; false false".to_owned()),
        "a key may be named like a limiter"
    );
    assert_eq!(
        read_all("3 a b c LEASE 5 60s lease lease 1 1ms LOG log 2 1s FORCE"),
        Ok("lease 5@60000 @lease, lease 1@1 @LOG, log 2@1000 x1; true false".to_owned()),
        "an id may be any word"
    );
    let keys = (0..64).map(|key| format!("k{key} "));
    let clauses = vec!["LOG 1 1s"; 64];
    let line = format!("64 {}{}", keys.collect::<String>(), clauses.join(" "));
    assert!(read_all(&line).is_ok());
}

#[test]
fn all_says_what_is_wrong() {
    let numkeys = "numkeys must be an integer from 1 to 64, got ";
    let clauses = "expected one clause (LOG, COUNTER or LEASE) for each key, ";
    for (line, error) in [
        ("0 a LOG 1 1s", format!("{numkeys}'0'")),
        ("x a LOG 1 1s", format!("{numkeys}'x'")),
        ("65 a LOG 1 1s", format!("{numkeys}'65'")),
        (
            "2 a a LOG 1 1s LOG 1 1s",
            "keys must differ, got 'a' twice".to_owned(),
        ),
        ("2 a b LOG 1 1s", format!("{clauses}2 in all, got 1")),
        ("5 a LOG 1 1s", format!("{clauses}5 in all, got 0")),
        (
            "1 a LOG 1 1s LOG 1 1s FORCE",
            format!("{clauses}1 in all, got 2, then 'FORCE'"),
        ),
        (
            "2 a LOG 1 1s",
            format!("{clauses}2 in all, got 0, then '1'"),
        ),
        (
            "2 a b LOG 1 1s FORCE LOG 1 1s",
            format!("{clauses}2 in all, got 1, then 'FORCE'"),
        ),
        (
            "1 a LOG 1 1s BUCKETS 3",
            "syntax error: unknown option 'BUCKETS'".to_owned(),
        ),
        (
            "1 a COUNTER 1 1s STRICT STRICT",
            "syntax error: option 'STRICT' was given twice".to_owned(),
        ),
        (
            "1 a COUNTER 1 1s FORCE STRICT",
            "syntax error: unknown option 'STRICT'".to_owned(),
        ),
        (
            "1 a LOG 1 1s FORCE FORCE",
            "syntax error: option 'FORCE' was given twice".to_owned(),
        ),
        (
            "1 a LOG 1 1s COST 1 2 2s",
            "syntax error: tiers come before the options, got '2'".to_owned(),
        ),
        (
            "1 a LOG 1 1s 5",
            "limit '5' has no window, such as 60s: a cost is written COST 5".to_owned(),
        ),
        (
            "1 a LEASE 5 1s x COST 1",
            "syntax error: unknown option 'COST'".to_owned(),
        ),
        (
            "2 a b LOG 1 1s LEASE 5 1s",
            "id must be 1 to 128 bytes, got nothing".to_owned(),
        ),
        (
            "1 a LOG x 1s",
            "limit must be an integer from 0 to 9007199254740991, got 'x'".to_owned(),
        ),
    ] {
        assert_eq!(read_all(line), Err(format!("ERR {error}")), "{line}");
    }
}
