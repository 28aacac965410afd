//! Numbers as packed members spell them: five bits a character, the lowest first.

/// The characters by their values. From [`MORE`] on, another character follows.
const CHARACTERS: [u8; 64] = *b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

/// What a character has more than its five bits where another follows.
const MORE: u8 = 32;

/// Where the five bits of the longest numbers' last character go.
const LAST_SHIFT: u32 = 60;

/// Marks a byte that is none of the characters.
const NONE: u8 = u8::MAX;

/// The values by their characters.
const VALUES: [u8; 256] = {
    let mut values = [NONE; 256];
    let mut value = 0;
    while value < CHARACTERS.len() {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::indexing_slicing,
            reason = "there are 64, and the compiler runs this"
        )]
        {
            values[CHARACTERS[value] as usize] = value as u8;
        }
        value += 1;
    }
    values
};

/// Appends `value`.
pub fn push(text: &mut Vec<u8>, value: u64) {
    let mut rest = value;
    loop {
        let five_bits = u8::try_from(rest % u64::from(MORE)).unwrap_or(0);
        rest /= u64::from(MORE);
        let more = if rest > 0 { MORE } else { 0 };
        text.extend(CHARACTERS.get(usize::from(five_bits + more)));
        if rest == 0 {
            return;
        }
    }
}

/// How many characters `value` takes.
pub fn length(value: u64) -> usize {
    let bits = u64::BITS - value.leading_zeros();
    usize::try_from(bits.div_ceil(5).max(1)).unwrap_or(0)
}

/// Takes a number off the front of `text`. `None` if no number stands there, or one above
/// `u64::MAX`, or one that [`push`] spells another way.
#[inline(always)]
pub fn take(text: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    let mut shift = 0;
    let mut rest = *text;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        let character = *VALUES.get(usize::from(*byte))?;
        let five_bits = u64::from(character % MORE);
        value |= five_bits << shift;
        if character < MORE {
            let zero_at_the_top = five_bits == 0 && shift > 0;
            let too_large = shift == LAST_SHIFT && five_bits > u64::MAX >> LAST_SHIFT;
            *text = rest;
            return (!zero_at_the_top && !too_large).then_some(value);
        }
        if character == NONE || shift == LAST_SHIFT {
            return None;
        }
        shift += 5;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{length, push, take};
    use proptest::prelude::*;

    fn spelling(value: u64) -> String {
        let mut text = Vec::new();
        push(&mut text, value);
        String::from_utf8(text).unwrap()
    }

    fn reading(text: &str) -> Option<u64> {
        let mut rest = text.as_bytes();
        take(&mut rest).filter(|_| rest.is_empty())
    }

    #[test]
    fn is_spelled_lowest_bits_first() {
        for (value, text) in [
            (0, "0"),
            (9, "9"),
            (10, "A"),
            (31, "V"),
            (32, "W1"),
            (33, "X1"),
            (63, "_1"),
            (1023, "_V"),
            (1024, "WW1"),
            (u64::MAX, "____________F"),
        ] {
            assert_eq!(spelling(value), text);
            assert_eq!(reading(text), Some(value));
        }
    }

    #[test]
    fn refuses_every_other_spelling() {
        for text in [
            "",
            "W",
            "W0",
            "__0",
            "+",
            " 1",
            "1=",
            "é",
            "____________G",
            "_____________",
            "WWWWWWWWWWWWW1",
        ] {
            assert_eq!(reading(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn reads_what_it_writes(value: u64, bits in 0_u32..64) {
            let value = value >> bits;
            let text = spelling(value);
            prop_assert_eq!(length(value), text.len());
            prop_assert_eq!(reading(&text), Some(value));
        }

        #[test]
        fn writes_what_it_reads(text in "[0-9A-Za-z_-]{1,14}") {
            if let Some(value) = reading(&text) {
                prop_assert_eq!(spelling(value), text);
            }
        }
    }
}
