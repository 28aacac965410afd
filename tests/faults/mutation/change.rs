//! Changes of what a key holds, from one bit to other data altogether.

use super::content::{Content, Kind};
use crate::support::random::Numbers;

const MEMBERS: [&str; 18] = [
    "",
    ":",
    "1",
    "1:",
    ":1",
    "1:0",
    "0:1",
    "01:1",
    "1:01",
    "1:1:1",
    "-1:1",
    "1:+1",
    "1:1 ",
    "alice",
    "@",
    "@alice",
    "1:9223372036854775808",
    "1:9223372036854775809",
];

const FIELDS: [&str; 10] = [
    "",
    "0",
    "name",
    "060000",
    "60000/",
    "60000/0",
    "60000/1",
    "60000/65",
    "60s",
    "315576000001",
];

/// Scores that no log has, or that none has yet.
const SCORES: [&str; 12] = [
    "inf",
    "-inf",
    "nan",
    "0",
    "-0",
    "-1",
    "0.5",
    "5e-324",
    "1e300",
    "9007199254740991",
    "9007199254740992",
    "9007199254740994",
];

/// Numbers at the edges of what is stored, and words that are none.
const NUMBERS: [&str; 14] = [
    "",
    "0",
    "00",
    "01",
    "-1",
    "+1",
    "x",
    " ",
    "144115188075855871",
    "144115188075855872",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999",
];

fn pick(from: &[&str], numbers: &mut Numbers) -> Vec<u8> {
    from[numbers.place(from.len())].into()
}

/// The same with one bit changed, for each bit of each name, and of each value of a hash.
pub fn flips(content: &Content) -> Vec<Content> {
    let mut flips = Vec::new();
    for place in 0..content.pairs.len() {
        let (first, second) = &content.pairs[place];
        let values = match content.kind {
            Kind::Log => 0,
            Kind::Counter => second.len(),
        };
        for bit in 0..8 * (first.len() + values) {
            let mut flipped = content.clone();
            flip(&mut flipped.pairs[place], bit);
            flips.push(flipped);
        }
    }
    flips
}

fn flip((first, second): &mut (Vec<u8>, Vec<u8>), bit: usize) {
    let (byte, mask) = (bit / 8, 1 << (bit % 8));
    match byte.checked_sub(first.len()) {
        None => first[byte] ^= mask,
        Some(byte) => second[byte] ^= mask,
    }
}

/// The same with one to three changes.
pub fn changed(content: &Content, numbers: &mut Numbers) -> Content {
    let mut changed = content.clone();
    for _ in 0..[1, 1, 2, 3][numbers.place(4)] {
        if changed.pairs.is_empty() {
            break;
        }
        match content.kind {
            Kind::Log => change_log(&mut changed.pairs, numbers),
            Kind::Counter => change_counter(&mut changed.pairs, numbers),
        }
    }
    changed
}

fn change_log(pairs: &mut Vec<(Vec<u8>, Vec<u8>)>, numbers: &mut Numbers) {
    let place = numbers.place(pairs.len());
    let other = numbers.place(pairs.len());
    match numbers.below(8) {
        0 => pairs[place].0 = pick(&MEMBERS, numbers),
        1 => pairs[place].1 = pick(&SCORES, numbers),
        2 => pairs[place].1 = score_near(&pairs[other].1, numbers),
        3 => {
            let near = score_near(&pairs[other].1, numbers);
            pairs.push((pick(&MEMBERS, numbers), near));
        }
        4 => {
            pairs.remove(place);
        }
        5 => {
            let member = std::mem::take(&mut pairs[place].0);
            pairs[place].0 = std::mem::replace(&mut pairs[other].0, member);
        }
        6 => pairs[place].1 = pairs[other].1.clone(),
        _ => change_number(&mut pairs[place].0, b':', numbers),
    }
}

fn change_counter(pairs: &mut Vec<(Vec<u8>, Vec<u8>)>, numbers: &mut Numbers) {
    let place = numbers.place(pairs.len());
    let other = numbers.place(pairs.len());
    match numbers.below(8) {
        0 => pairs[place].0 = pick(&FIELDS, numbers),
        1 => pairs[place].1 = pick(&MEMBERS, numbers),
        2 => pairs.push((pick(&FIELDS, numbers), pairs[other].1.clone())),
        3 => {
            pairs.remove(place);
        }
        4 => {
            let value = std::mem::take(&mut pairs[place].1);
            pairs[place].1 = std::mem::replace(&mut pairs[other].1, value);
        }
        5 => change_number(&mut pairs[place].0, b'/', numbers),
        _ => change_number(&mut pairs[place].1, b':', numbers),
    }
}

/// A time somewhat earlier or later, and at times not a whole one.
fn score_near(score: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let text = std::str::from_utf8(score).expect("a number");
    let Ok(time) = text.parse::<i64>() else {
        return score.to_vec();
    };
    let by = [1, 3, 60_000, 86_400_000, 315_576_000_000, 1 << 52][numbers.place(6)];
    let by = i64::try_from(numbers.one_to(by)).expect("below 2^53");
    let moved = match numbers.below(2) {
        0 => time + by,
        _ => time - by,
    };
    match numbers.below(8) {
        0 => format!("{moved}.5").into(),
        _ => moved.to_string().into(),
    }
}

/// Makes one of the numbers in a text another, leaves it out, or says it twice.
fn change_number(text: &mut Vec<u8>, separator: u8, numbers: &mut Numbers) {
    let parts: Vec<&[u8]> = text.split(|&byte| byte == separator).collect();
    let mut parts: Vec<Vec<u8>> = parts.into_iter().map(<[u8]>::to_vec).collect();
    let place = numbers.place(parts.len());
    match numbers.below(8) {
        0 => {
            parts.remove(place);
        }
        1 => parts.push(parts[place].clone()),
        2..4 => parts[place] = pick(&NUMBERS, numbers),
        _ => {
            let number = std::str::from_utf8(&parts[place]).ok();
            if let Some(number) = number.and_then(|number| number.parse::<u64>().ok()) {
                let by = [1, 10, 1 << 40, 1 << 63][numbers.place(4)];
                let by = numbers.one_to(by);
                let other = match numbers.below(2) {
                    0 => number.wrapping_add(by),
                    _ => number.wrapping_sub(by),
                };
                parts[place] = other.to_string().into();
            }
        }
    }
    *text = parts.join(&separator);
}
