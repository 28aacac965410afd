//! The grammar, and every error in its words.

use proptest::prelude::*;

use super::{Keyword, Limiter, parse, parse_all, parse_units};

const ALL: &[Keyword] = &[
    Keyword::Cost,
    Keyword::Force,
    Keyword::Headers,
    Keyword::Buckets,
    Keyword::Strict,
];

fn read(line: &str) -> Result<(Vec<(u64, u64)>, u64), String> {
    let words = line.split(' ').filter(|word| !word.is_empty());
    parse(words.map(str::as_bytes), ALL)
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
        read("10 500ms 20 5m 30 1h 40 1d 50 60000 cOsT 7"),
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
        read("9007199254740991 315576000000 COST 9007199254740991"),
        Ok((vec![((1 << 53) - 1, 315_576_000_000)], (1 << 53) - 1))
    );
}

#[test]
fn errors_name_the_argument_its_range_and_what_was_found() {
    let limit = "ERR limit must be an integer from 0 to 9007199254740991, got ";
    for found in ["-3", "+3", "1.5", "03", "9007199254740992", "x"] {
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

    let window = "ERR window must be an integer of milliseconds, or an integer with one of \
                  the lower-case units ms, s, m, h and d, from 1 to 315576000000 ms, got ";
    for found in [
        "0",
        "0s",
        "-1",
        "1.5s",
        "060s",
        "60S",
        "60x",
        "s",
        "315576000001",
        "3653d",
        "99999999999999999999d",
        "213503982335d",
        "COST",
    ] {
        assert_eq!(
            read(&format!("1 {found}")),
            Err(format!("{window}'{found}'"))
        );
    }
    assert_eq!(read("1"), Err(format!("{window}nothing")));
    assert_eq!(read("1 1s 5"), Err(format!("{window}nothing")));
}

#[test]
fn tiers_are_at_most_16_with_different_windows() {
    let tiers = |count: u64| {
        let tiers = (1..=count).map(|window| format!("5 {window}"));
        tiers.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(read(&tiers(16)).map(|request| request.0.len()), Ok(16));
    assert_eq!(
        read(&tiers(17)),
        Err("ERR there must be at most 16 tiers, got one more with limit '5'".to_owned())
    );
    assert_eq!(
        read("1 60s 2 60000"),
        Err("ERR window must differ from those of the other tiers, got 60000 ms again".into())
    );
}

#[test]
fn options_are_known_and_stand_once_after_the_tiers() {
    for (line, error) in [
        ("1 1s FORCED", "unknown option 'FORCED'"),
        ("1 1s COST 1 cost 2", "option 'cost' stands twice"),
        (
            "1 1s COST 1 5 60s",
            "tiers stand before the options, got '5'",
        ),
    ] {
        assert_eq!(read(line), Err(format!("ERR syntax error: {error}")));
    }
}

#[test]
fn options_are_taken_only_where_they_are_known() {
    let words = || b"1 1s headers COST 0 Force".split(|byte| *byte == b' ');
    let request = parse(words(), ALL).unwrap();
    assert!(request.options.headers && request.options.force);
    assert_eq!(request.options.cost().get(), 0);
    let error = parse(words(), &[Keyword::Cost, Keyword::Headers]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ERR syntax error: unknown option 'Force'"
    );
}

#[test]
fn a_refund_is_of_at_least_one_unit() {
    let read = |word: &str| parse_units(Some(word.as_bytes()));
    assert_eq!(read("9007199254740991").map(u64::from), Ok((1 << 53) - 1));
    for found in ["0", "-1", "1.5", "9007199254740992"] {
        let error = read(found).unwrap_err().to_string();
        let range = "ERR units must be an integer from 1 to 9007199254740991";
        assert_eq!(error, format!("{range}, got '{found}'"));
    }
}

#[test]
fn quotes_64_bytes_and_no_byte_that_is_not_printable() {
    let long = [b'x'; 100];
    let error = parse([&long[..], b"1"].into_iter(), &[]).unwrap_err();
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
    fn no_words_are_too_strange(words in prop::collection::vec(
        prop_oneof![
            "[0-9]{1,20}(ms|s|m|h|d)?".prop_map(String::into_bytes),
            "(?i)cost|buckets|strict|log|counter|[+-][0-9]".prop_map(String::into_bytes),
            prop::collection::vec(any::<u8>(), 0..8),
        ],
        0..40,
    )) {
        if let Err(error) = parse(words.iter().map(Vec::as_slice), ALL) {
            let error = error.to_string();
            prop_assert!(error.starts_with("ERR "));
            prop_assert!(error.bytes().all(|byte| (32..127).contains(&byte)));
        }
    }
}

#[test]
fn buckets_are_1_to_64() {
    let shape = |line: &str| {
        let words = line.split(' ').map(str::as_bytes);
        parse(words, ALL).map(|request| {
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

fn read_all(line: &str) -> Result<String, String> {
    let words = line.split(' ').map(str::as_bytes);
    let request = parse_all(words).map_err(|error| error.to_string())?;
    let clauses = request.clauses.iter().map(|clause| {
        let limiter = match clause.limiter {
            Limiter::Log => "log".to_owned(),
            Limiter::Counter(shape) => {
                format!(
                    "counter/{}{}",
                    shape.buckets.get(),
                    if shape.strict { "!" } else { "" }
                )
            }
        };
        let tiers = clause.tiers.each().iter();
        let tiers = tiers.map(|tier| format!(" {}@{}", tier.limit.get(), tier.window.get()));
        limiter + &tiers.collect::<String>()
    });
    let clauses = clauses.collect::<Vec<_>>().join(", ");
    let options = request.options;
    Ok(format!(
        "{clauses}; {} {}",
        options.cost().get(),
        options.force
    ))
}

#[test]
fn all_reads_a_clause_for_each_key() {
    assert_eq!(
        read_all("1 a LOG 1 1s"),
        Ok("log 1@1000; 1 false".to_owned())
    );
    assert_eq!(
        read_all("3 a b c log 1 1s 5 1m COUNTER 2 10 buckets 4 STRICT counter 3 9 FORCE COST 7"),
        Ok("log 1@1000 5@60000, counter/4! 2@10, counter/1 3@9; 7 true".to_owned())
    );
    assert_eq!(
        read_all("2 LOG COUNTER LOG 1 1 LOG 2 2"),
        Ok("log 1@1, log 2@2; 1 false".to_owned()),
        "a key may be named like a limiter"
    );
}

#[test]
fn all_says_what_is_wrong() {
    let clauses = "clauses, which begin with LOG or COUNTER, must be as many as keys, ";
    for (line, error) in [
        (
            "0 a LOG 1 1s",
            "numkeys must be an integer from 1 to 4, got '0'",
        ),
        (
            "x a LOG 1 1s",
            "numkeys must be an integer from 1 to 4, got 'x'",
        ),
        (
            "5 a LOG 1 1s",
            "numkeys must be an integer from 1 to 4, got '5'",
        ),
        ("2 a a LOG 1 1s LOG 1 1s", "keys must differ, got 'a' twice"),
        (
            "2 a b LOG 1 1s",
            &format!("{clauses}2, got 1 before nothing"),
        ),
        (
            "1 a LOG 1 1s LOG 1 1s COST 1",
            &format!("{clauses}1, got 2 before 'COST'"),
        ),
        ("2 a LOG 1 1s", &format!("{clauses}2, got 0 before '1'")),
        (
            "1 a LOG 1 1s BUCKETS 3",
            "syntax error: unknown option 'BUCKETS'",
        ),
        (
            "1 a LOG 1 1s HEADERS",
            "syntax error: unknown option 'HEADERS'",
        ),
        (
            "1 a COUNTER 1 1s STRICT STRICT",
            "syntax error: option 'STRICT' stands twice",
        ),
        (
            "1 a COUNTER 1 1s COST 1 STRICT",
            "syntax error: unknown option 'STRICT'",
        ),
        (
            "1 a LOG 1 1s COST 1 2 2s",
            "syntax error: tiers stand before the options, got '2'",
        ),
        (
            "1 a LOG x 1s",
            "limit must be an integer from 0 to 9007199254740991, got 'x'",
        ),
    ] {
        assert_eq!(read_all(line), Err(format!("ERR {error}")), "{line}");
    }
}
