//! Decimal integers in one spelling only, as callers send them and as values are stored.

use smallvec::SmallVec;

/// A short text, built without allocating.
pub type Text = SmallVec<[u8; 64]>;

/// The most digits that a `u64` has.
const MOST_DIGITS: usize = 20;

/// Reads digits only: no sign, no space, no leading zero. `None` also past `u64::MAX`.
pub fn parse(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > MOST_DIGITS || matches!(digits, [b'0', _, ..]) {
        return None;
    }
    // So many digits fit 128 bits, and need no check one by one.
    let value = digits.iter().try_fold(0_u128, |value, byte| {
        byte.is_ascii_digit()
            .then(|| value * 10 + u128::from(byte & 0xf))
    });
    u64::try_from(value?).ok()
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
