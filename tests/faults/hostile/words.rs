//! Commands that are good, nearly good, or nothing like it.

use crate::support::oracle::grammar::{Kind, Name};
use crate::support::random::Numbers;

/// A command's name and the words after it.
pub type Line = (Name, Vec<Vec<u8>>);

/// Keys that no limiter can use.
const WRONG_KEYS: [&str; 8] = [
    "string",
    "list",
    "set",
    "stream",
    "foreign set",
    "foreign hash",
    "large foreign set",
    "large foreign hash",
];

/// Keys of the module's, and some that are missing at first.
const RIGHT_KEYS: [&str; 10] = [
    "log:0",
    "log:1",
    "counter:0",
    "counter:1",
    "lease:0",
    "lease:1",
    "new:0",
    "new:1",
    "new:2",
    "new:3",
];

/// Words that are a number to somebody, if not here.
const NEAR_NUMBERS: [&str; 50] = [
    "",
    "-",
    "+",
    "-0",
    "+3",
    "-3",
    "00",
    "007",
    "1.0",
    "1.5",
    ".5",
    "1e3",
    "1E3",
    "0x10",
    "1_000",
    "1,000",
    " 5",
    "5 ",
    "5\n",
    "\u{663}",
    "\u{ff15}",
    "5\u{2070}",
    "inf",
    "nan",
    "9007199254740991",
    "9007199254740992",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "18446744073709551617",
    "-9223372036854775808",
    "315576000000",
    "315576000001",
    "3652d",
    "3653d",
    "60S",
    "60Ms",
    "1D",
    "60ss",
    "05s",
    "0ms",
    "0s",
    "60",
    "3600",
    "86400000",
    "60s60s",
    "1h30m",
    "86400001ms",
    "213503982335d",
];

/// Words with a meaning somewhere in the grammar, and some that only look so.
const KEYWORDS: [&str; 18] = [
    "COST", "FORCE", "HEADERS", "BUCKETS", "STRICT", "AGE", "LOG", "COUNTER", "LEASE", "cost",
    "Force", "sTRICT", "age", "COSTS", "COS", "AGED", "NX", "*",
];

const ODD_BYTES: [&[u8]; 10] = [
    b"\0",
    b"\0\0\0",
    b"5\x00",
    b"%s%n%s%n",
    b"\xff\xfe\xff",
    b"\n",
    b"\r\n$5\r\n",
    b"'",
    b"\\x00",
    b"\x1b[2J",
];

const HUGE: usize = 100_000;

/// Any command: from a good one by a few changes, or words strung together.
pub fn line(numbers: &mut Numbers) -> Line {
    let name = Name::EACH[numbers.place(Name::EACH.len())];
    if numbers.one_in(20) {
        let words = (0..numbers.below(20)).map(|_| word(numbers)).collect();
        return (name, words);
    }
    let mut words = good(name, numbers);
    for _ in 0..[0, 0, 0, 0, 1, 1, 2, 4][numbers.place(8)] {
        change(&mut words, numbers);
    }
    (name, words)
}

fn change(words: &mut Vec<Vec<u8>>, numbers: &mut Numbers) {
    let place = numbers.place(words.len() + 1);
    let other = numbers.place(words.len() + 1);
    if place >= words.len() || other >= words.len() {
        words.push(word(numbers));
        return;
    }
    match numbers.below(8) {
        0..2 => words[place] = word(numbers),
        2 => words.insert(place, word(numbers)),
        3 => {
            words.remove(place);
        }
        4 => words.insert(place, words[other].clone()),
        5 => words.swap(place, other),
        6 => take_unit_off(&mut words[place]),
        _ => words.truncate(place),
    }
}

/// Leaves the number of a duration.
fn take_unit_off(word: &mut Vec<u8>) {
    if word.first().is_some_and(u8::is_ascii_digit) {
        word.retain(u8::is_ascii_digit);
    }
}

fn word(numbers: &mut Numbers) -> Vec<u8> {
    let pick = |numbers: &mut Numbers, from: &[&str]| from[numbers.place(from.len())].into();
    match numbers.below(64) {
        0..24 => pick(numbers, &NEAR_NUMBERS),
        24..40 => pick(numbers, &KEYWORDS),
        40..46 => ODD_BYTES[numbers.place(ODD_BYTES.len())].into(),
        46..56 => (0..numbers.below(20)).map(|_| byte(numbers)).collect(),
        56..60 => b"9".repeat(numbers.place(300)),
        60..63 => key(numbers),
        // Few, for the sake of the traffic.
        _ if numbers.one_in(8) => vec![byte(numbers); HUGE],
        _ => numbers.below(1 << 60).to_string().into(),
    }
}

fn byte(numbers: &mut Numbers) -> u8 {
    u8::try_from(numbers.below(256)).expect("a byte")
}

fn key(numbers: &mut Numbers) -> Vec<u8> {
    match numbers.below(20) {
        0 => (0..numbers.below(8)).map(|_| byte(numbers)).collect(),
        1..5 => WRONG_KEYS[numbers.place(WRONG_KEYS.len())].into(),
        _ => RIGHT_KEYS[numbers.place(RIGHT_KEYS.len())].into(),
    }
}

/// A command with nothing wrong in its words, except that there may be no tier, too many, or two of
/// one window, and a key twice.
fn good(name: Name, numbers: &mut Numbers) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    match name {
        Name::Refund => {
            words.push(key(numbers));
            words.push(units(numbers));
            options(&mut words, name.options(), numbers);
        }
        Name::Lease => {
            words.push(key(numbers));
            lease(&mut words, numbers);
            options(&mut words, name.options(), numbers);
        }
        Name::Release => {
            words.push(key(numbers));
            words.extend((0..numbers.one_to(3)).map(|_| id(numbers)));
        }
        Name::All => {
            let keys = match numbers.below(20) {
                0 => numbers.below(70),
                _ => numbers.one_to(4),
            };
            words.push(keys.to_string().into());
            let keys: Vec<Vec<u8>> = (0..keys).map(|_| key(numbers)).collect();
            words.extend(keys.iter().cloned());
            for key in keys {
                let kind = kind_for(&key, numbers);
                words.push(any_case(kind.word(), numbers));
                match kind {
                    Kind::Log | Kind::Counter => tiers(&mut words, numbers),
                    Kind::Lease => lease(&mut words, numbers),
                }
                options(&mut words, kind.options(), numbers);
            }
            options(&mut words, name.options(), numbers);
        }
        Name::Log | Name::Counter | Name::Peek => {
            words.push(key(numbers));
            tiers(&mut words, numbers);
            options(&mut words, name.options(), numbers);
        }
    }
    words
}

/// Mostly the kind that the key's name says.
fn kind_for(key: &[u8], numbers: &mut Numbers) -> Kind {
    let any = [Kind::Log, Kind::Counter, Kind::Lease][numbers.place(3)];
    match key.split(|&byte| byte == b':').next() {
        _ if numbers.one_in(8) => any,
        Some(b"log") => Kind::Log,
        Some(b"counter") => Kind::Counter,
        Some(b"lease") => Kind::Lease,
        _ => any,
    }
}

/// Mostly a few, at times up to 40.
fn tiers(words: &mut Vec<Vec<u8>>, numbers: &mut Numbers) {
    let count = match numbers.below(20) {
        0 => numbers.below(41),
        1..4 => numbers.one_to(16),
        _ => numbers.one_to(3),
    };
    for _ in 0..count {
        words.push(units(numbers));
        words.push(window(numbers).into());
    }
}

/// A limit, how long it is held, and by whom.
fn lease(words: &mut Vec<Vec<u8>>, numbers: &mut Numbers) {
    words.push(units(numbers));
    words.push(match numbers.below(3) {
        0 => format!("{}h", numbers.one_to(24)).into(),
        1 => format!("{}m", 60 + numbers.below(1380)).into(),
        _ => format!("{}ms", 3_600_000 + numbers.below(82_800_000)).into(),
    });
    words.push(id(numbers));
}

/// Some in use, some with a meaning elsewhere, some of any bytes.
fn id(numbers: &mut Numbers) -> Vec<u8> {
    match numbers.below(8) {
        0 => KEYWORDS[numbers.place(KEYWORDS.len())].into(),
        1 => (0..numbers.one_to(128)).map(|_| byte(numbers)).collect(),
        _ => format!("job:{}", numbers.below(10)).into(),
    }
}

fn units(numbers: &mut Numbers) -> Vec<u8> {
    let most = [2, 10, 1000, 1 << 53][numbers.place(4)];
    numbers.below(most).to_string().into()
}

/// An hour at least, so that nothing expires while a test looks.
fn window(numbers: &mut Numbers) -> String {
    match numbers.below(5) {
        0 => format!("{}d", numbers.one_to(3652)),
        1 => format!("{}h", numbers.one_to(87_660)),
        2 => format!("{}m", 60 + numbers.below(1_000)),
        3 => format!("{}s", 3600 + numbers.below(100_000)),
        _ => format!("{}ms", 3_600_000 + numbers.below(315_000_000_000)),
    }
}

/// Some of these, in any order, at times one of them twice.
fn options(words: &mut Vec<Vec<u8>>, known: &[&str], numbers: &mut Numbers) {
    let mut left = known.to_vec();
    while !left.is_empty() && !numbers.one_in(3) {
        let place = numbers.place(left.len());
        let option = left[place];
        if !numbers.one_in(20) {
            left.remove(place);
        }
        words.push(any_case(option, numbers));
        match option {
            "COST" => words.push(units(numbers)),
            "BUCKETS" => words.push(numbers.buckets().to_string().into()),
            "AGE" => words.push(age(numbers)),
            _ => {}
        }
    }
}

/// That of the calls of this test, or of nothing that there is.
fn age(numbers: &mut Numbers) -> Vec<u8> {
    match numbers.below(4) {
        0 => window(numbers).into(),
        1 => format!("{}s", numbers.below(10)).into(),
        _ => format!("{}ms", numbers.below(3000)).into(),
    }
}

fn any_case(option: &str, numbers: &mut Numbers) -> Vec<u8> {
    let letter = |letter: u8| match numbers.below(8) {
        0 => letter.to_ascii_lowercase(),
        _ => letter,
    };
    option.bytes().map(letter).collect()
}
