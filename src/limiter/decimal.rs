//! Decimal integers in one spelling only, as callers send them and as values are stored.

use smallvec::SmallVec;

/// A short text, built without allocating.
pub type DecimalBuf = SmallVec<[u8; 64]>;

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
    let mut value: u64 = 0;
    let mut rest = *text;
    while let [byte, tail @ ..] = rest {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(digit.into());
        rest = tail;
    }
    match text.len() - rest.len() {
        1 => {}
        2..=SAFE_DIGITS if !text.starts_with(b"0") => {}
        // From 2^64 on, a number that begins with 1 has wrapped to less than this.
        20 if text.starts_with(b"1") && value >= 10_u64.pow(19) => {}
        _ => return None,
    }
    *text = rest;
    Some(value)
}

/// Appends `value` in the spelling that [`parse`] reads.
pub fn push(text: &mut DecimalBuf, value: u64) {
    text.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::{DecimalBuf, parse, push};
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
            let mut text = DecimalBuf::new();
            push(&mut text, value);
            prop_assert_eq!(parse(&text), Some(value));
        }

        #[test]
        fn agrees_with_the_standard_library(
            bytes in prop_oneof!["[0-9+ -]{0,22}", "[0-9]{18,21}", "1[0-9]{19}"],
        ) {
            let canonical = bytes.parse::<u64>().ok().filter(|value| value.to_string() == bytes);
            prop_assert_eq!(parse(bytes.as_bytes()), canonical);
        }
    }
}
