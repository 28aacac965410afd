//! From words to a request: every argument is parsed here, once.

use std::num::NonZeroU64;

use crate::limiter::decimal;
use crate::limiter::tier::{MAX_TIERS, Tier, TierError, Tiers};
use crate::limiter::units::{Cost, Limit, MAX_UNITS, MAX_WINDOW_MS, Window};
use crate::server::{Error, Quoted};

/// What a caller asks of the limiter of one key.
#[derive(Clone, Debug)]
pub struct Request {
    /// The tiers that the call has to pass.
    pub tiers: Tiers,
    /// The units that it takes.
    pub cost: Cost,
    /// Whether to record it even over a limit.
    pub force: bool,
    /// Whether to reply headers too.
    pub headers: bool,
}

/// A word that can stand after the tiers, each at most once and in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyword {
    /// `COST n`.
    Cost,
    /// `FORCE`.
    Force,
    /// `HEADERS`.
    Headers,
}

impl Keyword {
    fn spelling(self) -> &'static str {
        match self {
            Self::Cost => "COST",
            Self::Force => "FORCE",
            Self::Headers => "HEADERS",
        }
    }
}

/// Reads `limit window [limit window ...] [option ...]`, taking only the options in `known`.
///
/// # Errors
/// The argument at fault, its range and what was found.
pub fn parse<'a>(
    words: impl Iterator<Item = &'a [u8]>,
    known: &[Keyword],
) -> Result<Request, Error> {
    let mut words = words.peekable();
    let mut tiers = Tiers::new(tier(&mut words)?);
    while let Some(word) = words.next_if(|word| begins_tier(word)) {
        let added = tier(&mut std::iter::once(word).chain(&mut words))?;
        tiers.push(added).map_err(|error| match error {
            TierError::TooMany => argument(format!(
                "there must be from 1 to {MAX_TIERS} tiers, got limit {} for one more",
                Quoted(Some(word))
            )),
            TierError::SameWindow => argument(format!(
                "window must differ from those of the other tiers, got {} ms again",
                added.window.get()
            )),
        })?;
    }

    let (mut cost, mut force, mut headers) = (None, false, false);
    while let Some(word) = words.next() {
        let option = known
            .iter()
            .find(|known| word.eq_ignore_ascii_case(known.spelling().as_bytes()));
        let repeated = match option {
            Some(Keyword::Cost) => cost.replace(parse_cost(words.next())?).is_some(),
            Some(Keyword::Force) => std::mem::replace(&mut force, true),
            Some(Keyword::Headers) => std::mem::replace(&mut headers, true),
            None if begins_tier(word) => {
                return Err(argument(format!(
                    "syntax error: tiers stand before the options, got {}",
                    Quoted(Some(word))
                )));
            }
            None => {
                return Err(argument(format!(
                    "syntax error: unknown option {}",
                    Quoted(Some(word))
                )));
            }
        };
        if repeated {
            return Err(argument(format!(
                "syntax error: option {} stands twice",
                Quoted(Some(word))
            )));
        }
    }
    Ok(Request {
        tiers,
        cost: cost.unwrap_or(Cost::ONE),
        force,
        headers,
    })
}

/// Reads how many units a refund asks for.
///
/// # Errors
/// The argument, its range and what was found.
pub fn parse_units<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Result<NonZeroU64, Error> {
    let word = words.next();
    word.and_then(decimal::parse)
        .filter(|units| *units <= MAX_UNITS)
        .and_then(NonZeroU64::new)
        .ok_or_else(|| out_of_range("units", 1, word))
}

/// A word that begins so is meant as a number, even if it is none.
fn begins_tier(word: &[u8]) -> bool {
    matches!(word.first(), Some(b'0'..=b'9' | b'+' | b'-'))
}

fn tier<'a>(words: &mut impl Iterator<Item = &'a [u8]>) -> Result<Tier, Error> {
    Ok(Tier {
        limit: parse_limit(words.next())?,
        window: parse_window(words.next())?,
    })
}

fn parse_limit(word: Option<&[u8]>) -> Result<Limit, Error> {
    word.and_then(decimal::parse)
        .and_then(Limit::new)
        .ok_or_else(|| out_of_range("limit", 0, word))
}

fn parse_cost(word: Option<&[u8]>) -> Result<Cost, Error> {
    word.and_then(decimal::parse)
        .and_then(Cost::new)
        .ok_or_else(|| out_of_range("cost", 0, word))
}

fn out_of_range(name: &str, least: u64, word: Option<&[u8]>) -> Error {
    argument(format!(
        "{name} must be an integer from {least} to {MAX_UNITS}, got {}",
        Quoted(word)
    ))
}

/// Milliseconds, or an integer with a unit.
fn parse_window(word: Option<&[u8]>) -> Result<Window, Error> {
    let parse = |word: &[u8]| {
        let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, unit) = word.split_at_checked(digits)?;
        let unit_ms = match unit {
            b"" | b"ms" => 1,
            b"s" => 1_000,
            b"m" => 60_000,
            b"h" => 3_600_000,
            b"d" => 86_400_000,
            _ => return None,
        };
        Window::new(decimal::parse(number)?.checked_mul(unit_ms)?)
    };
    word.and_then(parse).ok_or_else(|| {
        argument(format!(
            "window must be an integer of milliseconds, or an integer with one of the units ms, s, \
             m, h and d, from 1 to {MAX_WINDOW_MS} ms, got {}",
            Quoted(word)
        ))
    })
}

fn argument(sentence: String) -> Error {
    Error::Argument(sentence)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Keyword, parse, parse_units};

    const ALL: &[Keyword] = &[Keyword::Cost, Keyword::Force, Keyword::Headers];

    fn read(line: &str) -> Result<(Vec<(u64, u64)>, u64), String> {
        let words = line.split(' ').filter(|word| !word.is_empty());
        parse(words.map(str::as_bytes), ALL)
            .map(|request| {
                let tiers = request.tiers.each().iter();
                let tiers = tiers.map(|tier| (tier.limit.get(), tier.window.get()));
                (tiers.collect(), request.cost.get())
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
                      the units ms, s, m, h and d, from 1 to 315576000000 ms, got ";
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
            Err("ERR there must be from 1 to 16 tiers, got limit '5' for one more".to_owned())
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
        assert!(request.headers && request.force);
        assert_eq!(request.cost.get(), 0);
        let error = parse(words(), &[Keyword::Cost, Keyword::Headers]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ERR syntax error: unknown option 'Force'"
        );
    }

    #[test]
    fn a_refund_is_of_at_least_one_unit() {
        let read = |word: &str| parse_units(std::iter::once(word.as_bytes()));
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
                "(?i)cost|[+-][0-9]".prop_map(String::into_bytes),
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
}
