//! Decimal integers in one spelling only, as callers send them and as values are stored.

use smallvec::SmallVec;

/// A short text, built without allocating.
pub type Text = SmallVec<[u8; 64]>;

/// So many digits fit a `u64` whatever they are.
const SAFE_DIGITS: usize = 19;

/// Reads digits only: no sign, no space, no leading zero. `None` also past `u64::MAX`.
pub fn parse(digits: &[u8]) -> Option<u64> {
    let mut rest = digits;
    take(&mut rest).filter(|_| rest.is_empty())
}

/// Takes an integer, spelled as [`parse`] reads it, off the front of `text`: all digits that stand
/// there. `None` if there is none.
pub fn take(text: &mut &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let (number, rest) = text.split_at_checked(digits.count())?;
    let digits = number.iter().map(|byte| u64::from(byte & 0xf));
    let value = match number.len() {
        0 => return None,
        2.. if number.starts_with(b"0") => return None,
        ..=SAFE_DIGITS => digits.fold(0, |value, digit| value * 10 + digit),
        _ => digits.fold(Some(0_u64), |value, digit| {
            value?.checked_mul(10)?.checked_add(digit)
        })?,
    };
    *text = rest;
    Some(value)
}

/// Appends `value` in the spelling that [`parse`] reads.
pub fn push(text: &mut Text, value: u64) {
    text.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::{Text, parse, push};
    use proptest::prelude::*;

    #[test]
    fn refuses_every_other_spelling() {
        for text in [
            "", "-1", "+1", " 1", "1 ", "01", "00", "1.5", "1e3", "0x1", "١",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(parse(b"0"), Some(0));
        assert_eq!(parse(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse(b"18446744073709551616"), None);
    }

    proptest! {
        #[test]
        fn reads_what_it_writes(value: u64) {
            let mut text = Text::new();
            push(&mut text, value);
            prop_assert_eq!(parse(&text), Some(value));
        }

        #[test]
        fn agrees_with_the_standard_library(bytes in "[0-9+ -]{0,22}") {
            let canonical = bytes.parse::<u64>().ok().filter(|value| value.to_string() == bytes);
            prop_assert_eq!(parse(bytes.as_bytes()), canonical);
        }
    }
}
